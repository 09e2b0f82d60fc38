"""Values and derivatives of the problems of CUTEst, by primgraph and by JAX.

    python tests/tools/cutest_suite.py [--reference FOLDER] [--largest-dense 50] [NAME ...]

names problems as `_unconstrained_minimisation.rosenbr.ROSENBR`; without names all are taken. It
needs sif2jax (N. Gould, D. Orban and P. Toint, CUTEst, Computational Optimization and Applications
60, 2015). Of each problem it compares the objective, the constraints, the gradient of the
Lagrangian `f(x) + w @ c(x)`, the derivative of the constraints along a vector in forward mode, and
the product of the Lagrangian's Hessian with it; of small ones the whole Hessian. NumPy computes
the values too, by the same source. Of the 849 problems JAX compiles all but six: two it runs
operation by operation, and four with fewer unknowns. It prints the difference, and the seconds of
CPU that tracing, derivatives, compilation for NumPy and one run took. `FOLDER` keeps what JAX
computed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

import cutest_problems  # noqa: E402

import primgraph as pg  # noqa: E402
import primgraph.numpy as names  # noqa: E402

# Differences of derivatives, relative to the largest element, that count as equal.
TOLERANCE = 1e-8
# Problems that JAX unrolls, and compiles for more than ten minutes: it runs some operation by
# operation, and others with fewer unknowns, which then primgraph has as well.
UNCOMPILED = ("_bounded_minimisation.hs25.HS25", "_constrained_minimisation.hs105.HS105")
SMALLER = {
    "_constrained_minimisation.lukvle17.LUKVLE17": {"n": 61},
    "_constrained_minimisation.lukvli17.LUKVLI17": {"n": 61},
    "_nonlinear_equations.bratu2dt.BRATU2DT": {"P": 9},
    "_nonlinear_equations.genrosene.GENROSENE": {"n": 30, "m": 59},
}
# Numbers of unknowns up to which the whole Hessian is compared.
LARGEST_DENSE = 50

Arrays = dict[str, np.ndarray]


def inputs(problem: Any) -> tuple[np.ndarray, ...]:
    """Return a point near the first one, a direction, and weights of constraints."""
    rng = np.random.default_rng(zlib.crc32(type(problem).__name__.encode()))
    first = np.asarray(problem.y0, float)
    x = first + 0.01 * (1 + np.abs(first)) * rng.uniform(0.1, 1.0, first.shape)
    sizes = [a.size for k, a in by_numpy(problem, x).items() if k != "objective"]
    weights = [rng.uniform(0.5, 1.5, size) for size in sizes]
    return x, rng.standard_normal(first.shape), *weights


def _lagrangian(problem: Any, x: Any, weights: Any, total: Callable[[Any], Any]) -> Any:
    """Return the Lagrangian, the objective and the constraints."""
    objective, constraints = cutest_problems.functions(problem)
    value = objective(x)
    parts = constraints(x) if constraints is not None else []
    found = value + sum(total(w * c.reshape(-1)) for w, c in zip(weights, parts, strict=True))
    return found, value, parts


def by_jax(
    problem: Any, given: tuple[np.ndarray, ...], largest: int, *, is_compiled: bool = True
) -> Arrays:
    """Return what JAX computes, compiled or operation by operation."""
    jax = importlib.import_module("jax")

    def compute(x: Any, v: Any, *weights: Any) -> Any:
        def lagrangian(x: Any) -> Any:
            return _lagrangian(problem, x, weights, jax.numpy.sum)[0]

        def parts(x: Any) -> Any:
            return _lagrangian(problem, x, weights, jax.numpy.sum)[1:]

        slope = jax.grad(lagrangian)
        values, (_, along) = jax.jvp(parts, (x,), (v,))
        gradient, product = jax.jvp(slope, (x,), (v,))
        found = {"objective": values[0], "gradient": gradient, "product": product}
        found |= {f"constraint{i}": c for i, c in enumerate(values[1])}
        found |= {f"along{i}": c for i, c in enumerate(along)}
        return found | ({"hessian": jax.hessian(lagrangian)(x)} if x.size <= largest else {})

    run = jax.jit(compute) if is_compiled else compute
    arrays = run(*map(jax.numpy.asarray, given))
    return {k: np.asarray(a) for k, a in arrays.items()}


def by_primgraph(problem: Any, given: tuple[np.ndarray, ...], largest: int) -> Arrays:
    """Return what primgraph computes, by one program compiled for NumPy."""

    def compute(x: Any, v: Any, *weights: Any) -> Any:
        lagrangian, value, parts = _lagrangian(problem, x, weights, pg.sum)
        gradient = pg.grad(lagrangian, x)
        found = {"objective": names.asarray(value), "gradient": gradient}
        found["product"] = pg.forward_grad(gradient, x, v)
        for i, c in enumerate(parts):
            found |= {f"constraint{i}": c, f"along{i}": pg.forward_grad(c, x, v)}
        return found | ({"hessian": pg.hessian(lagrangian, x)} if x.size <= largest else {})

    return {k: np.asarray(a) for k, a in pg.jit(compute)(*given).items()}


def by_numpy(problem: Any, x: np.ndarray) -> Arrays:
    """Return the values, computed on arrays."""
    objective, constraints = cutest_problems.functions(problem)
    x = x.view(cutest_problems.Array)
    parts = constraints(x) if constraints is not None else []
    found = {"objective": objective(x)} | {f"constraint{i}": c for i, c in enumerate(parts)}
    return {k: np.asarray(a) for k, a in found.items()}


def difference(found: Arrays, expected: Arrays) -> tuple[str, float]:
    """Return the result that differs most, relative to its largest element, and by how much."""
    worst = "", 0.0
    for name, array in found.items():
        other = expected[name]
        if array.shape != other.shape:
            return f"{name}: shape {array.shape} for {other.shape}", np.inf
        if array.size == 0 or np.array_equal(array, other, equal_nan=True):
            continue
        finite = np.isfinite(other)
        if not np.array_equal(np.isfinite(array), finite):
            return f"{name}: finite elsewhere", np.inf
        scale = max(1e-10, np.abs(other[finite]).max(initial=0.0))
        worst = max(worst, (name, float(np.abs(array - other)[finite].max() / scale)), key=_second)
    return worst


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def reference(
    name: str, given: tuple[np.ndarray, ...], folder: Path | None, largest: int
) -> Arrays:
    """Return what JAX computes, from the folder if it is there."""
    file = folder and folder / f"{name}.npz"
    if file and file.exists():
        with np.load(file) as kept:
            return dict(kept)
    problem = cutest_problems.load("jax", name, SMALLER.get(name))
    found = by_jax(problem, given, largest, is_compiled=name not in UNCOMPILED)
    if file:
        np.savez(file, **found)
    return found


def compare(
    name: str,
    folder: Path | None = None,
    largest: int = LARGEST_DENSE,
    *,
    is_jax_asked: bool = True,
) -> dict[str, Any]:
    """Return the differences of one problem, and the seconds of CPU that primgraph took."""
    problem = cutest_problems.load("primgraph", name)
    given = inputs(problem)
    began = time.process_time()
    found = by_primgraph(problem, given, largest)
    seconds = time.process_time() - began
    by_arrays = difference(by_numpy(problem, given[0]), found)
    unknowns = given[0].size
    if is_jax_asked and name in SMALLER:
        problem = cutest_problems.load("primgraph", name, SMALLER[name])
        given = inputs(problem)
        found = by_primgraph(problem, given, largest)
    expected = reference(name, given, folder, largest) if is_jax_asked else found
    what, far = difference(found, expected)
    finite = all(np.isfinite(a).all() for a in expected.values())
    return {"unknowns": unknowns, "seconds": seconds, "worst": what, "difference": far,
            "numpy": by_arrays, "finite": finite}  # fmt: skip


def listed() -> list[str]:
    """Return the names of all problems."""
    command = [sys.executable, str(HERE / "cutest_problems.py")]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return run.stdout.split()


def exceptions() -> dict[str, tuple[str, str]]:
    """Return the problems that differ from JAX, with kinds of reasons and reasons."""
    found = {}
    for line in (HERE / "cutest_exceptions.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, kind, reason = line.split(maxsplit=2)
            found[name] = kind, reason
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--largest-dense", type=int, default=LARGEST_DENSE)
    parser.add_argument("--no-jax", action="store_true")
    parser.add_argument("--part", default="0/1", help="this of so many parts")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    every = options.names or listed()
    for name in every[part::parts]:
        try:
            found = compare(
                name, options.reference, options.largest_dense, is_jax_asked=not options.no_jax
            )
            is_equal = found["difference"] <= TOLERANCE and found["numpy"][1] <= TOLERANCE
            status = "equal" if is_equal else "DIFFERS"
        except Exception as error:
            status, found = "FAILS", {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps([status, name, found]), flush=True)


if __name__ == "__main__":
    main()
