"""A variational autoencoder with an enumerated category and annealed divergences.

The twin is this text with torch in place of oneflow.
"""

import math

import numpy as np
import oneflow as flow
from oneflow import nn
from oneflow.nn import functional as F


class VAE(nn.Module):
    def __init__(self, d=6, h=5, z=2, k=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.SiLU(), nn.LayerNorm(h))
        self.mu, self.logvar, self.cat = nn.Linear(h, z), nn.Linear(h, z), nn.Linear(h, k)
        self.emb = nn.Embedding(k, z)
        self.dec = nn.Sequential(nn.Linear(z, h), nn.Hardswish(), nn.Linear(h, d))
        self.register_buffer("prior", flow.full((k,), 1 / k).log())

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h).clamp(min=-4, max=4), F.log_softmax(self.cat(h), dim=-1)

    def loss(self, x, noise, beta):
        mu, logvar, logq = self.encode(x)
        z = mu + flow.exp(0.5 * logvar) * noise
        recon = 0.0
        for k in range(logq.size(-1)):
            code = self.emb(flow.full((x.size(0),), k, dtype=flow.long))
            bce = F.binary_cross_entropy_with_logits(self.dec(z + code), x, reduction="none").sum(
                -1
            )
            recon = recon + (logq[:, k].exp() * bce).mean()
        kl = -0.5 * flow.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
        klc = (logq.exp() * (logq - self.prior)).sum(-1).mean()
        return recon + beta * (kl + klc), recon, kl, klc


def main():
    rng = np.random.default_rng(6)
    model = VAE()
    for p in model.parameters():
        p.data = flow.tensor(rng.normal(0, 0.4, tuple(p.shape)), dtype=flow.float32)
    x = flow.tensor((rng.uniform(size=(9, 6)) > 0.5).astype("float32"))
    opt = flow.optim.Adagrad(model.parameters(), lr=0.1, lr_decay=0.01)
    sched = flow.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    rows = []
    for epoch in range(5):
        noise = flow.tensor(rng.normal(size=(9, 2)), dtype=flow.float32)
        opt.zero_grad()
        terms = model.loss(x, noise, beta=min(1.0, epoch / 3))
        terms[0].backward()
        opt.step()
        sched.step()
        rows.append([t.item() for t in terms] + [sched.get_last_lr()[0]])
    model.eval()
    with flow.no_grad():
        mu, logvar, logq = model.encode(x[:3])
    print(mu.shape, logq.argmax(dim=-1).tolist(), math.isfinite(rows[-1][0]))
    print(model.state_dict()["prior"])
    return {"rows": rows, "mu": mu.numpy(), "var": logvar.exp().numpy(), "logq": logq.numpy()}
