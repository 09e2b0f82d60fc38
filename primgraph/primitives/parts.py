"""Complex numbers: real and imaginary parts, construction, conjugates, absolute values.

Cotangents pair with tangents as `Re(ct * dz)`, without conjugation. So the transpose of a product
with a complex number is the product with that number, and the gradient of a real function is `df/dx
- i df/dy`. The transposes follow: `ct = t` for the real part, as `Re(ct * dz)` must equal `t *
Re(dz)`; `ct = -i t` for the imaginary part; the conjugate of the cotangent for the conjugate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.errors import DTypeError
from primgraph.ir.facts.ranges import HOLOMORPHIC, POLYNOMIAL, RANGE, absolute
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Fact, Linear, Primitive, primitive
from primgraph.ir.types import TensorType, common_type, complex_dtype, real_dtype
from primgraph.primitives.constants import filled_constant, zeros_like
from primgraph.primitives.logic import equal, select
from primgraph.primitives.shapes import with_batch_axis


def _parts(name: str, z: TensorType) -> TensorType:
    """Return the type of the real and imaginary parts of `z`."""
    if not z.is_complex:
        raise DTypeError(f"{name} takes complex numbers, not {z}")
    return z.with_dtype(real_dtype(z.dtype))


# The rule `rule(new, real, imag)` for the parts of a number in which the result, one of them, is
# replaced; None for other ops.
COMPONENT: Fact[Callable[[Any, Any, Any], tuple[Any, Any]] | None] = Fact("component", None)


@primitive(impl=lambda z: np.array(np.real(z)), linear=True, elementwise=True, flops=0)
def real(z: TensorType) -> TensorType:
    """Return the real parts."""
    return _parts("real", z)


@primitive(impl=lambda z: np.array(np.imag(z)), linear=True, elementwise=True, flops=0)
def imag(z: TensorType) -> TensorType:
    """Return the imaginary parts."""
    return _parts("imag", z)


real.declare(COMPONENT, lambda new, real, imag: (new, imag))
imag.declare(COMPONENT, lambda new, real, imag: (real, new))


@primitive(impl=np.conjugate, linear=True, elementwise=True, flops=0)
def conj(z: TensorType) -> TensorType:
    """Return the conjugates `x - iy` of `x + iy`."""
    _parts("conj", z)
    return z


def _complex(x: Any, y: Any) -> Any:
    made = np.empty(x.shape, np.result_type(x.dtype, np.complex64))
    made.real, made.imag = x, y
    return made


@primitive(name="complex", impl=_complex, linear=True, elementwise=True, flops=0)
def complex_(x: TensorType, y: TensorType) -> TensorType:
    """Return `x + iy`, with both parts copied bitwise."""
    found = common_type("complex", x, y)
    dtype = complex_dtype(found.dtype)
    if real_dtype(dtype) != found.dtype or not found.is_float:
        raise DTypeError(f"complex takes parts of float32 or float64, not {found}")
    return found.with_dtype(dtype)


@imag.transpose
def _imag_transpose(ct: Value, z: Linear) -> tuple[Value]:
    return (complex_(zeros_like(ct), -ct),)


conj.declare(HOLOMORPHIC, False)


@conj.transpose
def _conj_transpose(ct: Value, z: Linear) -> tuple[Value]:
    return (conj(ct),)


@complex_.transpose
def _complex_transpose(ct: Value, x: Value | Linear, y: Value | Linear) -> tuple[Any, Any]:
    return (
        real(ct) if isinstance(x, Linear) else None,
        -imag(ct) if isinstance(y, Linear) else None,
    )


@primitive(impl=np.absolute, elementwise=True, singular=True, flops=8)
def modulus(z: TensorType) -> TensorType:
    """Return the absolute values as real numbers; the derivative at 0 is 0."""
    return _parts("modulus", z)


modulus.declare(POLYNOMIAL, True)
modulus.declare(RANGE, lambda z: replace(absolute(z), low=0.0))


@modulus.jvp()
def _modulus_jvp(r: Value, z: Value, d: Value) -> Value:
    """Return the tangent along the unit vector; at 0 the modulus counts as infinite."""
    length = select(equal(r, zeros_like(r)), filled_constant(math.inf, r.type), r)
    found: Value = real(d) * (real(z) / length) + imag(d) * (imag(z) / length)
    return found


def _batch_each(op: Primitive[Value]) -> None:
    @op.batch
    def batch_rule(batched: tuple[bool, ...], *inputs: Value) -> Value:
        return op(*with_batch_axis(batched, inputs))


for _op in (real, imag, conj, complex_, modulus):
    _batch_each(_op)
