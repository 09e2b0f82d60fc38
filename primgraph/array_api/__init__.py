"""The functions of the Python array API standard, version 2024.12, on tensors and variables.

`x.__array_namespace__()` gives this module, so that code which was written for the standard runs on
tensors as it is, and may be traced. Arrays that are made here are tensors, and constants where a
program is being built. The standard is at https://data-apis.org/array-api/2024.12.
In the examples `xp` is this module.
"""

import math

from primgraph.array_api import (
    creation,
    elementwise,
    fft,
    info,
    linalg,
    manipulation,
    searching,
    statistics,
    types,
)
from primgraph.array_api.creation import *  # noqa: F403
from primgraph.array_api.elementwise import *  # noqa: F403
from primgraph.array_api.info import *  # noqa: F403
from primgraph.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from primgraph.array_api.manipulation import *  # noqa: F403
from primgraph.array_api.searching import *  # noqa: F403
from primgraph.array_api.statistics import *  # noqa: F403
from primgraph.array_api.types import *  # noqa: F403

__array_api_version__ = "2024.12"

e = math.e
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi

__all__ = [
    *creation.__all__,
    *elementwise.__all__,
    *info.__all__,
    *manipulation.__all__,
    *searching.__all__,
    *statistics.__all__,
    *types.__all__,
    "__array_api_version__",
    "e",
    "fft",
    "inf",
    "linalg",
    "matmul",
    "matrix_transpose",
    "nan",
    "newaxis",
    "pi",
    "tensordot",
    "vecdot",
]


def __dir__() -> list[str]:
    return sorted(__all__)
