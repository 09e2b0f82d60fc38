"""Declaration of elementwise primitives; arithmetic, extremes, signs, and copies of values.

In rules `x, y` are inputs, `z` is the result and `d` the tangent of the operand that the rule
differentiates. Formulas are the usual derivatives, expressed by the result where that is stable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.facts.choices import ADDS, CHOICE, JOINS, Choice
from primgraph.ir.facts.matrices import (
    ALWAYS,
    DEFINITE,
    DIAGONAL,
    NOT_NEGATIVE,
    SHAPES,
    STRUCTURE,
    Definition,
    Structure,
    product_structure,
    quotient_structure,
    sum_structure,
)
from primgraph.ir.facts.ranges import (
    ANYTHING,
    DOMAIN,
    FINITE_SLOPE,
    LEAST,
    POLYNOMIAL,
    RANGE,
    RANGE_AT,
    SAME,
    Around,
    Range,
    Sizes,
    absolute,
    add_ranges,
    bound_rule,
    integer_quotient,
    is_finite_unless_nan,
    join_operands,
    larger,
    multiply_ranges,
    negate_range,
    quotient,
    smaller,
    square,
)
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Fact, Linear, Primitive, Rule, primitive
from primgraph.ir.types import DType, TensorType, common_type
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.logic import (
    equal,
    greater,
    is_diagonal_mask,
    require_order,
    select,
    unless_nan,
)
from primgraph.primitives.parts import real
from primgraph.primitives.shapes import broadcast, with_batch_axis

__all__ = [
    "ALGEBRA", "ANY", "FLOATS", "FUNCTION", "INEXACT", "NUMBERS", "ORDERED", "QUOTIENT", "SIGNS",
    "UNIT", "UNSURE", "abs_", "add", "as_another", "as_function_of", "cast", "ceil", "div",
    "elementwise", "floor", "floor_divide", "is_addition", "maximum", "minimum", "mul", "neg",
    "remainder", "round_", "sign", "steady", "stop_gradient", "sub",
]  # fmt: skip

FLOATS = "f"
NUMBERS = "iuf"
ORDERED = "biuf"
ANY = "biufc"
# Dtype kinds of functions that also take complex numbers, with NumPy's branch cuts.
INEXACT = "fc"
ALGEBRA = "iufc"


# Costs per element of the result, in operations as counted by `Primitive.flops`.
QUOTIENT = 4
FUNCTION = 8


@check_arguments
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
    facts: Mapping[Fact[Any], Any] | None = None,
) -> Primitive[Value]:
    """Declare a primitive on `operands` equal types of a dtype kind in `kinds`.

    `jvp` gives a rule for each operand in which the primitive is not linear; `flops`
    is what an element costs, and `facts` are further facts about it.

    >>> from primgraph.extend import elementwise, emit, lift, lookup
    >>> cos = lookup("cos")
    >>> wave = elementwise("wave", np.sin, jvp=lambda y, x, dx: dx * cos(x))
    >>> pg.trace(lambda x: emit(wave, lift(x)), pg.spec(3)).body[0].op.name
    'wave'
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
        facts=facts,
    )
    _declare_rules(op, (jvp,) if callable(jvp) else jvp, transpose)
    return op


def _declare_rules(
    op: Primitive[Value], jvps: Sequence[Rule | None], transpose: Rule | None
) -> None:
    for position, rule in enumerate(jvps):
        if rule is not None:
            op.jvp(position)(rule)
    if transpose is not None:
        op.transpose(transpose)

    @op.batch
    def batch_rule(batched: tuple[bool, ...], *inputs: Value) -> Value:
        return op(*with_batch_axis(batched, inputs))


def _same_type(name: str, operands: int, kinds: str, types: tuple[TensorType, ...]) -> TensorType:
    if len(types) != operands:
        raise ShapeError(f"{name} takes {operands} operands, not {len(types)}")
    first = common_type(name, *types)
    if kinds == ORDERED:
        require_order(name, first)
    if first.dtype.kind not in kinds:
        raise DTypeError(f"{name} does not take {first}")
    return first


# Domains, derivatives and magnitudes, for analyses.


def _remainder_is_tame(eqn: Equation, position: int, x: Range, y: Range) -> bool:
    return position == 0 or (x.finite and y.finite and y.excludes_zero)


def _least_of_operand(least: Sizes) -> float:
    return least(0)


def _least_of_both(least: Sizes) -> float:
    return min(least(0), least(1))


def _least_of_sum(least: Sizes) -> float:
    """Return the least nonzero magnitude of a sum with a number: about the rounding error.

    With a fused multiply-add the product is not rounded, so that the square of the precision
    counts.
    """
    return max(least.number(0), least.number(1)) * least.eps**2 / 4.0


# Linear and bilinear operations.

