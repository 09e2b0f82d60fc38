"""The closed set of primitives; importing this package registers those that most programs use."""

from primgraph.primitives import (
    bits,
    constants,
    control,
    elementwise,
    indexing,
    logic,
    parts,
    reductions,
    shapes,
)
from primgraph.primitives.linear_algebra import products
from primgraph.primitives.special_functions import gamma, scipy_calls, special

__all__ = [
    "bits",
    "constants",
    "control",
    "elementwise",
    "gamma",
    "indexing",
    "logic",
    "parts",
    "products",
    "reductions",
    "scipy_calls",
    "shapes",
    "special",
]
