"""Names of primgraph.linalg, written by tests/tools/stubs.py."""

from primgraph.errors import LinAlgError as LinAlgError
from primgraph.operators.linear_algebra.factorizations import EigResult as EigResult, block_diag as block_diag, cho_factor as cho_factor, cho_solve as cho_solve, eig as eig, eigvals as eigvals, expm as expm, logm as logm, lu as lu, lu_factor as lu_factor, lu_solve as lu_solve, solve_banded as solve_banded, solve_sylvester as solve_sylvester, solve_toeplitz as solve_toeplitz, sqrtm as sqrtm, toeplitz as toeplitz
from primgraph.operators.linear_algebra.matrices import cross as cross, diagonal as diagonal, matrix_power as matrix_power, matrix_transpose as matrix_transpose, multi_dot as multi_dot, trace as trace, vecdot as vecdot
from primgraph.operators.linear_algebra.products import matmul as matmul, outer as outer, tensordot as tensordot
from primgraph.operators.linear_algebra.spectra import EighResult as EighResult, LstsqResult as LstsqResult, QRResult as QRResult, SVDResult as SVDResult, eigh as eigh, eigvalsh as eigvalsh, lstsq as lstsq, matrix_rank as matrix_rank, pinv as pinv, qr as qr, svd as svd, svdvals as svdvals
from primgraph.operators.linear_algebra.systems import SlogdetResult as SlogdetResult, cholesky as cholesky, det as det, inv as inv, slogdet as slogdet, solve as solve, solve_triangular as solve_triangular, tensorinv as tensorinv, tensorsolve as tensorsolve
from primgraph.operators.reduce.norms import cond as cond, matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm
