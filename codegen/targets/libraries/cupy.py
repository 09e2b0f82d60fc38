"""Words of CuPy where its expression of a primitive differs from NumPy's."""

from __future__ import annotations

from primgraph.codegen.ops.spelling.notation import reading
from primgraph.codegen.targets.readable.dialect import Dialect, Word
from primgraph.ir.primitive import Op
from primgraph.primitives import constants
from primgraph.primitives import elementwise as e
from primgraph.primitives.linear_algebra import systems
from primgraph.primitives.special_functions import by_parameters, gamma, scipy_calls, special

_SPECIAL = "special."

WORDS: dict[Op, Word] = {
    op: Word(reading(f"{_SPECIAL}{name}({{args}})"))
    for op, name in (
        (e.erf, "erf"),
        (e.erfc, "erfc"),
        (gamma.gammaln, "gammaln"),
        (gamma.gamma_function, "gamma"),
        (special.erfinv, "erfinv"),
        (special.erfcinv, "erfcinv"),
        (special.log_ndtr, "log_ndtr"),
    )
}

LACKING = frozenset(
    {
        constants.random_uniform,
        constants.random_bernoulli,
        special.random_variate,
        systems.sparse_triangular_solve,
        scipy_calls.by_scipy,
        by_parameters.bessel_by_order,
        by_parameters.gauss_by_parameters,
        by_parameters.kummer_by_parameters,
        by_parameters.zeta_by_exponent,
    }
)

CUPY = Dialect("CuPy", ("from cupyx.scipy import special", "import cupy as np"), WORDS, LACKING)
