"""Modules and layers by topic, in files with torch's names."""

import sys
from typing import TYPE_CHECKING, Any

from primgraph.compat.torch.nn.modules import (
    activation,
    adaptive,
    container,
    conv,
    lazy,
    linear,
    loss,
    normalization,
    padding,
    pooling,
    rnn,
    shapes,
    sparse,
    transformer,
)
from primgraph.compat.torch.nn.modules.activation import *  # noqa: F403
from primgraph.compat.torch.nn.modules.adaptive import *  # noqa: F403
from primgraph.compat.torch.nn.modules.container import *  # noqa: F403
from primgraph.compat.torch.nn.modules.conv import *  # noqa: F403
from primgraph.compat.torch.nn.modules.lazy import *  # noqa: F403
from primgraph.compat.torch.nn.modules.linear import *  # noqa: F403
from primgraph.compat.torch.nn.modules.loss import *  # noqa: F403
from primgraph.compat.torch.nn.modules.module import Module as Module
from primgraph.compat.torch.nn.modules.normalization import *  # noqa: F403
from primgraph.compat.torch.nn.modules.padding import *  # noqa: F403
from primgraph.compat.torch.nn.modules.pooling import *  # noqa: F403
from primgraph.compat.torch.nn.modules.rnn import *  # noqa: F403
from primgraph.compat.torch.nn.modules.shapes import *  # noqa: F403
from primgraph.compat.torch.nn.modules.sparse import *  # noqa: F403
from primgraph.compat.torch.nn.modules.transformer import *  # noqa: F403

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    _FILES = (
        activation, adaptive, container, conv, lazy, linear, loss, normalization, padding,
        pooling, rnn, shapes, sparse, transformer,
    )  # fmt: skip
    __all__ = sorted({"Module", *(name for file in _FILES for name in file.__all__)})
    # Files that torch has for the layers of other files here.
    _ALIASES = {
        **dict.fromkeys(("batchnorm", "instancenorm"), normalization),
        **dict.fromkeys(("distance", "dropout", "flatten", "fold", "pixelshuffle"), shapes),
        **dict.fromkeys(("upsampling", "utils"), shapes),
    }
    globals().update(_ALIASES)
    sys.modules.update({f"{__name__}.{name}": file for name, file in _ALIASES.items()})
