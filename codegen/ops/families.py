"""Families of built-in primitives, each with a module of cards."""

from __future__ import annotations

from primgraph.ir.facts.ops import Op

# Modules of cards, which are loaded for the first of their primitives; they are named as those of
# the primitives.
FAMILIES = (
    "bits", "constants", "elementwise.arithmetic", "elementwise.functions", "fourier", "indexing",
    "linear_algebra.assumptions", "linear_algebra.cholesky", "linear_algebra.matrix_functions",
    "linear_algebra.products", "linear_algebra.spectra", "linear_algebra.systems",
    "linear_algebra.ties", "logic", "parts", "reductions", "running", "shapes", "sorting",
    "special_functions.by_parameters", "special_functions.gamma", "special_functions.scipy_calls",
    "special_functions.special", "windows",
)  # fmt: skip
_PRIMITIVES = "primgraph.primitives."


def family_of(op: Op) -> str:
    """Return the family of a built-in primitive; "" for other ops."""
    name = op.home.removeprefix(_PRIMITIVES)
    return name if name in FAMILIES else ""
