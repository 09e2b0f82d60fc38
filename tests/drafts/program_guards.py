"""Random programs with guards: a partial function of elements some of which nothing chooses.

Rows of an array are brought to a partial function, and on through functions that share
parameters; then some are chosen and the others, at which the function is singular, are left out.
The same program in which these rows hold ordinary numbers from the start is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from program_draft import Choices

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.ir.types import TensorType
from primgraph.transforms import lower

_WIDE = 0.06
_STEPS_BEFORE, _STEPS_AFTER = 4, 3
_IN_BODIES = 0.15
_CARRIED = 0.2

# What functions of the partial ones are singular at; the second kind only behind a `where` that
# elementwise functions, sums and moves lead to.
_SINGULAR = (0.0, 0.0, 0.0, 1.0, -1.0, -0.0, 2.0)
_NOT_FINITE = (np.inf, -np.inf, np.nan, 1e30, -1e30)
_LOWEST, _HIGHEST = 0.3, 0.9


@dataclass(frozen=True, slots=True)
class Rows:
    """An array, which of its rows are made of ordinary numbers only, and how it was made.

    `plain` if only elementwise functions, sums and moves were. If it is a rising function of
    single elements, `lowest` is where that is lowest and singular; `beaten` if an extremum is
    what leaves rows out, which have to be lowest for that.
    """

    value: pg.Variable
    fine: np.ndarray
    plain: bool = True
    lowest: float | None = None
    chosen_by_where: bool = True
    beaten: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """What all rows share, and ordinary numbers: each is an input of the program."""

    b: pg.Variable
    s: pg.Variable
    w: pg.Variable
    eye: pg.Variable
    raw: pg.Variable
    kept: pg.Variable
    fine: np.ndarray
    harmless: bool


Step = Callable[[Choices, Rows, Shared], Rows]
Body = Callable[[pg.Variable], pg.Variable]


def _as(rows: Rows, value: pg.Variable, *, plain: bool = True, rising: bool = False) -> Rows:
    lowest = rows.lowest if rising else None
    return replace(rows, value=value, plain=rows.plain and plain, lowest=lowest)


# Bodies of branches and loops, in which some steps are made.


def _within(step: Step) -> Step:
    """`step`, at times in a body."""

    def found(draw: Choices, rows: Rows, given: Shared) -> Rows:
        if not draw.chance(_IN_BODIES):
            return step(draw, rows, given)
        place = draw.choose(_BODIES)
        noted: list[Rows] = []

        def body(y: pg.Variable) -> pg.Variable:
            noted.append(step(draw, replace(rows, value=y), given))
            return noted[-1].value

        value = place(body, rows.value, given)
        return replace(noted[-1], value=value)

    return found


def _branch(body: Body, y: pg.Variable, given: Shared) -> pg.Variable:
    """The branch that is taken, beside one of ordinary numbers."""
    shapes: list[tuple[int, ...]] = []

    def taken(v: pg.Variable) -> pg.Variable:
        found = body(v)
        shapes.append(found.shape)
        return found

    return pg.cond(given.s < 0.0, lambda v: pg.tanh(given.b) * pg.ones(shapes[0]), taken, y)


_BODIES: tuple[Callable[[Body, pg.Variable, Shared], pg.Variable], ...] = (
    lambda body, y, p: pg.checkpoint(body)(y),
    _branch,
    lambda body, y, p: pg.switch(pg.astype(p.s, "int64") - 1, [body], y),
    lambda body, y, p: pg.map(body, y[None])[0],
    lambda body, y, p: pg.scan(lambda c, v: (c * p.b, body(v)), p.s, y[None], reverse=True)[1][0],
    lambda body, y, p: pg.checkpoint(lambda v: pg.map(body, pg.stack([v, v]))[1])(y),
)


def _carried(draw: Choices, function: Body, y: pg.Variable, trips: int) -> pg.Variable:
    """An elementwise function, made on what goes from trip to trip."""
    kind, kept = draw.below(6), draw.choose((None, "sqrt", 2))
    if kind == 0:
        return pg.fori_loop(0, trips, lambda i, c: function(c), y, checkpoint=kept)
    if kind == 1:
        return pg.while_loop(
            lambda state: state[1] < trips,
            lambda state: (function(state[0]), state[1] + 1),
            (y, 0),
            max_trips=draw.choose((None, trips, trips + 1)),
        )[0]
    if kind == 2:
        (value, _), _ = pg.scan(
            lambda c, _: ((function(c[0]), c[0]), c[0]), (y, y), None, length=trips, checkpoint=kept
        )
        return value
    if kind == 5:
        # What later trips make of it is for nobody.
        count = trips + 1 + draw.below(3)
        kept = "sqrt" if kept == 2 else kept
        rows = pg.scan(lambda c, _: (function(c), c), y, None, length=count, checkpoint=kept)[1]
        return rows[trips]
    if kind == 3 and trips == 1:
        # What is captured is asked for by some trips only.
        rows = np.array([1.0, -1.0]) if draw.chance(0.5) else np.array([-1.0, 1.0, -1.0])
        return pg.scan(
            lambda c, t: (pg.where(t < 0, c, c + function(y)), None), pg.zeros(y.shape), rows
        )[0]
    return pg.scan(lambda c, _: (function(c), None), y, None, length=trips, checkpoint=kept)[0]


# Partial functions. Operands are rows of numbers between 0.3 and 0.9.

_PARTIAL: dict[str, Callable[[pg.Variable, Shared], pg.Variable]] = {
    "log": lambda u, p: pg.log(u),
    "sqrt": lambda u, p: pg.sqrt(u),
    "square root by power": lambda u, p: u**0.5,
    "power": lambda u, p: u**0.3,
    "log2": lambda u, p: pg.log2(u),
    "rsqrt": lambda u, p: -pg.rsqrt(u),
    "reciprocal": lambda u, p: -1.0 / u,
    "arccos": lambda u, p: -pg.arccos(u),
    "arcsin": lambda u, p: pg.arcsin(u),
    "arctanh": lambda u, p: pg.arctanh(u),
    "arccosh": lambda u, p: pg.arccosh(1.0 + u),
    "log1p": lambda u, p: pg.log1p(u - 1.0),
    # The others do not rise, or not by elements.
    "logarithm of one minus": lambda u, p: -pg.log(1.0 - u),
    "negative power": lambda u, p: u**-2,
    "computed power": lambda u, p: pg.power(u, 0.5 * p.s + u),
    "shared power": lambda u, p: pg.power(u, p.s * 0.5),
    "power of a shared one": lambda u, p: pg.power(p.s + 1.0, pg.log(u)),
    "quotient": lambda u, p: p.b / (u * (1.0 - u)),
    "product with a logarithm": lambda u, p: u * pg.log(u),
    "root of a difference": lambda u, p: pg.sqrt(1.0 - u * u),
    "angle": lambda u, p: pg.arctan2(u, u * u),
    "angle with a shared one": lambda u, p: pg.arctan2(u, p.b * u),
    "remainder": lambda u, p: pg.remainder(p.s + 2.05, u),
    "sum of exponentials": lambda u, p: pg.logaddexp(pg.log(u), p.b),
    "sum of no exponentials": lambda u, p: pg.logaddexp(pg.log(u), -np.inf),
    "logarithm of a softmax": lambda u, p: pg.log_softmax(pg.log(u), axis=1),
    "softmax": lambda u, p: pg.softmax(pg.log(u), axis=1),
    "logsumexp": lambda u, p: u * pg.logsumexp(pg.log(u), axis=1, keepdims=True),
    "norm": lambda u, p: pg.norm(u, axis=1, keepdims=True) * u,
    "unit vector": lambda u, p: u / pg.norm(u, axis=1, keepdims=True),
    "standard deviation": lambda u, p: pg.std(u, axis=1, keepdims=True) + u,
    "products": lambda u, p: pg.prod(pg.sqrt(u), axis=1, keepdims=True),
    "running sum": lambda u, p: pg.cumsum(pg.log(u), axis=1),
}
_RISING = list(_PARTIAL)[: list(_PARTIAL).index("log1p") + 1]
_LOWEST_AT_MINUS_ONE = ("arccos", "arcsin", "arctanh")
_NOT_PLAIN = list(_PARTIAL)[list(_PARTIAL).index("logarithm of a softmax") :]


def _partial(draw: Choices, rows: Rows, given: Shared) -> Rows:
    name = draw.choose(_RISING if draw.chance(0.5) else list(_PARTIAL))
    function = partial(_PARTIAL[name], p=given)
    if name in _RISING and draw.chance(_CARRIED):
        value = _carried(draw, function, rows.value, 1)
    else:
        value = function(rows.value)
    lowest = None
    if name in _RISING:
        lowest = -1.0 if name in _LOWEST_AT_MINUS_ONE else 0.0
    plain = rows.plain and name not in _NOT_PLAIN
    return replace(rows, value=value, lowest=lowest, plain=plain)


# What stands between the function and the choice, and behind it.

_ELEMENTWISE: tuple[Callable[[pg.Variable, Shared], pg.Variable], ...] = (
    lambda y, p: pg.tanh(y + p.b),
    lambda y, p: pg.erf(y * p.s) + p.b,
    lambda y, p: pg.sigmoid(y + p.b),
    lambda y, p: pg.arctan(y * p.s),
    lambda y, p: y * p.s + p.b,
    lambda y, p: pg.arcsinh(y) * p.s,
    # Up to here they rise.
    lambda y, p: pg.sin(y * p.b),
    lambda y, p: pg.cos(y + p.b),
    lambda y, p: pg.abs(y) * p.b,
    lambda y, p: pg.exp(-pg.square(y * p.b)),
    lambda y, p: pg.softplus(y) * p.b,
    lambda y, p: pg.gelu(y),
    lambda y, p: pg.silu(y + p.b),
    lambda y, p: pg.relu(y - p.b),
    lambda y, p: pg.square(y) * p.b,
    lambda y, p: pg.maximum(y, p.b),
    lambda y, p: pg.minimum(p.b, y),
    lambda y, p: pg.logaddexp(y, p.b),
    lambda y, p: pg.where(y > p.b, y * p.b, pg.sin(y)),
    lambda y, p: pg.clip(y, -1.5, 1.5) + p.b,
    lambda y, p: pg.log1p(pg.square(y)),
    lambda y, p: pg.sqrt(1.0 + pg.square(y * p.b)),
    lambda y, p: p.b / (1.0 + pg.square(y)),
    lambda y, p: y * pg.stop_gradient(pg.tanh(y)) + p.b,
    lambda y, p: pg.arctan2(y, p.b + 1.0),
    lambda y, p: y - pg.floor(y) * p.b,
)
_OF_THOSE_RISING = 6


def _elementwise(draw: Choices, rows: Rows, given: Shared) -> Rows:
    place = draw.below(_OF_THOSE_RISING if draw.chance(0.4) else len(_ELEMENTWISE))
    function = partial(_ELEMENTWISE[place], p=given)
    if draw.chance(_CARRIED):
        value = _carried(draw, function, rows.value, draw.below(3))
    else:
        value = function(rows.value)
    return _as(rows, value, rising=place < _OF_THOSE_RISING)


_SUMS: tuple[Callable[[pg.Variable, Shared], pg.Variable], ...] = (
    lambda y, p: pg.sum(y, axis=1, keepdims=True) + y * p.b,
    lambda y, p: pg.mean(y, axis=1, keepdims=True),
    lambda y, p: y[:, ::-1] * p.b,
    lambda y, p: pg.concatenate([y, y * p.b], axis=1),
    lambda y, p: pg.reshape(pg.stack([y, p.b * y], axis=1), (y.shape[0], -1)),
    lambda y, p: (y.T * p.s).T,
    lambda y, p: pg.sum(pg.reshape(y, (*y.shape, 1)) * p.w[0], axis=2),
    lambda y, p: pg.pad(y, ((0, 0), (1, 0))) * p.b,
    lambda y, p: pg.sum(pg.repeat(y, 2, axis=1), axis=1, keepdims=True),
)
_MIXTURES: tuple[Callable[[pg.Variable, Shared], pg.Variable], ...] = (
    lambda y, p: y @ p.w[:1].T if y.shape[1] == p.w.shape[1] else y @ pg.ones((y.shape[1], 2)),
    lambda y, p: y[:, :1] @ p.w[:1],
    lambda y, p: pg.einsum("nk,j->nj", y, p.w[0]),
    lambda y, p: (p.w[:, :1] @ y[:, :1].T).T,
    lambda y, p: pg.max(y, axis=1, keepdims=True) * p.b,
    lambda y, p: pg.min(y * p.b, axis=1, keepdims=True) + y,
    lambda y, p: pg.cumsum(y * p.b, axis=1),
    lambda y, p: pg.softmax(y * p.b, axis=1),
    lambda y, p: pg.logsumexp(y * p.b, axis=1, keepdims=True),
    lambda y, p: pg.prod(y, axis=1, keepdims=True) * p.b,
    lambda y, p: pg.norm(y + p.b, axis=1, keepdims=True),
    lambda y, p: pg.layer_norm(y * p.b, axis=1) + y,
    lambda y, p: pg.take(y, [0, -1, 0], axis=1) * p.b,
    lambda y, p: pg.set_slice(y, (slice(None), 0), pg.tanh(y[:, -1]) * p.b),
    lambda y, p: y[:, :1] * p.b,
)


def _sums(draw: Choices, rows: Rows, given: Shared) -> Rows:
    return _as(rows, draw.choose(_SUMS)(rows.value, given))


def _mixture(draw: Choices, rows: Rows, given: Shared) -> Rows:
    return _as(rows, draw.choose(_MIXTURES)(rows.value, given), plain=False)


def _moved(draw: Choices, rows: Rows, given: Shared) -> Rows:
    """The rows in another order, or more of them."""
    y, count, kind = rows.value, rows.value.shape[0], draw.below(5)
    order = np.arange(count)
    if kind == 0:
        value, order = y[::-1], order[::-1]
    elif kind == 1:
        order = np.array(draw.order(count))
        value = pg.take(y, order, axis=0)
    elif kind == 2:
        value, order = pg.roll(y, 1, axis=0), np.roll(order, 1)
    elif kind == 3:
        value, order = pg.repeat(y, 2, axis=0), np.repeat(order, 2)
    else:
        more = pg.tanh(pg.broadcast_to(given.b, (2, y.shape[1])))
        value = pg.concatenate([y, more], axis=0)
        return replace(_as(rows, value, rising=True), fine=np.append(rows.fine, [True, True]))
    return replace(_as(rows, value, rising=True), fine=rows.fine[order])


def _running(draw: Choices, rows: Rows, given: Shared) -> Rows:
    """Sums over all rows before, where the first is ordinary."""
    fine = np.logical_and.accumulate(rows.fine)
    if not fine[0]:
        return rows
    return replace(_as(rows, pg.cumsum(rows.value * given.b, axis=0), plain=False), fine=fine)


_BETWEEN: tuple[Step, ...] = (_elementwise, _sums, _mixture, _moved, _running)
_SHARES = (0.5, 0.14, 0.2, 0.1, 0.06)


def _between(draw: Choices, rows: Rows, given: Shared) -> Rows:
    found: Rows = _within(draw.choose(_BETWEEN, _SHARES))(draw, rows, given)
    return found if found.value.size <= 1000 else rows


# Choices.


def _inside(given: Shared) -> pg.Variable:
    """A condition that ordinary rows fulfil, and no others."""
    first = given.raw[:, :1]
    return pg.logical_and(first > _LOWEST - 0.05, first < _HIGHEST + 0.05)


def _where(draw: Choices, rows: Rows, given: Shared) -> Rows:
    """One of two values by a condition: a constant one, one that is fed, or of the operand."""
    y, kind = rows.value, draw.below(3)
    condition = pg.array(rows.fine[:, None])
    if not given.harmless and np.array_equal(rows.fine, given.fine):
        condition = (condition, given.kept[:, None], _inside(given))[kind]
    other = draw.choose((0.0, given.b * 1.0, pg.sin(given.s) * given.b))
    if draw.chance(0.3):
        value = pg.where(pg.logical_not(condition), other, y)
    elif draw.chance(0.2):
        value = pg.where(condition, pg.where(condition, y, given.b * y), other)
    else:
        value = pg.where(condition, y, other)
    return replace(rows, value=value, fine=np.ones_like(rows.fine))


def _runs(fine: np.ndarray) -> list[tuple[int, int]]:
    """Where runs of rows of one kind begin and end."""
    return list(pairwise([0, *(np.flatnonzero(np.diff(fine)) + 1).tolist(), len(fine)]))


def _slices(draw: Choices, rows: Rows, given: Shared) -> Rows:
    y = rows.value
    parts = [y[i:k] for i, k in _runs(rows.fine) if rows.fine[i]]
    if draw.chance(0.3):
        parts = [part[::-1] for part in parts]
    return _joined(rows, parts)


def _elements(draw: Choices, rows: Rows, given: Shared) -> Rows:
    y = rows.value
    places = np.flatnonzero(rows.fine)[:9].tolist()
    if draw.chance(0.5):
        return _joined(rows, [pg.stack([y[i] * given.b for i in places])])
    total = y[places[0]]
    for i in places[1:]:
        total = total + y[i] * given.b
    return _joined(rows, [total[None]])


def _taken(draw: Choices, rows: Rows, given: Shared) -> Rows:
    places = draw.rng.permutation(np.flatnonzero(rows.fine))
    places = np.append(places, places[:1]) - len(rows.fine) * draw.below(2)
    taken = pg.take(rows.value, places, axis=0) if draw.chance(0.5) else rows.value[places]
    return _joined(rows, [taken])


def _split(draw: Choices, rows: Rows, given: Shared) -> Rows:
    runs = _runs(rows.fine)
    parts = pg.split(rows.value, [k for _, k in runs[:-1]], axis=0)
    return _joined(rows, [x for x, (i, _) in zip(parts, runs, strict=True) if rows.fine[i]])


def _assigned(draw: Choices, rows: Rows, given: Shared) -> Rows:
    """Other numbers in the place of the rows that are left out."""
    value, lost = rows.value, np.flatnonzero(~rows.fine)
    if draw.chance(0.4):
        value = pg.set_slice(value, lost, given.b)
    else:
        for i, k in _runs(rows.fine):
            if not rows.fine[i]:
                value = pg.set_slice(value, slice(i, k), pg.tanh(given.b))
    return replace(rows, value=value, fine=np.ones_like(rows.fine), chosen_by_where=False)


def _joined(rows: Rows, parts: list[pg.Variable]) -> Rows:
    value = pg.concatenate(parts, axis=0) if len(parts) > 1 else parts[0]
    fine = np.ones(value.shape[0], bool)
    return replace(rows, value=value, fine=fine, chosen_by_where=False)


def _extremum(draw: Choices, rows: Rows, given: Shared) -> Rows:
    """The largest element of each column: rows that are left out have lower ones."""
    y, kind = rows.value, draw.below(3)
    if kind == 0:
        value = pg.max(y, axis=0, keepdims=True)
    elif kind == 1:
        value = -pg.min(-y, axis=0, keepdims=True)
    else:
        parts = [y[i] for i in range(len(rows.fine))]
        while len(parts) > 1:
            parts = [pg.maximum(parts[0], parts[1]), *parts[2:]]
        value = parts[0][None]
    return replace(_joined(rows, [value]), beaten=True)


_CHOICES: tuple[Step, ...] = (_where, _slices, _elements, _taken, _split, _assigned)
_CHOICE_SHARES = (0.4, 0.14, 0.1, 0.14, 0.1, 0.12)


def _choice(draw: Choices, rows: Rows, given: Shared) -> Rows:
    """One choice, or two of the same rows, which are added."""
    if rows.fine.all():
        return rows
    if rows.lowest is not None and draw.chance(0.4):
        return _extremum(draw, rows, given)
    one: Rows = draw.choose(_CHOICES, _CHOICE_SHARES)(draw, rows, given)
    if draw.chance(0.7):
        return one
    other: Rows = draw.choose(_CHOICES, _CHOICE_SHARES)(draw, rows, given)
    value = pg.sum(one.value, axis=0, keepdims=True) * given.b + pg.mean(other.value, axis=0)
    by_where = one.chosen_by_where and other.chosen_by_where
    return replace(_joined(one, [value]), chosen_by_where=by_where)


def _behind(draw: Choices, rows: Rows, given: Shared) -> Rows:
    if draw.chance(0.6):
        return _between(draw, rows, given)
    z, b = rows.value, given.b
    found = (
        pg.sum(z, axis=0, keepdims=True) * b,
        z.T @ z,
        pg.reshape(z, (-1, 1)) * b,
        pg.max(z, axis=0, keepdims=True),
        z - pg.mean(z, axis=0) * b,
    )
    value = found[draw.below(len(found))]
    return _joined(rows, [value if value.size <= 1000 else z])


# Programs.


def _operand(kind: int, x: pg.Variable, given: Shared) -> pg.Variable:
    """`x`, as a function of what is shared too."""
    if kind == 0:
        return x * given.s
    if kind == 1:
        return (x + given.b) - given.b
    return x @ given.eye if kind == 2 else x


@dataclass(frozen=True)
class GuardedProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()

    def draw(self, step: int) -> Choices:
        """What a step chooses at random does not depend on the steps before."""
        return Choices(np.random.default_rng((self.seed, 7, step)))

    @cached_property
    def fine(self) -> np.ndarray:
        """Which rows are ordinary: some are, and some are not."""
        draw = self.draw(0)
        count = 63 + draw.below(4) if draw.chance(_WIDE) else draw.below(7, 2)
        fine = np.asarray(draw.rng.random(count) < 0.6)
        fine[list(draw.order(count)[:2])] = True, False
        return fine

    @cached_property
    def shape(self) -> tuple[int, int]:
        return len(self.fine), self.draw(1).below(4, 1)

    @cached_property
    def steps(self) -> list[Step]:
        """What stands before the choice, the choice, and what stands behind it."""
        before, after = self.draw(4).below(_STEPS_BEFORE), self.draw(5).below(_STEPS_AFTER)
        return [*[_between] * before, _choice, *[_behind] * after]

    @property
    def count(self) -> int:
        return len(self.steps)

    @property
    def types(self) -> list[TensorType]:
        n, k = self.shape
        return [pg.spec((n, k)), *map(pg.spec, ((), (), (2, k), (k, k))), pg.spec(n, "bool")]

    def graph(self, harmless: bool) -> Graph:
        """From rows, shared numbers and what is chosen to one number, in primitives.

        With `harmless` the rows that are left out hold ordinary numbers from the start.
        """
        graph = pg.trace(lambda *inputs: self._built(harmless, *inputs)[0], *self.types)
        return lower(graph)

    @cached_property
    def singular(self) -> tuple[float, ...]:
        """What the rows that are left out may hold."""
        found: list[Rows] = []
        pg.trace(lambda *inputs: self._noted(found, *inputs), *self.types)
        (rows,) = found
        if rows.beaten and rows.lowest is not None:
            return (rows.lowest,)
        return _SINGULAR + 2 * _NOT_FINITE * (rows.plain and rows.chosen_by_where)

    def _noted(self, found: list[Rows], *inputs: pg.Variable) -> pg.Variable:
        result, rows = self._built(False, *inputs)
        found.append(rows)
        return result

    def _built(self, harmless: bool, *inputs: pg.Variable) -> tuple[pg.Variable, Rows]:
        x, b, s, w, eye, kept = inputs
        how = self.draw(2)
        kind = how.below(5)
        raw = _operand(kind, x, Shared(b, s, w, eye, x, kept, self.fine, harmless))
        given = Shared(b, s, w, eye, raw, kept, self.fine, harmless)
        if harmless:
            x = pg.where(pg.array(self.fine[:, None]), x, _LOWEST - 0.05)
        rows = Rows(_operand(kind, x, given) if harmless else raw, self.fine, kind != 2)
        rows = _within(_partial)(self.draw(3), rows, given)
        guarded = rows
        for i, step in enumerate(self.steps):
            if i not in self.left_out or step is _choice:
                rows = step(self.draw(6 + i), rows, given)
                guarded = rows if step in (_between, _choice) else guarded
        weights = pg.cos(pg.arange(rows.value.size, dtype="float64"))
        return pg.sum(pg.flatten(rows.value * rows.value * b) * weights), guarded

    def feeds(self, number: int = 0) -> list[np.ndarray]:
        """Arrays at which the partial function is singular in the rows that are left out."""
        draw, (n, k) = self.draw(100 + number), self.shape
        x = draw.rng.uniform(_LOWEST, _HIGHEST, (n, k))
        lost = draw.rng.choice(self.singular, (n, k))
        lost[:, 1:] = lost[:, :1] if draw.chance(0.5) else lost[:, 1:]
        x[~self.fine] = lost[~self.fine]
        w = draw.rng.normal(size=(2, k))
        return [x, np.array(0.7), np.array(1.0), w, np.eye(k), self.fine.copy()]

    def __str__(self) -> str:
        feeds = "\n".join(f"  {x!r}" for x in self.feeds())
        return f"guarded program {self.seed}\n{self.graph(harmless=False)}\nfeeds:\n{feeds}"
