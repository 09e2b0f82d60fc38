"""A convolution learns to find edges; its gradients are sums over windows."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import megengine.optimizer as optim
import numpy as np
from megengine.autodiff import GradManager

STEPS, RATE, SIZE = 4, 0.2, 6


def make_data():
    rng = np.random.default_rng(6)
    images = rng.uniform(0.0, 1.0, (3, 1, SIZE, SIZE)).astype("float32")
    kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], "float32") / 4
    start = rng.normal(0.0, 0.1, (1, 1, 3, 3)).astype("float32")
    return images, kernel, start


def windows(images):
    return np.lib.stride_tricks.sliding_window_view(images[:, 0], (3, 3), axis=(1, 2))


class EdgeFilter(M.Module):
    def __init__(self, start):
        super().__init__()
        self.conv = M.Conv2d(1, 1, kernel_size=3, bias=False)
        self.conv.weight[...] = mge.tensor(start)
        self.pool = M.AvgPool2d(2)

    def forward(self, x):
        return self.conv(x)

    def summary(self, x):
        return self.pool(F.relu(self.conv(x)))


def main():
    images, kernel, start = make_data()
    edges = np.einsum("nijkl,kl->nij", windows(images), kernel)[:, None].astype("float32")
    model = EdgeFilter(start)
    gm = GradManager().attach(model.parameters())
    optimizer = optim.SGD(model.parameters(), lr=RATE)
    data, target = mge.tensor(images), mge.tensor(edges)
    losses = []
    for _ in range(STEPS):
        with gm:
            loss = F.nn.l1_loss(model(data), target) + F.mean((model(data) - target) ** 2)
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    return {
        "losses": np.array(losses, "float32"),
        "weight": model.conv.weight.numpy(),
        "summary": model.summary(data).numpy(),
        "shape": list(model(data).shape),
    }


def expected():
    images, kernel, start = make_data()
    parts = windows(images.astype(float))
    edges = np.einsum("nijkl,kl->nij", windows(images), kernel).astype("float32")
    w = start[0, 0].astype(float)
    losses = []
    for _ in range(STEPS):
        error = np.einsum("nijkl,kl->nij", parts, w) - edges
        losses.append(np.abs(error).mean() + (error**2).mean())
        seed = (np.sign(error) + 2 * error) / error.size
        w = w - RATE * np.einsum("nij,nijkl->kl", seed, parts)
    found = np.maximum(np.einsum("nijkl,kl->nij", parts, w), 0)
    pooled = found.reshape(3, 2, 2, 2, 2).mean(axis=(2, 4))
    return {
        "losses": np.array(losses, "float32"),
        "weight": w[None, None].astype("float32"),
        "summary": pooled[:, None].astype("float32"),
        "shape": [3, 1, 4, 4],
    }
