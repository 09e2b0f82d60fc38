"""Hypernetwork in dictionaries of modules: the weights of one network from another."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 4)
        self.fc2 = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc2(torch.sin(self.fc1(x)))


class HyperNet(nn.Module):
    def __init__(self, z_dim, target):
        super().__init__()
        self.shapes = {n: tuple(p.shape) for n, p in target.named_parameters()}
        self.heads = nn.ModuleDict(
            {n.replace(".", "_"): nn.Linear(z_dim, int(np.prod(s))) for n, s in self.shapes.items()}
        )
        self.z = nn.ParameterDict(
            {"a": nn.Parameter(torch.ones(z_dim)), "b": nn.Parameter(-torch.ones(z_dim))}
        )

    def forward(self, key):
        return {
            n: self.heads[n.replace(".", "_")](self.z[key]).view(*s) for n, s in self.shapes.items()
        }


def main():
    rng = np.random.default_rng(4)
    target = Target()
    for p in target.parameters():
        p.requires_grad_(False)
    hyper = HyperNet(3, target)
    vec = torch.tensor(
        rng.normal(0, 0.4, sum(p.numel() for p in hyper.parameters())), dtype=torch.float
    )
    vector_to_parameters(vec, hyper.parameters())
    optimizer = torch.optim.Adagrad(hyper.parameters(), lr=0.1)
    x = torch.tensor(rng.normal(size=(20, 2)), dtype=torch.float32)
    ys = {"a": x.sum(1, keepdim=True), "b": (x[:, :1] * x[:, 1:])}
    losses = []
    for _step in range(8):
        optimizer.zero_grad(set_to_none=False)
        loss = sum(
            F.smooth_l1_loss(functional_call(target, hyper(k), x), ys[k], beta=0.5) for k in hyper.z
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return (
        losses,
        parameters_to_vector(hyper.parameters())[:10],
        len(list(hyper.heads.items())),
        [k for k, _ in hyper.named_parameters()],
    )
