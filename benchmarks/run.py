"""Compare primgraph with NumPy by hand and with other tools on the workloads of cases.py.

Each tool has a process of its own. They take turns, case by case, so that whatever else the
machine does meets all alike: what is compared are the ratios of one round, by their median.
Every result is compared with float64 by hand, element by element. Run it as
`python benchmarks/run.py`, after `pip install '.[bench]'` for the peers.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hand
import numpy as np
from cases import Case, cases
from tables import environment_line, first_calls, ratios, times
from worker import blas_threads

OWN = ("primgraph", "native", "hand", "hand_c", "hand_numba", "jax", "autograd")
BY_COMPILER = ("native", "hand_c")
# What a tool needs that does not have its name.
NEEDED = {"hand_numba": "numba"}
FOLDER = Path(__file__).parent
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "PRIMGRAPH_THREADS",
)


class Tool:
    """The process of one tool, started when it is first needed."""

    def __init__(self, name: str, folder: str | None, threads: int | None) -> None:
        self.name = name
        self.folder = folder
        self.threads = threads
        self.process: subprocess.Popen[str] | None = None

    def ask(self, **order: Any) -> dict[str, Any]:
        """The answer to an order; what has gone wrong, under `failure`."""
        try:
            if self.process is None:
                self._start()
            return self._exchange(json.dumps(order))
        except (BrokenPipeError, json.JSONDecodeError):
            self.stop()
            return {"failure": "its process ended"}

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    stream.close()
            self.process = None

    def _start(self) -> None:
        command = [sys.executable, str(FOLDER / "worker.py"), self.name]
        command += [self.folder] if self.folder else []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._variables()
        )
        self._exchange("")

    def _variables(self) -> dict[str, str]:
        if self.threads is None:
            return dict(os.environ)
        return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(self.threads))}

    def _exchange(self, line: str) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if line:
            print(line, file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


def store_reference(case: Case, path: str) -> None:
    """Write what all results of `case` should be: those by hand, in float64."""
    exact = case.exact()
    function, arguments = hand.build(exact, hand.variants(exact)[0])
    np.savez(path, *(np.asarray(r, np.float64) for r in function(*arguments)))


def compare(case: Case, tools: Sequence[Tool], options: argparse.Namespace) -> dict[str, Any]:
    """All tools on one case."""
    seconds, found = options.seconds, {}
    with tempfile.TemporaryDirectory() as folder:
        reference = str(Path(folder, "reference.npz"))
        with blas_threads(options.threads):
            store_reference(case, reference)
        for tool in tools:
            order = {"case": case.name, "short": options.short, "reference": reference}
            answer = tool.ask(do="prepare", **order, seconds=seconds / 2)
            if answer:
                found[tool.name] = answer
    ready = [t for t in tools if t.name in found and "failure" not in found[t.name]]
    rounds: dict[str, list[dict[str, Any]]] = {t.name: [] for t in ready}
    for k in range(options.rounds):
        first = k % max(1, len(ready))
        for tool in ready[first:] + ready[:first]:
            rounds[tool.name].append(tool.ask(do="measure", seconds=seconds))
    for tool in ready:
        tool.ask(do="drop")
        _summarise(found[tool.name], rounds[tool.name])
    return {"case": case.name, "workload": case.workload, "tools": found}


def _summarise(record: dict[str, Any], rounds: list[dict[str, Any]]) -> None:
    failed = next((r["failure"] for r in rounds if "failure" in r), None)
    if failed is not None:
        record["failure"] = failed
        return
    record["rounds"] = [r["median"] for r in rounds]
    record["median"] = statistics.median(record["rounds"])
    record["min"] = min(r["min"] for r in rounds)
    # Clocks of processor time are coarse: shares of single rounds would be noise.
    others = sum(r["others"] for r in rounds) / sum(r["passed"] for r in rounds)
    record["others"] = None if math.isnan(others) else others


def faults(results: Sequence[dict[str, Any]]) -> list[str]:
    """What failed or differs; a foreign tool need not have every case."""
    return [
        f"{r['case']}: {name}: {t['failure']}"
        for r in results
        for name, t in r["tools"].items()
        if "failure" in t and (name.partition(":")[0] in OWN or "differ" in t["failure"])
    ]


def installed() -> list[str]:
    """Our own tools, without the peers that are not installed, and what needs a compiler."""
    by_compiler = BY_COMPILER if any(map(shutil.which, ("cc", "gcc", "clang"))) else ()
    there = ("primgraph", "hand", *by_compiler)
    absent = {*BY_COMPILER, *there}
    peers = [t for t in OWN if t not in absent and importlib.util.find_spec(NEEDED.get(t, t))]
    return [t for t in OWN if t in there or t in peers]


def environment(options: argparse.Namespace) -> dict[str, Any]:
    versions = {}
    for name in ("numpy", "numba", "jax", "autograd"):
        if importlib.util.find_spec(name):
            versions[name] = importlib.metadata.version(name)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return {
        "python": platform.python_version(),
        "machine": processor(),
        "cores": len(cores) or os.cpu_count(),
        "threads": options.threads,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "versions": versions,
    }


def processor() -> str:
    """The name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument(
        "--only", nargs="*", default=[], help="how names of cases begin: W2, 'W8 mixed'"
    )
    parser.add_argument("--tools", default="", help="some of " + ",".join(OWN) + ", or of --peers")
    parser.add_argument("--peers", help="a folder with other tools, as external.py says")
    parser.add_argument("--threads", type=int, help="processors and threads for every tool")
    parser.add_argument("--rounds", type=int, help="how often the tools take turns")
    parser.add_argument("--seconds", type=float, help="how long a tool's turn is, at least")
    parser.add_argument("--json", help="a file for everything that was measured")
    options = parser.parse_args(arguments)
    rounds, seconds = (2, 0.005) if options.short else (9, 0.1)
    options.rounds = options.rounds or rounds
    options.seconds = options.seconds or seconds
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 if a tool failed or results differ."""
    options = parsed(arguments)
    if options.threads is not None and hasattr(os, "sched_setaffinity"):
        # Some tools look at nothing but the processors that they may use.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    names = options.tools.split(",") if options.tools else installed()
    tools = [Tool(name, options.peers, options.threads) for name in names]
    found = environment(options)
    print(environment_line(found), flush=True)
    results = []
    try:
        for case in cases(options.only, short=options.short):
            print(case.name, file=sys.stderr, flush=True)
            results.append(compare(case, tools, options))
    finally:
        for tool in tools:
            tool.stop()
    for table in (times, ratios, first_calls):
        print("\n" + "\n".join(table(results, names)))
    if options.json:
        text = json.dumps({"environment": found, "results": results}, indent=1)
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    wrong = faults(results)
    print("\n" + ("\n".join(wrong) if wrong else "all results agree"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
