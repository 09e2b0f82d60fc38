"""Derivatives of first, second and third order by nested GradManagers."""

import megengine as mge
import megengine.functional as F
import numpy as np
from megengine.autodiff import GradManager

POINTS = np.array([0.3, 0.7, 1.1], "float32")


def derivatives(function, x, order):
    """The derivatives of all orders: each manager records what the inner ones compute."""
    x = mge.tensor(x)
    managers = [GradManager().attach([x]) for _ in range(order)]
    found = []

    def descend(level):
        if level == order:
            return function(x)
        with managers[level]:
            y = descend(level + 1)
            managers[level].backward(y)
            gradient = x.grad
            x.grad = None
            found.append(gradient.numpy())
            return gradient

    descend(0)
    return found


def curvature_of_a_product():
    """The mixed derivative of sin(x y) by x, then by y."""
    x = mge.tensor(np.array([0.5], "float32"))
    y = mge.tensor(np.array([1.5], "float32"))
    outer = GradManager().attach([x, y])
    inner = GradManager().attach([x])
    with outer:
        with inner:
            inner.backward(F.sin(x * y))
        first = x.grad
        x.grad = None
        outer.backward(first)
    return first.numpy(), x.grad.numpy(), y.grad.numpy()


def attached_callback():
    seen = []
    x = mge.tensor(np.array([2.0, 3.0], "float32"))
    gm = GradManager()

    def callback(_, gradient):
        seen.append(gradient.numpy().copy())
        return gradient * 10

    gm.attach([x], callbacks=callback)
    with gm:
        gm.backward(F.sum(x * x))
    return seen[0], x.grad.numpy()


def accumulated():
    x = mge.tensor(np.array([2.0], "float32"))
    gm = GradManager().attach([x])
    for factor in (1.0, 3.0):
        with gm:
            gm.backward(x * factor, dy=mge.tensor(np.array([0.5], "float32")))
    return x.grad.numpy()


def main():
    first, gx, gy = curvature_of_a_product()
    seen, scaled = attached_callback()
    return {
        "tanh": derivatives(lambda x: F.sum(F.tanh(x)), POINTS, 1),
        "exp_sin": derivatives(lambda x: F.exp(F.sin(x)), POINTS, 2),
        "power": derivatives(lambda x: x**4, POINTS, 3),
        "mixed": [first, gx, gy],
        "callback": [seen, scaled],
        "accumulated": accumulated(),
    }


def expected():
    x = POINTS.astype(float)
    e, s, c = np.exp(np.sin(x)), np.sin(x), np.cos(x)
    p, sp, cp = 0.75, np.sin(0.75), np.cos(0.75)

    def single(*arrays):
        return [np.atleast_1d(np.asarray(a, "float32")) for a in arrays]

    return {
        "tanh": single(1 - np.tanh(x) ** 2),
        "exp_sin": single(e * c, e * (c**2 - s)),
        "power": single(4 * x**3, 12 * x**2, 24 * x),
        "mixed": single(1.5 * cp, -(1.5**2) * sp, cp - p * sp),
        "callback": single([4.0, 6.0], [40.0, 60.0]),
        "accumulated": single(2.0)[0],
    }
