"""Tiered kernels: total time with `target="auto"` beside that of the better target.

    python benchmarks/tiered.py [--only "W2" ...] [--rounds 3] [--json FILE]

The workloads of cases.py and the loops of loop_models.py, each by NumPy, by C, and by "auto": with
a cache that has the parts which all kernels share, but no kernel, and once more with what was
learned. Each measurement is a process of its own, which compiles, and calls the kernel until "auto"
has chosen. The table has the total of "auto" for 10 to 1,000,000 calls as a multiple of the smaller
total of NumPy and C, compilation included.

Totals are computed from processor times, so that other work on the machine does not count: those of
compiling, of a call, and of the background process. It is taken to have a processor of its own, and
so the change comes as many calls later as fit into its time. The same code is taken to be equally
fast in all processes of a case. One thread.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PRIMGRAPH_THREADS")
COUNTS = tuple(10**k for k in range(1, 7))
BOUND = 1.1
# Seconds for calls of one target, and until "auto" must have chosen.
BUDGET, PATIENCE = 0.3, 60.0
# Prefixes of workloads, of which the first and the last size are taken, and of loops.
WORKLOADS = tuple(f"W{k}" for k in range(1, 13))


def names() -> Iterator[str]:
    """Names of all cases."""
    cases = importlib.import_module("cases")
    for start in WORKLOADS:
        found = [case.name for case in cases.cases([start])]
        yield from dict.fromkeys((found[0], found[-1]))
    for case in importlib.import_module("loop_models").cases():
        yield f"loop {case.name}"


def builder(name: str, target: str) -> Callable[[], Callable[[], Any]]:
    """Return a function that compiles a case, and returns a call of its kernel."""
    pg = importlib.import_module("primgraph")
    if name.startswith("loop "):
        loops = importlib.import_module("loops")
        (case,) = [c for c in loops.cases() if f"loop {c.name}" == name]

        def build_loop() -> Callable[[], Any]:
            pg.config(target=target)
            return loops.with_primgraph(case)

        return build_loop
    workloads = importlib.import_module("workloads")
    workloads.target = target
    (case,) = [c for c in importlib.import_module("cases").cases() if c.name == name]

    def build() -> Callable[[], Any]:
        pg.config(target=target)
        kernel, arrays = workloads.build(case)
        return lambda: kernel(*arrays)

    return build


def measure(name: str, target: str) -> dict[str, Any]:
    """Measure one target in this process: processor seconds to compile, of calls, and so on."""
    notes: dict[str, Any] = {}
    follow(notes)
    build = builder(name, target)
    start = seconds_here()
    call = build()
    compiled = seconds_here()
    call()
    first = seconds_here()
    found = {"compile": compiled - start, "first": first - compiled}
    choice = notes.get("choice")
    if choice is not None:
        found |= until_settled(call, choice)
        found |= {"status": choice.status, "c": choice.is_native}
        if "job" in notes:
            before, job = notes["job"].seconds
            found |= {"job": job, "before": before - max(0.0, notes["submit"] - notes["begin"])}
            found["submit"] = notes["submit"] - start
    return found | {"call": seconds_a_call(call)}


def follow(notes: dict[str, Any]) -> None:
    """Note the choice, and when the background process and its first job begin."""
    kernels = importlib.import_module("primgraph.codegen.tiered.kernel")
    background = importlib.import_module("primgraph.codegen.tiered.background")
    begin, start, submit = kernels.TieredKernel.__init__, background._Worker, background.submit

    def note_choice(kernel: Any, choice: Any, form: Any) -> None:
        notes["choice"] = choice
        begin(kernel, choice, form)

    def note_begin() -> Any:
        notes["begin"] = time.process_time()
        return start()

    def note_job(job: bytes) -> Any:
        notes.setdefault("submit", time.process_time())
        return notes.setdefault("job", submit(job))

    kernels.TieredKernel.__init__ = note_choice
    background._Worker, background.submit = note_begin, note_job


def seconds_here() -> float:
    """Return the processor time of this process and of its compilers."""
    compilers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + compilers.ru_utime + compilers.ru_stime


def until_settled(call: Callable[[], Any], choice: Any) -> dict[str, Any]:
    """Call until "auto" has chosen; return the seconds of the call that takes C up."""
    stall, end = 0.0, time.perf_counter() + PATIENCE
    while choice.stage.name != "SETTLED" and time.perf_counter() < end:
        begun, was = time.process_time(), choice.epoch
        call()
        if choice.epoch != was and not stall:
            stall = time.process_time() - begun
    return {"stall": stall}


def seconds_a_call(call: Callable[[], Any]) -> float:
    """Return the least processor time of a call, of runs of calls that take some milliseconds."""
    begun = time.process_time()
    call()
    count = max(1, int(0.005 / (time.process_time() - begun + 1e-9)))
    found = []
    end = time.perf_counter() + BUDGET
    while time.perf_counter() < end or len(found) < 3:
        begun = time.process_time()
        for _ in range(count):
            call()
        found.append((time.process_time() - begun) / count)
    return min(found)


def total(found: dict[str, Any], count: int, numpy: float = 0.0) -> float:
    """Return the seconds of so many calls, compilation included.

    `numpy` are the seconds of a call before C is taken up.
    """
    seconds: float = found["compile"] + found["first"]
    left = count - 1
    if "job" in found:
        ready = found["submit"] + max(0.0, found["before"]) + found["job"]
        calls = min(left, math.ceil(max(0.0, ready - seconds) / numpy))
        seconds += calls * numpy
        left -= calls
        if left:
            seconds += found["stall"]
    return seconds + left * float(found["call"])


# The processes.


def run(name: str, target: str, cache: Path) -> dict[str, Any]:
    """Measure a target in a process of its own."""
    threads = dict.fromkeys(THREADS, "1")
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name, target],
        env={**os.environ, **threads, "PRIMGRAPH_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
        cwd=FOLDER,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def share_parts(known: Path, fresh: Path) -> None:
    """Copy the parts that all kernels share to a new cache."""
    fresh.mkdir(mode=0o700)
    for file in known.iterdir():
        is_kernel = file.suffix in (".graph", ".times") or file.suffixes == [".so"]
        if not is_kernel and file.is_file():
            shutil.copy2(file, fresh / file.name)


def least(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last round with the least times of all rounds."""
    best = dict(rounds[-1])
    for key in ("compile", "first", "call", "job", "before", "stall", "submit"):
        known = [found[key] for found in rounds if key in found]
        if known:
            best[key] = min(known)
    return best


