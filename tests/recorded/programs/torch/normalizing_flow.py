"""RealNVP with activation normalization: likelihood, inverse, training."""

import numpy as np
import torch
from torch import distributions as D
from torch import nn


class Coupling(nn.Module):
    def __init__(self, dim, hidden, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.scale = nn.Sequential(
            nn.Linear(dim, hidden), nn.LeakyReLU(0.1), nn.Linear(hidden, dim), nn.Tanh()
        )
        self.shift = nn.Sequential(
            nn.Linear(dim, hidden), nn.LeakyReLU(0.1), nn.Linear(hidden, dim)
        )
        self.log_gain = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        kept = x * self.mask
        s = self.scale(kept) * (1 - self.mask) * self.log_gain.exp()
        t = self.shift(kept) * (1 - self.mask)
        y = kept + (1 - self.mask) * (x * torch.exp(s) + t)
        return y, s.sum(dim=1)

    def inverse(self, y):
        kept = y * self.mask
        s = self.scale(kept) * (1 - self.mask) * self.log_gain.exp()
        t = self.shift(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * ((y - t) * torch.exp(-s))


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, dim))
        self.logs = nn.Parameter(torch.zeros(1, dim))
        self.register_buffer("ready", torch.tensor(0, dtype=torch.uint8))

    def forward(self, x):
        if self.ready.item() == 0:
            with torch.no_grad():
                self.bias.data.copy_(-x.mean(0, keepdim=True))
                self.logs.data.copy_(-x.std(0, keepdim=True).add(1e-6).log())
                self.ready.fill_(1)
        return (x + self.bias) * self.logs.exp(), self.logs.sum().expand(x.size(0))

    def inverse(self, y):
        return y * torch.exp(-self.logs) - self.bias


class Flow(nn.Module):
    def __init__(self, layers, base):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.base = base

    def log_prob(self, x):
        total = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, log_det = layer(x)
            total += log_det
        return self.base.log_prob(x) + total

    @torch.no_grad()
    def decode(self, z):
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def main():
    rng = np.random.default_rng(5)
    x = torch.tensor(
        rng.normal(size=(40, 2)) @ np.array([[1.0, 0.6], [0.0, 0.4]]) + 1.0, dtype=torch.float64
    )
    torch.set_default_dtype(torch.float64)
    mask = torch.tensor([1.0, 0.0])
    base = D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1)
    flow = Flow([ActNorm(2), Coupling(2, 6, mask), ActNorm(2), Coupling(2, 6, 1 - mask)], base)
    for name, p in flow.named_parameters():
        if "scale" in name or "shift" in name:
            p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)) * 0.4)
    optimizer = torch.optim.RMSprop(flow.parameters(), lr=5e-3, momentum=0.5, centered=True)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)
    history = []
    for _epoch in range(10):
        for batch in x.split(20):
            loss = -flow.log_prob(batch).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(flow.parameters(), clip_value=0.5)
            optimizer.step()
        scheduler.step()
        history.append(loss.item())
    z, _ = flow.layers[0](x[:3])
    again = flow.layers[0].inverse(z)
    state = {k: tuple(v.shape) for k, v in flow.state_dict().items()}
    return (
        history,
        flow.decode(torch.zeros(3, 2) + torch.arange(3.0)[:, None]),
        (again - x[:3]).abs().max() < 1e-12,
        sorted(state),
        scheduler.get_last_lr(),
    )
