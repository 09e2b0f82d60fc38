"""NumPy's names, for programs: `import primgraph.numpy as np` in the place of `import numpy as np`.

On arrays and numbers every function is NumPy's own. One that has a variable or a tensor among its
arguments, in lists too, is recorded as the functions of primgraph are: `np.array([v[0], v[1]])`,
`np.mean([a, b])`, `np.linalg.norm(v)`. What has no counterpart here says so, with the nearest
that has. Types, constants and modules such as `np.testing` are NumPy's.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy

from primgraph.errors import unknown_name
from primgraph.operators.names import rows

if TYPE_CHECKING:
    from primgraph.numpy import fft as fft
    from primgraph.numpy import linalg as linalg
    from primgraph.numpy import random as random
    from primgraph.numpy.arrays import array as array
    from primgraph.numpy.arrays import asanyarray as asanyarray
    from primgraph.numpy.arrays import asarray as asarray
    from primgraph.numpy.arrays import asarray_chkfinite as asarray_chkfinite
    from primgraph.numpy.arrays import ascontiguousarray as ascontiguousarray
    from primgraph.numpy.arrays import asfortranarray as asfortranarray
    from primgraph.numpy.arrays import ndarray as ndarray
    from primgraph.numpy.joined import c_ as c_
    from primgraph.numpy.joined import r_ as r_
    from primgraph.numpy.vectors import vectorize as vectorize

__all__ = list(numpy.__all__)
__version__ = numpy.__version__


def __getattr__(name: str) -> Any:
    if name in ("__array_api_version__", "__array_namespace_info__"):
        return getattr(numpy, name)
    # These mean more than a call of NumPy's with other values.
    own = rows("drop_in").get(name)
    if own is not None:
        return globals().setdefault(name, own.load())
    if name.startswith("__") or not hasattr(numpy, name):
        raise unknown_name("primgraph.numpy", name, dir(numpy))
    return globals().setdefault(name, _recorded(name))


def _recorded(name: str) -> Any:
    """Return NumPy's object of that name; a function records where it meets variables."""
    door = import_module("primgraph.numpy.door")
    changing = import_module("primgraph.numpy.changing")
    found = door.recording_wrapper(getattr(numpy, name))
    return changing.return_changing(found) if name in changing.FILLED else found


def __dir__() -> list[str]:
    return sorted({*dir(numpy), *rows("drop_in")})
