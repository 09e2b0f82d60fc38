"""Elementary functions of native code: how far from the true values, and how fast.

`python benchmarks/functions.py` sweeps 10**7 numbers of each of some ranges of each function (a
quarter of an hour; `--points` for fewer) beside long double, where that has more bits than double,
and prints the largest errors; `--fast` those of the level "fast", `--special` those of the gamma
function and its kin. `--times` compares processor times of whole calls with JAX's and NumPy's, as
far as these are installed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tables import table

import primgraph as pg
from primgraph.codegen.ops.c.functions import NAMES, definitions
from primgraph.codegen.runtime.toolchain import compile_c
from primgraph.codegen.targets.c.parts import required_parts

TIMED = ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "tanh", "sigmoid", "erf",
         "arctan", "power")  # fmt: skip
SPECIAL = ("gammaln", "gamma", "digamma", "erfcx", "erfinv", "erfcinv", "log_ndtr", "logit")


def elementary(loose: bool) -> str:
    """The C of all elementary functions."""
    return definitions(sorted(NAMES), loose=loose)


def special() -> str:
    """The C of the gamma function and its kin, called for runs."""
    calls = " ".join([f"pg_{name}_{type}()" for name in SPECIAL for type in ("f64", "f32")])
    lines = ["#define SPECIAL", "#include <math.h>", "#include <stdint.h>", "#include <string.h>"]
    lines.append(required_parts(calls))
    for name in SPECIAL:
        for kind, ending, type in (("double", "", "f64"), ("float", "f", "f32")):
            lines.append(f"void pg_{name}{ending}({kind} *out, const {kind} *in, long n) {{")
            lines.append(f"    for (long i = 0; i < n; i++) out[i] = pg_{name}_{type}(in[i]);\n}}")
    return "\n".join([*lines, ""])


def sweep(points: int, name: str | None, *, loose: bool = False, of_kin: bool = False) -> str:
    """The table of the largest errors."""
    if np.finfo(np.longdouble).nmant < 60:
        raise SystemExit("long double has no more bits than double here")
    compiler = compile_c.compiler()
    if compiler is None:
        raise SystemExit("there is no C compiler")
    own = special() if of_kin else elementary(loose)
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "functions.c"), Path(folder, "functions")
        text = own + Path(__file__).with_suffix(".c").read_text()
        source.write_text(
            text.replace("#include <math.h>", "#define _GNU_SOURCE\n#include <math.h>", 1)
        )
        flags = [f for f in compile_c.FUNCTION_FLAGS if f != "-std=c11"]
        command = [*compiler.command, *flags, "-o", str(program), str(source), "-lm"]
        subprocess.run(command, check=True)
        wanted = [str(points), *([name] if name else [])]
        return subprocess.run(
            [str(program), *wanted], check=True, capture_output=True, text=True
        ).stdout


def seconds(call: Callable[[], Any]) -> float:
    """The shortest time of a call, of processors, among batches of some milliseconds."""
    call()
    start = time.process_time()
    call()
    inner = max(1, int(4e-3 / max(time.process_time() - start, 1e-7)))
    best = math.inf
    for _ in range(9):
        start = time.process_time()
        for _ in range(inner):
            call()
        best = min(best, (time.process_time() - start) / inner)
    return best


def native(name: str, x: Any, level: str) -> Callable[[], Any]:
    def function(x: Any) -> Any:
        return x**2.37 if name == "power" else getattr(pg, name)(x)

    kernel = pg.compile(pg.trace(function, x), target="c", math=level).flat
    return lambda: kernel(x)


def by_jax(name: str, x: Any) -> Callable[[], Any] | None:
    if importlib.util.find_spec("jax") is None:
        return None
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    special = {"sigmoid": jax.nn.sigmoid, "erf": jax.scipy.special.erf, "power": lambda v: v**2.37}
    function = jax.jit(special.get(name) or getattr(jax.numpy, name))
    given = jax.numpy.asarray(x)
    return lambda: function(given).block_until_ready()


def by_numpy(name: str, x: Any) -> Callable[[], Any] | None:
    function = (lambda v: v**2.37) if name == "power" else getattr(np, name, None)
    return None if function is None else lambda: function(x)


def times(level: str) -> list[str]:
    """Nanoseconds an element of native code, and its time over those of the others."""
    rows = []
    for dtype in (np.float64, np.float32):
        for count in (1000, 10**6):
            x = np.random.default_rng(0).uniform(0.01, 3, count).astype(dtype)
            for name in TIMED:
                own = seconds(native(name, x, level))
                cells = [np.dtype(dtype).name, f"{count:,}", name, f"{own / count * 1e9:.2f}"]
                for other in (by_jax(name, x), by_numpy(name, x)):
                    cells.append("-" if other is None else f"{own / seconds(other):.2f}")
                rows.append(cells)
    return table(["dtype", "elements", "function", "ns an element", "/ JAX", "/ NumPy"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10**7, help="numbers of each range")
    parser.add_argument("--only", help="one function: exp, pow, ...")
    parser.add_argument("--fast", action="store_true", help='those of the level "fast"')
    parser.add_argument("--special", action="store_true", help="the gamma function and its kin")
    parser.add_argument("--times", action="store_true", help="how fast they are instead")
    options = parser.parse_args()
    if options.times:
        lines = times("fast" if options.fast else "exact")
        sys.stdout.write("\n".join([*lines, ""]))
        return
    fast, kin = options.fast, options.special
    sys.stdout.write(sweep(options.points, options.only, loose=fast, of_kin=kin))


if __name__ == "__main__":
    main()
