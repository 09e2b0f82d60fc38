"""Learning rates and momentum learned by gradients through an unrolled optimizer."""

import numpy as np
import torch


def make_problem(rng, size):
    root = rng.normal(size=(size, size))
    matrix = root @ root.T / size + 0.5 * np.eye(size)
    return torch.tensor(matrix), torch.tensor(rng.normal(size=size))


def quadratic(matrix, vector, w):
    return 0.5 * w @ matrix @ w - vector @ w


class UnrolledSGD:
    """Gradient descent with a learned rate for each parameter and a learned momentum."""

    def __init__(self, size):
        self.log_rates = torch.full((size,), -2.0, dtype=torch.float64, requires_grad=True)
        self.raw_momentum = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)

    def parameters(self):
        return [self.log_rates, self.raw_momentum]

    def run(self, loss, w, steps):
        velocity = torch.zeros_like(w)
        trajectory = []
        for _ in range(steps):
            value = loss(w)
            (gradient,) = torch.autograd.grad(value, w, create_graph=True)
            velocity = torch.sigmoid(self.raw_momentum) * velocity + gradient
            w = w - self.log_rates.exp() * velocity
            trajectory.append(loss(w))
        return w, torch.stack(trajectory)


def implicit_gradient(matrix, w, outer):
    """The gradient of `outer` at the minimum by the matrix, through the linear system."""
    (seed,) = torch.autograd.grad(outer(w), w)
    solution = torch.linalg.solve(matrix, seed)
    return -torch.outer(solution, w.detach())


def main():
    rng = np.random.default_rng(7)
    matrix, vector = make_problem(rng, 4)
    optimizer = UnrolledSGD(4)
    meta = torch.optim.Adam(optimizer.parameters(), lr=0.1)
    history = []
    for _ in range(5):
        w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
        w, losses = optimizer.run(lambda w: quadratic(matrix, vector, w), w, steps=4)
        meta_loss = losses.sum() + losses[-1]
        meta.zero_grad()
        meta_loss.backward()
        meta.step()
        history.append(meta_loss.item())

    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    _, losses = optimizer.run(lambda w: quadratic(matrix, vector, w), w, steps=3)
    gradient = torch.autograd.grad(losses[-1], optimizer.log_rates, create_graph=True)[0]
    curvature = torch.autograd.grad(gradient.sum(), optimizer.log_rates)[0]

    best = torch.linalg.solve(matrix, vector).requires_grad_(True)
    implicit = implicit_gradient(matrix, best, lambda w: (w**3).sum())
    a = matrix.clone().requires_grad_(True)
    (torch.linalg.solve(a, vector) ** 3).sum().backward()
    return {
        "history": np.array(history),
        "log_rates": optimizer.log_rates.detach().numpy(),
        "momentum": torch.sigmoid(optimizer.raw_momentum).item(),
        "curvature": curvature.numpy(),
        "implicit": implicit.numpy(),
        "through_solve": a.grad.numpy(),
    }
