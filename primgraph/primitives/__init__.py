"""The closed set of primitives; importing this package registers all of them."""

from primgraph.primitives import (
    bits,
    constants,
    control,
    elementwise,
    fourier,
    indexing,
    logic,
    parts,
    reductions,
    running,
    shapes,
    sorting,
    windows,
)
from primgraph.primitives.linear_algebra import products
from primgraph.primitives.special_functions import gamma, scipy_calls, special

__all__ = [
    "bits",
    "constants",
    "control",
    "elementwise",
    "fourier",
    "gamma",
    "indexing",
    "logic",
    "parts",
    "products",
    "reductions",
    "running",
    "scipy_calls",
    "shapes",
    "sorting",
    "special",
    "windows",
]
