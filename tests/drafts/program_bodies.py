"""Branches and loops of random programs, whose bodies are drafted as programs themselves are.

A body is drafted when the operator calls it, at the numbers of its first trip, or at those at hand
where its branch may not be taken. What it uses of the program around it, it captures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from complex_step import wide_type
from program_draft import BOOL, DTYPES, F64, I64, LARGEST, Draft, Unfit, same_extent
from program_forms import filled, form_of, leaves
from program_productions import PRODUCTIONS, SHARES, operator

import primgraph as pg
from primgraph.control.bodies import active_builder
from primgraph.errors import InternalError, PrimgraphError, UnknownSizeError
from primgraph.ir.graph import Value
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic
from primgraph.primitives import reductions as r
from primgraph.primitives.constants import filled_constant as full

# How often a production is a branch or a loop where there may be one, and one that has its place
# in bodies only.
_BODIES = 0.3
_INNER = 0.12
_MOST_TRIPS = 3

# How often a loop keeps checkpoints, if it may, and how many trips it makes at most, for segments
# in segments.
_CHECKPOINTS = 0.25
_LONGEST = 9

# Partial functions, and the numbers above which their slopes are not steep.
_PARTIAL = ((e.log, 0.2), (e.sqrt, 0.2), (e.rsqrt, 0.2), (e.log1p, -0.5), (e.arccosh, 1.2))


def grow(draft: Draft) -> None:
    """Apply one production; user-level operators may refuse what they are given."""
    draft.last = None
    production = _production(draft)
    try:
        with draft.builder:
            results = production(draft)
    except (Unfit, UnknownSizeError):
        # What depends on sizes cannot be asked for while a program is drafted.
        results = []
    except InternalError:
        raise
    except PrimgraphError:
        # A body may call a copy of this function, for which `operator` is a copy, too.
        if production.__name__ != operator.__name__:
            raise
        draft.refused += 1
        results = []
    draft.take(results)


def _production(draft: Draft) -> Callable[[Draft], Sequence[Value]]:
    if draft.depth and draft.chance(_BODIES):
        return draft.choose(_KINDS, _KIND_SHARES)
    if draft.around is not None and draft.chance(_INNER):
        return draft.choose((own_rule, slope))
    return draft.choose(PRODUCTIONS, SHARES)


# What bodies take and give.


def _body(draft: Draft, given: Sequence[Variable], starts: Sequence[np.ndarray | None]) -> Draft:
    """The draft of the body that is being recorded, after a few productions.

    `starts` are the numbers of what it is given, as far as they are known.
    """
    inner = draft.inside(active_builder(), [v.value for v in given], starts)
    for _ in range(draft.below(4, 1)):
        grow(inner)
    inner.last = None
    return inner


def _form(draft: Draft, count: int) -> Any:
    return form_of(draft, list(range(count))) if count else None


def _in(form: Any, found: Any) -> list[Any]:
    return [leaf for _, leaf in sorted(leaves(form, found), key=lambda pair: pair[0])]


def _flat(form: Any, found: Any) -> list[Value]:
    return [v.value for v in _in(form, found)]


def _again(inner: Draft, type: TensorType) -> Variable:
    """A value of that type for the next trip, which does not grow too much from trip to trip."""
    found = [v for v in inner.pool if v.type == type]
    late = bool(found) and inner.chance(0.7)
    value = found[max(inner.below(len(found)), inner.below(len(found)))] if late else None
    value = inner.typed(type) if value is None else value
    return inner.variable(e.tanh(value) if type.is_float and inner.chance(0.4) else value)


def _results(inner: Draft, most: int, size: int = LARGEST) -> list[Variable]:
    """One to three of the values at hand that are not too large."""
    found = [
        inner.pick(test=lambda v: math.prod(inner.at(v.shape)) <= size)
        for _ in range(inner.below(most, 1))
    ]
    return [inner.variable(v) for v in found]


def _some(draft: Draft, least: int) -> list[Value]:
    return [draft.pick() for _ in range(draft.below(4, least))]


def _starts(draft: Draft, values: Sequence[Value]) -> list[np.ndarray | None]:
    draft.settle()
    return [draft.known.get(v) for v in values]


def _scalar(draft: Draft, kinds: str, low: int, high: int) -> Value:
    """A single integer of the program, in an interval."""
    dtype = draft.choose([d for d in DTYPES if d.kind in kinds])
    return draft.bounded(draft.typed(TensorType((), dtype)), max(low, 0) if "u" in kinds else low,
                         high)  # fmt: skip


# Loops.


def _kept(draft: Draft, trips: int | None) -> str | int | None:
    """Where a loop of that many trips keeps checkpoints."""
    if not isinstance(trips, int) or not draft.chance(_CHECKPOINTS):
        return None
    # Fewer than six trips are a row of segments only by their square root.
    return "sqrt" if trips < 6 or draft.chance(0.5) else 6


def _replayed(draft: Draft, trip: Callable[..., Any]) -> Callable[..., Any]:
    """`trip`, which is the same program each time that it is called: segments call it again."""
    first: list[Any] = []

    def again(*given: Any) -> Any:
        now = draft.rng.bit_generator.state
        if not first:
            first.append(now)
            return trip(*given)
        draft.rng.bit_generator.state = first[0]
        try:
            return trip(*given)
        finally:
            draft.rng.bit_generator.state = now

    return again


def scan(draft: Draft) -> list[Value]:
    """A loop along the rows of some arrays, or of a given number of trips."""
    init, rows = _some(draft, 0), _stacks(draft, 0) if draft.chance(0.6) else []
    length = rows[0].shape[0] if rows else draft.below(_MOST_TRIPS + 1)
    if not rows and draft.chance(0.1):
        length = draft.below(_LONGEST + 1, 6)
    forms = [_form(draft, len(init)), _form(draft, len(rows)), None]
    reverse = draft.chance(0.4)
    starts = [*_starts(draft, init), *_first(draft, rows, -1 if reverse else 0)]

    def trip(carry: Any, row: Any) -> Any:
        given = [*_in(forms[0], carry), *_in(forms[1], row)]
        inner = _body(draft, given, starts)
        state = [_again(inner, v.type) for v in given[: len(init)]]
        least = not state
        ys = _results(inner, 3, _room(draft, length)) if least or draft.chance(0.8) else []
        forms[2] = _form(draft, len(ys))
        return filled(forms[0], state), filled(forms[2], ys)

    carry, ys = pg.scan(
        _replayed(draft, trip),
        _given(draft, forms[0], init),
        _given(draft, forms[1], rows),
        length=None if rows and draft.chance(0.7) else length,
        reverse=reverse,
        checkpoint=_kept(draft, length),
    )
    return [*_flat(forms[0], carry), *_flat(forms[2], ys)]


def mapped(draft: Draft) -> list[Value]:
    """A function of each row."""
    rows = _stacks(draft, 1)
    forms = [_form(draft, len(rows)), None]
    starts, size = _first(draft, rows, 0), _room(draft, rows[0].shape[0])

    def each(row: Any) -> Any:
        found = _results(_body(draft, _in(forms[0], row), starts), 3, size)
        forms[1] = _form(draft, len(found))
        return filled(forms[1], found)

    found = pg.map(each, _given(draft, forms[0], rows))
    return _flat(forms[1], found)


def counted(draft: Draft) -> list[Value]:
    """A loop whose bounds are numbers, or integers of the program."""
    init = _some(draft, 1)
    form = _form(draft, len(init))
    lower: Any = draft.below(2, -2)
    upper: Any = lower + draft.below(_MOST_TRIPS + 1, -1)
    limit = None
    if draft.chance(0.5):
        upper = draft.variable(_scalar(draft, "i", -1, lower + _MOST_TRIPS))
        limit = draft.choose((None, None, _MOST_TRIPS + 2, draft.below(_MOST_TRIPS + 1)))
    if draft.chance(0.2):
        lower = draft.variable(_scalar(draft, "i", lower, lower + 1))
    starts = [np.asarray(lower) if isinstance(lower, int) else np.asarray(0), *_starts(draft, init)]

    def trip(i: Any, state: Any) -> Any:
        given = _in(form, state)
        number = i if isinstance(i, Variable) else None
        inner = _body(draft, [*([] if number is None else [number]), *given],
                      starts[number is None :])  # fmt: skip
        return filled(form, [_again(inner, v.type) for v in given])

    trips = limit
    if isinstance(lower, int) and isinstance(upper, int):
        trips = max(upper - lower, 0)
    state = _given(draft, form, init)
    kept = _kept(draft, trips)
    return _flat(form, pg.fori_loop(lower, upper, _replayed(draft, trip), state,
                                    max_trips=limit, checkpoint=kept))  # fmt: skip


def until(draft: Draft) -> list[Value]:
    """A loop of which numbers of the program say when it ends."""
    init = _some(draft, 1)
    form = _form(draft, len(init))
    bound: Any = draft.below(_MOST_TRIPS + 1)
    if draft.chance(0.6):
        bound = draft.variable(_scalar(draft, "iu", 0, _MOST_TRIPS))
    starts = _starts(draft, init)
    floats = [i for i, v in enumerate(init) if v.type.is_float]
    watched = draft.choose(floats) if floats and draft.chance(0.5) else None

    def goes_on(carried: Any) -> Any:
        state, number = carried
        go = number < bound
        if watched is not None:
            value = _in(form, state)[watched]
            go = pg.logical_and(go, pg.astype(pg.sum(value), "float64") < 2.5)
        return go

    def trip(carried: Any) -> Any:
        state, number = carried
        given = _in(form, state)
        inner = _body(draft, [*given, number], [*starts, np.asarray(0)])
        return filled(form, [_again(inner, v.type) for v in given]), number + 1

    limit = _MOST_TRIPS + draft.below(3, -1) if draft.chance(0.5) else None
    state = (_given(draft, form, init), 0)
    found, trips = pg.while_loop(
        goes_on, _replayed(draft, trip), state, max_trips=limit, checkpoint=_kept(draft, limit)
    )
    return [*_flat(form, found), trips.value]


# Checkpoints.


def checkpointed(draft: Draft) -> list[Value]:
    """A function that reverse mode computes again."""
    operands = _some(draft, 1)
    forms = [_form(draft, len(operands)), None]
    starts = _starts(draft, operands)

    @pg.checkpoint
    def function(given: Any) -> Any:
        found = _results(_body(draft, _in(forms[0], given), starts), 3)
        forms[1] = _form(draft, len(found))
        return filled(forms[1], found)

    found = function(_given(draft, forms[0], operands))
    return _flat(forms[1], found)


# Branches.


def branch(draft: Draft) -> list[Value]:
    """One of two functions, by a boolean of the program."""
    operands = _some(draft, 0)
    if draft.chance(0.5):
        chosen = draft.typed(TensorType((), BOOL))
    else:
        x = draft.typed(TensorType((), draft.choose((F64, I64))))
        chosen = logic.greater(x, full(draft.choose((0, 1)), x.type))
    form, bodies = _form(draft, len(operands)), _alike(draft, operands, 2)
    given = _given(draft, form, operands)
    functions = [lambda found, body=body: body(_in(form, found)) for body in bodies]
    return _taken(bodies, pg.cond(draft.variable(chosen), *functions, given))


def switch(draft: Draft) -> list[Value]:
    """One of several functions, by an integer that may be out of range."""
    operands = _some(draft, 0)
    bodies = _alike(draft, operands, draft.below(5, 1))
    chosen = draft.typed(TensorType((), draft.choose([d for d in DTYPES if d.kind in "iu"])))
    given = [draft.variable(v) for v in operands]
    functions = [lambda *found, body=body: body(found) for body in bodies]
    return _taken(bodies, pg.switch(draft.variable(chosen), functions, *given))


class _Alike:
    """Bodies that give the same types, whichever is called first."""

    def __init__(self, draft: Draft, operands: Sequence[Value]) -> None:
        self.draft = draft
        self.starts = _starts(draft, operands)
        self.types: list[TensorType] = []
        self.form: Any = None

    def __call__(self, given: Sequence[Variable]) -> Any:
        inner = _body(self.draft, given, self.starts)
        if self.form is None:
            found = _results(inner, 4)
            self.types = [v.type for v in found]
            self.form = _form(self.draft, len(found))
        else:
            found = [_again(inner, type) for type in self.types]
        return filled(self.form, found)


def _alike(draft: Draft, operands: Sequence[Value], count: int) -> list[_Alike]:
    return [_Alike(draft, operands)] * count


def _taken(bodies: Sequence[_Alike], found: Any) -> list[Value]:
    return _flat(bodies[0].form, found)


def guarded(draft: Draft) -> list[Value]:
    """A partial function in the branch that is taken where it has values."""
    x = draft.pick("f", test=lambda v: 0 not in v.shape and not v.type.names)
    op, least = draft.choose(_PARTIAL)
    smallest = r.reduce_min(x, axes=tuple(range(len(x.shape)))) if x.shape else x
    inside = logic.greater(smallest, full(least, smallest.type))
    found = pg.cond(
        draft.variable(inside),
        lambda v: pg.Variable(active_builder(), op(active_builder().own(v.value))) * 0.5,
        lambda v: v * 0.25,
        draft.variable(x),
    )
    return [found.value]


# What has its place in bodies.


@pg.custom_vjp
def own_sine(x):
    return pg.sin(x)


own_sine.defvjp(lambda x: (pg.sin(x), (x,)), lambda kept, ct: (ct * pg.cos(kept[0]),))


def _scaled_sine(scale: Variable) -> Any:
    """The sine times a value from around the function, which its rules find there as well."""
    function = pg.custom_vjp(lambda x: pg.sin(x) * scale)
    function.defvjp(lambda x: (pg.sin(x) * scale, x), lambda x, ct: (ct * pg.cos(x) * scale,))
    return function


class Cubed(pg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return pg.tanh(x) * x

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return ct * (pg.tanh(x) + x * (1.0 - pg.tanh(x) ** 2))


def own_rule(draft: Draft) -> list[Value]:
    """A function that has a derivative of its own, with a closure that may hold a value."""
    x = draft.variable(draft.pick("f"))
    # A closure has the dtype that it was called with: checks in float64 cannot call it anew.
    if draft.chance(0.4) and x.dtype == np.float64:
        scale = pg.tanh(pg.sum(pg.stop_gradient(draft.variable(draft.pick("f")))))
        return [_scaled_sine(pg.astype(scale, x.dtype))(x).value]
    return [draft.choose((own_sine, Cubed.apply))(x).value]


def slope(draft: Draft) -> list[Value]:
    """A derivative within the body, by a value of it or of the program around it."""
    x, y = (draft.variable(draft.pick("f")) for _ in range(2))
    if draft.chance(0.4):
        found = pg.grad(lambda v: pg.sum(pg.sin(pg.tanh(v) * pg.sum(y))))(x)
        return [draft.builder.own(found.value)]
    if draft.chance(0.5):
        y = pg.tanh(x) * pg.sum(y)
    try:
        return [draft.builder.own(pg.grad(pg.sum(pg.sin(y)), x).value)]
    except pg.NotDifferentiable:
        raise Unfit from None
    except pg.BuildError as error:
        if "outside the body" in error.message:
            raise Unfit from None
        raise


def deep(draft: Draft) -> list[Value]:
    """Five to twelve branches and loops in each other, of which the outer two may repeat."""
    x = draft.variable(draft.pick("f"))
    chosen = draft.variable(draft.typed(TensorType((), BOOL)))
    kinds = [draft.choose(("branch", "loop", "until")) for _ in range(draft.below(13, 5))]
    trips = [draft.below(3, 1) for _ in range(2)] + [1] * len(kinds)

    def level(depth: int, y: Any) -> Any:
        if depth == len(kinds):
            return pg.sin(y) + x
        if kinds[depth] == "branch":
            return pg.cond(chosen, lambda: level(depth + 1, y * 0.5), lambda: pg.tanh(y))
        if kinds[depth] == "loop":
            return pg.fori_loop(0, trips[depth], lambda i, s: level(depth + 1, s * 0.5), y)
        found, _ = pg.while_loop(
            lambda s: s[1] < trips[depth],
            lambda s: (level(depth + 1, s[0] * 0.5), s[1] + 1),
            (y, 0),
        )
        return found

    return [level(0, pg.tanh(x)).value]


def with_matrix(draft: Draft) -> list[Value]:
    """A loop with a matrix that it does not change: solves, or no trip where it would raise."""
    value = draft.pick("f")
    (known,) = _starts(draft, [value])
    if known is None or np.isnan(np.sum(known)):
        # C leaves systems of NaN to NumPy.
        raise Unfit
    total = pg.tanh(pg.sum(draft.variable(value)))
    n = draft.below(7, 3)
    matrix = 4.0 * pg.eye(n) + total * np.cos(np.arange(n * n)).reshape(n, n)
    right = pg.ones((n,)) * total
    if draft.chance(0.5):
        found, _ = pg.while_loop(
            lambda s: s[1] < 0,
            lambda s: (pg.linalg.cholesky(matrix - 20.0 * pg.eye(n)) @ s[0], s[1] + 1),
            (right, 0),
        )
        return [draft.builder.own(found.value)]
    turned = draft.chance(0.5)

    def trip(x: Any, _: Any) -> Any:
        x = pg.linalg.solve(matrix, pg.sin(x) + right)
        return pg.linalg.solve(matrix.mT, x) if turned else x, x

    x, xs = pg.scan(trip, right, None, length=draft.below(7, 1))
    return [draft.builder.own(v.value) for v in (x, xs)]


def solved(draft: Draft) -> list[Value]:
    """The solution of an equation, which is found in one of several ways."""
    value = draft.pick("f", test=lambda v: math.prod(draft.at(v.shape)) <= _UNKNOWNS)
    (known,) = _starts(draft, [value])
    is_open = not all(type(extent) is int for extent in value.shape)
    if known is None or is_open or known.size == 0 or not np.all(np.isfinite(known)):
        # Nothing is found of NaN, and of nothing, as open sizes may be, there is nothing to find.
        raise Unfit
    x = pg.tanh(draft.variable(value))
    is_wide = x.dtype == np.float64
    way = draft.choose([w for w in (*_NONLINEAR, *_LINEAR) if is_wide or w not in _IN_FLOAT64])
    if way in _LINEAR:
        found = _LINEAR[way](lambda z: (2.0 + x) * z + 0.1 * pg.sum(z), x)
    else:
        found = _NONLINEAR[way](lambda z: 0.3 * pg.sin(z) + 0.1 * pg.mean(z) + 0.4 * x, x)
    return [draft.builder.own(found.value)]


def _known(f: Callable[[Any], Any], x: Any) -> Any:
    found = pg.fori_loop(0, 60, lambda _, z: f(z), x)
    return pg.solvers.implicit(lambda z: z - f(z), found)


def _flow(f: Callable[[Any], Any], x: Any) -> Any:
    return pg.solvers.solve_ivp(lambda t, y: f(y) - y, (0.0, 0.5), x, rtol=1e-10, atol=1e-12)


# Ways to solve `z = f(z)`, to follow `dz/dt = f(z) - z`, to integrate, and to solve `A z = b` with
# a symmetric positive definite matrix.
_UNKNOWNS = 12
_NONLINEAR: dict[str, Callable[..., Any]] = {
    "repeated": pg.fixed_point,
    "newton": lambda f, x: pg.root(lambda z: z - f(z), x),
    "by products": lambda f, x: pg.root(lambda z: z - f(z), x, linear_solver="gmres"),
    "corrected": lambda f, x: pg.solvers.broyden(lambda z: z - f(z), x),
    "known": _known,
    "by squares": lambda f, x: pg.solvers.least_squares(lambda z: z - f(z), x),
    "by descent": lambda f, x: pg.solvers.minimize(lambda z: pg.sum((z - f(z)) ** 2), x, tol=1e-10),
    "by steps": _flow,
    "by quadrature": lambda f, x: (
        f(x) * pg.solvers.quad(lambda t: pg.mean(pg.cos(t * x)), 0.0, 1.0, rtol=1e-10)
    ),
}
_LINEAR: dict[str, Callable[..., Any]] = {
    "cg": pg.solvers.cg, "bicgstab": pg.solvers.bicgstab, "gmres": pg.solvers.gmres,
}  # fmt: skip

# Tolerances of float32 are too wide for checks in float64, and LAPACK has no float16.
_IN_FLOAT64 = ("by squares", "by descent", "by steps", "by quadrature", *_LINEAR)

_KINDS = (
    scan, mapped, counted, until, branch, switch, guarded, checkpointed, with_matrix, deep, solved,
)  # fmt: skip
_KIND_SHARES = (0.22, 0.08, 0.12, 0.16, 0.14, 0.08, 0.06, 0.09, 0.02, 0.01, 0.02)


def _stacks(draft: Draft, least: int) -> list[Value]:
    """Some arrays of as many rows each, of which there are not many."""
    first = draft.pick(rank=1, test=lambda v: draft.at(v.shape)[0] <= 5)
    found = [v for v in draft.pool if v.shape and same_extent(v.shape[0], first.shape[0])]
    count = draft.below(3, least)
    return [first, draft.choose(found)][:count]


def _room(draft: Draft, length: int) -> int:
    """How large each of so many rows may be."""
    (count,) = draft.at((length,))
    return LARGEST // max(count, 1)


def _first(draft: Draft, rows: Sequence[Value], place: int) -> list[np.ndarray | None]:
    """The numbers in the first rows that a loop goes along; ones where there are no rows."""
    known = _starts(draft, rows)
    made: list[np.ndarray | None] = []
    for value, found in zip(rows, known, strict=True):
        if found is not None and not len(found):
            dtype = np.complex128 if value.type.is_float else wide_type(value.type).dtype
            found = np.ones((1, *draft.at(value.shape[1:])), dtype)
        made.append(None if found is None else found[place])
    return made


def _given(draft: Draft, form: Any, values: Sequence[Value]) -> Any:
    return filled(form, [draft.variable(v) for v in values])
