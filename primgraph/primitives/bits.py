"""Elementwise operations on bits and divisors of integers, and on neighbours of floats.

All of them have derivative zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import DTypeError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import primitive
from primgraph.ir.types import DType, TensorType
from primgraph.primitives.elementwise import QUOTIENT, elementwise

INTEGERS = "iu"

bitwise_and = elementwise(
    "bitwise_and", np.bitwise_and, operands=2, kinds=INTEGERS, commutative=True, constant=True,
    flops=1,
)  # fmt: skip
bitwise_or = elementwise(
    "bitwise_or", np.bitwise_or, operands=2, kinds=INTEGERS, commutative=True, constant=True,
    flops=1,
)  # fmt: skip
bitwise_xor = elementwise(
    "bitwise_xor", np.bitwise_xor, operands=2, kinds=INTEGERS, commutative=True, constant=True,
    flops=1,
)  # fmt: skip
bitwise_not = elementwise("bitwise_not", np.invert, kinds=INTEGERS, constant=True, flops=1)
# As in NumPy, a shift by at least the width or by a negative count leaves only the sign.
left_shift = elementwise(
    "left_shift", np.left_shift, operands=2, kinds=INTEGERS, constant=True, flops=1
)  # fmt: skip
right_shift = elementwise(
    "right_shift", np.right_shift, operands=2, kinds=INTEGERS, constant=True, flops=1
)  # fmt: skip
gcd = elementwise(
    "gcd", np.gcd, operands=2, kinds=INTEGERS, commutative=True, constant=True, flops=QUOTIENT
)
nextafter = elementwise("nextafter", np.nextafter, operands=2, constant=True, flops=QUOTIENT)


def _reinterpret(x: Any, *, dtype: DType) -> Any:
    return np.array(np.asarray(x).view(dtype))


@primitive(impl=_reinterpret, elementwise=True, constant=True, singular=True, flops=0)
def bitcast(x: TensorType, *, dtype: DType) -> TensorType:
    """Return the numbers of `dtype` with the same bits, as NumPy's `view` does.

    Both dtypes are real and have the same width.
    """
    if x.dtype.itemsize != dtype.itemsize or not {x.dtype.kind, dtype.kind} <= set("iuf"):
        raise DTypeError(
            f"bitcast does not read {x} as {dtype}: it takes integers and floats of one width"
        )
    return x.with_dtype(dtype)


@bitcast.batch
def _bitcast_batch(batched: tuple[bool, ...], x: Value, *, dtype: DType) -> Value:
    return bitcast(x, dtype=dtype)
