"""Arithmetic of several operators: products with factors, rounded quotients, interpolation."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph import special
from primgraph.compat.torch import framework
from primgraph.compat.torch.functions.arithmetic import divisor_of
from primgraph.compat.torch.functions.results import in_family, takes_out
from primgraph.compat.torch.return_types import named_result
from primgraph.eager.derivatives.differentiable import Differentiable
from primgraph.eager.inplace.views import share_computed
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.operators.handle import Handle

__all__ = [
    "add",
    "addcdiv",
    "addcmul",
    "clamp",
    "clip",
    "clone",
    "div",
    "divide",
    "float_power",
    "frac",
    "frexp",
    "isclose",
    "lerp",
    "logit",
    "masked_fill",
    "polar",
    "resolve_conj",
    "resolve_neg",
    "rsub",
    "sub",
    "subtract",
    "true_divide",
    "view_as_complex",
    "view_as_real",
    "where",
]


@takes_out
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Compute `input + alpha * other`.

    >>> torch.add(torch.ones(2), torch.tensor([1.0, 2.0]), alpha=10)
    tensor([11., 21.])
    """
    return pg.add(input, other if alpha == 1 else pg.multiply(other, alpha))


@takes_out
def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Compute `input - alpha * other`. Raises `DTypeError` for booleans.

    >>> torch.sub(torch.ones(2), torch.tensor([1.0, 2.0]), alpha=10)
    tensor([ -9., -19.])
    """
    if _is_boolean(input) and _is_boolean(other):
        raise DTypeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported.",
            hint="Use the `^` or `logical_xor()` operator instead.",
        )
    return pg.subtract(input, other if alpha == 1 else pg.multiply(other, alpha))


def _is_boolean(given: Any) -> bool:
    return isinstance(given, Handle) and given.type.dtype.kind == "b"


def rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Compute `other - alpha * input`.

    >>> torch.rsub(torch.ones(2), torch.tensor([1.0, 2.0]))
    tensor([0., 1.])
    """
    return sub(other, input, alpha=alpha)


@takes_out
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Compute `input / other`, rounded down for "floor" and towards zero for "trunc".

    >>> torch.div(torch.tensor([-7.0]), 2.0, rounding_mode="floor")
    tensor([-4.])
    """
    if rounding_mode is None:
        return pg.divide(input, other)
    other = divisor_of(input, other)
    if rounding_mode == "floor":
        return pg.floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ArgumentError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"{rounding_mode!r:.60}"
        )
    rest = pg.fmod(input, other)
    return pg.floor_divide(pg.subtract(input, rest), other)


subtract, divide, true_divide = sub, div, div


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """Compute `input + value * tensor1 * tensor2`.

    >>> torch.addcmul(torch.ones(2), torch.ones(2), torch.tensor([1.0, 2.0]), value=10)
    tensor([11., 21.])
    """
    return add(input, pg.multiply(tensor1, tensor2), alpha=value)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """Compute `input + value * tensor1 / tensor2`.

    >>> torch.addcdiv(torch.ones(2), torch.ones(2), torch.tensor([1.0, 2.0]), value=10)
    tensor([11.,  6.])
    """
    return add(input, pg.divide(tensor1, tensor2), alpha=value)


@takes_out
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Limit elements to an interval; the derivative is 1 inside and at the bounds.

    >>> torch.clamp(torch.tensor([-1.0, 0.5, 3.0]), 0.0, 1.0)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise ArgumentError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return pg.clip(input, min, max)


clip = clamp


def float_power(input: Any, exponent: Any) -> Any:
    """Compute powers in float64, or in complex128.

    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    wide = [g for g in (input, exponent) if isinstance(g, Handle)]
    is_complex = builtins.any(g.type.is_complex for g in wide)
    dtype = np.dtype("complex128" if is_complex else "float64")
    base, power = (
        pg.astype(g, dtype) if isinstance(g, Handle) else dtype.type(g) for g in (input, exponent)
    )
    return pg.power(base, power)


def frac(input: Any) -> Any:
    """Compute fractional parts, with the sign of the element.

    >>> torch.frac(torch.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """
    return pg.subtract(input, pg.trunc(input))


