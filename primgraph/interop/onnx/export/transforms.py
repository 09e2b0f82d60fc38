"""ONNX's words for complex numbers, which are two real ones along a last axis, and transforms."""

from __future__ import annotations

import math

import numpy as np

from primgraph.interop.onnx.export.structure import require_numbers
from primgraph.interop.onnx.export.words import composes, number
from primgraph.interop.onnx.export.writer import Writer
from primgraph.ir.graph import Equation
from primgraph.ir.types import real_dtype


@composes("complex", complex=True)
def _complex(w: Writer, eqn: Equation, x: str, y: str) -> str:
    last = w.constant([-1], np.int64)
    return w.emit("Concat", *[w.emit("Unsqueeze", part, last) for part in (x, y)], axis=-1)


@composes("real", "imag", complex=True)
def _part(w: Writer, eqn: Equation, z: str) -> str:
    return w.emit("Gather", z, number(w, int(eqn.op.name == "imag"), np.int64), axis=-1)


@composes("fft", complex=True)
def _fft(w: Writer, eqn: Equation, z: str) -> str:
    inverse = eqn.kwargs["inverse"]
    for axis in eqn.kwargs["axes"]:
        z = _transform(w, eqn, z, axis, inverse=int(inverse))
    return z


@composes("rfft", complex=True)
def _rfft(w: Writer, eqn: Equation, x: str) -> str:
    column = w.emit("Unsqueeze", x, w.constant([-1], np.int64))
    return _transform(w, eqn, column, eqn.kwargs["axis"], onesided=1)


def _transform(
    w: Writer, eqn: Equation, z: str, axis: int, *, inverse: int = 0, onesided: int = 0
) -> str:
    """Write a transform along an axis, behind a new axis of samples, with the factor of a norm."""
    size = eqn.inputs[0].shape[axis]
    require_numbers(eqn, (size,))
    first = w.constant([0], np.int64)
    wide = w.emit("Unsqueeze", z, first)
    found = w.emit("DFT", wide, axis=axis + 1, inverse=inverse, onesided=onesided)
    found = w.emit("Squeeze", found, first)
    # A forward transform is the plain sum, an inverse one is divided by the size.
    wanted = {"ortho": 1 / math.sqrt(size), "forward": 1.0 if inverse else 1 / size}
    wanted["backward"] = 1 / size if inverse else 1.0
    factor = wanted[eqn.kwargs["norm"]] * (size if inverse else 1)
    if factor == 1:
        return found
    return w.emit("Mul", found, number(w, factor, real_dtype(eqn.output.dtype)))
