"""How long `import primgraph` takes, and the first result, in fresh interpreters.

Run it as `python benchmarks/import_time.py`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

LONGEST = 0.15
RUNS, SHORT_RUNS = 15, 1
SHOWN = 12

# Bytecode is written by the first run and used by the others, as in an installed package.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
TIMED = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"
# Prints seconds of processor time until the function is there, those of the first result, and the
# number of modules that were loaded.
FIRST = """
import sys, time
import numpy as np
before, start = len(sys.modules), time.process_time()
import primgraph as pg
f = pg.jit(pg.grad({function}), target={target!r})
ready, x = time.process_time(), np.eye(3) + 0.1
f(x)
print(ready - start, time.process_time() - ready, len(sys.modules) - before)
"""
FUNCTIONS = {
    "tanh(x) * x": "lambda x: pg.sum(pg.tanh(x) * x)",
    "solve(x, x)": "lambda x: pg.sum(pg.linalg.solve(x, x))",
}


def interpreter(
    *arguments: str, environment: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )


def seconds(module: str) -> float:
    """Seconds to import `module` in a fresh interpreter, without the interpreter's own start."""
    return float(interpreter("-c", TIMED.format(module)).stdout)


def first_results(runs: int, count: int) -> Iterator[str]:
    """Yield rows of the first result of a derivative; C is in the cache after the first run."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**ENVIRONMENT, "PRIMGRAPH_CACHE": folder}
        for name, function in [*FUNCTIONS.items()][:count]:
            for target, title in (("numpy", "NumPy"), ("c", "C")):
                text = FIRST.format(function=function, target=target)
                rows = [interpreter("-c", text, environment=environment) for _ in range(1 + runs)]
                numbers = [[float(cell) for cell in row.stdout.split()] for row in rows[1:]]
                ready, result, modules = map(statistics.median, zip(*numbers, strict=True))
                times = f"{1e3 * ready:.0f} | {1e3 * result:.0f} | {modules:.0f}"
                yield f"| gradient of `{name}`, {title} | {times} |"


def costs() -> list[tuple[int, str]]:
    """Microseconds of every module's own body, dearest first, without what numpy loads."""
    run = interpreter("-X", "importtime", "-c", "import numpy; import primgraph")
    found, of_numpy = [], True
    for line in run.stderr.splitlines():
        own, _, name = line.removeprefix("import time:").partition("|")
        name = name.partition("|")[2]
        if not of_numpy and own.strip().isdigit():
            found.append((int(own), name.strip()))
        if name == " numpy":
            of_numpy = False
    return sorted(found, reverse=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the medians and the modules that cost most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one run of each")
    options = parser.parse_args(arguments)
    runs = SHORT_RUNS if options.short else RUNS

    # Taken in turns, so that whatever else the machine does meets both alike.
    times = [(seconds("numpy"), seconds("primgraph")) for _ in range(1 + runs)][1:]
    numpy, primgraph = (statistics.median(column) for column in zip(*times, strict=True))
    over = " over the bar" if primgraph - numpy > LONGEST else ""
    print(f"Python {platform.python_version()}, medians of {runs}\n")
    print("| import | ms |\n|---|---|")
    print(f"| numpy | {1e3 * numpy:.0f} |\n| primgraph | {1e3 * primgraph:.0f} |")
    print(f"| the difference{over} | {1e3 * (primgraph - numpy):.0f} |")

    print("\n| second process, processor time | jit(grad(f)), ms | its first result | modules |")
    print("|---|---|---|---|")
    for row in first_results(runs, 1 if options.short else len(FUNCTIONS)):
        print(row, flush=True)
    print("\n| module, its own body | ms |\n|---|---|")
    for microseconds, name in costs()[:SHOWN]:
        print(f"| {name} | {microseconds / 1e3:.1f} |")


if __name__ == "__main__":
    main()
