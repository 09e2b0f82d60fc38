"""Functions of networks by the names that they and their arguments have in Paddle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.paddle.functions import diag_embed as diag_embed
from primgraph.compat.paddle.nn.functional import activations, common, images, losses, windows
from primgraph.compat.paddle.nn.functional.activations import *  # noqa: F403
from primgraph.compat.paddle.nn.functional.common import *  # noqa: F403
from primgraph.compat.paddle.nn.functional.images import *  # noqa: F403
from primgraph.compat.paddle.nn.functional.losses import *  # noqa: F403
from primgraph.compat.paddle.nn.functional.windows import *  # noqa: F403

__all__ = [
    *activations.__all__,
    *common.__all__,
    "diag_embed",
    *images.__all__,
    *losses.__all__,
    *windows.__all__,
]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
