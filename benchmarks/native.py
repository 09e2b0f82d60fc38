"""Native code beside programs by hand and JAX, in one process and one thread, by shortest times.

By hand are C and, if it is installed, loops compiled by numba; the better of them has a column.

That is quicker than `run.py`, and says more where others use the machine: `python
benchmarks/native.py W5 "W8 arith"`. `--casadi` compares with CasADi's generated C instead, which is
unrolled: gradient and Hessian-vector product of Rosenbrock's function of n variables, and the
Jacobian of a planar arm of six joints in n positions.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hand
import hand_c
import numpy as np
import workloads
from cases import Case, cases
from tables import seconds, table
from worker import largest_error

import primgraph as pg

SECONDS = 0.1


def shortest(call: Callable[[], Any]) -> float:
    """The shortest time of a call, among batches of a millisecond."""
    call()
    start = time.perf_counter()
    call()
    inner = max(1, int(1e-3 / max(time.perf_counter() - start, 1e-7)))
    best, end = math.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        best = min(best, (time.perf_counter() - start) / inner)
    return best


def results_by_hand(case: Case) -> list[Any]:
    """What a case should give: NumPy's results by hand, in float64."""
    exact = case.exact()
    function, arguments = hand.build(exact, hand.variants(exact)[0])
    return [np.array(r, np.float64) for r in function(*arguments)]


def of_tool(tool: Any, case: Case, expected: list[Any]) -> float:
    """The time of the fastest variant of a tool; infinite where there is none.

    Raises `ArithmeticError` where results differ from those expected, before anything is timed.
    """
    best = math.inf
    for variant in tool.variants(case):
        function, arguments = tool.build(case, variant)
        results = function(*arguments)
        error = largest_error(results, expected[-len(results) :])
        if not error <= case.tolerance:
            name = getattr(tool, "__name__", type(tool).__name__)
            raise ArithmeticError(f"{case.name}: {name} {variant} differs by {error:.1e}")
        del results
        best = min(best, shortest(lambda f=function, a=arguments: f(*a)))  # type: ignore[misc]
    return best


def workloads_table(only: list[str], short: bool) -> list[str]:
    """Native code's times, and their ratios to those of the others."""
    workloads.target = "c"
    others: dict[str, Any] = {"hand_c": hand_c}
    if importlib.util.find_spec("numba"):
        others["hand_numba"] = importlib.import_module("hand_numba")
    by_hand = list(others)
    if importlib.util.find_spec("jax"):
        others["jax"] = importlib.import_module("peers").Jax()
    columns = [*by_hand, "better by hand", *list(others)[len(by_hand) :]]
    rows, ratios = [], {name: [] for name in columns}
    for case in cases(only, short=short):
        expected = results_by_hand(case)
        own = of_tool(workloads, case, expected)
        times = {name: of_tool(tool, case, expected) for name, tool in others.items()}
        times["better by hand"] = min(times[name] for name in by_hand)
        rows.append([case.name, seconds(own), *(_ratio(own, times[name]) for name in columns)])
        for name in columns:
            if math.isfinite(times[name]) and case.workload != "W1":
                ratios[name].append(own / times[name])
    means = [f"{statistics.geometric_mean(r):.2f}" if r else "-" for r in ratios.values()]
    rows.append(["geometric mean but W1", "", *means])
    return table(["case", "native", *(f"/ {name}" for name in columns)], rows)


def _ratio(own: float, other: float) -> str:
    return f"{own / other:.2f}" if math.isfinite(other) else "-"


