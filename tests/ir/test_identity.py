"""Equal expressions are different variables: a derivative by one does not count the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.numpy as npg

POINT = np.array([2.0, 3.0])

Make = Callable[[Any], Any]

# What gives the elements of its argument, or of twice that, as a variable of its own.
MAKERS: dict[str, Make] = {
    "product": lambda s: s * 2.0,
    "sum with zero": lambda s: s + 0.0,
    "product with one": lambda s: s * 1.0,
    "negated twice": lambda s: pg.negative(-s),
    "assign": pg.assign,
    "slice of everything": lambda s: s[:],
    "ellipsis": lambda s: s[...],
    "transposed twice": lambda s: s.T.T,
    "reshape": lambda s: pg.reshape(s, s.shape),
    "reshape method": lambda s: s.reshape(2),
    "ravel": pg.ravel,
    "cast": lambda s: s.astype(np.float64),
    "stop_gradient": pg.stop_gradient,
    "detach": lambda s: s.detach(),
    "broadcast": lambda s: pg.broadcast_to(s, s.shape),
    "softplus": pg.softplus,
    "split": lambda s: pg.split(s, 1)[0],
    "squeeze": lambda s: pg.squeeze(s[None]),
    "dropout": lambda s: pg.dropout(s, 0, training=False),
    "cond": lambda s: pg.cond(pg.sum(s) > 0.0, lambda: s, lambda: s * 2.0),
    "same in both branches": lambda s: pg.cond(pg.sum(s) > 0.0, lambda: s, lambda: s),
    "scan": lambda s: pg.scan(lambda c, _: (c * 2.0, None), s, length=2)[0],
    "scan that carries on": lambda s: pg.scan(lambda c, _: (c, None), s, length=2)[0],
    "while_loop": lambda s: pg.while_loop(lambda c: pg.sum(c) < 20.0, lambda c: c * 2.0, s),
    "vmap": lambda s: pg.vmap(lambda e: e * 2.0)(s),
    "vmap of nothing": lambda s: pg.vmap(lambda e: e)(s),
    "checkpoint": lambda s: pg.checkpoint(lambda v: v * 2.0)(s),
    "checkpoint of nothing": lambda s: pg.checkpoint(lambda v: v)(s),
    "gradient": lambda s: pg.grad(lambda v: pg.sum(v**2))(s),
    "gradient of variables": lambda s: _slope(s),
    "vjp": lambda s: pg.vjp(lambda v: v * 2.0, s)[1],
    "function's value": lambda s: pg.value_and_grad(lambda v: pg.sum(v**2))(s)[0] * pg.ones(2),
}


def _slope(s: Any) -> Any:
    return slope_of(pg.sum(s * s), s)


def slope_of(y: Any, x: Any) -> Any:
    """The gradient, which can be taken again."""
    if not isinstance(y, pg.Tensor):
        return pg.grad(y, x)
    found = pg.grad(y, x, create_graph=True)
    return found if isinstance(x, list) else found[0]


# Those through which derivatives go.
SHARED = [name for name in MAKERS if name not in ("stop_gradient", "detach")]

# Where programs are built, or computed as they go.


def in_program(function: Make) -> list[np.ndarray[Any, Any]]:
    with pg.Program() as program:
        found = function(pg.data("s", (2,)))
    return pg.Executor().run(program, {"s": POINT}, list(found))


def traced(function: Make) -> list[np.ndarray[Any, Any]]:
    graph = pg.trace(function, pg.spec((2,)))
    assert pg.parse(str(graph)) == graph
    return [np.asarray(v) for v in pg.compile(graph)(POINT)]


def jitted(function: Make) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(v) for v in pg.jit(function)(POINT)]


def on_tensors(function: Make) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(v) for v in function(pg.tensor(POINT, requires_grad=True))]


def in_loop(function: Make) -> list[np.ndarray[Any, Any]]:
    def whole(s: Any) -> Any:
        return pg.scan(lambda carry, _: (carry, tuple(function(s))), 0.0, length=1)[1]

    return [np.asarray(v)[0] for v in pg.jit(whole)(POINT)]


def in_branch(function: Make) -> list[np.ndarray[Any, Any]]:
    def whole(s: Any) -> Any:
        return pg.cond(pg.sum(s) > 0.0, lambda: tuple(function(s)), lambda: tuple(function(s + 1)))

    return [np.asarray(v) for v in pg.jit(whole)(POINT)]


def saved_and_loaded(function: Make, tmp_path: Any) -> list[np.ndarray[Any, Any]]:
    with pg.Program() as program:
        found = function(pg.data("s", (2,)))
    for i, v in enumerate(found):
        v.name = f"r{i}"
    pg.save(program, tmp_path / "program.pgz")
    again = pg.load(tmp_path / "program.pgz")
    fetched = [again.variable(f"r{i}") for i in range(len(found))]
    return pg.Executor().run(again, {"s": POINT}, fetched)


WORLDS = [in_program, traced, jitted, on_tensors, in_loop, in_branch]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", MAKERS)
def test_a_derivative_by_one_of_two_equal_variables_does_not_count_the_other(
    name: str, world: Any
) -> None:
    if world is on_tensors and name not in SHARED:
        pytest.skip("a tensor that is held constant requires no gradient")
    make = MAKERS[name]

    def slopes(s: Any) -> Any:
        a, b = make(s), make(s)
        y = pg.sum(a * a * b)
        return a, b, slope_of(y, a), slope_of(y, b), *slope_of(y, [b, a])

    a, b, by_a, by_b, second, first = world(slopes)
    np.testing.assert_array_equal(a, b)
    for found in (by_a, first):
        np.testing.assert_allclose(found, 2.0 * a * b, rtol=1e-15)
    for found in (by_b, second):
        np.testing.assert_allclose(found, a * a, rtol=1e-15)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", SHARED)
def test_derivatives_of_derivatives_tell_equal_variables_apart(name: str, world: Any) -> None:
    make = MAKERS[name]

    def slopes(s: Any) -> Any:
        a, b = make(s), make(s)
        y = pg.sum(a * a * b)
        by_a = slope_of(y, a)
        through = slope_of(y, s)
        return a, slope_of(pg.sum(by_a), a), slope_of(pg.sum(by_a), b), slope_of(pg.sum(through), s)

    a, twice, mixed, whole = world(slopes)
    np.testing.assert_allclose(twice, 2.0 * a, rtol=1e-15)
    np.testing.assert_allclose(mixed, 2.0 * a, rtol=1e-15)

    def together(s: Any) -> Any:
        a = make(s)
        return (slope_of(pg.sum(slope_of(pg.sum(a * a * a), s)), s),)

    np.testing.assert_allclose(whole, world(together)[0], rtol=1e-13)


@pytest.mark.parametrize("name", MAKERS)
def test_matrices_and_forward_mode_tell_equal_variables_apart(name: str) -> None:
    make = MAKERS[name]

    def slopes(s: Any) -> Any:
        a, b = make(s), make(s)
        y = pg.sum(a * a * b)
        return (
            a,
            pg.forward_grad(y, a),
            pg.forward_grad(y, a, order=2),
            pg.hessian(y, a),
            pg.hessian_diagonal(y, a),
            pg.laplacian(y, a),
            pg.Jacobian(a * b, a)[...],
            pg.taylor(y, b, 2)[1],
        )

    for world in (in_program, jitted):
        a, slope, second, hessian, diagonal, laplacian, jacobian, by_b = world(slopes)
        np.testing.assert_allclose(slope, np.sum(2.0 * a * a), rtol=1e-15)
        np.testing.assert_allclose(second, np.sum(2.0 * a), rtol=1e-15)
        np.testing.assert_allclose(hessian, np.diag(2.0 * a), rtol=1e-15)
        np.testing.assert_allclose(diagonal, 2.0 * a, rtol=1e-15)
        np.testing.assert_allclose(laplacian, np.sum(2.0 * a), rtol=1e-15)
        np.testing.assert_allclose(jacobian, np.diag(a), rtol=1e-15)
        np.testing.assert_allclose(by_b, np.sum(a * a), rtol=1e-15)


@pytest.mark.parametrize("name", MAKERS)
def test_loaded_programs_keep_equal_variables_apart(name: str, tmp_path: Any) -> None:
    make = MAKERS[name]

    def slopes(s: Any) -> Any:
        a, b = make(s), make(s)
        return a + 0.0, slope_of(pg.sum(a * a * b), b)

    for a, by_b in (in_program(slopes), saved_and_loaded(slopes, tmp_path)):
        np.testing.assert_allclose(by_b, a * a, rtol=1e-15)


def test_loaded_and_cloned_programs_are_differentiated_by_one_of_two_equal_variables(
    tmp_path: Any,
) -> None:
    with pg.Program() as program:
        s = pg.data("s", (2,))
        a, b = s * 2.0, s * 2.0
        a.name, b.name = "a", "b"
        (a * b).name = "y"
    pg.save(program, tmp_path / "program.pgz")
    for other in (program.clone(), pg.load(tmp_path / "program.pgz")):
        with other:
            slope = slope_of(other.variable("y"), other.variable("a"))
        found = pg.Executor().run(other, {"s": POINT}, [slope])
        np.testing.assert_array_equal(found[0], [4.0, 6.0])


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    "make", [lambda: pg.ones(2), lambda: pg.full((2,), 2.0), lambda: pg.array(POINT)]
)
def test_equal_constants_are_different_variables(make: Any, world: Any) -> None:
    if world is on_tensors:
        pytest.skip("tensors that nothing requires gradients of have none")

    def slopes(s: Any) -> Any:
        a, b = make(), make()
        y = pg.sum(s * a * a * b)
        by_a = slope_of(y, a)
        through = slope_of(y, s)
        return (
            a,
            by_a,
            slope_of(by_a, b),
            slope_of(pg.sum(through), a),
            slope_of(pg.sum(through), b),
        )

    a, by_a, mixed, first, second = world(slopes)
    np.testing.assert_allclose(by_a, 2.0 * POINT * a * a, rtol=1e-15)
    np.testing.assert_allclose(mixed, 2.0 * POINT * a, rtol=1e-15)
    np.testing.assert_allclose(first, 2.0 * a * a, rtol=1e-15)
    np.testing.assert_allclose(second, a * a, rtol=1e-15)


@pytest.mark.parametrize("world", WORLDS)
def test_two_players_that_start_alike_go_their_own_ways(world: Any) -> None:
    def play(start: Any) -> Any:
        p1, p2 = start + 0.0, start + 0.0
        for _ in range(3):
            loss = pg.sum(p1**2 - p2**2 + p1 * p2)
            g1, g2 = slope_of(loss, p1), slope_of(loss, p2)
            p1, p2 = p1 - 0.1 * g1, p2 + 0.1 * g2
        return p1, p2

    p1 = p2 = POINT
    for _ in range(3):
        p1, p2 = p1 - 0.1 * (2 * p1 + p2), p2 + 0.1 * (-2 * p2 + p1)
    found = world(play)
    np.testing.assert_allclose(found, [p1, p2], rtol=1e-14)


def test_values_of_operators_and_derivatives_are_nobody_elses() -> None:
    """What an operator computes on the way, or a derivative, is no variable of the user's."""
    with pg.Program() as program:
        x = pg.data("x", (3,))
        inner = x - pg.max(x)  # softmax has that as well
        y = pg.sum(pg.softmax(x) * inner)
        slope = slope_of(y, inner)
        cosine = pg.cos(x)
        derived = slope_of(pg.sum(pg.sin(x)), x)
        weighted = slope_of(pg.sum(derived * cosine), cosine)
    point = np.array([0.1, 0.2, 0.7])
    found = pg.Executor().run(program, {"x": point}, [slope, weighted])
    soft = np.exp(point - point.max())
    np.testing.assert_allclose(found[0], soft / soft.sum(), rtol=1e-14)
    np.testing.assert_allclose(found[1], np.cos(point), rtol=1e-14)


