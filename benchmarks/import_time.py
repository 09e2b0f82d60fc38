"""How long `import primgraph` takes, beside `import numpy` alone, in fresh interpreters.

Run it as `python benchmarks/import_time.py`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence

LONGEST = 0.15
RUNS, SHORT_RUNS = 15, 1
SHOWN = 12

# Bytecode is written by the first run and used by the others, as in an installed package.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
TIMED = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def interpreter(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )


def seconds(module: str) -> float:
    """Seconds to import `module` in a fresh interpreter, without the interpreter's own start."""
    return float(interpreter("-c", TIMED.format(module)).stdout)


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

    print("\n| module, its own body | ms |\n|---|---|")
    for microseconds, name in costs()[:SHOWN]:
        print(f"| {name} | {microseconds / 1e3:.1f} |")


if __name__ == "__main__":
    main()
