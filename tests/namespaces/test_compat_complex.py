"""Gradients by complex tensors with torch's names, against numbers that torch 2 has computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.compat.oneflow as flow
import primgraph.compat.torch as torch

Z = np.array([0.6 - 0.8j, -1.2 + 0.3j, 0.2 + 1.5j])
W = np.array([1.0 + 0.5j, -0.7j, 0.4 - 0.2j])
X = np.array([0.3, -0.9, 1.1])

# What torch gives for each of the losses and functions below.
TORCH: dict[str, list[complex]] = {
    "abs": [1.8 - 2.4j, -3.3701425 + 0.842535625j, 0.5321637201 + 3.991227901j],
    "parts": [
        -1.454913663 - 1.185424241j,
        -0.4541962854 + 1.171034597j,
        2.344483558 - 11.22754539j,
    ],
    "holomorphic": [
        1.231856767 + 3.883698433j,
        0.6644926177 + 0.1097238695j,
        1.391140354 - 2.350287643j,
    ],
    "conj": [1.72 - 0.96j, 4.41 - 0.72j, 2.37 + 0.6j],
    "angle": [
        0.2436228692 + 1.341836174j,
        -3.052663964 - 0.2676104155j,
        -0.8011441182 + 1.557792088j,
    ],
    "matmul": [1.801938267 - 8.707257089j, 3.462959433 + 8.204391595j, -8.61899849 + 8.692318239j],
    "cumsum": [
        -0.539611956 - 0.5117077088j,
        -1.139611956 + 0.2882922912j,
        -0.3713906764 + 0.9284766909j,
    ],
    "complex": [
        0.6839411289 - 1.167259527j,
        -0.9971993099 + 0.04487396894j,
        0.08853979028 + 2.988217922j,
    ],
    "view": [1.08 + 1.92j, 4.32 + 0.27j, 0.12 + 6.75j],
    "polar": [
        0.8360480512 + 0.9756042836j,
        -2.292807574 - 0.7210693043j,
        0.02829488067 - 1.037394786j,
    ],
    "seed": [
        -0.8394094228 + 2.893665205j,
        0.1237516499 - 0.1706965912j,
        0.2782280709 - 0.4700575285j,
    ],
    "jvp": [2.538964787 - 2.61421604j, 0.1194856832 + 0.06218329501j, 0.02020991461 + 1.320994495j],
    "jacobian": [
        1.2 - 1.6j,
        0 + 0j,
        0 + 0j,
        0.7421590126 - 0.9895453501j,
        -0.9701425001 + 0.242535625j,
        0 + 0j,
        0.907964757 - 1.210619676j,
        0 + 0j,
        0.1321637201 + 0.9912279007j,
    ],
    "hvp": [2.88 + 1.66j, -0.1331568137 - 1.932627255j, 1.077024391 - 0.4369365855j],
    "second": [4.8 - 3.9j, -0.6111897751 + 2.750353988j, 1.966596155 + 2.037964564j],
    "hook": [1 - 0.5j, -0 + 0.7j, 0.4 + 0.2j],
    "hooked": [1 + 3j, 2.1 - 1.26j, 1.88 - 0.36j],
    "Function": [2 + 1j, 0.42 - 1.68j, 0.76 - 1.12j],
    "real in": [0.01 + 0j, -0.67 + 0j, 0.73 + 0j],
}

LOSSES: dict[str, Callable[[Any], Any]] = {
    "abs": lambda z: (z.abs() ** 2 + z.abs()).sum(),
    "parts": lambda z: (torch.sin(z) * z).real.mul(z.imag).sum(),
    "holomorphic": lambda z: (torch.exp(z) * (2 - 1j)).real.sum(),
    "conj": lambda z: (z.conj() * z * z).real.sum(),
    "angle": lambda z: (z.angle() * z.abs()).sum(),
    "matmul": lambda z: (torch.outer(z, z) @ z).abs().sum(),
    "cumsum": lambda z: torch.cumsum(z, 0).abs().sum(),
    "complex": lambda z: torch.complex(z.real, z.imag**2).abs().sum(),
    "view": lambda z: (torch.view_as_real(z) ** 3).sum(),
    "polar": lambda z: torch.polar(z.real**2 + 1, z.imag).real.sum(),
}


def curve(z: Any) -> Any:
    return torch.exp(z) * z[0]


def same(found: Any, name: str) -> None:
    wanted = np.array(TORCH[name])
    np.testing.assert_allclose(np.ravel(found.detach().numpy()), wanted, 1e-8, 1e-8)


def leaf() -> Any:
    return torch.tensor(Z, requires_grad=True)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_real_losses_are_those_of_torch(name: str) -> None:
    z = leaf()
    LOSSES[name](z).backward()
    same(z.grad, name)
    # Once more they add up, in torch's convention as well.
    LOSSES[name](z).backward()
    same(z.grad / 2, name)
    same(torch.func.grad(LOSSES[name])(torch.tensor(Z)), name)
    same(torch.func.grad_and_value(LOSSES[name])(torch.tensor(Z))[0], name)
    z = flow.tensor(Z, requires_grad=True)
    LOSSES[name](z).backward()
    same(z.grad, name)
    # Of primgraph's own tensors it is the conjugate.
    z = pg.tensor(Z, requires_grad=True)
    if name == "abs":
        LOSSES[name](z).backward()
        np.testing.assert_allclose(z.grad.numpy(), np.conj(TORCH[name]), 1e-8)


def test_seeds_and_products_with_jacobians_are_those_of_torch() -> None:
    w = torch.tensor(W)
    for y, z in [(curve(z), z) for z in (leaf(), leaf())]:
        same(torch.autograd.grad(y, z, w, retain_graph=True)[0], "seed")
        y.backward(w)
        same(z.grad, "seed")
    z = leaf()
    torch.autograd.backward([curve(z)], [w])
    same(z.grad, "seed")
    rows = torch.stack([w, w * (1 + 1j)])
    z = leaf()
    (both,) = torch.autograd.grad(curve(z), z, rows, is_grads_batched=True)
    same(both[0], "seed")
    same(both[1] / (1 + 1j), "seed")
    functional = torch.autograd.functional
    same(functional.vjp(curve, torch.tensor(Z), w)[1], "seed")
    same(torch.func.vjp(curve, torch.tensor(Z))[1](w)[0], "seed")
    same(functional.jvp(curve, torch.tensor(Z), w)[1], "jvp")
    same(torch.func.jvp(curve, (torch.tensor(Z),), (w,))[1], "jvp")
    same(functional.jacobian(lambda z: (z * z[0]).abs(), torch.tensor(Z)), "jacobian")
    for product in (functional.hvp, functional.vhp):
        same(product(LOSSES["abs"], torch.tensor(Z), w)[1], "hvp")
    same(
        torch.func.grad(lambda x: (torch.exp(1j * x) * x).abs().sum() + (x * (1 + 1j)).imag.prod())(
            torch.tensor(X)
        ),
        "real in",
    )


def test_second_derivatives_hooks_and_functions_are_those_of_torch() -> None:
    z, w = leaf(), torch.tensor(W)
    (slope,) = torch.autograd.grad((z.abs() ** 3).sum(), z, create_graph=True)
    same(torch.autograd.grad((slope * w).real.sum(), z)[0], "second")

    seen: list[Any] = []

    def hook(gradient: Any) -> Any:
        seen.append(gradient)
        return gradient * (1 + 1j)

    z = leaf()
    y = z * z
    y.register_hook(hook)
    (y * w).real.sum().backward()
    same(seen[0], "hook")
    same(z.grad, "hooked")

    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return g * (2 * z).conj()

    z = leaf()
    (Squared.apply(z) * w).real.sum().backward()
    same(z.grad, "Function")
    # In functions that are traced, too, and in primgraph's convention by its own names.
    slopes = pg.grad(lambda z: pg.real(pg.sum(Squared.apply(z) * W)))(Z)
    np.testing.assert_allclose(slopes, np.conj(TORCH["Function"]), 1e-8)


def test_dtypes_and_what_is_refused() -> None:
    assert torch.tensor([1 + 2j]).dtype == torch.complex64 == torch.cfloat
    assert torch.tensor(Z).dtype == torch.complex128 == torch.cdouble
    z = torch.tensor(Z)
    assert torch.is_complex(z)
    assert not z.is_floating_point()
    np.testing.assert_array_equal(torch.view_as_complex(torch.view_as_real(z)).numpy(), Z)
    np.testing.assert_allclose(torch.vdot(z, torch.tensor(W)).item(), np.vdot(Z, W))
    matrix = torch.tensor(np.outer(Z, W))
    np.testing.assert_array_equal(matrix.mH.numpy(), np.outer(Z, W).conj().T)
    for loss in (lambda z: (z * z).sum(), lambda z: z[0]):
        with pytest.raises(pg.NotDifferentiable, match="only for real scalar outputs"):
            loss(leaf()).backward()
        with pytest.raises(pg.NotDifferentiable, match="only for real scalar outputs"):
            loss(pg.tensor(Z, requires_grad=True)).backward()
    with pytest.raises(pg.DTypeError, match=r"pg\.complex"):
        pg.optimizer.Adam(0.1, parameters=[pg.tensor(Z, requires_grad=True)])


@pytest.mark.parametrize("name", ["sort", "argsort", "msort", "median", "mode", "nanmedian"])
def test_complex_numbers_have_no_order(name: str) -> None:
    z = torch.tensor([1.0 + 2.0j, 3.0])
    with pytest.raises(NotImplementedError, match="have no order"):
        getattr(torch, name)(z)
    for call in (torch.topk, torch.kthvalue):
        with pytest.raises(NotImplementedError, match="have no order"):
            call(z, 1)
    with pytest.raises(NotImplementedError, match="have no order"):
        torch.searchsorted(z, z)
