"""A schedule of learning rates, clipped gradients, and gradients summed over small batches."""

import megengine as mge
import megengine.functional as F
import megengine.optimizer as optim
import numpy as np
from megengine import Parameter
from megengine.autodiff import GradManager

EPOCHS, RATE, LIMIT, PARTS = 6, 0.4, 0.5, 2
MILESTONES, GAMMA = [2, 4], 0.5


def make_data():
    rng = np.random.default_rng(10)
    x = rng.normal(size=(8, 3)).astype("float32")
    y = (x**2).sum(axis=1, keepdims=True).astype("float32")
    return x, y, rng.normal(size=(3, 1)).astype("float32")


def model(x, w, b):
    return F.matmul(F.abs(x), w) + b


def accumulate(gm, w, b, x, y):
    total = 0.0
    for xs, ys in zip(np.split(x, PARTS), np.split(y, PARTS), strict=True):
        with gm:
            loss = F.nn.square_loss(model(mge.tensor(xs), w, b), mge.tensor(ys)) / PARTS
            gm.backward(loss)
        total += loss.item()
    return total


def main():
    x, y, start = make_data()
    w, b = Parameter(start), Parameter(np.zeros(1, "float32"))
    optimizer = optim.SGD([w, b], lr=RATE)
    scheduler = optim.MultiStepLR(optimizer, milestones=MILESTONES, gamma=GAMMA)
    gm = GradManager().attach([w, b])
    losses, norms, rates = [], [], []
    for _ in range(EPOCHS):
        losses.append(accumulate(gm, w, b, x, y))
        norm = optim.clip_grad_norm([w, b], max_norm=LIMIT)
        norms.append(float(norm))
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        optimizer.clear_grad()
        scheduler.step()
    return {
        "losses": np.array(losses, "float32"),
        "norms": np.array(norms, "float32"),
        "rates": np.array(rates, "float32"),
        "w": w.numpy(),
        "b": b.numpy(),
    }


def expected():
    x, y, start = make_data()
    features, w, b = np.abs(x.astype(float)), start.astype(float), np.zeros(1)
    rate, losses, norms, rates = RATE, [], [], []
    for epoch in range(1, EPOCHS + 1):
        error = features @ w + b - y
        losses.append((error**2).mean())
        dw, db = 2 * features.T @ error / len(x), 2 * error.mean(axis=0)
        norm = np.sqrt((dw**2).sum() + (db**2).sum())
        factor = min(1.0, LIMIT / (norm + 1e-6))
        norms.append(norm)
        rates.append(rate)
        w, b = w - rate * factor * dw, b - rate * factor * db
        if epoch in MILESTONES:
            rate *= GAMMA
    return {
        "losses": np.array(losses, "float32"),
        "norms": np.array(norms, "float32"),
        "rates": np.array(rates, "float32"),
        "w": w.astype("float32"),
        "b": b.astype("float32"),
    }
