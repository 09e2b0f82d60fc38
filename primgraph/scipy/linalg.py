"""Linear algebra by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

A function that is called with a variable or a tensor is that of `primgraph.linalg`, or of these
modules where SciPy's arguments differ. What has no counterpart says so.
"""

from typing import Any

from primgraph.operators.names import declare
from primgraph.scipy.stand_in import stand_in

declare({
    "scipy.linalg": {
        "primgraph.scipy.matrix_equations": """
            coshm cosm expm_frechet fractional_matrix_power matmul_toeplitz signm sinhm sinm
            solve_circulant solve_continuous_are solve_continuous_lyapunov
            solve_discrete_are solve_discrete_lyapunov solve_lyapunov solveh_banded tanhm tanm
            """,
        "primgraph.scipy.matrix_factors": """
            cholesky eig eigh eigh_tridiagonal eigvals eigvalsh eigvalsh_tridiagonal lstsq
            null_space orth orthogonal_procrustes pinv pinvh polar qr schur solve subspace_angles
            """,
        "primgraph.scipy.matrix_forms": """
            circulant companion convolution_matrix diagsvd fiedler hankel khatri_rao leslie
            """,
    },
})  # fmt: skip

# Arguments that say how SciPy works with memory, or whether it looks for NaN.
_OF_MEMORY = frozenset(
    ("check_finite", "lapack_driver", "lwork", "overwrite_a", "overwrite_ab", "overwrite_b")
)
__all__, _find, __dir__ = stand_in("scipy.linalg", globals(), _OF_MEMORY)


# A definition tells type checkers that a module has other names, too.
def __getattr__(name: str) -> Any:
    return _find(name)
