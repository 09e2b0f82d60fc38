"""Fourier transforms, named as in numpy.fft."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import unknown_name
from primgraph.operators.signal import fourier
from primgraph.operators.signal.fourier import *  # noqa: F403

__all__: list[str] = []

if not TYPE_CHECKING:
    __all__ += fourier.__all__

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.fft", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
