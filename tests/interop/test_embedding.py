"""Kernels inside programs of JAX and torch, with derivatives by kernels."""

import pickle

import numpy as np
import pytest

import primgraph as pg

RNG = np.random.default_rng(0)


def model(p, x, steps):
    """Values with a loop in reverse mode, an integer input and an integer result."""

    def body(i, h):
        return pg.tanh(h @ p["w"] + p["b"])

    h = pg.fori_loop(0, 3, body, x)
    return {"loss": pg.sum(h**2), "count": steps + 1}


def specs(size, dtype="float64"):
    return {"w": pg.spec((3, 3), dtype), "b": pg.spec(3, dtype)}, pg.spec((size, 3), dtype)


def given(dtype="float64"):
    p = {"w": RNG.normal(size=(3, 3)).astype(dtype), "b": RNG.normal(size=3).astype(dtype)}
    return p, RNG.normal(size=(4, 3)).astype(dtype)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_gradients_of_torch_are_those_of_primgraph(target):
    torch = pytest.importorskip("torch")
    graph = pg.trace(model, *specs("N"), pg.spec((), "int64"))
    function = pg.interop.to_torch(graph, target=target)
    p, x = given()
    tensors = {k: torch.tensor(v, requires_grad=True) for k, v in p.items()}
    found = function(tensors, torch.tensor(x), 2)
    assert int(found["count"]) == 3
    slopes = torch.autograd.grad(found["loss"], [*tensors.values()], create_graph=True)
    wanted = pg.grad(lambda p: model(p, x, 2)["loss"])(p)
    for slope, name in zip(slopes, p, strict=True):
        np.testing.assert_allclose(slope.detach().numpy(), wanted[name], rtol=1e-12)
    (second,) = torch.autograd.grad(slopes[0].sum(), [tensors["b"]])

    def both(b):
        return pg.sum(pg.grad(lambda w: model({"w": w, "b": b}, x, 2)["loss"])(p["w"]))

    np.testing.assert_allclose(second.numpy(), pg.grad(both)(p["b"]), rtol=1e-10)


@pytest.mark.parametrize("size", [3, "N"])
@pytest.mark.parametrize("target", ["numpy", "c", "auto"])
def test_kernels_have_the_derivatives_of_their_graphs(target, size):
    """A rule of the user, which the kernel's own graph has lost, and a stopped factor."""
    torch = pytest.importorskip("torch")

    @pg.custom_jvp
    def clipped(x):
        return pg.minimum(x, 1.0)

    clipped.defjvp(lambda primals, tangents: (clipped(*primals), 7.0 * tangents[0]))
    graph = pg.trace(lambda x: clipped(x) * pg.stop_gradient(x), pg.spec(size))
    kernels = [pg.compile(graph, target=target), pg.compile(graph, target=target)]
    del graph
    for kernel in kernels:
        function = pg.interop.to_torch(kernel)
        x = torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(function(x).sum(), x)
        assert slope.tolist() == [3.5, 14.0, 21.0]


