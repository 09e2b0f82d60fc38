"""Conditions of row rules: dtypes, numbers, and single use of values.

Numbers have the dtype of the result.
"""

from __future__ import annotations

import math

import numpy as np

from primgraph.ir.graph import Value
from primgraph.transforms.rewrite.rule import Seen, is_power_of_two
from primgraph.transforms.rewrite.terms import condition


@condition
def floats(seen: Seen, x: Value) -> bool:
    """Return whether the elements of `x` are inexact."""
    return x.type.is_inexact


@condition
def integers(seen: Seen, x: Value) -> bool:
    """Return whether the elements of `x` are integers, which wrap round, or booleans."""
    return not x.type.is_inexact


@condition
def signed(seen: Seen, x: Value) -> bool:
    """Return whether the dtype of `x` has negative numbers."""
    return x.dtype.kind != "u"


@condition
def single(seen: Seen, *values: Value) -> bool:
    """Return whether each value has a single use, as far as is known."""
    return all(seen.single(v) for v in values)


@condition
def one_single(seen: Seen, *values: Value) -> bool:
    """Return whether one of the values has a single use, as far as is known."""
    return any(seen.single(v) for v in values)


@condition
def power_of_two(seen: Seen, number: float) -> bool:
    """Return whether `number` is plus or minus a power of two: products with it are exact."""
    return is_power_of_two(number)


@condition
def doubling(seen: Seen, number: float) -> bool:
    """Return whether `number` is such a power of magnitude >= 1: products do not underflow."""
    return is_power_of_two(number) and abs(number) >= 1


@condition
def at_least_one(seen: Seen, number: float) -> bool:
    """Return whether the magnitude of `number` is at least 1."""
    return abs(number) >= 1


@condition
def ordinary(seen: Seen, number: float) -> bool:
    """Return whether `number` is finite and normal: not zero, NaN, infinite or subnormal."""
    least = float(np.finfo(seen.type.dtype).smallest_normal)
    return math.isfinite(number) and abs(number) >= least
