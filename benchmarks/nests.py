"""Loop nests in C: pairs of points in space, stencils, and chains of elementary functions.

    python benchmarks/nests.py [--short] [--only gravity ...]

Values and gradients by `target="c"`, at both levels, beside C by hand, and JAX, numba and
torch.compile (Inductor) if they are installed, in one process and one thread. The tools take turns;
shortest times count. Results are compared first. C by hand is compiled as in `native.py`, and the
better of its variants counts. Attention, normal distributions and more
are in `native.py` (W11, W4).
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ALONE = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
os.environ.update(ALONE)

import numpy as np  # noqa: E402
from hand_c_build import FLAGS, compiled, pointers  # noqa: E402
from native import shortest, times_of  # noqa: E402
from tables import seconds, table  # noqa: E402

import primgraph as pg  # noqa: E402

Call = Callable[[], Any]
rng = np.random.default_rng(0)
TOLERANCE = 1e-9
PEERS = ("C", "numba", "jax", "torch")


class Case(NamedTuple):
    """A model of `lib`, which has NumPy's names, and the arrays that it is differentiated by."""

    name: str
    model: Callable[..., Any]
    arrays: tuple[Any, ...]

    @property
    def kind(self) -> str:
        return self.name.split()[0]


def lennard_jones(lib: Any, x: Any) -> Any:
    apart = x[:, None, :] - x[None, :, :]
    s = (lib.sum(apart**2, axis=2) + np.eye(x.shape[0])) ** -3
    return 2 * lib.sum(s * s - s)


def gravity(lib: Any, x: Any) -> Any:
    apart = x[None] - x[:, None]
    pull = (lib.sum(apart * apart, axis=-1) + 0.01) ** -1.5
    force = lib.sum(apart * pull[:, :, None], axis=1)
    return lib.sum(force * force)


def laplacian(lib: Any, u: Any) -> Any:
    rows = lib.roll(u, 1, axis=0) + lib.roll(u, -1, axis=0)
    return rows + lib.roll(u, 1, axis=1) + lib.roll(u, -1, axis=1) - 4.0 * u


def gray_scott(lib: Any, u: Any, v: Any) -> Any:
    uvv = u * v * v
    a = u + 0.1 * (0.16 * laplacian(lib, u) - uvv + 0.035 * (1.0 - u))
    b = v + 0.1 * (0.08 * laplacian(lib, v) + uvv - 0.1 * v)
    return lib.sum(a * a) + lib.sum(b * b)


def burgers(lib: Any, u: Any) -> Any:
    right = lib.concatenate([u[1:], u[:1]])
    most = lib.maximum(lib.abs(u), lib.abs(right))
    flux = 0.25 * (u * u + right * right) - 0.5 * most * (right - u)
    left = lib.concatenate([flux[-1:], flux[:-1]])
    new = u - 0.1 * (flux - left)
    return lib.sum(new * new)


def wave(lib: Any, u: Any, before: Any) -> Any:
    middle = u[1:-1, 1:-1]
    rows = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * middle
    new = lib.pad(2.0 * middle - before[1:-1, 1:-1] + 0.1 * rows, ((1, 1), (1, 1)))
    return lib.sum(new * new)


def black_scholes(lib: Any, price: Any, strike: Any, time: Any, volatility: Any) -> Any:
    def normal(x: Any) -> Any:
        return 0.5 * lib.erfc(-x * 0.5**0.5)

    spread = volatility * lib.sqrt(time)
    d = (lib.log(price / strike) + (0.02 + 0.5 * volatility**2) * time) / spread
    return lib.sum(price * normal(d) - strike * lib.exp(-0.02 * time) * normal(d - spread))


def cases(short: bool) -> Iterator[Case]:
    for n in (9,) if short else (64, 200):
        x = rng.normal(size=(n, 3)) * n ** (1 / 3)
        yield Case(f"lennard_jones n={n}", lennard_jones, (x,))
        yield Case(f"gravity n={n}", gravity, (x,))
    for n in (12,) if short else (64, 256):
        u, v = rng.normal(size=(2, n, n))
        yield Case(f"gray_scott {n} x {n}", gray_scott, (u, v))
        yield Case(f"wave {n} x {n}", wave, (u, v))
    for n in (100,) if short else (1000, 10_000, 100_000):
        yield Case(f"burgers n={n}", burgers, (rng.normal(size=n),))
    n = 100 if short else 1_000_000
    options = rng.uniform(80, 120, n), rng.uniform(80, 120, n), rng.uniform(0.1, 2, n)
    yield Case(f"black_scholes n={n}", black_scholes, (*options, rng.uniform(0.1, 0.5, n)))


