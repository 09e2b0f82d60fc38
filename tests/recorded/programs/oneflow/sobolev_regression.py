"""Regression of values and derivatives, a gradient penalty, and saliency of inputs.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import autograd, nn


class Surrogate(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1)
        self.activation = nn.Softplus()

    def forward(self, x):
        x = self.activation(self.first(x))
        x = self.activation(self.second(x))
        return self.last(x).squeeze(-1)


def target(x):
    value = flow.sin(x[:, 0]) * x[:, 1]
    slope = flow.stack([flow.cos(x[:, 0]) * x[:, 1], flow.sin(x[:, 0])], dim=1)
    return value, slope


def value_and_slope(model, x, create_graph):
    x = x.detach().requires_grad_(True)
    y = model(x)
    (slope,) = autograd.grad(y.sum(), x, create_graph=create_graph)
    return y, slope


def laplacian(model, x):
    x = x.detach().requires_grad_(True)
    (slope,) = autograd.grad(model(x).sum(), x, create_graph=True)
    total = 0
    for k in range(x.shape[1]):
        (second,) = autograd.grad(slope[:, k].sum(), x, retain_graph=True)
        total = total + second[:, k]
    return total


def loss_terms(model, x, weight):
    y, slope = value_and_slope(model, x, create_graph=True)
    wanted, wanted_slope = target(x)
    values = (y - wanted).pow(2).mean()
    slopes = (slope - wanted_slope).pow(2).sum(dim=1).mean()
    penalty = flow.relu(slope.norm(dim=1) - 2.0).pow(2).mean()
    return values, weight * slopes, penalty


def main():
    rng = np.random.default_rng(10)
    x = flow.tensor(rng.uniform(-1.5, 1.5, (10, 2)))
    model = Surrogate(2, 6).double()
    for p in model.parameters():
        p.data = flow.tensor(rng.normal(0.0, 0.6, tuple(p.shape)))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.5, nesterov=True)
    history = []
    for _ in range(6):
        optimizer.zero_grad()
        terms = loss_terms(model, x, weight=0.3)
        sum(terms).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        history.append([*(t.item() for t in terms), norm.item()])
    y, slope = value_and_slope(model, x[:3], create_graph=False)
    return {
        "history": np.array(history),
        "y": y.detach().numpy(),
        "slope": slope.numpy(),
        "laplacian": laplacian(model, x[:3]).numpy(),
    }
