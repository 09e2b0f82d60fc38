"""Tools for parameters and modules, by the names of `torch.nn.utils`."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent

__all__: list[str] = []

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
