"""Modules of torch through from_torch: values, derivatives, files, and what is refused."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from density import DENSE

import primgraph as pg

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(torch is None, reason="torch is not installed")

if torch is not None:
    from torch import nn
    from torch.utils._pytree import tree_leaves
    from torch_modules import MODULES, ConvNet, Residual, mlp, number
else:
    MODULES = {}

# Modules that are compared in an ordinary run.
OFTEN = ("mlp", "conv_net", "lstm_cell", "causal_attention", "graph_conv", "gaussian_process")


def made(name):
    torch.manual_seed(0)
    module, *args = MODULES[name]()
    if isinstance(module, nn.Module):
        module.double().eval()
    return module, args


def arrays(tensors):
    return [x.detach().numpy() for x in tensors]


def weighted(leaves):
    """A number that all results of floats determine, with different weights."""
    total = 0.0
    for k, x in enumerate(leaves):
        total = total + (1.0 + k) * ((x + 0.5) ** 2).sum()
    return total


@pytest.mark.parametrize("name", MODULES if DENSE else OFTEN if MODULES else ())
def test_modules_are_those_of_torch(name):
    """Values, the gradient by parameters and arguments, and its derivative along a direction."""
    module, args = made(name)
    function = pg.interop.from_torch(module, *args)
    given = arrays(args)
    leaves = arrays(tree_leaves(module(*args)))
    for f, w in zip(tree_leaves(function(*given)), leaves, strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-10, atol=1e-12)
        assert np.asarray(f).dtype == w.dtype
    floats = [k for k, x in enumerate(given) if x.dtype.kind == "f"]
    rng = np.random.default_rng(1)
    names = list(function.parameters)
    point = [*function.parameters.values(), *(given[k] for k in floats)]
    along = [rng.normal(size=x.shape) for x in point]

    def loss(*point):
        parameters = dict(zip(names, point[: len(names)], strict=True))
        xs = list(given)
        for k, x in zip(floats, point[len(names) :], strict=True):
            xs[k] = x
        return weighted(tree_leaves(function.apply(parameters, *xs)))

    every = tuple(range(len(point)))
    found = pg.grad(loss, every)(*point)
    second = pg.grad(
        lambda *p: sum(pg.sum(g * v) for g, v in zip(pg.grad(loss, every)(*p), along, strict=True)),
        every,
    )(*point)
    leaves = [x for _, x in module.named_parameters()] if isinstance(module, nn.Module) else []
    leaves += [args[k].requires_grad_() for k in floats]
    options = {"create_graph": True, "materialize_grads": True}
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        wanted = torch.autograd.grad(weighted(tree_leaves(module(*args))), leaves, **options)
    product = sum((g * torch.tensor(v)).sum() for g, v in zip(wanted, along, strict=True))
    for f, w in zip(found, arrays(wanted), strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-8, atol=1e-9)
    last = torch.autograd.grad(product, leaves, materialize_grads=True)
    for f, w in zip(second, arrays(last), strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-7, atol=1e-8)


def test_parameters_and_buffers_have_their_names():
    torch.manual_seed(0)
    module = ConvNet().double().eval()
    x = number(2, 2, 8, 8)
    function = pg.interop.from_torch(module, x)
    assert list(function.parameters) == [name for name, _ in module.named_parameters()]
    assert list(function.buffers) == ["norm.running_mean", "norm.running_var"]
    assert repr(function).endswith("10 parameters>") or "parameters>" in repr(function)
    assert function.specs[0].shape == (2, 2, 8, 8)
    again = pickle.loads(pickle.dumps(function))
    np.testing.assert_array_equal(again(x.numpy()), function(x.numpy()))


def test_a_module_is_trained_by_its_parameters():
    torch.manual_seed(0)
    module = mlp().double().eval()
    x = np.random.default_rng(0).normal(size=(20, 3))
    y = np.stack([x[:, 0] * x[:, 1], np.sin(x[:, 2])], 1)
    function = pg.interop.from_torch(module, pg.spec(("N", 3)))
    step = pg.jit(pg.value_and_grad(lambda p: pg.mean((function.apply(p, x) - y) ** 2)))
    parameters = function.parameters
    first = step(parameters)[0]
    for _ in range(30):
        slopes = step(parameters)[1]
        parameters = {name: p - 0.3 * slopes[name] for name, p in parameters.items()}
    assert step(parameters)[0] < 0.8 * first


def test_named_sizes_are_symbolic():
    torch.manual_seed(0)
    module = Residual().double().eval()
    function = pg.interop.from_torch(module, pg.spec(("N", 4)))
    for n in (1, 3, 6):
        x = np.random.default_rng(n).normal(size=(n, 4))
        wanted = module(torch.tensor(x))
        np.testing.assert_allclose(function(x)["norm"], wanted["norm"].detach(), rtol=1e-12)
    assert "N" in str(function.imported.graph.input_types[-1])


def test_an_exported_program_needs_no_examples():
    exported = torch.export.export(mlp().eval(), (torch.ones(2, 3),))
    function = pg.interop.from_torch(exported)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(function(x), exported.module()(torch.ones(2, 3)).detach(), rtol=1e-6)
    assert function(x).dtype == np.float32


def test_containers_and_functions():
    def scaled(batch, *, factor):
        return {"y": batch["x"] * factor, "pair": (batch["x"].sum(), batch["i"] + 1)}

    example = {"x": torch.ones(3), "i": torch.tensor([1, 2])}
    function = pg.interop.from_torch(scaled, example, factor=torch.tensor(2.0))
    x, i = np.arange(3, dtype=np.float32), np.array([4, 5])
    found = function({"x": x, "i": i}, factor=np.float32(3.0))
    np.testing.assert_array_equal(found["y"], 3 * x)
    np.testing.assert_array_equal(found["pair"][1], i + 1)
    assert function.__name__ == "scaled"


def test_all_operators_that_are_lacking_are_listed():
    def lacking(x):
        noise = torch.rand_like(x) + torch.special.bessel_j0(x)
        return noise + torch.rand_like(x) + torch.special.airy_ai(x)

    with pytest.raises(pg.UnsupportedError) as caught:
        pg.interop.from_torch(lacking, torch.ones(3))
    message = str(caught.value)
    assert re.search(r"aten.rand[a-z_.]* \(2 times, first at ", message)
    assert "aten.special_bessel_j0.default (once, at " in message
    assert "aten.special_airy_ai.default (once, at " in message
    assert "test_from_torch.py:" in message


def test_modules_in_training_are_refused():
    with pytest.raises(pg.UnsupportedError, match=r"changes the buffers norm\.running_mean"):
        pg.interop.from_torch(ConvNet().double().train(), number(2, 2, 8, 8))


def test_arguments_that_are_no_tensors_are_refused():
    with pytest.raises(pg.ArgumentError, match="not a tensor"):
        pg.interop.from_torch(lambda x, n: x * n, torch.ones(3), 2.5)
    with pytest.raises(pg.UnsupportedError, match="dtype bfloat16"):
        pg.interop.from_torch(lambda x: x + 1, torch.ones(3, dtype=torch.bfloat16))


def test_a_saved_module_needs_no_torch(tmp_path):
    """The function as a file for NumPy, run in a process that cannot import torch."""
    torch.manual_seed(0)
    module = ConvNet().double().eval()
    x = number(2, 2, 8, 8)
    function = pg.interop.from_torch(module, x)

    def network(x):
        return function(x)

    pg.compile(pg.trace(network, pg.spec((2, 2, 8, 8)))).save(tmp_path / "file.py")
    np.save(tmp_path / "x.npy", x.numpy())
    program = (
        "import sys; sys.modules['torch'] = sys.modules['primgraph'] = None; import numpy as np\n"
        "import file; np.save('y.npy', file.network(np.load('x.npy')))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), module(x).detach(), rtol=1e-10)


def test_native_code_of_a_module():
    module, args = made("causal_attention")
    function = pg.interop.from_torch(module, *args)
    graph = pg.trace(lambda x: function(x), pg.spec(tuple(args[0].shape)))
    found = pg.compile(graph, target="c")(*arrays(args))
    np.testing.assert_allclose(found, module(*args).detach(), rtol=1e-10)


def test_there_and_back():
    """A module as source for torch: its values and gradient, by torch."""
    module, args = made("language_model")
    function = pg.interop.from_torch(module, *args)
    kernel = pg.compile(function.imported.graph, target="torch")
    x = args[1].clone().requires_grad_()
    kernel.function(function.parameters, function.buffers, args[0], x).backward()
    other = args[1].clone().requires_grad_()
    module(args[0], other).backward()
    np.testing.assert_allclose(x.grad, other.grad, rtol=1e-9)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_rows(mode):
    """Bags by offsets, one of them empty, and of one length; gradients by rows and weights."""
    rng = np.random.default_rng(0)
    index, starts = np.array([1, 2, 4, 0, 6]), np.array([0, 2, 2])
    table, factors = rng.normal(size=(7, 3)), rng.normal(size=5)

    def bags(table, factors, index, starts):
        given = factors if mode == "sum" else None
        padding = None if mode == "max" else 4
        first = nn.functional.embedding_bag(
            index >> 0, table, starts, mode=mode, per_sample_weights=given, padding_idx=padding
        )
        return first, nn.functional.embedding_bag(
            (index[:4] << 1) % 7, table, starts[:2], mode=mode
        )

    arguments = table, factors, index, starts
    function = pg.interop.from_torch(bags, *arguments)
    tensors = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in arguments]
    results = bags(*tensors)
    for f, w in zip(function(*arguments), results, strict=True):
        np.testing.assert_allclose(f, w.detach(), rtol=1e-12)
    found = pg.grad(lambda *xs: weighted(function(*xs, index, starts)), (0, 1))(table, factors)
    wanted = torch.autograd.grad(weighted(results), tensors[:2], materialize_grads=True)
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-12)


def without_gradient(x):
    with torch.no_grad():
        y = 3 * x
    return x * y


STOPS = {
    "detach": (lambda x: x.detach() * x, 2.0),
    "result": (lambda x: (x * x).detach(), 0.0),
    "no_grad": (without_gradient, 6.0),
    "branch": (lambda x: torch.cond(x.sum() > 0, lambda x: x.detach() * x, torch.sin, (x,)), 2.0),
}


@pytest.mark.parametrize("name", STOPS)
def test_stops_of_derivatives_are_kept(name):
    function, slope = STOPS[name]
    module, x = nn.Module(), 2 * np.ones(3)
    module.forward = function
    exported = torch.export.export(module, (torch.tensor(x),))
    code = exported.graph_module.code
    imported = pg.interop.from_torch(exported)
    np.testing.assert_allclose(imported(x), function(torch.tensor(x)), rtol=1e-15)
    found = pg.grad(lambda x: pg.sum(imported(x)))(x)
    np.testing.assert_array_equal(found, np.full(3, slope))
    assert exported.graph_module.code == code


def test_values_are_put_at_indices_of_some_axes():
    i, j = np.array([[0, 2], [1, 1]]), np.array([3, 0])

    def put(x, values, i, j):
        first, second, third = x.clone(), x.clone(), x.clone()
        first[:, i] = values
        second[:, i, j] = values[:, :, :, 0]
        third[i, :, j] += values[0, :, :, :3]
        third[:, 1] = 7.0
        return first, second, third

    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(4, 3, 4)), rng.normal(size=(4, 2, 2, 4)), i, j
    wanted = put(*map(torch.tensor, arguments))
    for f, w in zip(pg.interop.from_torch(put, *arguments)(*arguments), wanted, strict=True):
        np.testing.assert_array_equal(f, w)
