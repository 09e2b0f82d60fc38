"""MegEngine's functions and tensors, against NumPy: one sample for each function."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.megengine as mge
import primgraph.compat.megengine.functional as F
from primgraph.errors import OptionError, PrimgraphError
from primgraph.special import erf as error_function

RNG = np.random.default_rng(23)
X = RNG.uniform(0.2, 0.8, (2, 3, 4))
Y = RNG.uniform(0.2, 0.8, (2, 3, 4))
V = RNG.uniform(0.2, 0.8, 3)
B = RNG.uniform(0.2, 0.8, 2)
B3 = RNG.uniform(0.2, 0.8, 3)
IMAGE = RNG.normal(size=(2, 4, 5, 6))
WEIGHT = RNG.normal(size=(2, 2, 3, 2))
WEIGHT2 = RNG.normal(size=(4, 1, 3, 2))
VOLUME = RNG.normal(size=(1, 1, 2, 3, 2))
INDEX = np.array([[[2, 0, 1, 1]], [[0, 0, 2, 1]]])
INDEX32 = mge.tensor(INDEX)
CTC = ([2], [[1, 2]], [2])
LABELS = np.array([[1, 0, 3], [2, 2, 0]])
TARGET = RNG.random((2, 3, 4))

Sample = tuple[Callable[[Any], Any], Any]


def d(array: Any) -> mge.Tensor:
    """A tensor of float64."""
    return mge.tensor(array, "float64")


def erf(x: Any) -> Any:
    return error_function(x).numpy()


def softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x)
    return powers / powers.sum(axis, keepdims=True)


def of_labels(x: Any) -> Any:
    """The negative elements at the labels."""
    return -np.take_along_axis(x, LABELS[..., None], 2)


def normal(x: Any, axes: tuple[int, ...]) -> Any:
    """Normalized over axes."""
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def scattered() -> Any:
    found = X.copy()
    np.put_along_axis(found, INDEX, -Y[:, :1], 1)
    return found


UNARY: dict[str, Any] = {
    "abs": np.abs,
    "acos": np.arccos,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": erf,
    "erfc": lambda x: 1 - erf(x),
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "log1p": np.log1p,
    "logical_not": np.logical_not,
    "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
}
MEGENGINE: dict[str, Sample] = {
    **{name: (lambda x, name=name: getattr(F, name)(x), UNARY[name](X)) for name in UNARY},
    "acosh": (lambda x: F.acosh(x + 1), np.arccosh(X + 1)),
    "add": (lambda x: F.add(x, Y), X + Y),
    "arange": (lambda x: F.arange(1, 4), np.arange(1, 4)),
    "argmax": (lambda x: F.argmax(x, axis=1), X.argmax(1)),
    "argmin": (lambda x: F.argmin(x, axis=1), X.argmin(1)),
    "atan2": (lambda x: F.atan2(x, Y), np.arctan2(X, Y)),
    "binary_cross_entropy": (
        lambda x: F.binary_cross_entropy(x, TARGET),
        (np.log1p(np.exp(X)) - TARGET * X).mean(),
    ),
    "broadcast_to": (lambda x: F.broadcast_to(x, (5, 2, 3, 4)), np.broadcast_to(X, (5, 2, 3, 4))),
    "clip": (lambda x: F.clip(x, 0.4, 0.6), X.clip(0.4, 0.6)),
    "concat": (lambda x: F.concat([x, Y], axis=1), np.concatenate([X, Y], 1)),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, LABELS, axis=2),
        of_labels(np.log(softmax(X, 2))).mean(),
    ),
    "cumsum": (lambda x: F.cumsum(x, axis=1), X.cumsum(1)),
    "div": (lambda x: F.div(x, Y), X / Y),
    "dot": (lambda x: F.dot(x[0, 0], Y[0, 0]), X[0, 0] @ Y[0, 0]),
    "dropout": (lambda x: F.dropout(x, 0.5, training=False), X),
    "equal": (lambda x: F.equal(x, d(X)), np.ones_like(X, bool)),
    "expand_dims": (lambda x: F.expand_dims(x, 1), X[:, None]),
    "eye": (lambda x: F.eye(2, 3), np.eye(2, 3)),
    "flatten": (lambda x: F.flatten(x, 1), X.reshape(2, 12)),
    "floor_div": (lambda x: F.floor_div(x, Y), X // Y),
    "full": (lambda x: F.full((2,), 3), [3, 3]),
    "full_like": (lambda x: F.full_like(x, 3), np.full_like(X, 3)),
    "gather": (lambda x: F.gather(x, 1, INDEX), np.take_along_axis(X, INDEX, 1)),
    "gelu": (lambda x: F.gelu(x), X * (1 + erf(X / np.sqrt(2))) / 2),
    "greater": (lambda x: F.greater(x, Y), X > Y),
    "greater_equal": (lambda x: F.greater_equal(x, Y), X >= Y),
    "l1_loss": (lambda x: F.l1_loss(x, TARGET), np.abs(X - TARGET).mean()),
    "less": (lambda x: F.less(x, Y), X < Y),
    "less_equal": (lambda x: F.less_equal(x, Y), X <= Y),
    "linear": (lambda x: F.linear(x, Y[0], V), X @ Y[0].T + V),
    "linspace": (lambda x: F.linspace(0, 1, 3), [0, 0.5, 1]),
    "logaddexp": (lambda x: F.logaddexp(x, Y), np.logaddexp(X, Y)),
    "logical_and": (lambda x: F.logical_and(x > 0.5, Y > 0.5), (X > 0.5) & (Y > 0.5)),
    "logical_or": (lambda x: F.logical_or(x > 0.5, Y > 0.5), (X > 0.5) | (Y > 0.5)),
    "logical_xor": (lambda x: F.logical_xor(x > 0.5, Y > 0.5), (X > 0.5) ^ (Y > 0.5)),
    "logsoftmax": (lambda x: F.logsoftmax(x, axis=1), np.log(softmax(X, 1))),
    "logsumexp": (lambda x: F.logsumexp(x, axis=1), np.log(np.exp(X).sum(1))),
    "matmul": (lambda x: F.matmul(x, Y, transpose_b=True), X @ Y.swapaxes(1, 2)),
    "max": (lambda x: F.max(x, axis=1), X.max(1)),
    "maximum": (lambda x: F.maximum(x, Y), np.maximum(X, Y)),
    "mean": (lambda x: F.mean(x, axis=1, keepdims=True), X.mean(1, keepdims=True)),
    "min": (lambda x: F.min(x, axis=1), X.min(1)),
    "minimum": (lambda x: F.minimum(x, Y), np.minimum(X, Y)),
    "mod": (lambda x: F.mod(x, Y), X % Y),
    "mul": (lambda x: F.mul(x, Y), X * Y),
    "norm": (lambda x: F.norm(x, axis=1), np.sqrt((X**2).sum(1))),
    "not_equal": (lambda x: F.not_equal(x, Y), X != Y),
    "one_hot": (lambda x: F.one_hot(mge.tensor(LABELS), 4), np.eye(4)[LABELS]),
    "ones": (lambda x: F.ones((2, 3)), np.ones((2, 3))),
    "ones_like": (lambda x: F.ones_like(x), np.ones_like(X)),
    "pow": (lambda x: F.pow(x, 2), X**2),
    "prod": (lambda x: F.prod(x, axis=1), X.prod(1)),
    "repeat": (lambda x: F.repeat(x, 2, axis=1), X.repeat(2, 1)),
    "reshape": (lambda x: F.reshape(x, (4, -1)), X.reshape(4, 6)),
    "roll": (lambda x: F.roll(x, 1, 2), np.roll(X, 1, 2)),
    "round": (lambda x: F.round(x), X.round()),
    "silu": (lambda x: F.silu(x), X / (1 + np.exp(-X))),
    "softmax": (lambda x: F.softmax(x, axis=1), softmax(X, 1)),
    "softplus": (lambda x: F.softplus(x), np.log1p(np.exp(X))),
    "split": (lambda x: F.split(x, 2, axis=2)[1], X[:, :, 2:]),
    "square_loss": (lambda x: F.square_loss(x, TARGET), ((X - TARGET) ** 2).mean()),
    "squeeze": (lambda x: F.squeeze(x[:, :1], 1), X[:, 0]),
    "stack": (lambda x: F.stack([x, x], axis=1), np.stack([X, X], 1)),
    "std": (lambda x: F.std(x, axis=1), X.std(1)),
    "sub": (lambda x: F.sub(x, Y), X - Y),
    "sum": (lambda x: F.sum(x, axis=1), X.sum(1)),
    "swapaxes": (lambda x: F.swapaxes(x, 0, 1), X.swapaxes(0, 1)),
    "tile": (lambda x: F.tile(x, (2, 1, 1)), np.tile(X, (2, 1, 1))),
    "transpose": (lambda x: F.transpose(x, (2, 0, 1)), X.transpose(2, 0, 1)),
    "var": (lambda x: F.var(x, axis=1), X.var(1)),
    "where": (lambda x: F.where(x > 0.5, x, d(Y)), np.where(X > 0.5, X, Y)),
    "zeros": (lambda x: F.zeros((2, 3)), np.zeros((2, 3))),
    "zeros_like": (lambda x: F.zeros_like(x), np.zeros_like(X)),
    "argsort": (lambda x: F.argsort(x), X.argsort(-1)),
    "avg_pool2d": (
        lambda x: F.avg_pool2d(d(IMAGE), 2, padding=1),
        pg.avg_pool2d(IMAGE, 2, None, 1, count_include_pad=False).numpy(),
    ),
    "adaptive_avg_pool2d": (
        lambda x: F.adaptive_avg_pool2d(d(IMAGE), (2, 3)),
        pg.adaptive_avg_pool2d(IMAGE, (2, 3)).numpy(),
    ),
    "adaptive_max_pool2d": (
        lambda x: F.adaptive_max_pool2d(d(IMAGE), 2),
        pg.adaptive_max_pool2d(IMAGE, 2).numpy(),
    ),
    "batch_norm": (lambda x: F.batch_norm(x, training=True), normal(X, (0, 2))),
    "complex": (lambda x: F.complex(x, x), X + 1j * X),
    "cond_take": (lambda x: F.cond_take(x > 0.5, x)[0], X[X > 0.5]),
    "ctc_loss": (
        lambda x: F.ctc_loss(
            F.full((2, 1, 3), 0.25, dtype="float64"), *(mge.tensor(v) for v in CTC)
        ),
        -np.log(0.25**2) / 2,
    ),
    "conv1d": (
        lambda x: F.conv1d(x, d(X[:, :3, :2]), d(B.reshape(1, -1, 1)), padding=1),
        pg.conv1d(X, X[:, :3, :2], B, padding=1).numpy(),
    ),
    "conv2d": (
        lambda x: F.conv2d(d(IMAGE), d(WEIGHT.reshape(2, 1, 2, 3, 2)), groups=2, stride=2),
        pg.conv2d(IMAGE, WEIGHT, stride=2, groups=2).numpy(),
    ),
    "conv3d": (lambda x: F.conv3d(d(VOLUME), d(VOLUME)), (VOLUME**2).sum().reshape(1, 1, 1, 1, 1)),
    "conv_transpose2d": (
        lambda x: F.conv_transpose2d(
            d(IMAGE), d(WEIGHT2.reshape(2, 2, 1, 3, 2)), d(B), 2, output_padding=1, groups=2
        ),
        pg.conv_transpose2d(IMAGE, WEIGHT2, B, 2, 0, 1, 2).numpy(),
    ),
    "conv_transpose3d": (
        lambda x: F.conv_transpose3d(F.ones((1, 1, 1, 1, 1)), d(VOLUME)),
        VOLUME,
    ),
    "copy": (lambda x: F.copy(x), X),
    "cross": (lambda x: F.cross(x, d(Y), axis=1), np.cross(X, Y, axis=1)),
    "diag": (lambda x: F.diag(x[0], 1), np.diag(X[0], 1)),
    "einsum": (lambda x: F.einsum("ijk,ijk->i", x, Y), (X * Y).sum((1, 2))),
    "embedding": (lambda x: F.embedding(mge.tensor([2, 0]), x[0]), X[0][[2, 0]]),
    "general_norm": (lambda x: F.general_norm(x, (0, 2), False), normal(X, (0, 2))),
    "group_norm": (
        lambda x: F.group_norm(x, 3, True, d(3 * B3), d(B3)),
        normal(X, (2,)) * 3 * B3[:, None] + B3[:, None],
    ),
    "hinge_loss": (lambda x: F.hinge_loss(x, -Y, "L2"), ((1 + X * Y) ** 2).sum(1).mean()),
    "hsigmoid": (lambda x: F.hsigmoid(6 * x), np.clip(6 * X + 3, 0, 6) / 6),
    "hswish": (lambda x: F.hswish(6 * x), 6 * X * np.clip(6 * X + 3, 0, 6) / 6),
    "imag": (lambda x: F.imag(F.complex(x, 2 * x)), 2 * X),
    "indexing_one_hot": (
        lambda x: F.indexing_one_hot(x, mge.tensor(LABELS), 2),
        np.take_along_axis(X, LABELS[..., None], 2)[..., 0],
    ),
    "instance_norm": (lambda x: F.instance_norm(x, False), normal(X, (2,))),
    "layer_norm": (
        lambda x: F.layer_norm(x, (3, 4), True, d(Y[0]), d(Y[1])),
        normal(X, (1, 2)) * Y[0] + Y[1],
    ),
    "leaky_relu": (lambda x: F.leaky_relu(x - 0.5, 0.1), np.where(X > 0.5, 1, 0.1) * (X - 0.5)),
    "left_shift": (lambda x: F.left_shift(mge.tensor([1, 2]), 2), [4, 8]),
    "local_response_norm": (
        lambda x: F.local_response_norm(x, 3, 1.0, 0.5, 2.0),
        X
        / (1 + 0.5 * np.stack([(X[:, :2] ** 2).sum(1), (X**2).sum(1), (X[:, 1:] ** 2).sum(1)], 1))
        ** 2,
    ),
    "logsigmoid": (lambda x: F.logsigmoid(x), -np.log1p(np.exp(-X))),
    "matinv": (lambda x: F.matinv(x[:, :, :3]), np.linalg.inv(X[:, :, :3])),
    "max_pool2d": (lambda x: F.max_pool2d(d(IMAGE), 2, 1), pg.max_pool2d(IMAGE, 2, 1).numpy()),
    "meshgrid": (lambda x: F.meshgrid(x[0, 0], x[0, 1])[1], np.meshgrid(X[0, 0], X[0, 1])[1]),
    "non_zero": (lambda x: F.non_zero(x > 0.5), np.argwhere(X > 0.5)),
    "normalize": (
        lambda x: F.normalize(x, axis=1),
        X / np.sqrt((X**2).sum(1, keepdims=True)),
    ),
    "pad": (
        lambda x: F.pad(x, ((0, 0), (1, 2)), "replicate"),
        np.pad(X, ((0, 0), (1, 2), (0, 0)), "edge"),
    ),
    "pixel_shuffle": (
        lambda x: F.pixel_shuffle(d(IMAGE), 2),
        IMAGE.reshape(2, 1, 2, 2, 5, 6).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 10, 12),
    ),
    "polar": (lambda x: F.polar(x, x), X * np.exp(1j * X)),
    "prelu": (lambda x: F.prelu(x - 0.5, 0.1), np.where(X > 0.5, 1, 0.1) * (X - 0.5)),
    "real": (lambda x: F.real(F.complex(x, 2 * x)), X),
    "relu6": (lambda x: F.relu6(20 * x), np.clip(20 * X, 0, 6)),
    "right_shift": (lambda x: F.right_shift(mge.tensor([4, 9]), 2), [1, 2]),
    "scatter": (lambda x: F.scatter(F.copy(x), 1, INDEX32, d(-Y[:, :1])), scattered()),
    "sliding_window": (
        lambda x: F.sliding_window(d(IMAGE), (2, 3), stride=(1, 2), dilation=(2, 1)),
        np.stack(
            [IMAGE[:, :, i : i + 3 : 2, j : j + 3] for i in range(3) for j in (0, 2)], 2
        ).reshape(2, 4, 3, 2, 2, 3),
    ),
    "sliding_window_transpose": (
        lambda x: F.sliding_window_transpose(F.sliding_window(d(IMAGE), 2, 1, 2), (5, 6), 2, 1, 2),
        IMAGE,
    ),
    "sort": (lambda x: F.sort(x, descending=True, dim=1)[0], -np.sort(-X, 1)),
    "svd": (lambda x: F.svd(x)[1], np.linalg.svd(X)[1]),
    "sync_batch_norm": (
        lambda x: F.nn.sync_batch_norm(x, d(B3), d(3 * B3)),
        (X - B3[:, None]) / np.sqrt(3 * B3[:, None] + 1e-5),
    ),
    "topk": (lambda x: F.topk(x, 2, descending=False)[1], X.argsort(-1)[..., :2]),
    "topk_accuracy": (
        lambda x: F.topk_accuracy(x[0], mge.tensor(X[0].argmax(1))),
        1.0,
    ),
}


@pytest.mark.parametrize("name", F.__all__)
def test_a_function_of_megengine(name: str) -> None:
    call, expected = MEGENGINE[name]
    found = call(d(X))
    assert type(found) is mge.Tensor
    assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_data_without_a_dtype_is_of_float32_or_int32() -> None:
    assert mge.tensor([1.0, 2.0]).dtype == np.float32
    assert mge.Tensor(3).dtype == np.int32
    assert mge.tensor(np.ones(2)).dtype == np.float32
    assert mge.tensor(np.arange(2)).dtype == np.int32
    assert mge.tensor([1], dtype="float64").dtype == np.float64
    assert (mge.tensor([1.0]) * np.ones(1)).dtype == np.float32
    assert (mge.tensor([1.0]) * np.float64(2)).dtype == np.float32
    assert (mge.tensor([1, 2]) ** 2).dtype == np.float32
    assert (mge.tensor([1, 2]) / 2).dtype == np.float32
    assert F.argmax(mge.tensor([1.0, 2.0])).dtype == np.int32
    assert F.exp(0).numpy() == np.float32(1)
    assert F.maximum(2.0, mge.tensor([1.0])).numpy() == [2.0]


def test_parameters_change_in_place_and_remain_parameters() -> None:
    w = mge.Parameter([1.0, 2.0])
    same = w
    w -= 0.5 * w
    assert w is same
    w[0] = 4.0
    assert_array_equal(w.numpy(), [4, 1])
    w._reset(np.array([1.0, 2.0, 3.0]))
    assert_array_equal(same.numpy(), [1, 2, 3])
    w.set_value([3.0, 2.0, 1.0])
    manager = mge.autodiff.GradManager().attach([w])
    with manager:
        loss = (w * w).sum()
        w *= 2
        manager.backward(loss)
    assert_array_equal(w.grad.numpy(), [6, 4, 2])
    assert_array_equal(w.numpy(), [6, 4, 2])
    w.reset_zero()
    assert_array_equal(w.numpy(), [0, 0, 0])
    assert type(w * 2) is mge.Tensor
    assert isinstance(w, mge.Parameter)
    assert w.to("cpu0") is w


def test_changes_in_place_are_recorded() -> None:
    x, total = mge.tensor([1.0, 2.0]), mge.tensor(0.0)
    manager = mge.autodiff.GradManager().attach(x)
    with manager:
        y = x * 1
        y[0] = 5.0
        y += x
        total += (y * y).sum()
        manager.backward(total)
    assert_array_equal(x.grad.numpy(), [12, 16])
    count = mge.tensor([1, 2])
    count += 0.5
    assert_array_equal(count.numpy(), [1.5, 2.5])


def test_tensors_print_as_megengines() -> None:
    assert repr(mge.tensor([1.0, 2.5])) == "Tensor([1.  2.5], device=xpux:0)"
    assert repr(mge.Parameter([1.0])) == "Parameter([1.], device=xpux:0)"
    text = "Tensor([[1 2]\n [3 4]], dtype=int32, device=xpux:0)"
    assert repr(mge.tensor([[1, 2], [3, 4]])) == text
    assert str(mge.tensor(1.5)) == "Tensor(1.5, device=xpux:0)"


def test_attributes_and_methods_of_tensors() -> None:
    x = mge.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], name="data", device="cpu0")
    assert (x.shape, x.ndim, x.size, x.name, x.device) == ((2, 3), 2, 6, "data", "xpux:0")
    assert x.T.shape == x.transpose().shape == x.transpose(1, 0).shape == (3, 2)
    assert x.transpose("x", 1, 0).shape == x.transpose(("x", 1, 0)).shape == (1, 3, 2)
    assert x.item(1, 2) == 6.0
    assert x.reshape(-1).shape == x.reshape((6,)).shape == (6,)
    assert x.astype("int32").tolist() == [[1, 2, 3], [4, 5, 6]]
    assert x.max(axis=1).tolist() == [3.0, 6.0]
    assert copy.deepcopy(x).tolist() == pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    for call in (lambda: mge.tensor([1.0], device="gpu0"), lambda: x.to("gpu0")):
        with pytest.raises(OptionError, match="gpu0"):
            call()
    with pytest.raises(TypeError, match="bool"):
        ~x  # noqa: B018


def test_names_of_arguments_are_megengines() -> None:
    names = ("relu", "exp", "maximum", "sum", "conv2d", "topk", "transpose", "batch_norm", "clip")
    found = {name: [*inspect.signature(getattr(F, name)).parameters] for name in names}
    assert found["relu"] == found["exp"] == ["x"]
    assert found["maximum"] == ["x", "y"]
    assert found["sum"] == ["inp", "axis", "keepdims"]
    assert found["clip"] == ["x", "lower", "upper"]
    assert found["transpose"] == ["inp", "pattern"]
    assert found["topk"] == ["inp", "k", "descending", "kth_only", "no_sort"]
    assert found["conv2d"][:5] == ["inp", "weight", "bias", "stride", "padding"]
    assert found["conv2d"][5:] == ["dilation", "groups", "conv_mode", "compute_mode"]
    assert found["batch_norm"][-4:] == ["training", "momentum", "eps", "inplace"]


def test_losses_take_probabilities_smoothed_labels_and_reductions() -> None:
    logits, logarithms = d(X), np.log(softmax(X, 2))
    found = F.cross_entropy(F.softmax(logits, axis=2), LABELS, axis=2, with_logits=False)
    assert_allclose(found.numpy(), of_labels(logarithms).mean())
    found = F.loss.cross_entropy(logits, LABELS, axis=2, label_smooth=0.1, reduction="none")
    expected = 0.9 * of_labels(logarithms)[..., 0] - 0.1 * logarithms.mean(2)
    assert_allclose(found.numpy(), expected)
    found = F.nn.binary_cross_entropy(logits, d(TARGET), with_logits=False, reduction="sum")
    assert_allclose(found.numpy(), -(TARGET * np.log(X) + (1 - TARGET) * np.log(1 - X)).sum())
    assert F.loss.l1_loss(mge.tensor([3, 3]), mge.tensor([2, 8]), reduction="sum").item() == 6
    with pytest.raises(AssertionError):
        F.cross_entropy(logits, mge.tensor([1]))
    with pytest.raises(ValueError, match="average"):
        F.square_loss(logits, logits, reduction="average")


def test_running_statistics_keep_a_share_of_what_they_were() -> None:
    mean, var = mge.tensor(np.zeros((1, 3, 1, 1))), mge.tensor(np.ones((1, 3, 1, 1)))
    F.batch_norm(d(X), mean, var, training=True, momentum=0.75)
    assert_allclose(mean.numpy().ravel(), 0.25 * X.mean((0, 2)), rtol=1e-5)
    assert_allclose(var.numpy().ravel(), 0.75 + 0.25 * X.var((0, 2), ddof=1), rtol=1e-5)
    _, new, _ = F.batch_norm(d(X), mean, var, training=True, momentum=0.75, inplace=False)
    assert_allclose(new.numpy().ravel(), 1.75 * mean.numpy().ravel(), rtol=1e-5)


def test_functions_have_second_derivatives_and_are_compiled() -> None:
    x = d(X)
    outer, inner = (mge.autodiff.GradManager().attach([x]) for _ in range(2))
    with outer:
        with inner:
            inner.backward(F.sum(F.topk(F.hswish(x), 2)[0] ** 2))
        first, x.grad = x.grad, None
        outer.backward(first)
    assert x.grad.shape == X.shape
    compiled = pg.jit(lambda x: F.logsoftmax(F.relu6(x), axis=1))
    assert_allclose(compiled(d(X)).numpy(), np.log(softmax(X, 1)))


def test_custom_functions_of_megengine_are_instances() -> None:
    class Sigmoid(mge.autodiff.Function):
        def forward(self, x: Any) -> Any:
            assert type(x) is mge.Tensor
            self.y = 1 / (1 + F.exp(-x))
            return self.y

        def backward(self, dy: Any) -> Any:
            return dy * self.y * (1 - self.y)

    x = mge.tensor([0.5, -1.0])
    with mge.autodiff.GradManager().attach(x) as gm:
        gm.backward(Sigmoid()(x))
    y = 1 / (1 + np.exp(-np.array([0.5, -1.0])))
    assert_allclose(x.grad.numpy(), y * (1 - y), rtol=1e-6)
    with pytest.raises(PrimgraphError, match="has no forward"):
        mge.autodiff.Function()(x)


def test_images_are_resized() -> None:
    x = d(np.arange(16.0).reshape(1, 1, 4, 4))
    found = F.vision.interpolate(x, size=(2, 2))
    assert_allclose(found.numpy().ravel(), [2.5, 4.5, 10.5, 12.5])
    found = F.vision.interpolate(x, size=(7, 7), align_corners=True)
    assert_allclose(found.numpy()[0, 0, 0], np.arange(7) / 2)
    found = F.vision.resize(x.reshape(1, 4, 4, 1), (2, 2), format="NHWC")
    assert found.shape == (1, 2, 2, 1)
    for options in ({"mode": "cubic"}, {}, {"size": 2, "mode": "nearest", "align_corners": True}):
        with pytest.raises(ValueError, match=r"mode|scale_factor"):
            F.vision.interpolate(x, **options)
