"""Newton's method with conjugate gradients: Hessian-vector products, never a Hessian."""

import numpy as np
import torch
from torch.autograd.functional import hvp


class LogisticRegression:
    def __init__(self, x, y, penalty):
        self.x, self.y, self.penalty = x, y, penalty

    def __call__(self, w):
        margins = self.y * (self.x @ w)
        return torch.log1p(torch.exp(-margins)).mean() + 0.5 * self.penalty * w.dot(w)


def conjugate_gradients(product, b, steps, tolerance=1e-10):
    x = torch.zeros_like(b)
    r = b.clone()
    p = r.clone()
    rr = r @ r
    for _ in range(steps):
        if rr.sqrt() < tolerance:
            break
        hp = product(p)
        alpha = rr / (p @ hp)
        x += alpha * p
        r -= alpha * hp
        rr_new = r @ r
        p = r + (rr_new / rr) * p
        rr = rr_new
    return x


def hvp_by_double_backward(loss, w, v):
    w = w.detach().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(w), w, create_graph=True)
    (product,) = torch.autograd.grad(gradient, w, grad_outputs=v)
    return product


def hvp_forward_over_reverse(loss, w, v):
    return torch.func.jvp(torch.func.grad(loss), (w,), (v,))[1]


def line_search(loss, w, direction, slope):
    rate, start = 1.0, loss(w)
    while loss(w + rate * direction) > start + 1e-4 * rate * slope and rate > 1e-6:
        rate /= 2
    return rate


def newton(loss, w, iterations):
    norms, rates = [], []
    for _ in range(iterations):
        leaf = w.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(loss(leaf), leaf)
        norms.append(gradient.norm().item())
        direction = conjugate_gradients(
            lambda v, w=w: hvp_by_double_backward(loss, w, v), -gradient, steps=10
        )
        rate = line_search(loss, w, direction, (gradient @ direction).item())
        rates.append(rate)
        w = w + rate * direction
    return w, norms, rates


def main():
    rng = np.random.default_rng(10)
    x = torch.tensor(rng.normal(size=(20, 4)))
    true = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64)
    y = torch.sign(x @ true + 0.3 * torch.tensor(rng.normal(size=20)))
    loss = LogisticRegression(x, y, penalty=0.1)
    w = torch.zeros(4, dtype=torch.float64)
    w, norms, rates = newton(loss, w, iterations=5)
    v = torch.tensor([1.0, 2.0, -1.0, 0.5], dtype=torch.float64)
    products = torch.stack(
        [
            hvp_by_double_backward(loss, w, v),
            hvp_forward_over_reverse(loss, w, v),
            hvp(loss, w, v)[1],
            torch.func.hessian(loss)(w) @ v,
        ]
    )
    return {
        "w": w.numpy(),
        "converged": norms[-1] < 1e-8,
        "norms": np.array(norms[:3]),
        "rates": rates,
        "products": products.numpy(),
    }