def test_the_same_gradient_asked_for_twice_is_computed_once() -> None:
    def twice(x: Any) -> Any:
        y = pg.sum(pg.tanh(x * x) * pg.exp(x))
        return slope_of(y, x), slope_of(y, x)

    def once(x: Any) -> Any:
        return slope_of(pg.sum(pg.tanh(x * x) * pg.exp(x)), x)

    two = pg.compile(pg.trace(twice, pg.spec((4,))))
    one = pg.compile(pg.trace(once, pg.spec((4,))))
    assert len(two.graph) == len(one.graph)
    first, second = two(np.linspace(0.0, 1.0, 4))
    np.testing.assert_array_equal(first, second)
    assert not np.shares_memory(first, second)
    # Recording it again adds an equation for the result, and none for what it comes from.
    with pg.Program() as program:
        x = pg.data("x", (4,))
        y = pg.sum(pg.tanh(x * x) * pg.exp(x))
        slope_of(y, x)
        before = len(program.operators())
        slope_of(y, x)
        assert len(program.operators()) - before <= 2


def test_a_flag_counts_for_one_of_two_equal_variables() -> None:
    with pg.Program() as program:
        x = pg.data("x", (2,))
        a, b = x * 2.0, x * 2.0
        y = pg.sum(a * b)
        a.stop_gradient = True
        slope = slope_of(y, x)
        a.stop_gradient = False
        whole = slope_of(y, x)
    found = pg.Executor().run(program, {"x": POINT}, [slope, whole])
    np.testing.assert_array_equal(found[0], 4.0 * POINT)
    np.testing.assert_array_equal(found[1], 8.0 * POINT)


