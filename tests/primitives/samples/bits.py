"""Samples of the primitives of `primgraph.primitives.bits`."""

import numpy as np

from primgraph.errors import DTypeError
from samples.rows import DIFFERENCES, INTS, NATURAL, SHAPES, Call, Refused, Row, elementwise


def reread(x: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    """The bytes of the numbers, of which floats come in float64, read as numbers of `dtype`."""
    given = x.astype(f"f{dtype.itemsize}") if x.dtype.kind == "f" else x
    return np.frombuffer(given.tobytes(), dtype).reshape(x.shape)


ROWS: dict[str, Row] = {
    "bitwise_and": elementwise(2, dtypes=INTS),
    "bitwise_or": elementwise(2, dtypes=INTS),
    "bitwise_xor": elementwise(2, dtypes=INTS),
    "bitwise_not": elementwise(dtypes=INTS),
    "left_shift": elementwise(2, NATURAL, INTS),
    "right_shift": elementwise(2, NATURAL, INTS),
    "gcd": elementwise(2, NATURAL, INTS),
    "nextafter": elementwise(2),
    "bitcast": Row(
        [
            *(Call(f"f64[{shape}]", dtype=np.dtype("i8")) for shape in SHAPES),
            Call("i64[2,3]", dtype=np.dtype("f8")),
            Call("u32[3]", dtype=np.dtype("f4")),
            Call("f32[3]", dtype=np.dtype("i4")),
            Call("i16[3]", dtype=np.dtype("f2")),
            Call("u8[3]", dtype=np.dtype("i1")),
        ],
        [
            Refused(DTypeError, "f64[3]", dtype=np.dtype("f4")),
            Refused(DTypeError, "bool[3]", dtype=np.dtype("u1")),
            Refused(DTypeError, "c64[3]", dtype=np.dtype("f8")),
        ],
        domain=[NATURAL],
        reference=reread,
        analytic=DIFFERENCES,
    ),
}
