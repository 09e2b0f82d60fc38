"""Fourier transforms, by the names and arguments of `paddle.fft`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph import fft as ours
from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.dynamic import as_paddles
from primgraph.compat.paddle.framework import paddles
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.errors import OptionError

_ROWS = """
fft(x, n=None, axis=-1, norm="backward"): fft.fft
Transform along an axis. | [1.0, 1.0] -> [(2+0j), 0j]
ifft(x, n=None, axis=-1, norm="backward"): fft.ifft
Compute the inverse of `fft`. | [2.0, 0.0] -> [(1+0j), (1+0j)]
rfft(x, n=None, axis=-1, norm="backward"): fft.rfft
Transform real numbers; return the first half of the result. | [1.0, 1.0] -> [(2+0j), 0j]
irfft(x, n=None, axis=-1, norm="backward"): fft.irfft
Compute the inverse of `rfft`. | [2.0, 0.0] -> [1.0, 1.0]
hfft(x, n=None, axis=-1, norm="backward"): fft.hfft
Transform what has a real transform, given its first half. | [1.0, 1.0] -> [2.0, 0.0]
ihfft(x, n=None, axis=-1, norm="backward"): fft.ihfft
Compute the inverse of `hfft`. | [2.0, 0.0] -> [(1-0j), (1-0j)]
fft2(x, s=None, axes=(-2, -1), norm="backward"): fft.fft2
Transform along two axes. | [[1.0, 1.0]] -> [[(2+0j), 0j]]
ifft2(x, s=None, axes=(-2, -1), norm="backward"): fft.ifft2
Compute the inverse of `fft2`. | [[2.0, 0.0]] -> [[(1+0j), (1+0j)]]
rfft2(x, s=None, axes=(-2, -1), norm="backward"): fft.rfft2
Transform real numbers along two axes. | [[1.0, 1.0]] -> [[(2+0j), 0j]]
irfft2(x, s=None, axes=(-2, -1), norm="backward"): fft.irfft2
Compute the inverse of `rfft2`. | [[2.0, 0.0]] -> [[1.0, 1.0]]
hfft2(x, s=None, axes=(-2, -1), norm="backward") = ours.irfftn(pg.conj(x), s, axes, turned(norm))
Transform what has a real transform along two axes. | [[1.0, 1.0]] -> [[2.0, 0.0]]
ihfft2(x, s=None, axes=(-2, -1), norm="backward") = pg.conj(ours.rfftn(x, s, axes, turned(norm)))
Compute the inverse of `hfft2`. | [[2.0, 0.0]] -> [[(1-0j), (1-0j)]]
fftn(x, s=None, axes=None, norm="backward"): fft.fftn
Transform along several axes. | [[1.0, 1.0]] -> [[(2+0j), 0j]]
ifftn(x, s=None, axes=None, norm="backward"): fft.ifftn
Compute the inverse of `fftn`. | [[2.0, 0.0]] -> [[(1+0j), (1+0j)]]
rfftn(x, s=None, axes=None, norm="backward"): fft.rfftn
Transform real numbers along several axes. | [[1.0, 1.0]] -> [[(2+0j), 0j]]
irfftn(x, s=None, axes=None, norm="backward"): fft.irfftn
Compute the inverse of `rfftn`. | [[2.0, 0.0]] -> [[1.0, 1.0]]
hfftn(x, s=None, axes=None, norm="backward") = ours.irfftn(pg.conj(x), s, axes, turned(norm))
Transform what has a real transform along several axes. | [[1.0, 1.0]] -> [[2.0, 0.0]]
ihfftn(x, s=None, axes=None, norm="backward") = pg.conj(ours.rfftn(x, s, axes, turned(norm)))
Compute the inverse of `hfftn`. | [[2.0, 0.0]] -> [[(1-0j), (1-0j)]]
fftshift(x, axes=None): fft.fftshift
Move the zero frequency to the middle. | [0.0, 1.0, 2.0] -> [2.0, 0.0, 1.0]
ifftshift(x, axes=None): fft.ifftshift
Compute the inverse of `fftshift`. | [2.0, 0.0, 1.0] -> [0.0, 1.0, 2.0]
"""


def turned(norm: str) -> str:
    """Return the scaling of the other direction."""
    found = {"backward": "forward", "forward": "backward", "ortho": "ortho"}.get(norm)
    if found is None:
        raise OptionError(f"there is no norm {norm!r:.40}: it is 'forward', 'backward' or 'ortho'")
    return found


__all__ = [*define_functions(globals(), _ROWS, "paddle.fft"), "fftfreq", "rfftfreq"]


@paddles
def fftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None) -> Any:
    """Return the frequencies of `fft`.

    >>> paddle.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return as_paddles(pg.cast(ours.fftfreq(n, d), dtype_or_default(dtype)))


@paddles
def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None) -> Any:
    """Return the frequencies of `rfft`.

    >>> paddle.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return as_paddles(pg.cast(ours.rfftfreq(n, d), dtype_or_default(dtype)))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
