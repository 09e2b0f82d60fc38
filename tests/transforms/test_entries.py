"""Jacobians whose elements are written out: diagonals and blocks, each computed once."""

from __future__ import annotations

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.derivatives.matrices.layout import Passes
from primgraph.ir.interpret import interpret
from primgraph.transforms.pipeline import optimize_graph

rng = np.random.default_rng(3)


def _rosenbrock(x):
    return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def _rates(z):
    """Diffusion and reaction of two concentrations at the points of a line."""
    u, v = z[: len(z) // 2], z[len(z) // 2 :]

    def spread(w):
        around = pg.pad(w, 1, constant_values=1.5)
        return around[2:] - 2.0 * w + around[:-2]

    return pg.concatenate([u * u * v - 4.0 * u + spread(u), 3.0 * u - u * u * v + spread(v)])


def _grid(u):
    around = pg.pad(u, 1)
    sides = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
    return pg.exp(u) - sides / 3.0


# Functions, and shapes of their argument.
WRITTEN = {
    "Rosenbrock": (lambda x: pg.grad(_rosenbrock(x), x), (6,)),
    "reaction and diffusion": (_rates, (8,)),
    "a grid": (_grid, (3, 4)),
    "a border and a middle": (lambda x: pg.concatenate([x[:1], 2.0 * x[1:-1], x[-1:] ** 2]), (5,)),
    "turned round": (lambda x: x[::-1] ** 2 - x, (5,)),
    "outer products": (lambda x: pg.outer(x, x[1:]), (4,)),
    "pairs": (lambda x: pg.sum((x[:, None] - x[None]) ** 3, axis=1), (5,)),
    "sums of rows": (lambda x: pg.sum(x**2 * np.arange(1.0, 4.0), axis=1) * 2.0, (4, 3)),
    "sums of what is repeated": (lambda x: pg.sum(x[:, None] * np.ones((5, 3)), axis=1), (5,)),
    "choices": (lambda x: pg.where(x > 0, x**2, x[::-1]), (6,)),
    "an arrow": (lambda x: pg.concatenate([pg.sum(x**2, keepdims=True), x[1:] * x[0]]), (5,)),
    "two in one place": (lambda x: pg.pad(x[1:] ** 2, (0, 1)) + pg.pad(x[:3] ** 3, 1)[:5], (5,)),
    "transposed": (lambda x: pg.transpose(x, (1, 0)) * 2.0, (2, 3)),
    "every other": (lambda x: pg.concatenate([x[::2] ** 2, x[1::2]]), (7,)),
    "parts": (lambda x: pg.concatenate(pg.split(x * x, 3)[::-1]), (6,)),
    "one number": (lambda x: x**2 * np.arange(4.0), ()),
    "nothing": (lambda x: pg.floor(x) + pg.zeros(5), (5,)),
}  # fmt: skip


def _one_by_one(function, at):
    """Columns, each by a directional derivative along one unit vector."""
    graph = pg.trace(
        lambda x, v: pg.jvp(function, x, v)[1],
        pg.spec(at.shape),
        pg.spec(at.shape),
    )
    unit = np.eye(at.size).reshape(at.size, *at.shape)
    columns = [np.ravel(interpret(graph, at, v)[0]) for v in unit]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_out_is_the_jacobian(name):
    function, shape = WRITTEN[name]
    at = np.asarray(rng.uniform(-1.5, 1.5, shape))
    wanted = _one_by_one(function, at)
    with pg.Program() as program:
        x = pg.data("x", shape)
        jacobian = pg.Jacobian(function, x)
        whole = jacobian[...]
        rows = jacobian[-1], jacobian[:, :1]
    found, row, columns = pg.Executor().run(program, {"x": at}, [whole, *rows])
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(row, found[-1])
    np.testing.assert_array_equal(columns, found[:, :1])
    graph = optimize_graph(pg.trace(lambda x: pg.jacobian(function(x), x), pg.spec(shape)))
    for style in ("planned", "readable"):
        again = compile_graph(graph, style=style)(at)
        np.testing.assert_allclose(np.reshape(again, wanted.shape), wanted, atol=1e-13)


_PLACES = rng.integers(0, 40, (40, 2))
_FEW = np.where(rng.random((40, 40)) < 0.03, 1.5, 0.0)
COMPRESSED = {
    "gathers": lambda x: x[_PLACES[:, 0]] ** 2 * x[_PLACES[:, 1]],
    "constant matrices": lambda x: _FEW @ pg.sin(x),
    "convolutions": lambda x: pg.convolve(x**2, np.array([1.0, 2.0, 3.0])),
    "small matrices": lambda x: pg.ravel(
        pg.linalg.inv(pg.reshape(x, (10, 2, 2)) + 3.0 * np.eye(2))
    ),
    "loops": lambda x: pg.scan(lambda c, r: (c * pg.sin(r), None), x[:10], x.reshape(4, 10))[0],
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_what_has_few_colours_takes_a_pass_for_each(name):
    function = COMPRESSED[name]
    at = rng.uniform(0.5, 1.5, 40)
    with pg.Program() as program:
        x = pg.data("x", (40,))
        jacobian = pg.Jacobian(function, x)
        hessian = pg.Hessian(lambda x: pg.sum(function(x) ** 2), x)
        found = [jacobian[...], hessian[...], jacobian[1:3]]
    whole, second, rows = pg.Executor().run(program, {"x": at}, found)
    assert sum((jacobian.passes.forward, jacobian.passes.reverse)) <= 12
    np.testing.assert_allclose(whole, _one_by_one(function, at), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(rows, whole[1:3])
    gradient = _one_by_one(lambda x: pg.grad(pg.sum(function(x) ** 2), x), at)
    np.testing.assert_allclose(second, gradient, rtol=1e-11, atol=1e-12)
    lacking = ~pg.jacobian_sparsity(function, at).to_dense()
    assert not np.any(whole[lacking])


def _operations(graph):
    return [eqn.op.name for eqn in optimize_graph(graph).body]


def test_elements_are_those_that_a_person_would_write():
    """A few operations for five pieces of three diagonals, of any size: no product with ones."""
    graph = pg.trace(lambda x: pg.hessian(_rosenbrock(x), x), pg.spec(1000))
    names = _operations(graph)
    assert names.count("placed") == 1
    assert "matmul" not in names
    assert not [
        e for e in optimize_graph(graph).body if e.op.name != "placed" and e.output.type.ndim > 1
    ]
    assert len(names) < 30
    kernel = pg.compile(graph)
    assert "zeros((1000, 1000), float64)" in kernel.planned_source
    with pg.Program():
        x = pg.data("x", (1000,))
        hessian = pg.Hessian(_rosenbrock, x)
        assert hessian[...].shape == (1000, 1000)
        assert hessian.passes == Passes(0, 3)


def test_what_is_constant_is_computed_once():
    """A linear map is a constant of the kernel."""
    kernel = pg.compile(pg.trace(lambda x: pg.jacobian(x[1:] - 2.0 * x[:-1], x), pg.spec(5)))
    wanted = np.eye(4, 5, 1) - 2.0 * np.eye(4, 5)
    first, second = kernel(np.ones(5)), kernel(np.zeros(5))
    np.testing.assert_array_equal(first, wanted)
    first[...] = 7.0
    np.testing.assert_array_equal(second, wanted)
    np.testing.assert_array_equal(kernel(np.ones(5)), wanted)


def test_a_structural_zero_is_zero_beside_infinite_slopes():
    """Also where a dense product would give 0 * inf, and where an input is NaN."""
    at = np.array([0.0, 4.0, np.nan, 1.0])
    kernel = pg.compile(
        pg.trace(lambda x: pg.jacobian(pg.sqrt(x) * np.array([1.0, 2.0, 1.0, 0.0]), x), pg.spec(4))
    )
    found = kernel(at)
    np.testing.assert_array_equal(found[~np.eye(4, dtype=bool)], 0.0)
    np.testing.assert_array_equal(np.diag(found), [np.inf, 0.5, np.nan, 0.0])
    chained = lambda x: pg.sqrt(x[1:]) * x[:-1]  # noqa: E731
    found = pg.compile(pg.trace(lambda x: pg.jacobian(chained(x), x), pg.spec(4)))(at)
    wanted = np.array([[2.0, 0, 0, 0], [0, np.nan, np.nan, 0], [0, 0, 1.0, np.nan]])
    np.testing.assert_array_equal(found, wanted)


def test_elements_can_be_differentiated_again():
    """The third derivative of a sum of cubes of differences, element by element."""
    at = rng.normal(size=4)
    with pg.Program() as program:
        x = pg.data("x", (4,))
        hessian = pg.Hessian(lambda x: pg.sum((x[1:] - x[:-1]) ** 3), x)[...]
        slopes = pg.grad(hessian[1, 2], x)
        third = pg.jacobian(hessian, x)
    one, all_ = pg.Executor().run(program, {"x": at}, [slopes, third])
    np.testing.assert_allclose(one, all_[1, 2])
    np.testing.assert_allclose(one, [0.0, 6.0, -6.0, 0.0])
    # Each link has eight, and two links cancel at each of the two elements between them.
    assert np.count_nonzero(all_) == 3 * 8 - 4


def test_matrices_of_batches_and_of_single_precision():
    at = rng.normal(size=(3, 6)).astype(np.float32)
    function = WRITTEN["Rosenbrock"][0]
    each = pg.vmap(lambda x: pg.jacobian(function(x), x))
    kernel = pg.compile(pg.trace(each, pg.spec((3, 6), "float32")))
    alone = pg.compile(pg.trace(lambda x: pg.jacobian(function(x), x), pg.spec(6, "float32")))
    found = kernel(at)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [alone(row) for row in at], rtol=1e-5)


def test_saved_code_needs_numpy_only(tmp_path):
    def slopes(u):
        return pg.jacobian(_grid(u), u)

    kernel = pg.compile(pg.trace(slopes, pg.spec((3, 4))))
    kernel.save(tmp_path / "slopes.py")
    text = (tmp_path / "slopes.py").read_text(encoding="utf-8")
    assert "import primgraph" not in text
    scope = {}
    exec(text, scope)
    at = rng.normal(size=(3, 4))
    np.testing.assert_array_equal(scope["slopes"](at), kernel(at))


def test_matrices_are_those_of_their_program_wherever_they_are_asked_for():
    with pg.Program() as program:
        x = pg.data("x", (40,))
        y, z = x[1:] ** 2 * x[:-1], _FEW @ pg.sin(x)
    found = [pg.jacobian(y, x), pg.jacobian(z, x), pg.hessian(pg.sum(y), x)]
    at = rng.normal(size=40)
    first, second, third = pg.Executor().run(program, {"x": at}, found)
    assert first.shape == (39, 40)
    np.testing.assert_allclose(second, _FEW * np.cos(at))
    np.testing.assert_array_equal(third, third.T)
