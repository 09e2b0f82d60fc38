"""A Wasserstein GAN on points of a plane, whose critic is trained with a gradient penalty."""

import numpy as np
import torch
from torch import autograd, nn, optim

LATENT, HIDDEN = 2, 8


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(LATENT, HIDDEN),
            nn.LeakyReLU(0.2),
            nn.Linear(HIDDEN, 2),
        )

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, HIDDEN),
            nn.Tanh(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.Softplus(),
            nn.Linear(HIDDEN, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def gradient_penalty(critic, real, fake, mix):
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    scores = critic(between)
    (gradient,) = autograd.grad(
        outputs=scores,
        inputs=between,
        grad_outputs=torch.ones_like(scores),
        create_graph=True,
        retain_graph=True,
    )
    return ((gradient.norm(2, dim=1) - 1) ** 2).mean()


def initialize(module, rng):
    with torch.no_grad():
        for p in module.parameters():
            p.data = torch.as_tensor(rng.normal(0.0, 0.5, tuple(p.shape)))


def sample(rng, count):
    angle = rng.uniform(0.0, 2 * np.pi, count)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return torch.tensor(points + rng.normal(0.0, 0.05, points.shape))


def main():
    rng = np.random.default_rng(1)
    generator, critic = Generator().double(), Critic().double()
    initialize(generator, rng)
    initialize(critic, rng)
    opt_g = optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.9))
    opt_c = optim.Adam(critic.parameters(), lr=1e-2, betas=(0.5, 0.9))
    distances, penalties = [], []
    for _ in range(4):
        for p in critic.parameters():
            p.requires_grad = True
        for _ in range(2):
            real = sample(rng, 12)
            z = torch.tensor(rng.normal(size=(12, LATENT)))
            fake = generator(z).detach()
            mix = torch.tensor(rng.uniform(size=(12, 1)))
            opt_c.zero_grad(set_to_none=True)
            penalty = gradient_penalty(critic, real, fake, mix)
            distance = critic(real).mean() - critic(fake).mean()
            (-distance + 10.0 * penalty).backward()
            opt_c.step()
            distances.append(distance.item())
            penalties.append(penalty.item())
        for p in critic.parameters():
            p.requires_grad = False
        opt_g.zero_grad()
        loss = -critic(generator(torch.tensor(rng.normal(size=(12, LATENT))))).mean()
        loss.backward()
        opt_g.step()
    with torch.no_grad():
        points = generator(torch.tensor(rng.normal(size=(3, LATENT))))
    return {
        "distances": np.array(distances),
        "penalties": np.array(penalties),
        "loss": loss.item(),
        "points": points.numpy(),
    }
