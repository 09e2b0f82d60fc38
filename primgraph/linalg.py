"""Linear algebra, named as in numpy.linalg, with further functions of scipy.linalg."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import LinAlgError, unknown_name
from primgraph.operators import factored, norms, spectra, systems
from primgraph.operators.factored import *  # noqa: F403
from primgraph.operators.linalg import matmul, outer, tensordot
from primgraph.operators.matrices import (
    cross,
    diagonal,
    matrix_power,
    matrix_transpose,
    multi_dot,
    trace,
    vecdot,
)
from primgraph.operators.norms import *  # noqa: F403
from primgraph.operators.spectra import *  # noqa: F403
from primgraph.operators.systems import *  # noqa: F403

__all__ = [
    "LinAlgError",
    "cross",
    "diagonal",
    "matmul",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
]

if not TYPE_CHECKING:
    __all__ += [*factored.__all__, *norms.__all__, *spectra.__all__, *systems.__all__]

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.linalg", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
