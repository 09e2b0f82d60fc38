"""Complex numbers as pairs of real ones: linear primitives part by part, others by formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.interop.compositions.table import COMPOSITIONS, composition, is_complex
from primgraph.ir.graph import Equation, Value
from primgraph.ir.params import Array
from primgraph.ir.types import real_dtype
from primgraph.operators.promotion import wrap
from primgraph.operators.variable import Variable
from primgraph.primitives import constants, fourier, logic, parts, reductions
from primgraph.primitives import elementwise as e


def splits(eqn: Equation) -> bool:
    """Return whether an equation of complex numbers is linear in them, and so in their parts."""
    op: Any = eqn.op
    if op.has_bodies or COMPOSITIONS.get(op) is not None:
        return False
    if not all(v.type.is_complex for v in eqn.outputs):
        return False
    linear = op.linear_operands(len(eqn.inputs), eqn.kwargs)
    places = [i for i, v in enumerate(eqn.inputs) if v.type.is_complex]
    return bool(places) and all(i in linear for i in places)


def compute_by_parts(eqn: Equation, operands: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the results of an equation that `splits`."""
    op: Any = eqn.op
    values = [x.value for x in operands]
    sides = [[v] * 2 if not v.type.is_complex else [parts.real(v), parts.imag(v)] for v in values]
    if op.linear == "each":
        (a, b), (c, d) = sides
        return (wrap(parts.complex_(op(a, c) - op(b, d), op(a, d) + op(b, c))),)
    found = [op(*[side[k] for side in sides], **eqn.kwargs) for k in (0, 1)]
    pairs = [found] if isinstance(found[0], Value) else zip(*found, strict=True)
    return tuple([wrap(parts.complex_(x, y)) for x, y in pairs])


def _pair(real: Any, imag: Any) -> Any:
    return wrap(parts.complex_(real.value, imag.value))


@composition(constants.full, fits=is_complex)
def _full(*, value: complex, shape: Any, dtype: Any) -> Any:
    sides = [
        wrap(constants.full(value=x, shape=shape, dtype=real_dtype(dtype)))
        for x in (value.real, value.imag)
    ]
    return _pair(*sides)


@composition(constants.constant, fits=is_complex)
def _constant(*, value: Any) -> Any:
    sides = [np.array(x) for x in (value.data.real, value.data.imag)]
    return _pair(*[wrap(constants.constant(value=Array(x))) for x in sides])


@composition(e.cast, fits=is_complex)
def _cast(x: Any, *, dtype: Any) -> Any:
    if dtype.kind != "c":
        return x.real.astype(dtype)
    real = x.real.astype(real_dtype(dtype))
    return _pair(real, x.imag.astype(real.dtype) if x.dtype.kind == "c" else pnp.zeros_like(real))


@composition(parts.conj, fits=is_complex)
def _conj(z: Any) -> Any:
    return _pair(z.real, -z.imag)


@composition(parts.modulus, fits=is_complex)
def _modulus(z: Any) -> Any:
    return pnp.hypot(z.real, z.imag)


@composition(e.div, fits=is_complex)
def _div(z: Any, w: Any) -> Any:
    """Divide as NumPy does, by the ratio of the parts: R. L. Smith, 1962.

    By zero both parts are divided, so that `1 / 0j` has an infinite real part.
    """
    is_real = pnp.abs(w.real) >= pnp.abs(w.imag)
    large, small = pnp.where(is_real, w.real, w.imag), pnp.where(is_real, w.imag, w.real)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = pnp.where(is_real, z.real + z.imag * ratio, z.real * ratio + z.imag) * scale
    imag = pnp.where(is_real, z.imag - z.real * ratio, z.imag * ratio - z.real) * scale
    none, size = (w.real == 0) & (w.imag == 0), pnp.abs(large)
    return _pair(pnp.where(none, z.real / size, real), pnp.where(none, z.imag / size, imag))


@composition(e.integer_pow, fits=is_complex)
def _integer_pow(z: Any, *, n: int) -> Any:
    found: Any = None
    for digit in f"{abs(n):b}":
        found = z if found is None else found * found * z if digit == "1" else found * found
    return found if n > 0 else 1 / found


@composition(e.power, fits=is_complex)
def _power(z: Any, w: Any) -> Any:
    none = z == 0
    found = pnp.exp(w * pnp.log(pnp.where(none, 1, z)))
    at_zero = pnp.where(w.real > 0, 0, pnp.nan)
    return pnp.where(none, pnp.where(w == 0, 1, at_zero), found).astype(z.dtype)


@composition(e.exp, fits=is_complex)
def _exp(z: Any) -> Any:
    size = pnp.exp(z.real)
    return _pair(size * pnp.cos(z.imag), size * pnp.sin(z.imag))


@composition(e.log, fits=is_complex)
def _log(z: Any) -> Any:
    return _pair(pnp.log(pnp.hypot(z.real, z.imag)), pnp.arctan2(z.imag, z.real))


@composition(e.expm1, fits=is_complex)
def _expm1(z: Any) -> Any:
    half = pnp.sin(z.imag / 2)
    real = pnp.expm1(z.real) * pnp.cos(z.imag) - 2 * half * half
    return _pair(real, pnp.exp(z.real) * pnp.sin(z.imag))


@composition(e.log1p, fits=is_complex)
def _log1p(z: Any) -> Any:
    less = z.real * (2 + z.real) + z.imag * z.imag
    return _pair(pnp.log1p(less) / 2, pnp.arctan2(z.imag, 1 + z.real))


