"""Rules of `simplify` for powers, unary functions, and dtype conversions."""

from __future__ import annotations

import math
from typing import Any

from primgraph.ir.graph import Value
from primgraph.ir.types import DType
from primgraph.primitives import elementwise as e
from primgraph.transforms.rewrite.row_conditions import signed, single
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family, Seen
from primgraph.transforms.rewrite.terms import words, x, y

FUNCTIONS = Family(late=True)
_rule = FUNCTIONS.rule
exact, fast = (rows(FUNCTIONS, level) for level in ("exact", "fast"))

absolute, sign, maximum, minimum, power = words(e.abs_, e.sign, e.maximum, e.minimum, e.power)
sqrt, rsqrt, exp, log, sigmoid = words(e.sqrt, e.rsqrt, e.exp, e.log, e.sigmoid)

# The largest power that is expanded into products.
_LARGEST = 32


# Powers.

exact(x**0, 1, why="for NaN too")
exact(x**1, x)
exact(x**2, x * x, why="both round once")


@_rule(e.integer_pow)
def _power_of_integers(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Expand powers of integers by repeated squaring, which is exact as integers wrap round."""
    (x,) = inputs
    fits = not x.type.is_float and 2 < params["n"] <= _LARGEST
    return _power_by_squaring(x, params["n"]) if fits else None


def _power_by_squaring(x: Value, n: int) -> Value:
    """Return `x**n` by at most `2 log2(n)` products (Knuth, TAOCP 2, 4.6.3)."""
    result = None
    while n:
        if n % 2:
            result = x if result is None else result * x
        n //= 2
        x = x * x if n else x
    assert result is not None
    return result


@_rule(e.integer_pow, level="fast")
def _power_by_products(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Expand `x**n` by repeated squaring: each product rounds, where `np.power` rounds once.

    Negative powers of one number share its reciprocal.
    """
    (x,), n = inputs, params["n"]
    if not 2 < abs(n) <= _LARGEST:
        return None
    return _power_by_squaring(x if n > 0 else e.integer_pow(x, n=-1), abs(n))


exact(power(x, 0), 1, why="for NaN too (C17, F.10.4.4)")
fast(power(x, 0.5), sqrt(x), why="they differ at -0 and -inf")
fast(power(x, -0.5), rsqrt(x))


@_rule(e.power, level="fast")
def _whole_power(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Turn a constant integral exponent into `integer_pow`."""
    x, y = inputs
    exponent = seen.scalar(y)
    if exponent is None or not x.type.is_float or not math.isfinite(exponent):
        return None
    if exponent != int(exponent) or abs(exponent) > _LARGEST:
        return None
    return e.integer_pow(x, n=int(exponent))


# Unary functions.

exact(absolute(absolute(x)), absolute(x))
exact(absolute(-x), absolute(x), signed(x), why="numbers without a sign wrap round")
exact(sign(sign(x)), sign(x))

_ROUNDINGS = words(e.floor, e.ceil, e.round_)
for _outer in _ROUNDINGS:
    for _inner in _ROUNDINGS:
        exact(_outer(_inner(x)), _inner(x), why="whole numbers stay as they are")

exact(maximum(x, x), x)
exact(minimum(x, x), x)

# Conversions.


@_rule(e.cast, any_dtype=True)
def _cast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Drop a cast to the same dtype."""
    return inputs[0] if inputs[0].dtype == params["dtype"] else None


@_rule(e.cast, any_dtype=True)
def _cast_of_cast(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Merge two casts if the intermediate dtype represents all numbers of the first one.

    Integer casts also merge if the intermediate dtype is no narrower than the result, as narrowing
    keeps the lowest bits. For casts from float to integer the source dtype must not change the
    result: out-of-range behaviour depends on it.
    """
    inner, middle, target = seen.inside(e.cast, inputs[0]), inputs[0].dtype, params["dtype"]
    if inner is None:
        return None
    lossless = _holds(middle, inner.dtype)
    if target.kind in "iu" and "f" in (inner.dtype.kind, middle.kind):
        lossless = lossless and (inner.dtype == target or _holds(target, inner.dtype))
    whole = all(d.kind in "iu" for d in (inner.dtype, middle, target))
    if not lossless and not (whole and middle.itemsize >= target.itemsize):
        return None
    return e.cast(inner, dtype=target)


_DIGITS = {2: 11, 4: 24, 8: 53}


def _holds(wide: DType, narrow: DType) -> bool:
    """Return whether `wide` represents every number of dtype `narrow`."""
    if narrow.kind == "b" or wide == narrow:
        return True
    if narrow.kind in "iu" and wide.kind == "f":
        return 8 * narrow.itemsize - (narrow.kind == "i") <= _DIGITS[wide.itemsize]
    if narrow.kind == "f":
        return wide.kind == "f" and wide.itemsize > narrow.itemsize
    if wide.kind == narrow.kind:
        return wide.itemsize > narrow.itemsize
    return wide.kind == "i" and wide.itemsize > narrow.itemsize


# Valid in exact arithmetic.

_ODD = words(
    e.sin, e.tan, e.sinh, e.tanh, e.arcsin, e.arctan, e.arcsinh, e.arctanh, e.erf
)  # fmt: skip
_EVEN = words(e.cos, e.cosh)
_INVERSES = (
    (e.log, e.exp), (e.exp, e.log), (e.log1p, e.expm1), (e.expm1, e.log1p),
    (e.arcsinh, e.sinh), (e.sinh, e.arcsinh), (e.arctanh, e.tanh), (e.tanh, e.arctanh),
    (e.tan, e.arctan), (e.sin, e.arcsin), (e.cos, e.arccos),
)  # fmt: skip

for _function in _ODD:
    fast(_function(-x), -_function(x), why="as far as the library keeps to that")
for _function in _EVEN:
    fast(_function(-x), _function(x), why="as far as the library keeps to that")
for _outer, _inner in map(words, *zip(*_INVERSES, strict=True)):
    fast(_outer(_inner(x)), x, why="where that has a value that does not overflow")

fast(sqrt(x * x), absolute(x))
fast(sqrt(x) * sqrt(x), x)
fast(exp(x) * exp(y), exp(x + y), single(exp(x), exp(y)), why="one exponential less")
fast(sigmoid(x) * sigmoid(-x), sigmoid(x) - sigmoid(x) * sigmoid(x), why="one exponential less")
fast(log(exp(x) / y), x - log(y), why="for a softmax it is its logarithm, without underflow")


# Forms that neither overflow nor cancel, but may be slower: NumPy computes `log(1 + exp(x))` faster
# than `logaddexp(x, 0)`. They apply when a graph is raised, not when it is compiled.
STABLE = Family(late=True)
stable = rows(STABLE, "fast")

expm1, log1p, logaddexp = words(e.expm1, e.log1p, e.logaddexp)

stable(1 / (1 + exp(x)), sigmoid(-x))
stable(exp(x) / (1 + exp(x)), sigmoid(x))
stable(1 - sigmoid(x), sigmoid(-x), single(sigmoid(x)), why="nothing cancels")
stable(log1p(exp(x)), logaddexp(x, 0))
stable(log(sigmoid(x)), -logaddexp(-x, 0))
stable(exp(x) - 1, expm1(x), single(exp(x)), why="right for small x too")
stable(log(1 + x), log1p(x), why="right for small x too")
