"""One tool in a process of its own: prepares cases and times them when it is told to.

It reads one JSON object a line, each with `do`: `prepare`, `measure` or `drop`, and answers each
with one. benchmarks/run.py is the other side.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, cases

BATCH = 2e-3


def open_tool(name: str, folder: str | None) -> Any:
    """What has `variants(case)` and `build(case, variant)` for a tool."""
    match name:
        case "primgraph":
            return importlib.import_module("workloads")
        case "native":
            tool = importlib.import_module("workloads")
            tool.target = "c"
            return tool
        case "hand" | "hand_c" | "hand_numba":
            return importlib.import_module(name)
        case "jax":
            return importlib.import_module("peers").Jax()
        case "autograd":
            return importlib.import_module("peers").Autograd()
    if folder is None:
        raise SystemExit(f"no tool {name!r}; --peers names the folder of others")
    return importlib.import_module("external").External(name, folder)


def seconds_of_all() -> float:
    """Processor seconds that the machine has spent on anything; nan where it does not tell."""
    try:
        fields = [int(f) for f in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    except OSError:
        return math.nan
    idle, waiting = fields[3], fields[4]
    return (sum(fields[:8]) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(seconds: float) -> None:
    """Wait until nobody computes, for a third of a second at most, before so long a measurement.

    Threads of a tool that has just had its turn spin for a while before they sleep. Before less
    than a hundredth of a second, which shows that something runs and not how fast, nobody waits.
    """
    end = time.perf_counter() + (1 / 3 if seconds >= 0.01 else 0)
    while time.perf_counter() < end:
        before = seconds_of_all()
        time.sleep(0.05)
        if not seconds_of_all() - before > 0.015:
            return


def memory(field: str) -> float:
    """Megabytes of this process by that name in its status; nan where it does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return math.nan
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@contextlib.contextmanager
def blas_threads(count: int | None) -> Iterator[None]:
    """Let linear algebra have `count` threads inside this context, if something can say so."""
    if count is None or importlib.util.find_spec("threadpoolctl") is None:
        yield
        return
    with importlib.import_module("threadpoolctl").threadpool_limits(count):
        yield


def seconds_a_call(call: Callable[[], Any], seconds: float) -> list[float]:
    """Seconds a call in each of the batches that fit into `seconds`, one at least."""
    clock = time.perf_counter
    start = clock()
    call()
    inner = max(1, int(BATCH / max(clock() - start, 1e-7)))
    found, end = [], clock() + seconds
    gc.collect()
    gc.disable()
    while not found or clock() < end:
        start = clock()
        for _ in range(inner):
            call()
        found.append((clock() - start) / inner)
    gc.enable()
    return found


def largest_error(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest difference of two elements, relative to the largest element of its array."""
    if len(found) != len(expected):
        return math.inf
    worst = 0.0
    for mine, true in zip(found, expected, strict=True):
        array = np.asarray(mine, np.float64)
        if array.shape != true.shape:
            return math.inf
        scale = float(np.abs(true).max(initial=0.0)) or 1.0
        error = float(np.abs(array - true).max(initial=0.0)) / scale
        worst = max(worst, math.inf if math.isnan(error) else error)
    return worst


class Worker:
    """A tool, and the call that it has prepared."""

    def __init__(self, name: str, folder: str | None) -> None:
        name, _, wanted = name.partition(":")
        self.tool = open_tool(name, folder)
        self.wanted = tuple(wanted.split(",")) if wanted else ()
        self.call: Callable[[], Any] | None = None
        self.threads: int | None = None
        # What the first program of a process loads belongs to no case.
        first = next(cases(short=True))
        for variant in self.tool.variants(first)[:1]:
            function, arguments = self.tool.build(first, variant)
            function(*arguments)

    def prepare(self, case: str, short: bool, reference: str, seconds: float) -> dict[str, Any]:
        """Build every variant of a case, check it, and keep the fastest."""
        found = next(c for c in cases([case], short=short) if c.name == case)
        with np.load(reference) as stored:
            expected = [stored[k] for k in stored.files]
        self.drop()
        best: dict[str, Any] = {}
        for variant in self.tool.variants(found):
            if self.wanted and variant not in self.wanted:
                continue
            answer, call, threads = self._variant(found, variant, expected, seconds)
            if not best or answer["trial"] < best["trial"]:
                best, self.call, self.threads = answer, call, threads
            del call
        return best

    def _variant(
        self, case: Case, variant: str, expected: Sequence[Any], seconds: float
    ) -> tuple[dict[str, Any], Callable[[], Any], int | None]:
        gc.collect()
        forget_peak()
        before, start = memory("VmRSS"), time.perf_counter()
        function, arguments = self.tool.build(case, variant)
        threads = getattr(function, "blas_threads", None)
        results = function(*arguments)
        first = time.perf_counter() - start
        peak = memory("VmHWM") - before
        error = largest_error(results, expected[-len(results) :])
        if not error <= case.tolerance:
            raise ArithmeticError(f"{case.name} {variant}: results differ by {error:.1e}")
        del results

        def call() -> Any:
            return function(*arguments)

        wait_for_quiet(seconds)
        with blas_threads(threads):
            trial = statistics.median(seconds_a_call(call, seconds))
        answer = {"variant": variant, "trial": trial, "first": first, "error": error, "peak": peak}
        return answer, call, threads

    def measure(self, seconds: float) -> dict[str, Any]:
        """Seconds a call, and the processors that others were using meanwhile."""
        assert self.call is not None
        wait_for_quiet(seconds)
        with blas_threads(self.threads):
            all_before, mine_before = seconds_of_all(), time.process_time()
            start = time.perf_counter()
            found = seconds_a_call(self.call, seconds)
            passed = time.perf_counter() - start
            others = seconds_of_all() - all_before - (time.process_time() - mine_before)
        return {
            "median": statistics.median(found),
            "min": min(found),
            "others": max(0.0, others),
            "passed": passed,
        }

    def drop(self) -> dict[str, Any]:
        self.call = self.threads = None
        gc.collect()
        return {}


def main() -> None:
    """Answer until there is nothing more to read."""
    # Libraries may print; answers have a channel of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        do = getattr(worker, order.pop("do"))
        try:
            answer = do(**order)
        except Exception as error:
            answer = {"failure": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
