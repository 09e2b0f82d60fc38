"""Sharpness-aware minimization, Lion and Lookahead as Optimizer subclasses."""

from collections import defaultdict

import numpy as np
import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, adaptive=False, **kwargs):
        assert rho >= 0.0, f"Invalid rho, should be non-negative: {rho}"
        defaults = dict(rho=rho, adaptive=adaptive, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                e_w = (torch.pow(p, 2) if group["adaptive"] else 1.0) * p.grad * scale.to(p)
                p.add_(e_w)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        assert closure is not None
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()

    def _grad_norm(self):
        return torch.norm(
            torch.stack(
                [
                    ((torch.abs(p) if group["adaptive"] else 1.0) * p.grad).norm(p=2)
                    for group in self.param_groups
                    for p in group["params"]
                    if p.grad is not None
                ]
            ),
            p=2,
        )

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        self.base_optimizer.param_groups = self.param_groups


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg, (b1, b2) = state["exp_avg"], group["betas"]
                update = exp_avg * b1 + p.grad * (1 - b1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss


class Lookahead:
    def __init__(self, optimizer, k=3, alpha=0.5):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.state = defaultdict(dict)
        self.count = 0

    def step(self):
        self.optimizer.step()
        self.count += 1
        if self.count % self.k == 0:
            for group in self.optimizer.param_groups:
                for fast in group["params"]:
                    s = self.state[fast]
                    if "slow" not in s:
                        s["slow"] = torch.empty_like(fast.data)
                        s["slow"].copy_(fast.data)
                    s["slow"] += (fast.data - s["slow"]) * self.alpha
                    fast.data.copy_(s["slow"])


def net(seed):
    rng = np.random.default_rng(seed)
    m = nn.Sequential(nn.Linear(3, 6), nn.Softplus(beta=2), nn.Linear(6, 1))
    for p in m.parameters():
        p.data = torch.as_tensor(rng.normal(size=p.shape) * 0.5, dtype=torch.float32)
    return m


def main():
    rng = np.random.default_rng(0)
    x = torch.as_tensor(rng.normal(size=(20, 3)), dtype=torch.float32)
    y = (x**2).sum(1, keepdim=True)
    out = []
    for adaptive in (False, True):
        model = net(1)
        opt = SAM(
            model.parameters(), torch.optim.SGD, rho=0.1, adaptive=adaptive, lr=0.05, momentum=0.9
        )
        losses = []
        for _ in range(6):

            def closure(model=model):
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                return loss

            loss = closure()
            opt.step(closure)
            opt.zero_grad()
            losses.append(loss.item())
        out.append(losses)
    model = net(2)
    lion = Lion(model.parameters(), lr=0.02, weight_decay=0.01)
    look = Lookahead(lion)
    for _ in range(7):
        lion.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        look.step()
    state = lion.state_dict()
    twin = Lion(net(2).parameters(), lr=1.0)
    twin.load_state_dict(state)
    return (
        out,
        [p.detach() for p in model.parameters()],
        sorted(state["state"]),
        state["param_groups"][0]["lr"],
        twin.param_groups[0]["betas"],
        twin.state[twin.param_groups[0]["params"][1]]["exp_avg"],
    )
