"""Utilities of torch: data sets and loaders, and checkpoints of functions."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
