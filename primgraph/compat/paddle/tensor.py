"""Functions of tensors, as `paddle.tensor` has them."""

from primgraph.compat.paddle.functions import *  # noqa: F403
from primgraph.compat.paddle.functions import __all__ as __all__
