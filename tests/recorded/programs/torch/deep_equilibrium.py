"""Deep equilibrium layer: Anderson acceleration, implicit gradient by a hook."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import autograd


def anderson(f, x0, m=4, lam=1e-6, max_iter=30, tol=1e-9, beta=1.0):
    bsz, d = x0.shape
    X = torch.zeros(bsz, m, d, dtype=x0.dtype, device=x0.device)
    Fx = torch.zeros(bsz, m, d, dtype=x0.dtype, device=x0.device)
    X[:, 0], Fx[:, 0] = x0.view(bsz, -1), f(x0).view(bsz, -1)
    X[:, 1], Fx[:, 1] = Fx[:, 0], f(Fx[:, 0].view_as(x0)).view(bsz, -1)
    H = torch.zeros(bsz, m + 1, m + 1, dtype=x0.dtype, device=x0.device)
    H[:, 0, 1:] = H[:, 1:, 0] = 1
    y = torch.zeros(bsz, m + 1, 1, dtype=x0.dtype, device=x0.device)
    y[:, 0] = 1
    res = []
    for k in range(2, max_iter):
        n = min(k, m)
        G = Fx[:, :n] - X[:, :n]
        H[:, 1 : n + 1, 1 : n + 1] = (
            torch.bmm(G, G.transpose(1, 2)) + lam * torch.eye(n, dtype=x0.dtype)[None]
        )
        alpha = torch.linalg.solve(H[:, : n + 1, : n + 1], y[:, : n + 1])[:, 1 : n + 1, 0]
        X[:, k % m] = (
            beta * (alpha[:, None] @ Fx[:, :n])[:, 0]
            + (1 - beta) * (alpha[:, None] @ X[:, :n])[:, 0]
        )
        Fx[:, k % m] = f(X[:, k % m].view_as(x0)).view(bsz, -1)
        res.append((Fx[:, k % m] - X[:, k % m]).norm().item() / (1e-5 + Fx[:, k % m].norm().item()))
        if res[-1] < tol:
            break
    return X[:, k % m].view_as(x0), res


class Cell(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w, self.u = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, z, x):
        return torch.tanh(self.norm(0.5 * self.w(z) + self.u(x)) * 0.5)


class DEQ(nn.Module):
    def __init__(self, f, solver, **kwargs):
        super().__init__()
        self.f, self.solver, self.kwargs = f, solver, kwargs
        self.calls = []

    def forward(self, x):
        with torch.no_grad():
            z, self.forward_res = self.solver(
                lambda z: self.f(z, x), torch.zeros_like(x), **self.kwargs
            )
        z = self.f(z, x)
        z0 = z.clone().detach().requires_grad_()
        f0 = self.f(z0, x)

        def backward_hook(grad):
            g, self.backward_res = self.solver(
                lambda y: autograd.grad(f0, z0, y, retain_graph=True)[0] + grad, grad, **self.kwargs
            )
            self.calls.append(grad.norm().item())
            return g

        if z.requires_grad:
            z.register_hook(backward_hook)
        return z


def main():
    torch.set_default_dtype(torch.float64)
    rng = np.random.default_rng(6)
    model = nn.Sequential(
        nn.Linear(3, 5), DEQ(Cell(5), anderson, tol=1e-10, max_iter=25), nn.Linear(5, 2)
    )
    for p in model.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)) * 0.5)
    x, y = torch.from_numpy(rng.normal(size=(7, 3))), torch.from_numpy(rng.integers(0, 2, size=7))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(5):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    deq = model[1]
    h = model[0](x).detach()
    z = deq.f.w.weight.new_zeros(7, 5)
    for _ in range(200):
        z = deq.f(z, h).detach()
    g = torch.from_numpy(rng.normal(size=(7, 5)))
    J = torch.autograd.functional.jacobian(lambda z: deq.f(z, h[:1]), z[:1]).reshape(5, 5)
    exact = torch.linalg.solve(torch.eye(5) - J.T, g[0])
    return losses, deq.calls, (deq(h) - z).abs().max() < 1e-7, exact, len(deq.forward_res) > 1
