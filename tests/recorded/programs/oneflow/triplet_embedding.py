"""Embeddings of classes by a triplet loss with the hardest examples of a batch.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import nn


class Embedder(nn.Module):
    def __init__(self, features, hidden, size):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Linear(hidden, size, bias=False),
        )

    def forward(self, x):
        return nn.functional.normalize(self.layers(x), p=2.0, dim=1)


def pairwise_distances(x):
    squares = x.pow(2).sum(dim=1)
    products = x @ x.t()
    distances = squares.unsqueeze(1) - 2 * products + squares.unsqueeze(0)
    return flow.sqrt(distances.clamp(min=1e-12))


def hardest_triplets(x, labels, margin):
    distances = pairwise_distances(x)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    farthest = distances.masked_fill(~same, float("-inf")).max(dim=1).values
    nearest = distances.masked_fill(same, float("inf")).min(dim=1).values
    losses = flow.relu(farthest - nearest + margin)
    return losses.mean(), (losses > 0).sum().item()


def make_batch(rng, classes, each, features):
    centers = rng.normal(size=(classes, features))
    labels = np.repeat(np.arange(classes), each)
    points = centers[labels] + 0.3 * rng.normal(size=(len(labels), features))
    return flow.tensor(points), flow.tensor(labels)


def nearest_neighbours(x, labels):
    distances = pairwise_distances(x) + 1e3 * flow.eye(len(x), dtype=x.dtype)
    return (labels[distances.argmin(dim=1)] == labels).double().mean().item()


def main():
    rng = np.random.default_rng(7)
    x, labels = make_batch(rng, classes=3, each=4, features=4)
    model = Embedder(4, 6, 2).double()
    with flow.no_grad():
        for p in model.parameters():
            p.copy_(flow.tensor(rng.normal(0.5, 0.5, tuple(p.shape))))
    optimizer = flow.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    history = []
    for _ in range(5):
        optimizer.zero_grad()
        loss, active = hardest_triplets(model(x), labels, margin=0.5)
        loss.backward()
        optimizer.step()
        history.append([loss.item(), active])
    with flow.no_grad():
        embedded = model(x)
    return {
        "history": np.array(history),
        "embedded": embedded[:4].numpy(),
        "accuracy": nearest_neighbours(embedded, labels),
        "norms": embedded.norm(dim=1).numpy(),
    }
