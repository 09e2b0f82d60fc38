"""Functions of sets of different sizes: sums, maxima and attention over masked elements.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import nn


class DeepSet(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.element = nn.Sequential(nn.Linear(features, hidden), nn.Tanh())
        self.score = nn.Linear(hidden, 1)
        self.whole = nn.Sequential(nn.Linear(3 * hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))

    def forward(self, x, mask):
        h = self.element(x)
        total = (h * mask.unsqueeze(-1)).sum(dim=1)
        largest = h.masked_fill(~mask.unsqueeze(-1), float("-inf")).amax(dim=1)
        scores = self.score(h).squeeze(-1).masked_fill(~mask, float("-inf"))
        weights = flow.softmax(scores, dim=1)
        attended = flow.einsum("bn,bnh->bh", weights, h)
        return self.whole(flow.cat([total, largest, attended], dim=1)).squeeze(1), weights


def make_sets(rng, count, largest, features):
    sizes = rng.integers(1, largest + 1, count)
    x = rng.normal(size=(count, largest, features))
    mask = np.arange(largest)[None, :] < sizes[:, None]
    norms = np.sqrt((x**2).sum(axis=2))
    y = np.where(mask, norms, 0.0).max(axis=1) + 0.1 * sizes
    return flow.tensor(x), flow.tensor(mask), flow.tensor(y)


def initialize(model, rng):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            fan_in = module.weight.shape[1]
            value = rng.normal(0.0, fan_in**-0.5, tuple(module.weight.shape))
            with flow.no_grad():
                module.weight.copy_(flow.tensor(value))
                module.bias.zero_()


def main():
    rng = np.random.default_rng(8)
    x, mask, y = make_sets(rng, count=8, largest=4, features=2)
    model = DeepSet(2, 5).double()
    initialize(model, rng)
    optimizer = flow.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
    criterion = nn.SmoothL1Loss(beta=0.5)
    losses = []
    for _ in range(6):
        prediction, _ = model(x, mask)
        loss = criterion(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    order = flow.tensor([2, 0, 3, 1])
    model.eval()
    with flow.no_grad():
        prediction, weights = model(x, mask)
        permuted, _ = model(x[:, order], mask[:, order])
    leaf = x.clone().requires_grad_()
    model(leaf, mask)[0].sum().backward()
    unused = leaf.grad[~mask].abs().sum().item()
    return {
        "losses": np.array(losses),
        "prediction": prediction.numpy(),
        "weights": weights.numpy(),
        "invariant": bool(flow.allclose(prediction, permuted)),
        "unused": unused,
        "influence": leaf.grad.norm(dim=2).numpy(),
    }
