"""Samples of the primitives of `primgraph.primitives.bits`."""

from samples.rows import INTS, NATURAL, Row, elementwise

ROWS: dict[str, Row] = {
    "bitwise_and": elementwise(2, dtypes=INTS),
    "bitwise_or": elementwise(2, dtypes=INTS),
    "bitwise_xor": elementwise(2, dtypes=INTS),
    "bitwise_not": elementwise(dtypes=INTS),
    "left_shift": elementwise(2, NATURAL, INTS),
    "right_shift": elementwise(2, NATURAL, INTS),
    "gcd": elementwise(2, NATURAL, INTS),
    "nextafter": elementwise(2),
}
