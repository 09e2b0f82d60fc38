"""Functions of published packages that are written in JAX: values, derivatives, and source.

Checks of equinox raise by callbacks, which graphs lack; with `EQX_ON_ERROR=nan` they give NaN.
"""

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import primgraph as pg

pytestmark = pytest.mark.dense
os.environ.setdefault("EQX_ON_ERROR", "nan")
jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")

CASES = {}
RNG = np.random.RandomState(0)
# Options of XLA: solvers of differential equations take it minutes otherwise.
_QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@pytest.fixture(autouse=True)
def float64():
    """JAX computes in float64 within each test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def case(function):
    """Add a function that returns one of JAX, and its argument."""
    CASES[function.__name__] = function
    return function


def key():
    return jax.random.key(0)


def draw(*shape):
    return RNG.randn(*shape)


@case
def equinox_mlp():
    eqx = pytest.importorskip("equinox")
    m = eqx.nn.MLP(3, 2, 8, 2, activation=jax.nn.gelu, key=key())
    return lambda x: jnp.sum(m(x) ** 2), draw(3)


@case
def equinox_conv():
    eqx = pytest.importorskip("equinox")
    c = eqx.nn.Conv2d(2, 3, 3, stride=2, padding=1, key=key())
    p = eqx.nn.MaxPool2d(2, 2)
    return lambda x: jnp.sum(p(jax.nn.softplus(c(x))) ** 2), draw(2, 9, 9)


@case
def equinox_gru():
    eqx = pytest.importorskip("equinox")
    g = eqx.nn.GRUCell(2, 4, key=key())

    def f(x):
        return jnp.sum(jax.lax.scan(lambda c, v: (g(v, c), c), jnp.zeros(4), x)[0] ** 2)

    return f, draw(5, 2)


@case
def equinox_attention():
    eqx = pytest.importorskip("equinox")
    a = eqx.nn.MultiheadAttention(2, 6, key=key())
    return lambda x: jnp.sum(a(x, x, x) ** 2), draw(4, 6)


@case
def equinox_layernorm():
    eqx = pytest.importorskip("equinox")
    a = eqx.nn.LayerNorm(6)
    return lambda x: jnp.sum(jnp.sin(jax.vmap(a)(x))), draw(4, 6)


@case
def flax_mlp():
    nn = pytest.importorskip("flax.linen")

    class M(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.tanh(nn.Dense(8)(x))
            x = nn.LayerNorm()(x)
            return nn.Dense(1)(x)

    m = M()
    p = m.init(key(), jnp.ones(3))
    return lambda x: jnp.sum(m.apply(p, x) ** 2), draw(3)


@case
def flax_cnn():
    nn = pytest.importorskip("flax.linen")

    class M(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.softplus(nn.Conv(4, (3, 3))(x))
            x = nn.avg_pool(x, (2, 2), strides=(2, 2))
            return nn.Dense(2)(x.reshape(-1))

    m = M()
    p = m.init(key(), jnp.ones((6, 6, 1)))
    return lambda x: jnp.sum(nn.log_softmax(m.apply(p, x)) ** 2), draw(6, 6, 1)


@case
def flax_attention():
    nn = pytest.importorskip("flax.linen")
    m = nn.MultiHeadDotProductAttention(2)
    p = m.init(key(), jnp.ones((4, 6)))
    return lambda x: jnp.sum(m.apply(p, x) ** 2), draw(4, 6)


@case
def flax_params():
    nn = pytest.importorskip("flax.linen")
    m = nn.Dense(2)
    return lambda p: jnp.sum(
        jnp.tanh(m.apply({"params": {"kernel": p[:6].reshape(3, 2), "bias": p[6:]}}, jnp.ones(3)))
        ** 2
    ), draw(8)


def diffrax_of(solver, **kw):
    diffrax = pytest.importorskip("diffrax")

    def f(y0):
        term = diffrax.ODETerm(lambda t, y, a: jnp.stack([y[1], (1 - y[0] ** 2) * y[1] - y[0]]))
        sol = diffrax.diffeqsolve(
            term,
            getattr(diffrax, solver)(),
            0.0,
            1.0,
            0.1,
            y0,
            max_steps=64,
            **{
                k: getattr(diffrax, v)(rtol=1e-5, atol=1e-7)
                if k == "stepsize_controller"
                else getattr(diffrax, v)()
                for k, v in kw.items()
            },
        )
        return jnp.sum(sol.ys**2)

    return f, np.array([1.0, 0.5])


@case
def diffrax_euler():
    return diffrax_of("Euler", adjoint="DirectAdjoint")


@case
def diffrax_tsit5():
    return diffrax_of("Tsit5", stepsize_controller="PIDController", adjoint="DirectAdjoint")


@case
def optax_adam():
    optax = pytest.importorskip("optax")
    o = optax.adam(1e-2)

    def f(p):
        def loss(p):
            return jnp.sum((p**2 - 1) ** 2)

        def step(c, _):
            p, s = c
            g = jax.grad(loss)(p)
            u, s = o.update(g, s, p)
            return (optax.apply_updates(p, u), s), None

        return loss(jax.lax.scan(step, (p, o.init(p)), None, length=5)[0][0])

    return f, draw(3)


@case
def optax_adamw_clip():
    optax = pytest.importorskip("optax")
    o = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(0.1, 10))
    )

    def f(p):
        def loss(p):
            return jnp.sum(jnp.cosh(p))

        s = o.init(p)
        for _ in range(3):
            u, s = o.update(jax.grad(loss)(p), s, p)
            p = optax.apply_updates(p, u)
        return loss(p)

    return f, draw(3)


@case
def optax_losses():
    optax = pytest.importorskip("optax")
    y = np.array([0, 2, 1])
    return (
        lambda x: (
            optax.softmax_cross_entropy_with_integer_labels(x.reshape(3, 3), y).sum()
            + optax.huber_loss(x, 0.3 * x**2).sum()
            + optax.sigmoid_binary_cross_entropy(x, jax.nn.sigmoid(x)).sum()
        ),
        draw(9),
    )


@case
def numpyro_regression():
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions
    log_density = numpyro.infer.util.log_density
    X = draw(10, 2)
    Y = draw(10)

    def model():
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        s = numpyro.sample("s", dist.HalfCauchy(1.0))
        numpyro.sample("y", dist.StudentT(4.0, X @ w, s), obs=Y)

    return lambda p: log_density(model, (), {}, {"w": p[:2], "s": jnp.exp(p[2])})[0], draw(3)


@case
def numpyro_gammas():
    dist = pytest.importorskip("numpyro.distributions")
    v = np.array([0.3, 1.2, 2.0])
    return lambda p: jnp.sum(
        dist.Gamma(jnp.exp(p[0]), jnp.exp(p[1])).log_prob(v)
        + dist.Beta(jnp.exp(p[0]), 2.0).log_prob(v / 3)
        + dist.NegativeBinomial2(jnp.exp(p[1]), jnp.exp(p[2])).log_prob(jnp.array([1, 0, 3]))
    ), draw(3)


@case
def numpyro_mvn():
    dist = pytest.importorskip("numpyro.distributions")
    v = draw(3)

    def f(p):
        L = jnp.tril(p.reshape(3, 3)) + 2 * jnp.eye(3)
        return dist.MultivariateNormal(jnp.zeros(3), covariance_matrix=L @ L.T).log_prob(v)

    return f, draw(9)


@case
def numpyro_lkj():
    dist = pytest.importorskip("numpyro.distributions")
    t = dist.transforms.CorrCholeskyTransform()

    def f(p):
        L = t(p)
        return dist.LKJCholesky(3, 2.0).log_prob(L) + t.log_abs_det_jacobian(p, L)

    return f, 0.3 * draw(3)


@case
def numpyro_mixture():
    dist = pytest.importorskip("numpyro.distributions")
    v = draw(5)
    return (
        lambda p: (
            dist.MixtureSameFamily(
                dist.Categorical(logits=p[:2]), dist.Normal(p[2:4], jnp.exp(p[4:6]))
            )
            .log_prob(v)
            .sum()
        ),
        draw(6),
    )


@case
def leapfrog():
    def f(q):
        def U(q):
            return jnp.sum(q**4 / 4 - q**2 / 2)

        g = jax.grad(U)

        def step(i, s):
            q, p = s
            p = p - 0.05 * g(q)
            q = q + 0.1 * p
            return q, p - 0.05 * g(q)

        q, p = jax.lax.fori_loop(0, 10, step, (q, jnp.ones_like(q)))
        return U(q) + jnp.sum(p**2) / 2

    return f, draw(3)


@case
def diffrax_implicit():
    return diffrax_of("Kvaerno3", stepsize_controller="PIDController", adjoint="DirectAdjoint")


@case
def flax_lstm():
    nn = pytest.importorskip("flax.linen")
    m = nn.RNN(nn.OptimizedLSTMCell(4, param_dtype=jnp.float64))
    p = m.init(key(), jnp.ones((5, 3)))
    return lambda x: jnp.sum(m.apply(p, x) ** 2), draw(5, 3)


@case
def flax_nnx():
    nnx = pytest.importorskip("flax.nnx")
    m = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
    n = nnx.GroupNorm(4, num_groups=2, rngs=nnx.Rngs(0))
    return lambda x: jnp.sum(jnp.sin(n(nnx.silu(m(x))))), draw(2, 3)


@case
def lineax_least_squares():
    lx = pytest.importorskip("lineax")
    b = draw(5)

    def f(p):
        operator = lx.MatrixLinearOperator(p.reshape(5, 2))
        return jnp.sum(lx.linear_solve(operator, b, solver=lx.QR()).value ** 2)

    return f, draw(10)


@case
def lineax_conjugate_gradients():
    lx = pytest.importorskip("lineax")

    def f(p):
        matrix = jnp.diag(jnp.exp(p)) + 0.1
        operator = lx.MatrixLinearOperator(matrix, lx.positive_semidefinite_tag)
        solution = lx.linear_solve(operator, jnp.cos(p), solver=lx.CG(rtol=1e-12, atol=1e-12))
        return jnp.sum(solution.value * p)

    return f, draw(4)


@case
def optimistix_root():
    optx = pytest.importorskip("optimistix")
    solver = optx.Newton(rtol=1e-12, atol=1e-12)

    def f(p):
        def residual(y, p):
            return y + 0.3 * jnp.sin(y[::-1] * p) - p

        return jnp.sum(optx.root_find(residual, solver, p, args=p).value ** 2)

    return f, draw(3)


@case
def optax_lbfgs():
    optax = pytest.importorskip("optax")
    o = optax.scale_by_lbfgs(memory_size=3)

    def f(p):
        def loss(p):
            return jnp.sum(jnp.cosh(p) + 0.1 * jnp.sum(p) ** 2)

        s = o.init(p)
        for _ in range(3):
            u, s = o.update(jax.grad(loss)(p), s, p)
            p = p - 0.1 * u
        return loss(p)

    return f, draw(3)


@case
def numpyro_flow():
    flows = pytest.importorskip("numpyro.distributions.transforms")
    t = flows.ComposeTransform(
        [flows.StickBreakingTransform(), flows.PermuteTransform(jnp.array([2, 0, 1]))]
    )

    def f(x):
        y = t(x)
        return jnp.sum(y**2) + t.log_abs_det_jacobian(x, y)

    return f, draw(2)


@dataclass(frozen=True)
class Imported:
    """A function of JAX imported, and JAX's value, gradient and product of Hessian and vector."""

    function: pg.interop.Imported
    x: np.ndarray
    v: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    product: np.ndarray


