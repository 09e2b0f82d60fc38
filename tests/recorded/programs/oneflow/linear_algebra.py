"""Gaussian process, Kalman filter, soft ranks: linear algebra and indexing.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import nn


class GP(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(flow.tensor(0.0, dtype=flow.float64))
        self.log_noise = nn.Parameter(flow.tensor(-2.0, dtype=flow.float64))

    def kernel(self, a, b):
        d = (a.unsqueeze(1) - b.unsqueeze(0)) * flow.exp(-self.log_scale)
        return flow.exp(-0.5 * d.pow(2).sum(-1))

    def nll(self, x, y):
        K = self.kernel(x, x) + self.log_noise.exp() * flow.eye(len(x), dtype=x.dtype)
        alpha = flow.linalg.inv(K) @ y
        return 0.5 * flow.dot(y, alpha) + 0.5 * flow.log(flow.linalg.det(K))


def soft_rank(x, tau):
    diff = (x.unsqueeze(-1) - x.unsqueeze(-2)) / tau
    return diff.sigmoid().sum(-1) + 0.5


def kalman(ys, q, r):
    m, p = flow.zeros((), dtype=flow.float64), flow.ones((), dtype=flow.float64)
    total, means = 0.0, []
    for y in ys:
        p = p + q
        s = p + r
        k = p / s
        e = y - m
        total = total + 0.5 * (e * e / s + flow.log(s))
        m, p = m + k * e, (1 - k) * p
        means.append(m)
    return total, flow.stack(means)


def main():
    rng = np.random.default_rng(2)
    x = flow.tensor(rng.normal(size=(6, 2)))
    y = flow.tensor(rng.normal(size=6))
    gp = GP()
    opt = flow.optim.SGD(gp.parameters(), lr=0.05)
    nll = []
    for _ in range(3):
        opt.zero_grad()
        loss = gp.nll(x, y)
        loss.backward()
        opt.step()
        nll.append(loss.item())
    q = flow.tensor(-1.0, dtype=flow.float64, requires_grad=True)
    r = flow.tensor(-0.5, dtype=flow.float64, requires_grad=True)
    total, means = kalman(y, q.exp(), r.exp())
    total.backward()
    v = flow.tensor([3.0, 1.0, 2.0], requires_grad=True)
    rank = soft_rank(v, 0.5)
    (rank * flow.arange(3, dtype=flow.float32)).sum().backward()
    a = flow.arange(12, dtype=flow.float32).reshape(3, 4).requires_grad_()
    picked = (
        a[[0, 2], 1:3].sum()
        + a[a > 8].prod() * 0.01
        + a.gather(1, flow.tensor([[0], [3], [1]])).sum()
    )
    picked.backward()
    base = flow.zeros(4, 3)
    base = base.scatter_add(0, flow.tensor([[0, 1, 3], [3, 1, 0]]), flow.ones(2, 3) * v.detach())
    values, idx = flow.sort(v, descending=True)
    parts = flow.chunk(flow.arange(7), 3)
    std, mean = a.detach().std(dim=1), a.detach().mean(1, keepdim=True)
    e = flow.einsum("ij,kj->ik", a.detach(), a.detach())
    print(e)
    print(flow.where(a.detach() > 5, a.detach(), flow.zeros_like(a)))
    print(a.detach().int(), (a.detach() > 3).any(), flow.tensor(1.5), flow.tensor([1e-3, 1e4]))
    return {
        "nll": nll,
        "grads": [q.grad.item(), r.grad.item()],
        "means": means.detach().numpy(),
        "rank": rank.detach().numpy(),
        "v": v.grad.numpy(),
        "a": a.grad.numpy(),
        "base": base.numpy(),
        "sorted": [values.detach().numpy(), idx.numpy()],
        "parts": [p.numpy() for p in parts],
        "std": std.numpy(),
        "mean": mean.numpy(),
        "norm": flow.linalg.norm(a.detach(), ord="fro").item(),
        "quantile": flow.quantile(a.detach(), 0.3).item(),
        "cum": flow.cumsum(a.detach(), dim=1).numpy(),
    }
