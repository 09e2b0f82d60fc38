"""A hypernetwork writes the weights of a small network, which `functional_call` evaluates."""

import numpy as np
import torch
from torch import nn
from torch.func import functional_call


class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1, 4)
        self.second = nn.Linear(4, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


class HyperNetwork(nn.Module):
    """Parameters of `target` as a function of a code."""

    def __init__(self, target, code_size, hidden=6):
        super().__init__()
        self.shapes = {name: p.shape for name, p in target.named_parameters()}
        self.trunk = nn.Linear(code_size, hidden)
        self.heads = nn.ModuleDict(
            {
                name.replace(".", "_"): nn.Linear(hidden, shape.numel())
                for name, shape in self.shapes.items()
            }
        )

    def forward(self, code):
        features = torch.relu(self.trunk(code))
        return {
            name: self.heads[name.replace(".", "_")](features).view(shape)
            for name, shape in self.shapes.items()
        }


class Codes(nn.Module):
    def __init__(self, count, size):
        super().__init__()
        self.table = nn.Embedding(count, size)

    def forward(self, index):
        return self.table(torch.tensor(index))


def fill(module, rng):
    for p in module.parameters():
        nn.init.constant_(p, 0.0)
        p.data += torch.tensor(rng.normal(0.0, 0.4, tuple(p.shape)), dtype=p.dtype)


def main():
    rng = np.random.default_rng(6)
    target = Target().double()
    for p in target.parameters():
        p.requires_grad_(False)
    hyper = HyperNetwork(target, code_size=3).double()
    codes = Codes(3, 3).double()
    fill(hyper, rng)
    fill(codes, rng)
    x = torch.linspace(-1, 1, 7, dtype=torch.float64).unsqueeze(1)
    tasks = [torch.sin(2 * x), x**2, -x]
    optimizer = torch.optim.Adam(
        [
            {"params": hyper.parameters(), "lr": 0.02},
            {"params": codes.parameters(), "lr": 0.1},
        ]
    )
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        total = torch.zeros((), dtype=torch.float64)
        for index, y in enumerate(tasks):
            weights = hyper(codes(index))
            prediction = functional_call(target, weights, (x,))
            total = total + nn.functional.mse_loss(prediction, y)
        total.backward()
        optimizer.step()
        losses.append(total.item())
    with torch.no_grad():
        between = (codes(0) + codes(1)) / 2
        blended = functional_call(target, hyper(between), x)
    return {
        "losses": np.array(losses),
        "codes": codes.table.weight.detach().numpy(),
        "blended": blended.squeeze(1).numpy(),
        "names": sorted(hyper.state_dict()),
        "frozen": all(p.grad is None for p in target.parameters()),
    }
