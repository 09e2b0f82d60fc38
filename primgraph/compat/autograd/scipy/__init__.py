"""SciPy's names, as `primgraph.scipy` has them, and special functions that autograd has besides."""

from __future__ import annotations

import sys
from typing import Any

import primgraph.scipy as drop_in
from primgraph.compat.autograd.scipy import special
from primgraph.scipy import integrate, linalg, signal, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]

# The same modules, by the names by which programs import them; distributions are imported as
# modules, too.
for _module in (integrate, linalg, signal, stats):
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module
for _name in stats.__all__:
    sys.modules[f"{__name__}.stats.{_name}"] = getattr(stats, _name)


def __getattr__(name: str) -> Any:
    return getattr(drop_in, name)
