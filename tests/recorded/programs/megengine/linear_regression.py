"""Linear regression by stochastic gradient descent over batches of a data loader."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import megengine.optimizer as optim
import numpy as np
from megengine.autodiff import GradManager
from megengine.data import DataLoader, SequentialSampler
from megengine.data.dataset import ArrayDataset

FEATURES, EPOCHS, BATCH, RATE, DECAY = 3, 4, 5, 0.1, 0.01


def make_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(15, FEATURES)).astype("float32")
    y = (x @ np.array([1.0, -2.0, 0.5]) + 0.3).astype("float32")[:, None]
    weight = rng.normal(size=(1, FEATURES)).astype("float32")
    return x, y, weight


class LinearModel(M.Module):
    def __init__(self, weight):
        super().__init__()
        self.fc = M.Linear(FEATURES, 1)
        self.fc.weight[...] = mge.tensor(weight)
        M.init.zeros_(self.fc.bias)

    def forward(self, x):
        return self.fc(x)


def train_epoch(model, loader, optimizer, gm):
    losses = []
    for x, y in loader:
        x, y = mge.tensor(x), mge.tensor(y)
        with gm:
            loss = F.nn.square_loss(model(x), y)
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    return losses


def main():
    x, y, weight = make_data()
    dataset = ArrayDataset(x, y)
    sampler = SequentialSampler(dataset, batch_size=BATCH)
    loader = DataLoader(dataset, sampler=sampler)
    model = LinearModel(weight)
    optimizer = optim.SGD(model.parameters(), lr=RATE, weight_decay=DECAY)
    gm = GradManager().attach(model.parameters())
    losses = []
    for _ in range(EPOCHS):
        losses += train_epoch(model, loader, optimizer, gm)
    return {
        "losses": np.array(losses, "float32"),
        "weight": model.fc.weight.numpy(),
        "bias": model.fc.bias.numpy(),
        "predicted": model(mge.tensor(x[:2])).numpy(),
    }


def expected():
    """The same steps with gradients by hand."""
    x, y, weight = make_data()
    w, b = weight.astype(float).T, np.zeros(1)
    losses = []
    for _ in range(EPOCHS):
        for start in range(0, len(x), BATCH):
            xs, ys = x[start : start + BATCH], y[start : start + BATCH]
            error = xs @ w + b - ys
            losses.append((error**2).mean())
            w, b = (
                w - RATE * (2 * xs.T @ error / len(xs) + DECAY * w),
                b - RATE * (2 * error.mean(axis=0) + DECAY * b),
            )
    return {
        "losses": np.array(losses, "float32"),
        "weight": w.T.astype("float32"),
        "bias": b.astype("float32"),
        "predicted": (x[:2] @ w + b).astype("float32"),
    }
