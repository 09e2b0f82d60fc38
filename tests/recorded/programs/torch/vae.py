"""A variational autoencoder with the reparameterization trick and a warm-up of the KL term."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, features, hidden, latent):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, hidden), nn.ELU())
        self.to_mean = nn.Linear(hidden, latent)
        self.to_logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden),
            nn.ELU(),
            nn.Linear(hidden, features),
        )

    def encode(self, x):
        h = self.encoder(x)
        return self.to_mean(h), self.to_logvar(h)

    def reparameterize(self, mean, logvar, noise):
        if not self.training:
            return mean
        return mean + torch.exp(0.5 * logvar) * noise

    def forward(self, x, noise):
        mean, logvar = self.encode(x)
        z = self.reparameterize(mean, logvar, noise)
        return self.decoder(z), mean, logvar


def elbo(logits, x, mean, logvar, weight):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
    return (reconstruction + weight * divergence) / x.size(0), divergence


def make_data(rng, count, features):
    patterns = (rng.uniform(size=(3, features)) > 0.5).astype(float)
    chosen = patterns[rng.integers(0, 3, count)]
    flips = rng.uniform(size=chosen.shape) < 0.1
    return torch.tensor(np.where(flips, 1 - chosen, chosen))


def initialize(model, rng):
    state = model.state_dict()
    for name, value in state.items():
        state[name] = torch.tensor(rng.normal(0.0, 0.3, tuple(value.shape)))
    model.load_state_dict(state)


def main():
    rng = np.random.default_rng(5)
    features, latent = 10, 2
    x = make_data(rng, 20, features)
    model = VAE(features, 8, latent).double()
    initialize(model, rng)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    losses, divergences = [], []
    for epoch in range(6):
        model.train()
        weight = min(1.0, epoch / 4)
        for batch in x.split(10):
            noise = torch.from_numpy(rng.normal(size=(len(batch), latent)))
            optimizer.zero_grad()
            logits, mean, logvar = model(batch, noise)
            loss, divergence = elbo(logits, batch, mean, logvar, weight)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)
            optimizer.step()
        losses.append(loss.item())
        divergences.append(divergence.item())
    model.eval()
    with torch.no_grad():
        logits, mean, logvar = model(x[:3], None)
        drawn = torch.sigmoid(model.decoder(torch.tensor([[0.5, -0.5]]).double()))
    return {
        "losses": np.array(losses),
        "divergences": np.array(divergences),
        "mean": mean.numpy(),
        "variance": logvar.exp().numpy(),
        "drawn": drawn.numpy(),
    }
