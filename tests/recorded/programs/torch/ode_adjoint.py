"""Neural ODE with Runge-Kutta steps, by backpropagation and by an adjoint Function."""

import itertools

import numpy as np
import torch
from torch import nn


class ODEFunc(nn.Module):
    def __init__(self, dim=2, hidden=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, dim))
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


def rk4_step(f, t, dt, y):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt * k1 / 2)
    k3 = f(t + dt / 2, y + dt * k2 / 2)
    k4 = f(t + dt, y + dt * k3)
    return tuple_or(y, dt, k1, k2, k3, k4)


def tuple_or(y, dt, k1, k2, k3, k4):
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def odeint(f, y0, t):
    ys = [y0]
    for t0, t1 in itertools.pairwise(t):
        ys.append(rk4_step(f, t0, t1 - t0, ys[-1]))
    return torch.stack(ys, dim=0)


class OdeintAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, flat_params):
        with torch.no_grad():
            ys = odeint(func, y0, t)
        ctx.func = func
        ctx.save_for_backward(t, ys, flat_params)
        return ys

    @staticmethod
    def backward(ctx, grad_ys):
        func = ctx.func
        t, ys, flat = ctx.saved_tensors
        params = tuple(func.parameters())
        n = ys[0].numel()

        def aug(tt, s):
            y, a = s[:n].view_as(ys[0]), s[n : 2 * n].view_as(ys[0])
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                tt = tt.detach()
                f = func(tt, y)
                vjp = torch.autograd.grad(f, (y, *params), -a, allow_unused=True)
            gp = torch.cat(
                [
                    torch.zeros_like(p).flatten() if g is None else g.reshape(-1)
                    for g, p in zip(vjp[1:], params, strict=False)
                ]
            )
            return torch.cat([f.detach().reshape(-1), vjp[0].reshape(-1), gp])

        adj_y = grad_ys[-1]
        adj_p = torch.zeros_like(flat)
        with torch.no_grad():
            for i in range(len(t) - 1, 0, -1):
                s = torch.cat([ys[i].reshape(-1), adj_y.reshape(-1), adj_p])
                s = rk4_step(aug, t[i], t[i - 1] - t[i], s)
                adj_y = s[n : 2 * n].view_as(adj_y) + grad_ys[i - 1]
                adj_p = s[2 * n :]
        return None, adj_y, None, adj_p


def flatten(params):
    return torch.cat([p.contiguous().view(-1) for p in params])


def main():
    rng = np.random.default_rng(2)
    torch.set_default_tensor_type(torch.DoubleTensor)
    func = ODEFunc()
    for m in func.net.modules():
        if isinstance(m, nn.Linear):
            m.weight.data = torch.tensor(rng.normal(0, 0.1, m.weight.shape))
            nn.init.constant_(m.bias, val=0)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    y0 = torch.tensor([[2.0, 0.0]])
    t = torch.linspace(0.0, 1.0, 9)
    with torch.no_grad():
        true_y = odeint(lambda t, y: (y**3) @ true_A, y0 * 0.5, t)
    y0 = (y0 * 0.5).requires_grad_()
    optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-2)
    losses = []
    for _itr in range(3):
        optimizer.zero_grad()
        pred = odeint(func, y0, t)
        loss = torch.mean(torch.abs(pred - true_y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    func.zero_grad()
    y0.grad = None
    ys = OdeintAdjoint.apply(func, y0, t, flatten(func.parameters()))
    loss = (ys - true_y).pow(2).mean()
    loss.backward()
    adj = [p.grad.clone() for p in func.parameters()] + [y0.grad.clone()]
    torch.set_default_dtype(torch.float32)
    return losses, func.nfe, adj, str(ys.grad_fn).split(" object")[0], pred[-1]
