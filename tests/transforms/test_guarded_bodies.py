"""What a `where` throws away of branches, loops and checkpoints puts no NaN into derivatives."""

from collections.abc import Callable

import numpy as np
import pytest
from derive import cotangents_of, tangents_of
from program_unrolled import unrolled

import primgraph as pg
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.transforms import lower
from primgraph.transforms.optimize.clean_up import clean_up

Function = Callable[[pg.Variable], pg.Variable]

# At the last two a square root of a square root has no finite slope.
_X = np.array([0.5, 0.7, -1.0, 0.0])


def _twice(t: pg.Variable) -> pg.Variable:
    return pg.sqrt(pg.sqrt(t))


def _chosen(function: Function) -> Function:
    return lambda x: pg.where(x > 0, function(x), 0.0)


def _chosen_by_it(function: Function) -> Function:
    """A part of what `function` gives, chosen by what it gives."""

    def chosen(x: pg.Variable) -> pg.Variable:
        found = function(x)
        return pg.where(found > 0.01, pg.sqrt(found) * found, found)

    return chosen


def _trips(x: pg.Variable, trips: int) -> pg.Variable:
    """That number, which only a run knows: no loop is left out before."""
    return pg.where(pg.sum(x) < 9.0, trips, 5)


def _two_in_turn(trips: int) -> Function:
    return lambda x: pg.while_loop(
        lambda state: state[0] < _trips(x, trips),
        lambda state: (state[0] + 1, pg.tanh(state[2]), state[1]),
        (0, pg.sin(x), x),
    )[1]


def _in_turn(count: int, limit: int | None) -> Function:
    return lambda x: pg.while_loop(
        lambda state: state[1] < count,
        lambda state: (pg.sqrt(state[0]), state[1] + 1),
        (x, 0),
        max_trips=limit,
    )[0]


def _sums_of_rows(x: pg.Variable) -> pg.Variable:
    rows = pg.map(lambda row: pg.rsqrt(pg.cumsum(row)), pg.stack([x, x], axis=1))
    return rows[:, 1]


def _with_rows(x: pg.Variable) -> pg.Variable:
    """A loop of two carries, of which one is asked for by trips only, and a stack."""
    last, rows = pg.scan(
        lambda c, _: ((pg.sqrt(c[0] * c[1]), c[0]), pg.sqrt(c[0])), (x, x), None, length=2
    )
    return last[0] + pg.sum(rows, axis=0)


def _unrolled_rows(x: pg.Variable) -> pg.Variable:
    one = pg.sqrt(x * x)
    return pg.sqrt(one * x) + pg.sqrt(x) + pg.sqrt(one)


