"""Functions of JAX as graphs: values and derivatives beside JAX's own."""

import numpy as np
import pytest

import primgraph as pg

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")
lax = jax.lax

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


def solved(matrix, b):
    return lax.custom_linear_solve(
        lambda x: matrix @ x,
        b,
        solve=lambda matvec, b: jnp.linalg.solve(lax.stop_gradient(matrix), b),
        transpose_solve=lambda vecmat, b: jnp.linalg.solve(lax.stop_gradient(matrix).T, b),
    )


def windows_summed(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 2), (1, 1, 2, 1), ((0, 0),) * 2 + ((1, 1),) * 2)


# One function for each family of primitives, with its argument.
SMOOTH = {
    "elementary": (lambda x: jnp.sin(x) * jnp.exp(-x) + jnp.tanh(x) / jnp.cosh(x), X),
    "powers": (lambda x: x**3 + x**-2 + jnp.sqrt(x) + x**1.5 + lax.rsqrt(x), POSITIVE),
    "kinks": (lambda x: jnp.maximum(x, x**2) + jnp.abs(x) + jnp.clip(x, -1, 1), X),
    "choices": (lambda x: jnp.where(x > 0, x**2, jnp.sin(x)) + lax.clamp(-1.0, x**3, 1.0), X),
    "special": (lambda x: lax.lgamma(x) + lax.erf(x) + lax.digamma(x) + lax.erf_inv(x / 4), POSITIVE),
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
    "scatter extremes": (lambda x: x.at[1].set(2.0).at[jnp.array([1, 5])].multiply(x[:2], unique_indices=True) ** 2, X),
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
    "custom_jvp": (lambda x: halved(x) ** 2 + jax.nn.relu(x) ** 2 + jax.nn.softplus(x), X),
    "solve": (lambda a: jnp.linalg.solve(a, jnp.ones(3)) + solved(a, jnp.ones(3)), MATRIX),
    "factors": (lambda a: jnp.linalg.cholesky(a @ a.T) + jnp.linalg.qr(a)[1], MATRIX),
    "spectra": (lambda a: jnp.linalg.eigvalsh(a + a.T) + jnp.linalg.svd(a, compute_uv=False), MATRIX),
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
