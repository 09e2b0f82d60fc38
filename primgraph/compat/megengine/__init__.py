"""MegEngine's API for tensors and their derivatives.

    import primgraph.compat.megengine as mge
    import primgraph.compat.megengine.functional as F
    from primgraph.compat.megengine.autodiff import GradManager

Use these in place of the imports of `megengine`; the rest of the program stays as it is. Tensors
are a subclass of `pg.Tensor`. Python floats make float32 tensors, whatever primgraph's default
dtype is.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.megengine import autodiff, data, functional, module, optimizer
from primgraph.compat.megengine.serialization import load, save
from primgraph.compat.megengine.tensor import Parameter, Tensor, tensor

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = [
    "Parameter",
    "Tensor",
    "autodiff",
    "data",
    "functional",
    "load",
    "module",
    "optimizer",
    "save",
    "tensor",
]
