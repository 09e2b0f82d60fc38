"""Which target is taken where that is left open, and what takes a target."""

import shutil
import warnings

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen.runtime.toolchain import compile_c

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)

rng = np.random.default_rng(3)


@pytest.fixture(autouse=True, scope="module")
def own_cache(native_cache):
    return native_cache


def deep(x):
    for _ in range(4):
        x = pg.tanh(x) * 1.01 + pg.sin(x)
    return pg.sum(x, axis=0)


def counted(x):
    return pg.scan(lambda s, _: (s * 0.99 + pg.sin(s), None), x, None, length=500)[0]


def test_native_code_is_taken_where_it_pays_and_not_for_products():
    x, square = np.linspace(0, 1, 20000), rng.normal(size=(200, 200))
    cases = [
        (deep, x, "native"), (counted, np.ones(3), "native"), (lambda x: x @ x, square, "planned"),
        (lambda x: pg.linalg.solve(x, x), square, "planned"),
        (lambda x: pg.sin(x) * 2, np.ones(3), "planned"),
    ]  # fmt: skip
    for function, array, style in cases:
        graph = pg.trace(function, array)
        kernel = pg.compile(graph, target="auto")
        assert kernel.style == style
        np.testing.assert_allclose(
            kernel(array), pg.compile(graph, target="numpy")(array), rtol=1e-11, atol=1e-11
        )


def filtered(x, p, a, h, z):
    x, p = a @ x, a @ p @ a.T + 0.1
    gain = pg.linalg.solve(h @ p @ h.T + pg.eye(2), h @ p).T
    return x + gain @ (z - h @ x), p - gain @ h @ p


def test_small_products_and_systems_count_by_their_calls():
    x, p, a, h = rng.normal(size=4), np.eye(4), rng.normal(size=(4, 4)), rng.normal(size=(2, 4))
    graphs = [pg.trace(filtered, x, p, a, h, x[:2]), pg.trace(pg.linalg.eigvalsh, p)]
    # Python's own operators take the place of NumPy's calls where there are few elements.
    graphs.append(pg.trace(lambda x: [pg.sum(pg.sin(x * k)) for k in range(2, 6)], np.ones(2)))
    graphs.append(pg.trace(lambda x: [pg.sum(pg.sin(x * k)) for k in range(2, 6)], np.ones(999)))
    styles = [pg.compile(graph, target="auto").style for graph in graphs]
    assert styles == ["native", "planned", "planned", "native"]


def test_sizes_count_as_sixty_four():
    for function, style in ((lambda x: deep(x[:1]), "readable"), (counted, "native")):
        graph = pg.trace(function, pg.spec(("N",)))
        kernel = pg.compile(graph, target="auto")
        x = rng.normal(size=5)
        np.testing.assert_allclose(
            kernel(x), pg.compile(graph, target="numpy")(x), rtol=1e-11, atol=1e-11
        )
        assert kernel.generic.style == style
    assert kernel.at(N=3).style == "native"


def test_without_a_compiler_nothing_is_said(monkeypatch):
    monkeypatch.setattr(compile_c, "find_compiler", lambda: None)
    x = np.linspace(0, 1, 20000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pg.compile(pg.trace(deep, x), target="auto").style == "planned"


def test_a_compiler_that_fails_leaves_numpys_kernel(monkeypatch):
    def fail(*args, **kwargs):
        raise compile_c.FailedError("cc failed", "no luck")

    monkeypatch.setattr("primgraph.codegen.native.library", fail)
    x = np.linspace(0, 1, 20001)
    with pytest.warns(RuntimeWarning, match="cc failed: NumPy runs instead"):
        kernel = pg.compile(pg.trace(deep, x), target="auto")
    assert kernel.style == "planned"


def test_the_environment_says_what_is_taken_by_default(monkeypatch):
    monkeypatch.setenv("PRIMGRAPH_TARGET", "auto")
    x = np.linspace(0, 1, 20002)
    assert pg.compile(pg.trace(deep, x)).style == "native"
    assert pg.Executor().target == "auto"
    assert pg.compile(pg.trace(deep, x), style="readable").style == "readable"


def trained(target):
    with pg.Program() as program:
        x = pg.data("x", (6, 2))
        w = pg.create_parameter((2,), initializer=pg.initializers.Constant(0.5))
        loss = pg.mean((pg.tanh(x * w) - 0.25) ** 2)
        pg.optimizer.SGD(0.1).minimize(loss)
    return program, loss, {"x": np.linspace(-1, 1, 12).reshape(6, 2)}, target


def test_training_takes_a_target():
    found = []
    for target in ("c", "auto", "numpy", None):
        program, loss, feed, _ = trained(target)
        found.append(pg.fit(program, loss, [feed], epochs=3, target=target))
    np.testing.assert_allclose(found[0], found[2], rtol=1e-13)
    assert found[1] == found[2] == found[3]
    program, loss, feed, _ = trained(None)
    with pytest.raises(pg.CompileError, match="there is no target 'rust'"):
        pg.fit(program, loss, [feed], epochs=1, target="rust")
    with pytest.raises(pg.ArgumentError, match="a target is for programs"):
        pg.fit(program, loss, [feed], epochs=1, executor=pg.Executor(), target="c")


def test_objectives_of_scipys_take_a_target():
    theta = np.array([0.3, -0.2])
    found = []
    for target in ("c", "numpy", "auto"):
        program, loss, feed, _ = trained(target)
        objective = pg.scipy_objective(program, loss, feed=feed, target=target)
        value, slope = objective.fun_and_jac(theta)
        found.append(
            [value, *slope, *objective.hess(theta).ravel(), *objective.hessp(theta, theta)]
        )
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    assert found[1] == found[2]
    with pytest.raises(pg.CompileError, match="there is no target 'rust'"):
        pg.scipy_objective(program, loss, feed=feed, target="rust")
