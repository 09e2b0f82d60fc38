"""What readable code says as a person would: names, indices, diagonals, loops, and checks."""

from __future__ import annotations

import importlib.util
import re
import sys
import weakref
from types import ModuleType

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.targets.text.assignments import OperandNames, written_expressions
from primgraph.ir.interpret import interpret

VECTOR = pg.spec((4,))


def same(graph, *arrays):
    """The readable code computes what the interpreter does; its text."""
    kernel = pg.compile(graph, style="readable")
    wanted = interpret(kernel.graph, *arrays)
    found = kernel.flat(*arrays)
    for got, value in zip(found, wanted, strict=True):
        assert got.shape == value.shape
        np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-14)
    return kernel.source


def saved(graph, tmp_path, **options) -> tuple[str, ModuleType]:
    """The text of a saved file, and the module."""
    path = tmp_path / "saved.py"
    pg.compile(graph).save(path, **options)
    spec = importlib.util.spec_from_file_location("saved_words", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop("saved_words", None)
    return path.read_text(), module


# Names.


def test_results_have_the_names_that_they_are_returned_by():
    def prices(S, K):
        gap = pg.log(S / K)
        delta, by_strike = pg.grad(pg.sum(gap), [S, K])
        gamma = pg.grad(pg.sum(delta), S)
        return gap, delta, gamma, -by_strike

    source = same(pg.trace(prices, VECTOR, VECTOR), np.full(4, 2.0), np.full(4, 3.0))
    for name in ("gap = ", "delta = ", "gamma = "):
        assert f"    {name}" in source
    assert source.splitlines()[-1].startswith("    return gap, delta, gamma, ")
    assert "S_bar" not in source


def test_derivatives_have_the_names_by_which_a_line_reads_them():
    def residual(u, x):
        y = pg.tanh(u * x)
        slope = pg.forward_grad(y, x)
        loss = y * slope - 0.5 * u
        return pg.sum(loss)

    source = same(pg.trace(residual, VECTOR, VECTOR), np.full(4, 2.0), np.full(4, 3.0))
    assert "    slope = u * (1.0 - y * y)" in source
    assert "    loss = y * slope - 0.5 * u" in source


def test_a_line_that_became_other_operations_names_nothing_that_it_reads():
    graph = pg.trace(lambda x, y: pg.sin(x) * 6.0 + pg.cos(y), VECTOR, VECTOR)
    steps = schedule(graph)
    operands, (value,) = OperandNames(steps.steps), steps.outputs
    cosine, sine = (
        s.outputs[0] for name in ("cos", "sin") for s in steps.steps if s.op.name == name
    )

    def names(line):
        (expression,) = written_expressions(line)
        return operands.bound(expression, value)

    assert names("total = six * 6.0 + other") == {"six": sine, "other": cosine}
    assert names("total = other + 6.0 * six") == {"six": sine, "other": cosine}
    assert names("return six * 6.0 + pg.cos(y)") == {"six": sine, "y": 1}
    assert names("total = 2.0 * (3.0 * six) + other") is None
    assert names("total = six * 6.0 - other") is None
    assert names("total = six * 6.0 + six") is None


GAINS = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_constants_have_the_names_of_the_arrays_of_the_user():
    turn = np.array([[0.0, 2.0], [1.0, 0.0]])
    graph = pg.trace(lambda x: pg.sin(x @ GAINS) @ turn, pg.spec((3, 2)))
    source = same(graph, np.ones((3, 2)))
    assert "GAINS = np.array([[1.0, 2.0], [3.0, 4.0]])" in source
    assert "return np.sin(x @ GAINS) @ turn" in source


def branches(x, flag=True):
    if flag:
        up = x + 1.0
        return up
    down = x - 1.0
    return down


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: (x + 1.0, x - 1.0), ""),
        (branches, ""),
        (pg.grad(lambda x: pg.sum(x * x)), ""),
    ],
)
def test_functions_without_a_single_plain_return_name_no_results(function, name):
    graph = pg.trace(function, VECTOR)
    assert not any(title.name for title in graph.titles)


def test_names_in_containers_are_those_of_their_places():
    def model(x):
        first, second = x + 1.0, x * 2.0
        return [first, (second, x / 3.0)]

    titles = pg.trace(model, VECTOR).titles
    assert [title.name for title in titles] == ["first", "second", ""]


