"""Code generation: compile a graph of primitives to NumPy source or C, and to a kernel."""

if __name__ != "primgraph.codegen":
    raise ImportError("import primgraph.codegen, not codegen")

from primgraph.codegen.kernel import Kernel, compile_graph
from primgraph.codegen.runtime.threads import get_num_threads, set_num_threads

__all__ = ["Kernel", "compile_graph", "get_num_threads", "set_num_threads"]
