"""Fourier transforms and filters."""

from __future__ import annotations

from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph import fft
from primgraph.interop.onnx.node import Node, Optional, Value
from primgraph.interop.onnx.table import means


def _axis(node: Node, x: Value, *inputs: Optional) -> int:
    """Return the axis of a transform: an attribute, and an input from version 20 on."""
    given = (x, *inputs)
    if node.version < 20:
        return int(node.get("axis", 1)) % x.ndim
    found = node.numbers("axis", given, 2)
    return (-2 if found is None else int(found[0])) % x.ndim


@means("DFT")
def _dft(node: Node, x: Value, *inputs: Optional) -> Any:
    """Transform along an axis; the last axis has real and imaginary parts, or one element."""
    axis = _axis(node, x, *inputs)
    found = node.numbers("dft_length", (x, *inputs), 1)
    signal = x[..., 0]
    if x.shape[-1] == 2:
        signal = signal + x[..., 1] * x.dtype.type(1) * 1j
    onesided = bool(node.get("onesided", 0))
    n = None if found is None else found[0]
    if node.get("inverse", 0):
        if onesided:
            return pnp.expand_dims(fft.irfft(signal, n, axis), -1).astype(x.dtype)
        return _parts(fft.ifft(signal, n, axis), x.dtype)
    transformed = fft.rfft(signal, n, axis) if onesided else fft.fft(signal, n, axis)
    return _parts(transformed, x.dtype)


def _parts(x: Any, dtype: np.dtype[Any]) -> Any:
    return pnp.stack([pnp.real(x), pnp.imag(x)], -1).astype(dtype)


@means("STFT")
def _stft(node: Node, x: Value, step: Value, *inputs: Optional) -> Any:
    """Transform windows of the signal along axis 1."""
    given = (x, step, *inputs)
    apart = int(node.known(given, 1, "frame_step").reshape(-1)[0])
    window = inputs[0] if inputs else None
    length = node.numbers("frame_length", given, 3)
    size = int(length[0]) if length is not None else window.shape[0]  # type: ignore[union-attr]
    count = (x.shape[1] - size) // apart + 1
    places = np.arange(count)[:, None] * apart + np.arange(size)
    frames = pnp.take(x, places, 1)
    signal = frames[..., 0] if x.ndim == 3 else frames
    if x.ndim == 3 and x.shape[-1] == 2:
        signal = signal + frames[..., 1] * 1j
    if window is not None:
        signal = signal * window
    transformed = fft.rfft(signal) if node.get("onesided", 1) else fft.fft(signal)
    return _parts(transformed, x.dtype)


@means("MelWeightMatrix")
def _mel_weight_matrix(node: Node, *inputs: Value) -> Any:
    """Return triangular filters whose centres are equally spaced on the mel scale."""
    bins, length, rate, low, high = (
        node.known(inputs, k, "parameters").reshape(()).item() for k in range(5)
    )
    mels = 2595 * np.log10(1 + np.array([low, high]) / 700)
    points = mels[0] + np.arange(bins + 2) * ((mels[1] - mels[0]) / (bins + 2))
    edges = np.floor(((length + 1) * (700 * (10 ** (points / 2595) - 1))) / rate).astype(int)
    found = np.zeros((length // 2 + 1, bins), np.float32)
    for k in range(bins):
        lower, centre, upper = edges[k : k + 3]
        if centre == lower:
            found[centre, k] = 1
        else:
            found[lower : centre + 1, k] = np.arange(centre - lower + 1) / (centre - lower)
        if upper > centre:
            found[centre:upper, k] = (upper - np.arange(centre, upper)) / (upper - centre)
    dtype = np.float32 if node.get("output_datatype", 1) == 1 else np.float64
    return found.astype(dtype)