def test_kernels_are_functions_of_jax():
    jax = pytest.importorskip("jax")
    kernel = pg.compile(pg.trace(lambda x: pg.sum(x**3), pg.spec(3, "float32")), target="c")
    function = pg.interop.to_jax(kernel)
    found = jax.grad(lambda x: jax.grad(function)(x).sum())(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(found, [0.0, 6.0, 12.0])


def test_tensors_of_torch_share_memory_and_are_checked_by_torch():
    torch = pytest.importorskip("torch")
    function = pg.interop.to_torch(
        pg.trace(lambda x, y: (pg.sin(x) * y, x), pg.spec(3), pg.spec(3))
    )
    x, y = (torch.tensor(RNG.normal(size=3), requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(function, (x, y))
    assert torch.autograd.gradgradcheck(function, (x, y))
    assert function(np.ones(3), torch.ones(3))[0].dtype == torch.float64
    # A result is a new tensor.
    with torch.no_grad():
        function(x, y)[1].add_(1.0)
        assert float(x[0]) != float(x[0] + 1.0)


def test_gradients_of_jax_are_those_of_primgraph():
    jax = pytest.importorskip("jax")
    graph = pg.trace(model, *specs("N", "float32"), pg.spec((), "int32"))
    function = pg.interop.to_jax(graph)
    p, x = given("float32")

    def loss(p, x):
        return function(p, x, 2)["loss"]

    wanted = pg.grad(lambda p: model(p, x, 2)["loss"])(p)
    for transformed in (jax.grad(loss), jax.jit(jax.grad(loss))):
        found = transformed(p, x)
        for name in p:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4)
    batch = jax.vmap(loss, (None, 0))(p, np.stack([x, 2 * x]))
    np.testing.assert_allclose(batch[0], model(p, x, 2)["loss"], rtol=1e-5)
    second = jax.grad(lambda b: jax.grad(lambda w: loss({"w": w, "b": b}, x))(p["w"]).sum())(p["b"])

    def both(b):
        return pg.sum(pg.grad(lambda w: model({"w": w, "b": b}, x, 2)["loss"])(p["w"]))

    np.testing.assert_allclose(second, pg.grad(both)(p["b"]), rtol=1e-3)
    assert int(function(p, x, 2)["count"]) == 3


@pytest.mark.parametrize("name", ["to_jax", "to_torch"])
def test_graphs_of_real_numbers_are_asked_for(name):
    pytest.importorskip(name.removeprefix("to_"))
    convert, graph = getattr(pg.interop, name), pg.trace(lambda x: 2 * x, pg.spec(3))
    with pytest.raises(pg.ArgumentError, match=f"{name} takes a graph, or a kernel .*, not Kernel"):
        convert(pickle.loads(pickle.dumps(pg.compile(graph))))
    with pytest.raises(pg.ArgumentError, match="not function"):
        convert(lambda x: x)
    with pytest.raises(pg.UnsupportedError, match="complex numbers"):
        convert(pg.trace(lambda x: 2 * x, pg.spec(3, "complex128")))


@pytest.mark.parametrize("name", ["to_jax", "to_torch"])
def test_arguments_that_do_not_fit_are_refused(name):
    library = pytest.importorskip(name.removeprefix("to_"))
    as_array = library.numpy.asarray if name == "to_jax" else library.as_tensor
    specs = pg.spec((2, "N"), "float32"), pg.spec((), "int32"), pg.spec((), "bool")
    graph = pg.trace(lambda x, i, b: pg.where(b, x, i.astype("float32")), *specs)
    function, x = getattr(pg.interop, name)(graph), as_array(np.ones((2, 3), np.float32))
    assert np.array_equal(function(x, 2, False), np.full((2, 3), 2.0))
    with pytest.raises(pg.FeedError, match=r"'x' is .*: float32\[3, 3\] is given, the shapes"):
        function(as_array(np.ones((3, 3), np.float32)), 2, True)
    with pytest.raises(pg.FeedError, match=r"'i' is .*: float32.* does not convert"):
        function(x, as_array(np.float32(1.7)), True)
    with pytest.raises(pg.FeedError, match=r"'b' is .*: int32.* does not convert"):
        function(x, 2, as_array(np.int32(2)))


def test_numbers_of_64_bits_are_not_rounded_by_jax():
    jax = pytest.importorskip("jax")
    function = pg.interop.to_jax(pg.trace(lambda x: x > 1.0, pg.spec(())))
    before = jax.config.jax_enable_x64
    try:
        jax.config.update("jax_enable_x64", False)
        with pytest.raises(pg.FeedError, match="jax_enable_x64"):
            function(1.0 + 1e-12)
        jax.config.update("jax_enable_x64", True)
        assert bool(function(1.0 + 1e-12))
    finally:
        jax.config.update("jax_enable_x64", before)


def test_negated_views_of_torch_are_read():
    torch = pytest.importorskip("torch")
    doubled = pg.interop.to_torch(pg.trace(lambda x: 2.0 * x, pg.spec(2)))
    view = torch.tensor([1j, 2j], dtype=torch.complex128).conj().imag
    assert view.is_neg()
    assert doubled(view).tolist() == [-2.0, -4.0]


# torch itself warns when it loads its rules of forward mode.
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_torch_func_has_kernels_of_derivatives_and_batches():
    torch = pytest.importorskip("torch")
    tensor = torch.as_tensor
    function = pg.interop.to_torch(pg.trace(model, *specs("N"), pg.spec((), "int64")))
    p, x = given()
    tensors = {k: tensor(v) for k, v in p.items()}

    def loss(p, x):
        return function(p, x, 2)["loss"]

    slope = pg.grad(lambda p, x: model(p, x, 2)["loss"], 1)
    np.testing.assert_allclose(torch.func.grad(loss, 1)(tensors, tensor(x)), slope(p, x))
    forward = torch.func.jacfwd(loss, 1)(tensors, tensor(x))
    np.testing.assert_allclose(forward, slope(p, x), rtol=1e-12)
    hessian = torch.func.hessian(loss, 1)(tensors, tensor(x))
    wanted = torch.autograd.functional.hessian(lambda x: loss(tensors, x), tensor(x))
    np.testing.assert_allclose(hessian, wanted, rtol=1e-12)
    batch = np.stack([x, 2 * x], 1)
    found = torch.func.vmap(torch.func.grad(loss, 1), (None, 1))(tensors, tensor(batch))
    np.testing.assert_allclose(found, [slope(p, x), slope(p, 2 * x)], rtol=1e-12)
    counts = torch.func.vmap(lambda x: function(tensors, x, 2)["count"])(tensor(batch))
    assert counts.tolist() == [3] * 4


def test_torch_compile_calls_kernels_as_operators():
    torch = pytest.importorskip("torch")
    graph = pg.trace(lambda d: {"y": pg.sum(d["x"] ** 3), "n": d["i"] + 1}, {
        "x": pg.spec("N"), "i": pg.spec((), "int32"),
    })  # fmt: skip
    function = pg.interop.to_torch(graph)
    step = torch.compile(
        lambda x, i: function({"x": torch.sin(x), "i": i}), backend="aot_eager", fullgraph=True
    )
    for size in (3, 4):
        x = torch.linspace(0, 1, size, dtype=torch.float64, requires_grad=True)
        found = step(x, torch.tensor(1, dtype=torch.int32))
        (slope,) = torch.autograd.grad(found["y"], x)
        wanted = 3 * torch.sin(x) ** 2 * torch.cos(x)
        np.testing.assert_allclose(slope, wanted.detach(), rtol=1e-12)
        assert int(found["n"]) == 2
