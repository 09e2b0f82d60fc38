"""Conditional GAN with spectral normalization, hinge loss and a mean generator."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm


class Generator(nn.Module):
    def __init__(self, z=4, classes=2):
        super().__init__()
        self.embed = nn.Embedding(classes, 4)
        self.fc = nn.Linear(z + 4, 4 * 3 * 3)
        self.net = nn.Sequential(
            nn.ConvTranspose2d(4, 3, 4, stride=2, padding=1),
            nn.InstanceNorm2d(3, affine=True),
            nn.ReLU(True),
            nn.Conv2d(3, 1, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, z, y):
        h = self.fc(torch.cat((z, self.embed(y)), -1))
        return self.net(h.view(-1, 4, 3, 3))


class Discriminator(nn.Module):
    def __init__(self, classes=2, sn=spectral_norm):
        super().__init__()
        self.conv1 = sn(nn.Conv2d(1, 4, 3, stride=2, padding=1))
        self.conv2 = sn(nn.Conv2d(4, 6, 3, stride=1, padding=1))
        self.linear = sn(nn.Linear(6, 1))
        self.embed = nn.Embedding(classes, 6)

    def forward(self, x, y):
        h = F.leaky_relu(self.conv1(x), 0.1)
        h = F.leaky_relu(self.conv2(h), 0.1, inplace=True)
        h = h.sum(dim=(2, 3))
        return self.linear(h).squeeze(1) + (self.embed(y) * h).sum(1)


def init(model, seed):
    rng = np.random.default_rng(seed)
    for p in model.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)) * 0.3).float()
    for name, b in model.named_buffers():
        if name.endswith(("_u", "_v")):
            b.copy_(F.normalize(torch.from_numpy(rng.normal(size=tuple(b.shape))).float(), dim=0))


def d_hinge(real, fake):
    return F.relu(1.0 - real).mean() + F.relu(1.0 + fake).mean()


def r1(d, x, y):
    x = x.detach().requires_grad_(True)
    (grad,) = torch.autograd.grad(d(x, y).sum(), x, create_graph=True)
    return grad.pow(2).flatten(1).sum(1).mean()


def main():
    rng = np.random.default_rng(5)
    G, D = Generator(), Discriminator()
    init(G, 1)
    init(D, 2)
    avg = copy.deepcopy(G).requires_grad_(False)
    og = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.0, 0.9))
    od = torch.optim.Adam(D.parameters(), lr=4e-3, betas=(0.0, 0.9))
    real = torch.from_numpy(np.tanh(rng.normal(size=(8, 1, 6, 6)) + np.linspace(-1, 1, 6))).float()
    labels = torch.from_numpy(rng.integers(0, 2, 8))
    log = []
    for _it in range(5):
        for _ in range(2):
            z = torch.from_numpy(rng.normal(size=(8, 4))).float()
            with torch.no_grad():
                fake = G(z, labels)
            loss_d = d_hinge(D(real, labels), D(fake, labels)) + 0.1 * r1(D, real, labels)
            od.zero_grad()
            loss_d.backward()
            od.step()
        for p in D.parameters():
            p.requires_grad_(False)
        z = torch.from_numpy(rng.normal(size=(8, 4))).float()
        loss_g = -D(G(z, labels), labels).mean()
        og.zero_grad()
        loss_g.backward()
        og.step()
        for p in D.parameters():
            p.requires_grad_(True)
        with torch.no_grad():
            for a, b in zip(avg.parameters(), G.parameters(), strict=False):
                a.lerp_(b, 0.1)
        log.append((loss_d.item(), loss_g.item()))
    D.eval()
    sigma = torch.linalg.matrix_norm(D.linear.weight, 2)
    return (
        log,
        sigma,
        D(real, labels),
        avg(z, labels).mean((1, 2, 3)),
        sorted(D.state_dict())[:6],
        D.conv1.weight_u,
    )
