"""Samples of the primitives of `primgraph.primitives.elementwise`."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.types import BOOL, FLOAT32, FLOAT64, INT64
from samples.rows import (
    ABOVE_ONE,
    DIFFERENCES,
    EVERYTHING,
    FLOATS,
    INSIDE,
    NATURAL,
    NONZERO,
    NUMBERS,
    POSITIVE,
    REAL,
    SHAPES,
    Call,
    Refused,
    Row,
    elementwise,
)


def by_mpmath(function: Callable[[Any], Any]) -> Callable[..., np.ndarray]:
    """`function` of one number, applied to each element with 40 digits."""

    def reference(x: np.ndarray) -> np.ndarray:
        with mpmath.workdps(40):
            flat = [float(function(mpmath.mpf(float(v)))) for v in np.asarray(x).reshape(-1)]
        return np.array(flat).reshape(np.shape(x))

    return reference


ROWS: dict[str, Row] = {
    "add": elementwise(2, dtypes=NUMBERS),
    "sub": elementwise(2, dtypes=NUMBERS),
    "neg": elementwise(dtypes=NUMBERS),
    "mul": elementwise(2, dtypes=NUMBERS),
    "div": elementwise(2, (REAL, NONZERO)),
    "remainder": elementwise(
        2, (REAL, NONZERO), NUMBERS, analytic=lambda x, y: x - y * np.floor(x.real / y.real)
    ),
    "floor_divide": elementwise(2, (REAL, NONZERO), NUMBERS),
    "power": elementwise(2, (POSITIVE, NATURAL), NUMBERS),
    "integer_pow": Row(
        [
            *(Call(f"x[{shape}]", n=3) for shape in SHAPES),
            *(Call("x[2,3]", n=n) for n in (0, 1, 2, 5)),
            *(Call(f"{dtype}[3]", n=n) for n in (-1, -2) for dtype in FLOATS),
        ],
        [Refused(DTypeError, "i64[3]", n=-1), Refused(DTypeError, "bool[3]", n=2)],
        dtypes=NUMBERS,
        domain=[NONZERO],
        analytic=lambda x, *, n: (1 / x if n < 0 else x) ** abs(n),
    ),
    "sqrt": elementwise(1, POSITIVE),
    "rsqrt": elementwise(1, POSITIVE, reference=lambda x: x**-0.5),
    "exp": elementwise(),
    "expm1": elementwise(),
    "log": elementwise(1, POSITIVE),
    "log1p": elementwise(1, INSIDE),
    "sigmoid": elementwise(
        reference=by_mpmath(lambda x: 1 / (1 + mpmath.exp(-x))),
        analytic=lambda x: 1 / (1 + np.exp(-x)),
    ),
    "logaddexp": elementwise(2, analytic=lambda x, y: np.log(np.exp(x) + np.exp(y))),
    "sin": elementwise(),
    "cos": elementwise(),
    "tan": elementwise(1, INSIDE),
    "sinh": elementwise(),
    "cosh": elementwise(),
    "tanh": elementwise(),
    "arcsin": elementwise(1, INSIDE),
    "arccos": elementwise(1, INSIDE),
    "arctan": elementwise(),
    "arcsinh": elementwise(),
    "arccosh": elementwise(1, ABOVE_ONE),
    "arctanh": elementwise(1, INSIDE),
    "arctan2": elementwise(
        2, NONZERO, analytic=lambda x, y: np.arctan(x / y) + np.pi * np.sign(x.real) * (y.real < 0)
    ),
    "erf": elementwise(reference=by_mpmath(mpmath.erf), analytic=DIFFERENCES),
    "erfc": elementwise(reference=by_mpmath(mpmath.erfc), analytic=DIFFERENCES),
    "abs": elementwise(1, NONZERO, NUMBERS, analytic=lambda x: x * np.sign(x.real)),
    "maximum": elementwise(
        2, dtypes=EVERYTHING, analytic=lambda x, y: np.where(x.real > y.real, x, y)
    ),
    "minimum": elementwise(
        2, dtypes=EVERYTHING, analytic=lambda x, y: np.where(x.real < y.real, x, y)
    ),
    "sign": elementwise(dtypes=NUMBERS),
    "floor": elementwise(),
    "ceil": elementwise(),
    "round": elementwise(reference=lambda x: np.copysign(np.round(x), x)),
    "stop_gradient": elementwise(dtypes=EVERYTHING, reference=lambda x: x),
    "as_function_of": Row(
        [Call("x[]", "x[]"), Call("x[3]", "x[2,3]"), Call("x[2,3]", "x[]"), Call("x[0,3]", "x[1]")],
        [Refused(DTypeError, "i64[3]", "f64[3]"), Refused(DTypeError, "bool[3]", "f64[3]")],
        reference=lambda x, y: x,
        analytic=lambda x, y: x,
    ),
    "cast": Row(
        [
            *(Call(f"x[{shape}]", dtype=FLOAT64) for shape in SHAPES),
            Call("x[2,3]", dtype=FLOAT32),
            Call("x[2,3]", dtype=INT64),
            Call("x[2,3]", dtype=BOOL),
        ],
        [],
        dtypes=EVERYTHING,
        reference=lambda x, *, dtype: np.array(x, dtype),
        analytic=lambda x, *, dtype: x,
    ),
    "as_another": Row(
        [
            Call("x[]", "x[]", number=1),
            Call("x[2,3]", "x[2,3]", number=2),
            Call("x[0]", "x[0]", number=1),
        ],
        [
            Refused(ShapeError, "f64[3]", "f64[2]", number=1),
            Refused(DTypeError, "i64[3]", "i64[3]", number=1),
        ],
        reference=lambda z, x, *, number: z,
        analytic=lambda z, x, *, number: x,
    ),
    "steady": Row(
        [Call("x[]"), Call("x[2,3]"), Call("x[0]")],
        [Refused(DTypeError, "i64[3]")],
        reference=lambda z: z,
        analytic=lambda z: z.real + 0j,
    ),
}
