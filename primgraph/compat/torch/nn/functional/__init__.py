"""Functions of networks by the names that they and their arguments have in torch."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.nn.functional import (
    activations,
    alignments,
    attention,
    distances,
    fractional,
    losses,
    margins,
    norms,
    sampling,
    windows,
)
from primgraph.compat.torch.nn.functional.activations import *  # noqa: F403
from primgraph.compat.torch.nn.functional.alignments import *  # noqa: F403
from primgraph.compat.torch.nn.functional.attention import *  # noqa: F403
from primgraph.compat.torch.nn.functional.distances import *  # noqa: F403
from primgraph.compat.torch.nn.functional.fractional import *  # noqa: F403
from primgraph.compat.torch.nn.functional.losses import *  # noqa: F403
from primgraph.compat.torch.nn.functional.margins import *  # noqa: F403
from primgraph.compat.torch.nn.functional.norms import *  # noqa: F403
from primgraph.compat.torch.nn.functional.sampling import *  # noqa: F403
from primgraph.compat.torch.nn.functional.windows import *  # noqa: F403

if TYPE_CHECKING:
    __all__: list[str]

    def __getattr__(name: str) -> Any: ...

else:
    _FILES = (
        activations,
        alignments,
        attention,
        distances,
        fractional,
        losses,
        margins,
        norms,
        sampling,
        windows,
    )
    __all__ = sorted({name for file in _FILES for name in file.__all__})
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
