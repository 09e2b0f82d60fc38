"""Graph transforms: functions from graph to graph, one per file."""

if __name__ != "primgraph.transforms":
    raise ImportError("import primgraph.transforms, not transforms")

from typing import TYPE_CHECKING

from primgraph.operators.names import namespace

# A submodule of the name of its function would hide that from lookups by name, if the function were
# not there from the start.
from primgraph.transforms.hoist import hoist as hoist
from primgraph.transforms.linearize import linearize as linearize
from primgraph.transforms.lower import lower as lower
from primgraph.transforms.transpose import transpose as transpose

if TYPE_CHECKING:
    from primgraph.base.debug_mode import debug as debug
    from primgraph.transforms.batch_graphs import batch as batch
    from primgraph.transforms.instantiate_sizes import instantiate as instantiate
    from primgraph.transforms.jacobians.batch_sum import batch_sum as batch_sum
    from primgraph.transforms.optimize.clean_up import clean_up as clean_up
    from primgraph.transforms.optimize.edits import bind as bind
    from primgraph.transforms.optimize.edits import dead_code as dead_code
    from primgraph.transforms.optimize.fold_constants import fold_constants as fold_constants
    from primgraph.transforms.optimize.join_products import join_products as join_products
    from primgraph.transforms.optimize.matrix_chain import matrix_chain as matrix_chain
    from primgraph.transforms.optimize.simplify import simplify as simplify
    from primgraph.transforms.raise_operators import raise_ as raise_
    from primgraph.transforms.taylor_mode import taylor as taylor
    from primgraph.transforms.unzip_linear import unzip as unzip

else:
    __all__, __getattr__, __dir__ = namespace(__name__, globals())