def _compiling() -> float:
    """Seconds of processor time that compilers have taken."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _by_casadi(ca: Any, function: Any, inputs: list[Any], folder: str) -> tuple[float, float]:
    """The shortest time of a call of its C, and seconds of compiling that."""
    name = f"f{len(os.listdir(folder))}"
    generator = ca.CodeGenerator(f"{name}.c")
    generator.add(function)
    source = Path(generator.generate(folder + "/"))
    begin = _compiling()
    command = ["cc", "-O2", "-march=native", "-fPIC", "-shared", "-o", f"{folder}/{name}.so"]
    subprocess.run([*command, str(source), "-lm"], check=True)
    compiling = _compiling() - begin
    loaded = ca.external(function.name(), f"{folder}/{name}.so")
    buffer, call = loaded.buffer()
    result = np.zeros(loaded.nnz_out(0))
    for k, x in enumerate(inputs):
        buffer.set_arg(k, memoryview(x))
    buffer.set_res(0, memoryview(result))
    return shortest(call), compiling


def _by_native(function: Callable[..., Any], inputs: list[Any]) -> tuple[float, float]:
    graph, begin = pg.trace(function, *inputs), _compiling()
    kernel = pg.compile(graph, target="c").flat
    kernel(*inputs)
    compiling = _compiling() - begin
    return shortest(lambda: kernel(*inputs)), compiling


LINKS = (0.4, 0.35, 0.3, 0.25, 0.2, 0.1)


def _place(angles: Any) -> Any:
    total, links = pg.cumsum(angles, axis=-1), np.array(LINKS)
    return pg.stack([pg.sum(links * pg.cos(total)), pg.sum(links * pg.sin(total)), total[-1]])


def _casadis_jacobian(ca: Any) -> Any:
    angles, total, x, y = ca.SX.sym("q", 6), 0, 0, 0
    for k, length in enumerate(LINKS):
        total = total + angles[k]
        x, y = x + length * ca.cos(total), y + length * ca.sin(total)
    return ca.Function("arm", [angles], [ca.vec(ca.jacobian(ca.vertcat(x, y, total), angles))])


def casadi_table(sizes: list[int]) -> list[str]:
    """Native code's times and compile times, and their ratios to CasADi's."""
    ca, draw, rows = importlib.import_module("casadi"), np.random.default_rng(0), []
    arm = _casadis_jacobian(ca)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PRIMGRAPH_CACHE"] = str(Path(folder, "cache"))
        Path(folder, "cache").mkdir(mode=0o700)
        # What is compiled once on a machine belongs to no row.
        _by_native(lambda x: pg.sin(x) * 2 + pg.eye(3) @ x, [np.ones(3)])
        for n in sizes:
            x, v, q = draw.uniform(-1, 1, n), draw.normal(size=n), draw.normal(size=(n, 6))
            a, b, c = ca.SX.sym("x", n), ca.SX.sym("v", n), ca.SX.sym("q", 6, n)
            energy = ca.sum1(100 * (a[1:] - a[:-1] ** 2) ** 2 + (1 - a[:-1]) ** 2)
            gradient = ca.gradient(energy, a)
            product = ca.jtimes(gradient, a, b)
            all_arms = ca.horzcat(*[arm(c[:, k]) for k in range(n)])
            programs = [
                ("gradient", ([a], [gradient]), workloads.rosenbrock_gradient, [x]),
                ("Hessian-vector product", ([a, b], [product]),
                 lambda x, v: pg.forward_grad(workloads.rosenbrock_gradient(x), x, v), [x, v]),
                ("arms", ([c], [all_arms]),
                 pg.vmap(lambda q: pg.jacobian(_place(q), q)), [q]),
            ]  # fmt: skip
            for name, (given, made), function, inputs in programs:
                theirs = _by_casadi(ca, ca.Function("f", given, made), inputs, folder)
                own = _by_native(function, inputs)
                rows.append([
                    f"{name}, n = {n:,}", seconds(own[0]), f"{own[0] / theirs[0]:.2f}",
                    seconds(own[1]), f"{own[1] / theirs[1]:.3f}",
                ])  # fmt: skip
    return table(["", "a call", "/ CasADi", "compiling", "/ CasADi"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="how names of cases begin")
    parser.add_argument("--short", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--casadi", action="store_true", help="beside CasADi's generated C")
    options = parser.parse_args()
    pg.set_num_threads(1)
    sizes = [10] if options.short else [100, 1000]
    lines = casadi_table(sizes) if options.casadi else workloads_table(options.only, options.short)
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
