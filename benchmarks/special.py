"""Special functions beside SciPy's, which they are compared with in pairs.

Run it as `python benchmarks/special.py`: medians of the ratio of times, of one thread's own time,
on as many normally distributed numbers as a block of a transformer has.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.special
from tables import table

import primgraph as pg

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "erf": (pg.erf, scipy.special.erf),
    "erfc": (pg.erfc, scipy.special.erfc),
    "gelu, beside erf": (pg.gelu, scipy.special.erf),
    "gammaln": (pg.special.gammaln, scipy.special.gammaln),
    "digamma": (pg.special.digamma, scipy.special.digamma),
    "erfinv": (lambda x: pg.special.erfinv(x), lambda x: scipy.special.erfinv(x)),
    "log_ndtr": (pg.special.log_ndtr, scipy.special.log_ndtr),
}


def ratio(one: Callable[[], Any], other: Callable[[], Any], pairs: int) -> float:
    """How many times as long `one` takes, as the median of so many pairs."""
    found = []
    for _ in range(pairs):
        marks = [time.thread_time_ns()]
        for call in (one, other):
            call()
            marks.append(time.thread_time_ns())
        found.append((marks[1] - marks[0]) / (marks[2] - marks[1]))
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few pairs of few numbers")
    short = parser.parse_args().short
    size, pairs = (256, 3) if short else (32_768, 61)
    rows = []
    for name, (function, known) in FUNCTIONS.items():
        x = np.random.default_rng(0).normal(size=size)
        x = np.tanh(x) if name == "erfinv" else np.abs(x) + 0.1 if "gamma" in name else x
        row = [name]
        for dtype in (np.float64, np.float32):
            feed = x.astype(dtype)
            kernel = pg.compile(pg.trace(function, pg.spec(feed.shape, feed.dtype)))
            row.append(f"{ratio(partial(kernel, feed), partial(known, feed), pairs):.2f}")
        rows.append(row)
    print("\n".join(table(["function", "float64", "float32"], rows)))


if __name__ == "__main__":
    main()
