"""Native code beside programs by hand and JAX, in one process and one thread, by shortest times.

That is quicker than `run.py`, and says more where others use the machine: `python
benchmarks/native.py W5 "W8 arith"`. By hand are C and, if it is installed, loops compiled by numba.
Results are compared with those of NumPy by hand before anything is timed; the tools take turns.

Native code is called as usual, for new arrays, and with `out=`. Programs by hand keep their results
(but for dense Hessians and Jacobians, which are new each time): the better of them has two columns,
and the second compares with `out=` where they keep them.

The table names the processor's vectors. It ends with an error if `math="fast"` takes more than 1.03
of the time of the default anywhere.

`--casadi` compares with CasADi's generated C instead, which is unrolled: gradient and
Hessian-vector product of Rosenbrock's function of n variables, and the Jacobian of a planar arm of
six joints in n positions. `--limits` tells what the machine can do, how near to that W9 comes, and
how long first calls take. `--all` prints all of it.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import math
import os
import platform
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
import native_limits
import numpy as np
import workloads
from cases import Case, cases
from tables import seconds, table
from worker import largest_error

import primgraph as pg

Call = Callable[[], Any]
Built = tuple[Callable[..., Any], list[Any]]

# The largest ratio of the time of "fast" to that of "exact".
MOST_BY_FAST = 1.03
ROUNDS, SECONDS = 3, 0.05
# Variables without which libraries would take further threads, or wait for those of others.
ALONE = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def shortest(call: Call, duration: float = 2 * SECONDS) -> float:
    """The shortest time of a call, among batches of a millisecond."""
    call()
    start = time.perf_counter()
    call()
    inner = max(1, int(1e-3 / max(time.perf_counter() - start, 1e-7)))
    best, end = math.inf, time.perf_counter() + duration
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


def built(tool: Any, case: Case, variant: str, expected: list[Any]) -> Built:
    """A variant of a tool, and its inputs.

    Raises `ArithmeticError` where results differ from those expected.
    """
    function, arguments = tool.build(case, variant)
    results = function(*arguments)
    error = largest_error(results, expected[-len(results) :])
    if not error <= case.tolerance:
        name = getattr(tool, "__name__", type(tool).__name__)
        raise ArithmeticError(f"{case.name}: {name} {variant} differs by {error:.1e}")
    return function, arguments


def fastest(found: list[Built]) -> Built:
    """The fastest of some functions, with its inputs."""
    return min(found, key=lambda of: shortest(lambda: of[0](*of[1]), SECONDS / 2))


def calls_of(case: Case, others: dict[str, Any]) -> dict[str, Call]:
    """What is timed, by its name: native code in two ways and at each level, other tools."""
    expected = results_by_hand(case)
    workloads.target = "c"
    levels = {level: built(workloads, case, level, expected) for level in workloads.variants(case)}
    function, arguments = fastest(list(levels.values()))
    kept = [np.array(r) for r in function(*arguments)]
    made: dict[str, Call] = {
        "native": lambda: function(*arguments),
        "out=": lambda: function(*arguments, out=kept),
        **{level: lambda f=f, a=a: f(*a) for level, (f, a) in levels.items()},  # type: ignore[misc]
    }
    workloads.target = "numpy"
    tools = {"numpy": workloads, **{n: t for n, t in others.items() if t.variants(case)}}
    for name, tool in tools.items():
        f, a = fastest([built(tool, case, v, expected) for v in tool.variants(case)])
        made[name] = lambda f=f, a=a: f(*a)  # type: ignore[misc]
    return made


def times_of(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """The shortest times of calls that take turns."""
    found = dict.fromkeys(calls, math.inf)
    gc.collect()
    for _ in range(rounds):
        for name, call in calls.items():
            found[name] = min(found[name], shortest(call, SECONDS))
    return found


def workloads_table(only: list[str], short: bool) -> list[str]:
    """Native code's times, and their ratios to those of the others."""
    others: dict[str, Any] = {"hand_c": hand_c}
    if importlib.util.find_spec("numba"):
        others["hand_numba"] = importlib.import_module("hand_numba")
    by_hand = list(others)
    if importlib.util.find_spec("jax"):
        others["jax"] = importlib.import_module("peers").Jax()
    columns = ["numpy", *by_hand, "better by hand", "the same, out=", *list(others)[len(by_hand) :]]
    columns.append("fast / exact")
    slower: list[str] = []
    rows, ratios = [], {name: [] for name in columns}
    for case in cases(only, short=short):
        calls = calls_of(case, others)
        times = times_of(calls, 1 if short else ROUNDS)
        levels = {name: calls[name] for name in ("exact", "fast") if name in calls}
        for _ in range(3):
            # Other work of the machine slows down one of two calls by more than the bound.
            if times.get("fast", 0.0) <= MOST_BY_FAST * times["exact"]:
                break
            again = times_of(levels, ROUNDS)
            times.update({name: min(times[name], again[name]) for name in again})
        own = times["native"]
        fresh = case.params.get("kind") in ("hess", "dense")
        better = min(times[name] for name in by_hand if name in times)
        found = {name: own / times[name] for name in columns if name in times}
        found["better by hand"] = own / better
        if "fast" in times:
            found["fast / exact"] = times["fast"] / times["exact"]
            if found["fast / exact"] > MOST_BY_FAST and not short:
                slower.append(case.name)
        found["the same, out="] = (own if fresh else times["out="]) / better
        cells = [f"{found[name]:.2f}" if name in found else "-" for name in columns]
        rows.append([case.name, seconds(own), *cells])
        if case.workload != "W1":
            for name, ratio in found.items():
                ratios[name].append(ratio)
        print(case.name, file=sys.stderr, flush=True)
    means = [f"{statistics.geometric_mean(r):.2f}" if r else "-" for r in ratios.values()]
    rows.append(["geometric mean but W1", "", *means])
    heads = [name if name == "fast / exact" else f"/ {name}" for name in columns]
    lines = table([f"case ({instruction_set()})", "native", *heads], rows)
    if slower:
        lines += ["", f'math="fast" is slower than "exact": {", ".join(slower)}']
    return lines


