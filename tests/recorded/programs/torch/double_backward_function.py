"""Custom functions with derivatives of second order, and checks of both orders."""

import numpy as np
import torch
from torch.autograd import Function, gradcheck, gradgradcheck


class Softplus(Function):
    """A stable softplus, whose backward is a function with a backward of its own."""

    @staticmethod
    def forward(ctx, x, sharpness):
        ctx.save_for_backward(x)
        ctx.sharpness = sharpness
        return torch.nn.functional.softplus(x * sharpness) / sharpness

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return SoftplusBackward.apply(g, x, ctx.sharpness), None


class SoftplusBackward(Function):
    @staticmethod
    def forward(ctx, g, x, sharpness):
        s = torch.sigmoid(x * sharpness)
        ctx.save_for_backward(g, s)
        ctx.sharpness = sharpness
        return g * s

    @staticmethod
    def backward(ctx, gg):
        g, s = ctx.saved_tensors
        return gg * s, gg * g * s * (1 - s) * ctx.sharpness, None


class Interpolate(Function):
    """Values of a table at fractional places, with setup_context."""

    @staticmethod
    def forward(table, place):
        low = place.floor().long().clamp(0, len(table) - 2)
        part = place - low
        return table[low] * (1 - part) + table[low + 1] * part

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        table, place = ctx.saved_tensors
        low = place.floor().long().clamp(0, len(table) - 2)
        part = place - low
        to_table = to_place = None
        if ctx.needs_input_grad[0]:
            to_table = torch.zeros_like(table)
            to_table = to_table.index_add(0, low, g * (1 - part))
            to_table = to_table.index_add(0, low + 1, g * part)
        if ctx.needs_input_grad[1]:
            to_place = g * (table[low + 1] - table[low])
        return to_table, to_place


class ClippedGradient(Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-ctx.limit, ctx.limit), None


def main():
    rng = np.random.default_rng(11)
    x = torch.tensor(rng.normal(size=5), requires_grad=True)
    softplus = lambda x: Softplus.apply(x, 2.0)  # noqa: E731
    checks = [gradcheck(softplus, (x,)), gradgradcheck(softplus, (x,))]
    y = softplus(x)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    penalty = (first**2).sum()
    penalty.backward()

    table = torch.tensor(rng.normal(size=6), requires_grad=True)
    place = torch.tensor([0.3, 2.5, 2.7, 4.9], dtype=torch.float64, requires_grad=True)
    checks.append(gradcheck(Interpolate.apply, (table, place)))
    value = Interpolate.apply(table, place)
    to_table, to_place = torch.autograd.grad((value**2).sum(), (table, place))

    z = torch.tensor([1.0, -3.0], dtype=torch.float64, requires_grad=True)
    (ClippedGradient.apply(z, 1.0) ** 2).sum().backward()
    return {
        "checks": checks,
        "value": y.detach().numpy(),
        "first": first.detach().numpy(),
        "second": second.detach().numpy(),
        "penalty": x.grad.numpy(),
        "table": to_table.numpy(),
        "place": to_place.numpy(),
        "clipped": z.grad.numpy(),
    }