@functools.cache
def imported(name):
    function, x = CASES[name]()
    v = np.cos(np.arange(x.size)).reshape(x.shape)

    def derivatives(x, v):
        slope, product = jax.jvp(jax.grad(function), (x,), (v,))
        return function(x), slope, product

    compiled = jax.jit(derivatives).lower(x, v).compile(_QUICKLY)
    found = [np.asarray(a) for a in compiled(x, v)]
    read = pg.interop.from_jax(function, x)
    jax.clear_caches()
    return Imported(read, x, v, *found)


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_jax(name):
    case = imported(name)
    function, x = case.function, case.x
    np.testing.assert_allclose(function(x), case.value, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(pg.grad(function)(x), case.gradient, rtol=1e-8, atol=1e-9)
    product = pg.hvp(function, x, case.v)[1]
    np.testing.assert_allclose(product, case.product, rtol=1e-7, atol=1e-8)


# A process in which only NumPy and the standard library are found.
_ALONE = """
import ctypes, importlib, sys
import numpy as np


class Refuse:
    def find_spec(self, name, path=None, target=None):
        known = {"numpy", "saved", *sys.stdlib_module_names}
        if name.partition(".")[0] not in known and not name.startswith("_sysconfigdata"):
            raise ImportError(name)


sys.meta_path.insert(0, Refuse())
given = np.load("given.npz")
x, name = given["x"], str(given["name"])


def check(value, gradient):
    np.testing.assert_allclose(value, given["value"], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(gradient, given["gradient"], rtol=1e-8, atol=1e-9)


check(*getattr(importlib.import_module("saved"), name)(x))
value, gradient = np.full((), np.nan), np.full_like(x, np.nan)
# Larger than the workspace of any of these functions, of which some have none.
workspace = ctypes.create_string_buffer(1 << 24)
doubles = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (x, value, gradient)]
getattr(ctypes.CDLL("./native.so"), name)(*doubles, workspace)
check(value, gradient)
"""


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_of_saved_files_need_only_numpy(name, tmp_path, monkeypatch):
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    case = imported(name)
    monkeypatch.chdir(tmp_path)
    graph = pg.trace(pg.value_and_grad(case.function), pg.spec(case.x.shape))
    kernel = pg.compile(graph)
    kernel.save("saved.py")
    kernel.save("saved.c")
    known = {"value": case.value, "gradient": case.gradient}
    np.savez("given.npz", x=case.x, name=graph.name, **known)
    flags = ["-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([compiler, *flags, "saved.c", "-o", "native.so", "-lm"], check=True)
    subprocess.run([sys.executable, "-c", _ALONE], check=True, env={"PYTHONPATH": "."})
