"""The closed set of primitives; importing this package registers all of them."""

from primgraph.primitives import (
    bits,
    constants,
    elementwise,
    indexing,
    linalg,
    logic,
    reductions,
    shapes,
)

__all__ = [
    "bits",
    "constants",
    "elementwise",
    "indexing",
    "linalg",
    "logic",
    "reductions",
    "shapes",
]
