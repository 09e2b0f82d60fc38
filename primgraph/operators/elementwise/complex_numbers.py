"""Complex numbers: parts, conjugates and angles, as in NumPy."""

from __future__ import annotations

import math

import numpy as np

from primgraph.errors import DTypeError
from primgraph.ir.types import FLOAT64, complex_dtype, real_dtype
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import arctan2, multiply
from primgraph.operators.elementwise.logic import equal, isnan, not_equal, where
from primgraph.operators.elementwise.rounding import signbit
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    convert_dtype,
    lift,
    promote_operands,
    result_dtype,
    ufunc_dtypes,
)
from primgraph.operators.shape.creation import full, zeros_like
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import parts


@public
def real(val: ArrayLike) -> Variable:
    """Return the real parts of complex numbers; other numbers as they are.

    >>> pg.real(1.0 + 2.0j)
    tensor(1.)
    """
    value = lift(val)
    return emit(parts.real, value) if value.type.is_complex else value


@public
def imag(val: ArrayLike) -> Variable:
    """Return the imaginary parts of complex numbers; zeros, of their dtype, for other numbers.

    >>> pg.imag(1.0 + 2.0j)
    tensor(2.)
    """
    value = lift(val)
    return emit(parts.imag, value) if value.type.is_complex else zeros_like(value)


@public
def conj(x: ArrayLike) -> Variable:
    """Return the conjugates `x - iy` of complex numbers `x + iy`; other numbers as they are.

    Conjugation is not holomorphic: it is linear in real and imaginary part separately. Raises
    `DTypeError` for booleans.

    >>> pg.conj(1.0 + 2.0j)
    tensor(1.-2.j, dtype=complex128)
    """
    value = lift(x, ufunc_dtypes(np.conjugate, x)[-1])
    return emit(parts.conj, value) if value.type.is_complex else value


@public
def conjugate(x: ArrayLike) -> Variable:
    """Return the conjugate; an alias of `conj`.

    >>> pg.conjugate(1.0 + 2.0j)
    tensor(1.-2.j, dtype=complex128)
    """
    return conj(x)


@public
def complex(real: ArrayLike, imag: ArrayLike) -> Variable:
    """Return `real + i imag` of both parts, which are broadcast.

    Unlike with `1j * imag`, infinities and signs of zeros stay where they are.

    Floats of 32 bits and less give complex64, others complex128. Raises `DTypeError` for complex
    parts, `ShapeError` if shapes do not broadcast.

    >>> pg.complex(1.0, 2.0)
    tensor(1.+2.j, dtype=complex128)
    """
    dtype = result_dtype(real, imag)
    if dtype.kind == "c":
        raise DTypeError("complex takes real numbers as its parts", hint="add up: x + 1j * y")
    dtype = real_dtype(complex_dtype(dtype)) if dtype.kind == "f" else FLOAT64
    return emit(parts.complex_, *promote_operands(real, imag, dtype=dtype, name="complex"))


@public
def angle(z: ArrayLike, deg: bool = False) -> Variable:
    """Return the angle of complex numbers, from -pi to pi, or in degrees; of real ones 0 or pi.

    It jumps at the negative real axis, where it is pi unless the imaginary part is -0.0. At 0 the
    derivative is NaN.

    >>> print(f"{pg.angle(1.0j):.4f}")
    1.5708
    """
    value = lift(z)
    if value.type.is_complex:
        turned = arctan2(emit(parts.imag, value), emit(parts.real, value))
        return multiply(turned, 180.0 / math.pi) if deg else turned
    value = convert_dtype(value, ufunc_dtypes(np.arctan2, 0, value)[-1])
    turned = where(signbit(value), 180.0 if deg else math.pi, 0.0)
    return where(isnan(value), math.nan, convert_dtype(turned, value.dtype))


@public
def isreal(x: ArrayLike) -> Variable:
    """Return whether imaginary parts are zero; true for all that is not complex.

    >>> pg.isreal([1.0 + 0.0j, 1.0j])
    tensor([ True, False], dtype=bool)
    """
    value = lift(x)
    if not value.type.is_complex:
        return full(value.shape, True, bool)
    return equal(emit(parts.imag, value), 0)


@public
def iscomplex(x: ArrayLike) -> Variable:
    """Return whether imaginary parts differ from zero.

    >>> pg.iscomplex([1.0 + 0.0j, 1.0j])
    tensor([False,  True], dtype=bool)
    """
    value = lift(x)
    if not value.type.is_complex:
        return full(value.shape, False, bool)
    return not_equal(emit(parts.imag, value), 0)