# Signs with which the result adds up the operands; empty for other ops.
SIGNS: Fact[tuple[int, ...]] = Fact("signs", ())


def is_addition(eqn: Equation) -> bool:
    """Return whether an equation adds or subtracts two arrays."""
    return len(eqn.op.fact(SIGNS)) == 2


def _mul_transpose(ct: Value, x: Value | Linear, y: Value | Linear) -> tuple[Any, Any]:
    """Return the cotangent of the linear factor of `x * y`, which `Linear` marks."""
    if isinstance(x, Linear):
        return ct * y, None  # type: ignore[operator]
    return None, ct * x


add = elementwise(
    "add", np.add, flops=1, operands=2, kinds=ALGEBRA, linear=True, commutative=True,
    transpose=lambda ct, x, y: (ct, ct),
    jvp=(lambda z, x, y, d: d, lambda z, x, y, d: d),
    facts={RANGE: add_ranges, LEAST: _least_of_sum, STRUCTURE: sum_structure},
)  # fmt: skip
add.declare(ADDS, True)
sub = elementwise(
    "sub", np.subtract, flops=1, operands=2, kinds=ALGEBRA, linear=True,
    transpose=lambda ct, x, y: (ct, -ct if isinstance(y, Linear) else None),
    jvp=(lambda z, x, y, d: d, lambda z, x, y, d: -d),
    facts={LEAST: _least_of_sum},
)  # fmt: skip
neg = elementwise(
    "neg", np.negative, flops=1, kinds=ALGEBRA, linear=True, transpose=lambda ct, x: (-ct,),
    facts={RANGE: negate_range, LEAST: _least_of_operand},
)  # fmt: skip
add.declare(SIGNS, (1, 1))
sub.declare(SIGNS, (1, -1))
neg.declare(SIGNS, (-1,))
mul = elementwise(
    "mul", np.multiply, flops=1, operands=2, kinds=ALGEBRA, linear="each", commutative=True,
    transpose=_mul_transpose,
    facts={LEAST: lambda least: least(0) * least(1), STRUCTURE: product_structure},
)  # fmt: skip


@mul.declares(RANGE_AT)
def _mul_range(eqn: Equation, around: Around, x: Range, y: Range) -> Range:
    return square(x) if eqn.inputs[0] is eqn.inputs[1] else multiply_ranges(x, y)


div = elementwise(
    "div", np.true_divide, flops=QUOTIENT, operands=2, kinds=INEXACT, linear=(0,), singular=True,
    transpose=lambda ct, x, y: (ct / y, None),
    jvp=(None, lambda z, x, y, d: -(d * (z / y))),
    facts={
        RANGE: quotient, DOMAIN: lambda x, y: y.excludes_zero, STRUCTURE: quotient_structure,
    },
)  # fmt: skip


@div.taylor
def _div_taylor(jets: Any, k: int, z: Any, x: Any, y: Any) -> Any:
    """Return `z_k` from `z_k y_0 = x_k - sum(z_i y_{k-i})`; the first order by the tangent rule."""
    if k == 1:
        return NotImplemented
    rest = jets.difference(x[k], jets.convolution(mul, z, y, k, k))
    return None if rest is None else jets.quotient(rest, y.first())


# Functions with kinks. At a tie maximum and minimum split the derivative evenly, beside a NaN it is
# NaN; abs'(0) is 0.


def _greater_share(d: Value, z: Value, x: Value, y: Value) -> Value:
    """Return `d` where x is the greater operand, half of it at a tie, and NaN beside a NaN."""
    half, one = (filled_constant(w, x.type) for w in (0.5, 1))
    weight = select(equal(x, y), half, unless_nan(one, z))
    return select(greater(y, x), zeros_like(d), d * weight)


abs_ = elementwise(
    "abs", np.abs, flops=1, kinds=NUMBERS, jvp=lambda z, x, d: d * sign(x),
    facts={
        RANGE: absolute, FINITE_SLOPE: is_finite_unless_nan, LEAST: _least_of_operand,
        ALWAYS: {0: NOT_NEGATIVE},
    },
)  # fmt: skip
# The number of a dtype that leaves the other operand as it is: "least", "largest", or neither.
UNIT: Fact[str] = Fact("unit", "")

