"""HIPS autograd's names: its operators, rules of one's own, containers, optimizers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as onp
import pytest

import primgraph as pg
import primgraph.compat.autograd.numpy as np
import primgraph.compat.autograd.numpy.random as npr
import primgraph.compat.autograd.scipy.stats.norm as norm
from primgraph.compat import autograd
from primgraph.compat.autograd import builtins, grad, value_and_grad
from primgraph.compat.autograd.core import make_vjp, vspace
from primgraph.compat.autograd.extend import (
    def_linear,
    defjvp,
    defjvp_argnums,
    defvjp,
    defvjp_argnums,
    notrace_primitive,
    primitive,
)
from primgraph.compat.autograd.misc import const_graph, flatten
from primgraph.compat.autograd.misc.fixed_points import fixed_point
from primgraph.compat.autograd.misc.flatten import flatten_func
from primgraph.compat.autograd.misc.optimizers import adam, rmsprop, sgd
from primgraph.compat.autograd.scipy import special
from primgraph.compat.autograd.test_util import check_equivalent, check_grads, combo_check
from primgraph.compat.autograd.tracer import Node, getval, isbox, trace
from primgraph.compat.autograd.util import quick_grad_check

X = onp.array([0.3, -1.2, 0.8])
A = onp.array([[1.0, 2.0, -0.5], [0.5, -1.0, 3.0]])


def smooth(x: Any) -> Any:
    return np.tanh(np.dot(A, x))


def test_operators_are_those_of_primgraph() -> None:
    def value(x: Any, k: Any = 2.0) -> Any:
        return np.sum(k * np.sin(x) ** 2)

    wanted = pg.grad(value)(X)
    onp.testing.assert_allclose(grad(value)(X), wanted, rtol=1e-15)
    found = value_and_grad(value)(X, k=2.0)
    assert type(found[0]) is onp.float64
    onp.testing.assert_allclose(found[1], wanted, rtol=1e-15)
    assert type(grad(lambda x: x**3)(2.0)) is onp.float64
    for argnum, like in (([0, 1], tuple), ((1,), tuple)):
        assert isinstance(grad(value, argnum)(X, 2.0), like)
    onp.testing.assert_allclose(grad(value, 1)(X, 2.0), onp.sum(onp.sin(X) ** 2))
    onp.testing.assert_allclose(autograd.grad_named(value, "k")(X, 2.0), onp.sum(onp.sin(X) ** 2))
    by_name = autograd.multigrad_dict(value)(X)
    assert list(by_name) == ["x", "k"]
    onp.testing.assert_allclose(by_name["x"], wanted, rtol=1e-15)
    onp.testing.assert_allclose(autograd.elementwise_grad(np.sin)(X), onp.cos(X), rtol=1e-15)
    onp.testing.assert_allclose(autograd.deriv(np.sin)(0.3), onp.cos(0.3), rtol=1e-15)
    jacobian, hessian = pg.jacobian(smooth)(X), pg.hessian(value)(X)
    onp.testing.assert_allclose(autograd.jacobian(smooth)(X), jacobian, rtol=1e-14)
    onp.testing.assert_allclose(autograd.hessian(value)(X), hessian, rtol=1e-13, atol=1e-15)
    v, w = onp.array([1.0, -2.0, 0.5]), onp.array([0.5, 2.0])
    onp.testing.assert_allclose(autograd.make_jvp(smooth)(X)(v)[1], jacobian @ v, rtol=1e-13)
    onp.testing.assert_allclose(autograd.make_vjp(smooth)(X)[0](w), w @ jacobian, rtol=1e-13)
    onp.testing.assert_allclose(
        autograd.tensor_jacobian_product(smooth)(X, w), w @ jacobian, rtol=1e-13
    )
    for product in (autograd.make_hvp(value)(X)[0],
                    lambda v: autograd.hessian_vector_product(value)(X, v)):  # fmt: skip
        onp.testing.assert_allclose(product(v), hessian @ v, rtol=1e-13)
    onp.testing.assert_allclose(
        autograd.make_ggnvp(smooth)(X)(v), jacobian.T @ (jacobian @ v), rtol=1e-13
    )
    gradient, aux = autograd.grad_and_aux(lambda x: (np.sum(x**2), "more"))(X)
    onp.testing.assert_allclose(gradient, 2.0 * X)
    assert aux == "more"
    onp.testing.assert_allclose(
        grad(autograd.checkpoint(lambda x: np.sum(np.exp(x))))(X), onp.exp(X), rtol=1e-15
    )
    assert grad(value, 1).__name__ == "grad_of_value_wrt_argnum_1"


def test_python_decides_and_derivatives_nest() -> None:
    def root(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-13:
            x = (x + a / x) / 2.0
        return x

    assert abs(grad(root)(2.0) - 0.5 / 2**0.5) < 1e-12
    assert abs(grad(grad(root))(2.0) + 0.25 / 2**1.5) < 1e-9
    assert grad(lambda x: x * grad(lambda y: x * y)(2.0))(3.0) == 6.0
    check_grads(lambda x: np.array([x, x**2]))(0.5)
    combo_check(np.sum, [0])([X, A], axis=[None, 0], keepdims=[True, False])
    compiled = pg.jit(grad(lambda x: np.sum(np.sin(x))))
    onp.testing.assert_allclose(compiled(X), onp.cos(X), rtol=1e-15)


def test_containers() -> None:
    given = {"w": A, "b": [X, 2.0], "none": ()}

    def value(p: Any) -> Any:
        assert autograd.isinstance(p, dict)
        assert autograd.isinstance(p["b"], autograd.list)
        assert autograd.isinstance(p["w"], np.ndarray)
        assert builtins.type(p["w"]) is onp.ndarray
        assert autograd.isinstance(p["b"][1], float)
        return np.sum(p["w"] @ p["b"][0]) * p["b"][1]

    found = grad(value)(given)
    onp.testing.assert_allclose(found["b"][0], 2.0 * A.sum(0))
    assert found["none"] == ()
    assert type(found["b"][1]) is onp.float64
    check_grads(value)(given)
    flat, unflatten = flatten(given)
    assert flat.shape == (10,)
    assert unflatten(flat)["b"][1] == 2.0
    onp.testing.assert_array_equal(unflatten(flat)["w"], A)
    of_vectors, back, example = flatten_func(lambda p: {"w": p["w"] * 2.0}, {"w": A})
    onp.testing.assert_array_equal(back(of_vectors(example))["w"], 2.0 * A)
    space = vspace(given)
    assert space.size == 10
    assert space == vspace(space.randn())
    assert space != vspace(A)
    assert space.inner_prod(given, space.zeros()) == 0.0
    assert len([*space.standard_basis()]) == 10
    check_equivalent(space.add(given, given), space.scalar_mul(given, 2.0))
    with pytest.raises(AssertionError, match="Value mismatch"):
        check_equivalent(X, X + 1.0)
    with pytest.raises(TypeError, match="no vector space"):
        vspace("text")


def test_rules_of_ones_own() -> None:
    seen = []

    @primitive
    def logged(x: Any, scale: float) -> Any:
        seen.append(type(x))
        return scale * onp.exp(x)

    with pytest.raises(NotImplementedError, match="derivative of logged by its arguments"):
        grad(lambda x: np.sum(logged(x, 1.0)))(X)
    defvjp(logged, lambda ans, x, scale: lambda g: g * ans, None)
    check_grads(lambda x: logged(x, 2.0), modes=["rev"])(X)
    assert set(seen) == {onp.ndarray}
    defjvp(logged, lambda g, ans, x, scale: g * ans, None)
    check_grads(lambda x: logged(np.sin(x), 2.0))(0.4)
    onp.testing.assert_allclose(
        pg.jit(grad(lambda x: np.sum(logged(x, 2.0))))(X), 2.0 * onp.exp(X), rtol=1e-15
    )

    @primitive
    def both(pair: Any, z: Any) -> Any:
        return pair[0] * pair[1] + z

    def all_at_once(argnums: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        (x, y), _ = args
        rules = {0: lambda g: (g * y, g * x), 1: lambda g: g}
        return lambda g: [rules[i](g) for i in argnums]

    defvjp_argnums(both, all_at_once)
    check_grads(lambda x, y, z: both((x, y), z), argnum=(0, 1, 2), modes=["rev"])(1.5, 2.0, 0.5)

    @primitive
    def doubled(x: Any) -> Any:
        return 2.0 * x

    def_linear(doubled)
    check_grads(doubled, modes=["fwd"])(X)
    defjvp(doubled, "same")
    check_grads(doubled, modes=["fwd"])(X)
    defjvp_argnums(doubled, lambda argnums, gs, ans, args, kwargs: 3.0 * gs[0])
    with pytest.raises(AssertionError):
        check_grads(doubled, modes=["fwd"])(X)
    defvjp(doubled, lambda ans, x: lambda g: 2.001 * g)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of doubled failed"):
        check_grads(doubled, modes=["rev"])(1.0)
    with pytest.raises(TypeError, match="is a function, not 3"):
        defvjp(doubled, 3)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="deprecated"):
        quick_grad_check(lambda x, y: x**2 + y, 1.0, (2.0,))
    assert notrace_primitive(lambda x: type(x))(pg.tensor(X)) is onp.ndarray
    assert isbox(pg.tensor(X))
    assert not isbox(X)
    assert getval(pg.tensor(2.0)) == 2.0
    assert getval("text") == "text"


def test_rules_as_they_were_given_before() -> None:
    @autograd.primitive
    def product(x: Any, y: Any) -> Any:
        return x * y

    with pytest.warns(UserWarning, match="deprecated"):
        product.defgrad(lambda ans, x, y: lambda g: y * g)
    with pytest.warns(UserWarning, match="deprecated"):
        product.defvjp(lambda g, ans, vs, gvs, x, y: x * g, argnum=1)
    check_grads(product, argnum=(0, 1), modes=["rev"])(X, 2.0 * X)
    with pytest.warns(UserWarning, match="deprecated"):
        product.defvjp_is_zero([1])
    assert not grad(lambda y: np.sum(product(X, y)))(X).any()


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="of functions of one real number"):
        grad(lambda x: x * 2.0)(X)
    with pytest.raises(TypeError, match="no derivative is taken by int 2"):
        grad(lambda x: x**2)(2)
    with pytest.raises(TypeError), pytest.warns(UserWarning, match="independent of input"):
        grad(lambda x: np.allclose(x, x))(X)
    with pytest.raises(TypeError, match="argnum is an integer"):
        grad(np.sum, "x")
    with pytest.warns(UserWarning, match="independent of input"):
        assert grad(lambda x: 1.0)(2.0) == 0.0
    with pytest.raises(TypeError, match="one array by one array"):
        autograd.jacobian(lambda x: x[0])([1.0, 2.0])
    with pytest.raises(ValueError, match="'fwd' and 'rev'"):
        check_grads(np.sin, modes=["sideways"])(1.0)
    with pytest.raises(TypeError, match="diagonals of the last two axes"):
        np.make_diagonal(X)


def test_names_of_autograds_numpy() -> None:
    assert np.__version__ == onp.__version__
    assert np.pi == onp.pi
    assert "sin" in dir(np)
    assert npr.randn is not None
    assert np.random is npr
    onp.testing.assert_array_equal(np.make_diagonal(A, axis1=-1, axis2=-2)[1], onp.diag(A[1]))
    check_grads(lambda x: np.make_diagonal(x, axis1=-1, axis2=-2))(A)
    assert np.where(True, 1, 2) == 1
    assert np.where([True, False])[0].tolist() == [0]
    onp.testing.assert_array_equal(np.where(condition=[True, False], x=1.0, y=2.0), [1.0, 2.0])


@pytest.mark.parametrize("optimizer", [sgd, rmsprop, adam])
def test_optimizers(optimizer: Any) -> None:
    steps: list[int] = []

    def gradient(p: Any, i: int) -> Any:
        return grad(lambda q: np.sum((q["x"] - 1.0) ** 2))(p)

    def told(p: Any, i: int, g: Any) -> None:
        steps.append(i)

    found = optimizer(gradient, {"x": X}, told, num_iters=60, step_size=0.1)
    assert steps == list(range(60))
    assert onp.abs(found["x"] - 1.0).max() < 0.3


def test_graphs_that_are_fixed_and_fixed_points() -> None:
    calls = []

    def traced(x: Any, y: Any) -> Any:
        calls.append(x)
        return grad(lambda z: np.sin(z) + 2.0 * z)(x * y)

    fixed = const_graph(traced)
    assert fixed(0.0, 0.0) == 3.0
    assert fixed(1.0, 0.5) == traced(1.0, 0.5)
    assert len(calls) == 2

    def root(a: Any) -> Any:
        def step(b: Any) -> Any:
            return lambda x: 0.5 * (x + b / x)

        return fixed_point(step, a, 10.0, lambda x, y: np.abs(x - y), 1e-12)

    assert abs(grad(root)(2.0) - 0.5 / 2**0.5) < 1e-10
    assert abs(grad(grad(root))(2.0) + 0.25 / 2**1.5) < 1e-9


def test_products_may_be_taken_again() -> None:
    vjp, value = make_vjp(lambda x: (np.sin(x), {"sum": np.sum(x)}), X)
    onp.testing.assert_allclose(value[0], onp.sin(X))
    found = vjp((onp.ones(3), {"sum": 2.0}))
    onp.testing.assert_allclose(found, onp.cos(X) + 2.0, rtol=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_grads(lambda x, v: make_vjp(np.sin, x)[0](v), argnum=(0, 1), order=1)(X, X)


def test_names_of_autograds_scipy() -> None:
    scipys = pytest.importorskip("scipy.special")
    at = onp.array([[0.5, 1.5]])
    for name in ("j0", "j1", "y0", "y1", "i0", "i1", "rgamma"):
        onp.testing.assert_array_equal(getattr(special, name)(at), getattr(scipys, name)(at))
        check_grads(getattr(special, name), modes=["rev"])(at)
    for name in ("jn", "yn", "jv", "yv", "kv", "iv", "ive"):
        of_order = check_grads(getattr(special, name), argnum=1, modes=["rev"], order=1)
        of_order(2, at)
        of_order(onp.array([[1.0], [2.0]]), at)
    assert not grad(lambda x: np.sum(special.gammasgn(x)))(at).any()
    with pytest.raises(NotImplementedError, match="wrt argnum 0 not defined"):
        grad(lambda n: np.sum(special.iv(n, at)))(1.5)
    check_grads(norm.logcdf, argnum=(0, 1, 2), order=1)(X, 0.3, 1.5)
    assert autograd.scipy.stats.norm is norm


def test_what_is_made_of_arrays_by_containers_is_made_of_arrays() -> None:
    """The vector that `flatten` gives depends on nothing that derivatives may be asked for."""

    def cubes(weights: Any) -> Any:
        return np.sum(weights["a"] ** 3) + np.sum(weights["b"] ** 2)

    of_vectors, _, flat = flatten_func(cubes, {"a": onp.ones(2), "b": onp.full(3, 2.0)})
    product = autograd.hessian_vector_product(of_vectors)
    for found, expected in (
        (flat, [1, 1, 2, 2, 2]),
        (grad(of_vectors)(flat), [3, 3, 4, 4, 4]),
        (product(flat, flat), [6, 6, 4, 4, 4]),
    ):
        assert type(found) is onp.ndarray
        onp.testing.assert_allclose(found, expected)


def test_derivatives_by_tensors_elsewhere_go_through_what_is_made_of_arrays() -> None:
    w = pg.tensor(2.0, requires_grad=True)
    slope = pg.grad(lambda x: pg.sum(w * x**3))(onp.array([1.0, 2.0]))
    (found,) = pg.grad(pg.sum(slope), [w])
    assert found.item() == 15.0
    outer = pg.jacrev(lambda x: pg.grad(lambda y: pg.sum(x * y**2))(onp.array([1.0, 3.0])))
    onp.testing.assert_allclose(outer(onp.array([1.0, 1.0])), [[2.0, 0.0], [0.0, 6.0]])
    inner = pg.jacobian(lambda x: pg.grad(lambda y: pg.sum(x * y**2))(x), pg.tensor([1.0, 3.0]))
    onp.testing.assert_allclose(inner[:].numpy(), [[4.0, 0.0], [0.0, 12.0]])


def test_arrays_are_filled_with_what_is_computed() -> None:
    found = grad(lambda x: np.sum(np.full((2, 3), x) * np.full(3, x, dtype="float64")))(2.0)
    assert found == 24.0


@pytest.mark.parametrize("UPLO", ["L", "U"])
def test_the_gradient_of_eigh_is_in_the_triangle_that_is_read(UPLO: str) -> None:
    a = onp.random.default_rng(3).normal(size=(3, 3))
    check_grads(lambda x: tuple(np.linalg.eigh(x, UPLO)), modes=["rev"], order=1)(a)
    check_grads(lambda x: np.linalg.eigvalsh(x, UPLO), modes=["rev"], order=1)(a)
    unread = grad(lambda x: np.sum(np.linalg.eigvalsh(x, UPLO) ** 3))(a)
    assert not (onp.triu(unread, 1) if UPLO == "L" else onp.tril(unread, -1)).any()


def test_real_if_close_looks_at_numbers() -> None:
    z = onp.array([1.0 + 1e-16j, 2.0])
    assert grad(lambda x: np.sum(np.real_if_close(x * z)))(onp.ones(2)).tolist() == [1.0, 2.0]
    kept = pg.tensor(z + 1j)
    assert np.real_if_close(kept) is kept
    with pytest.raises(pg.DTypeError, match="depends on its numbers"):
        pg.jit(np.real_if_close)(z)


class Named(Node):
    """A node that keeps the name of its function, and its parents."""

    def __init__(
        self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: Any, parents: Any
    ) -> None:
        onp.testing.assert_allclose(fun(*args, **kwargs)[0], value)
        self.name, self.parents = fun.__name__, dict(zip(parent_argnums, parents, strict=True))

    def initialize_root(self, name: str) -> None:
        self.name, self.parents = name, {}

    def __str__(self) -> str:
        inner = ", ".join(f"{i}: {parent}" for i, parent in self.parents.items())
        return f"{self.name}({inner})" if inner else self.name


def test_a_trace_makes_nodes_of_its_functions() -> None:
    value, end = trace(Named.new_root("x"), lambda x: 2.0 + np.sin(x) * np.exp(x), 1.5)
    onp.testing.assert_allclose(value, 2.0 + onp.sin(1.5) * onp.exp(1.5))
    assert str(end) == "add(1: mul(0: sin(0: x), 1: exp(0: x)))"
    assert trace(Named.new_root("x"), lambda x: np.ones(2), 1.5)[1] is None
