"""A linear support vector machine: squared hinge loss, decay, and a schedule, traced."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import megengine.optimizer as optim
import numpy as np
from megengine.autodiff import GradManager
from megengine.data import DataLoader, SequentialSampler
from megengine.data.dataset import ArrayDataset
from megengine.jit import trace

EPOCHS, RATE, DECAY, BATCH, MILESTONES, GAMMA = 3, 0.1, 0.01, 4, [1, 2], 0.5


def make_data():
    rng = np.random.default_rng(21)
    x = rng.normal(size=(12, 3)).astype("float32")
    labels = np.sign(x @ np.array([1.0, -2.0, 0.5]) + 0.1).astype("float32")[:, None]
    return x, labels, rng.normal(0.0, 0.5, (1, 3)).astype("float32")


class Machine(M.Module):
    def __init__(self, weight):
        super().__init__()
        self.layers = {"linear": M.Linear(3, 1)}
        self.layers["linear"].weight[...] = mge.tensor(weight)

    def forward(self, x):
        return self.layers["linear"](x)


def main():
    x, labels, weight = make_data()
    model = Machine(weight)
    optimizer = optim.SGD(model.parameters(), lr=RATE, weight_decay=DECAY)
    scheduler = optim.MultiStepLR(optimizer, milestones=MILESTONES, gamma=GAMMA)
    gm = GradManager().attach(model.parameters())

    @trace(symbolic=True)
    def step(inputs, targets):
        with gm:
            loss = F.loss.hinge_loss(model(inputs), targets, norm="L2")
            gm.backward(loss)
        optimizer.step().clear_grad()
        return loss

    dataset = ArrayDataset(x, labels)
    loader = DataLoader(dataset, sampler=SequentialSampler(dataset, batch_size=BATCH))
    losses, rates = [], []
    for _ in range(EPOCHS):
        for inputs, targets in loader:
            losses.append(step(mge.tensor(inputs), mge.tensor(targets)).item())
        scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    scores = model(mge.tensor(x))
    hits = (F.sign(scores) == mge.tensor(labels)).astype("float32")
    return {
        "losses": np.array(losses, "float32"),
        "rates": np.array(rates, "float32"),
        "scores": scores.numpy(),
        "accuracy": F.mean(hits).item(),
        "names": [name for name, _ in model.named_parameters()],
    }


def expected():
    """Gradients by hand."""
    x, labels, w = (a.astype(float) for a in make_data())
    b, rate, losses, rates = np.zeros(1), RATE, [], []
    for epoch in range(1, EPOCHS + 1):
        for start in range(0, len(x), BATCH):
            xs, ys = x[start : start + BATCH], labels[start : start + BATCH]
            margin = np.maximum(1 - (xs @ w.T + b) * ys, 0)
            losses.append((margin**2).sum(axis=1).mean())
            seed = -2 * margin * ys / BATCH
            w, b = w - rate * (seed.T @ xs + DECAY * w), b - rate * (seed.sum(axis=0) + DECAY * b)
        if epoch in MILESTONES:
            rate *= GAMMA
        rates.append(rate)
    scores = x @ w.T + b
    return {
        "losses": np.array(losses, "float32"),
        "rates": np.array(rates, "float32"),
        "scores": scores.astype("float32"),
        "accuracy": float(np.float32((np.sign(scores) == labels).mean())),
        "names": ["layers.linear.bias", "layers.linear.weight"],
    }
