"""Training that is saved and resumed goes on as if it had not stopped."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import SGD

RATE, MOMENTUM, BEFORE, AFTER = 0.1, 0.9, 3, 3


def make_data():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(10, 2)).astype("float32")
    y = np.sin(x[:, :1]).astype("float32")
    shapes = ((3, 2), (3,), (1, 3), (1,))
    return x, y, [rng.normal(0.0, 0.6, s).astype("float32") for s in shapes]


def make_model():
    return M.Sequential(M.Linear(2, 3), M.Sigmoid(), M.Linear(3, 1))


def make_training(model):
    optimizer = SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    return optimizer, GradManager().attach(model.parameters())


def train(model, optimizer, gm, x, y, steps):
    losses = []
    for _ in range(steps):
        with gm:
            loss = F.nn.square_loss(model(mge.tensor(x)), mge.tensor(y))
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    return losses


def main():
    x, y, values = make_data()
    model = make_model()
    names = ("0.weight", "0.bias", "2.weight", "2.bias")
    model.load_state_dict(dict(zip(names, values, strict=True)))
    optimizer, gm = make_training(model)
    losses = train(model, optimizer, gm, x, y, BEFORE)
    checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": BEFORE}
    mge.save(checkpoint, "checkpoint.pkl")

    loaded = mge.load("checkpoint.pkl")
    resumed = make_model()
    resumed.load_state_dict(loaded["model"])
    optimizer, gm = make_training(resumed)
    optimizer.load_state_dict(loaded["optimizer"])
    losses += train(resumed, optimizer, gm, x, y, AFTER)
    return {
        "losses": np.array(losses, "float32"),
        "step": loaded["step"],
        "predicted": resumed(mge.tensor(x[:3])).numpy(),
        "names": sorted(loaded["model"]),
    }


def expected():
    """All steps at once, with backpropagation by hand."""
    x, y, values = make_data()
    p = [v.astype(float) for v in values]
    velocity = [np.zeros_like(v) for v in p]

    def forward():
        h = 1 / (1 + np.exp(-(x @ p[0].T + p[1])))
        return h, h @ p[2].T + p[3]

    losses = []
    for _ in range(BEFORE + AFTER):
        h, output = forward()
        error = output - y
        losses.append((error**2).mean())
        seed = 2 * error / len(x)
        dz = seed @ p[2] * h * (1 - h)
        gradients = [dz.T @ x, dz.sum(axis=0), seed.T @ h, seed.sum(axis=0)]
        for k, g in enumerate(gradients):
            velocity[k] = MOMENTUM * velocity[k] + g
            p[k] = p[k] - RATE * velocity[k]
    return {
        "losses": np.array(losses, "float32"),
        "step": BEFORE,
        "predicted": forward()[1][:3].astype("float32"),
        "names": ["0.bias", "0.weight", "2.bias", "2.weight"],
    }
