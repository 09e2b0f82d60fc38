"""Calls that a program has seen are recorded from its cache, as if each were the first."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.extend import lift, public
from primgraph.operators.call_cache import decided_by_types, is_decided_by_types


class Forgetful(dict):
    """Cache that keeps nothing."""

    def __setitem__(self, key, value):
        pass


def recorded(steps, *, cached):
    """Program of `steps`, which take two inputs and return variables."""
    with pg.Program() as program:
        if not cached:
            program.builder.calls = Forgetful()
        x, y = pg.data("x", (3,)), pg.data("y", (3,))
        found = steps(x, y)
    assert bool(program.builder.calls) == cached
    return program, found


def text_of(program):
    lines = [str(eqn.source) for eqn in program.builder.body]
    return f"{program}\n{lines}\n{[v.type for v in program.builder.inputs]}"


def arithmetic(x, y):
    for a, b in ((x, y), (y, x), (x, x), (y, y), (x, y)):
        yield a * b
        yield a * 0.5 + b * -0.0 + a * 0.0
        yield a + 1 + (b + 1.0)
        yield pg.tanh(a) - pg.tanh(a)
        yield pg.tanh(x=b)


def moves(x, y):
    for a, b in ((x, y), (y, x), (x, x)):
        yield pg.roll(a, 1)
        yield pg.roll(b, shift=2)
        yield a[1:]
        yield b[::-1]
        yield a[None, 1]
        yield pg.reshape(a, (3, 1)) + pg.reshape(a, [1, 3])
        yield pg.reshape(a, (3,))
        yield a.sum(axis=0, keepdims=True)
        yield pg.max(b)


def products(x, y):
    for a, b in ((x, y), (y, x), (x, x)):
        yield a @ b
        yield pg.outer(a, b) @ a
        yield pg.softmax(a) * pg.sigmoid(b)
        yield pg.where(a > b, a, 0.0)
        yield pg.where(a > 0.0, True, False)
        yield a**2 + b**2.0 + a**0.5


@pytest.mark.parametrize("steps", [arithmetic, moves, products])
def test_calls_from_the_cache_record_the_same_equations(steps):
    texts = [
        text_of(recorded(lambda x, y: list(steps(x, y)), cached=cached)[0])
        for cached in (False, True)
    ]
    assert texts[0] == texts[1]


def test_each_call_gives_a_variable_of_its_own():
    _, (a, b, c, d) = recorded(lambda x, y: [pg.tanh(x), pg.tanh(x), x * 2.0, x * 2.0], cached=True)
    assert len({a.value, b.value, c.value, d.value}) == 4


def test_an_equation_inside_an_operator_is_not_handed_out_twice():
    def steps(x, y):
        pg.tanh(y)
        inner = [pg.log2(x), pg.log(x), pg.log(x)]
        return [pg.grad(pg.sum(v), x) for v in inner]

    for cached in (False, True):
        program, found = recorded(steps, cached=cached)
        given = {"x": np.array([1.0, 2.0, 4.0]), "y": np.ones(3)}
        first, second, third = pg.Executor().run(program, feed=given, fetch_list=found)
        np.testing.assert_array_equal(second, third)
        np.testing.assert_allclose(first * np.log(2.0), second)


def test_a_call_in_no_grad_is_constant():
    with pg.Program():
        x = pg.data("x", (3,))
        pg.tanh(x)
        with pg.no_grad():
            held = pg.tanh(x)
        with pytest.raises(pg.NotDifferentiable):
            pg.grad(pg.sum(held), x)
        assert pg.grad(pg.sum(pg.tanh(x)), x).shape == (3,)


def test_the_default_dtype_counts():
    with pg.Program():
        m = pg.data("m", (3,), "bool")
        found = []
        try:
            for dtype in ("float64", "float32", "float64"):
                pg.set_default_dtype(dtype)
                found.append(pg.where(m, 1.0, 2.0).dtype)
        finally:
            pg.set_default_dtype("float64")
    assert found == ["float64", "float32", "float64"]


def test_numbers_that_are_equal_and_differ_are_told_apart():
    with pg.Program() as program:
        n = pg.data("n", (3,), "int64")
        kinds = [(n * c).dtype for c in (1, 1.0, True, 1, 1.0, True)]
        x = pg.data("x", (3,))
        found = [x * 0.0, x * -0.0, x * 0.0, x * -0.0, x * np.nan, x * np.nan]
    assert kinds == [np.int64, np.float64, np.int64] * 2
    feed = {"n": np.ones(3, np.int64), "x": np.ones(3)}
    values = pg.Executor().run(program, feed=feed, fetch_list=found)
    assert [str(v[0]) for v in values] == ["0.0", "-0.0", "0.0", "-0.0", "nan", "nan"]


def test_errors_are_those_of_the_first_call():
    with pg.Program():
        x, y, z = pg.data("x", (3,)), pg.data("y", (3,)), pg.data("z", (2,))
        x + y
        with pytest.raises(pg.ShapeError, match="add cannot broadcast"):
            x + z
        with pytest.raises(pg.ShapeError, match="add cannot broadcast"):
            x + z
        with pytest.raises(pg.ArgumentError, match=r"'reps'\n.*\n.*is input 'x' of"):
            pg.tile(x)
        with pg.Program() as other, pytest.raises(pg.BuildError):
            _ = x + pg.data("y", (3,))
    assert len(other.builder.body) == 0


def test_a_function_is_remembered_only_if_it_says_so():
    count = 0

    def counting(x):
        nonlocal count
        count += 1
        return lift(x) * 2.0

    with pg.Program():
        x = pg.data("x", (3,))
        plain = public(counting)
        plain(x), plain(x)
        assert count == 2
        assert not is_decided_by_types(counting)
        known = public(decided_by_types(counting))
        known(x), known(x), known(x)
        assert count == 3
