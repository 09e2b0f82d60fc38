"""Hamiltonian network with weight decay: losses of gradients, Jacobians and products."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd.functional import hvp, jacobian, vhp
from torch.autograd.functional import jvp as fjvp


class HNN(nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, hidden),
            nn.Softplus(),
            nn.Linear(hidden, hidden),
            nn.Softplus(beta=2),
            nn.Linear(hidden, 1),
        )
        J = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
        self.register_buffer("J", J)

    def H(self, x):
        return self.net(x)

    def forward(self, x):
        with torch.set_grad_enabled(True):
            x = x if x.requires_grad else x.requires_grad_(True)
            dH = torch.autograd.grad(self.H(x).sum(), x, create_graph=True)[0]
        return torch.einsum("ij,bj->bi", self.J, dH)


def jacobian_regularizer(f, x, n_proj=2, rng=None):
    x.requires_grad_(True)
    y = f(x)
    reg = 0
    for _ in range(n_proj):
        v = torch.tensor(rng.normal(size=y.shape), dtype=y.dtype)
        v = v / torch.norm(v, 2, 1, keepdim=True)
        (Jv,) = torch.autograd.grad(y, x, v, create_graph=True, retain_graph=True)
        reg += y.size(1) * torch.norm(Jv) ** 2 / (n_proj * x.shape[0])
    return reg


def leapfrog(model, x, dt, n):
    out = [x]
    for _ in range(n):
        k1 = model(x).detach()
        k2 = model((x + dt * k1).detach()).detach()
        x = x + dt * (k1 + k2) / 2
        out.append(x)
    return torch.stack(out)


def main():
    torch.set_default_dtype(torch.float64)
    rng = np.random.default_rng(31)
    model = HNN()
    for p in model.parameters():
        with torch.no_grad():
            p[...] = torch.tensor(rng.normal(0, 0.4, p.shape))
    x = torch.tensor(rng.normal(size=(16, 2)))
    dx = torch.stack([x[:, 1], -torch.sin(x[:, 0])], 1)
    opt = torch.optim.Adam(model.parameters(), 1e-2, weight_decay=1e-4)
    hist = []
    for _step in range(5):
        pred = model(x)
        loss = (dx - pred).pow(2).mean() + 0.01 * jacobian_regularizer(model, x, rng=rng)
        loss.backward()
        opt.step()
        opt.zero_grad()
        hist.append(loss.item())
    traj = leapfrog(model, torch.tensor([[1.0, 0.0]]), 0.1, 4)

    def f(z):
        return model.H(z).squeeze()

    z, v = torch.tensor([0.3, -0.7]), torch.tensor([1.0, 2.0])
    a = (
        jacobian(f, z),
        hvp(f, z, v),
        vhp(f, z, v),
        fjvp(f, z, v),
        torch.autograd.functional.hessian(f, z),
    )
    J2 = jacobian(lambda a, b: (a * b.sum(), a.sin()), (z, v), create_graph=True, vectorize=True)
    full = torch.autograd.functional.jacobian(model, x[:2].detach())
    div = torch.einsum("bibi->b", full)
    energy = model.H(traj)[:, 0, 0]
    torch.set_default_dtype(torch.float32)
    return hist, traj, a, J2, full.shape, div.abs().max() < 1e-9, energy
