"""Batch normalization in training and evaluation, with running statistics."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import SGD

STEPS, RATE, MOMENTUM, EPS = 3, 0.1, 0.9, 1e-5


def make_data():
    rng = np.random.default_rng(9)
    batches = rng.normal(1.0, 2.0, (STEPS, 6, 3)).astype("float32")
    targets = rng.normal(size=(STEPS, 6, 3)).astype("float32")
    return batches, targets


class Normalized(M.Module):
    def __init__(self):
        super().__init__()
        self.norm = M.BatchNorm1d(3, eps=EPS, momentum=MOMENTUM)

    def forward(self, x):
        return F.relu(self.norm(x))


def train(model, batches, targets):
    optimizer = SGD(model.parameters(), lr=RATE)
    gm = GradManager().attach(model.parameters())
    model.train()
    losses = []
    for x, y in zip(batches, targets, strict=True):
        with gm:
            loss = F.nn.square_loss(model(mge.tensor(x)), mge.tensor(y))
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    return losses


def main():
    batches, targets = make_data()
    model = Normalized()
    losses = train(model, batches, targets)
    model.eval()
    return {
        "losses": np.array(losses, "float32"),
        "weight": model.norm.weight.numpy().ravel(),
        "bias": model.norm.bias.numpy().ravel(),
        "mean": model.norm.running_mean.numpy().ravel(),
        "variance": model.norm.running_var.numpy().ravel(),
        "evaluated": model(mge.tensor(batches[0])).numpy(),
    }


def expected():
    """Running variances are those of samples, n - 1; batches are divided by n."""
    batches, targets = (a.astype(float) for a in make_data())
    gamma, beta = np.ones(3), np.zeros(3)
    mean, variance = np.zeros(3), np.ones(3)
    losses = []
    for x, y in zip(batches, targets, strict=True):
        m, v = x.mean(axis=0), x.var(axis=0)
        normal = (x - m) / np.sqrt(v + EPS)
        z = normal * gamma + beta
        error = np.maximum(z, 0) - y
        losses.append((error**2).mean())
        seed = 2 * error * (z > 0) / error.size
        gamma, beta = gamma - RATE * (seed * normal).sum(axis=0), beta - RATE * seed.sum(axis=0)
        mean = MOMENTUM * mean + (1 - MOMENTUM) * m
        variance = MOMENTUM * variance + (1 - MOMENTUM) * x.var(axis=0, ddof=1)
    evaluated = (batches[0] - mean) / np.sqrt(variance + EPS) * gamma + beta
    return {
        "losses": np.array(losses, "float32"),
        "weight": gamma.astype("float32"),
        "bias": beta.astype("float32"),
        "mean": mean.astype("float32"),
        "variance": variance.astype("float32"),
        "evaluated": np.maximum(evaluated, 0).astype("float32"),
    }
