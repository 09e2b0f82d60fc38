"""Elementwise arithmetic and functions: one row a primitive.

In rules `x, y` are inputs, `z` the result and `d` the tangent of the operand that the rule is
for. Formulas are those of any table of derivatives, written from the result where that is
stable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.frontend.signature import checked
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Linear, Primitive, Rule, primitive
from primgraph.ir.types import DType, TensorType, common_type
from primgraph.primitives.constants import filled, zeros_like
from primgraph.primitives.logic import equal, greater, less, require_order, select, unless_nan
from primgraph.primitives.parts import real
from primgraph.primitives.shapes import broadcast, with_batch_axis

FLOATS = "f"
NUMBERS = "iuf"
ORDERED = "biuf"
ANY = "biufc"
# Those that take complex numbers too, with NumPy's branch cuts.
INEXACT = "fc"
ALGEBRA = "iufc"

# What an element of the result costs, in operations as `Primitive.flops` counts them.
QUOTIENT = 4
FUNCTION = 8


@checked
def elementwise(
    name: str,
    impl: Rule,
    *,
    operands: int = 1,
    kinds: str = FLOATS,
    jvp: Rule | Sequence[Rule | None] = (),
    transpose: Rule | None = None,
    linear: bool | tuple[int, ...] | str | None = None,
    commutative: bool = False,
    singular: bool = False,
    constant: bool = False,
    stops: bool = False,
    flops: int = FUNCTION,
) -> Primitive[Value]:
    """Declare a primitive on `operands` equal types of a dtype kind in `kinds`.

    `jvp` gives a rule for each operand in which the primitive is not linear; `flops`
    is what an element costs.
    """

    def type_rule(*types: TensorType) -> TensorType:
        return _same_type(name, operands, kinds, types)

    op: Primitive[Value] = Primitive(
        name,
        type_rule,
        impl,
        linear=linear,
        commutative=commutative,
        elementwise=True,
        singular=singular,
        constant=constant,
        stops=stops,
        flops=flops,
    )
    for position, rule in enumerate((jvp,) if callable(jvp) else jvp):
        if rule is not None:
            op.jvp(position)(rule)
    if transpose is not None:
        op.transpose(transpose)

    @op.batch
    def batch_rule(batched: tuple[bool, ...], *inputs: Value) -> Value:
        return op(*with_batch_axis(batched, inputs))

    return op


def _same_type(name: str, operands: int, kinds: str, types: tuple[TensorType, ...]) -> TensorType:
    if len(types) != operands:
        raise ShapeError(f"{name} takes {operands} operands, not {len(types)}")
    first = common_type(name, *types)
    if kinds == ORDERED:
        require_order(name, first)
    if first.dtype.kind not in kinds:
        raise DTypeError(f"{name} does not take {first}")
    return first


# Linear and bilinear.


def _mul_transpose(ct: Value, x: Value | Linear, y: Value | Linear) -> tuple[Any, Any]:
    """`x * y` is linear in one factor at a time; `Linear` marks which."""
    if isinstance(x, Linear):
        return ct * y, None  # type: ignore[operator]
    return None, ct * x


add = elementwise(
    "add", np.add, flops=1, operands=2, kinds=ALGEBRA, linear=True, commutative=True,
    transpose=lambda ct, x, y: (ct, ct),
    jvp=(lambda z, x, y, d: d, lambda z, x, y, d: d),
)  # fmt: skip
sub = elementwise(
    "sub", np.subtract, flops=1, operands=2, kinds=ALGEBRA, linear=True,
    transpose=lambda ct, x, y: (ct, -ct if isinstance(y, Linear) else None),
    jvp=(lambda z, x, y, d: d, lambda z, x, y, d: -d),
)  # fmt: skip
neg = elementwise(
    "neg", np.negative, flops=1, kinds=ALGEBRA, linear=True, transpose=lambda ct, x: (-ct,)
)  # fmt: skip
mul = elementwise(
    "mul", np.multiply, flops=1, operands=2, kinds=ALGEBRA, linear="each", commutative=True,
    transpose=_mul_transpose,
)  # fmt: skip
div = elementwise(
    "div", np.true_divide, flops=QUOTIENT, operands=2, kinds=INEXACT, linear=(0,), singular=True,
    transpose=lambda ct, x, y: (ct / y, None),
    jvp=(None, lambda z, x, y, d: -(d * (z / y))),
)  # fmt: skip


@div.taylor
def _div_taylor(jets: Any, k: int, z: Any, x: Any, y: Any) -> Any:
    """`z_k y_0 = x_k - sum(z_i y_{k-i})`; the first by the rules for tangents."""
    if k == 1:
        return NotImplemented
    rest = jets.difference(x[k], jets.convolution(mul, z, y, k, k))
    return None if rest is None else jets.quotient(rest, y.first())


# Powers and roots.


# Up to these orders a Taylor coefficient of a power is made of powers of all bases, zero included:
# where the exponent moves, and where it does not. It takes of the order of k**3 products for all
# up to number k, with a small factor: to order 8 these are no more than by the logarithm.
_EXACT, _EXACT_OF_BASES = 3, 8


def _power_jvp_base(z: Value, x: Value, y: Value, d: Value) -> Value:
    """`y * x**(y-1)`; where x and y are 0 the second factor is kept finite.

    The first factor stays as it is, so that derivatives by y see it. An x without a finite
    reciprocal counts as 0.
    """
    if x.type.is_complex:
        zero = equal(y, zeros_like(y))
        return d * (y * power(x, select(zero, filled(1, y.type), y - 1.0)))
    smallest = filled(np.finfo(x.dtype).tiny, x.type)
    exponent = y - 1.0
    finite = select(less(abs_(x), smallest), filled(1, y.type), exponent)
    return d * (y * power(x, select(equal(y, zeros_like(y)), finite, exponent)))


def _power_jvp_exponent(z: Value, x: Value, y: Value, d: Value) -> Value:
    """`z * log(x)`; at x = 0 the logarithm is taken as 0."""
    safe = select(equal(x, zeros_like(x)), filled(1, x.type), x)
    return d * (z * log(safe))


def _power(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> Any:
    """`x**y` as NumPy has it for two arrays of elements.

    For a single exponent of 0.5 NumPy takes square roots, which differ at -inf and -0.0.
    """
    if x.ndim or x.dtype.kind != "f":
        return np.power(x, y)
    return np.power(x.reshape(1), y.reshape(1)).reshape(())


power = elementwise(
    "power", _power, operands=2, singular=True, kinds=ALGEBRA,
    jvp=(_power_jvp_base, _power_jvp_exponent),
)  # fmt: skip


@power.taylor
def _power_taylor(jets: Any, k: int, z: Any, x: Any, y: Any) -> Any:
    """`z' = z w'` with `w = y log(x)`, but for low orders, a fixed x, and a fixed y of a line x.

    By the slope each coefficient of z takes further powers of x, which are right at zero, too; of
    a fixed x there is one power only.
    """
    exact = _EXACT_OF_BASES if y.fixed else _EXACT
    if k <= exact or x.fixed or (y.fixed and jets.is_line(x, k)):
        return NotImplemented
    if y.fixed:
        rate = jets.apply(mul, y, jets.apply(div, jets.rate(x), x))
    else:
        rate = jets.rate(jets.apply(mul, y, jets.apply(log, x)))
    return jets.integral(jets.apply(mul, z, rate), k)


sqrt = elementwise(
    "sqrt", np.sqrt, flops=QUOTIENT, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * (0.5 / z),
)  # fmt: skip


@sqrt.taylor
def _sqrt_taylor(jets: Any, k: int, z: Any, x: Any) -> Any:
    """`2 z_0 z_k = x_k - sum(z_i z_{k-i})`, without the terms that have z_k."""
    rest = jets.difference(x[k], jets.square(mul, z, k, 1))
    return None if rest is None else jets.quotient(rest, z[0] * 2.0)


rsqrt = elementwise(
    "rsqrt", lambda x: (1 / np.sqrt(x)).astype(x.dtype), kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * (-0.5 * (z / x)),
)  # fmt: skip


def _integer_pow_type(x: TensorType, *, n: int) -> TensorType:
    if x.dtype.kind not in ALGEBRA:
        raise DTypeError(f"integer_pow does not take {x}")
    if n < 0 and not x.is_inexact:
        raise DTypeError(f"integers have no negative integer powers: {x} to the power {n}")
    return x


def _integer_pow_flops(x: TensorType, *, n: int) -> int:
    """The products of repeated squaring, and a division for a negative power."""
    m = abs(n)
    products = m.bit_length() + m.bit_count() - 2 if m else 0
    return x.size * (products + QUOTIENT * (n < 0))


integer_pow: Primitive[Value] = Primitive(
    "integer_pow",
    _integer_pow_type,
    lambda x, *, n: x**n,
    elementwise=True,
    singular=True,
    flops=_integer_pow_flops,
)


@integer_pow.jvp()
def _integer_pow_jvp(z: Value, x: Value, d: Value, *, n: int) -> Value | None:
    """`n * x**(n-1)`; the powers 0 and 1 are constant and linear everywhere."""
    if n == 0:
        return None
    if n == 1:
        return d
    slope = x if n == 2 else integer_pow(x, n=n - 1)
    return d * (float(n) * slope)


@integer_pow.taylor
def _integer_pow_taylor(jets: Any, k: int, z: Any, x: Any, *, n: int) -> Value | None:
    """A product of powers half as high, of the reciprocal for a negative one."""
    if n in (0, 1):
        return x[k] if n else None
    if n == -1:
        rest = jets.convolution(mul, z, x, k, k)
        return None if rest is None else -rest / x.first()
    base = x if n > 0 else jets.apply(integer_pow, x, n=-1)
    half = base if abs(n) < 4 else jets.apply(integer_pow, base, n=abs(n) // 2)
    product = jets.apply(mul, half, half)
    found: Value | None = (jets.apply(mul, product, base) if n % 2 else product)[k]
    return found


@integer_pow.batch
def _integer_pow_batch(batched: tuple[bool, ...], x: Value, *, n: int) -> Value:
    return integer_pow(x, n=n)


# Exponentials and logarithms.

exp = elementwise("exp", np.exp, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * z)
expm1 = elementwise(
    "expm1", np.expm1, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * exp(x)
)  # fmt: skip
log = elementwise("log", np.log, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d / x)
log1p = elementwise(
    "log1p", np.log1p, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d / (1.0 + x)
)  # fmt: skip
sigmoid: Primitive[Value] = elementwise(
    "sigmoid", lambda x: _sigmoid(x), jvp=lambda z, x, d: d * (z * sigmoid(-x))
)  # fmt: skip
logaddexp = elementwise(
    "logaddexp", np.logaddexp, operands=2, commutative=True, singular=True,
    jvp=(lambda z, x, y, d: d * sigmoid(x - y), lambda z, x, y, d: d * sigmoid(y - x)),
)  # fmt: skip

# Circular and hyperbolic functions and their inverses; angles are in radians.


def _slope_of_arcsin(x: Value) -> Value:
    """`1 / sqrt(1 - x*x)`; for complex numbers by two roots, whose cuts are those of arcsin."""
    if x.type.is_complex:
        return rsqrt(1.0 - x) * rsqrt(1.0 + x)
    return rsqrt((1.0 - x) * (1.0 + x))


sin = elementwise("sin", np.sin, kinds=INEXACT, jvp=lambda z, x, d: d * cos(x))
cos: Primitive[Value] = elementwise(
    "cos", np.cos, kinds=INEXACT, jvp=lambda z, x, d: -(d * sin(x))
)  # fmt: skip
tan = elementwise(
    "tan", np.tan, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * (1.0 + z * z)
)  # fmt: skip
sinh = elementwise(
    "sinh", np.sinh, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * cosh(x)
)  # fmt: skip
cosh: Primitive[Value] = elementwise(
    "cosh", np.cosh, kinds=INEXACT, singular=True, jvp=lambda z, x, d: d * sinh(x)
)  # fmt: skip
tanh = elementwise("tanh", np.tanh, kinds=INEXACT, jvp=lambda z, x, d: d * (1.0 - z * z))
arcsin = elementwise(
    "arcsin", np.arcsin, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * _slope_of_arcsin(x),
)  # fmt: skip
arccos = elementwise(
    "arccos", np.arccos, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: -(d * _slope_of_arcsin(x)),
)  # fmt: skip
arctan = elementwise("arctan", np.arctan, kinds=INEXACT, jvp=lambda z, x, d: d / (1.0 + x * x))


def _arcsinh_jvp(z: Value, x: Value, d: Value) -> Value:
    """`1 / sqrt(1 + x*x)`, without overflow of the square; the scale may be held constant.

    Of complex numbers the root is that of two factors, whose cuts are those of the function.
    """
    if x.type.is_complex:
        turned = x * 1j
        return d * (rsqrt(1.0 + turned) * rsqrt(1.0 - turned))
    scale = stop_gradient(maximum(abs_(x), filled(1, x.type)))
    one, x = 1.0 / scale, x / scale
    return d * (one * rsqrt(one * one + x * x))


arcsinh = elementwise("arcsinh", np.arcsinh, kinds=INEXACT, jvp=_arcsinh_jvp)
arccosh = elementwise(
    "arccosh", np.arccosh, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d * (rsqrt(x - 1.0) * rsqrt(x + 1.0)),
)  # fmt: skip
arctanh = elementwise(
    "arctanh", np.arctanh, kinds=INEXACT, singular=True,
    jvp=lambda z, x, d: d / ((1.0 - x) * (1.0 + x)),
)  # fmt: skip


def _over_square(part: Value, x: Value, y: Value) -> Value:
    """`part / (x*x + y*y)`, without overflow or underflow of the squares.

    The quotient does not depend on the scale, which may thus be held constant.
    """
    largest = filled(np.finfo(x.dtype).max, x.type)
    scale = stop_gradient(minimum(maximum(abs_(x), abs_(y)), largest))
    x, y = x / scale, y / scale
    return part / scale / (x * x + y * y) / scale


arctan2 = elementwise(
    "arctan2", np.arctan2, operands=2, singular=True,
    jvp=(
        lambda z, x, y, d: d * _over_square(y, x, y),
        lambda z, x, y, d: -(d * _over_square(x, x, y)),
    ),
)  # fmt: skip

# The error function, through the C library's own, element by element: slow, and the oracle for
# what generated code uses. DLMF 7.2.1 and 7.2.2; erf' = 2/sqrt(pi) exp(-x^2).

_SLOPE = 2 / math.sqrt(math.pi)

# Beyond this `exp(-x*x)` is 0 in every dtype, and so are all its derivatives.
_FLAT = 40.0


def _bell(x: Value) -> Value:
    """`exp(-x*x)`; where that is 0 no power of x comes beside it."""
    edge = filled(_FLAT, x.type)
    near = select(greater(abs_(x), edge), edge, x)
    return exp(-(near * near))


erf = elementwise(
    "erf", lambda x: _per_element(math.erf, x), jvp=lambda z, x, d: d * (_SLOPE * _bell(x))
)  # fmt: skip
erfc = elementwise(
    "erfc", lambda x: _per_element(math.erfc, x), jvp=lambda z, x, d: d * (-_SLOPE * _bell(x))
)  # fmt: skip

# With kinks. At a tie of maximum or minimum the slope is split evenly, beside a NaN it is NaN;
# abs' (0) is 0.


def _greater_share(d: Value, z: Value, x: Value, y: Value) -> Value:
    """`d` where x is the greater, half of it at a tie, NaN beside a NaN."""
    half, one = (filled(w, x.type) for w in (0.5, 1))
    weight = select(equal(x, y), half, unless_nan(one, z))
    return select(greater(y, x), zeros_like(d), d * weight)


abs_ = elementwise("abs", np.abs, flops=1, kinds=NUMBERS, jvp=lambda z, x, d: d * sign(x))
maximum = elementwise(
    "maximum", np.maximum, flops=1, operands=2, kinds=ORDERED,
    jvp=(
        lambda z, x, y, d: _greater_share(d, z, x, y),
        lambda z, x, y, d: _greater_share(d, z, y, x),
    ),
)  # fmt: skip
minimum = elementwise(
    "minimum", np.minimum, flops=1, operands=2, kinds=ORDERED,
    jvp=(
        lambda z, x, y, d: _greater_share(d, z, y, x),
        lambda z, x, y, d: _greater_share(d, z, x, y),
    ),
)  # fmt: skip
remainder = elementwise(
    "remainder", np.remainder, flops=QUOTIENT, operands=2, kinds=NUMBERS, singular=True,
    jvp=(lambda z, x, y, d: d, lambda z, x, y, d: -(d * floor_divide(x, y))),
)  # fmt: skip

# With derivative zero.

sign: Primitive[Value] = elementwise("sign", np.sign, flops=1, kinds=NUMBERS, constant=True)
floor = elementwise("floor", np.floor, flops=1, constant=True)
ceil = elementwise("ceil", np.ceil, flops=1, constant=True)
round_ = elementwise("round", np.rint, flops=1, constant=True)
floor_divide: Primitive[Value] = elementwise(
    "floor_divide", np.floor_divide, flops=QUOTIENT, operands=2, kinds=NUMBERS, constant=True,
    singular=True,
)  # fmt: skip
stop_gradient = elementwise(
    "stop_gradient", np.array, kinds=ANY, constant=True, stops=True, flops=0
)  # fmt: skip
stop_gradient.view(lambda k, x: None)


@primitive(impl=lambda x, y: np.array(x), formal=True, flops=0)
def as_function_of(x: TensorType, y: TensorType) -> TensorType:
    """`x`, counted as a function of all that `y` depends on, too.

    The derivative of a linear function is constant, and does not show any more what it is a
    function of. Recorded like this it does: its own derivative along `y` is zero everywhere,
    which is something else than not to depend on it.
    """
    if not x.is_inexact:
        raise DTypeError(f"as_function_of takes a float, not {x}")
    return x


@as_function_of.jvp(0)
def _as_function_of_jvp(z: Value, x: Value, y: Value, d: Value) -> Value:
    return d


as_function_of.flat(1)
as_function_of.opaque("it counts as a function of all that the second operand depends on")


@as_function_of.batch
def _as_function_of_batch(batched: tuple[bool, ...], x: Value, y: Value) -> Value:
    if not batched[0]:
        x = broadcast(x, shape=(y.shape[0], *x.shape), new_axes=(0,))
    return as_function_of(x, y)


@primitive(
    impl=lambda z, x, *, number: np.array(z), formal=True, own_slope=True, elementwise=True, flops=0
)
def as_another(z: TensorType, x: TensorType, *, number: int) -> TensorType:
    """`z`, which is `x` held constant, as a value of its own with the derivative of `x`.

    Passes keep values of different numbers apart as long as derivatives may be taken.
    """
    if not x.is_inexact:
        raise DTypeError(f"as_another takes floats, not {x}")
    if z != x:
        raise ShapeError(f"as_another of {x} takes values of that type, not {z}")
    return z


as_another.flat(0)


@as_another.jvp(1)
def _as_another_jvp(y: Value, z: Value, x: Value, d: Value, *, number: int) -> Value:
    return d


@as_another.batch
def _as_another_batch(batched: tuple[bool, ...], z: Value, x: Value, *, number: int) -> Value:
    result: Value = as_another(*with_batch_axis(batched, (z, x)), number=number)
    return result


@primitive(impl=lambda z: np.array(z), formal=True, own_slope=True, elementwise=True, flops=0)
def steady(z: TensorType) -> TensorType:
    """`z`, which is held constant, and which what is computed in the end does not depend on.

    So its derivatives are true ones: those of a logarithm of sums of exponentials by what was
    subtracted before, and added afterwards, are zero.
    """
    if not z.is_inexact:
        raise DTypeError(f"steady takes floats, not {z}")
    return z


steady.flat(0)


@steady.batch
def _steady_batch(batched: tuple[bool, ...], z: Value) -> Value:
    result: Value = steady(z)
    return result


# Conversion.


@primitive(impl=lambda x, *, dtype: x.astype(dtype), linear=True, elementwise=True, flops=0)
def cast(x: TensorType, *, dtype: DType) -> TensorType:
    """The same numbers in another dtype, rounded or truncated as NumPy's `astype` does.

    No part of a complex number is dropped: those become complex numbers or truth values only.
    """
    if x.is_complex and dtype.kind not in "bc":
        raise DTypeError(
            f"{x} does not become {dtype}: a part of each number would be lost",
            hint="pg.real(z), pg.imag(z), pg.abs(z) say which part is meant",
        )
    return x.with_dtype(dtype)


@cast.transpose
def _cast_transpose(ct: Value, x: Linear, *, dtype: DType) -> tuple[Value]:
    if ct.type.is_complex and not x.type.is_complex:
        ct = real(ct)
    return (cast(ct, dtype=x.dtype),)


@real.transpose
def _real_transpose(ct: Value, z: Linear) -> tuple[Value]:
    return (cast(ct, dtype=z.dtype),)


@cast.batch
def _cast_batch(batched: tuple[bool, ...], x: Value, *, dtype: DType) -> Value:
    return cast(x, dtype=dtype)


def _sigmoid(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """1 / (1 + exp(-x)), without overflow on either side."""
    small = np.exp(-np.abs(x))
    result: np.ndarray[Any, Any] = np.where(x < 0, small, np.ones_like(small)) / (1 + small)
    return result


def _per_element(function: Rule, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    flat = [function(float(v)) for v in np.asarray(x).reshape(-1)]
    return np.array(flat, x.dtype).reshape(np.shape(x))