def test_several_values_of_a_line_have_their_own_names():
    def model(x, y):
        c, s = pg.cos(x), pg.sin(x)
        u, v = x - y, y - 1.0
        first, second = pg.split(x, 2)
        return c * s + c, u * v + u * u, first * second * first, s, v

    source = same(pg.trace(model, VECTOR, VECTOR), np.full(4, 0.3), np.full(4, 0.7))
    for line in ("c = np.cos(x)", "s = np.sin(x)", "u = x - y", "v = y - 1.0", "first = x[:2]"):
        assert f"    {line}\n" in source


def test_a_line_that_runs_twice_names_both_values():
    def layer(x, w):
        hidden = pg.tanh(x @ w)
        return hidden

    def model(x, y, w):
        return layer(x, w) * 2.0 + pg.sum(layer(x, w)), layer(y, w) / 3.0

    source = same(pg.trace(model, VECTOR, VECTOR, pg.spec((4, 4))), *np.ones((2, 4)), np.eye(4))
    assert "hidden = np.tanh(x @ w)" in source
    assert "hidden_2 = np.tanh(y @ w)" in source


def test_the_last_quotient_of_a_line_has_its_name():
    def model(S, K, T):
        root = pg.sqrt(T)
        d1 = (S / K + T * 0.5) / (S * root)
        d2 = d1 - S * root
        return d1 * d2, S / K

    source = same(pg.trace(model, VECTOR, VECTOR, VECTOR), *np.full((3, 4), 2.0))
    assert "    d1 = " in source
    assert "    d2 = " in source


def test_functions_of_named_values_are_called_after_both():
    def model(x):
        return pg.exp(x) * pg.sum(pg.exp(x)), pg.sqrt(x) + x

    source = same(pg.trace(model, VECTOR), np.full(4, 2.0))
    assert "exp_x = np.exp(x)" in source
    assert "sqrt_x" not in source


# Indices, diagonals, parts.


def test_indices_of_names_are_written_in_place():
    def model(x):
        row = pg.exp(x)
        return row[0, 1] * row[0, 1] + row[2, 0], x[1][:, None] @ x[1][None], x.T @ x.T

    source = same(pg.trace(model, pg.spec((3, 3))), np.arange(9.0).reshape(3, 3) / 9)
    assert "row[0, 1] * row[0, 1] + row[2, 0]" in source
    assert "x.T @ x.T" in source


def test_stacked_numbers_are_a_list():
    def model(x):
        rows = [pg.stack([pg.cos(x[0]), -x[1], 0.0]), pg.stack([x[2], x[3], 1.0])]
        return pg.stack(rows), pg.concatenate([x[:1] * 2.0, x])

    source = same(pg.trace(model, VECTOR), np.arange(4.0))
    assert "np.array([np.cos(x[0]), -x[1], 0.0])" in source
    assert "np.stack([" in source
    assert "np.hstack([" in source


def test_diagonals_are_called_that():
    def model(a):
        d = pg.diagonal(a)
        return pg.sum(pg.log(d)), pg.grad(pg.sum(pg.log(d)), a)

    source = same(pg.trace(model, pg.spec((4, 4))), np.eye(4) + 1.0)
    assert "np.diagonal(a)" in source
    assert "a_bar = np.diag(d_bar)" in source
    assert "reshape" not in source


def test_jacobians_are_assembled_by_assignments():
    def motion(x):
        moved = x + 0.1 * pg.stack([x[2] * pg.cos(x[3]), x[2] * pg.sin(x[3]), x[3], x[1] * x[1]])
        F = pg.jacobian(moved, x)
        return F

    source = same(pg.trace(motion, VECTOR), np.array([0.1, 0.2, 0.3, 0.4]))
    assert "= np.eye(4)" in source or "= np.zeros((4, 4))" in source
    assert "[0, 2] = " in source
    assert "placed" not in source


def test_systems_with_one_right_hand_side_take_vectors():
    def model(a, b):
        x = pg.linalg.solve(a, b)
        return x @ b

    source = same(pg.trace(model, pg.spec((3, 3)), pg.spec(3)), np.eye(3) * 2.0, np.ones(3))
    assert "x = np.linalg.solve(a, b)" in source
    assert "x @ b" in source


# Loops.


