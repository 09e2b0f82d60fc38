"""Samples of the primitives of `primgraph.primitives.logic`."""

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from samples.rows import EVERYTHING, SHAPES, Call, Refused, Row, unequal


def comparison() -> Row:
    """The row of a comparison."""
    calls = [Call(f"x[{shape}]", f"x[{shape}]") for shape in SHAPES]
    return Row(calls, unequal("f64[3]"), EVERYTHING)


def logical(operands: int) -> Row:
    """The row of a function of booleans."""
    calls = [Call(*[f"bool[{shape}]"] * operands) for shape in SHAPES]
    refused = [Refused(DTypeError, *["i64[3]"] * operands)]
    if operands == 2:
        refused += unequal("bool[3]")
    return Row(calls, refused, ["bool"])


ROWS: dict[str, Row] = {
    "equal": comparison(),
    "not_equal": comparison(),
    "greater": comparison(),
    "greater_equal": comparison(),
    "less": comparison(),
    "less_equal": comparison(),
    "logical_and": logical(2),
    "logical_or": logical(2),
    "logical_xor": logical(2),
    "logical_not": logical(1),
    "unless_nan": Row(
        [Call(f"x[{shape}]", f"x[{shape}]") for shape in SHAPES],
        [
            Refused(DTypeError, "i64[3]", "i64[3]"),
            Refused(DTypeError, "f64[3]", "f32[3]"),
            Refused(ShapeError, "f64[]", "f64[3]"),
        ],
        reference=lambda x, y: np.where(np.isnan(y), y, x),
        analytic=lambda x, y: x,
    ),
    "select": Row(
        [Call(f"bool[{shape}]", f"x[{shape}]", f"x[{shape}]") for shape in SHAPES],
        [
            Refused(DTypeError, "f64[3]", "f64[3]", "f64[3]"),
            Refused(DTypeError, "bool[3]", "f64[3]", "f32[3]"),
            Refused(ShapeError, "bool[]", "f64[3]", "f64[3]"),
            Refused(ShapeError, "bool[3]", "f64[3]", "f64[]"),
        ],
        dtypes=EVERYTHING,
        reference=lambda c, x, y: np.choose(c.astype(int), [y, x]),
    ),
}
