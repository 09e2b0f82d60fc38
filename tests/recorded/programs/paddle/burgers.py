"""Burgers' equation: lazy Jacobians and Hessians of paddle.autograd and incubate.autograd."""

import itertools

import numpy as np
import paddle
from paddle import nn
from paddle.incubate.autograd import Hessian, Jacobian, jvp, vjp


class PINN(nn.Layer):
    def __init__(self, layers, rng):
        super().__init__()
        self.hidden = nn.LayerList([nn.Linear(a, b) for a, b in itertools.pairwise(layers)])
        self.nu = self.create_parameter([1], default_initializer=nn.initializer.Constant(0.1))
        for p in self.parameters()[1:]:
            p.set_value(rng.normal(0, 0.5, p.shape))

    def forward(self, tx):
        for layer in self.hidden[:-1]:
            tx = paddle.tanh(layer(tx))
        return self.hidden[-1](tx)

    def residual(self, tx):
        tx.stop_gradient = False
        u = self(tx)
        du = paddle.grad(u, tx, create_graph=True)[0]
        u_xx = paddle.grad(du[:, 1].sum(), tx, create_graph=True)[0][:, 1:2]
        return du[:, 0:1] + u * du[:, 1:2] - self.nu * u_xx


def main():
    paddle.set_default_dtype("float64")
    rng = np.random.default_rng(5)
    net = PINN([2, 5, 5, 1], rng)
    tx = paddle.to_tensor(rng.uniform(-1, 1, (5, 2)))
    x0 = np.linspace(-1, 1, 7)
    start = paddle.to_tensor(np.stack([np.zeros(7), x0], 1))
    u0 = paddle.to_tensor(-np.sin(np.pi * x0)[:, None])
    opt = paddle.optimizer.Adam(learning_rate=1e-2, parameters=net.parameters())
    losses = []
    for _it in range(4):
        f = net.residual(tx)
        loss = paddle.mean(paddle.square(f)) + paddle.nn.functional.mse_loss(net(start), u0)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())

    def closure():
        lb.clear_grad()
        value = nn.functional.mse_loss(net(start), u0)
        value.backward()
        return value

    lb = paddle.optimizer.LBFGS(
        learning_rate=0.5,
        max_iter=5,
        history_size=4,
        line_search_fn="strong_wolfe",
        parameters=net.parameters(),
    )
    polished = [lb.step(closure).item() for _ in range(2)]
    point = paddle.to_tensor([[0.2, -0.4], [0.6, 0.3]])
    point.stop_gradient = False
    H = Hessian(lambda z: net(z), point, is_batched=True)
    J = Jacobian(lambda z: net(z), point, is_batched=True)

    def func(a, b):
        return paddle.matmul(a, b).tanh()

    a, b = paddle.to_tensor(rng.normal(size=(2, 3))), paddle.to_tensor(rng.normal(size=(3, 2)))
    ys, pulled = vjp(func, [a, b])
    ys2, pushed = jvp(func, [a, b], [paddle.ones_like(a), paddle.zeros_like(b)])
    w = paddle.to_tensor([0.3, 0.7, -0.2], stop_gradient=False)
    y = paddle.sum(paddle.exp(w) * w**2)
    h = paddle.autograd.hessian(y, w)
    xs = [
        paddle.to_tensor([1.0, 2.0], stop_gradient=False),
        paddle.to_tensor([0.5], stop_gradient=False),
    ]
    out = (paddle.exp(xs[0]) * xs[1] * xs[1]).sum()
    hs = paddle.autograd.hessian(out, tuple(xs))
    batch = paddle.to_tensor(rng.normal(size=(4, 3)), stop_gradient=False)
    bj = paddle.autograd.jacobian(paddle.sin(batch) * batch, batch, batch_axis=0)
    print(h.shape, J.shape, H.shape, bj.shape)
    print(losses[0] > losses[-1])
    paddle.set_default_dtype("float32")
    return {
        "losses": losses,
        "polished": polished,
        "nu": net.nu,
        "H": H[:],
        "H0": H[0, :, 1],
        "J": J[:, 0, :],
        "vjp": [ys, *pulled],
        "jvp": [ys2, pushed],
        "h": h[:],
        "hs": [[block[:] for block in row] for row in hs],
        "bj": bj[:, 1, :],
    }
