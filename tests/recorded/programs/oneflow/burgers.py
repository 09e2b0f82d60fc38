"""A physics-informed network with Adam, LBFGS, functional derivatives, and batched seeds.

The twin is this text with torch in place of oneflow.
"""

import itertools

import numpy as np
import oneflow as flow
from oneflow import nn
from oneflow.autograd import grad
from oneflow.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp


class MLP(nn.Module):
    def __init__(self, widths, act=nn.Tanh):
        super().__init__()
        self.net = nn.Sequential()
        for i, (a, b) in enumerate(itertools.pairwise(widths)):
            self.net.add_module(f"fc{i}", nn.Linear(a, b))
            if i < len(widths) - 2:
                self.net.add_module(f"act{i}", act())

    def forward(self, x):
        return self.net(x)


def residual(net, tx):
    tx = tx.clone().requires_grad_()
    u = net(tx)
    du = grad(u, tx, flow.ones_like(u), create_graph=True)[0]
    ddu = grad(du[:, 1].sum(), tx, create_graph=True)[0]
    return du[:, 0:1] + u * du[:, 1:2] - 0.05 * ddu[:, 1:2]


def main():
    rng = np.random.default_rng(23)
    net = MLP([2, 6, 6, 1]).double()
    nn.init.zeros_(net.net[-1].bias)
    with flow.no_grad():
        for p in net.parameters():
            p.add_(-p).add_(flow.tensor(rng.normal(0, 0.5, p.shape)))
    tx = flow.tensor(rng.uniform(-1, 1, (8, 2)))
    x0 = flow.linspace(-1, 1, 9, dtype=flow.float64)
    start = flow.stack((flow.zeros_like(x0), x0), dim=1)
    u0 = -flow.sin(np.pi * x0).unsqueeze(1)

    def loss_fn():
        return residual(net, tx).square().mean() + nn.functional.mse_loss(net(start), u0)

    adam = flow.optim.AdamW(net.parameters(), lr=0.01, weight_decay=1e-3, amsgrad=True)
    sched = flow.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=5, eta_min=1e-4)
    losses = []
    for _ in range(4):
        adam.zero_grad()
        loss = loss_fn()
        loss.backward()
        adam.step()
        sched.step()
        losses.append([loss.item(), adam.param_groups[0]["lr"]])
    lbfgs = flow.optim.LBFGS(
        net.parameters(), lr=0.5, max_iter=4, history_size=5, line_search_fn="strong_wolfe"
    )

    def closure():
        lbfgs.zero_grad()
        value = loss_fn()
        value.backward()
        return value

    polished = [lbfgs.step(closure).item() for _ in range(2)]
    w = flow.tensor(rng.normal(size=3))

    def f(v):
        return (v.exp() * v.roll(1) ** 2).sum()

    def g(v):
        return flow.stack([v.prod(), (v * v).sum()])

    H, J = hessian(f, w), jacobian(g, w)
    _, hv = hvp(f, w, flow.ones(3, dtype=flow.float64))
    _, vh = vhp(f, w, flow.ones(3, dtype=flow.float64))
    _, jv = jvp(g, w, flow.ones(3, dtype=flow.float64))
    _, vj = vjp(g, w, flow.ones(2, dtype=flow.float64))
    y = g(w.requires_grad_())
    (rows,) = grad(y, w, flow.eye(2, dtype=flow.float64), is_grads_batched=True)
    unused = flow.zeros(1, requires_grad=True)
    none = grad(f(w), [w, unused], allow_unused=True)[1]
    try:
        grad(f(w), [w, unused])
    except RuntimeError as error:
        print("allow_unused" in str(error))
    return {
        "losses": losses,
        "polished": polished,
        "H": H.numpy(),
        "J": J.numpy(),
        "hv": hv.numpy(),
        "vh": vh.numpy(),
        "jv": jv.numpy(),
        "vj": vj.numpy(),
        "rows": rows.numpy(),
        "none": none,
    }