def instruction_set() -> str:
    """The widest vectors of the processor, as far as the system tells."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = {"avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}
    return next((name for flag, name in names.items() if flag in flags), platform.machine())


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


def _by_native(function: Callable[..., Any], inputs: list[Any]) -> tuple[float, float, float]:
    """The shortest times of a call, with a new result and one that is given, and of compiling."""
    graph, begin = pg.trace(function, *inputs), _compiling()
    kernel = pg.compile(graph, target="c").flat
    out = kernel(*inputs)
    compiling = _compiling() - begin
    new, given = _calls(kernel, inputs, out)
    return shortest(new), shortest(given), compiling


def _calls(kernel: Any, inputs: list[Any], out: Any) -> list[Callable[[], Any]]:
    """Calls as a program would write them, which has names for its arrays."""
    if len(inputs) == 1:
        (x,) = inputs
        return [lambda: kernel(x), lambda: kernel(x, out=out)]
    x, v = inputs
    return [lambda: kernel(x, v), lambda: kernel(x, v, out=out)]


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
                    seconds(own[1]), f"{own[1] / theirs[0]:.2f}",
                    seconds(own[2]), f"{own[2] / theirs[1]:.3f}",
                ])  # fmt: skip
    heads = ["", "a call", "/ CasADi", "with `out=`", "/ CasADi", "compiling", "/ CasADi"]
    return table(heads, rows)


def _run_alone() -> None:
    """Go on as a process with one processor, whose libraries have one thread each."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if not ALONE.keys() <= os.environ.keys():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**ALONE, **os.environ})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="how names of cases begin")
    parser.add_argument("--short", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--casadi", action="store_true", help="beside CasADi's generated C")
    parser.add_argument("--limits", action="store_true", help="what the machine can do")
    parser.add_argument("--all", action="store_true", help="all tables")
    options = parser.parse_args()
    _run_alone()
    pg.set_num_threads(1)
    tables: list[list[str]] = []
    if options.all or not (options.casadi or options.limits):
        tables.append(workloads_table(options.only, options.short))
    if options.casadi or (options.all and importlib.util.find_spec("casadi")):
        tables.append(casadi_table([10] if options.short else [100, 1000]))
    if options.all or options.limits:
        tables += native_limits.tables(shortest, options.short)
    sys.stdout.write("\n\n".join("\n".join(lines) for lines in tables) + "\n")
    if any(line.startswith('math="fast" is slower') for lines in tables for line in lines):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
