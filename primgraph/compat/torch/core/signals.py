"""Windows of signals, and Fourier transforms of parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import fft
from primgraph import operators as pg
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.framework import dtype_or_default
from primgraph.errors import ArgumentError, OptionError

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "istft",
    "kaiser_window",
    "stft",
]


def _window(
    values: Any, window_length: int, periodic: bool, dtype: Any, options: dict[str, Any]
) -> Any:
    """Return a window: of one more element, without the last one, if it is periodic."""
    count = window_length + 1 if periodic and window_length > 1 else window_length
    array = values(max(count, 1))[:window_length]
    return create.tensor(array, dtype=dtype_or_default(dtype), **options)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, **options: Any
) -> Any:
    """Return a Hann window.

    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(np.hanning, window_length, periodic, dtype, options)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    **options: Any,
) -> Any:
    """Return a Hamming window, `alpha - beta * cos(2 pi n / (N - 1))`.

    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """

    def values(count: int) -> Any:
        return alpha - beta * np.cos(2 * np.pi * np.arange(count) / max(count - 1, 1))

    return _window(values, window_length, periodic, dtype, options)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, **options: Any
) -> Any:
    """Return a Blackman window.

    >>> torch.blackman_window(4)[1]
    tensor(0.3400)
    """
    return _window(np.blackman, window_length, periodic, dtype, options)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, **options: Any
) -> Any:
    """Return a triangular window.

    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(np.bartlett, window_length, periodic, dtype, options)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    **options: Any,
) -> Any:
    """Return a Kaiser window.

    >>> torch.kaiser_window(4)[2]
    tensor(1.)
    """
    return _window(lambda n: np.kaiser(n, beta), window_length, periodic, dtype, options)


def _whole_window(window: Any, n_fft: int, length: int, like: Any) -> Any:
    """Return the window in the middle of `n_fft` elements."""
    if window is None:
        window = create.ones(length, dtype=like.type.dtype)
    left = (n_fft - length) // 2
    return pg.pad(window, ((left, n_fft - length - left),))


def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Any:
    """Compute Fourier transforms of windows of a signal, `hop_length` apart: frequencies, windows.

    Raises `OptionError` without `return_complex`.

    >>> torch.stft(torch.arange(8.0), 4, center=False, return_complex=True).shape
    torch.Size([3, 5])
    """
    if not return_complex:
        raise OptionError("stft requires the return_complex parameter be given for real inputs")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    x = input
    if center:
        if pad_mode not in ("reflect", "constant"):
            raise OptionError(f"pad_mode= is 'reflect' or 'constant' here, not {pad_mode!r:.60}")
        widths = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        x = pg.pad(x, widths, mode=pad_mode)
    if x.shape[-1] < n_fft:
        raise ArgumentError(f"stft: {x.shape[-1]} samples are less than n_fft = {n_fft}")
    starts = np.arange(0, x.shape[-1] - n_fft + 1, hop)
    frames = pg.take(x, starts[:, None] + np.arange(n_fft), -1)
    frames = pg.multiply(frames, _whole_window(window, n_fft, length, input))
    half = not input.type.is_complex if onesided is None else onesided
    norm: Any = "ortho" if normalized else None
    found = (fft.rfft if half else fft.fft)(frames, norm=norm)
    return pg.swapaxes(found, -1, -2)


def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """Compute the signal whose windows have these Fourier transforms: the inverse of `stft`.

    >>> x = torch.arange(8.0)
    >>> torch.istft(torch.stft(x, 4, return_complex=True), 4).shape
    torch.Size([8])
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    norm: Any = "ortho" if normalized else None
    turned = pg.swapaxes(input, -1, -2)
    half = input.shape[-2] == n_fft // 2 + 1 if onesided is None else onesided
    frames = fft.irfft(turned, n_fft, norm=norm) if half else fft.ifft(turned, norm=norm)
    if not (return_complex or half):
        frames = pg.real(frames)
    weights = _whole_window(window, n_fft, width, pg.real(frames))
    frames = pg.multiply(frames, weights)
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    places = (np.arange(count)[:, None] * hop + np.arange(n_fft)).reshape(-1)
    lead = tuple(frames.shape[:-2])
    flat = pg.reshape(frames, (*lead, count * n_fft))
    axis = len(lead)
    signal = pg.scatter_add(
        pg.zeros_like(pg.take(flat, np.zeros(total, np.int64), -1)), places, flat, axis
    )
    squares = pg.tile(pg.square(weights), (count,))
    scale = pg.scatter_add(
        pg.zeros_like(pg.take(squares, np.zeros(total, np.int64))), places, squares
    )
    first = n_fft // 2 if center else 0
    last = total - first if length is None else first + length
    kept = (..., slice(first, last))
    return pg.divide(signal[kept], scale[slice(first, last)])
