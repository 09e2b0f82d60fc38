"""Fourier transforms by NumPy's names: NumPy's own on arrays, recorded with variables."""

from typing import Any

import numpy

from primgraph.errors import unknown_name
from primgraph.numpy.door import recording_wrapper


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not hasattr(numpy.fft, name):
        raise unknown_name("primgraph.numpy.fft", name, dir(numpy.fft))
    return globals().setdefault(name, recording_wrapper(getattr(numpy.fft, name)))


def __dir__() -> list[str]:
    return dir(numpy.fft)
