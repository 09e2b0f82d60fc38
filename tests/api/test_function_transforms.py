"""Functions made of functions: derivatives over containers, compiled functions, one in another."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from density import starts
from program_tolerance import differs
from random_programs import random_program

import primgraph as pg
from primgraph import tree
from primgraph.eager.node import array_node
from primgraph.eager.replay import replay_graph
from primgraph.ir.interpret import interpret
from primgraph.transforms import lower

X = np.array([0.3, -1.2, 2.5])
W = np.array([[1.0, 0.5, -2.0], [0.1, 3.0, 0.7]])


def wave(x: Any) -> Any:
    return pg.sum(pg.sin(x) ** 2 * x[0])


def wave_slope(x: np.ndarray) -> np.ndarray:
    slope = np.sin(2 * x) * x[0]
    slope[0] += np.sum(np.sin(x) ** 2)
    return slope


def differences(function: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """The derivatives of a function of an array by central differences."""
    step, columns = 1e-5, []
    for i in range(x.size):
        moved = np.zeros(x.size)
        moved[i] = step
        moved = moved.reshape(x.shape)
        ends = [np.asarray(function(x + s * moved)) for s in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


def in_program(function: Callable[..., Any], *arrays: Any) -> Any:
    """What `function` of variables gives, compiled."""
    return pg.compile(pg.trace(function, *arrays))(*arrays)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Model:
    weight: Any
    parts: Any


# Gradients.


def test_the_gradient_of_a_function_is_a_function_of_arrays() -> None:
    found = pg.grad(wave)(X)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, wave_slope(X), rtol=1e-12)
    value, slope = pg.value_and_grad(wave)(X)
    np.testing.assert_allclose(value, np.sum(np.sin(X) ** 2 * X[0]))
    np.testing.assert_array_equal(slope, found)


def test_a_function_may_be_written_with_numpy() -> None:
    found = pg.grad(lambda x: np.sum(np.sin(x) ** 2 * x[0]))(X)
    np.testing.assert_allclose(found, wave_slope(X), rtol=1e-12)


def test_numbers_are_arrays_of_the_default_dtype() -> None:
    found = pg.grad(lambda x: x**3)(2)
    assert found.dtype == np.float64
    assert found.shape == ()
    assert found == 12.0
    pg.set_default_dtype("float32")
    try:
        assert pg.grad(lambda x: x**3)(2.0).dtype == np.float32
    finally:
        pg.set_default_dtype("float64")


def test_python_decides_by_what_is_computed() -> None:
    def collatz(x: Any) -> Any:
        steps = 0
        while x > 1.0 and steps < 50:
            x = x / 2.0 if int(x) % 2 == 0 else 3.0 * x + 1.0
            steps += 1
        return x

    # 3, 10, 5, 16, 8, 4, 2, 1: two times 3, five halves.
    assert pg.grad(collatz)(3.0) == 9 / 2**5


def test_the_function_is_called_each_time() -> None:
    scale = [1.0]
    slope = pg.grad(lambda x: pg.sum(x * scale[0]))
    assert slope(X)[0] == 1.0
    scale[0] = 5.0
    assert slope(X)[0] == 5.0


def test_tensors_give_tensors_through_which_backward_goes() -> None:
    x = pg.tensor(X, requires_grad=True)
    slope = pg.grad(wave)(x)
    assert isinstance(slope, pg.Tensor)
    assert slope.requires_grad
    pg.sum(slope).backward()
    expected = differences(lambda a: np.sum(wave_slope(a)), X)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    plain = pg.grad(wave)(pg.tensor(X))
    assert isinstance(plain, pg.Tensor)
    assert not plain.requires_grad


def test_tensors_that_a_function_finds_have_their_own_gradients() -> None:
    w = pg.tensor(W, requires_grad=True)
    slope = pg.grad(lambda x: pg.sum(pg.tanh(w @ x)))(pg.tensor(X))
    assert slope.requires_grad
    pg.sum(slope).backward()

    def total(a: np.ndarray) -> Any:
        return np.sum((1 - np.tanh(a @ X) ** 2) @ a)

    np.testing.assert_allclose(w.grad.numpy(), differences(total, W), rtol=1e-6)


def test_within_no_grad_there_are_gradients_of_functions_nevertheless() -> None:
    x = pg.tensor(X, requires_grad=True)
    with pg.no_grad():
        value, slope = pg.value_and_grad(wave)(x)
    np.testing.assert_allclose(slope.numpy(), wave_slope(X), rtol=1e-12)
    assert not value.requires_grad
    assert not slope.requires_grad


def test_variables_give_variables() -> None:
    with pg.Program() as program:
        x = pg.data("x", (3,))
        value, slope = pg.value_and_grad(wave)(x)
        constant = pg.grad(wave)(X)
        assert isinstance(slope, pg.Variable)
        assert isinstance(constant, pg.Variable)
    found = pg.Executor().run(program, {"x": X}, [slope, constant, value])
    np.testing.assert_allclose(found[0], wave_slope(X), rtol=1e-12)
    np.testing.assert_array_equal(found[0], found[1])


def test_several_arguments_give_a_tuple() -> None:
    def product(x: Any, y: Any, *, scale: float = 1.0) -> Any:
        return pg.sum(x * y) * scale

    (alone,) = pg.grad(product, argnums=(1,))(X, X + 1)
    np.testing.assert_array_equal(alone, X)
    left, right = pg.grad(product, (0, -1))(X, X + 1, scale=2.0)
    np.testing.assert_array_equal(left, 2 * (X + 1))
    np.testing.assert_array_equal(right, 2 * X)


def test_what_stands_beside_a_value_is_given_back() -> None:
    def both(x: Any) -> Any:
        return pg.sum(x * x), {"twice": x * 2.0, "name": "f", "count": pg.argmax(x)}

    slope, aux = pg.grad(both, has_aux=True)(X)
    np.testing.assert_array_equal(slope, 2 * X)
    np.testing.assert_array_equal(aux["twice"], 2 * X)
    assert aux["name"] == "f"
    assert aux["count"] == 2
    assert type(aux["twice"]) is np.ndarray
    (value, other), again = pg.value_and_grad(both, has_aux=True)(X)
    assert value == np.sum(X * X)
    assert other["name"] == "f"
    np.testing.assert_array_equal(again, slope)
    traced = in_program(lambda x: pg.grad(lambda a: (*both(a)[:1], a * 3.0), has_aux=True)(x), X)
    np.testing.assert_array_equal(traced[1], 3 * X)


def test_arguments_that_do_not_matter_have_zeros() -> None:
    for run in (pg.grad(lambda x, y: pg.sum(x), (0, 1)), pg.grad(lambda x, y: 3.0, (0, 1))):
        for zero in (run(X, W)[1], in_program(run, X, W)[1]):
            np.testing.assert_array_equal(zero, np.zeros((2, 3)))


# Containers.


def energy(model: Any) -> Any:
    inner = model.parts["a"][0] * model.parts["b"].left + model.parts["b"].right
    return pg.sum(model.weight @ inner)


def test_gradients_have_the_containers_of_arguments() -> None:
    model = Model(W, {"a": [X], "b": Pair(X + 1, 2.0), "none": None})
    for found in (pg.grad(energy)(model), in_program(pg.grad(energy), model)):
        assert type(found) is Model
        assert type(found.parts["b"]) is Pair
        assert found.parts["none"] is None
        assert type(found.parts["a"]) is list
        columns = W.sum(0)
        np.testing.assert_allclose(found.weight, np.tile(X * (X + 1) + 2.0, (2, 1)))
        np.testing.assert_allclose(found.parts["a"][0], columns * (X + 1))
        np.testing.assert_allclose(found.parts["b"].right, columns.sum())


def test_an_error_says_where_in_a_container() -> None:
    with pytest.raises(pg.ArgumentError, match=r"grad: p\['w'\]\[1\] is str 'no', not an array"):
        pg.grad(lambda p: pg.sum(p["w"][0]))({"w": [X, "no"]})
    with pytest.raises(pg.NotDifferentiable, match=r"p\.right is of int64"):
        pg.grad(lambda p: pg.sum(p.left))(Pair(X, np.arange(3)))
    with pytest.raises(pg.ArgumentError, match=r"returned str 'no' as result\['a'\]"):
        pg.jacrev(lambda x: {"a": "no"})(X)
    with pytest.raises(pg.NotDifferentiable, match=r"result\[1\] is i64"):
        pg.jacrev(lambda x: (x, pg.argmax(x)))(X)


# One in another.


def test_derivatives_of_derivatives() -> None:
    cube = lambda x: x**3  # noqa: E731
    assert pg.grad(pg.grad(cube))(2.0) == 12.0
    assert pg.grad(pg.grad(pg.grad(cube)))(2.0) == 6.0
    assert pg.grad(pg.grad(pg.grad(pg.grad(cube))))(2.0) == 0.0


CONFUSIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "x * d(x + y)/dy": (lambda x: x * pg.grad(lambda y: x + y)(1.0), 1.0),
    "x * d(x y)/dy": (lambda x: x * pg.grad(lambda y: x * y)(2.0), 6.0),
    "d(x y)/dy at x": (lambda x: pg.grad(lambda y: x * y)(x), 1.0),
    "d(y y x)/dy at x": (lambda x: pg.grad(lambda y: y * y * x)(x), 12.0),
    "an argument twice": (lambda x: pg.grad(lambda y, z: y * y * z * x, (0, 1))(x, x)[0], 54.0),
    "an array": (lambda x: pg.sum(pg.grad(lambda y: pg.sum(x * y * y))(X)), 2 * X.sum()),
    "jvp": (lambda x: pg.jvp(lambda y: x * y * y, x, 1.0)[1], 12.0),
    "jacfwd": (lambda x: pg.jacfwd(lambda y: x * y)(x), 1.0),
    "hvp": (lambda x: pg.hvp(lambda y: x * y**3, x, 1.0)[1], 36.0),
    "vjp of what it finds": (lambda x: pg.vjp(lambda y: x * x, x, 1.0)[0], 6.0),
}


@pytest.mark.parametrize("name", CONFUSIONS)
def test_what_a_function_finds_is_not_its_argument(name: str) -> None:
    """Perturbations are not confused (J. Siskind and B. Pearlmutter, 2005)."""
    function, expected = CONFUSIONS[name]
    assert pg.grad(function)(3.0) == pytest.approx(expected)
    assert in_program(pg.grad(function), 3.0) == pytest.approx(expected)
    assert pg.jit(pg.grad(function))(3.0) == pytest.approx(expected)
    x = pg.tensor(3.0, requires_grad=True)
    function(x).backward()
    assert x.grad.item() == pytest.approx(expected)


def test_a_derivative_of_what_escapes_a_function() -> None:
    seen: list[Any] = []

    def noted(x: Any) -> Any:
        seen.append(x)
        return pg.sum(x * x)

    x = pg.tensor(X, requires_grad=True)
    pg.grad(noted)(x)
    slope = pg.grad(lambda y: pg.sum(y * seen[0]))(x)
    np.testing.assert_array_equal(slope.numpy(), X)


# Jacobians and Hessians.


def bend(x: Any) -> Any:
    return pg.tanh(x[:2] * x[2]) + x[0]


@pytest.mark.parametrize("transform", [pg.jacfwd, pg.jacrev, pg.jacobian])
def test_jacobians_of_functions(transform: Any) -> None:
    expected = differences(lambda a: np.tanh(a[:2] * a[2]) + a[0], X)
    for found in (transform(bend)(X), in_program(transform(bend), X), pg.jit(transform(bend))(X)):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    rows = transform(lambda p: {"y": p["x"] * p["s"], "z": p["s"]})({"x": X, "s": 2.0})
    np.testing.assert_array_equal(rows["y"]["x"], 2.0 * np.eye(3))
    np.testing.assert_array_equal(rows["y"]["s"], X)
    np.testing.assert_array_equal(rows["z"]["x"], np.zeros(3))
    assert rows["z"]["s"] == 1.0
    left, right = transform(lambda x, y: x * y, argnums=(0, 1))(X, X + 1)
    np.testing.assert_array_equal(left, np.diag(X + 1))
    np.testing.assert_array_equal(right, np.diag(X))
    matrix, aux = transform(lambda x: (x * x, "more"), has_aux=True)(X)
    np.testing.assert_array_equal(matrix, np.diag(2 * X))
    assert aux == "more"


def test_modes_are_those_that_were_asked_for() -> None:
    wide, tall = (3, 50), (50, 3)
    for name, shape in (("forward", wide), ("reverse", tall)):
        a = np.ones(shape)
        x = np.ones(shape[1])
        graphs = [
            pg.trace(lambda x, m=m, a=a: pg.jacobian(lambda b: pg.tanh(a @ b), x, mode=m), x)
            for m in (name, None)
        ]
        work = [sum(v.type.size for e in g.body for v in e.outputs) for g in graphs]
        assert work[0] != work[1]
        np.testing.assert_allclose(pg.compile(graphs[0])(x), pg.compile(graphs[1])(x))
    with pytest.raises(pg.OptionError, match="'forward' or 'reverse'"):
        pg.jacobian(bend, mode="both")


def test_hessians_of_functions() -> None:
    expected = differences(wave_slope, X)
    nested = [pg.jacfwd(pg.jacrev(wave)), pg.jacrev(pg.jacfwd(wave)), pg.jacrev(pg.grad(wave))]
    for second in (pg.hessian(wave), pg.jit(pg.hessian(wave)), *nested):
        np.testing.assert_allclose(second(X), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pg.hessian(wave, X), expected, rtol=1e-6, atol=1e-8)
    blocks = pg.hessian(lambda p: pg.sum(p["a"] ** 2 * p["b"]))({"a": X, "b": 2.0})
    np.testing.assert_array_equal(blocks["a"]["a"], 4.0 * np.eye(3))
    np.testing.assert_array_equal(blocks["a"]["b"], 2 * X)
    (aa, ab), (_, bb) = pg.hessian(lambda a, b: pg.sum(a * b), argnums=(0, 1))(X, X)
    np.testing.assert_array_equal(ab, np.eye(3))
    assert not aa.any()
    assert not bb.any()
    with pytest.raises(pg.NotScalarError, match=r"hessian needs a function of one element"):
        pg.hessian(bend)(X)


# Products.


def test_products_of_functions_of_arrays() -> None:
    matrix = differences(lambda a: np.tanh(a[:2] * a[2]) + a[0], X)
    value, row = pg.vjp(bend, X, np.array([2.0, -1.0]))
    np.testing.assert_allclose(value, np.tanh(X[:2] * X[2]) + X[0])
    np.testing.assert_allclose(row, np.array([2.0, -1.0]) @ matrix, rtol=1e-7)
    _, column = pg.jvp(bend, X, np.ones(3))
    np.testing.assert_allclose(column, matrix.sum(1), rtol=1e-7)
    second = differences(wave_slope, X)
    for product in (pg.hvp, pg.vhp):
        value, found = product(wave, X, X)
        np.testing.assert_allclose(found, second @ X, rtol=1e-6)
        assert type(found) is np.ndarray
        assert value.shape == ()


def test_products_take_containers() -> None:
    def function(p: Any, y: Any) -> Any:
        return {"sum": p["x"] + y, "product": p["x"] * y}

    value, found = pg.vjp(function, ({"x": X}, X + 1), {"sum": None, "product": X})
    assert set(value) == {"sum", "product"}
    assert type(found) is tuple
    np.testing.assert_allclose(found[0]["x"], 1 + X * (X + 1))
    np.testing.assert_allclose(found[1], 1 + X * X)
    _, moved = pg.jvp(function, [{"x": X}, X + 1], [{"x": X}, None])
    np.testing.assert_allclose(moved["product"], X * (X + 1) + X)
    _, twice = pg.hvp(lambda p: pg.sum(p["x"] ** 3), {"x": X}, {"x": X})
    np.testing.assert_allclose(twice["x"], 6 * X * X)
    with pytest.raises(pg.ArgumentError, match=r"v\['sum'\] is \[\*\], and there is \*"):
        pg.vjp(function, ({"x": X}, X), {"sum": [X], "product": X})
    with pytest.raises(
        pg.ShapeError, match=r"the seed has shape \(2,\), but the variable is f64\[3\]"
    ):
        pg.jvp(wave, X, np.ones(2))


def test_products_of_tensors_are_tensors() -> None:
    x = pg.tensor(X, requires_grad=True)
    _, product = pg.hvp(wave, x, pg.tensor(X))
    assert isinstance(product, pg.Tensor)
    assert product.requires_grad
    _, free = pg.jvp(wave, pg.tensor(X), X)
    assert not free.requires_grad
    v = pg.tensor(np.ones(3), requires_grad=True)
    _, column = pg.jvp(wave, pg.tensor(X), v)
    column.backward()
    np.testing.assert_allclose(v.grad.numpy(), wave_slope(X), rtol=1e-12)


def test_strict_products_refuse_what_does_not_matter() -> None:
    x = pg.tensor(X)
    for inputs in (X, x):
        with pytest.raises(pg.NotDifferentiable, match="no output depends on y"):
            pg.vjp(lambda x, y: x, (inputs, inputs), strict=True)
        with pytest.raises(pg.NotDifferentiable, match=r"jvp: result\[1\] depends on no input"):
            pg.jvp(lambda x: (x, 1.0), inputs, strict=True)
        with pytest.raises(pg.NotDifferentiable, match="hvp: no output depends on y"):
            pg.hvp(lambda x, y: pg.sum(x * x), (inputs, inputs), (X, X), strict=True)


# Tensors that were computed before.


def test_forward_grad_of_tensors() -> None:
    x, y = pg.tensor(X, requires_grad=True), pg.tensor(X + 1, requires_grad=True)
    z = x * y
    found = pg.forward_grad(z, [x, y], [X, None])
    np.testing.assert_allclose(found.numpy(), X * (X + 1) + X)
    both = pg.forward_grad([z, pg.sum(x), y * 1.0], x)
    assert type(both) is tuple
    assert both[2] is None
    np.testing.assert_allclose(both[0].numpy(), X + 1)
    (slope,) = pg.grad(pg.sum(found), y, retain_graph=True)
    np.testing.assert_allclose(slope.numpy(), X)
    with pytest.raises(pg.NotDifferentiable, match="element 0 of inputs"):
        pg.forward_grad(z, pg.tensor(X))


def test_matrices_of_tensors() -> None:
    x = pg.tensor(X, requires_grad=True)
    other = pg.tensor(X, requires_grad=True)
    y = bend(x)
    np.testing.assert_array_equal(pg.jacobian(y, x).numpy(), pg.jacrev(bend)(X))
    rows = pg.jacobian([y, pg.sum(x)], [x, other])
    assert len(rows) == 2
    assert not rows[0][1].numpy().any()
    np.testing.assert_array_equal(rows[1][0].numpy(), np.ones(3))
    np.testing.assert_array_equal(pg.jacobian(y, x, mode="forward").numpy(), pg.jacfwd(bend)(X))
    z = wave(x)
    second = pg.hessian(z, x)
    np.testing.assert_allclose(second.numpy(), pg.hessian(wave)(X))
    (third,) = pg.grad(pg.sum(second), x, retain_graph=True)
    expected = differences(lambda a: pg.hessian(wave)(a).sum(), X)
    np.testing.assert_allclose(third.numpy(), expected, rtol=1e-6)
    blocks = pg.hessian(z, [x, other])
    assert not blocks[0][1].numpy().any()
    assert blocks[1][1].shape == (3, 3)
    with pytest.raises(pg.NotScalarError):
        pg.hessian(y, x)


def test_differential_operators_of_tensors() -> None:
    x = pg.tensor(X, requires_grad=True)
    second = pg.hessian(wave)(X)
    z = wave(x)
    np.testing.assert_allclose(pg.hessian_diagonal(z, x).numpy(), np.diag(second))
    np.testing.assert_allclose(pg.laplacian(z, x).numpy(), np.trace(second))
    flow = pg.sin(x) * x[0]
    np.testing.assert_allclose(
        pg.divergence(flow, x).numpy(), np.trace(pg.jacrev(lambda a: pg.sin(a) * a[0])(X))
    )
    samples = pg.tensor(W, requires_grad=True)
    y = pg.sum(samples**3, axis=1)
    np.testing.assert_allclose(pg.laplacian(y, samples, True).numpy(), 6 * W.sum(1))
    np.testing.assert_allclose(pg.hessian_diagonal(y, samples, True).numpy(), 6 * W)
    found = pg.batched_jacobian(samples**2, samples)
    np.testing.assert_allclose(found.numpy(), np.stack([np.diag(2 * row) for row in W]))
    with pytest.raises(pg.MixedSamplesError):
        pg.laplacian(y * pg.sum(samples), samples, True).numpy()


def test_differential_operators_of_functions() -> None:
    second, flow = pg.hessian(wave)(X), lambda a: pg.sin(a) * a[0]
    expected = {
        "laplacian": (wave, np.trace(second)),
        "hessian_diagonal": (wave, np.diag(second)),
        "divergence": (flow, np.trace(pg.jacrev(flow)(X))),
    }
    for name, (function, value) in expected.items():
        operator = getattr(pg, name)
        for found in [*everywhere(operator(function), X), operator(function, X)]:
            np.testing.assert_allclose(found, value, rtol=1e-10)
    samples = pg.laplacian(lambda a: pg.sum(a**3, axis=1), SAMPLES, True)
    np.testing.assert_allclose(samples, 6 * SAMPLES.sum(1))
    np.testing.assert_allclose(pg.vmap(pg.laplacian(lambda a: pg.sum(a**3)))(SAMPLES), samples)


def test_a_differential_operator_within_another_one() -> None:
    def outer(x: Any) -> Any:
        return pg.laplacian(lambda y: pg.sum(y**2) * pg.sum(x**2))(x)

    for found in everywhere(pg.laplacian(outer), X):
        assert found == pytest.approx(36.0)


# Compiled functions.


def test_a_compiled_function_is_traced_once_a_kind_of_call() -> None:
    calls: list[Any] = []

    @pg.jit
    def f(x: Any, scale: Any = 2.0) -> Any:
        calls.append(1)
        return {"y": pg.sin(x) * scale, "none": None}

    for _ in range(3):
        found = f(X)
        assert found["none"] is None
        assert type(found["y"]) is np.ndarray
        np.testing.assert_allclose(found["y"], 2 * np.sin(X))
    assert len(calls) == 1
    f(X, 3.0), f(X, scale=4.0)
    np.testing.assert_allclose(f(X, 4.0)["y"], 4 * np.sin(X))
    assert len(calls) == 2
    f(X[:2])
    assert f(X.astype("float32"))["y"].dtype == np.float32
    assert [str(c) for c in f.compilations] == [
        "the first call",
        "scale is given",
        "x is f64[2], and was f64[3]",
        "x is f32[3], and was f64[3]",
    ]
    assert f.__name__ == "f"
    assert repr(f).startswith("<jit of ")
    f.clear_cache()
    assert not f.compilations


def test_static_arguments_are_told_apart_by_value_and_class() -> None:
    @pg.jit
    def untouched(x: Any) -> Any:
        return x

    def power(x: Any, n: Any, shift: Any = 0) -> Any:
        assert isinstance(n, int | float)
        return x**n + shift

    for f in (pg.jit(power, static_argnums=1), pg.jit(power, static_argnames="n")):
        np.testing.assert_allclose(f(X, 2), X**2)
        np.testing.assert_allclose(f(X, n=2), X**2)
        np.testing.assert_allclose(f(X, 3), X**3)
        f(X, 2.0)
        assert [str(c) for c in f.compilations] == [
            "the first call",
            "n is 3, and was 2",
            "n is 2.0, and was 3",
        ]
        with pytest.raises(pg.ArgumentError, match=r"n is static, and list \[2\] cannot be hashed"):
            f(X, [2])
    last = pg.jit(lambda x, mode: x * 2.0 if mode == "twice" else x, static_argnums=-1)
    np.testing.assert_array_equal(last(X, "twice"), 2 * X)
    with pytest.raises(pg.ArgumentError, match="no argument 'm'"):
        pg.jit(power, static_argnames=["m"])
    with pytest.raises(pg.ArgumentError, match="mode is str 'twice', not an array"):
        pg.jit(lambda x, mode: x)(X, "twice")
    np.testing.assert_array_equal(untouched(X), X)
    assert untouched(X) is not X


def test_why_a_function_was_compiled_again() -> None:
    f = pg.jit(lambda p: pg.sum(p["w"]))
    f({"w": X}), f({"w": X, "b": X}), f({"w": X.astype("f"), "b": X})
    pg.set_default_dtype("float32")
    try:
        f({"w": X})
    finally:
        pg.set_default_dtype("float64")
    assert [str(c) for c in f.compilations[1:]] == [
        "p is {'w': *, 'b': *}, and was {'w': *}",
        "p['w'] is f32[3], and was f64[3]",
        "the default dtype is float32, and was float64",
    ]


def test_numbers_in_compiled_functions_take_the_dtype_of_arrays() -> None:
    f = pg.jit(lambda x, rate: x * rate)
    assert f(X.astype("float32"), 0.5).dtype == np.float32
    assert f(X, 0.5).dtype == np.float64
    assert f(X, 0.25)[0] == X[0] / 4
    assert len(f.compilations) == 2


def test_derivatives_go_through_compiled_functions() -> None:
    f = pg.jit(wave)
    np.testing.assert_allclose(pg.grad(f)(X), wave_slope(X), rtol=1e-12)
    np.testing.assert_allclose(pg.hessian(f)(X), pg.hessian(wave)(X))
    x = pg.tensor(X, requires_grad=True)
    for _ in range(3):
        x.grad = None
        y = f(x)
        y.backward()
        np.testing.assert_allclose(x.grad.numpy(), wave_slope(X), rtol=1e-12)
    with pg.no_grad():
        assert not f(x).requires_grad
    assert len(f.compilations) == 1


def test_a_compiled_function_of_several_results_on_tensors() -> None:
    f = pg.jit(lambda x: (pg.sin(x), {"c": pg.cos(x), "n": pg.argmax(x)}))
    x = pg.tensor(X, requires_grad=True)
    for look in (0, 1):
        s, rest = f(x)
        first, second = (s, rest["c"]) if look == 0 else (rest["c"], s)
        np.testing.assert_array_equal(first.numpy(), (np.sin, np.cos)[look](X))
        np.testing.assert_array_equal(second.numpy(), (np.cos, np.sin)[look](X))
        assert not rest["n"].requires_grad
        assert rest["n"].item() == 2
        (slope,) = pg.grad(pg.sum(s * rest["c"]), x)
        np.testing.assert_allclose(slope.numpy(), np.cos(2 * X))


def test_tensors_that_a_compiled_function_finds_are_those_of_each_call() -> None:
    w = pg.tensor(X, requires_grad=True)
    f = pg.jit(lambda x: pg.sum(x * pg.tanh(w)) + pg.sum(w.detach()))

    def value(a: np.ndarray) -> Any:
        return np.sum(X * np.tanh(a)) + np.sum(a)

    np.testing.assert_allclose(f(X), value(X))
    f(pg.tensor(X)).backward()
    np.testing.assert_allclose(w.grad.numpy(), X * (1 - np.tanh(X) ** 2), rtol=1e-12)
    with pg.no_grad():
        w.copy_(2 * X)
    np.testing.assert_allclose(f(X), value(2 * X))
    np.testing.assert_allclose(f(pg.tensor(X)).item(), value(2 * X))
    assert len(f.compilations) == 1


def test_gradients_by_tensors_that_a_compiled_function_finds() -> None:
    w = pg.tensor([1.0, 2.0], requires_grad=True)

    @pg.jit
    def step(x: Any) -> Any:
        loss = pg.sum(w * w * x)
        return loss, pg.grad(loss, w), pg.grad(loss, [x, w])

    for scale in (1.0, 3.0):
        loss, alone, (by_x, by_w) = step(np.full(2, scale))
        assert loss.item() == 5.0 * scale
        np.testing.assert_array_equal(alone, [2.0 * scale, 4.0 * scale])
        np.testing.assert_array_equal(by_w, alone)
        np.testing.assert_array_equal(by_x, [1.0, 4.0])

    @pg.jit
    def back(x: Any) -> Any:
        loss = pg.sum(w * x)
        loss.backward()
        return loss

    with pytest.raises(
        pg.UnknownNameError, match=r"(?s)write pg.grad\(loss, w\): .*value_and_grad"
    ):
        back(np.ones(2))
    outside = pg.sum(w * w)
    with pytest.raises(pg.BuildError, match=r"(?s)traced would be done now.*pg.grad\(loss, w\)"):
        pg.jit(lambda x: (outside.backward(), x)[1])(X)
    with pytest.raises(pg.ArgumentError, match=r"(?s)not Variable .*pg.grad\(loss, w\)"):
        pg.jit(lambda x: (pg.autograd.backward(pg.sum(x)), x)[1])(X)


def test_in_a_program_a_compiled_function_is_the_function() -> None:
    f = pg.jit(lambda x, n: x**n, static_argnums=1)
    graph = pg.trace(lambda x: f(x, 3) + x, X)
    np.testing.assert_allclose(pg.compile(graph)(X), X**3 + X)
    assert not f.compilations


def test_methods_can_be_compiled() -> None:
    class Scale:
        factor = 3.0

        @pg.jit
        def plain(x: Any) -> Any:
            return x * 2.0

        @staticmethod
        @pg.grad
        def slope(x: Any) -> Any:
            return pg.sum(x * x)

    np.testing.assert_array_equal(Scale.plain(X), 2 * X)
    np.testing.assert_array_equal(Scale().slope(X), 2 * X)


def cubed(x: Any) -> Any:
    return pg.sum(x**3)


def test_transforms_can_be_pickled() -> None:
    for made in (pg.grad(cubed), pg.jit(cubed), pg.hessian(cubed), pg.value_and_grad(cubed)):
        expected = made(X)
        found = pickle.loads(pickle.dumps(made))(X)
        for a, b in zip(pg.tree.leaves(found), pg.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(a, b)


def test_threads_share_a_compiled_function() -> None:
    f = pg.jit(lambda x, y: pg.value_and_grad(lambda a: pg.sum(pg.tanh(a * y)))(x))
    faults: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x, y = rng.standard_normal((2, 3 + seed % 3))
            value, slope = f(x, y)
            if not np.allclose(value, np.tanh(x * y).sum()):
                faults.append("value")
            if not np.allclose(slope, y * (1 - np.tanh(x * y) ** 2)):
                faults.append("slope")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len(f.compilations) == 3


# Mistakes.

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "more than one element": (lambda: pg.grad(bend)(X), pg.NotScalarError, "not f64[2]"),
    "a pair": (lambda: pg.grad(lambda x: (x, x))(X), pg.NotScalarError, "has_aux=True"),
    "no pair": (
        lambda: pg.grad(pg.sum, has_aux=True)(X),
        pg.ArgumentError,
        "with has_aux the function returns a value and what else there is",
    ),
    "integers": (
        lambda: pg.grad(lambda x: pg.sum(x))(np.arange(3)),
        pg.NotDifferentiable,
        "grad: x is of int64",
    ),
    "no such argument": (lambda: pg.grad(wave, 1)(X), pg.ArgumentError, "there is no argument 1"),
    "by name": (lambda: pg.grad(wave)(x=X), pg.ArgumentError, "give by position"),
    "an integer result": (
        lambda: pg.grad(lambda x: pg.argmax(x))(X),
        pg.NotDifferentiable,
        "the function returned i64",
    ),
    "no argnums": (lambda: pg.grad(wave, ()), pg.ArgumentError, "argnums is an integer"),
    "no function": (lambda: pg.value_and_grad(3), pg.ArgumentError, "a function, not int"),
    "too many": (lambda: pg.grad(wave)(X, X), pg.ArgumentError, "wave: too many positional"),
    "options of tensors": (
        lambda: pg.grad(wave, create_graph=True),
        pg.ArgumentError,
        "there is no argument 'create_graph'",
    ),
    "a result that is no array": (
        lambda: pg.jit(lambda x: {"a": "no"})(X),
        pg.ArgumentError,
        "jit: the function returned str 'no' as result['a'], not an array",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(name: str) -> None:
    call, kind, text = MISTAKES[name]
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert "test_function_transforms.py" in str(caught.value)


# Vectorised functions.

SAMPLES = np.arange(12.0).reshape(4, 3) / 5 - 1


def affine(x: Any, w: Any) -> Any:
    return pg.tanh(w @ x)


def stacked(function: Callable[..., Any], *columns: Any) -> np.ndarray:
    return np.stack([np.asarray(function(*row)) for row in zip(*columns, strict=True)])


def everywhere(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    """What a function of arrays gives on arrays, on tensors, compiled, and in a program."""
    tensors = [pg.tensor(a) for a in arrays]
    made = function(*tensors)
    assert all(isinstance(t, pg.Tensor) for t in pg.tree.leaves(made))
    return [
        function(*arrays),
        pg.tree.map(lambda t: t.numpy(), made),
        pg.jit(function)(*arrays),
        in_program(function, *arrays),
    ]


def test_a_function_of_a_sample_becomes_one_of_many() -> None:
    expected = np.tanh(SAMPLES @ W.T)
    for found in everywhere(pg.vmap(affine, (0, None)), SAMPLES, W):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    for found in everywhere(pg.vmap(lambda x: affine(x, W)), SAMPLES):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_samples_are_along_any_axis(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    inner = lambda a: a * a[:1]  # noqa: E731
    for out in (0, 1, 2, -1, -2, -3):
        expected = np.moveaxis(stacked(inner, np.moveaxis(x, axis, 0)), 0, out)
        np.testing.assert_allclose(pg.vmap(inner, axis, out)(x), expected)


def test_axes_are_given_in_containers() -> None:
    def function(p: Any, y: Any, *, z: Any) -> Any:
        return {"sum": p["a"] + p["b"] * y + z, "same": pg.sum(p["b"]), "one": 3.0}

    b, y, z = np.arange(3.0), np.arange(4.0), np.ones(4)
    mapped = pg.vmap(function, ({"a": 1, "b": None}, 0), {"sum": 1, "same": None, "one": 0})
    for found in everywhere(lambda a: mapped({"a": a, "b": b}, y, z=z), SAMPLES.T):
        np.testing.assert_allclose(found["sum"], (SAMPLES + b * y[:, None] + 1).T)
        assert found["same"] == 3.0
        np.testing.assert_array_equal(found["one"], np.full(4, 3.0))
    pair = pg.vmap(lambda x: Pair(x, [x * 2.0]))(SAMPLES)
    assert type(pair) is Pair
    np.testing.assert_array_equal(pair.right[0], 2 * SAMPLES)


def test_what_all_samples_share_is_given_as_it_is() -> None:
    def function(x: Any, mode: str, n: int, table: Any) -> Any:
        assert isinstance(table, np.ndarray)
        return x**n if mode == "power" else x

    found = pg.vmap(function, (0, None, None, None))(SAMPLES, "power", 3, W)
    np.testing.assert_allclose(found, SAMPLES**3)
    assert pg.vmap(lambda: pg.ones(2), axis_size=5)().shape == (5, 2)
    assert pg.vmap(lambda x: x * 2.0)(np.zeros((0, 3))).shape == (0, 3)


def test_transforms_within_vmap_and_around_it() -> None:
    loss = lambda w, x: pg.sum(affine(x, w) ** 2)  # noqa: E731
    expected = stacked(lambda x: pg.grad(loss)(W, x), SAMPLES)
    for found in everywhere(pg.vmap(pg.grad(loss), (None, 0)), W, SAMPLES):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    total = pg.grad(lambda w: pg.sum(pg.vmap(lambda x: loss(w, x))(SAMPLES)))
    for found in everywhere(total, W):
        np.testing.assert_allclose(found, expected.sum(0), rtol=1e-10)
    hessians = stacked(lambda x: pg.hessian(wave)(x), SAMPLES)
    for found in everywhere(pg.vmap(pg.hessian(wave)), SAMPLES):
        np.testing.assert_allclose(found, hessians, rtol=1e-10, atol=1e-12)
    jacobian = pg.jacrev(pg.vmap(lambda x: x * x[0]))(SAMPLES)
    np.testing.assert_allclose(jacobian[1, :, 1], pg.jacrev(lambda x: x * x[0])(SAMPLES[1]))
    assert not jacobian[1, :, 0].any()
    outer = pg.vmap(pg.vmap(lambda a, b: a * b, (None, 0)), (0, None))
    for found in everywhere(outer, X, np.arange(4.0)):
        np.testing.assert_array_equal(found, np.outer(X, np.arange(4.0)))
    compiled = pg.vmap(pg.jit(wave))(SAMPLES)
    np.testing.assert_allclose(compiled, stacked(lambda x: pg.jit(wave)(x), SAMPLES))
    moved = pg.vmap(lambda x: pg.jvp(wave, x, x)[1])(SAMPLES)
    np.testing.assert_allclose(moved, stacked(lambda x: x @ wave_slope(x), SAMPLES))


def test_derivatives_go_through_vmap_to_what_it_finds() -> None:
    w = pg.tensor(W, requires_grad=True)
    pg.sum(pg.vmap(lambda x: affine(x, w))(SAMPLES)).backward()

    def total(a: np.ndarray) -> Any:
        return np.sum(np.tanh(SAMPLES @ a.T))

    np.testing.assert_allclose(w.grad.numpy(), differences(total, W), rtol=1e-6)
    found = in_program(lambda w: pg.vmap(lambda x: affine(x, w))(SAMPLES) + pg.sum(w), W)
    np.testing.assert_allclose(found, np.tanh(SAMPLES @ W.T) + W.sum())


def test_values_that_are_held_constant_stay_so_for_each_sample() -> None:
    def function(x: Any) -> Any:
        y = x * 2.0
        y.stop_gradient = True
        return pg.sum(y * x)

    for found in (in_program(pg.grad(lambda x: pg.sum(pg.vmap(function)(x))), SAMPLES),):
        np.testing.assert_allclose(found, 2 * SAMPLES)
    held = pg.grad(lambda x: pg.sum(pg.vmap(lambda a: a.detach() * a)(x)))
    for found in everywhere(held, SAMPLES):
        np.testing.assert_allclose(found, SAMPLES)


def test_vectorised_functions_are_compiled_when_they_come_again() -> None:
    function = pg.vmap(pg.grad(wave))
    before = pg.eager.log.total
    for i in range(6):
        expected = stacked(wave_slope, SAMPLES * i)
        np.testing.assert_allclose(function(SAMPLES * i), expected, rtol=1e-10, atol=1e-12)
    assert pg.eager.log.total - before <= 1


def test_other_numbers_in_a_vectorised_function_are_no_other_structure() -> None:
    before = pg.eager.log.total
    for i in range(2, 8):
        found = pg.vmap(lambda a, i=i: a * (0.5 * i) + np.full(3, i))(SAMPLES)
        np.testing.assert_allclose(found, SAMPLES * (0.5 * i) + i)
    assert pg.eager.log.total - before <= 1


def test_states_are_not_changed_for_each_sample() -> None:
    with pg.Program() as program:
        x = pg.data("x", (4, 3))
        state = pg.create_parameter((3,), name="running")

        def function(row: Any) -> Any:
            program.update(state, state * 0.9 + row)
            return row

        with pytest.raises(pg.BuildError, match="changes the state 'running'"):
            pg.vmap(function)(x)


VMAP_MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "sizes": (
        lambda: pg.vmap(affine)(SAMPLES, W),
        pg.ShapeError,
        "the numbers of samples differ: x has 4 along axis 0, w has 2 along axis 0",
    ),
    "axis_size": (
        lambda: pg.vmap(affine, (0, None), axis_size=3)(SAMPLES, W),
        pg.ShapeError,
        "axis_size is 3",
    ),
    "no such axis": (
        lambda: pg.vmap(affine, (2, None))(SAMPLES, W),
        pg.ShapeError,
        "vmap: x is f64[4,3], and has no axis 2 for samples",
    ),
    "no such axis of a result": (
        lambda: pg.vmap(lambda x: x, 0, 2)(SAMPLES),
        pg.ShapeError,
        "vmap: result is f64[4,3], and has no axis 2 for samples",
    ),
    "no samples": (lambda: pg.vmap(wave, None)(X), pg.ArgumentError, "no argument has samples"),
    "too few": (lambda: pg.vmap(affine, (0,))(SAMPLES, W), pg.ArgumentError, "1 entries for 2"),
    "other containers": (
        lambda: pg.vmap(wave, ({"a": 0},))(SAMPLES),
        pg.ArgumentError,
        "in_axes[0] is {'a': *}, and there is * in its place",
    ),
    "no axes": (lambda: pg.vmap(wave, "0"), pg.ArgumentError, "integers and None, not '0'"),
    "text": (
        lambda: pg.vmap(lambda p: p["a"])({"a": "no"}),
        pg.ArgumentError,
        "vmap: p['a'] is str 'no', not an array",
    ),
    "depends on the sample": (
        lambda: pg.vmap(wave, 0, None)(SAMPLES),
        pg.ArgumentError,
        "result depends on the sample",
    ),
    "no array returned": (
        lambda: pg.vmap(lambda x: [x, "no"])(SAMPLES),
        pg.ArgumentError,
        "the function returned str 'no' as result[1]",
    ),
}


@pytest.mark.parametrize("name", VMAP_MISTAKES)
def test_mistakes_with_samples_are_told(name: str) -> None:
    call, kind, text = VMAP_MISTAKES[name]
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("start", starts(5000, 30, 10, dense=20))
def test_graphs_are_done_again_with_tensors_to_the_bit(start: int) -> None:
    for seed in range(start, start + 10):
        program = random_program(seed)
        for graph in (program.graph, lower(program.graph)):
            expected = interpret(graph, *program.feeds)
            inputs = [
                array_node(np.array(x, v.dtype))
                for v, x in zip(graph.inputs, program.feeds, strict=True)
            ]
            found = [pg.Tensor(n).numpy() for n in replay_graph(graph, inputs)]
            fault = differs(graph, program.feeds, expected, found)
            assert not fault, f"{fault}\n{program}"


@pytest.mark.parametrize("start", starts(0, 40, 5, dense=5))
def test_gradients_of_random_functions_agree_in_all_ways(start: int) -> None:
    """On arrays, compiled, through a compiled function, for samples, and in a program."""
    for seed in range(start, start + 5):
        function, x = random_function(seed)
        slope = pg.grad(function)
        expected = slope(x)
        for found in (
            pg.jit(slope)(x),
            pg.grad(pg.jit(function))(x),
            in_program(slope, x),
            pg.vmap(slope)(x[None])[0],
            pg.grad(lambda a, f=function: pg.sum(pg.vmap(f)(a)))(x[None])[0],
            pg.jacfwd(function)(x),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11, err_msg=str(seed))
        np.testing.assert_allclose(
            pg.hvp(function, x, x)[1], pg.jit(pg.hessian(function))(x) @ x, rtol=1e-8, atol=1e-9
        )


def random_function(seed: int) -> tuple[Callable[[Any], Any], np.ndarray]:
    """A smooth function of a vector that gives one element, and where to look at it."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    plan = [(int(rng.integers(9)), rng.standard_normal((size, size)) / 2) for _ in range(6)]

    def function(x: Any) -> Any:
        values = [x]
        for kind, m in plan:
            a, b = values[-1], values[len(values) // 2]
            values.append([
                pg.tanh(m @ a),
                a * b,
                pg.sin(a) + m[0],
                pg.where(a > b, a * 2.0, b),
                pg.exp(-a * a) * b,
                pg.concatenate([b[1:], a[:1]]),
                pg.cumsum(a) / size,
                pg.grad(lambda y, b=b: pg.sum(pg.sin(y * b)))(a),
                pg.softmax(a) * b,
            ][kind])  # fmt: skip
        return pg.sum(values[-1] * values[-2])

    return function, rng.standard_normal(size)


# Numbers in the midst of a traced function.


def decides(x: Any) -> Any:
    y = x * 2.0
    return y if y > 0 else -y


def converts(x: Any) -> Any:
    return x * float(pg.sum(x))


TRACED = {
    "jit": lambda f: pg.jit(f)(1.0),
    "vmap": lambda f: pg.vmap(f)(np.ones(3)),
    "trace": lambda f: pg.trace(f, pg.spec(())),
    "grad in jit": lambda f: pg.jit(pg.grad(f))(1.0),
}


@pytest.mark.parametrize("way", TRACED)
@pytest.mark.parametrize("function", [decides, converts])
def test_numbers_in_a_traced_function_are_not_known(way: str, function: Any) -> None:
    with pytest.raises(pg.UnknownValueError) as caught:
        TRACED[way](function)
    text = str(caught.value)
    line = function.__code__.co_firstlineno + (2 if function is decides else 1)
    assert f"test_function_transforms.py:{line}" in text
    assert "pg.where(" in text
    # The number that an eager tensor gives has no derivative.
    allowed = text.count("without pg.jit, pg.trace and pg.vmap, pg.grad(f) allows it")
    assert allowed == (1 if function is decides else 0)
    told = text.count("pg.tensor(x) is an eager tensor, whose values Python can test")
    assert told == 1 - allowed
    if allowed:
        assert pg.grad(function)(1.0) == 2.0


def test_numbers_are_known_where_a_derivative_is_taken_and_may_decide_but_not_end_it() -> None:
    assert pg.grad(decides)(1.0) == 2.0
    assert pg.grad(decides)(-1.0) == -2.0
    for take in (pg.grad, pg.hessian):
        with pytest.raises(pg.BuildError, match="would lose the derivatives") as caught:
            take(converts)(1.0)
        line = converts.__code__.co_firstlineno + 1
        assert f"test_function_transforms.py:{line}" in str(caught.value)
        assert "x.item(), x.numpy() and x.detach() are numbers on purpose" in str(caught.value)


NUMPYS = {"array": np.array}


def test_an_array_of_numbers_does_not_end_derivatives_unseen() -> None:
    def function(x: Any) -> Any:
        return pg.sum(np.array([pg.cos(x[0]), 2.0 * x[1]]))

    def hidden(x: Any) -> Any:
        return pg.sum(NUMPYS["array"]([pg.cos(x[0]), 2.0 * x[1]]))

    x = pg.tensor([0.5, 1.0])
    np.testing.assert_allclose(pg.grad(function)(x), [-np.sin(0.5), 2.0], rtol=1e-15)
    expected = [[-np.cos(0.5), 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(pg.hessian(function)(x), expected, rtol=1e-15)
    for take in (pg.grad, pg.hessian):
        with pytest.raises(pg.BuildError, match="would lose the derivatives"):
            take(hidden)(x)


def cost(p: Any) -> Any:
    return pg.sum(p["w"] ** 3) * p["b"]


P = {"w": np.array([1.0, -2.0, 0.5]), "b": np.array(2.0)}
E = {"w": np.array([0.5, 1.0, -1.0]), "b": np.array(3.0)}
BOTH = {"a": X, "b": X + 1}


def two(x: Any) -> dict[str, Any]:
    return {"a": x * 2, "b": (x**2, [x])}


# Calls of transforms that take a function and its arguments at once, of arrays in containers.
CALLED_AT_ONCE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "jvp": (lambda p, e: pg.jvp(cost, (p,), (e,)), (P, E)),
    "jvp of one": (lambda p, e: pg.jvp(cost, p, e), (P, E)),
    "jvp of grad": (lambda p, e: pg.jvp(pg.grad(cost), (p,), (e,)), (P, E)),
    "jvp to containers": (lambda x: pg.jvp(two, x, x), (X,)),
    "vjp": (lambda p: pg.vjp(cost, (p,)), (P,)),
    "vjp of a list": (lambda x, y: pg.vjp(lambda a, b: a * b, [x, y]), (X, X)),
    "vjp to a tuple": (lambda x: pg.vjp(lambda x: (x * 2, x**2), x, (x, x)), (X,)),
    "vjp to containers": (lambda x: pg.vjp(two, x, {"a": x, "b": (x, None)}), (X,)),
    "hvp": (lambda p, e: pg.hvp(cost, (p,), (e,)), (P, E)),
    "vhp": (lambda p, e: pg.vhp(cost, p, e), (P, E)),
    "jacobian": (lambda p: pg.jacobian(lambda p: p["w"] * p["b"], (p,)), (P,)),
    "jacobian to containers": (lambda x: pg.jacobian(two, [x]), (X,)),
    "hessian": (lambda p: pg.hessian(cost, (p,)), (P,)),
}


@pytest.mark.parametrize("call", CALLED_AT_ONCE.values(), ids=CALLED_AT_ONCE)
def test_products_have_the_same_containers_in_programs_as_outside(call: Any) -> None:
    function, arrays = call
    wanted = function(*arrays)
    compiled = [pg.jit(function)(*arrays), in_program(function, *arrays)]
    for found in compiled:
        assert tree.structure(found) == tree.structure(wanted)
        for one, other in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
