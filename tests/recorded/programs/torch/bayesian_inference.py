"""Bayesian layers, Hamiltonian Monte Carlo, and transforms of constrained parameters."""

import math

import numpy as np
import torch
import torch.distributions as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import biject_to, constraints, kl, transform_to


class BayesLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mu = nn.Parameter(torch.zeros(o, i))
        self.rho = nn.Parameter(torch.full((o, i), -3.0))

    def forward(self, x, eps):
        sigma = torch.log1p(torch.exp(self.rho))
        w = self.mu + sigma * eps
        self.kl = kl.kl_divergence(dist.Normal(self.mu, sigma), dist.Normal(0.0, 1.0)).sum()
        return F.linear(x, w)


def hmc(logp, q, rngs, step=0.1, L=5):
    samples, acc = [], 0
    for p0, u in rngs:
        p = torch.as_tensor(p0, dtype=q.dtype)
        qn = q.clone()
        h0 = -logp(q) + 0.5 * p.pow(2).sum()

        def g(q):
            q = q.detach().requires_grad_()
            return torch.autograd.grad(logp(q), q)[0]

        p = p + 0.5 * step * g(qn)
        for i in range(L):
            qn = qn + step * p
            if i != L - 1:
                p = p + step * g(qn)
        p = p + 0.5 * step * g(qn)
        h1 = -logp(qn) + 0.5 * p.pow(2).sum()
        if math.log(u) < (h0 - h1).item():
            q, acc = qn, acc + 1
        samples.append(q)
    return torch.stack(samples), acc


class ELBO:
    def __init__(self, x):
        self.x = x
        self.a, self.b = (torch.tensor(1.0, requires_grad=True) for _ in range(2))

    def __call__(self):
        q = dist.Beta(F.softplus(self.a), F.softplus(self.b))
        prior = dist.Beta(2.0, 2.0)
        z = q.mean
        return dist.Bernoulli(probs=z).log_prob(self.x).sum() - dist.kl_divergence(q, prior)


def main():
    rng = np.random.default_rng(36)
    net = BayesLinear(3, 1)
    x = torch.tensor(rng.normal(size=(10, 3)), dtype=torch.float32)
    y = x @ torch.tensor([[1.0], [-1.0], [0.5]])
    opt = torch.optim.RAdam(net.parameters(), lr=0.005)
    hist = []
    for _i in range(6):
        eps = torch.tensor(rng.normal(size=(1, 3))).float()
        nll = -dist.Normal(net(x, eps), 3.0).log_prob(y).sum()
        loss = nll + net.kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        hist.append(loss.item())
    rngs = [(rng.normal(size=2), rng.random()) for _ in range(6)]
    cov = torch.tensor([[1.0, 0.8], [0.8, 1.0]])
    s, acc = hmc(
        dist.MultivariateNormal(torch.zeros(2), cov).log_prob, torch.tensor([1.0, -1.0]), rngs
    )
    e = ELBO(torch.tensor([1.0, 1.0, 0.0, 1.0]))
    o = torch.optim.Rprop([e.a, e.b], lr=0.1)
    for _ in range(4):
        o.zero_grad()
        loss = -e()
        loss.backward()
        o.step()
        hist.append(loss.item())
    ds = [
        dist.Gamma(2.0, 3.0),
        dist.Dirichlet(torch.tensor([1.0, 2.0, 3.0])),
        dist.Poisson(torch.tensor([2.0, 4.0])),
        dist.Laplace(0.0, 2.0),
        dist.StudentT(5.0),
        dist.LogNormal(0.0, 1.0),
        dist.Exponential(2.0),
        dist.Uniform(0.0, 3.0),
        dist.Geometric(0.3),
        dist.Binomial(5, torch.tensor(0.4)),
        dist.OneHotCategorical(logits=torch.zeros(3)),
        dist.Gumbel(0.0, 1.0),
        dist.HalfNormal(1.0),
        dist.Cauchy(0.0, 1.0),
        dist.Multinomial(4, torch.tensor([0.2, 0.3, 0.5])),
        dist.NegativeBinomial(3.0, 0.5),
        dist.Weibull(1.0, 2.0),
    ]
    vals = [
        torch.tensor(0.7),
        torch.tensor([0.2, 0.3, 0.5]),
        torch.tensor([1.0, 3.0]),
        torch.tensor(0.7),
        torch.tensor(0.7),
        torch.tensor(0.7),
        torch.tensor(0.7),
        torch.tensor(0.7),
        torch.tensor(2.0),
        torch.tensor(2.0),
        torch.tensor([0.0, 1.0, 0.0]),
        torch.tensor(0.7),
        torch.tensor(0.7),
        torch.tensor(0.7),
        torch.tensor([1.0, 1.0, 2.0]),
        torch.tensor(2.0),
        torch.tensor(0.7),
    ]
    lps = [d.log_prob(v) for d, v in zip(ds, vals, strict=False)]
    shapes = [d.sample((2,)).shape for d in ds]
    rs = [d.rsample().shape for d in ds if d.has_rsample]
    means = [d.mean for d in ds[:8]]
    tr = (
        transform_to(constraints.positive)(torch.tensor([0.0])),
        biject_to(constraints.simplex)(torch.zeros(2)),
        biject_to(constraints.interval(0.0, 2.0)).inv(torch.tensor(0.5)),
    )
    pe = dist.RelaxedOneHotCategorical(torch.tensor(0.5), logits=torch.zeros(3)).rsample().sum()
    ent = [ds[i].entropy() for i in (0, 1, 3, 6, 7)]
    gs = F.gumbel_softmax(torch.zeros(4, 3), tau=0.5, hard=True).sum(1)
    return (
        hist,
        s,
        acc,
        lps,
        shapes,
        rs,
        means,
        tr,
        pe,
        ent,
        gs,
        dist.Normal(0.0, 1.0).cdf(torch.tensor(1.0)),
        dist.Normal(0.0, 1.0).icdf(torch.tensor(0.9)),
        ds[0].support is constraints.positive or str(ds[0].support),
    )
