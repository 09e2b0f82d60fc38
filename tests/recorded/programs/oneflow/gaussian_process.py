"""Hyperparameters of a Gaussian process by gradients of the marginal likelihood.

The twin is this text with torch in place of oneflow.
"""

import math

import numpy as np
import oneflow as flow


class Kernel:
    """Squared exponential kernel with logarithms of its parameters."""

    def __init__(self):
        self.log_length = flow.tensor(0.0, dtype=flow.float64, requires_grad=True)
        self.log_scale = flow.tensor(0.0, dtype=flow.float64, requires_grad=True)
        self.log_noise = flow.tensor(-2.0, dtype=flow.float64, requires_grad=True)

    def parameters(self):
        return [self.log_length, self.log_scale, self.log_noise]

    def __call__(self, a, b):
        distance = (a.unsqueeze(1) - b.unsqueeze(0)) / self.log_length.exp()
        return flow.exp(2 * self.log_scale) * flow.exp(-0.5 * distance**2)

    def noisy(self, x):
        noise = flow.exp(2 * self.log_noise) * flow.eye(len(x), dtype=x.dtype)
        return self(x, x) + noise


def negative_log_likelihood(kernel, x, y):
    factor = flow.linalg.cholesky(kernel.noisy(x))
    half = flow.linalg.solve_triangular(factor, y.unsqueeze(1), upper=False)
    fit = 0.5 * half.pow(2).sum()
    volume = flow.log(flow.diagonal(factor)).sum()
    return fit + volume + 0.5 * len(x) * math.log(2 * math.pi)


def predict(kernel, x, y, new):
    covariance = kernel.noisy(x)
    cross = kernel(new, x)
    mean = cross @ flow.linalg.solve(covariance, y)
    reduction = cross @ flow.linalg.solve(covariance, cross.T)
    return mean, (kernel(new, new) - reduction).diagonal()


def hessian(function, parameters):
    gradients = flow.autograd.grad(function(), parameters, create_graph=True)
    rows = []
    for g in gradients:
        row = flow.autograd.grad(g, parameters, retain_graph=True)
        rows.append(flow.stack(list(row)))
    return flow.stack(rows)


def main():
    rng = np.random.default_rng(2)
    x = flow.tensor(np.sort(rng.uniform(0.0, 5.0, 8)))
    y = flow.sin(x) + 0.1 * flow.tensor(rng.normal(size=8))
    kernel = Kernel()
    optimizer = flow.optim.Adam(kernel.parameters(), lr=0.1)
    history = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = negative_log_likelihood(kernel, x, y)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    with flow.no_grad():
        mean, variance = predict(kernel, x, y, flow.tensor([1.0, 2.5], dtype=flow.float64))
    curvature = hessian(lambda: negative_log_likelihood(kernel, x, y), kernel.parameters())
    return {
        "history": np.array(history),
        "parameters": np.array([p.item() for p in kernel.parameters()]),
        "mean": mean.numpy(),
        "variance": variance.numpy(),
        "curvature": curvature.numpy(),
    }
