"""SciPy's names, for programs: `from primgraph.scipy import special` for `from scipy import`.

What is not here is SciPy's own. `minimize`, `least_squares`, `root` and `curve_fit` of `optimize`,
and `solve_ivp`, `solve_bvp` and `quad` of `integrate`, are here, too: `pg.scipy.minimize(f, x0)`.
"""

import importlib
from typing import Any

from primgraph.errors import unknown_name
from primgraph.scipy import special

# Methods of SciPy with exact derivatives, by the modules that have them.
_METHODS = {
    "primgraph.scipy.integrate": ("quad", "solve_bvp", "solve_ivp"),
    "primgraph.scipy.optimize": ("curve_fit", "least_squares", "minimize", "root"),
}
# Modules that are loaded when they are first asked for.
_LATER = {
    "integrate": "primgraph.scipy.integrate",
    "linalg": "primgraph.scipy.linalg",
    "odr": "primgraph.scipy.odr",
    "optimize": "primgraph.scipy.optimize",
    "signal": "primgraph.scipy.signal",
    "sparse": "primgraph.scipy.sparse",
    "stats": "primgraph.scipy.stats",
}
_PLACES = {name: place for place, names in _METHODS.items() for name in names}

__all__ = [*_LATER, *_PLACES, "special"]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(_LATER[name])
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    try:
        return getattr(importlib.import_module("scipy"), name)
    except (ImportError, AttributeError):
        raise unknown_name("primgraph.scipy", name, __all__) from None


def __dir__() -> list[str]:
    return sorted(__all__)