# With bodies, and without.
_PAIRS: dict[str, tuple[Function, Function]] = {
    "checkpoint": (_chosen(pg.checkpoint(_twice)), _chosen(_twice)),
    "scan": (
        _chosen(lambda x: pg.scan(lambda c, _: (pg.sqrt(c), None), x, None, length=2)[0]),
        _chosen(_twice),
    ),
    "scan of two carries": (_chosen(_with_rows), _chosen(_unrolled_rows)),
    "map": (_chosen(lambda x: pg.map(_twice, x)), _chosen(_twice)),
    "fori_loop": (
        _chosen(lambda x: pg.fori_loop(0, 2, lambda i, c: pg.sqrt(c), x)),
        _chosen(_twice),
    ),
    "while_loop": (_chosen(_in_turn(2, None)), _chosen(_twice)),
    "while_loop with a limit": (_chosen(_in_turn(2, 3)), _chosen(_twice)),
    "cond": (
        _chosen(lambda x: pg.cond(pg.sum(x) < 9.0, _twice, lambda t: t, x)),
        _chosen(_twice),
    ),
    "switch": (
        _chosen(lambda x: pg.switch(pg.astype(pg.sum(x), "int64"), [_twice, pg.exp], x)),
        _chosen(_twice),
    ),
    "while_loop without trips": (_chosen_by_it(_two_in_turn(0)), _chosen_by_it(pg.sin)),
    "while_loop with a trip": (_chosen_by_it(_two_in_turn(1)), _chosen_by_it(pg.tanh)),
    "fori_loop without trips": (
        _chosen_by_it(lambda x: pg.fori_loop(
            0, _trips(x, 0), lambda i, c: pg.tanh(c), pg.sin(x))),
        _chosen_by_it(pg.sin),
    ),
    "captured": (
        _chosen(lambda x: pg.fori_loop(0, 2, lambda i, c: c * pg.sqrt(x), pg.ones(4))),
        _chosen(lambda x: pg.sqrt(x) * pg.sqrt(x)),
    ),
    "captured, and asked for by some trips": (
        _chosen(lambda x: pg.scan(lambda c, t: (pg.where(t < 0, c, c * pg.log(x)), None),
                                  x, np.array([-1.0, 1.0]))[0]),
        _chosen(lambda x: x * pg.log(x)),
    ),
    "a solution of what was chosen": (
        _chosen(lambda x: pg.root(lambda y: y * y - pg.where(x > 0, x, 1.0), pg.ones(4))),
        _chosen(pg.sqrt),
    ),
    "solutions of what was chosen": (
        pg.vmap(_chosen(lambda x: pg.fixed_point(
            lambda y: 0.5 * (y + pg.where(x > 0, x, 1.0) / y), pg.array(1.0)))),
        _chosen(pg.sqrt),
    ),
    "before a body": (
        _chosen(lambda x: pg.checkpoint(pg.tanh)(pg.sqrt(x))),
        _chosen(lambda x: pg.tanh(pg.sqrt(x))),
    ),
    "chosen within": (
        lambda x: pg.checkpoint(_chosen(_twice))(pg.sqrt(x)),
        lambda x: _chosen(_twice)(pg.sqrt(x)),
    ),
    "zeros that go in": (
        lambda x: pg.fori_loop(0, 2, lambda i, c: pg.sqrt(c), pg.where(x > 0, x, 0.0)),
        lambda x: _twice(pg.where(x > 0, x, 0.0)),
    ),
    "the larger one": (
        lambda x: pg.maximum(pg.checkpoint(pg.sqrt)(x * x), 0.6),
        lambda x: pg.maximum(pg.sqrt(x * x), 0.6),
    ),
    "running sums in a checkpoint": (
        lambda x: pg.where(x > 0, pg.checkpoint(_sums_of_rows)(pg.sqrt(x)), 0.0),
        lambda x: pg.where(x > 0, pg.rsqrt(pg.sqrt(x) * 2.0), 0.0),
    ),
    "nested": (
        _chosen(lambda x: pg.fori_loop(0, 2, lambda i, c: pg.checkpoint(
            lambda t: pg.cond(pg.sum(x) < 9.0, pg.sqrt, pg.exp, t))(c), x)),
        _chosen(_twice),
    ),
    "many samples, each of its own branch": (
        pg.vmap(lambda t: pg.cond(t > 0, lambda u: pg.fori_loop(0, 2, lambda i, c: pg.sqrt(c), u),
                                  lambda u: u * 0.0, t)),
        _chosen(_twice),
    ),
    "many samples": (pg.vmap(_chosen(pg.checkpoint(_twice))), _chosen(_twice)),
}  # fmt: skip


def _graph(function: Function) -> Graph:
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    return lower(pg.trace(lambda x: pg.sum(pg.square(function(x)) * weights), pg.spec(4)))


def _derived(graph: Graph, modes: str) -> Graph:
    for mode in modes:
        graph = (tangents_of if mode == "f" else cotangents_of)(graph, [0])
        graph = clean_up(graph)
    return graph


# Rows of these are chosen each in its own way; the last sample has rows at trip 0 alone.
_ROWS = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]], bool)
_FACTORS = np.array([1.0, 1.2, 1.3, 1.0, 0.9])
_PADDED = np.where(_ROWS, np.linspace(0.1, 0.6, 20).reshape(5, 4), np.nan)


_OF_SECOND_ORDER = ("rows, each of its own", "rows, and the end", "series that end")


def _some_rows(checkpoint: str | None, reverse: bool = False) -> Function:
    chosen = _ROWS[::-1] if reverse else _ROWS

    def function(x: pg.Variable) -> pg.Variable:
        rows = pg.scan(
            lambda c, t: (pg.sqrt(c * t), c * t), x, _FACTORS,
            reverse=reverse, checkpoint=checkpoint,
        )[1]  # fmt: skip
        return pg.sum(pg.where(chosen, rows, 0.0), axis=0)

    return function


def _first_row(checkpoint: str | None) -> Function:
    return lambda x: pg.scan(
        lambda c, _: (pg.sqrt(c), c), x, None, length=4, checkpoint=checkpoint
    )[1][0]


def _rows_and_end(x: pg.Variable) -> pg.Variable:
    c, rows = pg.scan(lambda c, t: (pg.sqrt(c * t), pg.concatenate([c, c * t])), x, _FACTORS)
    chosen = pg.where(np.concatenate([_ROWS, _ROWS], axis=1), rows, 0.0)
    return pg.where(x > 0, c, 0.0) + pg.sum(chosen, axis=0)[4:]


def _rows_by_what_is_fed(x: pg.Variable) -> pg.Variable:
    rows = pg.scan(lambda c, t: (pg.sqrt(c * t), c * t), x, _FACTORS)[1]
    chosen = pg.arange(5)[:, None] < pg.astype(x * 4, "int64") + 1
    return pg.sum(pg.where(pg.logical_and(chosen, x > -0.5), rows, 0.0), axis=0)


