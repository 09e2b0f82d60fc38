"""Networks: modules, layers and functions, by the names of `torch.nn`."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.nn import (
    attention,
    functional,
    init,
    modules,
    parallel,
    parameter,
    utils,
)
from primgraph.compat.torch.nn.modules import *  # noqa: F403
from primgraph.compat.torch.nn.parallel import DataParallel
from primgraph.compat.torch.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

if TYPE_CHECKING:
    __all__: list[str]

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = absent(__name__)
    __all__ = [
        *modules.__all__,
        "Buffer",
        "DataParallel",
        "Parameter",
        "UninitializedBuffer",
        "UninitializedParameter",
        "attention",
        "functional",
        "init",
        "modules",
        "parallel",
        "parameter",
        "utils",
    ]


def __dir__() -> list[str]:
    return sorted(__all__)
