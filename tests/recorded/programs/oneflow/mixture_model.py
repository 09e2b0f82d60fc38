"""A mixture of Gaussians by gradients of the likelihood, against the EM algorithm.

The twin is this text with torch in place of oneflow.
"""

import math

import numpy as np
import oneflow as flow
from oneflow import nn


class Mixture(nn.Module):
    def __init__(self, means):
        super().__init__()
        self.logits = nn.Parameter(flow.zeros(len(means), dtype=flow.float64))
        self.means = nn.Parameter(flow.tensor(means, dtype=flow.float64))
        self.log_scales = nn.Parameter(flow.zeros(len(means), dtype=flow.float64))

    def joint(self, x):
        z = (x.unsqueeze(1) - self.means) / self.log_scales.exp()
        density = -0.5 * z**2 - self.log_scales - 0.5 * math.log(2 * math.pi)
        return density + flow.log_softmax(self.logits, dim=0)

    def log_prob(self, x):
        return flow.logsumexp(self.joint(x), dim=1)

    def responsibilities(self, x):
        return flow.softmax(self.joint(x), dim=1)


@flow.no_grad()
def em_step(model, x):
    r = model.responsibilities(x)
    weight = r.sum(dim=0)
    means = (r * x.unsqueeze(1)).sum(dim=0) / weight
    variances = (r * (x.unsqueeze(1) - means) ** 2).sum(dim=0) / weight
    model.logits.copy_((weight / len(x)).log())
    model.means.copy_(means)
    model.log_scales.copy_(0.5 * variances.log())
    return -model.log_prob(x).mean().item()


def fit_by_gradients(model, x, steps):
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -model.log_prob(x).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def information(model, x):
    """The empirical Fisher information of the means: products of scores."""
    scores = []
    for value in model.log_prob(x):
        (score,) = flow.autograd.grad(value, model.means, retain_graph=True)
        scores.append(score)
    scores = flow.stack(scores)
    return scores.T @ scores / len(x)


def main():
    rng = np.random.default_rng(11)
    x = np.concatenate([rng.normal(-2.0, 0.5, 8), rng.normal(1.0, 1.0, 12)])
    x = flow.tensor(x)
    by_gradients, by_em = Mixture([-1.0, 0.5]), Mixture([-1.0, 0.5])
    losses = fit_by_gradients(by_gradients, x, steps=8)
    em = [em_step(by_em, x) for _ in range(8)]
    return {
        "losses": np.array(losses),
        "em": np.array(em),
        "means": flow.stack([by_gradients.means, by_em.means]).detach().numpy(),
        "weights": flow.softmax(by_em.logits, dim=0).detach().numpy(),
        "information": information(by_em, x).numpy(),
        "assigned": by_em.responsibilities(x).argmax(dim=1).tolist(),
    }