@composition(e.sqrt, fits=is_complex)
def _sqrt(z: Any) -> Any:
    """The root with a real part that is not negative."""
    x, y = z.real, z.imag
    large = pnp.sqrt((pnp.abs(x) + pnp.hypot(x, y)) / 2)
    none = large == 0
    small = pnp.where(none, 0, pnp.abs(y) / pnp.where(none, 1, 2 * large)).astype(x.dtype)
    imag = pnp.where(x >= 0, small, large)
    return _pair(pnp.where(x >= 0, large, small), pnp.where(y < 0, -imag, imag))


@composition(e.rsqrt, fits=is_complex)
def _rsqrt(z: Any) -> Any:
    return 1 / _sqrt(z)


@composition(e.sin, fits=is_complex)
def _sin(z: Any) -> Any:
    x, y = z.real, z.imag
    return _pair(pnp.sin(x) * pnp.cosh(y), pnp.cos(x) * pnp.sinh(y))


@composition(e.cos, fits=is_complex)
def _cos(z: Any) -> Any:
    x, y = z.real, z.imag
    return _pair(pnp.cos(x) * pnp.cosh(y), -pnp.sin(x) * pnp.sinh(y))


@composition(e.sinh, fits=is_complex)
def _sinh(z: Any) -> Any:
    x, y = z.real, z.imag
    return _pair(pnp.sinh(x) * pnp.cos(y), pnp.cosh(x) * pnp.sin(y))


@composition(e.cosh, fits=is_complex)
def _cosh(z: Any) -> Any:
    x, y = z.real, z.imag
    return _pair(pnp.cosh(x) * pnp.cos(y), pnp.sinh(x) * pnp.sin(y))


def _quotient(straight: Any, turned: Any) -> tuple[Any, Any]:
    """Return the parts of `(s + i t) / (1 + i s t)`, with its straight part first."""
    s, t = straight * straight, turned * turned
    below = 1 + s * t
    return straight * (1 + t) / below, turned * (1 - s) / below


@composition(e.tanh, fits=is_complex)
def _tanh(z: Any) -> Any:
    return _pair(*_quotient(pnp.tanh(z.real), pnp.tan(z.imag)))


@composition(e.tan, fits=is_complex)
def _tan(z: Any) -> Any:
    imag, real = _quotient(pnp.tanh(z.imag), pnp.tan(z.real))
    return _pair(real, imag)


@composition(e.sign, fits=is_complex)
def _sign(z: Any) -> Any:
    size = pnp.hypot(z.real, z.imag)
    unit = pnp.where(size == 0, 1, size).astype(size.dtype)
    return _pair(z.real / unit, z.imag / unit)


@composition(logic.equal, fits=is_complex)
def _equal(z: Any, w: Any) -> Any:
    return (z.real == w.real) & (z.imag == w.imag)


@composition(logic.not_equal, fits=is_complex)
def _not_equal(z: Any, w: Any) -> Any:
    return (z.real != w.real) | (z.imag != w.imag)


@composition(logic.unless_nan, fits=is_complex)
def _unless_nan(x: Any, y: Any) -> Any:
    return pnp.where((y.real != y.real) | (y.imag != y.imag), y, x)


@composition(reductions.reduce_prod, fits=lambda eqn: is_complex(eqn) and _has_known_size(eqn))
def _reduce_prod(z: Any, *, axes: tuple[int, ...]) -> Any:
    """Multiply the elements along one axis after the other, half of them by the other half."""
    for axis in reversed(axes):
        while z.shape[axis] > 1:
            half = z.shape[axis] // 2
            first, second, rest = pnp.split(z, [half, 2 * half], axis)
            z = (
                pnp.concatenate([first * second, rest], axis)
                if rest.shape[axis]
                else first * second
            )
        z = pnp.squeeze(z, axis)
    return z


def _has_known_size(eqn: Equation) -> bool:
    return all(type(n) is int for n in eqn.inputs[0].shape)


@composition(fourier.fft, fits=_has_known_size)
def _fft(z: Any, *, axes: tuple[int, ...], inverse: bool, norm: Any) -> Any:
    """Multiply by the matrix of the transform, along one axis after the other."""
    for axis in axes:
        transform = np.fft.ifft if inverse else np.fft.fft
        matrix = transform(np.eye(z.shape[axis]), norm=norm).astype(z.dtype)
        z = pnp.moveaxis(pnp.moveaxis(z, axis, -1) @ matrix, -1, axis)
    return z


@composition(fourier.rfft)
def _rfft(x: Any, *, axis: int, norm: str) -> Any:
    """The first half of all frequencies."""
    whole = _pair(x, pnp.zeros_like(x))
    found = wrap(fourier.fft(whole.value, axes=(axis,), inverse=False, norm=norm))
    return found[(*(slice(None),) * axis, slice(0, x.shape[axis] // 2 + 1))]


@composition(fourier.irfft)
def _irfft(z: Any, *, n: int, axis: int, norm: str) -> Any:
    """The real parts of the inverse transform of all frequencies."""
    before = (slice(None),) * axis
    rest = z[(*before, slice((n - 1) // 2, 0, -1))]
    ends = [0, n // 2] if n % 2 == 0 else [0]
    place = pnp.arange(z.shape[axis]).reshape((-1, *[1] * (z.ndim - axis - 1)))
    is_real = sum(place == k for k in ends) > 0
    half = _pair(z.real, pnp.where(is_real, 0, z.imag).astype(z.real.dtype))
    whole = pnp.concatenate([half, pnp.conj(rest)], axis) if n > 2 else half
    return wrap(fourier.fft(whole.value, axes=(axis,), inverse=True, norm=norm)).real
