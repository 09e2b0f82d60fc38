"""Fourier transforms, as in numpy.fft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.types import FLOAT16, FLOAT32, FLOAT64, complex_dtype
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.logic import where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.indexing import take
from primgraph.operators.promotion import (
    axis_of,
    convert_dtype,
    lift,
    prefix_errors,
    require_integer,
    require_number,
)
from primgraph.operators.shape.creation import iota
from primgraph.operators.shape.joining import roll, slice_axis
from primgraph.operators.shape.padding import pad
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import fourier as p
from primgraph.primitives.parts import conj

Norm: TypeAlias = Literal["backward", "ortho", "forward"] | None
Extents: TypeAlias = Sequence[int] | None
Places: TypeAlias = Sequence[int] | None


def _norm(name: str, norm: Any) -> str:
    if norm is None:
        return "backward"
    if norm not in p.TURNED:
        raise ArgumentError(
            f"{name}: norm is one of 'backward', 'ortho' and 'forward', not {norm!r:.40}"
        )
    return str(norm)


def _whole(x: ArrayLike) -> Variable:
    """Convert to complex: floats of 32 bits and less to complex64, others to complex128."""
    value = lift(x)
    if value.type.is_complex:
        return value
    return convert_dtype(value, complex_dtype(value.dtype if value.type.is_float else FLOAT64))


def _real(name: str, x: ArrayLike) -> Variable:
    value = lift(x)
    if value.type.is_complex:
        raise ArgumentError(
            f"{name} takes real numbers, not {value.type}", hint="pg.fft.fft takes complex ones"
        )
    if value.dtype == FLOAT16:
        return convert_dtype(value, FLOAT32)
    return value if value.type.is_float else convert_dtype(value, FLOAT64)


def _crop_or_pad(name: str, x: Variable, axis: int, n: Any) -> Variable:
    """Cut `x` to `n` elements along an axis, or pad it with zeros; None leaves it."""
    if n is None:
        return x
    count, extent = require_integer("n", n), x.shape[axis]
    if count is extent or (type(count) is type(extent) is int and count == extent):
        return x
    if isinstance(count, Dim) or isinstance(extent, Dim):
        if count == extent:
            return x
        raise ArgumentError(f"{name} to {count} elements of {x.type}: both have to be numbers")
    if count < 1:
        raise ShapeError(f"{name}: the number of elements is at least 1, not {count}")
    if count < extent:
        return slice_axis(x, axis, 0, count)
    return pad(x, [(0, count - extent if a == axis else 0) for a in range(x.ndim)])


def _fft_axis(name: str, a: ArrayLike, n: Any, axis: Any, norm: Norm, inverse: bool) -> Variable:
    value = _whole(a)
    place = axis_of(name, value, axis)
    value = _crop_or_pad(name, value, place, n)
    return emit(p.fft, value, axes=(place,), inverse=inverse, norm=_norm(name, norm))


@namespace_operator
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """Compute the discrete Fourier transform along `axis`: `A_k = sum_j a_j exp(-2 pi i j k / n)`.

    With `n`, the array is cut, or padded with zeros, to that many elements. `norm` is "backward",
    without a factor here, "forward", with `1/n`, or "ortho", with its root. The result is complex64
    for floats of 32 bits and less and for complex64, else complex128. Its derivative is the
    transform of the tangent. Raises `ShapeError` for an empty axis.

    >>> pg.fft.fft([1.0, 1.0]).numpy()
    array([2.+0.j, 0.+0.j])
    """
    return _fft_axis("fft", a, n, axis, norm, False)


@namespace_operator
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """Return the inverse of `fft`, with the factor `1/n` for `norm` "backward"; see there.

    >>> pg.fft.ifft([2.0, 0.0]).numpy().real
    array([1., 1.])
    """
    return _fft_axis("ifft", a, n, axis, norm, True)


def _axes_of(name: str, x: Variable, s: Any, axes: Any) -> tuple[list[Any], list[int]]:
    """Return the requested sizes, and the axes, counted from the front."""
    if axes is None:
        count = x.ndim if s is None else len(s)
        axes = range(-count, 0)
    places = [axis_of(name, x, a) for a in axes]
    extents = [None] * len(places) if s is None else list(s)
    if len(extents) != len(places):
        raise ArgumentError(f"{name}: shape and axes have different lengths")
    return [None if n == -1 else n for n in extents], places


def _fft_axes(name: str, x: Variable, places: Sequence[int], inverse: bool, norm: str) -> Variable:
    """Transform over all of these axes; a repeated axis is transformed repeatedly."""
    if not places:
        return x
    for place in sorted({a for a in places if places.count(a) > 1}):
        for _ in range(places.count(place) - 1):
            x = emit(p.fft, x, axes=(place,), inverse=inverse, norm=norm)
    return emit(p.fft, x, axes=tuple(sorted(set(places))), inverse=inverse, norm=norm)


def _several(name: str, a: ArrayLike, s: Any, axes: Any, norm: Norm, inverse: bool) -> Variable:
    value = _whole(a)
    extents, places = _axes_of(name, value, s, axes)
    for n, place in zip(extents, places, strict=True):
        value = _crop_or_pad(name, value, place, n)
    return _fft_axes(name, value, places, inverse, _norm(name, norm))


@namespace_operator
def fftn(a: ArrayLike, s: Extents = None, axes: Places = None, norm: Norm = None) -> Variable:
    """Compute the transform over several axes, all by default, or the last ones if `s` is given.

    `s` are the numbers of elements along them, to which the array is cut or padded. See `fft` for
    the rest.

    >>> pg.fft.fftn(np.ones((2, 2))).numpy().real
    array([[4., 0.],
           [0., 0.]])
    """
    return _several("fftn", a, s, axes, norm, False)


@namespace_operator
def ifftn(a: ArrayLike, s: Extents = None, axes: Places = None, norm: Norm = None) -> Variable:
    """Return the inverse of `fftn`.

    >>> pg.fft.ifftn(np.ones((2, 2))).numpy().real
    array([[1., 0.],
           [0., 0.]])
    """
    return _several("ifftn", a, s, axes, norm, True)


@namespace_operator
def fft2(a: ArrayLike, s: Extents = None, axes: Places = (-2, -1), norm: Norm = None) -> Variable:
    """Return `fftn` over the last two axes.

    >>> pg.fft.fft2(np.ones((2, 2))).numpy().real
    array([[4., 0.],
           [0., 0.]])
    """
    return _several("fft2", a, s, axes, norm, False)


@namespace_operator
def ifft2(a: ArrayLike, s: Extents = None, axes: Places = (-2, -1), norm: Norm = None) -> Variable:
    """Return the inverse of `fft2`.

    >>> pg.fft.ifft2(np.ones((2, 2))).numpy().real
    array([[1., 0.],
           [0., 0.]])
    """
    return _several("ifft2", a, s, axes, norm, True)


@namespace_operator
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """Compute the frequencies 0 to `n // 2` of real numbers along `axis`; others are conjugates.

    See `fft` for the rest. Raises `ArgumentError` for complex numbers.

    >>> pg.fft.rfft([1.0, 1.0, 1.0, 1.0]).numpy().real
    array([4., 0., 0.])
    """
    value = _real("rfft", a)
    place = axis_of("rfft", value, axis)
    value = _crop_or_pad("rfft", value, place, n)
    return emit(p.rfft, value, axis=place, norm=_norm("rfft", norm))


def _transform_to_real(name: str, value: Variable, n: Any, place: int, norm: str) -> Variable:
    """Return real numbers from half of the frequencies, `2 (m - 1)` unless `n` is given."""
    extent = value.shape[place]
    count = 2 * (extent - 1) if n is None else require_integer("n", n)
    if type(count) is int and count < 1:
        raise ShapeError(f"{name}: the number of elements is at least 1, not {count}")
    value = _crop_or_pad(name, value, place, count // 2 + 1)
    return emit(p.irfft, value, n=count, axis=place, norm=norm)


def _narrow(found: Variable, a: ArrayLike) -> Variable:
    """Convert float16 input's result to half precision, like NumPy."""
    return convert_dtype(found, FLOAT16) if lift(a).dtype == FLOAT16 else found


