"""Tools of Paddle for large models, of which recomputation works with one process."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.distributed.fleet import utils

__all__ = ["utils"]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