def test_a_value_returned_twice_is_two_variables() -> None:
    def slopes(s: Any) -> Any:
        (a, b), _ = pg.scan(lambda c, _: (c, None), (s, s), length=1)
        y = pg.sum(a * a * b)
        return slope_of(y, a), slope_of(y, b)

    for world in (in_program, traced, jitted):
        by_a, by_b = world(slopes)
        np.testing.assert_array_equal(by_a, 2.0 * POINT**2)
        np.testing.assert_array_equal(by_b, POINT**2)


def _doubled(s: Any) -> tuple[Any, Any]:
    return s * 2.0, s * 2.0


# What returns two variables of the same elements at once.
PAIRS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda s: pg.vmap(_doubled)(s),
    "vmap, one listed twice": lambda s: pg.vmap(lambda e: [e * 2.0] * 2)(s),
    "jit": lambda s: pg.jit(_doubled)(s),
    "checkpoint": lambda s: pg.checkpoint(_doubled)(s),
    "gradients of two arguments": lambda s: pg.grad(
        lambda x, y: pg.sum(x * x + y * y), argnums=(0, 1)
    )(s, s),
    "gradients by one input twice": lambda s: slope_of(pg.sum(s * s), [s, s]),
    "vjp": lambda s: pg.vjp(_doubled, s)[0],
    "vjp of two arguments": lambda s: pg.vjp(lambda x, y: (x * x + y * y) / 2.0, [s, s])[1],
    "jvp": lambda s: pg.jvp(lambda x: (x * x, x * x), s)[1],
    "split": lambda s: pg.split(pg.concatenate([s, s]), 2),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", PAIRS)
