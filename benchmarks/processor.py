"""Processor time beside NumPy by hand and JAX, all in one process: for machines with other work.

What else the machine does makes clocks on the wall tell little; how long the processor has worked
for this process it hardly changes. Threads of a tool would count as work, so leave it one:

    export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PRIMGRAPH_THREADS=1 JAX_ENABLE_X64=1
    export XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    taskset -c 0 python benchmarks/processor.py --only W5 W6
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import hand
import workloads
from cases import Case, cases

Call = Callable[[], Any]


def seconds_a_call(call: Call, seconds: float) -> float:
    """The median over batches of two milliseconds, in so much processor time."""
    start = time.process_time()
    call()
    inner = max(1, int(2e-3 / max(time.process_time() - start, 1e-7)))
    found: list[float] = []
    while not found or (sum(found) * inner < seconds and len(found) < 50):
        start = time.process_time()
        for _ in range(inner):
            call()
        found.append((time.process_time() - start) / inner)
    return statistics.median(found)


def calls(tool: Any, case: Case) -> dict[str, Call]:
    """What a tool does for a case, by the names of its variants."""
    made: dict[str, Call] = {}
    for variant in tool.variants(case):
        function, arguments = tool.build(case, variant)
        made[variant] = lambda f=function, a=arguments: f(*a)  # type: ignore[misc]
    return made


def fastest(made: dict[str, Call], seconds: float) -> str:
    for call in made.values():
        call()
    return min(made, key=lambda name: seconds_a_call(made[name], seconds))


def compare(case: Case, tools: dict[str, Any], rounds: int, seconds: float) -> dict[str, Any]:
    """Microseconds of primgraph, its faster variant, and ratios to the other tools."""
    made = {name: found for name, tool in tools.items() if (found := calls(tool, case))}
    best = {name: fastest(found, seconds / 2) for name, found in made.items()}
    times: dict[str, list[float]] = {name: [] for name in best}
    gc.collect()
    gc.disable()
    for k in range(rounds):
        turn = k % len(best)
        for name in [*best, *best][turn : turn + len(best)]:
            times[name].append(seconds_a_call(made[name][best[name]], seconds))
    gc.enable()
    own = times.pop("primgraph")
    ratios = {
        name: statistics.median([a / b for a, b in zip(own, other, strict=True)])
        for name, other in times.items()
    }
    return {
        "case": case.name,
        "microseconds": statistics.median(own) * 1e6,
        "variant": best["primgraph"],
        **ratios,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and geometric means of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--only", nargs="*", default=[], help="how names of cases begin")
    options = parser.parse_args(arguments)
    rounds, seconds = (2, 0.001) if options.short else (7, 0.02)
    tools: dict[str, Any] = {"primgraph": workloads, "hand": hand}
    if importlib.util.find_spec("jax"):
        tools["jax"] = importlib.import_module("peers").Jax()
    others = list(tools)[1:]
    print(f"| case | µs | {' | '.join(f'/ {name}' for name in others)} |")
    print("|---|---|" + "---|" * len(others))
    rows = []
    for case in cases(options.only, short=options.short):
        row = compare(case, tools, rounds, seconds)
        rows.append(row)
        told = " | ".join(f"{row[name]:.2f}" if name in row else "" for name in others)
        time_told = f"{row['microseconds']:.1f} ({row['variant']})"
        print(f"| {row['case']} | {time_told} | {told} |", flush=True)
    means = [math.exp(statistics.mean(math.log(r[n]) for r in rows if n in r)) for n in others]
    print(f"| geometric mean of {len(rows)} | | {' | '.join(f'{m:.2f}' for m in means)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
