"""Conditions of rows: on dtypes, on numbers, and on who else reads a value.

Numbers are of the dtype of the result.
"""

from __future__ import annotations

import math

import numpy as np

from primgraph.ir.graph import Value
from primgraph.transforms.rewrite.rule import Seen, is_power_of_two
from primgraph.transforms.rewrite.terms import condition


@condition
def floats(seen: Seen, x: Value) -> bool:
    """The elements of `x` are floats."""
    return x.type.is_inexact


@condition
def integers(seen: Seen, x: Value) -> bool:
    """The elements of `x` are integers, which wrap round, or truth values."""
    return not x.type.is_inexact


@condition
def signed(seen: Seen, x: Value) -> bool:
    """The elements of `x` may be negative."""
    return x.dtype.kind != "u"


@condition
def single(seen: Seen, *values: Value) -> bool:
    """Nothing else reads any of these values, as far as is known."""
    return all(seen.single(v) for v in values)


@condition
def one_single(seen: Seen, *values: Value) -> bool:
    """Nothing else reads one of these values, as far as is known."""
    return any(seen.single(v) for v in values)


@condition
def power_of_two(seen: Seen, number: float) -> bool:
    """`number` is plus or minus a power of two: products with it are not rounded."""
    return is_power_of_two(number)


@condition
def doubling(seen: Seen, number: float) -> bool:
    """`number` is such a power of absolute value 1 or more: products do not underflow either."""
    return is_power_of_two(number) and abs(number) >= 1


@condition
def at_least_one(seen: Seen, number: float) -> bool:
    """The absolute value of `number` is 1 or more."""
    return abs(number) >= 1


@condition
def ordinary(seen: Seen, number: float) -> bool:
    """`number` is neither zero, infinite nor NaN, nor has it lost digits by being so small."""
    least = float(np.finfo(seen.type.dtype).smallest_normal)
    return math.isfinite(number) and abs(number) >= least
