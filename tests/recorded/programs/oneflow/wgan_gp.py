"""A Wasserstein GAN with gradient penalty and an average of the generator's weights.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import autograd, nn, optim


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf, 2, 1, 0, bias=False),
            nn.GroupNorm(2, ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


class Critic(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 3, 2, 1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf, 2),
            nn.ELU(),
            nn.Flatten(),
            nn.Linear(ndf, 1),
        )

    def forward(self, x):
        return self.main(x).view(-1)


def weights_init(rng):
    def init(m):
        classname = m.__class__.__name__
        if classname.find("Conv") != -1 or classname.find("Linear") != -1:
            m.weight.data.copy_(
                flow.tensor(rng.normal(0, 0.4, tuple(m.weight.shape)), dtype=flow.float64)
            )
            if m.bias is not None:
                m.bias.data.fill_(0.1)

    return init


def gradient_penalty(critic, real, fake, eps):
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mixed)
    grad = autograd.grad(
        outputs=score,
        inputs=mixed,
        grad_outputs=flow.ones_like(score),
        create_graph=True,
        retain_graph=True,
    )[0]
    grad = grad.reshape(grad.size(0), -1)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def main():
    rng = np.random.default_rng(19)
    G, D = Generator(3, 4).double(), Critic(3).double()
    G.apply(weights_init(rng))
    D.apply(weights_init(rng))
    opt_g = optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.9))
    opt_d = optim.Adam(D.parameters(), lr=2e-3)
    ema = {k: v.clone() for k, v in G.state_dict().items()}
    rows = []
    for step in range(3):
        for p in D.parameters():
            p.requires_grad = True
        for _ in range(2):
            real = flow.from_numpy(rng.uniform(-1, 1, (5, 1, 4, 4)).astype(np.float64))
            z = flow.from_numpy(rng.normal(size=(5, 3, 1, 1)).astype(np.float64))
            eps = flow.from_numpy(rng.uniform(size=(5, 1, 1, 1)).astype(np.float64))
            with flow.no_grad():
                fake = G(z)
            opt_d.zero_grad(set_to_none=True)
            gp = gradient_penalty(D, real, fake, eps)
            d_loss = D(fake).mean() - D(real).mean() + 10 * gp
            d_loss.backward()
            opt_d.step()
        for p in D.parameters():
            p.requires_grad = False
        opt_g.zero_grad()
        g_loss = -D(G(z)).mean()
        g_loss.backward()
        opt_g.step()
        for k, v in G.state_dict().items():
            ema[k].mul_(0.9).add_(v, alpha=0.1)
        rows.append([d_loss.item(), g_loss.item(), gp.item()])
        print(f"[{step}/3] Loss_D: {rows[-1][0]:.4f} Loss_G: {rows[-1][1]:.4f}")
    G.load_state_dict(ema)
    with flow.no_grad():
        image = G(flow.ones(1, 3, 1, 1).double())
    return {
        "rows": rows,
        "image": image.numpy(),
        "none": [p.grad is None for p in D.parameters()],
        "lr": opt_g.param_groups[0]["lr"],
        "state": sorted(opt_g.state_dict()["state"][0]),
    }
