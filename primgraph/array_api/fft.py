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
    """The Fourier transform along an axis."""
    return transforms.fft(x, n, axis, norm)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The inverse of `fft`."""
    return transforms.ifft(x, n, axis, norm)


def fftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The Fourier transform along several axes, or all."""
    return transforms.fftn(x, s, _axes(s, axes), norm)


def ifftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The inverse of `fftn`."""
    return transforms.ifftn(x, s, _axes(s, axes), norm)


def _axes(s: Any, axes: Any) -> Any:
    """The axes; those of extents that are given without axes are the last ones."""
    return tuple(range(-len(s), 0)) if axes is None and s is not None else axes


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The Fourier transform of real numbers, of which the first half is all."""
    return transforms.rfft(x, n, axis, norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The inverse of `rfft`."""
    return transforms.irfft(x, n, axis, norm)


def rfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The Fourier transform of real numbers along several axes, or all."""
    return transforms.rfftn(x, s, _axes(s, axes), norm)


def irfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The inverse of `rfftn`."""
    return transforms.irfftn(x, s, _axes(s, axes), norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The Fourier transform of the first half of what is its own mirrored conjugate."""
    return transforms.hfft(x, n, axis, norm)


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The inverse of `hfft`."""
    return transforms.ihfft(x, n, axis, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of `fft`, in cycles by the unit of `d`."""
    require_cpu(device)
    return _frequencies(np.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of `rfft`, in cycles by the unit of `d`."""
    require_cpu(device)
    return _frequencies(np.fft.rfftfreq(n, d), dtype)


def _frequencies(found: Any, dtype: Any) -> Any:
    return ops.array(found.astype(ops.zeros(()).dtype if dtype is None else dtype))


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The frequency zero moved to the middle."""
    return transforms.fftshift(x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return transforms.ifftshift(x, axes)


def __dir__() -> list[str]:
    return sorted(__all__)
