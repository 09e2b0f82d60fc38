"""Model-agnostic meta-learning of sine waves: gradients through several inner steps."""

from collections import OrderedDict

import numpy as np
import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = nn.Linear(1, hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, weights=None):
        if weights is None:
            weights = OrderedDict(self.named_parameters())
        x = torch.tanh(nn.functional.linear(x, weights["hidden.weight"], weights["hidden.bias"]))
        x = torch.tanh(nn.functional.linear(x, weights["middle.weight"], weights["middle.bias"]))
        return nn.functional.linear(x, weights["head.weight"], weights["head.bias"])


class SineTask:
    def __init__(self, rng):
        self.amplitude = rng.uniform(0.5, 2.0)
        self.phase = rng.uniform(0.0, np.pi)
        self.rng = rng

    def sample(self, count):
        x = self.rng.uniform(-3.0, 3.0, (count, 1))
        y = self.amplitude * np.sin(x + self.phase)
        return torch.tensor(x), torch.tensor(y)


def adapt(model, x, y, *, steps, rate, first_order=False):
    weights = OrderedDict(model.named_parameters())
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x, weights), y)
        gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=not first_order)
        weights = OrderedDict(
            (name, w - rate * g) for (name, w), g in zip(weights.items(), gradients, strict=True)
        )
    return weights


def meta_loss(model, tasks, **options):
    losses = []
    for task in tasks:
        x, y = task.sample(6)
        weights = adapt(model, x, y, **options)
        x, y = task.sample(6)
        losses.append(nn.functional.mse_loss(model(x, weights), y))
    return torch.stack(losses).mean()


def main():
    rng = np.random.default_rng(2)
    model = Regressor(6).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(rng.normal(0.0, 0.4, tuple(p.shape))))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(4):
        tasks = [SineTask(rng) for _ in range(2)]
        optimizer.zero_grad()
        loss = meta_loss(model, tasks, steps=2, rate=0.05)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    optimizer.zero_grad()
    first_order = meta_loss(model, [SineTask(rng)], steps=1, rate=0.05, first_order=True)
    first_order.backward()
    return {
        "losses": np.array(losses),
        "first_order": first_order.item(),
        "bias_gradient": model.hidden.bias.grad.numpy(),
        "head": model.head.weight.detach().numpy(),
    }
