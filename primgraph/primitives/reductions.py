"""Reductions and scans along axes. Sums and products of float16 accumulate in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.assumptions import assume_at_least
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim, bounds
from primgraph.ir.facts.choices import CHOICE, LOGIC, MOVES_BACK, MOVES_FORTH, Choice, Logic
from primgraph.ir.facts.matrices import STRUCTURE, Structure
from primgraph.ir.facts.ranges import (
    DOMAIN,
    FINITE_SLOPE,
    NOT_NEGATIVE,
    RANGE,
    RANGE_AT,
    Around,
    Range,
    add_ranges,
    is_finite_unless_nan,
    join_operands,
    negate_range,
    products,
    times,
)
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import IndexMap, identity, mixed_along, reduction_map, running_map
from primgraph.ir.primitive import Fact, Linear, Primitive, Rule, Types, primitive
from primgraph.ir.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    INT64,
    DType,
    TensorType,
    check_axis,
    drop_axes,
    larger,
)
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.control import scan
from primgraph.primitives.elementwise import (
    QUOTIENT,
    cast,
    is_finite_test,
    steady,
    stop_gradient,
    sub,
)
from primgraph.primitives.logic import equal, greater, less, require_order, select, unless_nan
from primgraph.primitives.shapes import broadcast, concat, permute, reshape, slice_, with_batch_axis

Axes = tuple[int, ...]


def accumulator(dtype: DType) -> DType:
    """Return the dtype in which sums and products of `dtype` are accumulated."""
    return FLOAT32 if dtype == FLOAT16 else dtype


def _accumulate(function: Rule) -> Rule:
    def impl(x: Any, *, axes: Axes) -> Any:
        return np.asarray(function(x, axis=axes, dtype=accumulator(x.dtype))).astype(x.dtype)

    return impl


def _reduced_type(name: str, x: TensorType, axes: Axes) -> TensorType:
    if list(axes) != sorted(set(axes)) or not all(0 <= a < x.ndim for a in axes):
        raise ShapeError(f"{name} over axes {axes} does not fit {x}")
    return x.with_shape(drop_axes(x.shape, axes))


def _numeric(name: str, x: TensorType) -> None:
    if x.dtype == BOOL:
        raise DTypeError(f"{name} does not take {x}", hint="cast it to an integer dtype first")


def _combinations(x: TensorType, *, axes: Axes) -> int:
    """Return the operation count: one per element along `axes` except the first."""
    return larger(x.size - x.with_shape(drop_axes(x.shape, axes)).size, 0)


@primitive(impl=_accumulate(np.sum), linear=True, flops=_combinations)
def reduce_sum(x: TensorType, *, axes: Axes) -> TensorType:
    """Return the sum over `axes`, which are removed from the shape."""
    _numeric("reduce_sum", x)
    return _reduced_type("reduce_sum", x, axes)


@reduce_sum.declares(RANGE_AT)
def _reduce_sum_range(eqn: Equation, around: Around, x: Range) -> Range:
    """Return the range of a sum; a sum of nonnegative numbers is at least their maximum."""
    nan = x.nan or (x.below and x.above)
    axes = eqn.kwargs["axes"]
    few, many = bounds(math.prod(eqn.inputs[0].shape[a] for a in axes))
    low = min(times(few, x.low), times(many, x.low))
    high = max(times(few, x.high), times(many, x.high))
    if x.peak == axes and x.low >= 0:
        low = max(low, x.high)
    return Range(low, high, x.below, x.above, nan)


reduce_sum.declare(STRUCTURE, lambda eqn, definition, x: x & Structure.NOT_NEGATIVE)
# Whether the result combines the elements along the parameter `axes`, which it lacks.
REDUCES: Fact[bool] = Fact("reduces", False)
# Whether it is their sum.
SUMS: Fact[bool] = Fact("sums", False)
reduce_sum.declare(SUMS, True)


@reduce_sum.transpose
def _reduce_sum_transpose(ct: Value, x: Linear, *, axes: Axes) -> tuple[Value]:
    return (broadcast(ct, shape=x.shape, new_axes=axes),)


@broadcast.transpose
def _broadcast_transpose(ct: Value, x: Linear, *, shape: Any, new_axes: Axes) -> tuple[Value]:
    """Return the sum over the repeated axes, the transpose of the broadcast."""
    return (reduce_sum(ct, axes=new_axes),)


@primitive(
    impl=_accumulate(np.prod),
    singular=True,
    flops=_combinations,
    facts={RANGE: products, DOMAIN: lambda x, *, axes: True},
)
def reduce_prod(x: TensorType, *, axes: Axes) -> TensorType:
    """Return the product over `axes`, which are removed from the shape."""
    _numeric("reduce_prod", x)
    return _reduced_type("reduce_prod", x, axes)


@reduce_prod.jvp()
def _reduce_prod_jvp(z: Value, x: Value, d: Value, *, axes: Axes) -> Value | None:
    """Return the tangent by the product rule on a balanced tree, right at zeros and to every order.

    A symbolic number of factors is multiplied sequentially.
    """
    kept = tuple(i for i in range(len(x.shape)) if i not in axes)
    count = math.prod(x.shape[a] for a in axes)
    if type(count) is Dim:
        rows = [reshape(permute(v, axes=(*axes, *kept)), shape=(count, *z.shape)) for v in (x, d)]
        return _slope_of_product(*rows)
    if count == 0:
        return None
    primal, tangent = (
        reshape(permute(v, axes=(*kept, *axes)), shape=(*z.shape, count)) for v in (x, d)
    )
    while count > 1:
        half = count // 2
        left, right, rest = (_last(primal, i, n) for i, n in _halves(count))
        dleft, dright, drest = (_last(tangent, i, n) for i, n in _halves(count))
        primal, tangent = left * right, dleft * right + left * dright
        if count % 2:
            axis = len(z.shape)
            primal = concat(primal, rest, axis=axis)
            tangent = concat(tangent, drest, axis=axis)
        count = half + count % 2
    return reshape(tangent, shape=z.shape)


def _slope_of_product(x: Value, d: Value) -> Value:
    """Return the tangent of the product over the first axis."""
    row = x.type.with_shape(x.shape[1:])
    with Builder("product_rule") as builder:
        product, slope, factor, tangent = (builder.input(row) for _ in range(4))
        body = builder.graph([product * factor, slope * factor + product * tangent])
    begun = (filled_constant(1, row), filled_constant(0, row))
    _, found = scan(
        *begun, x, d, body=body, consts=0, carries=2, length=x.shape[0], reverse=False,
        counted=False,
    )  # fmt: skip
    return found


def _halves(count: int) -> tuple[tuple[int, int], ...]:
    """Return start and size of the two equal halves and of the remainder."""
    half = count // 2
    return (0, half), (half, half), (2 * half, count % 2)


def _last(x: Value, start: int, size: int) -> Value:
    """Return `size` entries of the last axis, from `start` on."""
    lead = x.shape[:-1]
    return slice_(
        x,
        starts=(*(0 for _ in lead), start if size else 0),
        sizes=(*lead, size),
        steps=(1,) * len(x.shape),
    )


def _extremum(name: str, impl: Rule, beaten: Primitive[Value]) -> Primitive[Value]:
    """Declare a maximum or minimum over axes, whose derivative is split evenly among ties.

    `beaten` compares an element with the extremum. Where the extremum is NaN, all derivatives are
    NaN.
    """

    def type_rule(x: TensorType, *, axes: Axes) -> TensorType:
        result = _reduced_type(name, x, axes)
        require_order(name, x)
        # NumPy refuses an empty axis even if the result has no elements.
        if not all(assume_at_least(x.shape[a], 1) for a in axes):
            raise ShapeError(f"{name} over axes {axes} of {x}: no elements, and no identity")
        return result

    facts: dict[Fact[Any], Any] = {RANGE: join_operands, FINITE_SLOPE: is_finite_unless_nan}
    op: Primitive[Value] = Primitive(name, type_rule, impl, flops=_combinations, facts=facts)

    def lost_rule(record: Rule, i: int, inputs: Any, outputs: Any, *, axes: Axes) -> Any:
        (x,), (z,) = inputs, outputs
        return record(beaten, x, record(broadcast, z, shape=x.shape, new_axes=axes))

    op.declare(CHOICE, Choice(lost=lost_rule))

    @op.jvp()
    def jvp_rule(z: Value, x: Value, d: Value, *, axes: Axes) -> Value:
        lost = beaten(x, broadcast(z, shape=x.shape, new_axes=axes))
        one = filled_constant(1, x.type.with_dtype(accumulator(x.dtype)))
        count = reduce_sum(select(lost, zeros_like(one), one), axes=axes)
        number = unless_nan(cast(count, dtype=x.dtype), z)
        return reduce_sum(select(lost, zeros_like(d), d), axes=axes) / number

    return op


# The shift of a softmax.


@sub.declares(RANGE_AT)
def _sub_range(eqn: Equation, around: Around, x: Range, y: Range) -> Range:
    """Return the range of `x - y`; at most 0 if `y` is the maximum of `x` over some axes."""
    axes = _largest_of(eqn.inputs[0], eqn.inputs[1], around)
    if axes is None or x.above or x.nan:
        return add_ranges(x, negate_range(y))
    # Where all elements are -inf the shift is 0, and no element attains the bound.
    attained = not x.below or _some_chosen(eqn.inputs[0], axes, around)
    return Range(-math.inf, 0.0, x.below, False, False, axes if attained else None)


def _some_chosen(value: Value, axes: Axes, around: Around) -> bool:
    """Return whether a constant condition selects a finite element along `axes` everywhere."""
    eqn = around.definition(value)
    condition = around.array(eqn.inputs[0]) if eqn is not None and eqn.op is select else None
    if eqn is None or condition is None:
        return False
    sides = [around.known[v].finite for v in eqn.inputs[1:]]
    return bool(np.all(np.any(np.where(condition, *sides), axis=axes)))


def _largest_of(x: Value, y: Value, around: Around) -> Axes | None:
    """Return the axes over which `y` is the maximum of `x`, broadcast back; None if it is not one.

    A `select` that replaces non-finite maxima by a finite number is skipped.
    """
    axes: Axes | None = None
    eqn = around.definition(y)
    while eqn is not None and eqn.op is not reduce_max:
        if eqn.op is select:
            if not is_finite_test(eqn, around):
                return None
            eqn = around.definition(eqn.inputs[1])
            continue
        if eqn.op is broadcast and axes is None:
            axes = eqn.kwargs["new_axes"]
        elif eqn.op not in (reshape, steady, stop_gradient):
            return None
        eqn = around.definition(eqn.inputs[0])
    if eqn is None or eqn.inputs[0] is not x or eqn.kwargs["axes"] != axes:
        return None
    return axes


reduce_max = _extremum("reduce_max", lambda x, *, axes: np.max(x, axis=axes), less)
reduce_min = _extremum("reduce_min", lambda x, *, axes: np.min(x, axis=axes), greater)
reduce_max.declare(LOGIC, Logic.SOME)


def safe_squares(dtype: DType) -> tuple[float, float]:
    """Return the bounds of sums of squares without loss by underflow or overflow."""
    info = np.finfo(dtype)
    return float(info.tiny / info.eps), float(info.max)


def _root_of_squares(x: Any, squares: Any, *, axes: Axes, divisor: float) -> Any:
    low, high = safe_squares(x.dtype)
    root = np.sqrt(squares / squares.dtype.type(divisor))
    safe = (squares >= low) & (squares <= high)
    if np.all(safe):
        return root
    largest = np.max(np.abs(x), axis=axes, keepdims=True, initial=0.0)
    exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    scaled = np.ldexp(x, -exponent).astype(accumulator(x.dtype))
    total = np.sum(scaled * scaled, axis=axes) / scaled.dtype.type(divisor)
    found = np.ldexp(np.sqrt(total), exponent.reshape(root.shape))
    return np.where(safe, root, found).astype(x.dtype)


def _cost_of_root(x: TensorType, squares: TensorType, *, axes: Axes, divisor: float) -> int:
    return squares.size * (QUOTIENT if divisor == 1 else 2 * QUOTIENT)


@primitive(impl=_root_of_squares, flops=_cost_of_root)
def root_of_squares(
    x: TensorType, squares: TensorType, *, axes: Axes, divisor: float
) -> TensorType:
    """Return the root of the sum of squares of `x / divisor` over `axes`.

    `squares` is that sum in plain arithmetic. Where it has overflowed or underflowed, `x` is scaled
    by a power of two and summed again; elsewhere scaling would change no bit. The result depends on
    `x` alone: no derivative passes through `squares`.
    """
    if not x.is_float:
        raise DTypeError(f"root_of_squares does not take {x}")
    result = _reduced_type("root_of_squares", x, axes)
    if squares != result:
        raise ShapeError(f"root_of_squares over axes {axes} of {x} takes squares {result}")
    return result


@root_of_squares.declares(RANGE)
def _root_of_squares_range(x: Range, squares: Range, *, axes: Axes, divisor: Any) -> Range:
    finite = x.finite and squares.finite and bounds(divisor)[0] > 0
    return Range(0.0) if finite else NOT_NEGATIVE


@root_of_squares.jvp(0)
def _root_of_squares_jvp(
    z: Value, x: Value, squares: Value, d: Value, *, axes: Axes, divisor: float
) -> Value:
    """Return the tangent along the unit vector; at zero 0, the subgradient of least norm.

    At zero the norm counts as infinite, which makes derivatives of all orders 0. Elements are
    divided by the norm first, as neither its square nor its reciprocal need be finite.
    """
    length = select(equal(z, zeros_like(z)), filled_constant(math.inf, z.type), z)
    if divisor != 1:
        length = length * filled_constant(divisor, z.type)
    return reduce_sum(x / broadcast(length, shape=x.shape, new_axes=axes) * d, axes=axes)


root_of_squares.flat(1)


@root_of_squares.index_map
def _root_of_squares_map(
    k: int, i: int, operands: Types, results: Types, *, axes: Axes, divisor: float
) -> IndexMap:
    shape = results[0].shape
    return identity(shape) if i else reduction_map(operands[0].shape, shape, axes)


# An operator computes its value in its own way and records it by one of these primitives, whose
# derivative is that of the mathematical function, not that of the steps that computed it.


@primitive(impl=lambda z, x, *, axes: np.array(z), formal=True, own_slope=True, flops=0)
def as_softmax_of(z: TensorType, x: TensorType, *, axes: Axes) -> TensorType:
    """Return `z`, the softmax of `x` over `axes`, with the derivative of the softmax."""
    if not x.is_float:
        raise DTypeError(f"as_softmax_of takes floats, not {x}")
    _reduced_type("as_softmax_of", x, axes)
    if z != x:
        raise ShapeError(f"as_softmax_of {x} takes values of that type, not {z}")
    return z


@as_softmax_of.declares(RANGE)
def _as_softmax_of_range(z: Range, x: Range, *, axes: Axes) -> Range:
    return Range(0.0, 1.0, nan=not z.finite)


as_softmax_of.flat(0)


@as_softmax_of.jvp(1)
def _as_softmax_of_jvp(s: Value, z: Value, x: Value, d: Value, *, axes: Axes) -> Value:
    """Return the tangent in a form whose transpose is `s * (ct - sum(s * ct))`."""
    part = d * s
    whole = broadcast(reduce_sum(part, axes=axes), shape=s.shape, new_axes=axes)
    result: Value = part - s * whole
    return result


@as_softmax_of.index_map
def _as_softmax_of_map(k: int, i: int, operands: Types, results: Types, *, axes: Axes) -> IndexMap:
    return mixed_along(operands[i].shape, results[k].shape, axes)


def _operation_count(x: TensorType, *, axis: int, reverse: bool = False) -> int:
    """Return the operation count: one per element along `axis` except the first."""
    return _combinations(x, axes=(axis,))


def _position(name: str, impl: Rule) -> Primitive[Value]:
    """Declare the index of the first extremum along one axis."""

    def type_rule(x: TensorType, *, axis: int) -> TensorType:
        check_axis(name, axis, x)
        require_order(name, x)
        if not assume_at_least(x.shape[axis], 1):
            raise ShapeError(f"{name} along axis {axis} of {x}: no elements")
        return TensorType(drop_axes(x.shape, (axis,)), INT64)

    op: Primitive[Value] = Primitive(name, type_rule, impl, flops=_operation_count)

    @op.index_map
    def map_rule(k: int, i: int, operands: Types, results: Types, *, axis: int) -> IndexMap:
        return reduction_map(operands[0].shape, results[0].shape, (axis,), exact=False)

    @op.batch
    def batch_rule(batched: tuple[bool, ...], x: Value, *, axis: int) -> Value:
        return op(x, axis=axis + 1)

    return op


argmax = _position("argmax", lambda x, *, axis: np.argmax(x, axis=axis))
argmin = _position("argmin", lambda x, *, axis: np.argmin(x, axis=axis))


def _cumsum(x: Any, *, axis: int, reverse: bool) -> Any:
    along = np.flip(x, axis) if reverse else x
    total = np.cumsum(along, axis=axis, dtype=accumulator(x.dtype)).astype(x.dtype)
    return np.flip(total, axis) if reverse else total


@primitive(impl=_cumsum, linear=True, flops=_operation_count)
def cumsum(x: TensorType, *, axis: int, reverse: bool) -> TensorType:
    """Return the running sum along `axis`, from the end if `reverse`."""
    _numeric("cumsum", x)
    check_axis("cumsum", axis, x)
    return x


@cumsum.declares(RANGE)
def _cumsum_range(x: Range, *, axis: int, reverse: bool) -> Range:
    nan = x.nan or (x.below and x.above)
    return Range(-math.inf if x.low < 0 else x.low, math.inf, x.below, x.above, nan)


@cumsum.transpose
def _cumsum_transpose(ct: Value, x: Linear, *, axis: int, reverse: bool) -> tuple[Value]:
    return (cumsum(ct, axis=axis, reverse=not reverse),)


@cumsum.index_map
def _cumsum_map(
    k: int, i: int, operands: Types, results: Types, *, axis: int, reverse: bool
) -> IndexMap:
    return running_map(results[0].shape, axis, reverse=reverse)


@cumsum.batch
def _cumsum_batch(batched: tuple[bool, ...], x: Value, *, axis: int, reverse: bool) -> Value:
    return cumsum(x, axis=axis + 1, reverse=reverse)


def _map_reduction(op: Primitive[Value]) -> None:
    @op.index_map
    def map_rule(k: int, i: int, operands: Types, results: Types, *, axes: Axes) -> IndexMap:
        return reduction_map(operands[0].shape, results[0].shape, axes, exact=op is reduce_sum)


def _batch_over_axes(op: Primitive[Value]) -> None:
    @op.batch
    def batch_rule(batched: tuple[bool, ...], *inputs: Value, axes: Axes, **params: Any) -> Value:
        return op(*with_batch_axis(batched, inputs), axes=tuple(a + 1 for a in axes), **params)


for _op in (reduce_sum, reduce_prod, reduce_max, reduce_min):
    _op.declare(REDUCES, True)
    _map_reduction(_op)
for _op in (reduce_sum, reduce_prod, reduce_max, reduce_min, root_of_squares, as_softmax_of):
    _batch_over_axes(_op)
    _op.declare(MOVES_BACK, True)
cumsum.declare(MOVES_BACK, True)
for _op in (reduce_sum, root_of_squares, as_softmax_of):
    _op.declare(MOVES_FORTH, True)
