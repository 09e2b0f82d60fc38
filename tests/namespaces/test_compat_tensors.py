"""The names of torch and OneFlow on tensors, against NumPy: one sample for each name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.oneflow as flow
import primgraph.compat.torch as torch
from primgraph.errors import PrimgraphError

RNG = np.random.default_rng(23)
X = RNG.uniform(0.2, 0.8, (2, 3, 4))
Y = RNG.uniform(0.2, 0.8, (2, 3, 4))
M = RNG.uniform(0.2, 0.8, (3, 3))
N = RNG.uniform(0.2, 0.8, (3, 3))
V = RNG.uniform(0.2, 0.8, 3)
INDEX = np.array([[[2, 0, 1, 1]], [[0, 0, 2, 1]]])

Sample = tuple[Callable[[Any], Any], Any]


def erf(x: Any) -> Any:
    """The series of the error function."""
    terms, term = np.array(x), np.array(x)
    for n in range(1, 40):
        term = term * -(x**2) / n
        terms = terms + term / (2 * n + 1)
    return 2 / np.sqrt(np.pi) * terms


def softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x)
    return powers / powers.sum(axis, keepdims=True)


T = torch
UNARY: dict[str, Any] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": lambda x: np.arccosh(x),
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "angle": np.angle,
    "ceil": np.ceil,
    "conj": np.conj,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": erf,
    "erfc": lambda x: 1 - erf(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logical_not": np.logical_not,
    "neg": np.negative,
    "ravel": np.ravel,
    "reciprocal": np.reciprocal,
    "relu": lambda x: np.maximum(x, 0),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
}
ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "concat": "cat",
    "concatenate": "cat",
    "conj_physical": "conj",
    "divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "sgn": "sign",
    "subtract": "sub",
    "swapaxes": "transpose",
    "true_divide": "div",
}
# How each other function is called, and what NumPy gives.
TORCH: dict[str, Sample] = {
    "add": (lambda x: T.add(x, Y, alpha=2), X + 2 * Y),
    "all": (lambda x: T.all(x > 0.5, dim=1), (X > 0.5).all(1)),
    "amax": (lambda x: T.amax(x, dim=(0, 2)), X.max((0, 2))),
    "amin": (lambda x: T.amin(x, 1, keepdim=True), X.min(1, keepdims=True)),
    "any": (lambda x: T.any(x > 0.5, dim=1), (X > 0.5).any(1)),
    "argmax": (lambda x: T.argmax(x, dim=1), X.argmax(1)),
    "argmin": (lambda x: T.argmin(x), X.argmin()),
    "atan2": (lambda x: T.atan2(x, Y), np.arctan2(X, Y)),
    "broadcast_to": (lambda x: T.broadcast_to(x, (5, 2, 3, 4)), np.broadcast_to(X, (5, 2, 3, 4))),
    "cat": (lambda x: T.cat([x, Y], dim=1), np.concatenate([X, Y], 1)),
    "chunk": (lambda x: T.chunk(x, 3, dim=2)[1], X[:, :, 2:]),
    "clamp": (lambda x: T.clamp(x, min=0.4, max=0.6), X.clip(0.4, 0.6)),
    "complex": (lambda x: T.complex(x, x + 1), X + 1j * (X + 1)),
    "cumsum": (lambda x: T.cumsum(x, dim=1), X.cumsum(1)),
    "diagonal": (lambda x: T.diagonal(x, dim1=1, dim2=2), np.diagonal(X, axis1=1, axis2=2)),
    "div": (lambda x: T.div(x, Y, rounding_mode="floor"), X // Y),
    "dot": (lambda x: T.dot(x[0, 0], Y[0, 0]), X[0, 0] @ Y[0, 0]),
    "einsum": (lambda x: T.einsum("ijk,ijk->i", x, Y), np.einsum("ijk,ijk->i", X, Y)),
    "eq": (lambda x: T.eq(x, X), X == X),
    "equal": (lambda x: T.equal(x, X), True),
    "allclose": (lambda x: T.allclose(x, Y), False),
    "expand": (lambda x: T.expand(x, 5, -1, 3, 4), np.broadcast_to(X, (5, 2, 3, 4))),
    "expand_as": (lambda x: T.expand_as(x[0], x), np.broadcast_to(X[0], X.shape)),
    "flatten": (lambda x: T.flatten(x, start_dim=1), X.reshape(2, 12)),
    "flip": (lambda x: T.flip(x, dims=(0, 2)), np.flip(X, (0, 2))),
    "gather": (lambda x: T.gather(x, 1, INDEX), np.take_along_axis(X, INDEX, 1)),
    "ge": (lambda x: T.ge(x, Y), X >= Y),
    "gt": (lambda x: T.gt(x, Y), X > Y),
    "imag": (lambda x: T.imag(x * 1j), X),
    "index_select": (lambda x: T.index_select(x, 1, np.array([2, 0])), X[:, [2, 0]]),
    "inner": (lambda x: T.inner(x[0, 0], Y[0, 0]), X[0, 0] @ Y[0, 0]),
    "is_complex": (lambda x: T.is_complex(x * 1j), True),
    "is_tensor": (lambda x: T.is_tensor(x), True),
    "le": (lambda x: T.le(x, Y), X <= Y),
    "log_softmax": (lambda x: T.log_softmax(x, dim=1), np.log(softmax(X, 1))),
    "logaddexp": (lambda x: T.logaddexp(x, Y), np.logaddexp(X, Y)),
    "logical_and": (lambda x: T.logical_and(x > 0.5, Y > 0.5), (X > 0.5) & (Y > 0.5)),
    "logical_or": (lambda x: T.logical_or(x > 0.5, Y > 0.5), (X > 0.5) | (Y > 0.5)),
    "logical_xor": (lambda x: T.logical_xor(x > 0.5, Y > 0.5), (X > 0.5) ^ (Y > 0.5)),
    "logsumexp": (lambda x: T.logsumexp(x, dim=1), np.log(np.exp(X).sum(1))),
    "lt": (lambda x: T.lt(x, Y), X < Y),
    "masked_fill": (lambda x: T.masked_fill(x, x > 0.5, 7.0), np.where(X > 0.5, 7, X)),
    "matmul": (lambda x: T.matmul(x, Y.swapaxes(1, 2)), X @ Y.swapaxes(1, 2)),
    "max": (lambda x: T.max(x), X.max()),
    "maximum": (lambda x: T.maximum(x, T.tensor(Y)), np.maximum(X, Y)),
    "mean": (lambda x: T.mean(x, dim=(0, 1)), X.mean((0, 1))),
    "min": (lambda x: T.min(x), X.min()),
    "minimum": (lambda x: T.minimum(x, T.tensor(Y)), np.minimum(X, Y)),
    "movedim": (lambda x: T.movedim(x, 0, 2), np.moveaxis(X, 0, 2)),
    "mul": (lambda x: T.mul(x, Y), X * Y),
    "narrow": (lambda x: T.narrow(x, 1, 1, 2), X[:, 1:3]),
    "ne": (lambda x: T.ne(x, Y), X != Y),
    "norm": (lambda x: T.norm(x), np.sqrt((X**2).sum())),
    "numel": (lambda x: T.numel(x), 24),
    "outer": (lambda x: T.outer(x[0, 0], V), np.outer(X[0, 0], V)),
    "permute": (lambda x: T.permute(x, (2, 0, 1)), X.transpose(2, 0, 1)),
    "polar": (lambda x: T.polar(x, x + 1), X * np.exp(1j * (X + 1))),
    "pow": (lambda x: T.pow(x, 3), X**3),
    "prod": (lambda x: T.prod(x, dim=1), X.prod(1)),
    "real": (lambda x: T.real(x + 1j), X),
    "remainder": (lambda x: T.remainder(x, Y), X % Y),
    "repeat": (lambda x: x.repeat(2, 1, 3), np.tile(X, (2, 1, 3))),
    "reshape": (lambda x: T.reshape(x, (4, -1)), X.reshape(4, 6)),
    "resolve_conj": (lambda x: T.resolve_conj(x * 1j), X * 1j),
    "roll": (lambda x: T.roll(x, 1, dims=2), np.roll(X, 1, 2)),
    "round": (lambda x: T.round(x, decimals=1), X.round(1)),
    "select": (lambda x: T.select(x, 1, 2), X[:, 2]),
    "softmax": (lambda x: T.softmax(x, dim=1), softmax(X, 1)),
    "split": (lambda x: T.split(x, 3, dim=2)[1], X[:, :, 3:]),
    "squeeze": (lambda x: T.squeeze(x[:, :1], dim=1), X[:, 0]),
    "stack": (lambda x: T.stack([x, T.tensor(Y)], dim=1), np.stack([X, Y], 1)),
    "std": (lambda x: T.std(x, dim=1), X.std(1, ddof=1)),
    "sub": (lambda x: T.sub(x, Y, alpha=2), X - 2 * Y),
    "sum": (lambda x: T.sum(x, dim=1, keepdim=True), X.sum(1, keepdims=True)),
    "t": (lambda x: T.t(x[0]), X[0].T),
    "take_along_dim": (lambda x: T.take_along_dim(x, INDEX, 1), np.take_along_axis(X, INDEX, 1)),
    "tensordot": (lambda x: T.tensordot(x[0], Y[0].T, dims=1), X[0] @ Y[0].T),
    "tile": (lambda x: T.tile(x, (2, 1)), np.tile(X, (2, 1))),
    "trace": (lambda x: T.trace(x[0]), np.trace(X[0])),
    "transpose": (lambda x: T.transpose(x, 0, 1), X.swapaxes(0, 1)),
    "tril": (lambda x: T.tril(x, diagonal=1), np.tril(X, 1)),
    "triu": (lambda x: T.triu(x), np.triu(X)),
    "unbind": (lambda x: T.unbind(x, dim=1)[2], X[:, 2]),
    "unsqueeze": (lambda x: T.unsqueeze(x, 1), X[:, None]),
    "var": (lambda x: T.var(x, unbiased=False), X.var()),
    "vdot": (lambda x: T.vdot(x[0, 0] * 1j, x[0, 1] + 0j), -1j * (X[0, 0] @ X[0, 1])),
    "view_as_complex": (
        lambda x: T.view_as_complex(x[..., :2]),
        X[..., 0] + 1j * X[..., 1],
    ),
    "view_as_real": (
        lambda x: T.view_as_real(x + 1j),
        np.stack([X, np.ones(X.shape)], -1),
    ),
    "where": (lambda x: T.where(x > 0.5, x, T.tensor(Y)), np.where(X > 0.5, X, Y)),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_torch_of_each_element(name: str) -> None:
    x = torch.tensor(X + 1 if name == "acosh" else X)
    expected = UNARY[name](x.numpy())
    for found in (getattr(torch, name)(x), getattr(x, name)(), getattr(torch, name)(input=x)):
        assert type(found) is torch.Tensor
        assert_allclose(found.numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("name", TORCH)
def test_a_function_of_torch(name: str) -> None:
    call, expected = TORCH[name]
    found = call(torch.tensor(X))
    if not isinstance(expected, bool | int):
        assert type(found) is torch.Tensor
    assert_allclose(np.asarray(found), expected, rtol=1e-9)


def test_every_function_of_torch_has_a_sample() -> None:
    sampled = {*UNARY, *TORCH, *ALIASES}
    names = set(torch.functions.__all__)
    assert sampled <= names
    # Others have examples, whose results are torch's, and recorded snippets.
    assert {n for n in names - sampled if ">>>" not in getattr(torch, n).__doc__} == {
        "broadcast_shapes"
    }
    for alias, name in ALIASES.items():
        assert getattr(torch, alias).__doc__ == getattr(torch, name).__doc__


def test_names_that_there_are_not_are_refused_with_near_ones() -> None:
    for room in (torch, flow):
        with pytest.raises(AttributeError, match="tensr"):
            room.tensr  # noqa: B018
    with pytest.raises(AttributeError, match="squeeze"):
        torch.ones(2).sqeeze()


def test_extremes_along_an_axis_tell_where_they_are() -> None:
    x = torch.tensor(X)
    values, indices = torch.max(x, dim=1)
    assert_array_equal(values.numpy(), X.max(1))
    assert_array_equal(indices.numpy(), X.argmax(1))
    found = x.min(2, keepdim=True)
    assert_array_equal(found.values.numpy(), X.min(2, keepdims=True))
    assert found.indices.shape == (2, 3, 1)


# Methods, where they are something else than NumPy's.


def test_methods_have_torchs_meaning() -> None:
    x = torch.tensor(X)
    assert_array_equal(x.transpose(0, 1).numpy(), X.swapaxes(0, 1))
    assert_array_equal(x.sum(0, True).numpy(), X.sum(0, keepdims=True))
    assert_allclose(x.std(1).numpy(), X.std(1, ddof=1))
    assert_array_equal(x.permute(2, 0, 1).numpy(), X.transpose(2, 0, 1))
    assert_array_equal(x.split(2, dim=2)[0].numpy(), X[:, :, :2])
    assert x.view(4, -1).shape == (4, 6)
    assert x.mT.shape == (2, 4, 3)
    assert x.dim() == x.ndim == 3
    assert x.numel() == x.nelement() == 24
    assert x.size() == torch.Size((2, 3, 4)) == x.shape
    assert x.size(1) == 3
    assert x.shape.numel() == 24
    assert repr(x.shape) == "torch.Size([2, 3, 4])"
    assert isinstance(x.shape + x.shape, torch.Size)
    assert x.type_as(torch.ones(1)).dtype == torch.float32


def test_gather_takes_a_part_of_what_the_index_is_smaller_than() -> None:
    x = torch.tensor(X[0], requires_grad=True)
    found = x.gather(1, torch.tensor([[3, 0, 0], [1, 1, 2]]))
    assert_array_equal(found.detach().numpy(), [X[0, 0, [3, 0, 0]], X[0, 1, [1, 1, 2]]])
    found.sum().backward()
    assert_array_equal(x.grad.numpy(), [[2, 0, 0, 1], [0, 2, 1, 0], [0, 0, 0, 0]])
    for wrong in ([0, 1], [[0]] * 4):
        with pytest.raises(pg.ShapeError, match="takes no index"):
            torch.gather(x, 1, torch.tensor(wrong))


def test_sizes_that_do_not_fit_are_refused() -> None:
    x = torch.ones(7, 2)
    for sizes in ([2, 4], [5, 3], []):
        with pytest.raises(pg.ShapeError, match="do not add up"):
            x.split(sizes)
    with pytest.raises(pg.ShapeError, match="each of 2 axes"):
        x.repeat(2)
    with pytest.raises(pg.ShapeError, match="normalized_shape"):
        torch.nn.functional.layer_norm(x, (3,))


def test_integers_require_no_gradient_however_they_are_made() -> None:
    for make in (
        lambda: torch.tensor([1, 2], requires_grad=True),
        lambda: torch.ones(2, dtype=torch.int64, requires_grad=True),
        lambda: torch.arange(3, requires_grad=True),
        lambda: torch.nn.Parameter(torch.tensor([True])),
        lambda: flow.tensor([1], requires_grad=True),
    ):
        with pytest.raises(pg.DTypeError, match="only floats"):
            make()


def test_the_class_makes_tensors_of_the_default_dtype() -> None:
    for found, expected in (
        (torch.Tensor([1, 2]), [1, 2]),
        (torch.Tensor(np.array([1.5])), [1.5]),
        (torch.Tensor(2, 3), np.zeros((2, 3))),
        (flow.Tensor(1), [0]),
    ):
        assert found.dtype == np.float32
        assert_array_equal(found.numpy(), expected)


def test_where_of_two_numbers_is_of_the_default_dtype() -> None:
    condition = torch.tensor([True, False])
    assert torch.where(condition, 1.0, 0).dtype == np.float32
    assert torch.where(condition, 1, 0).dtype == np.int64
    assert torch.where(condition, torch.zeros(2, dtype=torch.float64), 1.0).dtype == np.float64


def test_conversions() -> None:
    x = torch.tensor([1.5, 0.0])
    kinds = {
        "float": torch.float32,
        "double": torch.float64,
        "half": torch.float16,
        "int": torch.int32,
        "long": torch.int64,
        "bool": torch.bool,
    }
    for name, dtype in kinds.items():
        assert getattr(x, name)().dtype == dtype
        assert x.to(dtype).dtype == dtype
    assert x.to("cpu") is x.cpu() is x.contiguous() is x
    assert x.to(torch.ones(1, dtype=torch.double)).dtype == torch.float64
    assert x.to(device="cpu", dtype=torch.int).dtype == torch.int32
    assert x.is_floating_point()
    assert x.device == torch.device("cpu")
    with pytest.raises(ValueError, match="no device 'cuda'"):
        x.to("cuda")
    with pytest.raises(ValueError, match="no device 'cuda'"):
        torch.ones(2, device="cuda")


def test_changes_in_place() -> None:
    x = torch.tensor([1.0, -2.0, 3.0])
    assert x.add_(1, alpha=2) is x
    x.sub_(1).mul_(2).div_(4).neg_()
    assert_array_equal(x.numpy(), [-1, 0.5, -2])
    x.clamp_(min=-1)
    assert_array_equal(x.numpy(), [-1, 0.5, -1])
    x.unsqueeze_(0)
    assert x.shape == (1, 3)
    x.t_()
    assert x.shape == (3, 1)
    x.squeeze_()
    x.copy_(torch.ones(3))
    assert_array_equal(x.numpy(), [1, 1, 1])
    assert_array_equal(x.zeros_().numpy(), [0, 0, 0])
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(PrimgraphError, match="in-place"):
        leaf.unsqueeze_(0)


def test_data_is_read_and_set_without_a_record() -> None:
    w = torch.ones(2, requires_grad=True)
    w.data = w.data * 3
    assert w.is_leaf
    assert w.requires_grad
    (w * w).sum().backward()
    assert_array_equal(w.grad.numpy(), [6, 6])


def test_parameters_are_leaves_whose_results_are_tensors() -> None:
    w = torch.nn.Parameter(torch.ones(2))
    assert w.requires_grad
    assert w.is_leaf
    assert type(w * 2) is torch.Tensor
    assert not torch.nn.Parameter(torch.ones(1), requires_grad=False).requires_grad


def test_tensors_of_primgraph_and_of_torch_meet() -> None:
    x, y = torch.ones(2, requires_grad=True), pg.tensor([3.0, 4.0], requires_grad=True)
    for z in (y * x, pg.tanh(x) * y, pg.concatenate([y, x])):
        assert type(z) is torch.Tensor
    (x * y).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert type(y.grad) is pg.Tensor
    assert isinstance(x, pg.Tensor)


def test_tensors_are_shown_as_torch_shows_them() -> None:
    assert repr(torch.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(torch.tensor([0.5], dtype=torch.double)) == "tensor([0.5000], dtype=torch.float64)"
    assert repr(torch.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(torch.tensor(1 / 3)) == "tensor(0.3333)"
    assert repr(flow.tensor([1])) == "tensor([1], dtype=oneflow.int64)"


# What is made from nothing.


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_tensors_are_made_in_all_forms(room: Any) -> None:
    made = [room.zeros, room.ones, room.empty, room.rand, room.randn]
    for make in made:
        for x in (make(2, 3), make((2, 3)), make([2, 3]), make(size=(2, 3))):
            assert type(x) is room.Tensor
            assert x.shape == (2, 3)
            assert x.dtype == room.float32
        assert make(()).shape == ()
        assert make(2, dtype=room.double, requires_grad=True).requires_grad
    x = room.tensor([[1, 2]], dtype=room.float)
    likes = [room.zeros_like, room.ones_like, room.empty_like, room.rand_like, room.randn_like]
    assert {like(x).shape for like in likes} == {(1, 2)}
    assert {like(x, dtype=room.double).dtype for like in likes} == {np.dtype("float64")}
    assert_array_equal(room.full((2,), 7).numpy(), [7, 7])
    assert room.full((2,), 0.5).dtype == room.float32
    assert_array_equal(room.full_like(x, 3).numpy(), [[3, 3]])
    assert_array_equal(room.arange(3).numpy(), [0, 1, 2])
    assert room.arange(3).dtype == room.int64
    assert_array_equal(room.arange(1, 2, 0.5).numpy(), [1, 1.5])
    assert_array_equal(room.linspace(0, 1, 3).numpy(), [0, 0.5, 1])
    assert_array_equal(room.eye(2, 3).numpy(), np.eye(2, 3))
    drawn = room.randint(3, 5, (100,))
    assert set(drawn.tolist()) == {3, 4}
    assert set(room.randint(2, (100,)).tolist()) == {0, 1}
    assert sorted(room.randperm(4).tolist()) == [0, 1, 2, 3]
    assert room.as_tensor(x) is x
    assert room.as_tensor([1.0]).dtype == room.float32
    array = np.ones(2)
    taken = room.from_numpy(array)
    array[0] = 5
    assert_array_equal(taken.numpy(), [1, 1])
    assert room.tensor(array).dtype == room.float64
    assert room.Tensor([1.0, 2.0]).dtype == room.float32


def test_a_seed_repeats_random_numbers() -> None:
    torch.manual_seed(3)
    first = torch.rand(4).tolist() + torch.randn(4).tolist()
    torch.manual_seed(3)
    assert torch.rand(4).tolist() + torch.randn(4).tolist() == first


def test_the_default_dtype_may_be_set() -> None:
    try:
        torch.set_default_dtype(torch.float64)
        assert torch.ones(1).dtype == torch.tensor(0.5).dtype == torch.get_default_dtype()
        assert torch.get_default_dtype() == np.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="float dtype"):
        torch.set_default_dtype(torch.int)


# Networks' functions.

LABELS = np.array([[1, 0, 3], [2, 2, 0]])
TARGET = RNG.random((2, 3, 4))


def moved(x: Any) -> Any:
    """Classes along axis 1, where torch has them."""
    return x.permute(0, 2, 1)


def of_labels(x: Any) -> Any:
    return -np.take_along_axis(x, LABELS[:, :, None], 2)


NETWORK: dict[str, Sample] = {
    "binary_cross_entropy": (
        lambda x: torch.nn.functional.binary_cross_entropy(x, TARGET, reduction="sum"),
        -(TARGET * np.log(X) + (1 - TARGET) * np.log(1 - X)).sum(),
    ),
    "binary_cross_entropy_with_logits": (
        lambda x: torch.nn.functional.binary_cross_entropy_with_logits(x, TARGET),
        (np.log1p(np.exp(X)) - TARGET * X).mean(),
    ),
    "cross_entropy": (
        lambda x: torch.nn.functional.cross_entropy(moved(x), LABELS),
        of_labels(np.log(softmax(X, 2))).mean(),
    ),
    "dropout": (lambda x: torch.nn.functional.dropout(x, 0.5, training=False), X),
    "gelu": (
        lambda x: torch.nn.functional.gelu(x),
        X * (1 + erf(X / np.sqrt(2))) / 2,
    ),
    "huber_loss": (
        lambda x: torch.nn.functional.huber_loss(x, TARGET, "none", 0.1),
        np.where(
            np.abs(X - TARGET) < 0.1, (X - TARGET) ** 2 / 2, 0.1 * (np.abs(X - TARGET) - 0.05)
        ),
    ),
    "l1_loss": (
        lambda x: torch.nn.functional.l1_loss(x, TARGET),
        np.abs(X - TARGET).mean(),
    ),
    "layer_norm": (
        lambda x: torch.nn.functional.layer_norm(x, (3, 4)),
        (X - X.mean((1, 2), keepdims=True)) / np.sqrt(X.var((1, 2), keepdims=True) + 1e-5),
    ),
    "linear": (
        lambda x: torch.nn.functional.linear(x, Y[0], V),
        X @ Y[0].T + V,
    ),
    "log_softmax": (
        lambda x: torch.nn.functional.log_softmax(x, dim=2),
        np.log(softmax(X, 2)),
    ),
    "mse_loss": (
        lambda x: torch.nn.functional.mse_loss(x, TARGET, reduction="none"),
        (X - TARGET) ** 2,
    ),
    "nll_loss": (
        lambda x: torch.nn.functional.nll_loss(moved(x), LABELS, reduction="sum"),
        of_labels(X).sum(),
    ),
    "one_hot": (
        lambda x: torch.nn.functional.one_hot(torch.tensor(LABELS), 4),
        np.eye(4)[LABELS],
    ),
    "pad": (
        lambda x: torch.nn.functional.pad(x, (1, 2, 0, 1), value=9.0),
        np.pad(X, ((0, 0), (0, 1), (1, 2)), constant_values=9),
    ),
    "relu": (lambda x: torch.nn.functional.relu(x - 0.5), np.maximum(X - 0.5, 0)),
    "sigmoid": (lambda x: torch.nn.functional.sigmoid(x), 1 / (1 + np.exp(-X))),
    "silu": (lambda x: torch.nn.functional.silu(x), X / (1 + np.exp(-X))),
    "smooth_l1_loss": (
        lambda x: torch.nn.functional.smooth_l1_loss(x, TARGET, reduction="none", beta=0.1),
        np.where(np.abs(X - TARGET) < 0.1, (X - TARGET) ** 2 / 0.2, np.abs(X - TARGET) - 0.05),
    ),
    "softmax": (lambda x: torch.nn.functional.softmax(x, dim=2), softmax(X, 2)),
    "softplus": (
        lambda x: torch.nn.functional.softplus(x, 2),
        np.log1p(np.exp(2 * X)) / 2,
    ),
    "tanh": (lambda x: torch.nn.functional.tanh(x), np.tanh(X)),
}


# By torch's names of arguments, beside primgraph's own functions, which have tests elsewhere.
IMAGES = {n: RNG.normal(size=(2, 4, *(5, 6, 4)[:n])) for n in (1, 2, 3)}
WEIGHTS = {n: RNG.normal(size=(4, 2, *(2, 3, 2)[:n])) for n in (1, 2, 3)}


def _beside(name: str, count: int, given: dict[str, Any]) -> Sample:
    def call(x: Any) -> Any:
        return getattr(torch.nn.functional, name)(input=torch.tensor(IMAGES[count]), **given)

    plain = [given[k] for k in given if k in ("weight", "bias")]
    rest = {k: v for k, v in given.items() if k not in ("weight", "bias")}
    return call, getattr(pg, name)(IMAGES[count], *plain, **rest).numpy()


for _n in (1, 2, 3):
    _lies = {"stride": 2, "padding": 1, "groups": 2}
    NETWORK |= {
        name: _beside(name, _n, given)
        for name, given in {
            f"conv{_n}d": {"weight": WEIGHTS[_n], "bias": np.ones(4), **_lies, "dilation": 1},
            f"conv_transpose{_n}d": {"weight": WEIGHTS[_n], **_lies, "output_padding": 1},
            f"max_pool{_n}d": {"kernel_size": 2, "stride": 1, "padding": 1, "ceil_mode": True},
            f"avg_pool{_n}d": {"kernel_size": 2, "padding": 1, "count_include_pad": False},
            f"adaptive_max_pool{_n}d": {"output_size": 2},
            f"adaptive_avg_pool{_n}d": {"output_size": 3},
        }.items()
    }
NETWORK |= {
    "embedding": (
        lambda x: torch.nn.functional.embedding(LABELS, torch.tensor(IMAGES[1][0]), padding_idx=1),
        IMAGES[1][0][LABELS],
    ),
    "group_norm": (
        lambda x: torch.nn.functional.group_norm(torch.tensor(IMAGES[2]), 2, np.ones(4)),
        pg.group_norm(IMAGES[2], 2).numpy(),
    ),
    "rms_norm": (
        lambda x: torch.nn.functional.rms_norm(x, (3, 4), eps=0.1),
        X / np.sqrt((X**2).mean((1, 2), keepdims=True) + 0.1),
    ),
    "scaled_dot_product_attention": (
        lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
        pg.scaled_dot_product_attention(X, X, X, is_causal=True).numpy(),
    ),
}


@pytest.mark.parametrize("name", sorted(NETWORK))
def test_a_function_of_torchs_networks(name: str) -> None:
    call, expected = NETWORK[name]
    found = call(torch.tensor(X))
    assert type(found) is torch.Tensor
    assert_allclose(found.numpy(), expected, rtol=1e-7)


def test_edges_of_functions_of_networks() -> None:
    functional, x = torch.nn.functional, torch.tensor(X)
    assert_allclose(functional.smooth_l1_loss(x, Y, beta=0.0).numpy(), np.abs(X - Y).mean())
    assert_array_equal(functional.one_hot(torch.tensor([0, 2])).numpy(), [[1, 0, 0], [0, 0, 1]])
    assert_allclose(torch.einsum("ijk,ijk", [x, x]).numpy(), np.sum(X * X))


def test_dropout_drops_others_each_time_and_scales_the_rest() -> None:
    torch.manual_seed(0)
    x = torch.ones(1000)
    first, second = (torch.nn.functional.dropout(x, 0.25).numpy() for _ in range(2))
    assert set(first.round(6)) == {0, np.float32(4 / 3).round(6)}
    assert 600 < np.count_nonzero(first) < 900
    assert np.any(first != second)


def test_what_there_is_nothing_for_is_refused() -> None:
    x = torch.ones(2, 2)
    with pytest.raises(TypeError, match="rounding_mode"):
        torch.div(x, x, rounding_mode="up")
    with pytest.raises(TypeError, match="approximate"):
        torch.nn.functional.gelu(x, "erf")
    with pytest.raises(TypeError, match="avg is not a valid value"):
        torch.nn.functional.nll_loss(x, np.array([0, 1]), reduction="avg")
    leaf = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="only_inputs"):
        torch.autograd.grad(leaf.sum(), leaf, only_inputs=False)


# Custom functions.


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_custom_functions_see_tensors_of_their_room(room: Any) -> None:
    kinds = []

    class Scaled(room.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            kinds.append(type(x))
            ctx.save_for_backward(x)
            ctx.factor = factor
            return (x * x).sum(dim=0) * factor

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            kinds.extend([type(x), type(ct)])
            return ct * 2 * x * ctx.factor, None

    x = room.tensor([[1.0, 2.0]], requires_grad=True)
    y = Scaled.apply(x, 3.0)
    kinds.append(type(y))
    (first,) = room.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = room.autograd.grad(first.sum(), x)
    assert_array_equal(first.detach().numpy(), [[6, 12]])
    assert_array_equal(second.numpy(), [[6, 6]])
    assert set(kinds) == {room.Tensor}


# Derivatives of functions.


def quadratic(x: Any, y: Any) -> Any:
    assert type(x) is type(y)
    return (x * x * y).sum(dim=0)


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_derivatives_of_functions_have_torchs_forms(room: Any) -> None:
    functional = room.autograd.functional
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x, y = room.tensor(a), room.tensor(b)
    for strategy in ("reverse-mode", "forward-mode"):
        by_x, by_y = functional.jacobian(quadratic, (x, y), strategy=strategy)
        assert type(by_x) is room.Tensor
        assert_array_equal(by_x.numpy(), 2 * a * b)
        assert_array_equal(by_y.numpy(), a * a)
    rows = functional.jacobian(lambda x: room.sin(x), x)
    assert_allclose(rows.numpy(), np.diag(np.cos(a)))
    two = functional.jacobian(lambda x: (x.sum(), x * x), x)
    assert [t.shape for t in two] == [(2,), (2, 2)]
    ((xx, xy), (yx, yy)) = functional.hessian(quadratic, (x, y))
    assert_array_equal(xx.numpy(), np.diag(2 * b))
    assert_array_equal(xy.numpy(), np.diag(2 * a))
    assert_array_equal(yx.numpy(), np.diag(2 * a))
    assert_array_equal(yy.numpy(), np.zeros((2, 2)))
    value, product = functional.vjp(lambda x: x * x, x, room.tensor([1.0, 10.0]))
    assert_array_equal(value.numpy(), a * a)
    assert_array_equal(product.numpy(), [2, 40])
    _, product = functional.jvp(lambda x: x * x, x, room.tensor([1.0, 10.0]))
    assert_array_equal(product.numpy(), [2, 40])
    for name in ("hvp", "vhp"):
        value, product = getattr(functional, name)(
            lambda x: (x**3).sum(), x, room.tensor([1.0, 10.0])
        )
        assert value.item() == 9
        assert_array_equal(product.numpy(), [6, 120])


def test_derivatives_of_functions_are_constants_unless_asked_otherwise() -> None:
    functional = torch.autograd.functional
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not functional.jacobian(lambda x: x**3, x).requires_grad
    rows = functional.jacobian(lambda x: x**3, x, create_graph=True)
    (again,) = torch.autograd.grad(rows.sum(), x)
    assert_array_equal(again.numpy(), [6, 12])
    with pytest.raises(pg.NotDifferentiable):
        functional.jacobian(lambda x: torch.ones(2), x, strict=True)
    with pytest.raises(pg.NotDifferentiable):
        functional.hessian(lambda x: torch.ones(()), x, strict=True)
    assert_array_equal(functional.jacobian(lambda x: torch.ones(2), x).numpy(), np.zeros((2, 2)))


def written_for_torch(x: Any, w: Any) -> Any:
    values, places = x.max(dim=1)
    hidden = torch.relu((x.double() * 2).unsqueeze(0)).sum(dim=0, keepdim=True).squeeze()
    for part in w.chunk(2, dim=0):
        hidden = hidden.mul(part.float().mean(-1, keepdim=True).sum()).clamp(min=0.1)
    return {
        "spread": hidden.std(dim=1) + values.type_as(hidden),
        "rows": x.size(0) * hidden.mean(-1) / x.shape[-1] + w.t().sum(dim=0).norm(),
        "order": (places, x.argmax(dim=0), x.permute(1, 0).reshape(-1, 3).size()[1] + x.numel()),
    }


def test_code_for_torch_runs_as_it_stands_in_functions_that_are_compiled() -> None:
    x, w = torch.tensor([[1.0, -2.0], [0.5, 4.0], [3.0, 3.5]]), torch.ones(2, 2)
    expected = written_for_torch(x, w)
    compiled = pg.jit(lambda x: written_for_torch(x, w))
    for _ in range(2):
        found = compiled(x)
        pairs = zip(pg.tree.leaves(found), pg.tree.leaves(expected), strict=True)
        for one, other in pairs:
            assert_allclose(one, other, rtol=1e-6)
        assert type(found["rows"]) is torch.Tensor

    def loss(x: Any) -> Any:
        return (x.pow(2) * w.sum(dim=0)).sum(dim=1, keepdim=True).mean()

    slope = torch.func.grad(loss)(x)
    assert_allclose(pg.jit(torch.func.grad(loss))(x), slope)
    assert_allclose(pg.jit(lambda x: torch.autograd.grad(loss(x), x)[0].sum(dim=0))(x),
                    slope.sum(dim=0))  # fmt: skip
    assert_allclose(torch.func.vmap(lambda r: r.sum(dim=0, keepdim=True))(x),
                    x.sum(dim=1, keepdim=True))  # fmt: skip
    with pytest.raises(pg.UnknownNameError, match="a variable has nothing named 'sume'"):
        pg.jit(lambda x: x.sume(dim=0))(x)
    # Tensors of primgraph keep their own manners, and so do operators inside.
    assert_array_equal(compiled.function(x)["order"][0], [0, 1, 1])
    assert pg.jit(lambda x: pg.max(x, axis=1).max())(x).item() == 4.0
    both = pg.jit(lambda x: x.max(axis=0) if type(x) is pg.Variable else x.max(dim=0)[0])
    for given in (x, pg.tensor(x.numpy())):
        assert_array_equal(both(given), [3, 4])
    assert "tensors are of primgraph.operators.variable" in both.compilations[1].reasons[0]


def test_functions_made_of_functions_of_torch() -> None:
    func = torch.func
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert_array_equal(func.grad(quadratic)(x, y).numpy(), [6, 16])
    assert_array_equal(func.grad(quadratic, argnums=1)(x, y).numpy(), [1, 4])
    gradient, value = func.grad_and_value(quadratic)(x, y)
    assert_array_equal(gradient.numpy(), [6, 16])
    assert value.item() == 19
    for transform in (func.jacrev, func.jacfwd):
        assert_array_equal(transform(lambda x: x**2)(x).numpy(), [[2, 0], [0, 4]])
    assert_array_equal(func.hessian(quadratic)(x, y).numpy(), [[6, 0], [0, 8]])
    samples = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    rows = func.vmap(func.jacrev(lambda x: torch.sin(x)))(samples)
    assert_allclose(rows.numpy(), np.cos(samples.numpy())[:, :, None] * np.eye(2), rtol=1e-6)
    value, product = func.jvp(quadratic, (x, y), (torch.ones(2), torch.zeros(2)))
    assert (value.item(), product.item()) == (19, 22)


def test_the_product_with_a_jacobian_is_a_function() -> None:
    x = torch.tensor(V)
    value, back = torch.func.vjp(lambda x, y: x * y, x, x)
    assert_allclose(value.numpy(), V * V)
    for found in back(torch.ones_like(x)):
        assert_allclose(found.numpy(), V)
    assert_allclose(torch.vmap(lambda row: row.sum())(torch.tensor(M)).numpy(), M.sum(1))
