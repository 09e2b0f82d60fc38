"""How long `import primgraph` takes, beside `import numpy` alone, in fresh interpreters.

Run it as `python benchmarks/import_time.py`.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence

LONGEST = 0.15
RUNS, SHORT_RUNS = 15, 1
SHOWN = 12

TIMED = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def seconds(module: str) -> float:
    """Seconds to import `module` in a fresh interpreter, without the interpreter's own start."""
    run = subprocess.run(
        [sys.executable, "-c", TIMED.format(module)], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def costs() -> list[tuple[int, str]]:
    """Microseconds of every module's own body, dearest first, without what numpy loads."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import numpy; import primgraph"],
        capture_output=True,
        text=True,
        check=True,
    )
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
