"""What a random program is made of: one function a kind of equation, each with its weight."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from program_draft import BOOL, DTYPES, F16, F64, I64, Draft, Unfit, drop
from program_operators import OPERATORS

import primgraph as pg
from primgraph.derivatives.subgraph import reached_by
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType
from primgraph.primitives import bits, indexing, logic
from primgraph.primitives import constants as c
from primgraph.primitives import elementwise as e
from primgraph.primitives import reductions as r
from primgraph.primitives import shapes as s
from primgraph.primitives import windows as w
from primgraph.primitives.linear_algebra import products
from primgraph.primitives.linear_algebra.systems import sparse_triangular_solve
from primgraph.primitives.special_functions import by_parameters, gamma, special

# How often an operator is called in `pg.no_grad()`.
_UNTRACKED = 0.04

Production = Callable[[Draft], list[Value]]

PRODUCTIONS: list[Production] = []
_weights: list[float] = []


def production(weight: float) -> Callable[[Production], Production]:
    def declare(function: Production) -> Production:
        PRODUCTIONS.append(function)
        _weights.append(weight)
        return function

    return declare


# Elementwise arithmetic.

_EVERYWHERE = (
    e.neg, e.exp, e.expm1, e.sigmoid, e.sin, e.cos, e.tan, e.sinh, e.cosh, e.tanh, e.arctan,
    e.arcsinh, e.erf, e.erfc, e.abs_, e.sign, e.floor, e.ceil, e.round_, e.stop_gradient,
)  # fmt: skip
_POSITIVE = (e.sqrt, e.rsqrt, e.log, e.log1p)
_BELOW_ONE = (e.arcsin, e.arccos, e.arctanh)


@production(3)
def unary(draft: Draft) -> list[Value]:
    return [draft.choose(_EVERYWHERE)(draft.pick("f"))]


@production(1.5)
def partial(draft: Draft) -> list[Value]:
    """A function of a part of the line only, mostly of an argument brought there."""
    x = draft.pick("f")
    op = draft.choose((*_POSITIVE, *_BELOW_ONE, e.arccosh))
    if draft.smooth and draft.chance(0.8):
        least = 1.5 if op is e.arccosh else 0.5
        x = 0.75 * e.tanh(x) if op in _BELOW_ONE else x * x + least
    return [op(x)]


@production(0.4)
def special_functions(draft: Draft) -> list[Value]:
    """Of the numbers between that are smooth points of each."""
    x = draft.pick("f")
    within = 0.7 * e.tanh(x)
    y = within + 1.1
    of_two = draft.choose((gamma.betaln, gamma.beta, special.xlogy, special.xlog1py))
    operand = draft.choose((within + 0.8, y))
    # On both sides of poles of the denominator of `poch`, which is smooth there.
    count = float(draft.below(4))
    start, steps = within - count, (1.2 + count) - 0.5 * within
    return draft.choose((
        lambda: [gamma.poch(start, steps), gamma.poch(y, operand)],
        lambda: [gamma.gammaln(y), gamma.polygamma(y, n=draft.below(3))],
        lambda: [gamma.gamma_function(y), of_two(y, operand)],
        lambda: [special.erfinv(within), special.erfcinv(y), special.logit(0.5 + 0.5 * within)],
        lambda: [special.erfcx(within, n=draft.below(3)), special.log_ndtr(x)],
        lambda: [special.gammainc(y, operand, k=draft.below(2), upper=draft.chance(0.5))],
        lambda: [special.betainc(y, operand, 0.5 + 0.5 * within, j=0, k=0, upper=False)],
        lambda: [by_parameters.bessel_by_order(x, y, n=1, name=draft.choose(("jv", "kv")))],
        lambda: [by_parameters.kummer_by_parameters(x, y, within, i=1, j=draft.below(2))],
        lambda: [by_parameters.gauss_by_parameters(x, operand, y, within, i=0, j=1, k=0)],
        lambda: [by_parameters.zeta_by_exponent(y + 1.0, operand, n=1)],
    ))()  # fmt: skip


_BINARY = (
    e.add, e.sub, e.mul, e.mul, e.div, e.logaddexp, e.arctan2, e.maximum, e.minimum, e.remainder,
    e.floor_divide, logic.unless_nan,
)  # fmt: skip


@production(4)
def binary(draft: Draft) -> list[Value]:
    x = draft.pick("f")
    return [draft.choose(_BINARY)(x, draft.like(x))]


@production(0.7)
def power(draft: Draft) -> list[Value]:
    x = draft.pick("f")
    y = c.filled_constant(0.5, x.type) if draft.chance(0.2) else draft.like(x)
    base = e.abs_(x) + 0.5 if draft.smooth else x
    return [e.power(base, y), e.integer_pow(x, n=draft.below(6, -2))]


@production(1)
def integers(draft: Draft) -> list[Value]:
    """Arithmetic that wraps around; powers have exponents that are not negative."""
    x = draft.pick("iu")
    y = draft.like(x)
    binary = (e.add, e.sub, e.mul, e.maximum, e.minimum, e.remainder, e.floor_divide)
    unary = (e.neg, e.abs_, e.sign, e.stop_gradient)
    results = [draft.choose(binary)(x, y), draft.choose(unary)(x)]
    if draft.chance(0.4):
        of_bits = (bits.bitwise_and, bits.bitwise_or, bits.bitwise_xor, bits.left_shift,
                   bits.right_shift, bits.gcd)  # fmt: skip
        results += [draft.choose(of_bits)(x, y), bits.bitwise_not(x)]
    if draft.chance(0.3):
        exponent = e.remainder(y, c.filled_constant(4, y.type))
        results += [e.power(x, exponent), e.integer_pow(x, n=draft.below(5))]
    return results


_COMPARISONS = (
    logic.equal, logic.not_equal, logic.greater, logic.greater_equal, logic.less, logic.less_equal
)  # fmt: skip
_LOGICAL = (logic.logical_and, logic.logical_or, logic.logical_xor, e.maximum, e.minimum)


@production(1.2)
def compare(draft: Draft) -> list[Value]:
    x = draft.pick()
    return [draft.choose(_COMPARISONS)(x, draft.like(x))]


@production(0.8)
def combine(draft: Draft) -> list[Value]:
    x = draft.pick("b")
    return [draft.choose(_LOGICAL)(x, draft.like(x)), logic.logical_not(x)]


def _condition(draft: Draft, value: Value) -> Value:
    kind = value.type.with_dtype(BOOL)
    x = draft.typed(kind)
    return x if draft.chance(0.7) else logic.logical_not(x)


@production(1.5)
def select(draft: Draft) -> list[Value]:
    x = draft.pick()
    return [logic.select(_condition(draft, x), x, draft.like(x))]


@production(1)
def guarded(draft: Draft) -> list[Value]:
    """A partial function where it has a value, something else where it has none."""
    x = draft.pick("f")
    op = draft.choose((*_POSITIVE, e.arccosh))
    # The same predicate for all uses of a function: of several, none is known to guard it.
    least = {e.arccosh: 1.01, e.log1p: -0.99}.get(op, 0.01)
    inside = logic.greater(x, c.filled_constant(least, x.type))
    branch = op(x)
    if draft.chance(0.4):
        branch = branch * x
    if draft.chance(0.3):
        return [logic.select(logic.logical_not(inside), draft.like(x), branch)]
    return [logic.select(inside, branch, draft.like(x))]


@production(2)
def cast(draft: Draft) -> list[Value]:
    return [draft.converted(draft.pick(), draft.dtype())]


@production(2.5)
def needless(draft: Draft) -> list[Value]:
    """What a person would not write, and rewriting may take for less than it is."""
    x = draft.pick("f")
    rank = len(x.shape)
    unit = c.filled_constant(draft.choose((0.0, -0.0, 1.0, -1.0)), x.type)
    y = draft.like(x)
    kind = draft.below(8)
    if kind >= 5:
        pair = (x, unit) if draft.chance(0.5) else (unit, x)
        return [draft.choose((e.add, e.sub, e.mul, e.div))(*pair)]
    if kind == 0:
        pair = draft.choose(((x, -y), (-x, y), (-x, -y), (-(unit * x), y)))
        return [draft.choose((e.add, e.sub, e.mul, e.div))(*pair)]
    if kind == 1:
        order = draft.order(rank)
        return [s.permute(s.permute(x, axes=order), axes=draft.order(rank)), e.neg(e.neg(x))]
    if kind == 2:
        flat = s.reshape(s.reshape(x, shape=(x.type.size,)), shape=x.shape)
        axes = draft.subset(rank)
        back = s.reverse(s.reverse(x, axes=axes), axes=axes)
        return [flat, back, s.concat(x, axis=rank - 1)] if rank else [flat, back]
    condition = _condition(draft, x)
    inner = logic.select(condition, x, y)
    return [logic.select(condition, inner, x), logic.select(condition, y, inner)]


# Views, and what joins and takes apart.


@production(1.6)
def view(draft: Draft) -> list[Value]:
    x = draft.pick()
    rank = len(x.shape)
    kind = draft.below(3)
    if kind == 0:
        return [s.permute(x, axes=draft.order(rank))]
    if kind == 1:
        return [s.reverse(x, axes=draft.subset(rank))]
    extents = [n for n in x.shape if n != 1]
    extents.insert(draft.below(len(extents) + 1), 1)
    if len(extents) > 1 and draft.chance(0.5):
        place = draft.below(len(extents) - 1)
        extents[place : place + 2] = [extents[place] * extents[place + 1]]
    return [s.reshape(x, shape=tuple(extents))]


@production(1)
def broadcast(draft: Draft) -> list[Value]:
    x = draft.pick(test=lambda v: len(v.shape) < 4)
    shape = list(x.shape)
    new = draft.subset(min(len(shape) + 2, 4))[: 4 - len(shape)]
    new = tuple(a for a in new if a < len(shape) + len(new))
    for axis in new:
        shape.insert(axis, draft.below(4) + (not draft.chance(0.1)))
    kept = s.drop_axes(tuple(shape), new) == x.shape
    return [s.broadcast(x, shape=tuple(shape), new_axes=new)] if kept else []


def _window(draft: Draft, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Starts, sizes and steps of a slice of an array of that shape."""
    found = []
    for n in shape:
        start = draft.below(n) if n else 0
        step = draft.choose((1, 1, 1, 2, -1, -2))
        room = 0 if n == 0 else 1 + ((n - 1 - start) // step if step > 0 else start // -step)
        full = step == 1 and draft.chance(0.4)
        found.append((0, n, 1) if full else (start, draft.below(room + 1, min(room, 1)), step))
    return tuple(tuple(entry) for entry in zip(*found, strict=True)) if found else ((), (), ())


@production(1.2)
def slices(draft: Draft) -> list[Value]:
    x = draft.pick()
    starts, sizes, steps = _window(draft, x.shape)
    part = s.slice_(x, starts=starts, sizes=sizes, steps=steps)
    if draft.chance(0.5):
        return [part]
    y = draft.typed(part.type)
    return [part, s.slice_assign(x, y, starts=starts, steps=steps)]


@production(0.6)
def placed(draft: Draft) -> list[Value]:
    """Diagonals of a matrix, or what has a row of zeros behind each of its rows."""
    x = draft.pick(rank=1)
    lead = draft.below(len(x.shape))
    inner = x.shape[lead:]
    if len(inner) == 1 and draft.chance(0.6):
        n = inner[0]
        y = draft.typed(x.type.with_shape((*x.shape[:lead], max(n - 1, 0))))
        shape = (*x.shape[:lead], n, n)
        return [
            indexing.placed(x, y, shape=shape, starts=(0, min(1, n)), strides=((n + 1,), (n + 1,)))
        ]
    strides, step = [], 2
    for extent in reversed(inner):
        strides.insert(0, step)
        step *= max(extent, 1)
    shape = (*x.shape[:lead], step)
    return [indexing.placed(x, shape=shape, starts=(1,), strides=(tuple(strides),))]


@production(1)
def join(draft: Draft) -> list[Value]:
    x = draft.pick(rank=1)
    axis = draft.below(len(x.shape))
    parts = [x]
    for _ in range(draft.below(3)):
        shape = list(x.shape)
        shape[axis] = draft.below(4)
        parts.append(x if draft.chance(0.4) else draft.typed(x.type.with_shape(tuple(shape))))
    return [s.concat(*(parts[i] for i in draft.order(len(parts))), axis=axis)]


@production(0.8)
def pad(draft: Draft) -> list[Value]:
    x = draft.pick()
    low, high = (tuple(draft.below(3) for _ in x.shape) for _ in range(2))
    return [s.pad(x, low=low, high=high)]


@production(1)
def split(draft: Draft) -> list[Value]:
    x = draft.pick(rank=1)
    axis = draft.below(len(x.shape))
    ends = sorted(draft.below(x.shape[axis] + 1) for _ in range(draft.below(3)))
    sizes = np.diff([0, *ends, x.shape[axis]]).tolist()
    parts = s.split(x, sizes=tuple(sizes), axis=axis)
    return [parts[i] for i in draft.order(len(parts))[:2]]


@production(2)
def gather(draft: Draft) -> list[Value]:
    """Reading, and adding, at positions that are often the same."""
    x = draft.pick(test=lambda v: any(v.shape), rank=1)
    axis = draft.choose([i for i, n in enumerate(x.shape) if n])
    count = 1 + (axis + 1 < len(x.shape) and x.shape[axis + 1] > 0 and draft.chance(0.4))
    shape = draft.shape(highest=2)
    indices = [_indices(draft, shape, x.shape[axis + i]) for i in range(count)]
    taken = indexing.gather(x, *indices, axis=axis)
    if draft.chance(0.5) or x.dtype == BOOL or taken.type.size > 300:
        return [taken]
    return [taken, indexing.scatter_add(x, draft.typed(taken.type), *indices, axis=axis)]


def sparse_product(draft: Draft) -> list[Value]:
    """A sparse matrix, with known or computed values, times vectors, and a triangular system."""
    x = draft.pick("f", test=lambda v: all(v.shape), rank=1)
    rows, count = draft.below(6, 1), draft.below(9)
    lead = draft.typed(TensorType((count, *x.shape[1:]), x.dtype))
    into = np.sort(draft.rng.integers(0, rows, count))
    places = draft.rng.integers(0, x.shape[0], count)
    terms = lead * indexing.gather(x, c.constant(value=places), axis=0)
    zeros = c.filled_constant(0.0, TensorType((rows, *x.shape[1:]), x.dtype))
    found = indexing.scatter_add(zeros, terms, c.constant(value=into), axis=0)
    return [found] if x.dtype == F16 else [found, _sparse_system(draft, found)]


def _sparse_system(draft: Draft, b: Value) -> Value:
    """The solution for a regular matrix with a full diagonal and some elements below it."""
    n = b.shape[0]
    below = np.tril(draft.rng.random((n, n)) < 0.4, -1) | np.eye(n, dtype=bool)
    rows, columns = np.nonzero(below)
    ends = np.where(rows == columns, 2.0, 0.0).astype(b.dtype)
    data = draft.typed(TensorType((rows.size,), b.dtype))
    data = c.constant(value=ends) + e.sin(data) * c.filled_constant(0.25, data.type)
    whole = s.reshape(b, shape=(n, math.prod(b.shape[1:])))
    places, reverse = [c.constant(value=i) for i in (rows, columns)], draft.chance(0.5)
    places = places[::-1] if reverse else places
    found = sparse_triangular_solve(data, whole, *places, reverse=reverse)
    return s.reshape(found, shape=b.shape)


def _indices(draft: Draft, shape: tuple[int, ...], limit: int) -> Value:
    dtype = draft.choose([d for d in DTYPES if d.kind in "iu"])
    kind = TensorType(shape, dtype)
    if draft.chance(0.5):
        low = -limit if dtype.kind == "i" else 0
        return c.constant(value=np.asarray(draft.rng.integers(low, limit, shape)).astype(dtype))
    if limit > np.iinfo(dtype).max:
        raise Unfit
    return e.remainder(draft.typed(kind), c.filled_constant(limit, kind))


# Sums, products, extrema.


@production(2.5)
def reduce(draft: Draft) -> list[Value]:
    x = draft.pick("iuf")
    axes = draft.subset(len(x.shape), least=1)
    op = draft.choose((r.reduce_sum, r.reduce_sum, r.reduce_prod, r.reduce_max, r.reduce_min))
    if op in (r.reduce_max, r.reduce_min) and any(x.shape[a] == 0 for a in axes):
        raise Unfit
    return [op(x, axes=axes)]


@production(0.5)
def root_of_squares(draft: Draft) -> list[Value]:
    x = draft.pick("f", rank=1)
    axes = draft.subset(len(x.shape), least=1)
    squares = e.stop_gradient(r.reduce_sum(x * x, axes=axes))
    if draft.chance(0.5):
        squares = e.steady(squares)
    divisor = draft.choose((1.0, 3.0))
    return [r.root_of_squares(x, squares, axes=axes, divisor=divisor)]


@production(1)
def along(draft: Draft) -> list[Value]:
    x = draft.pick(rank=1)
    axis = draft.below(len(x.shape))
    results = []
    if x.shape[axis]:
        results.append(draft.choose((r.argmax, r.argmin))(x, axis=axis))
    if x.dtype != BOOL:
        results.append(r.cumsum(x, axis=axis, reverse=draft.chance(0.5)))
    return results


@production(0.5)
def sliding(draft: Draft) -> list[Value]:
    """Windows along some axes, and their sum where they overlap."""
    x = draft.pick(rank=1, test=lambda v: all(type(n) is int and n for n in v.shape))
    axis = draft.below(len(x.shape))
    number = draft.below(min(len(x.shape) - axis, 2) + 1, 1)
    extents = x.shape[axis : axis + number]
    sizes = tuple(draft.below(min(n, 3) + 1, 1) for n in extents)
    apart = tuple(
        draft.below((n - 1) // (m - 1) + 1, 1) if m > 1 else 1
        for n, m in zip(extents, sizes, strict=True)
    )
    steps = tuple(draft.below(3, 1) for _ in sizes)
    found = w.windows(x, axis=axis, sizes=sizes, steps=steps, dilations=apart)
    if x.dtype == BOOL or draft.chance(0.3):
        return [found]
    places = {"axis": axis, "extents": extents, "steps": steps, "dilations": apart}
    return [found, w.overlap_add(draft.like(found), **places)]


@production(0.4)
def extremum_of_booleans(draft: Draft) -> list[Value]:
    x = draft.pick("b", test=lambda v: all(v.shape), rank=1)
    op: Primitive = draft.choose((r.reduce_max, r.reduce_min))
    return [op(x, axes=draft.subset(len(x.shape), least=1))]


@production(1.5)
def matmul(draft: Draft) -> list[Value]:
    x = draft.pick("iuf", rank=2)
    lead, (rows, inner) = x.shape[:-2], x.shape[-2:]
    if rows == inner and draft.chance(0.5):
        return [products.matmul(x, x)]
    if draft.chance(0.4):
        return [products.matmul(x, products.swap_last(x))]
    columns = draft.below(4)
    if draft.chance(0.2):
        x, inner = s.reshape(x, shape=(*lead, rows * inner, 1)), 1
    y = draft.typed(x.type.with_shape((*lead, inner, columns)))
    return [products.matmul(x, y)]


# Sources.


@production(1)
def source(draft: Draft) -> list[Value]:
    kind = TensorType(draft.shape(), draft.dtype())
    if kind.shape and kind.dtype != BOOL and draft.chance(0.3):
        axis = draft.below(len(kind.shape))
        return [c.iota(shape=kind.shape, axis=axis, dtype=kind.dtype)]
    return [draft.constant(kind)]


@production(0.4)
def random(draft: Draft) -> list[Value]:
    key = draft.typed(TensorType(draft.shape(highest=1), I64))
    shape = draft.shape(highest=2)
    if math.prod((*key.shape, *shape)) > 100:
        raise Unfit
    low = draft.choose((0.0, -1.0))
    uniform = c.random_uniform(key, shape=shape, dtype=F64, low=low, high=1.5)
    if draft.chance(0.3):
        drawn = special.random_variate(key, uniform * uniform + 0.5, name="standard_gamma")
        return [special.as_gamma_of(drawn, uniform * uniform + 0.5)]
    return [uniform, c.random_bernoulli(key, shape=shape, p=0.4)]


@production(7)
def operator(draft: Draft) -> list[Value]:
    """A user-level operator, which may broadcast, promote and be lowered later."""
    make = draft.choose(OPERATORS)
    if not draft.chance(_UNTRACKED):
        found = make(draft)
        return [v.value for v in (found if isinstance(found, list) else [found])]
    with pg.no_grad():
        found = make(draft)
    values = [v.value for v in (found if isinstance(found, list) else [found])]
    floats = [v for v in values if v.dtype.kind in "fc"]
    reached = reached_by(draft.builder, draft.builder.inputs, floats)
    assert not any(reached), f"{make} gives what is not constant in no_grad"
    return values


SHARES = [w / sum(_weights) for w in _weights]

__all__ = ["PRODUCTIONS", "SHARES", "drop", "view"]
