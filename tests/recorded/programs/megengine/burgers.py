"""Burgers' equation: second derivatives by nested managers within a training step, with AdamW."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import AdamW

STEPS, RATE, DECAY, VISCOSITY, HIDDEN = 3, 0.01, 0.02, 0.1, 5
NAMES = ("first.bias", "first.weight", "last.bias", "last.weight")


def make_data():
    rng = np.random.default_rng(2)
    shapes = ((HIDDEN,), (HIDDEN, 2), (1,), (1, HIDDEN))
    values = {n: rng.normal(0.0, 0.6, s) for n, s in zip(NAMES, shapes, strict=True)}
    values = {name: value.astype("float32") for name, value in values.items()}
    return rng.uniform(-1.0, 1.0, (7, 2)).astype("float32"), values


class Surrogate(M.Module):
    def __init__(self):
        super().__init__()
        self.first = M.Linear(2, HIDDEN)
        self.last = M.Linear(HIDDEN, 1)

    def forward(self, tx):
        return self.last(F.tanh(self.first(tx)))


def residual(net, tx):
    outer = GradManager().attach([tx])
    with outer:
        with GradManager().attach([tx]) as inner:
            u = net(tx)
            inner.backward(u)
        slope, tx.grad = tx.grad, None
        outer.backward(slope[:, 1])
    curvature, tx.grad = tx.grad, None
    return slope[:, 0] + u[:, 0] * slope[:, 1] - VISCOSITY * curvature[:, 1]


def main():
    points, values = make_data()
    net = Surrogate()
    net.load_state_dict(values)
    gm = GradManager()
    gm.attach(net.parameters(), callbacks=[lambda p, g: g * 0.5])
    optimizer = AdamW(net.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        with gm:
            loss = F.mean(F.square(residual(net, mge.Tensor(points))))
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    state = dict(net.state_dict().items())
    return {"losses": np.array(losses, "float32"), "state": [state[n] for n in NAMES]}


def squares(values, points):
    """Return the mean square of the residual, by the derivatives of tanh."""
    b, w, c, v = (values[n] for n in NAMES)
    h = np.tanh(points @ w.T + b)
    slope = 1 - h**2
    u = (h @ v.T)[:, 0] + c[0]
    u_t, u_x = (slope * w[:, 0]) @ v[0], (slope * w[:, 1]) @ v[0]
    u_xx = (-2 * h * slope * w[:, 1] ** 2) @ v[0]
    return ((u_t + u * u_x - VISCOSITY * u_xx) ** 2).mean()


def complex_step(f, values):
    found = {}
    for name, value in values.items():
        found[name] = np.zeros(value.shape)
        for place in np.ndindex(value.shape):
            value[place] += 1e-30j
            found[name][place] = f(values).imag / 1e-30
            value[place] = value[place].real
    return found


def expected():
    """Derivatives by parameters are by complex steps, which are exact."""
    points, values = make_data()
    points = points.astype(float)
    values = {name: value.astype(complex) for name, value in values.items()}
    mean = dict.fromkeys(values, 0.0)
    square = dict.fromkeys(values, 0.0)
    losses = []
    for step in range(1, STEPS + 1):
        losses.append(squares(values, points).real)
        gradients = complex_step(lambda v: squares(v, points), values)
        for name in values:
            g = 0.5 * gradients[name]
            mean[name] = 0.9 * mean[name] + 0.1 * g
            square[name] = 0.99 * square[name] + 0.01 * g**2
            change = mean[name] / (1 - 0.9**step)
            change = change / (np.sqrt(square[name] / (1 - 0.99**step)) + 1e-8)
            values[name] = values[name] * (1 - RATE * DECAY) - RATE * change
    state = [values[n].real.astype("float32") for n in NAMES]
    return {"losses": np.array(losses, "float32"), "state": state}
