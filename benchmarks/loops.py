"""Loops: values and gradients of recurrent networks, differential equations and solvers.

    python benchmarks/loops.py [--short] [--only recurrent ...] [--peers PYTHON]

Each tool has a process of its own, and takes turns with the others, case by case: primgraph, NumPy
by hand where there is a program by hand, and JAX, which runs in the interpreter `--peers`, by
default this one. Results are compared with each other. Times are processor time, of one thread; the
ratios of a case are medians of the ratios of rounds. First calls are those of fresh functions, with
tracing, differentiating, compiling and the run.

`--levels` measures `math="fast"` beside the default, and ends with an error if "fast" takes more
than 3 % longer in a case. `--target c` is native code.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from loop_models import Case, Library, cases
from worker import largest_error

Call = Callable[[], list[Any]]
FOLDER = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PRIMGRAPH_THREADS")
TOOLS = ("primgraph", "hand", "jax", "fast")
# The largest ratio of the time of "fast" to that of "exact".
MOST_BY_FAST = 1.03


# One tool.


def with_primgraph(case: Case, math: str = "exact") -> Call:
    pg = importlib.import_module("primgraph")

    def slope(function: Any) -> Any:
        return lambda x: pg.grad(function(x), x)

    library = Library(
        pg,
        lambda f, init, xs, length: pg.scan(f, init, xs, length=length),
        lambda test, f, init, most: pg.while_loop(test, f, init, max_trips=most),
        pg.sigmoid,
        slope,
        pg.linalg.solve_triangular,
    )

    def whole(*arrays: Any) -> Any:
        value = case.model(library, *arrays)
        return value, *pg.grad(value, [arrays[i] for i in case.wrt])

    kernel = pg.compile(pg.trace(whole, *case.arrays), math=math).flat
    return lambda: kernel(*case.arrays)


def with_jax(case: Case) -> Call:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    # Else another thread computes, whose processor time may not be counted yet after the call.
    jax.config.update("jax_cpu_enable_async_dispatch", False)

    def bounded(test: Any, f: Any, init: Any, most: int | None) -> Any:
        """Loops that reverse mode can go through: trips beyond the end change nothing.

        It needs a bound; where there is none, 10 trips are enough for these cases.
        """
        where = jax.numpy.where

        def step(state: Any, _: Any) -> Any:
            going = test(state)
            found = f(jax.tree.map(lambda a: where(going, a, jax.lax.stop_gradient(a)), state))
            return jax.tree.map(lambda a, b: where(going, a, b), found, state), None

        return jax.lax.scan(step, init, None, length=most or 10)[0]

    solve = importlib.import_module("jax.scipy.linalg").solve_triangular
    library = Library(jax.numpy, jax.lax.scan, bounded, jax.nn.sigmoid, jax.grad, solve)
    gradient = jax.jit(jax.value_and_grad(lambda *a: case.model(library, *a), case.wrt))
    arrays = [jax.numpy.asarray(a) for a in case.arrays]

    def call() -> list[Any]:
        value, found = gradient(*arrays)
        return [a.block_until_ready() for a in (value, *found)]

    return call


def with_hand(case: Case) -> Call | None:
    hand = importlib.import_module("hand_models")
    if case.model.__name__ == "newton":
        return lambda: hand.newton(*case.arrays)
    if case.model.__name__ != "recurrent":
        return None
    run = hand.lstm(case.arrays)
    return lambda: run(*case.arrays)


def seconds_a_call(call: Call, seconds: float) -> list[float]:
    """Processor seconds of each of the calls that fit into `seconds`, three at least.

    The process has one thread at work, and the machine may have other work.
    """
    found: list[float] = []
    end = time.perf_counter() + seconds
    gc.collect()
    gc.disable()
    while len(found) < 3 or time.perf_counter() < end:
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    gc.enable()
    return found


WAYS = {"primgraph": with_primgraph, "jax": with_jax, "fast": partial(with_primgraph, math="fast")}


def serve(tool: str, table: Sequence[Case], by_hand: Callable[[Case], Call | None]) -> None:
    """Prepare and measure cases as lines of the standard input ask for it."""
    known = {case.name: case for case in table}
    call: Call | None = None
    make = WAYS.get(tool, by_hand)
    warm = Case("", lambda lib, x: lib.np.sum(lib.np.sin(x)), [np.ones(3)], (0,))
    ready = make(warm)
    if ready is not None:
        ready()
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "prepare":
            start = time.process_time()
            try:
                call = make(known[order["case"]])
                results = call() if call is not None else None
            except Exception as error:
                print(json.dumps({"failure": f"{type(error).__name__}: {error}"}), flush=True)
                continue
            first = time.process_time() - start
            if results is not None:
                np.savez(order["path"], *map(np.asarray, results))
            answer: dict[str, Any] = {"there": call is not None, "first": first}
        else:
            assert call is not None
            answer = {"least": min(seconds_a_call(call, order["seconds"]))}
        print(json.dumps(answer), flush=True)


# All of them.


class Tool:
    """The process of a tool."""

    def __init__(self, script: str, name: str, python: str, short: bool) -> None:
        self.name = name
        threads = {
            **dict.fromkeys(THREADS, "1"),
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        }
        command = [python, script, "--serve", name, *["--short"] * short]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads},
        )

    def ask(self, **order: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"failure": "its process ended"}

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


def compare(case: Case, tools: list[Tool], rounds: int, seconds: float) -> list[str]:
    """The cells of a row: milliseconds of primgraph, ratios to others, first calls."""
    found: dict[str, Any] = {}
    results: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tool in tools:
            path = str(Path(folder, f"{tool.name}.npz"))
            answer = tool.ask(do="prepare", case=case.name, path=path)
            if answer.get("there"):
                found[tool.name] = answer
                with np.load(path) as stored:
                    results[tool.name] = [stored[k] for k in stored.files]
            elif "failure" in answer:
                print(f"{case.name}: {tool.name}: {answer['failure']}", file=sys.stderr)
    if "primgraph" not in found:
        return [case.name, "failed"]
    for name, arrays in results.items():
        error = largest_error(arrays, results["primgraph"])
        if not error <= case.tolerance:
            raise ArithmeticError(f"{case.name}: {name} differs by {error:.1e}")
    there = [tool for tool in tools if tool.name in found]
    times: dict[str, list[float]] = {tool.name: [] for tool in there}
    for _ in range(rounds):
        for tool in there:
            times[tool.name].append(tool.ask(do="measure", seconds=seconds)["least"])
    own = times["primgraph"]
    cells = [case.name, f"{statistics.median(own) * 1e3:.2f}"]
    for name in TOOLS[1:3]:
        pairs = zip(own, times.get(name, []), strict=False)
        ratios = [a / b for a, b in pairs]
        cells.append(f"{statistics.median(ratios):.2f}" if ratios else "")
    cells += [f"{found[n]['first']:.2f}" if n in found else "" for n in ("primgraph", "jax")]
    if "fast" in found:
        cells.append(f"{min(times['fast']) / min(own):.2f}")
    return cells


def main(
    script: str,
    told: str | None,
    of: Callable[[bool], Sequence[Case]],
    by_hand: Callable[[Case], Call | None],
) -> None:
    """Compare the cases that `of` gives, as the script at this path says."""
    parser = argparse.ArgumentParser(description=told)
    parser.add_argument("--short", action="store_true", help="small cases, to see that it works")
    parser.add_argument("--only", nargs="*", default=[], help="cases that begin with one of these")
    parser.add_argument("--peers", default=sys.executable, help="the interpreter that has JAX")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--levels", action="store_true", help='measure math="fast", too')
    parser.add_argument("--target", default="numpy", choices=("numpy", "c", "auto"))
    parser.add_argument("--serve", choices=TOOLS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, of(options.short), by_hand)
        return
    pythons = dict.fromkeys(("primgraph", "hand", "fast"), sys.executable)
    pythons["jax"] = options.peers
    if options.peers == sys.executable and importlib.util.find_spec("jax") is None:
        del pythons["jax"]
    if not options.levels:
        del pythons["fast"]
    os.environ["PRIMGRAPH_TARGET"] = options.target
    rounds, seconds = (1, 0.01) if options.short else (options.rounds, options.seconds)
    heads = ["case", "ms", "/ by hand", "/ JAX", "first call, s", "of JAX, s"]
    heads += ["fast / exact"] * options.levels
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    waiting = [c for c in of(options.short) if c.name.startswith(tuple(options.only or [""]))]
    # A case that "fast" slows down is measured again, as the places of arrays in memory and other
    # work of the machine slow down a process by more than that.
    for _ in range(3 if options.levels and not options.short else 1):
        tools = [Tool(script, name, python, options.short) for name, python in pythons.items()]
        slower = []
        for case in waiting:
            cells = compare(case, tools, rounds, seconds)
            print(f"| {' | '.join(cells)} |", flush=True)
            if options.levels and float(cells[-1]) > MOST_BY_FAST:
                slower.append(case)
        for tool in tools:
            tool.stop()
        waiting = slower
    if options.levels and waiting and not options.short:
        names = ", ".join(case.name for case in waiting)
        raise SystemExit(f'math="fast" is slower than "exact": {names}')


if __name__ == "__main__":
    main(__file__, __doc__, cases, with_hand)
