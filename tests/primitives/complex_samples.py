"""Samples of primitives on complex numbers, which every check of the registry test takes too.

Each call of a function here is one more of its row. Numbers are drawn above the intervals of the
row, away from cuts.
"""

import numpy as np

from primgraph.ir.types import BOOL, COMPLEX64, COMPLEX128

ONE = "c128[3]"
INDEX = np.array([2, 0, 2])

# Operands and parameters of calls, by primitive.
CALLS: dict[str, list[tuple[tuple, dict]]] = {
    **{
        name: [((ONE,), {})]
        for name in (
            "neg", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh",
            "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
        )
    },
    **{
        name: [((ONE, ONE), {})]
        for name in (
            "add", "sub", "mul", "div", "power", "equal", "not_equal", "unless_nan",
            "as_function_of",
        )
    },
    "integer_pow": [((ONE,), {"n": n}) for n in (0, 3, -2)],
    "cast": [
        (("f64[3]",), {"dtype": COMPLEX128}),
        (("f64[2]",), {"dtype": COMPLEX64}),
        (("bool[2]",), {"dtype": COMPLEX128}),
        ((ONE,), {"dtype": COMPLEX128}),
        ((ONE,), {"dtype": BOOL}),
    ],
    "select": [(("bool[3]", ONE, ONE), {})],
    "reshape": [(("c128[2,3]",), {"shape": (3, 2)})],
    "permute": [(("c128[2,3]",), {"axes": (1, 0)})],
    "broadcast": [((ONE,), {"shape": (3, 2), "new_axes": (1,)})],
    "reverse": [(("c128[2,3]",), {"axes": (1,)})],
    "pad": [((ONE,), {"low": (1,), "high": (2,)})],
    "slice": [((ONE,), {"starts": (0,), "sizes": (2,), "steps": (2,)})],
    "slice_assign": [((ONE, "c128[2]"), {"starts": (0,), "steps": (2,)})],
    "concat": [((ONE, "c128[2]"), {"axis": 0})],
    "split": [((ONE,), {"sizes": (1, 2), "axis": 0})],
    "gather": [((ONE, INDEX), {"axis": 0})],
    "placed": [((ONE, ONE), {"shape": (2, 4), "starts": (0, 7), "strides": ((2,), (-2,))})],
    "scatter_add": [((ONE, ONE, INDEX), {"axis": 0})],
    "reduce_sum": [(("c128[2,3]",), {"axes": (1,)}), (("c64[0]",), {"axes": (0,)})],
    "reduce_prod": [(("c128[2,3]",), {"axes": (0, 1)})],
    "cumsum": [((ONE,), {"axis": 0, "reverse": reverse}) for reverse in (False, True)],
    "cumprod": [((ONE,), {"axis": 0})],
    "matmul": [(("c128[2,3]", "c128[3,2]"), {}), (("c128[2,1,2]", "c128[2,2,1]"), {})],
    "solve": [(("c128[3,3]", "c128[3,2]"), {}), (("c128[2,2,2]", "c128[2,2,1]"), {})],
    "sparse_triangular_solve": [
        (("c128[3]", "c128[3,2]", np.array([0, 1, 1]), np.array([0, 0, 1])), {"reverse": False})
    ],
    "triangular_solve": [
        (("c128[3,3]", "c128[3,2]"), {"lower": lower, "transposed": not unit, "unit": unit})
        for lower in (True, False)
        for unit in (True, False)
    ],
    **{
        name: [(("c128[3,3]",), {}), (("c128[2,2,2]",), {})]
        for name in ("inv", "cholesky", "slogdet", "det", "cofactors", "expm", "sqrtm", "logm",
                     "eigvalsh")
    },
    **{
        name: [(("c128[3,3]", "c128[3,3]"), {})]
        for name in ("cholesky_tangent", "cholesky_slope", "expm_slope", "sqrtm_slope",
                     "logm_slope")
    },
    "lu": [(("c128[3,3]",), {}), (("c128[3,2]",), {}), (("c128[2,3]",), {})],
    "svdvals": [(("c128[3,2]",), {}), (("c128[2,2,3]",), {})],
    "pinv": [(("c128[3,2]",), {"rcond": 1e-6})],
    "qr": [((f"c128[{s}]",), {"complete": whole})
           for s, whole in (("3,3", False), ("3,2", False), ("2,3", False))],
}  # fmt: skip

# What compares sizes, or rounds, takes none; nor does any of these become a part of itself.
# Those that need the order of numbers, which complex ones have not.
ORDERS = frozenset(
    (
        "maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "reduce_max",
        "reduce_min", "argmax", "argmin", "cummax", "cummin",
    )
)  # fmt: skip

REFUSED: dict[str, list[tuple[tuple, dict]]] = {
    **{
        name: [((ONE,), {})]
        for name in ("abs", "sign", "floor", "ceil", "round", "erf", "erfc", "sigmoid")
    },
    **{
        name: [((ONE, ONE), {})]
        for name in (
            "maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "arctan2",
            "remainder", "floor_divide", "logaddexp",
        )
    },
    **{name: [((ONE,), {"axes": (0,)})] for name in ("reduce_max", "reduce_min")},
    **{name: [((ONE,), {"axis": 0})] for name in ("argmax", "argmin", "cummax", "cummin")},
    "cast": [((ONE,), {"dtype": np.dtype(dtype)}) for dtype in ("f8", "i8")],
}  # fmt: skip


def factor(n: int, inverse: bool, norm: str) -> float:
    """By what a sum over n exponentials is divided."""
    own = {"ortho": np.sqrt(n), "backward": n if inverse else 1, "forward": 1 if inverse else n}
    return own[norm]


def matrix(n: int, inverse: bool, norm: str) -> np.ndarray:
    """The matrix of a Fourier transform."""
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    return np.exp((1j if inverse else -1j) * angle) / factor(n, inverse, norm)


def along(rows: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(np.tensordot(rows, x, (1, axis)), 0, axis)


def transform_by_matrix(z: np.ndarray, *, axes: tuple, inverse: bool, norm: str) -> np.ndarray:
    for axis in axes:
        z = along(matrix(z.shape[axis], inverse, norm), z, axis)
    return z


def half_by_matrix(x: np.ndarray, *, axis: int, norm: str) -> np.ndarray:
    n = x.shape[axis]
    return along(matrix(n, False, norm)[: n // 2 + 1], x, axis)


def real_by_matrix(z: np.ndarray, *, n: int, axis: int, norm: str) -> np.ndarray:
    """Each frequency beside its conjugate, but for the first and, of even `n`, the last."""
    times = np.array([1 if k == 0 or 2 * k == n else 2 for k in range(n // 2 + 1)])
    return along(matrix(n, True, norm)[:, : n // 2 + 1] * times, z, axis).real
