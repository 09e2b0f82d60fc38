"""Functions of tensors, as `paddle.tensor` has them."""

from typing import TYPE_CHECKING, Any

from primgraph.compat.paddle.functions import *  # noqa: F403
from primgraph.compat.paddle.functions import __all__ as __all__

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
