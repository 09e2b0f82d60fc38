"""A network of convolutions on images of 8 x 8: loss and gradient, beside NumPy by hand and JAX.

    python benchmarks/networks.py [--short]

All take turns in one process, each with one thread. Times are of the processor, ratios medians of
the ratios of rounds. JAX is there if the interpreter has it. The images are blobs at places that
tell their class. It ends with an error if `math="fast"` takes more than 1.03 of the time of the
default.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from hand_networks import by_rows, samples_last

Call = Callable[[], list[Any]]
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
# The largest ratio of the time of "fast" to that of "exact", and the number of rounds.
MOST_BY_FAST, ROUNDS = 1.03, 60
LEVELS = {"exact": "primgraph", "fast": "primgraph, fast"}
WEIGHTS = ((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,), (64, 10), (10,))


def digits(count: int, dtype: str) -> list[Any]:
    """Images, classes and weights."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, count)
    rows, columns = np.indices((8, 8))
    middle = np.stack([1.5 + 5 * (y % 2), 0.5 + 1.7 * (y // 2)], 1)[:, :, None, None]
    x = np.exp(-((rows - middle[:, 0]) ** 2 + (columns - middle[:, 1]) ** 2) / 3)
    x = (x + 0.2 * rng.normal(size=x.shape))[:, None]
    weights = [rng.normal(size=s) * (0.3 if len(s) == 4 else 0.1) for s in WEIGHTS]
    return [x.astype(dtype), y, *(w.astype(dtype) for w in weights)]


def of_primgraph(arrays: list[Any], math: str = "exact") -> Call:
    pg: Any = importlib.import_module("primgraph")
    pg.set_num_threads(1)

    def network(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
        h = pg.max_pool2d(pg.relu(pg.conv2d(x, w1, b1, padding="same")), 2)
        h = pg.max_pool2d(pg.relu(pg.conv2d(h, w2, b2, padding="same")), 2)
        loss = pg.cross_entropy(pg.reshape(h, (x.shape[0], -1)) @ w3 + b3, y)
        return (loss, *pg.grad(loss, [w1, b1, w2, b2, w3, b3]))

    kernel = pg.compile(pg.trace(network, *(pg.spec(a.shape, a.dtype) for a in arrays)), math=math)
    return lambda: kernel(*arrays)


def of_jax(arrays: list[Any]) -> Call:
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jnp, lax = jax.numpy, jax.lax

    def layer(x: Any, w: Any, b: Any) -> Any:
        z = lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None]
        a = jnp.maximum(z, 0)
        return lax.reduce_window(a, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def network(weights: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = weights
        h = layer(layer(x, w1, b1), w2, b2)
        scores = jax.nn.log_softmax(h.reshape(len(x), -1) @ w3 + b3)
        return -jnp.mean(scores[jnp.arange(len(y)), y])

    step = jax.jit(jax.value_and_grad(network))
    x, y, *weights = map(jnp.asarray, arrays)

    def call() -> list[Any]:
        loss, slopes = step(weights, x, y)
        return [np.asarray(a) for a in (loss, *slopes)]

    return call


def tools(arrays: list[Any]) -> dict[str, Call]:
    found = {
        "primgraph": of_primgraph(arrays),
        "by hand, a row a window": lambda: by_rows(*arrays),
        "by hand, samples last": lambda: samples_last(*arrays),
    }
    if importlib.util.find_spec("jax") is not None:
        found["JAX"] = of_jax(arrays)
    found["primgraph, fast"] = of_primgraph(arrays, "fast")
    return found


def times(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            found[name].append(time.process_time() - start)
    return found


def is_slower_by_fast(arrays: list[Any], found: dict[str, list[float]]) -> bool:
    """Whether "fast" takes longer by more than the bound, also where it is compiled again.

    The places of arrays in memory slow down a kernel by more than that.
    """
    levels = {level: found[name] for level, name in LEVELS.items()}
    for _ in range(3):
        if min(levels["fast"]) <= MOST_BY_FAST * min(levels["exact"]):
            return False
        levels = times({level: of_primgraph(arrays, level) for level in LEVELS}, ROUNDS)
    return min(levels["fast"]) > MOST_BY_FAST * min(levels["exact"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="small and quick")
    short = parser.parse_args().short
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # Libraries look at these when they are loaded.
        again = [sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(again, env={**os.environ, **ONE_THREAD}).returncode)
    print("| images | dtype | tool | ms | primgraph's time by its |\n|---|---|---|---|---|")
    slower = []
    for count, dtype in (
        ((4, "float64"),) if short else ((64, "float64"), (256, "float64"), (256, "float32"))
    ):
        arrays = digits(count, dtype)
        calls = tools(arrays)
        expected = samples_last(*arrays)
        for name, call in calls.items():
            for one, other in zip(call(), expected, strict=True):
                bound = 1e-9 if dtype == "float64" else 2e-3
                np.testing.assert_allclose(one, other, rtol=bound, atol=bound, err_msg=name)
        found = times(calls, 2 if short else ROUNDS)
        for name, listed in found.items():
            ratios = [a / b for a, b in zip(found["primgraph"], listed, strict=True)]
            print(f"| {count} | {dtype} | {name} | {1e3 * statistics.median(listed):.2f} | "
                  f"{statistics.median(ratios):.2f} |")  # fmt: skip
        if not short and is_slower_by_fast(arrays, found):
            slower.append(f"{count} {dtype}")
    if slower:
        raise SystemExit(f'math="fast" is slower than "exact": {", ".join(slower)}')


if __name__ == "__main__":
    main()
