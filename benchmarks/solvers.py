"""Solvers as compiled programs beside SciPy's, both with functions and derivatives in C.

Processor times of whole solves, the best of several runs; both find the same solution. Run it as
`python benchmarks/solvers.py`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import integrate, optimize
from scipy.sparse import linalg
from tables import seconds, table

import primgraph as pg
from primgraph import solvers

ROUNDS, SHORT_ROUNDS = 15, 1
UNKNOWNS = 50


class Case(NamedTuple):
    """A solver here and in SciPy, of no arguments, and how near both are."""

    name: str
    own: Callable[[], Any]
    theirs: Callable[[], Any]
    tolerance: float


def compiled(function: Callable[..., Any], *arrays: Any) -> Callable[..., Any]:
    """A function of arrays of these shapes, in C."""
    graph = pg.trace(lambda *xs: function(*xs), *[pg.spec(np.shape(x)) for x in arrays])
    return pg.compile(graph, target="c")


def rosenbrock(x: Any) -> Any:
    return pg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def diffusion(u: Any) -> Any:
    """The residual of u'' = exp(u) on a grid, with u = 0 at both ends."""
    inner = pg.pad(u, 1)
    step = 1.0 / (UNKNOWNS + 1)
    return inner[2:] - 2.0 * u + inner[:-2] - step**2 * pg.exp(u)


def stencil(x: Any) -> Any:
    """The product with the matrix of `cg`."""
    around = pg.pad(x, 1)
    return 2.1 * x - around[:-2] - around[2:]


def orbit(t: Any, y: Any) -> Any:
    """Two bodies in a plane."""
    cube = (y[0] ** 2 + y[1] ** 2) ** 1.5
    return pg.stack([y[2], y[3], -y[0] / cube, -y[1] / cube])


def fall(t: Any, y: Any) -> Any:
    """A body that is thrown up, with drag."""
    return pg.stack([y[1] + 0.0 * t, -9.81 - 0.1 * y[1] * pg.abs(y[1])])


def height(t: Any, y: Any) -> Any:
    return y[0]


height.terminal = True  # type: ignore[attr-defined]


def van_der_pol(t: Any, y: Any) -> Any:
    """An oscillator with fast and slow parts."""
    return pg.stack([y[1], 100.0 * (1.0 - y[0] ** 2) * y[1] - y[0] + 0.0 * t])


def coupled(x: Any) -> Any:
    return x + 0.2 * pg.sin(x[::-1]) - pg.cos(x) * 0.5


def bump(x: Any) -> Any:
    return pg.exp(-(x**2)) * pg.cos(5.0 * x)


TIMES = np.linspace(0.0, 4.0, 60)
PARAMETERS = np.array([2.0, 0.8, 1.0, 3.0])


def oscillation(p: Any) -> Any:
    return p[0] * pg.exp(-p[1] * TIMES) + p[2] * pg.cos(p[3] * TIMES)


def minima() -> Iterator[Case]:
    options = {"gtol": 1e-8, "ftol": 0.0, "maxiter": 2000, "maxfun": 10000}
    for n in (2, UNKNOWNS):
        start = np.full(n, 0.6)
        own = compiled(lambda x: solvers.minimize(rosenbrock, x, tol=1e-8), start)
        both = compiled(pg.value_and_grad(rosenbrock), start)
        theirs = partial(
            optimize.minimize, both, start, jac=True, method="L-BFGS-B", options=options
        )
        yield Case(f"minimize, Rosenbrock, n = {n}", partial(own, start), theirs, 1e-6)
    start, data = PARAMETERS + 0.4, compiled(oscillation, PARAMETERS)(PARAMETERS)

    def residual(p: Any) -> Any:
        return oscillation(p) - data

    own = compiled(lambda x: solvers.least_squares(residual, x), start)
    both = compiled(residual, start), start, compiled(pg.jacobian(residual), start)
    theirs = partial(optimize.least_squares, *both, method="lm", xtol=1e-12)
    yield Case("least_squares, 60 residuals of 4", partial(own, start), theirs, 1e-7)


def equations() -> Iterator[Case]:
    start = np.zeros(UNKNOWNS)
    own = compiled(lambda x: solvers.root(diffusion, x), start)
    value, slope = compiled(diffusion, start), compiled(pg.jacobian(diffusion), start)
    theirs = partial(optimize.root, value, start, jac=slope, tol=1e-12)
    yield Case(f"root, u'' = exp(u), n = {UNKNOWNS}", partial(own, start), theirs, 1e-8)
    matrix = 2.1 * np.eye(200) - np.eye(200, k=1) - np.eye(200, k=-1)
    skew = matrix + 0.3 * (np.eye(200, k=1) - np.eye(200, k=-1))
    b = np.sin(np.arange(200.0))
    for name, a, options in (
        ("cg", matrix, {}),
        ("bicgstab", skew, {}),
        ("gmres", skew, {"restart": 20}),
    ):
        own = compiled(partial(getattr(solvers, name), tol=1e-9), a, b)
        theirs = partial(getattr(linalg, name), a, b, rtol=1e-9, atol=0.0, **options)
        yield Case(f"{name}, dense, n = 200", partial(own, a, b), theirs, 1e-6)
    own = compiled(lambda b: solvers.cg(stencil, b, tol=1e-9), b)
    operator = linalg.LinearOperator((200, 200), compiled(stencil, b), dtype=float)
    theirs = partial(linalg.cg, operator, b, rtol=1e-9, atol=0.0)
    yield Case("cg, stencil, n = 200", partial(own, b), theirs, 1e-6)
    start = np.full(10, 0.5)
    own = compiled(lambda x: solvers.broyden(coupled, x, tol=1e-10), start)
    theirs = partial(optimize.root, compiled(coupled, start), start, method="broyden1", tol=1e-10)
    yield Case("broyden, n = 10", partial(own, start), theirs, 1e-8)


def integrals() -> Iterator[Case]:
    begin = np.array([1.0, 0.0, 0.0, 1.2])
    times = np.linspace(0.0, 20.0, 11)
    own = compiled(lambda y: solvers.solve_ivp(orbit, (0.0, 20.0), y, times), begin)
    slope, options = compiled(orbit, np.zeros(()), begin), {"rtol": 1e-6, "atol": 1e-9}
    theirs = partial(integrate.solve_ivp, slope, (0.0, 20.0), begin, t_eval=times, **options)
    yield Case("solve_ivp, RK45, two bodies", partial(own, begin), theirs, 1e-3)
    own = compiled(lambda y: solvers.solve_ivp(fall, (0.0, 9.0), y, event=height)[1], begin[:2])
    theirs = partial(integrate.solve_ivp, compiled(fall, np.zeros(()), begin[:2]), (0.0, 9.0),
                     begin[:2], events=height, **options)  # fmt: skip
    yield Case("solve_ivp, RK45, event", partial(own, begin[:2]), theirs, 1e-6)
    begin, span = np.array([2.0, 0.0]), (0.0, 200.0)
    own = compiled(lambda y: solvers.solve_ivp(van_der_pol, span, y, method="Rosenbrock"), begin)
    value = compiled(van_der_pol, np.zeros(()), begin)
    options["jac"] = compiled(pg.jacobian(van_der_pol, argnums=1), np.zeros(()), begin)
    for method in ("Radau", "BDF"):
        theirs = partial(integrate.solve_ivp, value, span, begin, method, t_eval=[200.0], **options)
        yield Case(
            f"solve_ivp, Rosenbrock; {method}, van der Pol", partial(own, begin), theirs, 1e-3
        )
    ends = np.array([-3.0, 4.0])
    own = compiled(lambda e: solvers.quad(bump, e[0], e[1]), ends)
    theirs = partial(integrate.quad, compiled(bump, np.zeros(())), *ends)
    yield Case("quad, exp(-x²) cos(5 x)", partial(own, ends), theirs, 1e-8)


def solution(found: Any) -> Any:
    """The solution in a result of SciPy's."""
    if isinstance(found, tuple):
        return found[0]
    if found.get("t_events") is not None:
        return found.y_events[0][0]
    return found.y.T if "y" in found else found.x


def best(function: Callable[[], Any], rounds: int) -> float:
    """The least processor time of a call."""
    found, calls = [], 1
    while True:
        start = time.process_time()
        for _ in range(calls):
            function()
        spent = time.process_time() - start
        if spent >= 0.01 or rounds == SHORT_ROUNDS:
            break
        calls *= 2
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(calls):
            function()
        found.append((time.process_time() - start) / calls)
    return min(found)


def rows(rounds: int) -> Iterator[list[str]]:
    for case in (*minima(), *equations(), *integrals()):
        ours, others = np.asarray(case.own()), np.asarray(solution(case.theirs()))
        error = float(np.max(np.abs(ours - others)))
        assert error <= case.tolerance * max(1.0, float(np.max(np.abs(others)))), (case.name, error)
        a, b = best(case.own, rounds), best(case.theirs, rounds)
        yield [case.name, seconds(a), seconds(b), f"{a / b:.2f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one run each")
    options = parser.parse_args(arguments)
    found = list(rows(SHORT_ROUNDS if options.short else ROUNDS))
    print("\n".join(table(["solver", "primgraph", "SciPy", "ratio"], found)))


if __name__ == "__main__":
    main()
