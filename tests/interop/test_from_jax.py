"""Functions of JAX as graphs: values and derivatives beside JAX's own."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import primgraph as pg

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")
lax = jax.lax
Primitive = pytest.importorskip("jax.extend.core").Primitive
ad = pytest.importorskip("jax.interpreters.ad")
mlir = pytest.importorskip("jax.interpreters.mlir")

X = np.array([0.3, -1.2, 2.5, 0.7])
POSITIVE = np.abs(X) + 0.1
MATRIX = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [0.5, -0.3, 3.0]])
PLACES = np.array([2, 0, 2])
IMAGE = np.sin(np.arange(2 * 3 * 7 * 6)).reshape(2, 3, 7, 6)
WEIGHT = np.cos(np.arange(4 * 3 * 3 * 2)).reshape(4, 3, 3, 2)


@pytest.fixture(autouse=True)
def float64():
    """JAX computes in float64 within each test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@jax.custom_jvp
def halved(x):
    return x / 2


@halved.defjvp
def halved_jvp(primals, tangents):
    """Three times the slope, so that the rule is seen to count."""
    return halved(primals[0]), 1.5 * tangents[0] * jnp.cos(primals[0])


@jax.custom_vjp
def clipped(x, n):
    return x * n


clipped.defvjp(lambda x, n: (x * n, (x, n)), lambda kept, ct: (ct * kept[1] * kept[0], None))


@jax.custom_jvp
def copied(x):
    return x * 1.0


@copied.defjvp
def _(primals, tangents):
    return copied(primals[0]), copied(tangents[0])


# A primitive of another package: the values are those of `floor`, the derivatives of a product.
STEPPED = Primitive("stepped_for_tests")
STEPPED.def_impl(lambda x, y: jnp.floor(x) * jnp.floor(y))
STEPPED.def_abstract_eval(lambda x, y: x)
mlir.register_lowering(STEPPED, mlir.lower_fun(STEPPED.impl, multiple_results=False))


def _stepped_jvp(primals, tangents):
    (x, y), slopes = primals, [ad.instantiate_zeros(t) for t in tangents]
    return stepped(x, y), slopes[0] * y + slopes[1] * jnp.cos(x)


ad.primitive_jvps[STEPPED] = _stepped_jvp


def stepped(x, y):
    return STEPPED.bind(x, y)


def solved(matrix, b):
    return lax.custom_linear_solve(
        lambda x: matrix @ x,
        b,
        solve=lambda matvec, b: jnp.linalg.solve(lax.stop_gradient(matrix), b),
        transpose_solve=lambda vecmat, b: jnp.linalg.solve(lax.stop_gradient(matrix).T, b),
    )


def windows_summed(x):
    return lax.reduce_window(
        x, 0.0, lax.add, (1, 1, 3, 2), (1, 1, 2, 1), ((0, 0),) * 2 + ((1, 1),) * 2
    )