def by_primgraph(case: Case, math: str) -> Call:
    def whole(*arrays: Any) -> Any:
        value = case.model(pg, *arrays)
        return value, *pg.grad(value, list(arrays))

    kernel = pg.compile(pg.trace(whole, *case.arrays), target="c", math=math).flat
    return lambda: kernel(*case.arrays)


def by_hand(case: Case, variant: str) -> Call | None:
    text = Path(__file__).with_suffix(".c").read_text()
    if f"double {case.kind}(" not in text:
        return None
    function = getattr(compiled(text, variant), case.kind)
    function.restype = ctypes.c_double
    results = [np.empty_like(a) for a in case.arrays]
    given = ctypes.c_long(len(case.arrays[0])), *pointers(*case.arrays, *results)
    return lambda: [function(*given), *results]


def by_jax(case: Case) -> Call:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    library = importlib.import_module("jax.numpy")
    library.erfc = jax.scipy.special.erfc
    wrt = tuple(range(len(case.arrays)))
    function = jax.jit(jax.value_and_grad(lambda *a: case.model(library, *a), argnums=wrt))
    given = [jax.device_put(a) for a in case.arrays]

    def run() -> Any:
        value, slopes = jax.block_until_ready(function(*given))
        return [value, *slopes]

    return run


def by_numba(case: Case) -> Call | None:
    loops = importlib.import_module("nests_numba")
    function = getattr(loops, case.kind, None)
    if function is None:
        return None
    results = [np.empty_like(a) for a in case.arrays]
    return lambda: [function(*case.arrays, *results), *results]


class _Torch:
    """The names of NumPy that the models of stencils use, for torch."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.abs, self.maximum, self.sum = torch.abs, torch.maximum, torch.sum
        self.concatenate = torch.cat

    def roll(self, x: Any, shift: int, axis: int) -> Any:
        return self.torch.roll(x, shift, axis)

    def pad(self, x: Any, width: tuple[tuple[int, int], ...]) -> Any:
        return self.torch.nn.functional.pad(x, [n for pair in reversed(width) for n in pair])


def by_torch(case: Case) -> Call | None:
    if case.kind not in ("gray_scott", "wave", "burgers"):
        return None
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    library = _Torch(torch)
    value = torch.compile(lambda *a: case.model(library, *a))
    given = [torch.tensor(a, requires_grad=True) for a in case.arrays]

    def run() -> Any:
        found = value(*given)
        return [found.detach(), *torch.autograd.grad(found, given)]

    return run


def agreeing(call: Call | None, expected: list[Any], name: str) -> Call | None:
    """Return the call if its results are those expected."""
    if call is None:
        return None
    for a, b in zip(call(), expected, strict=True):
        error = np.max(np.abs(np.asarray(a) - b)) / max(np.max(np.abs(b)), 1e-300)
        if not error <= TOLERANCE:
            raise ArithmeticError(f"{name} differs by {error:.1e}")
    return call


def calls_of(case: Case) -> dict[str, Call]:
    """Return what is timed: the faster variant of each tool."""
    kernel = by_primgraph(case, "exact")
    expected = [np.array(r) for r in kernel()]
    found = {"exact": kernel, "fast": by_primgraph(case, "fast"), "C": None}
    hand = {v: by_hand(case, v) for v in FLAGS}
    timed = {shortest(call): call for call in hand.values() if call is not None}
    found["C"] = timed[min(timed)] if timed else None
    for name, tool in (("numba", by_numba), ("jax", by_jax), ("torch", by_torch)):
        found[name] = tool(case) if importlib.util.find_spec(name) else None
    checked = {n: agreeing(c, expected, f"{case.name}: {n}") for n, c in found.items()}
    return {name: call for name, call in checked.items() if call is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="small cases, one round")
    parser.add_argument("--only", nargs="+", default=[], help="names of models")
    chosen = parser.parse_args()
    rows = []
    for case in cases(chosen.short):
        if chosen.only and case.kind not in chosen.only:
            continue
        times = times_of(calls_of(case), 1 if chosen.short else 5)
        own = min(times["exact"], times["fast"])
        ratios = [f"{own / times[n]:.2f}" if n in times else "-" for n in PEERS]
        rows.append([case.name, seconds(times["exact"]), seconds(times["fast"]), *ratios])
    head = ["value and gradient", "exact", "fast", "better / C", "/ numba", "/ JAX", "/ torch"]
    print("\n".join(table(head, rows)))


if __name__ == "__main__":
    main()
