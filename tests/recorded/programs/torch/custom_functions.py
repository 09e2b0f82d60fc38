"""Functions with own derivatives: twice differentiable, straight-through, reversed."""

import numpy as np
import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class MySoftplus(Function):
    @staticmethod
    def forward(ctx, x, beta=1.0):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return torch.log1p(torch.exp(-torch.abs(beta * x))) / beta + torch.relu(x)

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        return MySigmoid.apply(x * ctx.beta) * grad_out, None


class MySigmoid(Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(y)
        ctx.mark_non_differentiable()
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None
        return g * y * (1 - y)


class RoundSTE(Function):
    @staticmethod
    def forward(x, levels):
        return torch.round(x * levels) / levels

    @staticmethod
    def setup_context(ctx, inputs, output):
        _x, levels = inputs
        ctx.levels = levels
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, g):
        if g is None:
            return None, None
        return g.clamp(-1, 1), None


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        result = x**3
        dx = 3 * x**2
        ctx.save_for_backward(x, dx)
        return result, dx

    @staticmethod
    def backward(ctx, grad_output, grad_dx):
        x, dx = ctx.saved_tensors
        return grad_output * dx + grad_dx * 6 * x


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g.neg() * ctx.lambd, None


def main():
    rng = np.random.default_rng(8)
    x = torch.tensor(rng.normal(size=(3, 4)), dtype=torch.double, requires_grad=True)
    ok = (
        gradcheck(MySoftplus.apply, (x, 2.0), eps=1e-6, atol=1e-4),
        gradgradcheck(MySoftplus.apply, (x, 2.0)),
    )
    ok2 = gradgradcheck(lambda x: Cube.apply(x)[0], x)
    y = MySoftplus.apply(x, 2.0)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.pow(2).sum(), x)
    q = RoundSTE.apply(x, 4)
    (q * torch.arange(4.0)).sum().backward()
    xg = x.grad.clone()
    x.grad = None
    r, d = Cube.apply(x)
    (r.sum() + d.sum()).backward()
    h = GradReverse.apply(x * 2, 0.3)
    h.sum().backward()
    try:
        a = GradReverse.apply(x, 1.0)
        (b,) = torch.autograd.grad(a.sum(), x, create_graph=True)
        b.sum().backward()
        err = "none"
    except RuntimeError:
        err = "RuntimeError"
    return ok, ok2, g, gg, q, xg, x.grad, err