# One function for each family of primitives, with its argument.
SMOOTH = {
    "elementary": (lambda x: jnp.sin(x) * jnp.exp(-x) + jnp.tanh(x) / jnp.cosh(x), X),
    "powers": (lambda x: x**3 + x**-2 + jnp.sqrt(x) + x**1.5 + lax.rsqrt(x), POSITIVE),
    "kinks": (lambda x: jnp.maximum(x, x**2) + jnp.abs(x) + jnp.clip(x, -1, 1), X),
    "choices": (lambda x: jnp.where(x > 0, x**2, jnp.sin(x)) + lax.clamp(-1.0, x**3, 1.0), X),
    "special": (lambda x: lax.lgamma(x) + lax.erf(x) + lax.digamma(x)
                + lax.erf_inv(x / 4), POSITIVE),
    "incomplete": (lambda x: lax.igamma(2.0, x) + lax.betainc(2.0, 3.0, x / 4), POSITIVE),
    "shapes": (lambda x: jnp.tile(x[::-1].reshape(2, 2).T, (2, 1))[1:] ** 2, X),
    "padding": (lambda x: lax.pad(x**2, x[0], [(1, -1, 2)]) * jnp.arange(10.0), X),
    "joining": (lambda x: jnp.concatenate([x, jnp.stack([x[0], x[1]]), x[1:] ** 2]) ** 2, X),
    "dots": (lambda x: jnp.einsum("ijk,jl,il->k", jnp.ones((2, 2, 3)), x.reshape(2, 2) ** 2,
                                  x.reshape(2, 2)), X),
    "gather": (lambda x: x[PLACES] ** 2 * x[jnp.array([-1, 1, 3])], X),
    "fill": (lambda x: jnp.take(x, jnp.array([1, 7]), mode="fill", fill_value=2.0) ** 2, X),
    "slices": (lambda x: lax.dynamic_slice(x, (2,), (3,)) ** 2 * x[0], X),
    "update": (lambda x: lax.dynamic_update_slice(x, x[:2] ** 2, (9,)) ** 2, X),
    "scatter": (lambda x: x.at[PLACES].set(x[:3] ** 2) + x.at[PLACES].add(x[:3] ** 3), X),
    "scatter extremes": (lambda x: x.at[1].set(2.0).at[jnp.array([1, 5])].multiply(
        x[:2], unique_indices=True) ** 2, X),
    "reductions": (lambda x: jnp.sum(x) * jnp.prod(x) + jnp.max(x) ** 2 + jnp.var(x), X),
    "running": (lambda x: jnp.cumsum(x**2) + jnp.cumprod(x) + lax.cummax(x) ** 2
                + lax.cumlogsumexp(x, reverse=True), X),
    "sorting": (lambda x: jnp.sort(x) ** 2 * jnp.arange(4) + lax.top_k(x, 4)[0] ** 3, X),
    "windows": (windows_summed, IMAGE[:1, :1]),
    "pools": (lambda x: lax.reduce_window(x**2, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2),
                                          "SAME"), IMAGE[:1, :1]),
    "convolution": (lambda w: lax.conv_general_dilated(
        IMAGE, w**2, (2, 1), ((1, 2), (0, 1)), (1, 2), (2, 1)), WEIGHT),
    "scan": (lambda x: lax.scan(lambda c, v: (jnp.sin(c) * v, c**2), x[0], x)[1], X),
    "while": (lambda x: lax.fori_loop(0, 3, lambda i, v: v * jnp.cos(v) + i, x), X),
    "branches": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
                 + lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], x), X),
    "checkpoint": (lambda x: jax.checkpoint(lambda v: jnp.sin(v) ** 2)(x), X),
    "foreign": (lambda x: stepped(x**2, jnp.sin(x)) * x, X),
    "custom_jvp_of_tangents": (lambda x: copied(jnp.sin(x)) ** 2, X),
    "custom_jvp": (lambda x: halved(x) ** 2 + jax.nn.relu(x) ** 2 + jax.nn.softplus(x), X),
    "solve": (lambda a: jnp.linalg.solve(a, jnp.ones(3)) + solved(a, jnp.ones(3)), MATRIX),
    "factors": (lambda a: jnp.linalg.cholesky(a @ a.T) + jnp.linalg.qr(a)[1], MATRIX),
    "spectra": (lambda a: jnp.linalg.eigvalsh(a + a.T) + jnp.linalg.svd(a, compute_uv=False),
                MATRIX),
    "determinants": (lambda a: jnp.linalg.slogdet(a)[1] * jnp.trace(jnp.linalg.inv(a)), MATRIX),
    "fourier": (lambda x: jnp.abs(jnp.fft.fft(x)) ** 2 + jnp.fft.irfft(jnp.fft.rfft(x**2)), X),
    "random": (lambda x: x * jax.random.normal(jax.random.key(3), x.shape), X),
}  # fmt: skip


@pytest.mark.parametrize("family", SMOOTH)
def test_values_and_derivatives_are_those_of_jax(family):
    function, x = SMOOTH[family]
    imported = pg.interop.from_jax(function, pg.spec(x.shape))
    expected = function(jnp.asarray(x))
    np.testing.assert_allclose(imported(x), expected, rtol=1e-9, atol=1e-11)
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)

    def loss(library, f):
        return lambda x: library.sum(f(x) * weights)

    ours, theirs = loss(pg, imported), loss(jnp, function)
    np.testing.assert_allclose(pg.grad(ours)(x), jax.grad(theirs)(x), rtol=1e-8, atol=1e-9)
    v = np.sin(1.0 + np.arange(x.size)).reshape(x.shape)
    _, second = jax.jvp(jax.grad(theirs), (x,), (v,))
    np.testing.assert_allclose(pg.hvp(ours, x, v)[1], second, rtol=1e-7, atol=1e-8)


def test_containers_of_arguments_and_results_are_those_of_the_function():
    def function(params, x, *, scale):
        return {"y": params["w"] @ x * scale, "both": (x, [params["b"]]), "none": None}

    given = {"w": np.ones((2, 3)), "b": np.arange(2.0)}
    imported = pg.interop.from_jax(function, given, pg.spec(3), scale=pg.spec(()))
    found = imported(given, np.ones(3), scale=2.0)
    assert found["y"].tolist() == [6.0, 6.0]
    assert found["both"][1][0].tolist() == [0.0, 1.0]
    assert found["none"] is None
    assert imported.graph.form.parameters == ("params", "x", "scale")
    assert pg.grad(lambda p: pg.sum(imported(p, np.ones(3), scale=2.0)["y"]))(given)["w"].shape == (
        2,
        3,
    )


