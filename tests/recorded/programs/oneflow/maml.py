"""Model-agnostic meta-learning with parameters passed as lists, and a learned inner rate.

The twin is this text with torch in place of oneflow.
"""

import itertools

import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F


class Learner(nn.Module):
    def __init__(self, sizes, rng):
        super().__init__()
        self.vars = nn.ParameterList()
        for a, b in itertools.pairwise(sizes):
            self.vars.append(
                nn.Parameter(flow.tensor(rng.normal(0, 0.5, (b, a)), dtype=flow.float32))
            )
            self.vars.append(nn.Parameter(flow.zeros(b)))
        self.log_lr = nn.Parameter(flow.full((len(self.vars),), -3.0))

    def forward(self, x, vars=None):
        vars = self.vars if vars is None else vars
        n = len(vars) // 2
        for i in range(n):
            x = F.linear(x, vars[2 * i], vars[2 * i + 1])
            if i + 1 < n:
                x = F.relu(x)
        return x


def adapt(net, x, y, steps, first_order=False):
    fast = list(net.vars)
    for _ in range(steps):
        loss = F.mse_loss(net(x, fast), y)
        grads = flow.autograd.grad(loss, fast, create_graph=not first_order)
        fast = [
            w - net.log_lr[k].exp() * g for k, (w, g) in enumerate(zip(fast, grads, strict=False))
        ]
    return fast


def tasks(rng, n, k):
    for _ in range(n):
        a, p = rng.uniform(0.5, 2), rng.uniform(0, np.pi)
        x = rng.uniform(-3, 3, (2 * k, 1)).astype("float32")
        y = (a * np.sin(x + p)).astype("float32")
        yield tuple(map(flow.from_numpy, (x[:k], y[:k], x[k:], y[k:])))


def main():
    rng = np.random.default_rng(4)
    net = Learner([1, 5, 5, 1], rng)
    optimizer = flow.optim.Adam(net.parameters(), lr=0.01)
    history = []
    for step in range(4):
        optimizer.zero_grad()
        losses = [
            F.mse_loss(net(xq, adapt(net, xs, ys, 2, step == 3)), yq)
            for xs, ys, xq, yq in tasks(rng, 3, 4)
        ]
        loss = sum(losses) / len(losses)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        history.append([loss.item(), float(norm)])
    print(net)
    print(net.log_lr)
    return {
        "history": history,
        "lr": net.log_lr.detach().numpy(),
        "w": net.vars[0].detach().numpy(),
        "names": [n for n, _ in net.named_parameters()],
    }
