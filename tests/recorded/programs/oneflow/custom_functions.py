"""Custom functions with second derivatives, tensor hooks, retained gradients, and modes.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import autograd, nn


class Swish(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * flow.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = flow.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class Reverse(autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return -ctx.scale * grad, None


class Adversarial(nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.task, self.domain = nn.Linear(4, 2), nn.Linear(4, 2)
        for p in self.parameters():
            p.data = flow.tensor(rng.normal(0, 0.5, p.shape), dtype=flow.float64)

    def forward(self, x, scale):
        h = Swish.apply(self.body(x))
        return self.task(h), self.domain(Reverse.apply(h, scale))


def main():
    rng = np.random.default_rng(9)
    model = Adversarial(rng)
    x = flow.tensor(rng.normal(size=(6, 3)))
    y, d = flow.tensor(rng.integers(0, 2, 6)), flow.tensor(rng.integers(0, 2, 6))
    opt = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    losses = []
    for step in range(3):
        task, domain = model(x, 0.1 * step)
        loss = nn.functional.cross_entropy(task, y) + nn.functional.cross_entropy(domain, d)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    v = flow.tensor([0.5, -1.0, 2.0], dtype=flow.float64, requires_grad=True)
    z = Swish.apply(v)
    (g,) = autograd.grad(z.sum(), v, create_graph=True)
    (gg,) = autograd.grad(g.sum(), v, create_graph=True)
    log = []
    h = v * 3
    h.retain_grad()
    h.register_hook(lambda grad: log.append(grad.clone()))
    remove = v.register_hook(lambda grad: grad * 2)
    (h.pow(2)).sum().backward(retain_graph=True)
    first = v.grad.clone()
    remove.remove()
    (h.pow(2)).sum().backward()
    with flow.no_grad():
        w = v * 2
        with flow.enable_grad():
            u = v * 2
    with flow.set_grad_enabled(False):
        t = v + 1
    leaf = flow.ones(2, requires_grad=True)
    leaf.grad = flow.full((2,), 5.0)
    (leaf * 3).sum().backward()
    vec = leaf * leaf
    vec.backward(flow.tensor([1.0, 10.0]))
    try:
        vec2 = leaf * 2
        vec2.backward()
    except RuntimeError as error:
        print("scalar outputs" in str(error))
    try:
        s = (leaf * leaf).sum()
        s.backward()
        s.backward()
    except RuntimeError as error:
        print("second time" in str(error))
    print(v.is_leaf, h.is_leaf, h.grad_fn is not None, v.grad_fn, w.requires_grad, u.requires_grad)
    return {
        "losses": losses,
        "g": g.detach().numpy(),
        "gg": gg.detach().numpy(),
        "log": log[0].numpy(),
        "first": first.numpy(),
        "v": v.grad.numpy(),
        "h": h.grad.numpy(),
        "leaf": leaf.grad.numpy(),
        "modes": [w.requires_grad, u.requires_grad, t.requires_grad],
    }
