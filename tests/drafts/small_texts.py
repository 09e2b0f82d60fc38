"""Small texts that may ask for much work: each is read, printed, differentiated and compiled.

    python tests/drafts/small_texts.py --texts 5000 --seed 0

A process with a bound on memory goes through them, with a bound on processor time for each text.
It prints the texts that raise anything but primgraph's errors, or go beyond a bound. The exit
status is 1 if there are some.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402
from program_files import damaged_text  # noqa: E402
from random_programs import random_program  # noqa: E402

import primgraph as pg  # noqa: E402
from primgraph.ir.graph import Graph  # noqa: E402

# Seconds of processor time for one text of at most `LONGEST` characters, and bytes for the process.
SECONDS, BYTES = 20, 2**31
LONGEST = 20_000

# More elements than this are not compiled: folding and planning may compute with arrays.
_ELEMENTS = 2**16

_NAMES = [f"{a}{k}" for k in range(12) for a in "abcdn"]


class TooSlow(Exception):
    """One text took more processor time than it may."""


# Extents.


def _extent(rng: np.random.Generator, depth: int) -> str:
    """Return a random expression in sizes."""
    kind = int(rng.integers(9)) if depth else 8
    inner = [_extent(rng, depth - 1) for _ in range(2)] if kind < 8 else []
    if kind == 8:
        return str(rng.choice(["2", "3", "7", *_NAMES]))
    if kind < 3:
        return f"({inner[0]}{'+-*'[kind]}{inner[1]})"
    return (
        f"({inner[0]}+{inner[1]})*({inner[1]}+{inner[0]})",
        f"({inner[0]})//({inner[1]})",
        f"mod({inner[0]},{inner[1]})",
        f"max({inner[0]},{inner[1]})",
        f"min({inner[0]},{inner[1]})",
    )[kind - 3]


def _chain_of_extents(rng: np.random.Generator, count: int) -> str:
    """Return one expression of `count` similar parts."""
    form = str(
        rng.choice(["({a}+{b})", "{a}//{k}", "{a}%{k}", "max({a},{b})", "mod({a},{b})", "{a}"])
    )
    join = str(rng.choice([*"+-*%", "//"]))
    names = rng.permutation(_NAMES)
    return join.join(
        form.format(a=names[2 * i % 60], b=names[(2 * i + 1) % 60], k=2 + i) for i in range(count)
    )


def of_extents(rng: np.random.Generator) -> str:
    """Return a text whose types have large expressions in sizes."""
    if rng.random() < 0.5:
        found = _extent(rng, int(rng.integers(1, 6)))
    else:
        found = _chain_of_extents(rng, int(rng.integers(2, 80)))
    return f"graph f(%x: f64[{found}]) {{\n  %0: f64[{found}] = sin(%x)\n  return %0\n}}"


# Chains of equations.

_STEPS: dict[str, Callable[[Any, int], Any]] = {
    "casts": lambda x, i: pg.cast(x, ("float32", "float64", "int64", "bool")[i % 4]),
    "slices": lambda x, i: pg.pad(x, ((0, i % 3),))[i % 2 :] if i % 5 == 0 else x[: x.shape[0] - 1],
    "reversed": lambda x, i: x[::-1],
    "sums": lambda x, i: x + x,
    "products": lambda x, i: x * x,
    "powers": lambda x, i: x**2,
    "where": lambda x, i: pg.where(x > i, x, -x),
    "einsum": lambda x, i: pg.einsum("i,i->i", x, x),
    "einsum of many": lambda x, i: pg.einsum("i,j,k,l,m->i", *[x] * 5),
    "concat": lambda x, i: pg.concatenate([x, x])[: x.shape[0]],
    "reshaped": lambda x, i: pg.reshape(pg.reshape(x, (-1, 1)), (-1,)),
    "transposed": lambda x, i: pg.transpose(pg.stack([x, x]))[:, 0],
    "broadcast": lambda x, i: pg.sum(pg.broadcast_to(x, (3, *x.shape)), axis=0),
    "gathered": lambda x, i: pg.take(x, pg.arange(x.shape[0])),
    "cumulated": lambda x, i: pg.cumsum(x),
    "sorted": lambda x, i: pg.sort(x),
    "extrema": lambda x, i: pg.maximum(x, pg.max(x) - i),
    "solved": lambda x, i: pg.matmul(pg.reshape(pg.concatenate([x, x, x, x])[:16], (4, 4)), x[:4]),
    "branches": lambda x, i: pg.cond(pg.sum(x) > i, lambda: x + 1.0, lambda: x * 2.0),
    "loops": lambda x, i: pg.fori_loop(0, 2, lambda k, s: s * 0.5 + x, x),
    "guarded": lambda x, i: pg.where(x > 0.0, pg.log(x), pg.sqrt(x * x)),
}


def of_chains(rng: np.random.Generator) -> str:
    """Return the text of a chain of equal steps, or of some that alternate."""
    kinds = [str(k) for k in rng.permutation(list(_STEPS))[: rng.integers(1, 3)]]
    count = int(rng.integers(2, 60))

    def chain(x: Any) -> Any:
        for i in range(count):
            kind = kinds[i % len(kinds)]
            if x.dtype.kind != "f":
                x = x if kind == "casts" else pg.cast(x, "float64")
            x = _STEPS[kind](x, i)
            if kind != "casts" and x.shape[0] < 4:
                x = pg.reshape(pg.concatenate([x, x, x, x]), (-1,))
        return x

    return str(pg.trace(chain, pg.spec((16,))))


def of_nests(rng: np.random.Generator) -> str:
    """Return the text of branches and loops in each other."""
    depth = int(rng.integers(1, 14))
    kinds = [int(rng.integers(3)) for _ in range(depth)]

    def nest(x: Any, k: int) -> Any:
        if k == depth:
            return pg.sin(x)
        if kinds[k] == 0:
            return pg.cond(pg.sum(x) > k, lambda: nest(x, k + 1) + x, lambda: x * 2.0)
        if kinds[k] == 1:
            return pg.fori_loop(0, 2, lambda i, s: nest(s * 0.5, k + 1) + x, x)
        return pg.while_loop(lambda s: pg.sum(s) < 3.0, lambda s: nest(s + 1.0, k + 1), x)

    return str(pg.trace(lambda x: nest(x, 0), pg.spec((4,))))


# Texts of random programs, with other numbers in them.

_NUMBERS = ("0", "-1", "1", "64", "65", "4096", "99999999", "9" * 18, "9" * 40, "2*N", "N//3", "N")


@cache
def _graph(seed: int) -> Graph:
    return random_program(seed).graph


def of_numbers(rng: np.random.Generator) -> str:
    """Return the text of a random program with one number, or all equal ones, changed."""
    graph = _graph(int(rng.integers(300)))
    text = str(graph)
    places = [i for i, c in enumerate(text) if c.isdigit() and not text[i - 1].isalnum()]
    if not places:
        return text
    at = int(rng.choice(places))
    digit, new = text[at], str(rng.choice(_NUMBERS))
    if rng.random() < 0.5:
        return text[:at] + new + text[at + 1 :]
    for opening in "[(, ":
        text = text.replace(opening + digit, opening + new)
    return text


def of_damage(rng: np.random.Generator) -> str:
    """Return the damaged text of a random program."""
    return damaged_text(_graph(int(rng.integers(300))), rng)[0]


KINDS = (of_extents, of_extents, of_chains, of_nests, of_numbers, of_numbers, of_damage)


def text_of(seed: int) -> str:
    """Return the text of that seed: always the same."""
    return KINDS[seed % len(KINDS)](np.random.default_rng((seed, 7)))


def check(text: str) -> str:
    """Read, print, differentiate and compile `text`; return the class of the error, if any.

    Raises what is no error of primgraph's.
    """
    try:
        graph = pg.parse(text[:LONGEST])
        assert pg.parse(str(graph), graph.constants) == graph
    except pg.LoadError as error:
        return str(type(error).__name__)
    types = [v.type for e in graph.body for v in e.outputs] + list(graph.input_types)
    if any(t.names or t.size > _ELEMENTS for t in types):
        return "sizes"
    try:
        pg.compile(graph)
        if any(t.is_float for t in graph.input_types):
            pg.transforms.linearize(pg.transforms.lower(graph))
    except pg.PrimgraphError as error:
        return str(type(error).__name__)
    return ""


def _expired(*_: Any) -> None:
    raise TooSlow(f"more than {SECONDS} s of processor time")


def main() -> int:
    options = _options()
    size, _ = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, size))
    # Where the interpreter itself does not come back, the signal of this limit ends the process.
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + options.seconds, resource.RLIM_INFINITY))
    signal.signal(signal.SIGVTALRM, _expired)
    failures, found = 0, Counter[str]()
    times: list[tuple[float, int]] = []
    for seed in range(options.seed, options.seed + options.texts):
        text, start = text_of(seed), time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            found[check(text)] += 1
        except (Exception, MemoryError):
            failures += 1
            print(
                f"seed {seed} failed:\n{traceback.format_exc(limit=-4)}\n{text[:600]}", flush=True
            )
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        times.append((time.process_time() - start, seed))
    print(f"{options.texts} texts, {failures} failed; {dict(found)}")
    print("slowest: " + ", ".join(f"{t:.1f} s seed {s}" for t, s in sorted(times)[-1:-11:-1]))
    return int(failures > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check small texts.")
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=36000, help="processor time of all texts")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("PRIMGRAPH_DEBUG", "0")
    sys.exit(main())
