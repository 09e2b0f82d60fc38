"""Errors of torch's, OneFlow's and MegEngine's names derive from the classes that these raise."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.compat.megengine as mge
import primgraph.compat.megengine.functional as F
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.compat.megengine.autodiff import GradManager

Cases = list[tuple[Callable[[], Any], type[Exception]]]


def twice(room: Any) -> None:
    w = room.ones(2, requires_grad=True)
    y = (w * w).sum()
    y.backward()
    y.backward()


def cases(room: Any) -> Cases:
    """Mistakes, and the classes of what torch 2.13 raises."""
    x, i = room.ones(2, 3), room.tensor([1, 2])
    w = room.ones(2, requires_grad=True)
    nets, single = room.nn.functional, room.tensor(1.0)
    grad, SGD = room.autograd.grad, room.optim.SGD
    return [
        (lambda: x + room.ones(4), RuntimeError),
        (lambda: x @ x, RuntimeError),
        (lambda: x.view(5), RuntimeError),
        (lambda: x.reshape(4, -1), RuntimeError),
        (lambda: room.cat([x, room.ones(3, 3)], 1), RuntimeError),
        (lambda: room.cat([]), ValueError),
        (lambda: room.stack([x, room.ones(3)]), RuntimeError),
        (lambda: x.sum(5), IndexError),
        (lambda: x.sum(dim=-4), IndexError),
        (lambda: room.softmax(x, 3), IndexError),
        (lambda: x.unsqueeze(7), IndexError),
        (lambda: x.squeeze(4), IndexError),
        (lambda: x.transpose(0, 3), IndexError),
        (lambda: x.permute(0, 0), RuntimeError),
        (lambda: x.permute(0, 5), IndexError),
        (lambda: x.flip(5), IndexError),
        (lambda: x.roll(1, 5), IndexError),
        (lambda: x.cumsum(4), IndexError),
        (lambda: room.ones(3).diagonal(), IndexError),
        (lambda: room.ones(3).triu(), RuntimeError),
        (lambda: room.ones(2, 2, 2).t(), RuntimeError),
        (lambda: x[5], IndexError),
        (lambda: x[0, 0, 0], IndexError),
        (lambda: x[0, 7], IndexError),
        (lambda: x[[5]], IndexError),
        (lambda: x[1.5], TypeError),
        (lambda: x[room.tensor([True, False, True])], IndexError),
        (lambda: x.__setitem__(9, 1.0), IndexError),
        (lambda: x.select(0, 4), IndexError),
        (lambda: room.index_select(x, 0, room.tensor([7])).tolist(), IndexError),
        (lambda: x.gather(0, room.tensor([[9, 0, 0]])).tolist(), RuntimeError),
        (lambda: x.narrow(0, 1, 5), RuntimeError),
        (lambda: x.chunk(0), RuntimeError),
        (lambda: x.split([1, 4], 1), RuntimeError),
        (lambda: x.repeat(2), RuntimeError),
        (lambda: x.expand(3, 3), RuntimeError),
        (lambda: room.zeros(-1), RuntimeError),
        (lambda: room.randint(5, 2, (3,)), RuntimeError),
        (lambda: w.add_(1), RuntimeError),
        (lambda: w.__setitem__(0, 1.0), RuntimeError),
        (lambda: i.add_(0.5), RuntimeError),
        (lambda: room.ones(3).add_(room.ones(2, 3)), RuntimeError),
        (lambda: (w * 2).backward(), RuntimeError),
        (lambda: x.sum().backward(), RuntimeError),
        (lambda: twice(room), RuntimeError),
        (lambda: grad(x.sum(), w), RuntimeError),
        (lambda: grad(w.sum(), room.ones(2, requires_grad=True)), RuntimeError),
        (lambda: room.tensor([1], requires_grad=True), RuntimeError),
        (lambda: i.requires_grad_(), RuntimeError),
        (lambda: (w * 2).requires_grad_(False), RuntimeError),
        (lambda: x.retain_grad(), RuntimeError),
        (lambda: x.register_hook(print), RuntimeError),
        (lambda: deepcopy(w * 2), RuntimeError),
        (lambda: setattr(w, "grad", 3), TypeError),
        (lambda: setattr(w, "grad", room.ones(3)), RuntimeError),
        (lambda: x.item(), RuntimeError),
        (lambda: bool(x), RuntimeError),
        (lambda: float(x), ValueError),
        (lambda: range(5)[x.sum()], TypeError),
        (lambda: len(single), TypeError),
        (lambda: list(single), TypeError),
        (lambda: room.sum("a"), TypeError),
        (lambda: x.sum(foo=1), TypeError),
        (lambda: x.foo, AttributeError),
        (lambda: room.device("nope"), RuntimeError),
        (lambda: room.tensor([[1], [2, 3]]), ValueError),
        (lambda: room.set_default_dtype(room.int64), TypeError),
        (lambda: ~x, TypeError),
        (lambda: i**-1, RuntimeError),
        (lambda: room.ones(0).max(), RuntimeError),
        (lambda: SGD([w], lr=-1.0), ValueError),
        (lambda: SGD([], lr=0.1), ValueError),
        (lambda: SGD([w * 2], lr=0.1), ValueError),
        (lambda: SGD([3], lr=0.1), TypeError),
        (lambda: SGD(w, lr=0.1), TypeError),
        (lambda: nets.mse_loss(x, x, reduction="foo"), ValueError),
        (lambda: nets.cross_entropy(x, room.tensor([0, 7])).item(), IndexError),
        (lambda: nets.layer_norm(x, (4,)), RuntimeError),
        (lambda: nets.linear(x, room.ones(2, 2)), RuntimeError),
        (lambda: nets.pad(x, (1,)), RuntimeError),
        (lambda: nets.gelu(x, "foo"), RuntimeError),
        (lambda: room.nn.Linear(2, 2).load_state_dict({"a": x}), RuntimeError),
        (lambda: room.div(x, x, rounding_mode="foo"), RuntimeError),
        (lambda: room.view_as_complex(room.ones(3)), RuntimeError),
    ]


@pytest.mark.parametrize("place", range(len(cases(torch))))
@pytest.mark.parametrize("room", [torch, flow], ids=["torch", "oneflow"])
def test_an_error_is_of_torchs_class(room: Any, place: int) -> None:
    call, kind = cases(room)[place]
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, pg.PrimgraphError | AttributeError | TypeError)


def released() -> None:
    x, manager = mge.tensor([1.0, 2.0]), GradManager()
    manager.attach(x)
    with manager:
        y = F.cos(x)
        manager.backward(y)
    manager.backward(y)


MEGENGINE: Cases = [
    (lambda: mge.tensor([1.0, 2.0]) + mge.tensor([1.0, 2.0, 3.0]), RuntimeError),
    (lambda: F.matmul(F.ones((2, 3)), F.ones((2, 3))), RuntimeError),
    (lambda: F.ones((2, 3)).reshape(4, 4), RuntimeError),
    (lambda: F.ones((2, 3))[5], IndexError),
    (lambda: F.concat([F.ones((2, 3)), F.ones((2, 2))]), RuntimeError),
    (lambda: F.sum("a"), TypeError),
    (lambda: GradManager().attach(mge.tensor([1])), RuntimeError),
    (released, RuntimeError),
    (lambda: mge.Tensor(np.array(["a"])), TypeError),
]


@pytest.mark.parametrize("place", range(len(MEGENGINE)))
def test_an_error_is_of_megengines_class(place: int) -> None:
    call, kind = MEGENGINE[place]
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, pg.PrimgraphError)


def test_changes_in_place_of_trained_leaves_raise_one_error() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    for change in (x.zero_, lambda: x.fill_(1.0), lambda: x.copy_(x)):
        with pytest.raises(paddle.GradientError, match="in-place operation"):
            change()
