"""Functions of tensors, with Paddle's names for them and for their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.paddle.functions import elementwise, indexing, others, products, reductions
from primgraph.compat.paddle.functions import shapes as shapes
from primgraph.compat.paddle.functions.elementwise import *  # noqa: F403
from primgraph.compat.paddle.functions.indexing import *  # noqa: F403
from primgraph.compat.paddle.functions.others import *  # noqa: F403
from primgraph.compat.paddle.functions.products import *  # noqa: F403
from primgraph.compat.paddle.functions.reductions import *  # noqa: F403
from primgraph.compat.paddle.functions.shapes import *  # noqa: F403

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = [
    *elementwise.__all__,
    *indexing.__all__,
    *others.__all__,
    *products.__all__,
    *reductions.__all__,
    *shapes.__all__,
]
