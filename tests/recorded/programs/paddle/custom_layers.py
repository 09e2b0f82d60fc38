"""Custom derivatives by PyLayer: a fixed point, gradient reversal, and quantized weights."""

import numpy as np
import paddle
from paddle.autograd import PyLayer


class FixedPoint(PyLayer):
    """z = tanh(W z + x), solved by iteration; gradients by the implicit function theorem."""

    @staticmethod
    def forward(ctx, weight, x):
        z = paddle.zeros_like(x)
        for _ in range(100):
            z = paddle.tanh(paddle.matmul(z, weight) + x)
        ctx.save_for_backward(weight, z)
        return z

    @staticmethod
    def backward(ctx, seed):
        weight, z = ctx.saved_tensor()
        slope = 1.0 - z * z
        adjoint = seed
        for _ in range(100):
            adjoint = seed + paddle.matmul(adjoint * slope, weight, transpose_y=True)
        local = adjoint * slope
        return paddle.matmul(z, local, transpose_x=True), local


class ReverseGradient(PyLayer):
    @staticmethod
    def forward(ctx, x, factor=1.0):
        ctx.factor = factor
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return -ctx.factor * g


class Quantize(PyLayer):
    """Round to multiples of a step; gradients pass where values are in range."""

    @staticmethod
    def forward(ctx, x, step, limit):
        ctx.inside = (x.abs() <= limit).astype(x.dtype)
        return paddle.clip(paddle.round(x / step) * step, -limit, limit)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.inside


class QuantizedLinear(paddle.nn.Layer):
    def __init__(self, value):
        super().__init__()
        self.weight = self.create_parameter(
            list(value.shape),
            dtype="float64",
            default_initializer=paddle.nn.initializer.Assign(value),
        )

    def forward(self, x):
        return paddle.matmul(x, Quantize.apply(self.weight, 0.25, 1.0))


def main():
    rng = np.random.default_rng(7)
    weight = paddle.to_tensor(0.2 * rng.normal(size=(3, 3)), stop_gradient=False)
    x = paddle.to_tensor(rng.normal(size=(2, 3)), stop_gradient=False)
    z = FixedPoint.apply(weight, x)
    (z**2).sum().backward()

    unrolled = paddle.zeros_like(x)
    for _ in range(100):
        unrolled = paddle.tanh(paddle.matmul(unrolled, weight) + x)
    exact = paddle.grad((unrolled**2).sum(), [weight, x])
    close = [bool(paddle.allclose(a.grad, g)) for a, g in zip([weight, x], exact, strict=True)]

    y = paddle.to_tensor([1.0, 2.0], dtype="float64", stop_gradient=False)
    (ReverseGradient.apply(y, factor=0.5) * y).sum().backward()

    layer = QuantizedLinear(rng.normal(0.0, 0.8, (3, 2)))
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    losses = []
    for _ in range(4):
        loss = ((layer(x.detach()) - 1.0) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return {
        "z": z.numpy(),
        "weight": weight.grad.numpy(),
        "x": x.grad.numpy(),
        "close": close,
        "reversed": y.grad.numpy(),
        "losses": np.array(losses),
        "quantized": layer.weight.numpy(),
    }
