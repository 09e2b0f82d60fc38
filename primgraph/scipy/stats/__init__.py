"""Distributions by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

Densities and distribution functions have derivatives by what they are taken at and by parameters,
to any order. Tails are computed as such: `norm.logcdf(-40.0)` is -804.6. What there is of a
distribution beside these, such as `rvs` and `fit`, is SciPy's, of numbers.
"""

import importlib
from typing import TYPE_CHECKING, Any

from primgraph.errors import unknown_name
from primgraph.scipy.stats.continuous import (
    beta,
    chi2,
    expon,
    gamma,
    laplace,
    lognorm,
    norm,
    t,
    uniform,
)
from primgraph.scipy.stats.discrete import bernoulli, binom, categorical, poisson
from primgraph.scipy.stats.multivariate import dirichlet, multivariate_normal

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "categorical",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "laplace",
    "lognorm",
    "multivariate_normal",
    "norm",
    "poisson",
    "t",
    "uniform",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return SciPy's object for a name that is not defined here."""
        try:
            if not name.startswith("__"):
                return getattr(importlib.import_module("scipy.stats"), name)
        except (ImportError, AttributeError):
            pass
        raise unknown_name("primgraph.scipy.stats", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
