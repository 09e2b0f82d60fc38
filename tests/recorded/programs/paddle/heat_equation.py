"""A physics-informed network for the heat equation u_t = u_xx in dynamic mode."""

import numpy as np
import paddle


class FullyConnected(paddle.nn.Layer):
    def __init__(self, num_ins, num_outs, num_layers, hidden_size):
        super().__init__()
        self.linears = paddle.nn.LayerList()
        width = num_ins
        for _ in range(num_layers):
            self.linears.append(paddle.nn.Linear(width, hidden_size))
            width = hidden_size
        self.last = paddle.nn.Linear(width, num_outs)
        self.activation = paddle.nn.Tanh()

    def forward(self, t, x):
        y = paddle.concat([t, x], axis=-1)
        for linear in self.linears:
            y = self.activation(linear(y))
        return self.last(y)


class HeatEquation:
    def __init__(self, net, diffusivity):
        self.net = net
        self.diffusivity = diffusivity

    def residual(self, t, x):
        u = self.net(t, x)
        u_t, u_x = paddle.grad(u, [t, x], create_graph=True, retain_graph=True)
        (u_xx,) = paddle.grad(u_x, x, create_graph=True, retain_graph=True)
        return u_t - self.diffusivity * u_xx

    def loss(self, inside, start, ends):
        t, x = inside
        t.stop_gradient = False
        x.stop_gradient = False
        equation = paddle.mean(self.residual(t, x) ** 2)
        t0, x0 = start
        initial = paddle.mean((self.net(t0, x0) - paddle.sin(np.pi * x0)) ** 2)
        boundary = paddle.mean(self.net(*ends) ** 2)
        return equation + initial + boundary, (equation, initial, boundary)


def column(values):
    return paddle.to_tensor(np.asarray(values, "float64").reshape(-1, 1))


def make_points(rng):
    inside = column(rng.uniform(0, 1, 10)), column(rng.uniform(0, 1, 10))
    start = column(np.zeros(6)), column(np.linspace(0, 1, 6))
    ends = column(np.linspace(0, 1, 6)), column([0, 1] * 3)
    return inside, start, ends


def main():
    rng = np.random.default_rng(2)
    net = FullyConnected(2, 1, num_layers=2, hidden_size=5)
    net.to(dtype="float64")
    for p in net.parameters():
        p.set_value(rng.normal(0.0, 0.5, tuple(p.shape)))
    problem = HeatEquation(net, diffusivity=0.1)
    points = make_points(rng)
    scheduler = paddle.optimizer.lr.ExponentialDecay(learning_rate=0.02, gamma=0.9)
    optimizer = paddle.optimizer.Adam(learning_rate=scheduler, parameters=net.parameters())
    losses, parts = [], []
    for _ in range(6):
        loss, terms = problem.loss(*points)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        scheduler.step()
        losses.append(loss.item())
        parts.append([term.item() for term in terms])
    net.eval()
    with paddle.no_grad():
        u = net(column([0.1, 0.5]), column([0.5, 0.25]))
    return {
        "losses": np.array(losses),
        "parts": np.array(parts),
        "u": u.numpy(),
        "rate": scheduler.last_lr,
    }