def test_equal_variables_that_one_call_returns_do_not_depend_on_each_other(
    name: str, world: Any
) -> None:
    def slopes(s: Any) -> Any:
        a, b = PAIRS[name](s)
        y = pg.sum(a * a * b)
        by_a = slope_of(y, a)
        return a, by_a, slope_of(y, b), slope_of(pg.sum(by_a), b)

    a, by_a, by_b, mixed = world(slopes)
    np.testing.assert_allclose(by_a, 2.0 * a * a, rtol=1e-15)
    np.testing.assert_allclose(by_b, a * a, rtol=1e-15)
    np.testing.assert_allclose(mixed, 2.0 * a, rtol=1e-15)


def test_a_value_and_its_derivative_may_be_equal() -> None:
    """The slope of `exp` is its result, as that of `tanh` is written from its result."""
    for made in (lambda x: pg.vjp(pg.exp, x), lambda x: pg.jvp(pg.exp, x)):
        with pg.Program() as program:
            y, slope = made(pg.data("x", ()))
            by_result = pg.grad(slope * slope, y)
        (found,) = pg.Executor().run(program, {"x": 0.5}, [by_result])
        np.testing.assert_allclose(found, 2.0 * np.exp(0.5), rtol=1e-15)


# Arrays that are assigned to: each pair holds the elements of `x`.
def _copies(x: Any) -> Any:
    y = npg.asarray(x).copy() + 0.0
    y = npg.copy(y)
    return y.copy(), y.copy()


def _views_that_see_a_change(x: Any) -> Any:
    y = npg.zeros(2)
    a, b = y[:], y[:]
    y[:] = x
    return a, b