def _padded(checkpoint: str | None) -> Function:
    """Series of which the shorter ones end in NaN, for samples that share nothing."""
    valid = np.logical_and.accumulate(~np.isnan(_PADDED))

    def function(x: pg.Variable) -> pg.Variable:
        def trip(state: pg.Variable, t: pg.Variable) -> tuple[pg.Variable, pg.Variable]:
            state = pg.tanh(state @ np.array([[0.5, 0.2], [-0.3, 0.4]]) + (t * x)[:, None])
            return state, state @ np.array([0.7, -0.4])

        rows = pg.scan(trip, pg.ones((4, 2)), _PADDED, checkpoint=checkpoint)[1]
        return pg.sum(pg.where(valid, rows, 0.0), axis=0)

    return function


_LOOPS: dict[str, Function] = {
    "rows, each of its own": _some_rows(None),
    "rows from the last one on": _some_rows(None, reverse=True),
    "rows of segments": _chosen(lambda x: pg.sum(pg.scan(
        lambda c, _: (pg.sqrt(c), pg.sqrt(c)), x, None, length=4, checkpoint="sqrt")[1], axis=0)),
    "the first row alone": _first_row(None),
    "the first row of segments": _first_row("sqrt"),
    "rows, and the end": _rows_and_end,
    "rows by what is fed": _rows_by_what_is_fed,
    "series that end": _padded(None),
    "series that end, in segments": _padded("sqrt"),
}  # fmt: skip
_OF_FIRST_ORDER: dict[str, Function] = {
    "rows of segments, each of its own": _some_rows("sqrt"),
}


_V, _ONE = np.array([0.3, -0.4, 0.5, 0.6]), np.ones(())
_GIVEN = {
    "r": (_ONE,), "f": (_V,), "rr": (_ONE, _V), "rf": (_ONE, _V), "fr": (_V, _ONE), "ff": (_V, _V),
}  # fmt: skip


@pytest.mark.parametrize("name", _PAIRS)
def test_what_is_not_chosen_of_a_body_matters_to_no_derivative(name: str) -> None:
    """Of first and second order, in both modes, they are those of the program without bodies."""
    graph, plain = map(_graph, _PAIRS[name])
    with np.errstate(all="ignore"):
        for modes, given in _GIVEN.items():
            found = interpret(_derived(graph, modes), _X, *given)
            wanted = interpret(_derived(plain, modes), _X, *given)
            for a, b in zip(found, wanted, strict=True):
                assert np.isfinite(b).all()
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14, err_msg=modes)


@pytest.mark.parametrize("name", _PAIRS)
def test_gradients_of_gradients_are_those_without_bodies(name: str) -> None:
    """A sum asks for all elements alike, so that only the choice tells them apart."""

    def slopes(function: Function) -> Function:
        first = pg.grad(lambda x: pg.sum(function(x)))
        return pg.grad(lambda x: pg.sum(first(x) * _V))

    bodies, plain = (pg.trace(slopes(f), pg.spec(4)) for f in _PAIRS[name])
    with np.errstate(all="ignore"):
        (found,), (wanted,) = interpret(bodies, _X), interpret(plain, _X)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", _LOOPS)
def test_rows_of_a_loop_matter_to_the_trips_before_them_alone(name: str) -> None:
    """Derivatives are those of all trips written one after the other."""
    graph = _graph(_LOOPS[name])
    with np.errstate(all="ignore"):
        plain = unrolled(graph, [_X])
        for modes in ("r", "f", "rr", "fr") if name in _OF_SECOND_ORDER else ("r", "f"):
            found = interpret(_derived(graph, modes), _X, *_GIVEN[modes])
            wanted = interpret(_derived(plain, modes), _X, *_GIVEN[modes])
            for a, b in zip(found, wanted, strict=True):
                assert np.isfinite(b).all()
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13, err_msg=modes)


@pytest.mark.parametrize("style", ["readable", "planned"])
def test_kernels_of_guarded_bodies(style: str) -> None:
    functions = [_PAIRS[name][0] for name in ("checkpoint", "scan of two carries", "while_loop")]
    for function in (*functions, _some_rows("sqrt"), _rows_and_end):
        graph = _derived(_graph(function), "r")
        with np.errstate(all="ignore"):
            (wanted,) = interpret(graph, _X, _ONE)
            (found,) = pg.compile(graph, style=style)(_X, _ONE)
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("limit", [None, 3])
def test_no_mark_stays_where_nothing_is_steep(limit: int | None) -> None:
    """A loop of functions whose slopes are finite is differentiated as if nothing was chosen."""

    def function(x: pg.Variable) -> pg.Variable:
        found = pg.while_loop(
            lambda s: s[1] < 2, lambda s: (pg.tanh(s[0]), s[1] + 1), (x, 0), max_trips=limit
        )
        return pg.maximum(found[0], 0.1)

    graph = _derived(_graph(function), "r")
    names = {e.op.name for b in _bodies(graph) for e in b.body}
    assert "mul" in names
    assert names.isdisjoint({"select", "as_another"})


def _bodies(graph: Graph) -> list[Graph]:
    return [b for e in graph.body for b in e.bodies]
