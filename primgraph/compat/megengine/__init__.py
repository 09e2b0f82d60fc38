"""MegEngine's API for tensors and their derivatives.

    import primgraph.compat.megengine as mge
    import primgraph.compat.megengine.functional as F
    from primgraph.compat.megengine.autodiff import GradManager

Use these in place of the imports of `megengine`; the rest of the program stays as it is. Tensors
are a subclass of `pg.Tensor`. Data without a dtype is float32 or int32, whatever primgraph's
default dtype is.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.megengine import (
    autodiff,
    data,
    device,
    distributed,
    functional,
    jit,
    logger,
    module,
    optimizer,
    random,
)
from primgraph.compat.megengine.device import (
    get_default_device,
    get_device_count,
    is_cuda_available,
    set_default_device,
)
from primgraph.compat.megengine.logger import get_logger, set_log_file, set_log_level
from primgraph.compat.megengine.serialization import load, save
from primgraph.compat.megengine.tensor import Parameter, Tensor, tensor

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)

    def __dir__() -> list[str]:
        return sorted(__all__)


# The version whose names these are.
__version__ = "1.13.4"

__all__ = [
    "Parameter",
    "Tensor",
    "autodiff",
    "data",
    "device",
    "distributed",
    "functional",
    "get_default_device",
    "get_device_count",
    "get_logger",
    "is_cuda_available",
    "jit",
    "load",
    "logger",
    "module",
    "optimizer",
    "random",
    "save",
    "set_default_device",
    "set_log_file",
    "set_log_level",
    "tensor",
]
