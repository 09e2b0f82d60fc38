"""When two results of one program are the same: bit for bit, or as far as rounding may differ.

NumPy rounds some functions differently for other layouts of the same numbers. Where a program
applies one of these, the error that they can make in its results is measured: the program is
interpreted again with random errors of that many units in the last place put in, and results may
differ by a small multiple of what these errors did. Everything else is equal bit for bit, apart
from the sign and payload of NaN.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from primgraph.inspect.trips import is_walked, run_bodies
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import fit_to_arrays
from primgraph.operators.call import Operator
from primgraph.transforms import lower
from primgraph.transforms.loops.implicit_solution import expand_solutions, solution

_LOOPS = "NumPy has one loop for elements in order and another for those in reverse or apart"
_ORDER = "the order of the sum depends on the layout of the operand, and on the BLAS"
_FDLIBM = "kernels use rational approximations, the interpreter the C library"
_ELIMINATION = "kernels eliminate in blocks, and find cofactors by the inverse"
_ZEROS = "of two zeros of different sign either is the larger one"

# By how many units in the last place a primitive may differ, and why.
ULPS: dict[str, tuple[float, str]] = {
    **dict.fromkeys(("exp", "expm1", "log", "log1p", "power", "integer_pow"), (4, _LOOPS)),
    **dict.fromkeys(("tan", "sinh", "cosh", "tanh", "sin", "cos", "sigmoid"), (4, _LOOPS)),
    **dict.fromkeys(("arcsin", "arccos", "arctan", "arctan2", "logaddexp"), (4, _LOOPS)),
    **dict.fromkeys(("arcsinh", "arccosh", "arctanh"), (4, _LOOPS)),
    **dict.fromkeys(("reduce_sum", "reduce_prod", "cumsum", "matmul", "scatter_add"), (4, _ORDER)),
    **dict.fromkeys(("root_of_squares", "cumprod"), (4, _ORDER)),
    **dict.fromkeys(("solve", "triangular_solve", "inv", "cholesky"), (16, _ELIMINATION)),
    "sparse_triangular_solve": (16, "SciPy multiplies by reciprocals of the diagonal"),
    **dict.fromkeys(("expm", "sqrtm", "logm", "lu", "eig"), (64, _ELIMINATION)),
    **dict.fromkeys(("expm_slope", "sqrtm_slope", "logm_slope"), (256, _ELIMINATION)),
    **dict.fromkeys(("cholesky_slope", "cholesky_tangent"), (64, _ELIMINATION)),
    **dict.fromkeys(("eigh", "eigvalsh", "svd", "svdvals", "qr", "pinv"), (16, _ELIMINATION)),
    **dict.fromkeys(("det", "slogdet", "cofactors"), (64, _ELIMINATION)),
    **dict.fromkeys(("erf", "erfc"), (4, _FDLIBM)),
    **dict.fromkeys(("maximum", "minimum", "reduce_max", "reduce_min"), (0, _ZEROS)),
}

# What native code computes by the C library's logarithms and exponentials, and the interpreter by
# NumPy's.
_SPECIAL = dict.fromkeys(
    ("gammaln", "gamma_function", "polygamma", "erfinv", "erfcinv", "erfcx", "log_ndtr", "logit",
     "xlogy", "xlog1py", "poch"),
    (4, "functions of the C library beside NumPy's"),
)  # fmt: skip


@contextlib.contextmanager
def rounding_of(style: str) -> Iterator[None]:
    """Inside, what is compared is of a kernel of that style."""
    if style != "native":
        yield
        return
    ULPS.update(_SPECIAL)
    try:
        yield
    finally:
        for name in _SPECIAL:
            del ULPS[name]


# Errors relative to what is added; `logaddexp` adds the larger operand and a logarithm.
_SUMS = (
    *("reduce_sum", "cumsum", "matmul", "scatter_add", "reduce_prod", "root_of_squares"),
    "logaddexp",
)
_EQUALITIES = ("equal", "not_equal")
_RUNS = 4
_MORE_RUNS = 40
_SLACK = 8.0


def differs(
    graph: Graph,
    feeds: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
) -> str:
    """What is wrong with `found`, if anything, as the results of `graph` on `feeds`."""
    for i, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        if (given.dtype, given.shape) != (wanted.dtype, wanted.shape):
            return f"output {i} is {given.dtype}{given.shape}, not {wanted.dtype}{wanted.shape}"
    if all(np.all(same_bits(a, b)) for a, b in zip(expected, found, strict=True)):
        return ""
    if not any(may_differ(e) for e in graph.body):
        return _first_difference(expected, found, None)
    fault = ""
    # Errors that are damped below half a unit show only where they are as large as the slack.
    for runs, times in ((_RUNS, 1.0), (_MORE_RUNS, _SLACK)):
        disturbed = [interpret_disturbed(graph, feeds, seed, times=times) for seed in range(runs)]
        fault = _first_difference(expected, found, disturbed, _SLACK / times)
        if not fault:
            return ""
    return fault


def has_solutions(graph: Graph) -> bool:
    """Whether a graph has solutions of equations, in its bodies too."""
    return any(e.op is solution or any(map(has_solutions, e.bodies)) for e in graph.body)


def roughly_differs(
    graph: Graph,
    feeds: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    ulps: float,
) -> str:
    """As `differs`, where every equation may make an error of `ulps`, and zeros have no sign."""
    unsigned = [np.where(x == 0, np.zeros((), x.dtype), x) for x in found]
    disturbed: list[list[np.ndarray]] = []
    fault = "untested"
    for runs in (0, _RUNS, _MORE_RUNS):
        while fault and len(disturbed) < runs:
            disturbed.append(interpret_disturbed(graph, feeds, len(disturbed), ulps))
        if fault:
            wanted = [np.where(x == 0, np.zeros((), x.dtype), x) for x in expected]
            fault = _first_difference(wanted, unsigned, disturbed or None)
    return fault


def may_differ(eqn: Equation) -> bool:
    inner = any(may_differ(e) for body in eqn.bodies for e in body.body)
    return inner or eqn.op.name in ULPS or isinstance(eqn.op, Operator)


def same_bits(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which elements are equal bit by bit, all NaNs being one."""
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) & same_bits(x.imag, y.imag)
    if x.dtype.kind != "f":
        return np.asarray(x == y)
    both_nan = np.isnan(x) & np.isnan(y)
    return np.asarray(both_nan | ((x == y) & (np.signbit(x) == np.signbit(y))))