def frexp(input: Any) -> Any:
    """Return mantissas in [0.5, 1) and exponents of two.

    >>> torch.frexp(torch.tensor([8.0])).exponent
    tensor([4], dtype=torch.int32)
    """
    mantissa, exponent = pg.frexp(input)
    return named_result("frexp", mantissa, pg.astype(exponent, np.int32))


def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Return whether elements agree to `atol + rtol * abs(other)`.

    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    return pg.isclose(input, other, rtol, atol, equal_nan)


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """Compute `input + weight * (end - input)`.

    >>> torch.lerp(torch.zeros(2), torch.ones(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    if isinstance(end, Handle) and end.dtype != input.dtype:
        raise DTypeError(f"expected dtype {input.dtype} for `end` but got dtype {end.dtype}")
    return pg.add(input, pg.multiply(weight, pg.subtract(end, input)))


def logit(input: Any, eps: float | None = None) -> Any:
    """Compute `log(input / (1 - input))`, of `input` limited to `[eps, 1 - eps]`.

    >>> torch.logit(torch.tensor([0.5]))
    tensor([0.])
    """
    return special.logit(input if eps is None else pg.clip(input, eps, 1 - eps))


def resolve_conj(input: Any) -> Any:
    """Return `input`: conjugates are computed at once here, and never deferred.

    >>> torch.resolve_conj(torch.tensor([1.0]))
    tensor([1.])
    """
    return input


def resolve_neg(input: Any) -> Any:
    """Return `input`: signs are changed at once here, and never deferred.

    >>> torch.resolve_neg(torch.tensor([1.0]))
    tensor([1.])
    """
    return input


def polar(abs: Any, angle: Any) -> Any:
    """Return complex numbers with these absolute values and angles.

    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])
    """
    if abs.dtype != angle.dtype:
        raise DTypeError(f"polar takes two tensors of one dtype, not {abs.type} and {angle.type}")
    return pg.complex(pg.multiply(abs, pg.cos(angle)), pg.multiply(abs, pg.sin(angle)))


def view_as_real(input: Any) -> Any:
    """Return real and imaginary parts along a new last axis.

    >>> torch.view_as_real(torch.tensor([1.0 + 2.0j])).tolist()
    [[1.0, 2.0]]
    """
    return share_computed(pg.stack([pg.real(input), pg.imag(input)], -1), input, view_as_real)


def view_as_complex(input: Any) -> Any:
    """Return complex numbers from the parts along the last axis, of size two.

    Raises `ShapeError` for another size.

    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    if not input.shape or input.shape[-1] != 2:
        raise ShapeError(f"view_as_complex takes pairs along the last axis, not {input.type}")
    found = pg.complex(input[..., 0], input[..., 1])
    return share_computed(found, input, view_as_complex)


@takes_out
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Choose elements of `input` where the condition is true, and of `other` elsewhere.

    Two Python numbers, one of them a float, are of the default dtype. The condition alone gives
    the positions of its true elements along each axis.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, torch.zeros(2))
    tensor([0., 2.])
    """
    if input is None and other is None:
        return in_family(condition, pg.nonzero(condition))
    if isinstance(condition, Handle) and condition.type.dtype.kind not in "bu":
        raise DTypeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.type.dtype}"
        )
    kinds = {type(input), type(other)}
    found = pg.where(condition, input, other)
    if builtins.float in kinds and kinds <= {builtins.float, builtins.int, builtins.bool}:
        return pg.astype(found, framework.dtype_or_default(None))
    return found


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """Return a differentiable copy that shares no elements.

    >>> torch.clone(torch.ones(2))
    tensor([1., 1.])
    """
    return Differentiable.clone(input) if isinstance(input, Differentiable) else pg.assign(input)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """Replace elements of `input` by `value` where the mask is true, in the dtype of `input`.

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.masked_fill(x, x < 0, 0.0)
    tensor([0., 2.])
    """
    if isinstance(mask, Handle) and mask.type.dtype.kind != "b":
        raise DTypeError(f"masked_fill only supports boolean masks, but got mask of {mask.type}")
    if isinstance(value, Handle) and value.ndim:
        raise ShapeError(
            f"masked_fill only supports a 0-dimensional value tensor, not {value.type}",
            hint="torch.where(mask, value, x) chooses between tensors",
        )
    return pg.where(mask, pg.astype(value, input.type.dtype), input)
