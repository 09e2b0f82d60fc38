"""Which lines of the kernel of a workload take the time.

Run it as `python benchmarks/lines.py "W4 K=25"`, with how the names of cases begin. Watching
costs some tenths of a microsecond a line, which tells on small arrays.
"""

from __future__ import annotations

import argparse
import linecache
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import workloads
from cases import cases
from tables import seconds, table

KERNEL = "<primgraph kernel"
Line = tuple[str, int]


def seconds_a_line(call: Callable[[], Any], calls: int) -> dict[Line, float]:
    """Seconds a call on each line of a kernel, what it calls included.

    Medians over the calls, so that a line that had to wait for the processor does not stand out.
    """
    spent: dict[Line, list[float]] = defaultdict(list)
    clock = time.perf_counter
    place: Line | None = None
    since = 0.0

    def inside(frame: Any, event: str, _: Any) -> Any:
        nonlocal place, since
        if place is not None:
            spent[place].append(clock() - since)
        place = None if event == "return" else (frame.f_code.co_filename, frame.f_lineno)
        since = clock()
        return inside

    def entered(frame: Any, _: str, __: Any) -> Any:
        return inside if frame.f_code.co_filename.startswith(KERNEL) else None

    call()
    sys.settrace(entered)
    try:
        for _ in range(calls):
            call()
    finally:
        sys.settrace(None)
    return {k: statistics.median(found) * len(found) / calls for k, found in spent.items()}


def shown(spent: dict[Line, float], top: int) -> list[str]:
    """The dearest lines, then the dearest functions."""
    whole = sum(spent.values())
    texts = {line: linecache.getline(*line).strip() for line in spent}
    rows = [
        [f"{value / whole:.0%}", seconds(value), f"`{texts[line]:.80}`"]
        for line, value in sorted(spent.items(), key=lambda item: -item[1])[:top]
    ]
    functions: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for line, value in spent.items():
        name = texts[line].partition(" = ")[2] or texts[line]
        functions[name.partition("(")[0]] += value
        counts[name.partition("(")[0]] += 1
    totals = [
        [f"{value / whole:.0%}", seconds(value), f"`{name:.40}`, {counts[name]} lines"]
        for name, value in functions.most_common(top // 2)
    ]
    return [*table(["share", "time", "line"], rows), "", *table(["share", "time", "by"], totals)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print two tables for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="+", help="how the names of cases begin")
    parser.add_argument("--short", action="store_true", help="tiny sizes")
    parser.add_argument("--math", default="exact", help="the level: exact, finite or fast")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--top", type=int, default=16, help="how many lines to show")
    options = parser.parse_args(arguments)
    for case in cases(options.only, short=options.short):
        function, inputs = workloads.build(case, options.math)
        spent = seconds_a_line(lambda f=function, a=inputs: f(*a), options.calls)
        print(f"\n{case.name}: {seconds(sum(spent.values()))}\n")
        print("\n".join(shown(spent, options.top)))


if __name__ == "__main__":
    main()
