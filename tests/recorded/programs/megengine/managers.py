"""Managers in union, with callbacks, seeds and late attachment, and a custom function."""

import megengine as mge
import megengine.functional as F
import numpy as np
from megengine import Parameter
from megengine.autodiff import Function, GradManager
from megengine.jit import trace

POINT = np.array([0.5, -1.0], "float32")


class Cube(Function):
    def forward(self, x):
        self.x = x
        return x**3

    def backward(self, dy):
        return 3 * self.x**2 * dy


def in_union():
    x = Parameter(POINT)
    seen = []

    def doubled(parameter, gradient):
        seen.append(gradient.numpy())
        return gradient * 2

    first = GradManager().attach([x], callbacks=[doubled])
    second = GradManager().attach(x)
    with first | second:
        y = F.sin(x)
        first.backward(y)
        second.backward(y, mge.Tensor([1.0, 0.0]))
    return seen[0], x.grad.numpy()


def second_derivative():
    x = mge.Tensor([1.0, 2.0])
    with GradManager().attach([x]) as outer:
        with GradManager().attach([x]) as inner:
            inner.backward(Cube()(x))
        slope, x.grad = x.grad, None
        outer.backward(slope)
    return slope.numpy(), x.grad.numpy()


def attached_late():
    w = mge.Tensor(3.0)
    gm = GradManager()
    with gm:
        h = w * w
        gm.attach([h, w])
        loss = h * h + w
        gm.backward(loss)
    try:
        gm.backward(loss)
    except RuntimeError:
        return w.grad.item(), h.grad.item(), "released"


def traced():
    x = Parameter(POINT)
    gm = GradManager().attach([x])

    @trace(symbolic=True)
    def step(scale):
        with gm:
            loss = (F.exp(x) * scale).sum()
            gm.backward(loss)
        return loss

    losses = [step(mge.Tensor(s)).item() for s in (1.0, 2.0, 3.0)]
    return losses, x.grad.numpy()


def partly_used():
    x, unused = mge.Tensor([1.0, 2.0]), mge.Tensor([1.0])
    gm = GradManager().attach([x, unused])
    with gm:
        gm.backward(F.where(x > 1.5, x * x, F.zeros_like(x)))
    return x.grad.numpy(), unused.grad is None, len(gm.attached_tensors())


def main():
    return [in_union(), second_derivative(), attached_late(), traced(), partly_used()]


def expected():
    cosine, exponential = np.cos(POINT), np.exp(POINT)
    union = cosine * 2 + cosine * np.array([1, 0], "float32")
    total = float(exponential.astype(float).sum())
    return [
        (cosine, union),
        (np.array([3.0, 12.0], "float32"), np.array([6.0, 12.0], "float32")),
        (1.0, 18.0, "released"),
        ([float(np.float32(total * s)) for s in (1, 2, 3)], exponential * 6),
        (np.array([0.0, 4.0], "float32"), True, 2),
    ]
