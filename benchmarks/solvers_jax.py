"""The problems of `solvers.py` by jaxopt, optimistix and diffrax, compiled by JAX.

Processor times of whole solves, the best of several runs. Run it as `python
benchmarks/solvers_jax.py` where these are installed, with XLA_FLAGS for one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
import optimistix
from tables import seconds, table

ROUNDS, UNKNOWNS = 15, 50
TIMES, PARAMETERS = np.linspace(0.0, 4.0, 60), np.array([2.0, 0.8, 1.0, 3.0])


def rosenbrock(x: Any, _: Any = None) -> Any:
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def oscillation(p: Any) -> Any:
    return p[0] * jnp.exp(-p[1] * TIMES) + p[2] * jnp.cos(p[3] * TIMES)


def diffusion(u: Any, _: Any) -> Any:
    inner = jnp.pad(u, 1)
    return inner[2:] - 2.0 * u + inner[:-2] - jnp.exp(u) / (UNKNOWNS + 1) ** 2


def orbit(t: Any, y: Any, _: Any) -> Any:
    cube = (y[0] ** 2 + y[1] ** 2) ** 1.5
    return jnp.stack([y[2], y[3], -y[0] / cube, -y[1] / cube])


def trajectory(y: Any) -> Any:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(orbit),
        diffrax.Dopri5(),
        0.0,
        20.0,
        None,
        y,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 20.0, 11)),
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-9),
    ).ys


def best(function: Callable[[Any], Any], x: Any) -> float:
    """The least processor time of a call, after the first."""
    solve, found, calls = jax.jit(function), [], 100
    jax.block_until_ready(solve(x))
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(calls):
            jax.block_until_ready(solve(x))
        found.append((time.process_time() - start) / calls)
    return min(found)


def main() -> None:
    """Print the table."""
    jax.config.update("jax_enable_x64", True)
    tight = {"rtol": 1e-8, "atol": 1e-8}
    data = oscillation(PARAMETERS)
    lbfgs = jaxopt.LBFGS(rosenbrock, tol=1e-8, maxiter=2000)
    solvers = {
        "jaxopt.LBFGS": lambda x: lbfgs.run(x).params,
        "optimistix.BFGS": lambda x: (
            optimistix.minimise(rosenbrock, optimistix.BFGS(**tight), x, max_steps=2000).value
        ),
    }
    rows = [
        [f"minimize, Rosenbrock, n = {n}", name, seconds(best(f, jnp.full(n, 0.6)))]
        for n in (2, UNKNOWNS)
        for name, f in solvers.items()
    ]
    fit = optimistix.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
    newton = optimistix.Newton(rtol=1e-10, atol=1e-10)
    others: list[tuple[str, str, Callable[[Any], Any], Any]] = [
        (
            "least_squares, 60 residuals of 4",
            "optimistix.LevenbergMarquardt",
            lambda p: optimistix.least_squares(lambda y, _: oscillation(y) - data, fit, p).value,
            jnp.array(PARAMETERS + 0.4),
        ),
        (
            "root, u'' = exp(u), n = 50",
            "optimistix.Newton",
            lambda u: optimistix.root_find(diffusion, newton, u).value,
            jnp.zeros(UNKNOWNS),
        ),
        ("solve_ivp, RK45, two bodies", "diffrax.Dopri5", trajectory, jnp.array([1.0, 0, 0, 1.2])),
    ]
    rows += [[name, solver, seconds(best(f, x))] for name, solver, f, x in others]
    print("\n".join(table(["problem", "solver", "time"], rows)))


if __name__ == "__main__":
    main()
