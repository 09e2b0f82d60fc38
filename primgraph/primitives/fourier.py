"""Discrete Fourier transforms along axes, of complex numbers and from and to real numbers.

The matrix of a transform is symmetric, so `fft` is its own (unconjugated) transpose. `rfft` returns
frequencies 0 to `n // 2`. In a real signal all but the first and, for even `n`, the last of these
stand for two frequencies: `irfft` counts them twice, and the transposes divide or multiply by two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.assumptions import assume_at_least, equal
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Value
from primgraph.ir.index_maps import IndexMap, mixed_along
from primgraph.ir.primitive import Linear, Primitive, Types, primitive
from primgraph.ir.types import (
    COMPLEX64,
    FLOAT32,
    FLOAT64,
    INT64,
    TensorType,
    check_axis,
    complex_dtype,
    real_dtype,
)
from primgraph.primitives.constants import filled_constant, iota
from primgraph.primitives.elementwise import cast
from primgraph.primitives.logic import greater, less, logical_and, select
from primgraph.primitives.parts import conj
from primgraph.primitives.shapes import broadcast

Axes = tuple[int, ...]

# Maps each norm to that of the inverse with the reciprocal factor. "backward" divides by `n` in the
# inverse transform, "forward" in the forward one, "ortho" by the root in both.
TURNED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _check_norm(name: str, norm: str) -> None:
    if norm not in TURNED:
        raise ArgumentError(f"{name} takes a norm of {', '.join(TURNED)}, not {norm!r:.40}")


def _some(name: str, x: TensorType, axis: int) -> None:
    check_axis(name, axis, x)
    if not assume_at_least(x.shape[axis], 1):
        raise ShapeError(f"{name} along axis {axis} of {x}: there are no elements")


def _levels(extent: int) -> int:
    """Return about log2 of the size; log2(1024) for a symbolic size."""
    return 10 if isinstance(extent, Dim) else max(int(extent) - 1, 1).bit_length()


def _work(x: TensorType, *, axes: Axes, **params: Any) -> int:
    """Return the operation count, `5 n log2(n)` per transform of n complex numbers."""
    return sum(5 * x.size * _levels(x.shape[a]) for a in axes)


def _fft(z: Any, *, axes: Axes, inverse: bool, norm: Any) -> Any:
    function = np.fft.ifftn if inverse else np.fft.fftn
    return function(z, axes=axes, norm=norm).astype(z.dtype, copy=False)


@primitive(impl=_fft, linear=True, flops=_work)
def fft(z: TensorType, *, axes: Axes, inverse: bool, norm: str) -> TensorType:
    """Return the transforms, or inverse transforms, of complex numbers along `axes`."""
    if not z.is_complex:
        raise DTypeError(f"fft takes complex numbers, not {z}")
    if not axes or list(axes) != sorted(set(axes)):
        raise ShapeError(f"fft over axes {axes} of {z}: each is named once, in order")
    _check_norm("fft", norm)
    for axis in axes:
        _some("fft", z, axis)
    return z


@fft.transpose
def _fft_transpose(ct: Value, z: Linear, *, axes: Axes, inverse: bool, norm: str) -> tuple[Value]:
    """Return the same transform of the cotangent, as the matrix of a transform is symmetric."""
    return (fft(ct, axes=axes, inverse=inverse, norm=norm),)


@fft.batch
def _fft_batch(batched: tuple[bool, ...], z: Value, *, axes: Axes, **params: Any) -> Value:
    return fft(z, axes=tuple(a + 1 for a in axes), **params)


def _half_work(x: TensorType, *, axis: int, **params: Any) -> int:
    return _work(x, axes=(axis,)) // 2


def _rfft(x: Any, *, axis: int, norm: Any) -> Any:
    found = np.fft.rfft(x, axis=axis, norm=norm)
    return found.astype(np.result_type(x.dtype, COMPLEX64), copy=False)


@primitive(impl=_rfft, linear=True, flops=_half_work)
def rfft(x: TensorType, *, axis: int, norm: str) -> TensorType:
    """Return the first `n // 2 + 1` frequencies of n real numbers along `axis`."""
    if x.dtype not in (FLOAT32, FLOAT64):
        raise DTypeError(f"rfft takes float32 and float64, not {x}")
    _check_norm("rfft", norm)
    _some("rfft", x, axis)
    shape = list(x.shape)
    shape[axis] = shape[axis] // 2 + 1
    return TensorType(tuple(shape), complex_dtype(x.dtype))


def _irfft(z: Any, *, n: int, axis: int, norm: Any) -> Any:
    found = np.fft.irfft(z, n, axis, norm)
    return found.astype(np.real(z).dtype, copy=False)


@primitive(impl=_irfft, linear=True, flops=_half_work)
def irfft(z: TensorType, *, n: int, axis: int, norm: str) -> TensorType:
    """Return the n real numbers whose first `n // 2 + 1` frequencies along `axis` are `z`."""
    if not z.is_complex:
        raise DTypeError(f"irfft takes complex numbers, not {z}")
    _check_norm("irfft", norm)
    check_axis("irfft", axis, z)
    if not assume_at_least(n, 1) or not equal(z.shape[axis], n // 2 + 1):
        raise ShapeError(f"irfft to {n} numbers along axis {axis} of {z}: {n // 2 + 1} are needed")
    shape = list(z.shape)
    shape[axis] = n
    return TensorType(tuple(shape), real_dtype(z.dtype))


def _scale_doubled_frequencies(z: Value, n: int, axis: int, factor: float) -> Value:
    """Return `z` with the frequencies that stand for two of n multiplied by `factor`."""
    k = iota(shape=(z.shape[axis],), axis=0, dtype=INT64)
    twice = logical_and(
        greater(k, filled_constant(0, k.type)), less(k * 2, filled_constant(n, k.type))
    )
    one = filled_constant(1, k.type.with_dtype(real_dtype(z.dtype)))
    weights = select(twice, filled_constant(factor, one.type), one)
    others = tuple(a for a in range(len(z.shape)) if a != axis)
    return z * broadcast(cast(weights, dtype=z.dtype), shape=z.shape, new_axes=others)


@rfft.transpose
def _rfft_transpose(ct: Value, x: Linear, *, axis: int, norm: str) -> tuple[Value]:
    """Return `Re(sum_k ct_k exp(-2 pi i j k / n))`, by `irfft` of the conjugate."""
    n = x.shape[axis]
    halves = _scale_doubled_frequencies(conj(ct), n, axis, 0.5)
    return (irfft(halves, n=n, axis=axis, norm=TURNED[norm]),)


@irfft.transpose
def _irfft_transpose(ct: Value, z: Linear, *, n: int, axis: int, norm: str) -> tuple[Value]:
    return (_scale_doubled_frequencies(conj(rfft(ct, axis=axis, norm=TURNED[norm])), n, axis, 2.0),)


@rfft.batch
def _rfft_batch(batched: tuple[bool, ...], x: Value, *, axis: int, norm: str) -> Value:
    return rfft(x, axis=axis + 1, norm=norm)


@irfft.batch
def _irfft_batch(batched: tuple[bool, ...], z: Value, *, n: int, axis: int, norm: str) -> Value:
    return irfft(z, n=n, axis=axis + 1, norm=norm)


@fft.index_map
def _fft_map(
    k: int, i: int, operands: Types, results: Types, *, axes: Axes, **params: Any
) -> IndexMap:
    return mixed_along(operands[0].shape, results[0].shape, axes)


def _mixes_axis(op: Primitive[Value]) -> None:
    @op.index_map
    def map_rule(
        k: int, i: int, operands: Types, results: Types, *, axis: int, **params: Any
    ) -> IndexMap:
        return mixed_along(operands[0].shape, results[0].shape, (axis,))


for _op in (rfft, irfft):
    _mixes_axis(_op)
