"""Fourier transforms, by the names of the standard: the extension `fft`."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as ops
from primgraph.array_api.types import require_cpu
from primgraph.numpy import fft as transforms

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Compute the Fourier transform along an axis.

    >>> xp.fft.fft(xp.asarray([1.0, 2.0]))
    tensor([ 3.+0.j, -1.+0.j], dtype=complex128)
    """
    return transforms.fft(x, n, axis, norm)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Compute the inverse of `fft`.

    >>> xp.fft.ifft(xp.asarray([3.0, -1.0]))
    tensor([1.+0.j, 2.+0.j], dtype=complex128)
    """
    return transforms.ifft(x, n, axis, norm)


def fftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Compute the Fourier transform along several axes, or all.

    >>> xp.fft.fftn(xp.ones((2, 2)))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return transforms.fftn(x, s, _axes(s, axes), norm)


def ifftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Compute the inverse of `fftn`.

    >>> xp.fft.ifftn(xp.ones((2, 2)))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return transforms.ifftn(x, s, _axes(s, axes), norm)


def _axes(s: Any, axes: Any) -> Any:
    """The axes; those of extents that are given without axes are the last ones."""
    return tuple(range(-len(s), 0)) if axes is None and s is not None else axes


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Compute the Fourier transform of real numbers: its first half, which determines the rest.

    >>> xp.fft.rfft(xp.asarray([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128)
    """
    return transforms.rfft(x, n, axis, norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Compute the inverse of `rfft`.

    >>> xp.fft.irfft(xp.asarray([1.0, 1.0, 1.0]))
    tensor([1., 0., 0., 0.])
    """
    return transforms.irfft(x, n, axis, norm)


def rfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Compute the Fourier transform of real numbers along several axes, or all, as `rfft` does.

    >>> xp.fft.rfftn(xp.ones((2, 2))).shape
    (2, 2)
    """
    return transforms.rfftn(x, s, _axes(s, axes), norm)


def irfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """Compute the inverse of `rfftn`.

    >>> xp.fft.irfftn(xp.ones((2, 2)))
    tensor([[1., 0.],
            [0., 0.]])
    """
    return transforms.irfftn(x, s, _axes(s, axes), norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Compute the real Fourier transform of a Hermitian signal, given by its first half.

    >>> xp.fft.hfft(xp.asarray([1.0, 1.0, 1.0]))
    tensor([4., 0., 0., 0.])
    """
    return transforms.hfft(x, n, axis, norm)


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """Compute the inverse of `hfft`.

    >>> xp.fft.ihfft(xp.asarray([4.0, 0.0, 0.0, 0.0]))
    tensor([1.-0.j, 1.-0.j, 1.-0.j], dtype=complex128)
    """
    return transforms.ihfft(x, n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of `fft` for `n` samples at distance `d`.

    >>> xp.fft.fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    require_cpu(device)
    return _frequencies(np.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of `rfft` for `n` samples at distance `d`.

    >>> xp.fft.rfftfreq(4)
    tensor([0.  , 0.25, 0.5 ])
    """
    require_cpu(device)
    return _frequencies(np.fft.rfftfreq(n, d), dtype)


def _frequencies(found: Any, dtype: Any) -> Any:
    return ops.array(found.astype(ops.zeros(()).dtype if dtype is None else dtype))


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Move the frequency zero to the middle.

    >>> xp.fft.fftshift(xp.fft.fftfreq(4))
    tensor([-0.5 , -0.25,  0.  ,  0.25])
    """
    return transforms.fftshift(x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Compute the inverse of `fftshift`.

    >>> xp.fft.ifftshift(xp.asarray([-0.5, -0.25, 0.0, 0.25]))
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return transforms.ifftshift(x, axes)


def __dir__() -> list[str]:
    return sorted(__all__)
