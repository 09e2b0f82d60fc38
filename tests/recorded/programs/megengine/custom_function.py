"""Functions with derivatives of the user: swish, a straight-through sign, a clipped gradient."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import Function, GradManager

POINTS = np.array([-1.5, -0.2, 0.4, 2.0], "float32")


class Swish(Function):
    def forward(self, x):
        self.sigmoid = F.sigmoid(x)
        self.x = x
        return x * self.sigmoid

    def backward(self, dy):
        s = self.sigmoid
        return dy * (s + self.x * s * (1 - s))


class StraightThroughSign(Function):
    def forward(self, x):
        self.inside = (F.abs(x) <= 1).astype("float32")
        return F.sign(x)

    def backward(self, dy):
        return dy * self.inside


class ScaledProduct(Function):
    """Two inputs and a constant: a x y."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
        self.x, self.y = x, y
        return self.factor * x * y

    def backward(self, dz):
        return dz * self.factor * self.y, dz * self.factor * self.x


class BinaryLayer(M.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = mge.Parameter(weight)

    def forward(self, x):
        return F.sum(x * StraightThroughSign()(self.weight), axis=-1)


def gradient(function, *arrays):
    tensors = [mge.tensor(a) for a in arrays]
    gm = GradManager().attach(tensors)
    with gm:
        y = function(*tensors)
        gm.backward(F.sum(y))
    return [y.numpy(), *(t.grad.numpy() for t in tensors)]


def main():
    layer = BinaryLayer(POINTS)
    gm = GradManager().attach(layer.parameters())
    with gm:
        loss = layer(mge.tensor(np.ones((2, 4), "float32"))).sum()
        gm.backward(loss)
    return {
        "swish": gradient(lambda x: Swish()(x), POINTS),
        "sign": gradient(lambda x: StraightThroughSign()(x), POINTS),
        "product": gradient(lambda x, y: ScaledProduct(3.0)(x, y), POINTS, POINTS[::-1].copy()),
        "layer": layer.weight.grad.numpy(),
        "loss": loss.item(),
    }


def expected():
    x = POINTS.astype(float)
    s = 1 / (1 + np.exp(-x))
    inside = (np.abs(x) <= 1).astype("float32")

    def single(*arrays):
        return [a.astype("float32") for a in arrays]

    return {
        "swish": single(x * s, s + x * s * (1 - s)),
        "sign": single(np.sign(x), inside),
        "product": single(3 * x * x[::-1], 3 * x[::-1], 3 * x),
        "layer": 2 * inside,
        "loss": float(2 * np.sign(x).sum()),
    }