maximum = elementwise(
    "maximum", np.maximum, flops=1, operands=2, kinds=ORDERED,
    jvp=(
        lambda z, x, y, d: _greater_share(d, z, x, y),
        lambda z, x, y, d: _greater_share(d, z, y, x),
    ),
    facts={RANGE: larger, FINITE_SLOPE: is_finite_unless_nan, LEAST: _least_of_both},
)  # fmt: skip
minimum = elementwise(
    "minimum", np.minimum, flops=1, operands=2, kinds=ORDERED,
    jvp=(
        lambda z, x, y, d: _greater_share(d, z, y, x),
        lambda z, x, y, d: _greater_share(d, z, x, y),
    ),
    facts={RANGE: smaller, FINITE_SLOPE: is_finite_unless_nan, LEAST: _least_of_both},
)  # fmt: skip
maximum.declare(CHOICE, Choice(lost=lambda record, i, x, z: record(greater, x[1 - i], x[i])))
minimum.declare(CHOICE, Choice(lost=lambda record, i, x, z: record(greater, x[i], x[1 - i])))
for _op in (maximum, minimum):
    _op.declare(JOINS, True)
maximum.declare(UNIT, "least")
minimum.declare(UNIT, "largest")
remainder = elementwise(
    "remainder", np.remainder, flops=QUOTIENT, operands=2, kinds=NUMBERS, singular=True,
    jvp=(lambda z, x, y, d: d, lambda z, x, y, d: -(d * floor_divide(x, y))),
    facts={RANGE: integer_quotient, FINITE_SLOPE: _remainder_is_tame},
)  # fmt: skip

# Functions with derivative zero.

sign: Primitive[Value] = elementwise(
    "sign", np.sign, flops=1, kinds=NUMBERS, constant=True,
    facts={RANGE: bound_rule(-1.0, 1.0)},
)  # fmt: skip
floor = elementwise("floor", np.floor, flops=1, constant=True)
ceil = elementwise("ceil", np.ceil, flops=1, constant=True)
round_ = elementwise("round", np.rint, flops=1, constant=True)
floor_divide: Primitive[Value] = elementwise(
    "floor_divide", np.floor_divide, flops=QUOTIENT, operands=2, kinds=NUMBERS, constant=True,
    singular=True,
    facts={RANGE: integer_quotient},
)  # fmt: skip
stop_gradient = elementwise(
    "stop_gradient", np.array, kinds=ANY, constant=True, stops=True, flops=0
)  # fmt: skip
stop_gradient.view(lambda k, x: None)
stop_gradient.declare(SAME, True)


@primitive(impl=lambda x, y: np.array(x), formal=True, flops=0)
def as_function_of(x: TensorType, y: TensorType) -> TensorType:
    """Return `x`, recorded as depending on `y` with derivative zero.

    The derivative of a linear function is constant, so its graph no longer depends on the variable.
    This primitive records the dependence: the derivative by `y` exists and is zero everywhere.
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
    """Return `z`, equal to `x` and held constant, as a separate value with the derivative of `x`.

    Passes do not merge values with different `number` while derivatives may still be taken.
    """
    if not x.is_inexact:
        raise DTypeError(f"as_another takes floats, not {x}")
    if z != x:
        raise ShapeError(f"as_another of {x} takes values of that type, not {z}")
    return z


# Number of a value that may be infinite or NaN, whatever its operand says.
UNSURE = -2


@as_another.declares(RANGE)
def _as_another_range(z: Range, x: Range, *, number: int) -> Range:
    return ANYTHING if number == UNSURE else z


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
    """Return `z`, held constant because the final result does not depend on it.

    An example is the maximum that logsumexp subtracts first and adds at the end: the derivative by
    it is zero in exact arithmetic, so zero is the true derivative and not a cut.
    """
    if not z.is_inexact:
        raise DTypeError(f"steady takes floats, not {z}")
    return z


steady.flat(0)
steady.declare(RANGE, join_operands)
steady.declare(SAME, True)
steady.declare(POLYNOMIAL, True)


@steady.batch
def _steady_batch(batched: tuple[bool, ...], z: Value) -> Value:
    result: Value = steady(z)
    return result


# Conversion.


@primitive(impl=lambda x, *, dtype: x.astype(dtype), linear=True, elementwise=True, flops=0)
def cast(x: TensorType, *, dtype: DType) -> TensorType:
    """Return the same numbers in another dtype, rounded or truncated as by NumPy's `astype`.

    Complex numbers are cast to complex or boolean dtypes only, so that no imaginary part is
    dropped.
    """
    if x.is_complex and dtype.kind not in "bc":
        raise DTypeError(
            f"{x} does not become {dtype}: a part of each number would be lost",
            hint="pg.real(z), pg.imag(z), pg.abs(z) say which part is meant",
        )
    return x.with_dtype(dtype)


cast.declare(RANGE, join_operands)
cast.declare(SAME, True)


@cast.declares(STRUCTURE)
def _cast_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    """Recognise the identity matrix: a cast of the comparison of row and column indices."""
    if is_diagonal_mask(eqn.inputs[0], definition):
        return DIAGONAL | DEFINITE | Structure.NOT_NEGATIVE
    return Structure.NOT_NEGATIVE if eqn.inputs[0].dtype.kind == "b" else facts[0] & SHAPES


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
