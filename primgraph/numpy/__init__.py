"""NumPy's names, for programs: `import primgraph.numpy as np` in the place of `import numpy as np`.

On arrays and numbers every function is NumPy's own. One that has a variable or a tensor among its
arguments, in lists too, is recorded as the functions of primgraph are: `np.array([v[0], v[1]])`,
`np.mean([a, b])`, `np.linalg.norm(v)`. What has no counterpart here says so, with the nearest
that has. Types, constants and modules such as `np.testing` are NumPy's.
"""

from typing import Any

import numpy

from primgraph.errors import unknown_name
from primgraph.numpy import fft, linalg, random
from primgraph.numpy.arrays import (
    array,
    asanyarray,
    asarray,
    asarray_chkfinite,
    ascontiguousarray,
    asfortranarray,
    ndarray,
)
from primgraph.numpy.changing import FILLED, return_changing
from primgraph.numpy.door import recording_wrapper
from primgraph.numpy.joined import c_, r_
from primgraph.numpy.vectors import vectorize

# Those that mean more than a call of NumPy's with other values.
_OWN = {
    "array": array,
    "asanyarray": asanyarray,
    "asarray": asarray,
    "asarray_chkfinite": asarray_chkfinite,
    "ascontiguousarray": ascontiguousarray,
    "asfarray": asarray,
    "asfortranarray": asfortranarray,
    "c_": c_,
    "fft": fft,
    "linalg": linalg,
    "ndarray": ndarray,
    "r_": r_,
    "random": random,
    "vectorize": vectorize,
}

__all__ = list(numpy.__all__)
__version__ = numpy.__version__


def __getattr__(name: str) -> Any:
    if name in ("__array_api_version__", "__array_namespace_info__"):
        return getattr(numpy, name)
    if name.startswith("__") or not hasattr(numpy, name):
        raise unknown_name("primgraph.numpy", name, dir(numpy))
    found = recording_wrapper(getattr(numpy, name))
    return globals().setdefault(name, return_changing(found) if name in FILLED else found)


def __dir__() -> list[str]:
    return sorted({*dir(numpy), *_OWN})
