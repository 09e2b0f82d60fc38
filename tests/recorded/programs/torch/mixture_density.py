"""Mixture density network; further derivatives of a graph that was used up in part."""

import math

import numpy as np
import torch
import torch.distributions as D
import torch.nn as nn


class MDN(nn.Module):
    def __init__(self, n_hidden, n_gaussians):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        pi = nn.functional.softmax(self.z_pi(z_h), -1)
        sigma = torch.exp(self.z_sigma(z_h))
        mu = self.z_mu(z_h)
        return pi, sigma, mu


ONEOVERSQRT2PI = 1.0 / math.sqrt(2 * math.pi)


def gaussian_distribution(y, mu, sigma):
    result = (y.expand_as(mu) - mu) * torch.reciprocal(sigma)
    result = -0.5 * (result * result)
    return (torch.exp(result) * torch.reciprocal(sigma)) * ONEOVERSQRT2PI


def mdn_loss_fn(pi, sigma, mu, y):
    result = gaussian_distribution(y, mu, sigma) * pi
    result = torch.sum(result, dim=1)
    return torch.mean(-torch.log(result))


def mixture(pi, sigma, mu):
    return D.MixtureSameFamily(D.Categorical(probs=pi), D.Normal(mu, sigma))


def main():
    rng = np.random.default_rng(15)
    net = MDN(8, 3)
    it = iter([torch.tensor(rng.normal(0, 0.5, p.shape), dtype=p.dtype) for p in net.parameters()])
    for p in net.parameters():
        p.data = next(it)
    x = torch.linspace(-3, 3, 30).view(-1, 1)
    y = 7.0 * torch.sin(0.75 * x) + 0.5 * x + torch.tensor(rng.normal(size=(30, 1))).float()
    opt = torch.optim.Adam(net.parameters())
    hist = []
    for _epoch in range(6):
        pi, sigma, mu = net(x)
        loss = mdn_loss_fn(pi, sigma, mu, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hist.append(loss.data.tolist())
    m = mixture(pi, sigma, mu)
    nll = -m.log_prob(y.squeeze(1)).mean()
    mean, var = m.mean, m.variance
    s = m.sample((5,))
    k = torch.multinomial(pi, 1).view(-1)
    y_pred = torch.normal(mu, sigma)[range(30), k]
    idx = pi.argmax(1)
    best = mu.gather(1, idx.unsqueeze(1)).squeeze()
    lse = torch.logsumexp(torch.log(pi) + D.Normal(mu, sigma).log_prob(y), dim=1)
    g = torch.autograd.grad(nll, mu, retain_graph=True)[0]
    return (
        hist,
        nll,
        mean[:4],
        var[:4],
        s.shape,
        y_pred.data.shape,
        best[:5],
        lse[:4],
        g[:3],
        m.cdf(torch.zeros(30))[:4],
    )
