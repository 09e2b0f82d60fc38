"""What the machine can do, how near native code comes to that, and how long first calls take."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import workloads
from cases import cases
from growth import program
from hand_c_build import compiled, pointers
from tables import seconds, table

import primgraph as pg

Shortest = Callable[[Callable[[], Any]], float]

# Accumulators that hide how long a multiplication with addition takes.
CHAINS = 16
LOOPS = f"""
typedef REAL vector __attribute__((vector_size(BYTES)));
void triad(REAL *restrict a, const REAL *restrict b, const REAL *restrict c, long n) {{
    for (long i = 0; i < n; i++) a[i] = b[i] + (REAL)3 * c[i];
}}
void total(REAL *restrict a, const REAL *restrict b, const REAL *restrict c, long n) {{
    vector t[8] = {{0}};
    const vector *v = (const vector *)b;
    for (long i = 0; i + 8 <= n / (BYTES / (long)sizeof(REAL)); i += 8)
        for (int k = 0; k < 8; k++) t[k] += v[i + k];
    for (int k = 1; k < 8; k++) t[0] += t[k];
    a[0] = t[0][0] + c[0];
}}
void multiply(REAL *restrict a, const REAL *restrict b, const REAL *restrict c, long n) {{
    vector t[{CHAINS}], x, y;
    for (int l = 0; l < BYTES / (int)sizeof(REAL); l++) x[l] = b[l], y[l] = c[l];
    for (int k = 0; k < {CHAINS}; k++) t[k] = x;
    for (long i = 0; i < n; i++)
        _Pragma("GCC unroll {CHAINS}") for (int k = 0; k < {CHAINS}; k++) t[k] = t[k] * x + y;
    for (int k = 1; k < {CHAINS}; k++) t[0] += t[k];
    a[0] = t[0][0];
}}
"""
_HEAD = """
#define REAL {}
#ifdef __AVX512F__
#define BYTES 64
#else
#define BYTES 32
#endif
int width(void) {{ return BYTES; }}
"""


def limits(shortest: Shortest, dtype: Any, elements: int) -> dict[str, float]:
    """Bytes of memory a second in a triad and in a sum, and operations a second in registers."""
    library = compiled(_HEAD.format("float" if dtype == np.float32 else "double") + LOOPS, "strict")
    # Vectors are read where they begin at multiples of their size.
    kept = [np.ones(elements + 64, dtype) for _ in range(3)]
    a, b, c = (x[-x.ctypes.data % 64 // x.itemsize :][:elements] for x in kept)
    places, trips = pointers(a, b, c), 100_000

    def seconds_of(name: str, count: int) -> float:
        function = getattr(library, name)
        return shortest(lambda: function(*places, ctypes.c_long(count)))

    c[:] = 0
    multiplications = trips * CHAINS * library.width() // a.itemsize
    return {
        "triad": 3 * a.nbytes / seconds_of("triad", elements),
        "sum": a.nbytes / seconds_of("total", elements),
        "multiply": 2 * multiplications / seconds_of("multiply", trips),
    }


def limits_table(found: dict[str, dict[str, float]]) -> list[str]:
    rows = [
        [name, f"{f['triad'] / 1e9:.1f}", f"{f['sum'] / 1e9:.1f}", f"{f['multiply'] / 1e9:.0f}"]
        for name, f in found.items()
    ]
    head = ["the machine", "triad, GB/s", "sum, GB/s", "a b + c in registers, GFLOP/s"]
    return table(head, rows)


def regression_table(
    shortest: Shortest, found: dict[str, dict[str, float]], short: bool
) -> list[str]:
    """W9, which reads its samples once, beside what memory takes for that."""
    workloads.target, rows = "c", []
    for case in cases(["W9"], short=short):
        function, arguments = workloads.build(case, "fast")
        own = shortest(lambda f=function, a=arguments: f(*a))  # type: ignore[misc]
        moved, limit = sum(a.nbytes for a in arguments), found[case["dt"]]
        ratios = [f"{own * limit[name] / moved:.2f}" for name in ("triad", "sum")]
        rows.append([case.name, f"{moved / 1e6:.1f}", seconds(own), *ratios])
    head = ["case", "MB that are read", "native", "/ at the triad's rate", "/ at the sum's rate"]
    return table(head, rows)


def first_call(count: int, target: str) -> float:
    """Seconds from a program of `count` operators to its first result."""
    made, loss, inputs = program(count)
    feeds = [np.ones(v.shape) for v in inputs]
    start = time.perf_counter()
    pg.Executor(target=target).kernel(made, [loss])(*feeds)
    return time.perf_counter() - start


def _elsewhere(count: int, target: str, folder: str) -> float:
    """The same in a new process, whose cache of compiled code is in `folder`."""
    command = [sys.executable, __file__, str(count), target]
    variables = {**os.environ, "PRIMGRAPH_CACHE": folder}
    run = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return float(run.stdout)


def first_calls_table(sizes: list[int], runs: int) -> list[str]:
    """First calls of graphs that no cache has, that it has, and of NumPy kernels."""
    rows, before = [], math.nan
    for count in sizes:
        new, known, numpy = math.inf, math.inf, math.inf
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                # What is compiled once on a machine belongs to no row.
                _elsewhere(8, "c", folder)
                new = min(new, _elsewhere(count, "c", folder))
                known = min(known, _elsewhere(count, "c", folder))
                numpy = min(numpy, _elsewhere(count, "numpy", folder))
        growth = f"{math.log10(new / before):.2f}" if count == sizes[-1] and runs > 1 else ""
        rows.append([f"{count:,}", f"{new:.3f}", f"{known:.3f}", f"{numpy:.3f}", growth])
        before = new
    head = ["operators", "first call, s", "from the cache", "NumPy kernel", "exponent"]
    return table(head, rows)


def tables(shortest: Shortest, short: bool) -> list[list[str]]:
    """All that is told here."""
    elements = 2**16 if short else 2**24
    found = {
        "f64": limits(shortest, np.float64, elements),
        "f32": limits(shortest, np.float32, elements),
    }
    first = first_calls_table([40], 1) if short else first_calls_table([40, 1000, 10_000], 2)
    return [limits_table(found), regression_table(shortest, found, short), first]


if __name__ == "__main__":
    sys.stdout.write(f"{first_call(int(sys.argv[1]), sys.argv[2])}\n")