def recurrent(xs, w):
    def cell(h, x):
        h = pg.tanh(x @ w + h)
        return h, h

    _, hs = pg.scan(cell, pg.zeros((4,)), xs)
    loss = pg.sum(hs * hs)
    return loss, pg.grad(loss, w)


def test_carries_and_stacks_have_the_names_of_the_body():
    xs, w = np.linspace(-1, 1, 12).reshape(3, 4), np.eye(4) / 2
    source = same(pg.trace(recurrent, pg.spec((3, 4)), pg.spec((4, 4))), xs, w)
    for line in ("h = np.zeros((4,))", "h_new = np.tanh(", "hs[k] = h_new", "h = h_new"):
        assert line in source
    assert source.count("for k in range(") == 2
    assert "k_2" not in source
    assert "np.float64)" not in source


def test_a_stack_of_what_is_stacked_already_is_not_computed_again():
    def model(xs, w):
        def cell(h, x):
            a, b = pg.tanh(x + h), pg.exp(h * w)
            return a * b, (a, b, a * b, x)

        _, (a, b, product, copied) = pg.scan(cell, pg.zeros((4,)), xs)
        return a * b, product, copied, a, b

    graph = pg.transforms.clean_up(
        pg.transforms.lower(pg.trace(model, pg.spec((3, 4)), pg.spec(4)))
    )
    (loop,) = [eqn for eqn in graph.body if eqn.op.has_bodies]
    stacks = loop.outputs
    assert graph.outputs[0] is graph.outputs[1]
    assert graph.outputs[2] is graph.inputs[0]
    assert len(stacks) == 1 + 3
    assert not any(eqn.op.name == "mul" for eqn in graph.body)
    same(pg.trace(model, pg.spec((3, 4)), pg.spec(4)), np.ones((3, 4)), np.full(4, 0.1))


# Checks of arguments.


def test_many_arguments_are_checked_by_one_function(tmp_path):
    def model(x, y, z):
        return x + y * z

    text, module = saved(pg.trace(model, VECTOR, VECTOR, VECTOR), tmp_path)
    assert text.count("raise ValueError(") == 1
    assert 'z = as_array(z, np.float64, (4,), "z")' in text
    np.testing.assert_array_equal(module.model([1, 2, 3, 4], np.ones(4), np.ones(4)), [2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"z must have shape \(4,\), not \(3,\)"):
        module.model(np.ones(4), np.ones(4), np.ones(3))


def test_arguments_of_any_size_are_checked_in_loops(tmp_path):
    def model(x, y, name, array):
        return x + y * name - array

    graph = pg.trace(model, *[pg.spec(("n",))] * 4)
    text, module = saved(graph, tmp_path)
    assert text.count("raise ValueError(") == 2
    assert max(map(len, text.splitlines())) <= 100
    one = np.ones(5)
    np.testing.assert_array_equal(module.model(one, one, one, one), one)
    with pytest.raises(ValueError, match=r"array must have shape \(n,\), not \(1, 5\)"):
        module.model(one, one, one, one[None])
    for place, name in enumerate(("y", "name", "array"), 1):
        arrays = [one] * 4
        arrays[place] = np.ones(4)
        with pytest.raises(pg.FeedError) as refused:
            pg.compile(graph, style="readable")(*arrays)
        assert f"input '{name}' f64" in refused.value.message
        with pytest.raises(ValueError, match=f"^{re.escape(refused.value.message)}$"):
            module.model(*arrays)


def test_results_are_copied_only_where_they_would_be_shared(tmp_path):
    def model(x):
        total = pg.sum(x)
        return total, x.T, x * 2.0

    text, module = saved(pg.trace(model, pg.spec((2, 3))), tmp_path)
    assert "return np.asarray(total), np.array(x.T), " in text
    total, turned, double = module.model(np.ones((2, 3)))
    assert type(total) is np.ndarray
    assert turned.flags.writeable
    np.testing.assert_array_equal(double, np.full((2, 3), 2.0))


def test_names_of_tables_do_not_keep_arrays_alive() -> None:
    with pg.Program():
        x = pg.data("x", shape=(3,))
        weights = np.array([1.0, 2.0, 4.0])
        alive = weakref.ref(weights)
        kept = locals()
        x * weights
        assert kept["weights"] is weights
        del kept
        x * weights
        assert {"x", "weights", "alive"} <= {*locals()}
        x * weights
        del weights
        assert alive() is None