def _first_difference(
    expected: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    disturbed: list[list[np.ndarray]] | None,
    slack: float = _SLACK,
) -> str:
    for i, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        fine = same_bits(wanted, given)
        for run in disturbed or ():
            fine |= same_bits(run[i], given)
        if disturbed and wanted.dtype.kind == "f":
            fine |= _within(wanted, given, [run[i] for run in disturbed], slack)
        elif disturbed and wanted.dtype.kind == "c":
            runs = [run[i] for run in disturbed]
            # One part may be exact where the other is rounded.
            real = same_bits(wanted.real, given.real)
            real |= _within(wanted.real, given.real, [r.real for r in runs], slack)
            imag = same_bits(wanted.imag, given.imag)
            imag |= _within(wanted.imag, given.imag, [r.imag for r in runs], slack)
            fine |= real & imag
        elif disturbed:
            fine |= np.any([run[i] != wanted for run in disturbed], axis=0)
        if not np.all(fine):
            return f"output {i} is\n{given!r}, not\n{wanted!r}"
    return ""


def _within(
    wanted: np.ndarray, given: np.ndarray, runs: list[np.ndarray], slack: float
) -> np.ndarray:
    """Which elements differ by no more than `slack` times what the disturbed runs do.

    An infinity whose sign these change is a number without a digit times an infinite one, and may
    be NaN as well.
    """
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(r.astype(np.longdouble) - wanted) for r in runs], axis=0)
        lost = np.any([np.isfinite(r) != np.isfinite(wanted) for r in runs], axis=0)
        lost |= np.any([np.isinf(r) & (r == -wanted) for r in runs], axis=0)
        close = np.abs(given.astype(np.longdouble) - wanted) <= slack * spread
        return np.asarray(lost | (close & (spread > 0)))


def interpret_disturbed(
    graph: Graph, feeds: Sequence[np.ndarray], seed: int, least: float = 0.0, times: float = 1.0
) -> list[np.ndarray]:
    """The results of `graph` with errors `times` what `ULPS` allows, or `least` everywhere."""
    graph = fit_to_arrays(graph, feeds)
    if has_solutions(graph):
        # Steps of an iteration are disturbed as others are.
        graph = expand_solutions(lower(graph))
    rng = np.random.default_rng(seed)
    known: dict[Value, np.ndarray] = dict(zip(graph.inputs, feeds, strict=True))

    def run(body: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        drawn = int(rng.integers(1 << 32))
        return interpret_disturbed(body, arrays, drawn, least, times)

    with np.errstate(all="ignore"):
        for eqn in graph.body:
            inputs = [known[v] for v in eqn.inputs]
            if is_walked(eqn):
                known.update(zip(eqn.outputs, run_bodies(eqn, inputs, run), strict=True))
                continue
            if isinstance(eqn.op, Operator):
                builder, result = eqn.op.trace_decomposition(
                    tuple(v.type for v in eqn.inputs), eqn.kwargs
                )
                inner = builder.graph([result.value])
                known[eqn.output] = interpret_disturbed(inner, inputs, seed, least, times)[0]
                continue
            ulps = max(least, times * ULPS[eqn.op.name][0] if may_differ(eqn) else 0)
            if eqn.op.name in _SUMS:
                inputs = [_disturbed(x, ulps, rng) for x in inputs]
            results = [np.array(r) for r in eqn.op.evaluate(inputs, eqn.kwargs)]
            if least and eqn.op.name in _EQUALITIES and inputs[0].dtype.kind == "f":
                near = _are_near(*inputs, _SLACK * ulps)
                results[0] ^= near & (rng.random(near.shape) < 0.5)
            if may_differ(eqn) or least:
                results = [_disturbed(r, ulps, rng) for r in results]
            known.update(zip(eqn.outputs, results, strict=True))
    return [known[v] for v in graph.outputs]


def _are_near(x: np.ndarray, y: np.ndarray, ulps: float) -> np.ndarray:
    """Which elements are equal within so many units: random errors seldom make them equal."""
    unit = np.spacing(np.maximum(np.abs(x), np.abs(y)))
    return np.asarray(np.abs(x - y) <= ulps * unit)


def _disturbed(x: np.ndarray, ulps: float, rng: np.random.Generator) -> np.ndarray:
    """`x` with random errors, and zeros of random sign; both parts of it as large as it is."""
    if x.dtype.kind == "c":
        unit = np.where(np.isfinite(x), np.spacing(np.abs(x)), 0)
        errors = rng.uniform(-1, 1, x.shape) + 1j * rng.uniform(-1, 1, x.shape)
        return np.asarray(x + ulps * errors * unit).astype(x.dtype)
    if x.dtype.kind != "f":
        return x
    unit = np.where(np.isfinite(x), np.spacing(np.abs(x)), 0)
    moved = x + (ulps * rng.uniform(-1, 1, x.shape) * unit).astype(x.dtype)
    return np.where(x == 0, np.copysign(x, rng.uniform(-1, 1, x.shape)), moved).astype(x.dtype)
