"""Graph transforms: functions from graph to graph, one per file."""

if __name__ != "primgraph.transforms":
    raise ImportError("import primgraph.transforms, not transforms")

from importlib import import_module
from typing import TYPE_CHECKING

from primgraph.base.debug_mode import debug
from primgraph.errors import unknown_name
from primgraph.transforms import loops  # noqa: F401
from primgraph.transforms.batch import batch
from primgraph.transforms.hoist import hoist
from primgraph.transforms.instantiate import instantiate
from primgraph.transforms.jacobians.batch_sum import batch_sum
from primgraph.transforms.linearize import linearize
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.edits import bind, dead_code
from primgraph.transforms.optimize.fold_constants import fold_constants
from primgraph.transforms.optimize.join_products import join_products
from primgraph.transforms.optimize.matrix_chain import matrix_chain
from primgraph.transforms.optimize.simplify import simplify
from primgraph.transforms.raise_ import raise_
from primgraph.transforms.transpose import transpose
from primgraph.transforms.unzip import unzip

if TYPE_CHECKING:
    from primgraph.transforms.taylor_mode import taylor

else:

    def __getattr__(name: str) -> object:
        # Loaded lazily, at the first access.
        if name == "taylor":
            module = import_module("primgraph.transforms.taylor_mode")
            return globals().setdefault(name, module.taylor)
        raise unknown_name("primgraph.transforms", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = [
    "batch",
    "batch_sum",
    "bind",
    "clean_up",
    "dead_code",
    "debug",
    "fold_constants",
    "hoist",
    "instantiate",
    "join_products",
    "linearize",
    "lower",
    "matrix_chain",
    "raise_",
    "simplify",
    "taylor",
    "transpose",
    "unzip",
]