def _narrowed(x: Any) -> Any:
    a, b = npg.zeros(2, dtype=np.float32), npg.zeros(2, dtype=np.float32)
    a[:], b[:] = x, x
    return a, b


def _added_in_place(x: Any) -> Any:
    a, b = npg.zeros(2), npg.zeros(2)
    a += x
    b += x
    return a, b


@pytest.mark.parametrize("world", [traced, jitted])
@pytest.mark.parametrize("make", [_copies, _views_that_see_a_change, _narrowed, _added_in_place])
def test_equal_arrays_that_are_assigned_to_are_different_variables(make: Any, world: Any) -> None:
    def slopes(x: Any) -> Any:
        a, b = make(x)
        y = npg.sum(a * a * b)
        return pg.grad(y, a), pg.grad(y, b)

    by_a, by_b = world(slopes)
    np.testing.assert_allclose(by_a, 2.0 * POINT**2, rtol=1e-6)
    np.testing.assert_allclose(by_b, POINT**2, rtol=1e-6)


@pytest.mark.parametrize(
    "view",
    [
        lambda y: y[:],
        lambda y: y.reshape(2),
        lambda y: np.reshape(y, (2,)),
        lambda y: y.ravel(),
        lambda y: y.T,
        lambda y: np.atleast_1d(y),
        lambda y: y[:][:],
    ],
)
def test_a_view_that_is_an_equal_variable_is_a_view_still(view: Any) -> None:
    def assigned(x: Any) -> Any:
        y = npg.zeros(2)
        seen = view(y)
        y[:] = x
        return seen + 0.0

    for world in (traced, jitted):
        np.testing.assert_array_equal(world(lambda x: (assigned(x),))[0], POINT)

    def written_through(x: Any) -> Any:
        y = npg.zeros(2)
        y[:] = x
        seen = view(y)
        seen[0] = 7.0
        return (y + 0.0,)

    for world in (traced, jitted):
        np.testing.assert_array_equal(world(written_through)[0], [7.0, POINT[1]])


def test_variables_found_in_a_program_are_nobody_elses() -> None:
    """An equation of a derivative is the user's own as soon as a handle on it is given."""
    with pg.Program() as program:
        x = pg.data("x", ())
        pg.grad(pg.sin(x) * 2.0 * x, x)
        cosines = [
            v
            for v in program.variables()
            if (eqn := program.builder.definition(v.value)) and eqn.op.name == "cos"
        ]
        cosine = cosines[0]
        weighted = pg.grad(pg.sin(x) * cosine, x)
        slope = pg.grad(weighted, cosine)
    (found,) = pg.Executor().run(program, {"x": 0.5}, [slope])
    np.testing.assert_allclose(found, np.cos(0.5), rtol=1e-15)


def test_a_function_may_ask_for_a_value_of_the_program_that_was_not_held() -> None:
    with pg.Program() as program:
        x = pg.data("x", ())
        pg.grad(pg.sin(x) * 2.0 * x, x)
        name = next(n for v in program.variables() if (n := v.name).startswith("cos"))
        again = program.clone()
    with again:
        y = again.variable("x")
        pg.grad(pg.exp(y) * 2.0 * y, y)
        unheld = [e for e in again.builder.body if e.op.name == "mul"][-1].outputs[0]
        value, _ = pg.vjp(lambda v: v * again.variable(again.builder.name_of(unheld)) * 3.0, y)
        # Nothing of the function's own trace is found again.
        more = pg.grad(y * again.variable(name) * 3.0, y)
        again.graph([value, more])
    known = again.builder._known.values()
    assert all(v in again.builder for outputs in known for v in outputs)


def test_each_number_of_a_stack_is_a_variable_of_its_own():
    """A gradient by one of many numbers that are stacked, computed alike."""
    with pg.Program():
        x = pg.data("x", (40,))
        numbers = [pg.sin(x[i]) for i in range(40)]
        total = pg.sum(pg.stack(numbers) ** 2)
        slope = pg.grad(total, numbers[3])
        found = pg.Executor().run(feed={"x": np.arange(40.0)}, fetch_list=[slope])
    np.testing.assert_allclose(found[0], 2 * np.sin(3.0), rtol=1e-15)
