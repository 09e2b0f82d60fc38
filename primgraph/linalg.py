"""Linear algebra, named as in numpy.linalg, with further functions of scipy.linalg."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import LinAlgError, unknown_name
from primgraph.operators.linear_algebra import factorizations, spectra, systems
from primgraph.operators.linear_algebra.factorizations import *  # noqa: F403
from primgraph.operators.linear_algebra.matrices import (
    cross,
    diagonal,
    matrix_power,
    matrix_transpose,
    multi_dot,
    trace,
    vecdot,
)
from primgraph.operators.linear_algebra.products import matmul, outer, tensordot
from primgraph.operators.linear_algebra.spectra import *  # noqa: F403
from primgraph.operators.linear_algebra.systems import *  # noqa: F403
from primgraph.operators.reduce import norms
from primgraph.operators.reduce.norms import *  # noqa: F403

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
    __all__ += [*factorizations.__all__, *norms.__all__, *spectra.__all__, *systems.__all__]

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.linalg", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
