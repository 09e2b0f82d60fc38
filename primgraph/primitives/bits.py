"""Elementwise operations on bits and divisors of integers, and on neighbours of floats.

All of them have derivative zero.
"""

from __future__ import annotations

import numpy as np

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
