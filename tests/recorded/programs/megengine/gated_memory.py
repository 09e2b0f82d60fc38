"""A long short-term memory by cells: forward values by hand, gradients by differences."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager

HIDDEN, LENGTH, STEP = 2, 3, 1e-6


def make_data():
    rng = np.random.default_rng(23)
    x = rng.normal(size=(4, LENGTH, 2)).astype("float32")
    shapes = {
        "bias_hh": (4 * HIDDEN,),
        "bias_ih": (4 * HIDDEN,),
        "weight_hh": (4 * HIDDEN, HIDDEN),
        "weight_ih": (4 * HIDDEN, 2),
    }
    return x, {name: rng.normal(0.0, 0.5, s).astype("float32") for name, s in shapes.items()}


class Reader(M.Module):
    def __init__(self, state):
        super().__init__()
        self.cell = M.LSTMCell(2, HIDDEN)
        self.norm = M.LayerNorm(HIDDEN, affine=False)
        self.cell.load_state_dict(state)

    def forward(self, x):
        h, c = F.zeros((x.shape[0], HIDDEN)), F.zeros((x.shape[0], HIDDEN))
        for step in F.split(x, LENGTH, axis=1):
            h, c = self.cell(F.squeeze(step, 1), (h, c))
        return self.norm(h + c), c


def main():
    x, state = make_data()
    model = Reader(state)
    gm = GradManager().attach(model.parameters())
    with gm:
        output, memory = model(mge.tensor(x))
        loss = F.sum(F.tanh(output) * memory)
        gm.backward(loss)
    return {
        "output": output.numpy(),
        "memory": memory.numpy(),
        "gradients": [p.grad.numpy() for p in model.parameters()],
        "names": [name for name, _ in model.named_parameters()],
    }


def forward(x, state):
    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    h = c = np.zeros((len(x), HIDDEN))
    for t in range(LENGTH):
        gates = x[:, t] @ state["weight_ih"].T + state["bias_ih"]
        gates = gates + h @ state["weight_hh"].T + state["bias_hh"]
        i, f, g, o = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    z = h + c
    centred = z - z.mean(axis=1, keepdims=True)
    return centred / np.sqrt(z.var(axis=1, keepdims=True) + 1e-5), c


def expected():
    x, single = make_data()
    x, state = x.astype(float), {name: a.astype(float) for name, a in single.items()}

    def loss():
        output, memory = forward(x, state)
        return np.sum(np.tanh(output) * memory)

    gradients = []
    for name in sorted(state):
        gradient = np.zeros_like(state[name])
        for place in np.ndindex(gradient.shape):
            kept = state[name][place]
            state[name][place] = kept + STEP
            above = loss()
            state[name][place] = kept - STEP
            gradient[place] = (above - loss()) / (2 * STEP)
            state[name][place] = kept
        gradients.append(gradient.astype("float32"))
    output, memory = forward(x, state)
    return {
        "output": output.astype("float32"),
        "memory": memory.astype("float32"),
        "gradients": gradients,
        "names": [f"cell.{name}" for name in sorted(state)],
    }
