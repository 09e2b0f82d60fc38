"""Linear algebra by NumPy's names: NumPy's own on arrays, recorded with variables."""

from typing import Any

import numpy

from primgraph.errors import unknown_name
from primgraph.numpy.door import recording_wrapper


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not hasattr(numpy.linalg, name):
        raise unknown_name("primgraph.numpy.linalg", name, dir(numpy.linalg))
    return globals().setdefault(name, recording_wrapper(getattr(numpy.linalg, name)))


def __dir__() -> list[str]:
    return dir(numpy.linalg)
