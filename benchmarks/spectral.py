"""A step of the vorticity of a plane flow by Fourier series: loss and gradient, as a whole field.

    python benchmarks/spectral.py [--short]

The step is written once, for the `fft` of primgraph, of NumPy and of JAX; its gradient by hand uses
that multipliers of Fourier series have conjugate ones for transposes. All take turns in one
process, with one thread; JAX is there if the interpreter has it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
from typing import Any

import numpy as np
from networks import ONE_THREAD, Call, times

Array = Any
DT, VISCOSITY = 1e-2, 1e-3


class Flow:
    """The multipliers of velocities, slopes and one implicit step of diffusion, on n x n places."""

    def __init__(self, n: int) -> None:
        self.n = n
        kx, ky = np.fft.fftfreq(n, 1 / n)[:, None], np.arange(n // 2 + 1.0)[None]
        kx, ky = (np.where(np.abs(k) == n / 2, 0.0, k) for k in (kx, ky))
        square = kx**2 + ky**2
        inverse = np.where(square > 0, 1 / np.where(square > 0, square, 1), 0.0)
        self.multipliers = [
            1j * ky * inverse,
            -1j * kx * inverse,
            1j * kx + 0 * ky,
            1j * ky + 0 * kx,
        ]
        self.damping = 1 / (1 + DT * VISCOSITY * square)
        rough = np.random.default_rng(0).normal(size=(n, n))
        self.start = 3 * np.fft.irfft2(np.fft.rfft2(rough) * np.exp(-square * 300 / n**2))

    def loss(self, w: Array, xp: Any) -> Array:
        """Half the mean square of the vorticity after a step, with NumPy's functions of `xp`."""
        fft = xp.fft
        z = fft.rfft2(w)
        u, v, wx, wy = (fft.irfft2(z * m) for m in self.multipliers)
        e = fft.irfft2((z - DT * fft.rfft2(u * wx + v * wy)) * self.damping)
        return 0.5 * xp.mean(e * e)

    def by_hand(self, w: Array) -> list[Array]:
        forth, back = np.fft.rfft2, np.fft.irfft2
        z, (mu, mv, mx, my) = forth(w), self.multipliers
        u, v, wx, wy = (back(z * m) for m in self.multipliers)
        after = (z - DT * forth(u * wx + v * wy)) * self.damping
        e = back(after)
        h = after * self.damping / self.n**2
        a = back(h) * -DT
        turned = forth(a * wx) * mu + forth(a * wy) * mv + forth(a * u) * mx + forth(a * v) * my
        return [0.5 * np.mean(e * e), back(h - turned)]


def tools(flow: Flow) -> dict[str, Call]:
    pg: Any = importlib.import_module("primgraph")
    pg.set_num_threads(1)

    def sloped(w: Any) -> Any:
        value = flow.loss(w, np)
        return value, pg.grad(value, w)

    kernel = pg.compile(pg.trace(sloped, pg.spec(flow.start.shape)))
    found: dict[str, Call] = {
        "primgraph": lambda: kernel(flow.start),
        "by hand": lambda: flow.by_hand(flow.start),
    }
    if importlib.util.find_spec("jax") is not None:
        jax: Any = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        step = jax.jit(jax.value_and_grad(lambda w: flow.loss(w, jax.numpy)))
        start = jax.numpy.asarray(flow.start)
        found["JAX"] = lambda: [np.asarray(a) for a in step(start)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="small and quick")
    short = parser.parse_args().short
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        again = [sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(again, env={**os.environ, **ONE_THREAD}).returncode)
    print("| places | tool | ms | primgraph's time by its |\n|---|---|---|---|")
    for n in (16,) if short else (64, 256):
        flow = Flow(n)
        calls = tools(flow)
        expected = flow.by_hand(flow.start)
        for name, call in calls.items():
            for one, other in zip(call(), expected, strict=True):
                bound = 1e-11 * np.max(np.abs(other))
                np.testing.assert_allclose(one, other, rtol=0, atol=bound, err_msg=name)
        found = times(calls, 2 if short else 40)
        for name, listed in found.items():
            ratios = [a / b for a, b in zip(found["primgraph"], listed, strict=True)]
            print(f"| {n} x {n} | {name} | {1e3 * statistics.median(listed):.2f} | "
                  f"{statistics.median(ratios):.2f} |")  # fmt: skip


if __name__ == "__main__":
    main()
