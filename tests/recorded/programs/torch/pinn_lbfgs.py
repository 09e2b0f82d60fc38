"""A physics-informed network for u'' + u = x with given ends, trained by Adam and LBFGS."""

from itertools import pairwise

import numpy as np
import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, widths):
        super().__init__()
        layers = []
        for fan_in, fan_out in pairwise(widths[:-1]):
            layers += [nn.Linear(fan_in, fan_out), nn.Tanh()]
        layers.append(nn.Linear(widths[-2], widths[-1]))
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


def derivative(y, x):
    return torch.autograd.grad(
        y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True
    )[0]


def residual(field, x):
    u = field(x)
    u_x = derivative(u, x)
    u_xx = derivative(u_x, x)
    return u_xx + u - x


def exact(x):
    """The solution with u(0) = 0 and u(2) = 1."""
    return x + (1.0 - 2.0) * torch.sin(x) / np.sin(2.0)


def total_loss(field, inside, ends, values):
    physics = residual(field, inside).square().mean()
    boundary = (field(ends) - values).pow(2).sum()
    return physics + 10.0 * boundary


def seed_parameters(field, rng):
    for name, p in field.named_parameters():
        spread = 1.0 / np.sqrt(p.shape[-1]) if name.endswith("weight") else 0.1
        p.data.copy_(torch.from_numpy(rng.normal(0.0, spread, tuple(p.shape))))


def main():
    rng = np.random.default_rng(3)
    field = Field([1, 6, 6, 1]).to(torch.float64)
    seed_parameters(field, rng)
    inside = torch.linspace(0.0, 2.0, 9, dtype=torch.float64).unsqueeze(1)
    inside.requires_grad_(True)
    ends = torch.tensor([[0.0], [2.0]], dtype=torch.float64)
    values = exact(ends)

    history = []
    adam = torch.optim.Adam(field.parameters(), lr=1e-2)
    for _ in range(5):
        adam.zero_grad()
        loss = total_loss(field, inside, ends, values)
        loss.backward()
        adam.step()
        history.append(loss.item())

    lbfgs = torch.optim.LBFGS(
        field.parameters(), lr=0.5, max_iter=4, history_size=5, tolerance_grad=1e-9
    )
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        lbfgs.zero_grad()
        loss = total_loss(field, inside, ends, values)
        loss.backward()
        return loss

    for _ in range(2):
        history.append(float(lbfgs.step(closure)))
    field.eval()
    x = torch.linspace(0.0, 2.0, 5, dtype=torch.float64).view(-1, 1)
    with torch.no_grad():
        u = field(x)
    return {
        "history": np.array(history),
        "u": u.squeeze(1).numpy(),
        "error": (u - exact(x)).abs().max().item(),
        "calls": calls,
    }
