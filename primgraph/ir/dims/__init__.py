"""Symbolic sizes: integer expressions in named sizes, each of which is at least zero.

An expression is a polynomial with integer coefficients over sizes and atoms: floor divisions,
maxima and minima. It has a normal form, and equal normal forms are one object. Polynomials that are
equal for all sizes are equal, and so are quotients and remainders as far as they can be divided. An
expression without sizes is a Python integer, never a `Dim`.

The normal form, and the bounds of linear forms that decide comparisons (both in `polynomial`), are
a small version of the symbolic dimensions of `jax.export`. `dim` has the type and its queries,
`spelling` and `reading` its text.
"""

from primgraph.ir.dims.dim import (
    TRIPS,
    Dim,
    extent_at,
    is_open,
    names_in,
    single_row_size,
    size,
    typical,
)
from primgraph.ir.dims.polynomial import FLOOR, MAX, MIN, Atom, Monomial, bounds, is_extent
from primgraph.ir.dims.reading import as_extent, parse_extent, parse_size
from primgraph.ir.dims.spelling import remainder

__all__ = [
    "FLOOR",
    "MAX",
    "MIN",
    "TRIPS",
    "Atom",
    "Dim",
    "Monomial",
    "as_extent",
    "bounds",
    "extent_at",
    "is_extent",
    "is_open",
    "names_in",
    "parse_extent",
    "parse_size",
    "remainder",
    "single_row_size",
    "size",
    "typical"
]  # fmt: skip
