"""A recurrent network that remembers the sign of the first input, by backpropagation in time."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import SGD

STEPS, RATE, HIDDEN, LENGTH = 4, 0.2, 3, 5


def make_data():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(8, LENGTH, 1)).astype("float32")
    y = np.sign(x[:, 0])
    shapes = ((HIDDEN, 1), (HIDDEN,), (HIDDEN, HIDDEN), (1, HIDDEN), (1,))
    return x, y, [rng.normal(0.0, 0.5, s).astype("float32") for s in shapes]


class Recurrent(M.Module):
    def __init__(self, values):
        super().__init__()
        self.inner = M.Linear(1, HIDDEN)
        self.hidden = M.Linear(HIDDEN, HIDDEN, bias=False)
        self.outer = M.Linear(HIDDEN, 1)
        targets = (
            self.inner.weight,
            self.inner.bias,
            self.hidden.weight,
            self.outer.weight,
            self.outer.bias,
        )
        for parameter, value in zip(targets, values, strict=True):
            parameter._reset(mge.tensor(value))

    def forward(self, x):
        h = F.zeros((x.shape[0], HIDDEN))
        for step in range(x.shape[1]):
            h = F.tanh(self.inner(x[:, step]) + self.hidden(h))
        return self.outer(h), h


def main():
    x, y, values = make_data()
    model = Recurrent(values)
    optimizer = SGD(model.parameters(), lr=RATE)
    gm = GradManager().attach(model.parameters())
    data, target = mge.tensor(x), mge.tensor(y)
    losses = []
    for _ in range(STEPS):
        with gm:
            output, _ = model(data)
            loss = F.nn.square_loss(output, target)
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    output, state = model(data)
    return {
        "losses": np.array(losses, "float32"),
        "output": output.numpy(),
        "state": state.numpy()[:2],
        "hidden": model.hidden.weight.numpy(),
    }


def expected():
    x, y, values = make_data()
    x = x.astype(float)
    w, b, u, v, c = (value.astype(float) for value in values)

    def forward():
        states = [np.zeros((len(x), HIDDEN))]
        for step in range(LENGTH):
            states.append(np.tanh(x[:, step] @ w.T + b + states[-1] @ u.T))
        return states, states[-1] @ v.T + c

    losses = []
    for _ in range(STEPS):
        states, output = forward()
        error = output - y
        losses.append((error**2).mean())
        seed = 2 * error / len(x)
        dv, dc = seed.T @ states[-1], seed.sum(axis=0)
        dw, db, du = np.zeros_like(w), np.zeros_like(b), np.zeros_like(u)
        dh = seed @ v
        for step in reversed(range(LENGTH)):
            dz = dh * (1 - states[step + 1] ** 2)
            dw += dz.T @ x[:, step]
            db += dz.sum(axis=0)
            du += dz.T @ states[step]
            dh = dz @ u
        w, b, u, v, c = w - RATE * dw, b - RATE * db, u - RATE * du, v - RATE * dv, c - RATE * dc
    states, output = forward()
    return {
        "losses": np.array(losses, "float32"),
        "output": output.astype("float32"),
        "state": states[-1][:2].astype("float32"),
        "hidden": u.astype("float32"),
    }
