"""The part of MegEngine's API that programs of tensors and their derivatives use, by its names.

    import primgraph.compat.megengine as mge
    import primgraph.compat.megengine.functional as F
    from primgraph.compat.megengine.autodiff import GradManager

in place of the same of `megengine` are meant to be the only changes to a program. Everything here
is primgraph under other names; tensors are a subclass of `pg.Tensor`. Python's floats make tensors
of float32, whatever primgraph's own default dtype is.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.megengine import autodiff, functional, module, optimizer
from primgraph.compat.megengine.tensor import Parameter, Tensor, tensor

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = ["Parameter", "Tensor", "autodiff", "functional", "module", "optimizer", "tensor"]
