"""MAML of sine waves: inner steps by autograd.grad, and by vmap over functional_call."""

from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.net = nn.Sequential(
            OrderedDict(
                [
                    ("l1", nn.Linear(1, hidden)),
                    ("relu1", nn.Tanh()),
                    ("l2", nn.Linear(hidden, hidden)),
                    ("relu2", nn.Tanh()),
                    ("l3", nn.Linear(hidden, 1)),
                ]
            )
        )

    def forward(self, x):
        return self.net(x)

    def argforward(self, x, weights):
        x = F.linear(x, weights[0], weights[1]).tanh()
        x = F.linear(x, weights[2], weights[3]).tanh()
        return F.linear(x, weights[4], weights[5])


class MAML:
    def __init__(self, model, inner_lr, meta_lr, inner_steps=2):
        self.model = model
        self.weights = list(model.parameters())
        self.criterion = nn.MSELoss()
        self.meta_optimiser = torch.optim.Adam(self.weights, meta_lr)
        self.inner_lr, self.inner_steps = inner_lr, inner_steps

    def inner_loop(self, task):
        (x, y), (xq, yq) = task
        temp = [w.clone() for w in self.weights]
        for _ in range(self.inner_steps):
            loss = self.criterion(self.model.argforward(x, temp), y)
            g = torch.autograd.grad(loss, temp, create_graph=True)
            temp = [w - self.inner_lr * gi for w, gi in zip(temp, g, strict=False)]
        return self.criterion(self.model.argforward(xq, temp), yq)

    def outer(self, tasks):
        total = 0
        for t in tasks:
            total += self.inner_loop(t)
        meta_grads = torch.autograd.grad(total / len(tasks), self.weights)
        for w, g in zip(self.weights, meta_grads, strict=False):
            w.grad = g
        self.meta_optimiser.step()
        return total.item() / len(tasks)


def make_task(rng, k=5):
    a, p = rng.uniform(0.1, 5.0), rng.uniform(0, np.pi)
    x = rng.uniform(-5, 5, (2, k, 1))
    y = a * np.sin(x + p)
    x, y = torch.Tensor(x), torch.Tensor(y)
    return (x[0], y[0]), (x[1], y[1])


def functional_maml(model, tasks, lr=0.01):
    params = dict(model.named_parameters())

    def loss_fn(p, x, y):
        return F.mse_loss(functional_call(model, p, (x,)), y)

    def task_loss(params, x, y, xq, yq):
        g = grad(loss_fn)(params, x, y)
        new = {k: params[k] - lr * g[k] for k in params}
        return loss_fn(new, xq, yq)

    xs, ys, xq, yq = (
        torch.stack(t) for t in zip(*[(s[0], s[1], q[0], q[1]) for s, q in tasks], strict=False)
    )
    losses = vmap(task_loss, in_dims=(None, 0, 0, 0, 0))(params, xs, ys, xq, yq)
    losses.mean().backward()
    return losses.detach(), {k: p.grad.norm() for k, p in model.named_parameters()}


def main():
    rng = np.random.default_rng(0)
    model = Net()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.as_tensor(rng.normal(size=tuple(p.size())) * 0.5))
    maml = MAML(model, 0.01, 1e-3)
    log = [maml.outer([make_task(rng) for _ in range(4)]) for _ in range(6)]
    model.zero_grad()
    fl, fg = functional_maml(model, [make_task(rng) for _ in range(3)])
    return log, fl, fg, list(model.state_dict()), model.net.l3.bias.data
