"""Damaged texts and files, as many as asked for: whatever is wrong with them is a `LoadError`.

    python tests/drafts/damage.py --texts 40000 --files 8000 --seed 0

It prints what raises anything else, and how often each kind of damage was found. The exit status
is 1 if something failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

os.environ.setdefault("PRIMGRAPH_DEBUG", "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402
from program_files import check_damaged_file, check_damaged_text, check_file, program_of  # noqa: E402
from random_programs import random_program  # noqa: E402

from primgraph.ir.graph import Graph  # noqa: E402

_ENOUGH_FAILURES = 20
_PROGRAMS = 200


@cache
def graph_of(seed: int) -> Graph:
    return random_program(seed).graph


@cache
def saved(seed: int) -> bytes:
    """The file of the random program of that seed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pgz"
        check_file(program_of(graph_of(seed), np.random.default_rng((seed, 3))), path)
        return path.read_bytes()


def check_text(seed: int) -> str:
    """The kind of fault in the damaged text of that seed; empty where there is none."""
    return check_damaged_text(graph_of(seed % _PROGRAMS), np.random.default_rng((seed, 2)))


def check_archive(seed: int, folder: Path) -> str:
    """The kind of fault in the damaged file of that seed; empty where there is none."""
    rng = np.random.default_rng((seed, 4))
    return check_damaged_file(saved(seed % _PROGRAMS), folder / "damaged.pgz", rng)


def main() -> int:
    options = _options()
    warnings.simplefilter("error")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, count, check in (
            ("texts", options.texts, check_text),
            ("files", options.files, lambda seed: check_archive(seed, Path(folder))),
        ):
            found: Counter[str] = Counter()
            for seed in range(options.seed, options.seed + count):
                try:
                    found[check(seed)] += 1
                except Exception:
                    failures += 1
                    print(f"seed {seed} of {kind} failed:\n{traceback.format_exc(limit=-3)}")
                if failures >= _ENOUGH_FAILURES:
                    return 1
            print(f"{count} damaged {kind}, {failures} failed; still whole: {found.pop('', 0)}")
            print("  " + ", ".join(f"{word} {n}" for word, n in found.most_common(20)))
    return int(failures > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check damaged texts and files.")
    parser.add_argument("--texts", type=int, default=40000)
    parser.add_argument("--files", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
