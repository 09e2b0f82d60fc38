"""Code generation: compile a graph of primitives to NumPy source or C, and to a kernel."""

if __name__ != "primgraph.codegen":
    raise ImportError("import primgraph.codegen, not codegen")

from typing import TYPE_CHECKING

from primgraph.operators.names import namespace

if TYPE_CHECKING:
    from primgraph.codegen.kernel import Kernel as Kernel
    from primgraph.codegen.kernel import compile_graph as compile_graph
    from primgraph.codegen.runtime.threads import get_num_threads as get_num_threads
    from primgraph.codegen.runtime.threads import set_num_threads as set_num_threads
else:
    __all__, __getattr__, __dir__ = namespace(__name__, globals())
