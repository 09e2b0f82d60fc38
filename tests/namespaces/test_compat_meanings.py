"""What functions and methods of torch, Paddle and MegEngine mean where NumPy's mean something else.

Numbers are those of torch 2.13 and Paddle 3.3; MegEngine's follow from its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph.compat.megengine as mge
import primgraph.compat.megengine.functional as F
import primgraph.compat.megengine.module as M
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch

ROWS = [[1.0, 2.0], [3.0, 5.0]]


@pytest.fixture(autouse=True)
def dynamic() -> Iterator[None]:
    yield
    paddle.disable_static()


# Dtypes.


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_integers_take_the_dtype_of_floats_in_torch(room: Any) -> None:
    i, x = room.tensor([1, 2]), room.ones(2)
    double = room.tensor(2.0, dtype=room.double)
    expected = {
        "float32": [
            i * 0.5, 0.5 - i, i / i, i / 2, 2 / i, i**0.5, i.sqrt(), room.sin(i), i + x, x - i,
            x * double, x * np.float64(2), room.where(i > 1, i, 0.5), room.where(i > 1, i, x),
            room.cat([i, x]), room.stack([x, i]), i.clamp(0.5), room.maximum(i, x), room.pow(i, x),
            room.tensor([True]) * 0.5, room.add(i, 1.5), i.add(x, alpha=2), i // 0.5, i % 0.5,
            room.atan2(i, i), i.sigmoid(), room.masked_fill(x, i > 1, 2), i.exp().log(),
        ],
        "float64": [i * double, i + x.double(), room.tensor(1) * double],
        "float16": [room.tensor(1) * x.half(), i * x.half(), x.half() * 0.1],
        "int64": [i * 2, i + True, i // 2, i**2, room.maximum(i, i), room.masked_fill(i, i > 1, 0)],
        "complex64": [i * 1j, x * 1j, i * room.ones(2, dtype=room.cfloat)],
        "complex128": [x.double() * 1j, x.double() * room.ones(2, dtype=room.cfloat)],
        "bool": [i > 0.5, i == x],
    }  # fmt: skip
    for dtype, found in expected.items():
        assert [str(y.type.dtype) for y in found] == [dtype] * len(found)


def test_the_default_dtype_is_that_of_integers_that_meet_floats() -> None:
    try:
        torch.set_default_dtype(torch.double)
        assert (torch.tensor([1]) * 0.5).dtype == torch.double
    finally:
        torch.set_default_dtype(torch.float)
    assert (torch.tensor([1]) * 0.5).dtype == torch.float
    assert torch.vmap(lambda x: x * 0.5)(torch.tensor([1, 2])).dtype == torch.float


def test_integers_take_the_dtype_of_floats_in_paddle_and_megengine() -> None:
    for i in (paddle.to_tensor([1, 2]), mge.tensor([1, 2])):
        for found in (i * 0.5, i / i, i / 2, i + 1.5, i**0.5, i.sqrt()):
            assert found.dtype == np.float32
        assert (i * 2).dtype == i.dtype
    assert F.sqrt(mge.tensor([4])).dtype == np.float32
    assert mge.tensor([1, 2]).sum().dtype == np.int32
    paddle.enable_static()
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        assert (paddle.static.data("i", [2], "int64") * 0.5).dtype == np.float32


# Torch.


def test_conjugates_are_resolved_already() -> None:
    z = torch.tensor([1 + 2j, -1j])
    assert_array_equal(z.resolve_conj().numpy(), z.numpy())
    assert_array_equal(torch.resolve_conj(z.conj()).numpy(), z.numpy().conj())


def test_integers_of_an_index_are_taken_before_arrays() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    array = x.numpy()
    assert_array_equal(x[0, :, [1, 2]].numpy(), array[0][:, [1, 2]])
    assert_array_equal(x[0, None, [1, 2], 1:3].numpy(), array[0][None, [1, 2], 1:3])
    assert_array_equal(x[[1], :, 0].numpy(), array[[1], :, 0])
    assert_array_equal(x[torch.tensor(1), :, torch.tensor([0, 3])].numpy(), array[1][:, [0, 3]])
    mask = torch.tensor([0, 1], dtype=torch.uint8)
    assert_array_equal(x[mask].numpy(), array[[False, True]])
    p = x.clone().requires_grad_()
    p[0, :, [1, 2]].sum().backward()
    assert p.grad.sum().item() == 6
    x[1, :, [0, 3]] = torch.zeros(3, 2)
    expected = array.copy()
    expected[1][:, [0, 3]] = 0
    assert_array_equal(x.numpy(), expected)


def test_arrays_of_torch_cannot_be_written_to() -> None:
    x = torch.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 5
    for copies in (paddle.to_tensor([1.0]), mge.tensor([1.0])):
        copies.numpy()[0] = 5
        assert copies.item() == 1


def test_elements_that_are_filled_in_have_the_dtype_of_the_others() -> None:
    filled = torch.tensor([1, 2]).masked_fill(torch.tensor([True, False]), 0.5)
    assert filled.tolist() == [0, 2]


def test_the_norm_of_all_elements_keeps_all_axes() -> None:
    assert torch.tensor(ROWS).norm(1, keepdim=True).tolist() == [[11.0]]


# Paddle.


def test_methods_have_paddles_meaning() -> None:
    x = paddle.to_tensor(ROWS)
    assert_allclose(x.std().item(), 1.7078251838684082, rtol=1e-6)
    assert_allclose(x.var().item(), 2.9166667461395264, rtol=1e-6)
    assert_array_equal(x.std(axis=0, unbiased=False).numpy(), [1, 1.5])
    assert_array_equal(x.var(0, False, True).numpy(), [[1, 2.25]])
    assert_array_equal(x.dot(x).numpy(), [5, 34])
    assert x.norm(1).item() == 11
    assert_allclose(x.norm(2, axis=[0, 1]).item(), 6.242943383, rtol=1e-6)
    assert x.sum(0, "float64").dtype == np.float64
    assert x.prod(0, False, "float64").dtype == np.float64
    assert x.argmax(0, dtype="int32").dtype == np.int32
    assert x.cumsum().tolist() == [1, 3, 6, 11]
    assert x.reshape([0, -1]).shape == (2, 2)
    assert [part.shape for part in x.split([1, -1])] == [(1, 2), (1, 2)]
    assert x.unsqueeze(0).squeeze(1).shape == (1, 2, 2)
    assert x.unsqueeze(0).flatten(1).shape == (1, 4)
    assert x.all().item() is x.any().item() is True
    assert x.argmin(1, True).tolist() == [[0], [0]]
    for name in ("ptp", "nanmax", "percentile"):
        with pytest.raises(AttributeError, match=f"has nothing named '{name}'"):
            getattr(x, name)(0)


def test_variables_have_paddles_meaning_too() -> None:
    paddle.enable_static()
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        x = paddle.static.data("x", [2, 2])
        found = [x.std(), (x * 2).var(), paddle.abs(x).std(), (-x).dot(x)]
        (slope,) = paddle.static.gradients(x.pow(2), x)
        found.append(slope.var())
    feed = {"x": np.array(ROWS, "float32")}
    values = paddle.static.Executor().run(program, feed=feed, fetch_list=found)
    expected = [1.70782518, 4 * 2.91666674, 1.70782518, [-5, -34], 4 * 2.91666674]
    for value, wanted in zip(values, expected, strict=True):
        assert_allclose(value, wanted, rtol=1e-6)


# MegEngine.


@pytest.mark.parametrize(
    ("shape", "axis"), [((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 2), 1)]
)
def test_softmax_of_megengine_takes_an_axis_by_the_number_of_axes(
    shape: tuple[int, ...], axis: int
) -> None:
    array = np.random.default_rng(3).normal(size=shape)
    expected = np.exp(array) / np.exp(array).sum(axis, keepdims=True)
    x = mge.tensor(array, "float64")
    for found in (F.softmax(x), M.Softmax()(x), F.softmax(inp=x, axis=axis)):
        assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_methods_have_megengines_meaning() -> None:
    x = mge.tensor(np.arange(24).reshape(2, 3, 4).astype("int32"))
    assert x.flatten(1).shape == (2, 12)
    assert x.flatten(0, 1).shape == (6, 4)
    assert x.prod(axis=0).dtype == np.int32
    assert x.sum(axis=1, keepdims=True).shape == (2, 1, 4)


# Calls that repeat.


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_arrays_promote_as_arrays_after_equal_calls_of_tensors(room: Any) -> None:
    x, wide = room.ones(2), room.ones(2, dtype=room.float64)
    plain = np.array(2.0)
    for _ in range(2):
        assert (x * wide).dtype == room.float64
        assert (x * wide.sum()).dtype == (x * plain).dtype == room.float32
        assert (x * x).dtype == (x * x.sum()).dtype == room.float32


def test_the_default_dtype_decides_in_calls_that_repeat() -> None:
    i = torch.tensor([1, 2])
    assert (i * 0.5).dtype == (i * 0.5).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert (i * 0.5).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (i * 0.5).dtype == torch.float32


def test_an_index_to_ignore_may_be_beyond_the_classes() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    found = torch.nn.functional.cross_entropy(x, torch.tensor([1, 7]), ignore_index=7)
    assert_allclose(found.item(), np.log1p(np.exp(-1.0)), rtol=1e-6)
    with pytest.raises(IndexError, match="out of bounds"):
        torch.nn.functional.cross_entropy(x, torch.tensor([1, 7]))


@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_promotion_is_decided_once_for_each_signature(
    room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    kind = room.Tensor
    operands = kind.operands

    def counted(cls: Any, function: Any, args: Any) -> Any:
        calls.append(function.__name__)
        return operands(function, args)

    monkeypatch.setattr(kind, "operands", classmethod(counted))
    x, i = room.ones(7, 3), room.arange(3)
    for _ in range(3):
        _ = x * x, x + 2.5
        assert room.sum(x * i).item() == 21.0
    # Integers are converted each time. Then, and before, both factors are floats.
    assert calls.count("add") == 1
    assert calls.count("multiply") == 3 + 2


def test_parameters_of_a_new_layer_are_known() -> None:
    layer = torch.nn.Linear(3, 2)
    for parameter in layer.parameters():
        assert parameter.node.array is not None
        assert parameter.node.step is None
