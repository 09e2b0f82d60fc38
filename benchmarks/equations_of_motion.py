"""Equations of motion of a chain of pendulums: SymPy's `lambdify` against `from_sympy`.

    python benchmarks/equations_of_motion.py [--links 5]

needs SymPy. The residual of Kane's equations on a cart, `M(q) u' - F(q, u)`, and its Jacobian by
coordinates and speeds: built from the same expressions, and run. SymPy differentiates for
`lambdify`, primgraph's is `pg.sparse_jacobian`. Times are those of the processor, with compilers.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import primgraph as pg


def now() -> float:
    """Processor time of this process and of compilers that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def chain(links: int) -> tuple[Any, list[Any]]:
    """The residual, and its arguments: accelerations, state, constants, force."""
    sympy, me = map(importlib.import_module, ("sympy", "sympy.physics.mechanics"))
    q, u = me.dynamicsymbols(f"q:{links + 1}"), me.dynamicsymbols(f"u:{links + 1}")
    force, (g, t) = me.dynamicsymbols("f"), sympy.symbols("g t")
    masses, lengths = sympy.symbols(f"m:{links + 1}"), sympy.symbols(f"l:{links}")
    frame, origin, point = me.ReferenceFrame("I"), me.Point("O"), me.Point("P")
    origin.set_vel(frame, 0)
    point.set_pos(origin, q[0] * frame.x)
    point.set_vel(frame, u[0] * frame.x)
    bodies = [me.Particle("cart", point, masses[0])]
    loads = [(point, force * frame.x - masses[0] * g * frame.y)]
    for i in range(links):
        turned = frame.orientnew(f"B{i}", "Axis", [q[i + 1], frame.z])
        turned.set_ang_vel(frame, u[i + 1] * frame.z)
        tip = point.locatenew(f"P{i}", lengths[i] * turned.x)
        tip.v2pt_theory(point, frame, turned)
        point = tip
        bodies.append(me.Particle(f"mass{i}", point, masses[i + 1]))
        loads.append((point, -masses[i + 1] * g * frame.y))
    rates = [angle.diff(t) - speed for angle, speed in zip(q, u, strict=True)]
    kane = me.KanesMethod(frame, q_ind=q, u_ind=u, kd_eqs=rates)
    kane.kanes_equations(bodies, loads)
    slopes = sympy.symbols(f"r:{2 * len(q)}")
    residual = kane.mass_matrix_full * sympy.Matrix(slopes) - kane.forcing_full
    return residual, [list(slopes), [*q, *u], [*masses, *lengths, g], force]


def best(function: Callable[[], Any]) -> float:
    """The shortest of some runs of 50, in microseconds."""
    times = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(50):
            function()
        times.append((time.process_time() - began) / 50)
    return 1e6 * min(times)


def lambdified(residual: Any, args: list[Any], *, cse: bool) -> tuple[float, Any]:
    """Time of `lambdify`, and of the derivatives of SymPy before; the function."""
    sympy = importlib.import_module("sympy")
    sympy.core.cache.clear_cache()
    began = now()
    function = sympy.lambdify(args, (residual, residual.jacobian(args[1])), cse=cse)
    return now() - began, function


def ours(residual: Any, args: list[Any], given: list[Any], target: str) -> tuple[float, Any]:
    """Time up to the first result of a new function, and the function."""
    array = importlib.import_module("sympy").Array
    began = now()
    parameters = [array(a) if isinstance(a, list) else a for a in args]
    motion = pg.interop.from_sympy(array(list(residual)), parameters)

    def both(rates: Any, state: Any, constants: Any, force: Any) -> Any:
        slope = pg.sparse_jacobian(motion, argnums=1)(rates, state, constants, force)
        return motion(rates, state, constants, force), slope.data

    function = pg.jit(both, target=target, rebind=False)
    function(*given)
    return now() - began, function


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, default=5)
    residual, args = chain(parser.parse_args().links)
    given = [np.linspace(0.1, 0.9, len(a)) if isinstance(a, list) else 0.3 for a in args]
    for target in ("numpy", "c"):
        # Modules are imported before anything is measured.
        ours(residual[:1, :] * 2, args, given, target)
    found = {f"primgraph, {t}": ours(residual, args, given, t) for t in ("numpy", "c")}
    for cse in (False, True):
        found[f"lambdify, cse={cse}"] = lambdified(residual, args, cse=cse)
    value, slope = found["lambdify, cse=True"][1](*given)
    for who, (took, function) in found.items():
        got = function(*given)
        error = np.abs(got[0].ravel() - value.ravel()).max()
        lack = abs(np.abs(got[1]).sum() - np.abs(slope).sum())
        run = best(lambda function=function: function(*given))
        print(f"{who:20} built {took:7.3f} s, run {run:7.1f} us, error {error:.0e}, {lack:.0e}")


if __name__ == "__main__":
    main()
