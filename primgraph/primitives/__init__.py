"""The closed set of primitives; importing this package registers those that most programs use."""

from primgraph.primitives import constants, control, elementwise, logic, parts, reductions, shapes
from primgraph.primitives.linear_algebra import products

__all__ = [
    "constants",
    "control",
    "elementwise",
    "logic",
    "parts",
    "products",
    "reductions",
    "shapes",
]
