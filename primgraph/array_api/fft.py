"""Fourier transforms, by the names of the standard: the extension `fft`."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as ops
from primgraph.array_api.types import require_cpu
from primgraph.operators.names import define

_ROWS = """
fft(x, /, *, n: int | None = None, axis: int = -1, norm='backward'): fft.fft
Compute the Fourier transform along an axis.
>>> xp.fft.fft(xp.asarray([1.0, 2.0]))
tensor([ 3.+0.j, -1.+0.j], dtype=complex128)

ifft(x, /, *, n: int | None = None, axis: int = -1, norm='backward'): fft.ifft
Compute the inverse of `fft`.
>>> xp.fft.ifft(xp.asarray([3.0, -1.0]))
tensor([1.+0.j, 2.+0.j], dtype=complex128)

fftn(x, /, *, s=None, axes=None, norm='backward'): fft.fftn
Compute the Fourier transform along several axes, or all.
>>> xp.fft.fftn(xp.ones((2, 2)))
tensor([[4.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]], dtype=complex128)

ifftn(x, /, *, s=None, axes=None, norm='backward'): fft.ifftn
Compute the inverse of `fftn`.
>>> xp.fft.ifftn(xp.ones((2, 2)))
tensor([[1.+0.j, 0.+0.j],
        [0.+0.j, 0.+0.j]], dtype=complex128)

rfft(x, /, *, n: int | None = None, axis: int = -1, norm='backward'): fft.rfft
Compute the Fourier transform of real numbers: its first half, which determines the rest.
>>> xp.fft.rfft(xp.asarray([1.0, 0.0, 0.0, 0.0]))
tensor([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128)

irfft(x, /, *, n: int | None = None, axis: int = -1, norm='backward'): fft.irfft
Compute the inverse of `rfft`.
>>> xp.fft.irfft(xp.asarray([1.0, 1.0, 1.0]))
tensor([1., 0., 0., 0.])

rfftn(x, /, *, s=None, axes=None, norm='backward'): fft.rfftn
Compute the Fourier transform of real numbers along several axes, or all, as `rfft` does.
>>> xp.fft.rfftn(xp.ones((2, 2))).shape
(2, 2)

irfftn(x, /, *, s=None, axes=None, norm='backward'): fft.irfftn
Compute the inverse of `rfftn`.
>>> xp.fft.irfftn(xp.ones((2, 2)))
tensor([[1., 0.],
        [0., 0.]])

hfft(x, /, *, n: int | None = None, axis: int = -1, norm='backward'): fft.hfft
Compute the real Fourier transform of a Hermitian signal, given by its first half.
>>> xp.fft.hfft(xp.asarray([1.0, 1.0, 1.0]))
tensor([4., 0., 0., 0.])

ihfft(x, /, *, n: int | None = None, axis: int = -1, norm='backward'): fft.ihfft
Compute the inverse of `hfft`.
>>> xp.fft.ihfft(xp.asarray([4.0, 0.0, 0.0, 0.0]))
tensor([1.-0.j, 1.-0.j, 1.-0.j], dtype=complex128)

fftshift(x, /, *, axes=None): fft.fftshift
Move the frequency zero to the middle.
>>> xp.fft.fftshift(xp.fft.fftfreq(4))
tensor([-0.5 , -0.25,  0.  ,  0.25])

ifftshift(x, /, *, axes=None): fft.ifftshift
Compute the inverse of `fftshift`.
>>> xp.fft.ifftshift(xp.asarray([-0.5, -0.25, 0.0, 0.25]))
tensor([ 0.  ,  0.25, -0.5 , -0.25])
"""

__all__ = [*define("array_api.fft", globals(), _ROWS), "fftfreq", "rfftfreq"]


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


def __dir__() -> list[str]:
    return sorted(__all__)