@namespace_operator
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """Return the inverse of `rfft`: `n` real numbers along `axis`, by default `2 (m - 1)` of `m`.

    An odd `n` must be given. Imaginary parts of the first frequency, and for even `n` of the last,
    are ignored.

    >>> pg.fft.irfft([4.0, 0.0, 0.0])
    tensor([1., 1., 1., 1.])
    """
    value = _whole(a)
    place = axis_of("irfft", value, axis)
    return _narrow(_transform_to_real("irfft", value, n, place, _norm("irfft", norm)), a)


@namespace_operator
def rfftn(a: ArrayLike, s: Extents = None, axes: Places = None, norm: Norm = None) -> Variable:
    """Return `rfft` along the last of the axes, then `fft` along the others; see `fftn`.

    >>> pg.fft.rfftn(np.ones((2, 4))).shape
    (2, 3)
    """
    value, factor = _real("rfftn", a), _norm("rfftn", norm)
    extents, places = _axes_of("rfftn", value, s, axes)
    if not places:
        raise ArgumentError("rfftn takes at least one axis")
    for n, place in zip(extents, places, strict=True):
        value = _crop_or_pad("rfftn", value, place, n)
    half = emit(p.rfft, value, axis=places[-1], norm=factor)
    return _fft_axes("rfftn", half, places[:-1], False, factor)


