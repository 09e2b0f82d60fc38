"""A neural ordinary differential equation by Runge-Kutta steps, with gradients by the adjoint."""

from itertools import pairwise

import numpy as np
import torch
from torch import nn


class Dynamics(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.inner = nn.Linear(size, hidden)
        self.outer = nn.Linear(hidden, size, bias=False)

    def forward(self, t, y):
        return self.outer(torch.sin(self.inner(y) + t))


def rk4_step(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(f, y, times):
    states = [y]
    for t0, t1 in pairwise(times):
        y = rk4_step(f, t0, y, t1 - t0)
        states.append(y)
    return torch.stack(states)


class AdjointSolve(torch.autograd.Function):
    """The state at the end; its gradients by solving the adjoint equation backward in time."""

    @staticmethod
    def forward(ctx, y, times, dynamics, *parameters):
        with torch.no_grad():
            end = odeint(dynamics, y, times)[-1]
        ctx.dynamics = dynamics
        ctx.save_for_backward(end, times, *parameters)
        return end

    @staticmethod
    def backward(ctx, adjoint):
        y, times, *parameters = ctx.saved_tensors
        sums = [torch.zeros_like(p) for p in parameters]

        def augmented(t, state):
            y, a = state[0], state[1]
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                f = ctx.dynamics(t, y)
                dy, *dp = torch.autograd.grad(f, (y, *parameters), a, allow_unused=True)
            return torch.stack([f.detach(), -dy]), dp

        for t0, t1 in pairwise(times.flip(0)):
            h = t1 - t0
            state = torch.stack([y, adjoint])
            k1, p1 = augmented(t0, state)
            k2, p2 = augmented(t0 + h / 2, state + h / 2 * k1)
            k3, p3 = augmented(t0 + h / 2, state + h / 2 * k2)
            k4, p4 = augmented(t1, state + h * k3)
            y, adjoint = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            for total, a, b, c, d in zip(sums, p1, p2, p3, p4, strict=True):
                total -= h / 6 * (a + 2 * b + 2 * c + d)
        return (adjoint, None, None, *sums)


def main():
    rng = np.random.default_rng(4)
    dynamics = Dynamics(2, 5).double()
    with torch.no_grad():
        for p in dynamics.parameters():
            p.copy_(torch.tensor(rng.normal(0.0, 0.5, tuple(p.shape))))
    y0 = torch.tensor([[1.0, 0.0], [0.5, -0.5]], dtype=torch.float64, requires_grad=True)
    times = torch.linspace(0.0, 1.0, 6, dtype=torch.float64)
    target = torch.tensor([[0.2, 0.8], [0.1, 0.4]], dtype=torch.float64)

    direct = (odeint(dynamics, y0, times)[-1] - target).pow(2).sum()
    exact = torch.autograd.grad(direct, [y0, *dynamics.parameters()])
    end = AdjointSolve.apply(y0, times, dynamics, *dynamics.parameters())
    (end - target).pow(2).sum().backward()
    difference = max(
        (p.grad - g).abs().max().item()
        for p, g in zip([y0, *dynamics.parameters()], exact, strict=True)
    )

    optimizer = torch.optim.RMSprop(dynamics.parameters(), lr=0.02)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (odeint(dynamics, y0.detach(), times)[-1] - target).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {
        "gradient": exact[0].numpy(),
        "adjoint": y0.grad.numpy(),
        "adjoint_is_close": difference < 1e-3,
        "losses": np.array(losses),
        "outer": dynamics.outer.weight.detach().numpy(),
    }