def test_symbolic_sizes_are_sizes_of_jax_export():
    imported = pg.interop.from_jax(lambda x: jnp.mean(x) + x[1:] * x.shape[0], pg.spec("N"))
    for size in (2, 5):
        x = np.arange(float(size))
        assert imported(x).tolist() == (x.mean() + x[1:] * size).tolist()
    (size,) = jax.export.symbolic_shape("rows")
    graph = pg.interop.from_jax(jnp.cumsum, jax.ShapeDtypeStruct((size, 2), np.float64)).graph
    assert str(graph.inputs[0].type) == "f64[rows,2]"


def test_dtypes_are_those_of_jax():
    jax.config.update("jax_enable_x64", False)
    graph = pg.interop.from_jax(lambda x: (x * 2, jnp.argmax(x)), pg.spec(3)).graph
    assert [str(t) for t in graph.output_types] == ["f32[3]", "i32[]"]


def test_integers_are_computed_as_by_jax():
    x, y = np.array([7, -7, 7, -7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32)

    def function(x, y):
        bits = lax.population_count(x) + lax.clz(x) + lax.shift_right_logical(x, y)
        return lax.div(x, y), lax.rem(x, y), bits, lax.bitcast_convert_type(x, np.float32)

    for found, expected in zip(
        pg.interop.from_jax(function, x, y)(x, y), function(x, y), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    floats = np.array([3.7, -3.7, np.nan, 1e20, -1e20])
    convert = pg.interop.from_jax(lambda x: (x.astype(np.int32), x.astype(np.uint8)), floats)
    for found, dtype in zip(convert(floats), (np.int32, np.uint8), strict=True):
        np.testing.assert_array_equal(found, jnp.asarray(floats).astype(dtype))


def test_random_numbers_are_those_of_jax():
    def function(key):
        first, second = jax.random.split(jax.random.fold_in(key, 7))
        return jax.random.normal(first, (3,)), jax.random.randint(second, (4,), 0, 10)

    key = jax.random.PRNGKey(5)
    imported = pg.interop.from_jax(function, key)
    for seed in (key, jax.random.PRNGKey(6)):
        for found, expected in zip(imported(np.asarray(seed)), function(seed), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_all_primitives_that_are_lacking_are_listed_with_their_lines():
    def function(x):
        y = lax.rng_uniform(0.0, x[0], (3,))
        z = lax.rng_uniform(0.0, x[1], (3,))
        return jax.pure_callback(np.sin, y + z, x) + y.astype(jnp.bfloat16)

    with pytest.raises(pg.UnsupportedError) as raised:
        pg.interop.from_jax(function, pg.spec(3))
    message = str(raised.value)
    assert "rng_uniform (2 times, first at test_from_jax.py:" in message
    assert "pure_callback (once" in message
    assert "dtype bfloat16" in message


# A process without JAX.
_WITHOUT = """
import importlib.util, pickle, sys
import numpy as np
sys.modules["jax"] = None
spec = importlib.util.spec_from_file_location("model", {source!r})
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
import primgraph as pg
x = np.array([0.3, -1.2, 2.5, 0.7])
with open({pickled!r}, "rb") as file:
    imported = pickle.load(file)
np.testing.assert_allclose(imported(x), model.model(x), rtol=1e-12)
np.testing.assert_allclose(pg.grad(lambda x: pg.sum(imported(x)))(x), {slope}, rtol=1e-12)
"""


def test_an_imported_function_runs_without_jax(tmp_path):
    def model(x):
        hidden = jnp.tanh(jnp.arange(12.0).reshape(3, 4) @ x / 10)
        return lax.fori_loop(0, 3, lambda i, h: jnp.sin(h) + h[i], hidden)

    imported = pg.interop.from_jax(model, pg.spec(4))
    source, pickled = tmp_path / "model.py", tmp_path / "model.pickle"
    pg.compile(imported.graph).save(str(source))
    pg.compile(imported.graph).save(str(tmp_path / "model.c"))
    pickled.write_bytes(pickle.dumps(imported))
    slope = jax.grad(lambda x: jnp.sum(model(x)))(X).tolist()
    text = _WITHOUT.format(source=str(source), pickled=str(pickled), slope=slope)
    subprocess.run([sys.executable, "-c", text], check=True, cwd=tmp_path)
    assert "import jax" not in source.read_text()


_WITH_RULES = """
import pickle, sys
import numpy as np
sys.modules["jax"] = None
import primgraph as pg
x = np.array([0.3, -1.2, 2.5, 0.7])
with open({pickled!r}, "rb") as file:
    imported = pickle.loads(pickle.dumps(pickle.load(file)))
np.testing.assert_allclose(pg.grad(imported)(x), {slope}, rtol=1e-12)
np.testing.assert_allclose(pg.hessian(imported)(x), {second}, rtol=1e-11, atol=1e-12)
rows = pg.vmap(pg.grad(imported))(np.stack([x, x]))
np.testing.assert_allclose(rows[1], {slope}, rtol=1e-12)
"""


def test_rules_of_custom_functions_are_pickled(tmp_path):
    @jax.custom_vjp
    def doubled(x):
        return jnp.round(x)

    doubled.defvjp(lambda x: (jnp.round(x), x), lambda x, ct: (2.0 * ct,))

    def model(x):
        solved = jnp.linalg.solve(jnp.outer(x, x) + 3.0 * jnp.eye(4), jax.nn.silu(x))
        return jnp.sum(solved * jax.nn.relu(x) + jnp.logaddexp(x, x[::-1])) + jnp.sum(doubled(x))

    pickled = tmp_path / "model.pickle"
    pickled.write_bytes(pickle.dumps(pg.interop.from_jax(model, pg.spec(4))))
    slope, second = jax.grad(model)(X).tolist(), jax.jacrev(jax.grad(model))(X).tolist()
    text = _WITH_RULES.format(pickled=str(pickled), slope=slope, second=second)
    subprocess.run([sys.executable, "-c", text], check=True, cwd=tmp_path)


@pytest.mark.parametrize("is_nested", [False, True])
def test_updates_of_one_element_are_applied_in_order(is_nested):
    rows = jnp.array([0, 2, 0, 9, 0])

    def function(x):
        if is_nested:
            return jnp.stack([x, -x]).at[:, rows].apply(jnp.sin)
        return jnp.asarray(x).at[rows].apply(lambda v: 2.0 * v + 1.0)

    np.testing.assert_allclose(pg.interop.from_jax(function, X)(X), function(X), rtol=1e-13)


def test_loops_of_a_batch_stop_one_by_one():
    def halved_until(x, least):
        return lax.while_loop(lambda s: jnp.abs(s[0]) > least,
                              lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))  # fmt: skip

    batch = jax.vmap(halved_until)
    arrays = np.array([8.0, -0.3, 1e3, 0.0]), np.array([1.0, 0.1, 2.0, 1.0])
    found = pg.interop.from_jax(batch, *arrays)
    for x, y in zip(found(*arrays), batch(*arrays), strict=True):
        assert np.array_equal(x, y)
    directions = np.ones(4), np.zeros(4)
    _, (slope, _) = jax.jvp(batch, arrays, directions)
    _, tangent = pg.jvp(lambda *xs: found(*xs)[0], arrays, directions)
    assert np.array_equal(tangent, slope)


def test_derivatives_of_complex_eigenvectors_are_those_of_jax():
    def parts(a):
        w, left, right = lax.linalg.eig(a, enable_eigvec_derivs=True)
        return w, left**2, right**2

    a, d = MATRIX + 1j * MATRIX[::-1], np.cos(np.arange(9.0)).reshape(3, 3) + 0.5j
    found = pg.jvp(pg.interop.from_jax(parts, a), a, d)
    expected = jax.jvp(parts, (a,), (d,))
    for ours, theirs in zip(found, expected, strict=True):
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_factors_of_schur_are_a_triangle_and_orthogonal():
    t, z = pg.interop.from_jax(jax.scipy.linalg.schur, MATRIX)(MATRIX)
    np.testing.assert_allclose(z @ t @ z.T, MATRIX, atol=1e-13)
    np.testing.assert_allclose(z.T @ z, np.eye(3), atol=1e-13)
    assert not np.any(np.tril(t, -1))
    root = pg.interop.from_jax(jax.scipy.linalg.sqrtm, MATRIX)(MATRIX)
    np.testing.assert_allclose(root @ root, MATRIX, atol=1e-13)


def test_reflections_are_those_of_lapack():
    x = np.cos(np.arange(20.0) ** 2).reshape(5, 4)
    square = MATRIX + 1j * MATRIX.T
    for function, a in (
        (lambda a: jnp.linalg.qr(a, mode="raw"), x),
        (lax.linalg.hessenberg, square),
        (lambda a: jnp.linalg.slogdet(a, method="qr"), MATRIX),
    ):
        found, expected = pg.interop.from_jax(function, a)(a), function(jnp.asarray(a))
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-12, atol=1e-13)


def test_numbers_take_part_in_promotion_as_in_jax():
    single = pg.interop.from_jax(lambda x, y: x * y, np.ones(3, np.float32), 2.0)
    assert single(np.ones(3, np.float32), 2.0).dtype == np.float32


def test_branches_for_other_platforms_are_not_read():
    imported = pg.interop.from_jax(
        lambda x: lax.platform_dependent(
            x, cpu=jnp.sin, tpu=lambda x: jax.pure_callback(np.cos, x, x)
        ),
        X,
    )
    np.testing.assert_allclose(imported(X), np.sin(X), rtol=1e-14)