@namespace_operator
def irfftn(a: ArrayLike, s: Extents = None, axes: Places = None, norm: Norm = None) -> Variable:
    """Return the inverse of `rfftn`: `ifft` along the axes, and `irfft` along the last; see there.

    >>> pg.fft.irfftn(np.ones((2, 3))).shape
    (2, 4)
    """
    value, factor = _whole(a), _norm("irfftn", norm)
    extents, places = _axes_of("irfftn", value, s, axes)
    if not places:
        raise ArgumentError("irfftn takes at least one axis")
    for n, place in zip(extents[:-1], places[:-1], strict=True):
        value = _crop_or_pad("irfftn", value, place, n)
    value = _fft_axes("irfftn", value, places[:-1], True, factor)
    return _narrow(_transform_to_real("irfftn", value, extents[-1], places[-1], factor), a)


@namespace_operator
def rfft2(a: ArrayLike, s: Extents = None, axes: Places = (-2, -1), norm: Norm = None) -> Variable:
    """Return `rfftn` over the last two axes.

    >>> pg.fft.rfft2(np.ones((2, 4))).shape
    (2, 3)
    """
    return rfftn(a, s, axes, norm)


@namespace_operator
def irfft2(a: ArrayLike, s: Extents = None, axes: Places = (-2, -1), norm: Norm = None) -> Variable:
    """Return the inverse of `rfft2`.

    >>> pg.fft.irfft2(np.ones((2, 3))).shape
    (2, 4)
    """
    return irfftn(a, s, axes, norm)


@namespace_operator
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """Compute the transform of a Hermitian signal, given by its first half: it is real.

    `a` has the first `n // 2 + 1` numbers; `n` is by default `2 (m - 1)` of `m`.

    >>> pg.fft.hfft([1.0, 0.0, 0.0]).shape
    (4,)
    """
    value = _whole(a)
    place = axis_of("hfft", value, axis)
    turned = p.TURNED[_norm("hfft", norm)]
    return _narrow(_transform_to_real("hfft", emit(conj, value), n, place, turned), a)


@namespace_operator
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """Return the inverse of `hfft`: the first `n // 2 + 1` numbers.

    >>> pg.fft.ihfft(np.ones(4)).shape
    (3,)
    """
    value = _real("ihfft", a)
    place = axis_of("ihfft", value, axis)
    value = _crop_or_pad("ihfft", value, place, n)
    turned = p.TURNED[_norm("ihfft", norm)]
    return emit(conj, emit(p.rfft, value, axis=place, norm=turned))


def _shift_frequencies(name: str, x: ArrayLike, axes: Any, sign: int) -> Variable:
    value = lift(x)
    if axes is None:
        places = list(range(value.ndim))
    else:
        several = isinstance(axes, tuple | list)
        places = [axis_of(name, value, a) for a in (axes if several else (axes,))]
    for place in places:
        extent = value.shape[place]
        if isinstance(extent, Dim):
            start = (extent + 1) // 2 if sign > 0 else extent // 2
            index = (iota((extent,), 0) + start) % extent
            value = take(value, index, axis=place)
        else:
            value = roll(value, sign * (extent // 2), place)
    return value


@namespace_operator
def fftshift(x: ArrayLike, axes: int | Places = None) -> Variable:
    """Move the frequency 0 to the middle of the axes, all by default.

    >>> pg.fft.fftshift([0.0, 1.0, 2.0, 3.0])
    tensor([2., 3., 0., 1.])
    """
    return _shift_frequencies("fftshift", x, axes, 1)


@namespace_operator
def ifftshift(x: ArrayLike, axes: int | Places = None) -> Variable:
    """Return the inverse of `fftshift`.

    >>> pg.fft.ifftshift([2.0, 3.0, 0.0, 1.0])
    tensor([0., 1., 2., 3.])
    """
    return _shift_frequencies("ifftshift", x, axes, -1)


@namespace_operator
def fftfreq(n: int, d: float = 1.0) -> Variable:
    """Return the frequencies of `fft`, of `n` elements at distances `d`: 0, 1, ..., -1 over `n d`.

    `n` may be a symbolic size.

    >>> pg.fft.fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    count, width = require_integer("n", n), require_number("d", d)
    if not isinstance(count, Dim):
        with prefix_errors("fftfreq"):
            return lift(_sample_frequencies(np.fft.fftfreq, count, width))
    k = iota((count,), 0)
    return convert_dtype(where(2 * k < count, k, k - count), FLOAT64) * (
        1.0 / (lift(count) * width)
    )


@namespace_operator
def rfftfreq(n: int, d: float = 1.0) -> Variable:
    """Return the frequencies of `rfft`, of `n` elements at distances `d`.

    >>> pg.fft.rfftfreq(4)
    tensor([0.  , 0.25, 0.5 ])
    """
    count, width = require_integer("n", n), require_number("d", d)
    if not isinstance(count, Dim):
        return lift(_sample_frequencies(np.fft.rfftfreq, count, width))
    k = iota((count // 2 + 1,), 0)
    return convert_dtype(k, FLOAT64) * (1.0 / (lift(count) * width))


def _sample_frequencies(frequencies: Any, n: int, d: float) -> Any:
    if n < 1:
        raise ShapeError(f"frequencies of {n} elements: there is at least one")
    return frequencies(n, d)
