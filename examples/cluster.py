"""
Logistic regression on Dask workers
===================================

Fit files that are read chunk by chunk, on worker processes of Dask::

    python examples/cluster.py            # starts two workers of its own
    python examples/cluster.py --kill     # and kills one of them on the way

The samples are memory maps, which workers open themselves. L-BFGS asks for the loss and its
gradient. One kernel computes them for each chunk, and the results are added in a fixed order.
So the sum has the same bits, whichever worker computes which chunk, and how often.
"""

# sphinx_gallery_thumbnail_path = 'static/cluster.svg'

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import primgraph as pg

try:
    from distributed import Client, LocalCluster
    from scipy.optimize import minimize
except ModuleNotFoundError:
    raise SystemExit(
        "this example needs dask and SciPy: pip install 'primgraph[dask,scipy]'"
    ) from None

ROWS = int(os.environ.get("PRIMGRAPH_EXAMPLE_ROWS", "400000"))
FEATURES = 12


def write_samples(folder):
    """Files with features, and with labels of -1 and 1 drawn from a known model."""
    rng = np.random.default_rng(0)
    true = np.linspace(-1.5, 1.5, FEATURES)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float64, (ROWS, FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float64, (ROWS,))
    for start in range(0, ROWS, 100_000):
        part = rng.standard_normal(x[start : start + 100_000].shape)
        x[start : start + 100_000] = part
        y[start : start + 100_000] = np.sign(part @ true + 0.5 + rng.logistic(size=len(part)))
    x.flush()
    y.flush()
    return true


def loss(params, x, y):
    """The mean of the losses, and a penalty, as one would write them for NumPy."""
    margin = y * (x @ params["w"] + params["b"])
    return np.mean(np.log1p(np.exp(-margin))) + 1e-4 * np.sum(params["w"] ** 2)


def kill_later(cluster, seconds):
    """Kill the first worker after some time, as a machine that fails does."""

    def kill():
        time.sleep(seconds)
        pid = next(iter(cluster.workers.values())).pid
        os.kill(pid, signal.SIGKILL)
        print(f"worker {pid} has been killed")

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--kill", action="store_true", help="kill a worker on the way")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        folder = Path(name)
        true = write_samples(folder)
        files = tuple(np.load(folder / f"{n}.npy", mmap_mode="r") for n in "xy")
        data = pg.distributed.chunks(files, rows=20_000)
        start = {"w": np.zeros(FEATURES), "b": np.zeros(())}
        total = pg.distributed.objective(loss, start, data, client)
        print(total.plan())
        killer = kill_later(cluster, 0.5) if options.kill else None
        found = minimize(total.fun_and_jac, total.x0, jac=True, method="L-BFGS-B")
        if killer is not None:
            killer.join()
        fitted = total.unflatten(found.x)
        # The same on threads of this process: the same bits.
        here = pg.distributed.objective(loss, start, data, "threads")
        assert here.fun(found.x) == found.fun, "the bits differ"
        print(f"{found.nfev} evaluations, loss {found.fun:.6f}")
        print(f"largest distance from the model: {np.max(np.abs(fitted['w'] - true)):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
