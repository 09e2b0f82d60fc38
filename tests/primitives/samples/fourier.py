"""Samples of the primitives of `primgraph.primitives.fourier`."""

import complex_samples

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from samples.rows import DIFFERENCES, Call, Refused, Row

ROWS: dict[str, Row] = {
    "fft": Row(
        [
            *(Call("c128[5]", axes=(0,), inverse=i, norm="ortho") for i in (False, True)),
            Call("c128[2,4]", axes=(1,), inverse=True, norm="backward"),
            Call("c128[2,3,2]", axes=(0, 2), inverse=False, norm="forward"),
            Call("c128[0,2]", axes=(1,), inverse=False, norm="backward"),
        ],
        [
            Refused(DTypeError, "f64[3]", axes=(0,), inverse=False, norm="ortho"),
            Refused(ShapeError, "c128[3]", axes=(1,), inverse=False, norm="ortho"),
            Refused(ShapeError, "c128[3]", axes=(), inverse=False, norm="ortho"),
            Refused(ShapeError, "c128[0]", axes=(0,), inverse=False, norm="ortho"),
            Refused(ArgumentError, "c128[3]", axes=(0,), inverse=False, norm="both"),
        ],
        reference=complex_samples.transform_by_matrix,
    ),
    "rfft": Row(
        [
            Call("f64[5]", axis=0, norm="ortho"),
            Call("f64[2,4]", axis=1, norm="backward"),
            Call("f64[6,2]", axis=0, norm="forward"),
            Call("f64[1]", axis=0, norm="backward"),
        ],
        [
            Refused(DTypeError, "c128[3]", axis=0, norm="ortho"),
            Refused(DTypeError, "f16[3]", axis=0, norm="ortho"),
            Refused(ShapeError, "f64[0]", axis=0, norm="ortho"),
        ],
        reference=complex_samples.half_by_matrix,
        analytic=DIFFERENCES,
    ),
    "irfft": Row(
        [
            Call("c128[3]", n=5, axis=0, norm="ortho"),
            Call("c128[2,3]", n=4, axis=1, norm="backward"),
            Call("c128[1,2]", n=1, axis=0, norm="forward"),
        ],
        [
            Refused(DTypeError, "f64[3]", n=4, axis=0, norm="ortho"),
            Refused(ShapeError, "c128[3]", n=6, axis=0, norm="ortho"),
        ],
        reference=complex_samples.real_by_matrix,
    ),
}
