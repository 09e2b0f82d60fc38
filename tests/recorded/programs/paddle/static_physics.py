"""A static physics-informed program with static.gradients of first and second order."""

import numpy as np
import paddle
from paddle import static

WIDTH = 4


def parameter(name, value):
    return static.create_parameter(
        list(value.shape),
        "float64",
        name=name,
        default_initializer=paddle.nn.initializer.Assign(value),
    )


class Network:
    """Two hidden layers of tanh, from named parameters."""

    def __init__(self, rng):
        widths = [1, WIDTH, WIDTH, 1]
        self.weights, self.biases = [], []
        for k in range(3):
            shape = (widths[k], widths[k + 1])
            self.weights.append(parameter(f"w{k}", rng.normal(0.0, 0.7, shape)))
            self.biases.append(parameter(f"b{k}", rng.normal(0.0, 0.2, shape[1])))

    def __call__(self, x):
        for k in range(3):
            x = paddle.matmul(x, self.weights[k]) + self.biases[k]
            if k < 2:
                x = paddle.tanh(x)
        return x


def build(rng):
    """u'' = -pi^2 sin(pi x) with u = 0 at both ends."""
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup):
        x = static.data("x", [None, 1], "float64")
        x.stop_gradient = False
        ends = static.data("ends", [2, 1], "float64")
        net = Network(rng)
        u = net(x)
        (u_x,) = static.gradients([u], [x])
        (u_xx,) = static.gradients([u_x], [x])
        source = -(np.pi**2) * paddle.sin(np.pi * x)
        residual = u_xx - source
        loss = paddle.mean(paddle.square(residual)) + 10.0 * paddle.mean(paddle.square(net(ends)))
        optimizer = paddle.optimizer.Adam(learning_rate=0.02)
        optimizer.minimize(loss)
    return program, startup, [loss, u, u_x, u_xx]


def main():
    rng = np.random.default_rng(4)
    paddle.enable_static()
    paddle.incubate.autograd.enable_prim()
    program, startup, targets = build(rng)
    paddle.incubate.autograd.disable_prim()
    executor = static.Executor()
    executor.run(startup)
    x = np.linspace(0.1, 0.9, 7).reshape(-1, 1)
    ends = np.array([[0.0], [1.0]])
    losses = []
    for _ in range(5):
        values = executor.run(program, feed={"x": x, "ends": ends}, fetch_list=targets)
        losses.append(float(values[0]))
    _, u, u_x, u_xx = values
    paddle.disable_static()
    return {
        "losses": np.array(losses),
        "u": u[:, 0],
        "u_x": u_x[:, 0],
        "u_xx": u_xx[:, 0],
    }