def share_calls(times: dict[str, dict[str, Any]]) -> float:
    """Give processes that run the same code in the end its least time; return that of NumPy."""
    by_c = {key: times[key].get("c", key.startswith("c")) for key in times}
    best = {c: min(times[k]["call"] for k in times if by_c[k] is c) for c in (False, True)}
    for key, found in times.items():
        found["call"] = best[by_c[key]]
    return best[False]


def case_row(name: str, base: Path, rounds: int) -> dict[str, Any]:
    """Measure a case with each target; "auto" with a new cache, and with what it has learned."""
    # The parts that kernels share are compiled once a machine.
    run(name, "c", base)
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as place:
            for target in ("numpy", "c", "auto"):
                cache = Path(place) / target
                share_parts(base, cache)
                found.setdefault(target, []).append(run(name, target, cache))
            found.setdefault("c again", []).append(run(name, "c", Path(place) / "c"))
            found.setdefault("learned", []).append(run(name, "auto", Path(place) / "auto"))
    times = {key: least(rounds) for key, rounds in found.items()}
    numpy = share_calls(times)
    ratios = {}
    for mine, c in (("auto", "c"), ("learned", "c again")):
        best = {n: min(total(times["numpy"], n), total(times[c], n)) for n in COUNTS}
        ratios[mine] = {n: total(times[mine], n, numpy) / best[n] for n in COUNTS}
    return {"name": name, "times": times, "ratios": ratios}


def line_of(row: dict[str, Any]) -> str:
    """Return a row of the table."""
    times = row["times"]
    cells = [row["name"], *[f"{1e6 * times[t]['call']:.3g}" for t in ("numpy", "c")]]
    cells.append("C" if times["auto"].get("c") else "NumPy")
    for key in ("auto", "learned"):
        cells += [f"{row['ratios'][key][n]:.2f}" for n in COUNTS]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="how names of cases begin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="file for all measurements")
    parser.add_argument("--measure", nargs=2, metavar=("CASE", "TARGET"))
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    rows = []
    counts = [f"{n:,}" for n in COUNTS]
    print("| case | NumPy, us | C, us | chosen |", " | ".join([*counts, *counts]), "|")
    with tempfile.TemporaryDirectory() as place:
        for name in names():
            if options.only and not any(map(name.startswith, options.only)):
                continue
            rows.append(case_row(name, Path(place), options.rounds))
            print(line_of(rows[-1]), flush=True)
    for key in ("auto", "learned"):
        every = [row["ratios"][key][n] for row in rows for n in COUNTS]
        over = sum(ratio > BOUND for ratio in every)
        print(f"{key}: median {statistics.median(every):.2f}, largest {max(every):.2f},", end=" ")
        print(f"above {BOUND} in {over} of {len(every)}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
