"""Samples of the primitives of `primgraph.primitives.parts`."""

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from samples.rows import SHAPES, Call, Refused, Row

# The same, and a few of their own, of complex numbers.

_NO_PARTS = [Refused(DTypeError, t) for t in ("f64[3]", "i64[3]", "bool[3]")]


ROWS: dict[str, Row] = {
    "real": Row([Call(f"c128[{s}]") for s in SHAPES], _NO_PARTS, reference=lambda z: z.real),
    "imag": Row([Call(f"c128[{s}]") for s in SHAPES], _NO_PARTS, reference=lambda z: z.imag),
    "conj": Row(
        [Call(f"c128[{s}]") for s in SHAPES], _NO_PARTS, reference=lambda z: z.real - 1j * z.imag
    ),
    "modulus": Row(
        [Call(f"c128[{s}]") for s in SHAPES],
        _NO_PARTS,
        reference=lambda z: np.hypot(z.real, z.imag),
    ),
    "complex": Row(
        [Call(f"f64[{s}]", f"f64[{s}]") for s in SHAPES],
        [
            *(Refused(DTypeError, t, t) for t in ("f16[3]", "i64[3]", "bool[3]", "c128[3]")),
            Refused(DTypeError, "f64[3]", "f32[3]"),
            Refused(ShapeError, "f64[3]", "f64[1]"),
        ],
        reference=lambda x, y: x + 1j * y,
    ),
}
