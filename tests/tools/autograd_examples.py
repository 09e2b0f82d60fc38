"""The examples of HIPS autograd, run with `primgraph.compat.autograd` in the place of autograd.

    python tests/tools/autograd_examples.py CHECKOUT [NAME ...] [--seconds 120] [--autograd]
        [--show]

runs those of a checkout of https://github.com/HIPS/autograd, each in a process of its own. Nothing
in them is changed, but what they import: autograd is the compatible package, pictures are drawn by
nobody, images of digits are made up, and optimizers take a few steps only. With `--autograd` they
are run with autograd itself, where it is installed; `--show` prints what they print.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Examples that need what no driver can give, and why.
LEFT_OUT = {
    "__init__": "it is empty",
    "data": "it is loaded by others",
    "data_mnist": "it is loaded by others, and downloads",
}

DRIVER = """
import importlib, importlib.abc, importlib.util, runpy, sys, types, warnings
from unittest.mock import MagicMock

warnings.simplefilter("ignore")
STEPS, WITH_AUTOGRAD = 4, {with_autograd}


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "autograd" or name.startswith("autograd."):
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return importlib.import_module("primgraph.compat." + spec.name)

    def exec_module(self, module):
        pass


if not WITH_AUTOGRAD:
    sys.meta_path.insert(0, Instead())

import numpy as np


class Pictures(types.ModuleType):
    def __init__(self, name):
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Drawn()


class Drawn(MagicMock):
    def __iter__(self):
        return iter([Drawn() for _ in range(2)])

    def subplots(self, rows=1, columns=1, **options):
        axes = np.array([[Drawn() for _ in range(columns)] for _ in range(rows)], object)
        return Drawn(), axes.squeeze() if axes.size > 1 else axes[0, 0]

    def get_xlim(self):
        return 0.0, 1.0

    get_ylim = get_xlim


class Matplotlib(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("matplotlib", "pylab", "pygraphviz"):
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        found = Pictures(spec.name)
        found.subplots = Drawn().subplots
        found.imread = lambda path: np.random.RandomState(5).rand(
            *((12, 12, 3) if "init" in path else (24, 24))
        )
        return found

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Matplotlib())


def mnist():
    random = np.random.RandomState(3)
    images = [random.randint(0, 255, (n, 28, 28)).astype("uint8") for n in (300, 60)]
    labels = [random.randint(0, 10, n).astype("uint8") for n in (300, 60)]
    return images[0], labels[0], images[1], labels[1]


digits = types.ModuleType("data_mnist")
digits.mnist = mnist
sys.modules["data_mnist"] = digits

optimizers = importlib.import_module("autograd.misc.optimizers")
for name in ("adam", "sgd", "rmsprop"):
    def few(function):
        def call(grad, x0, callback=None, num_iters=100, *args, **kwargs):
            return function(grad, x0, callback, min(num_iters, STEPS), *args, **kwargs)
        return call
    setattr(optimizers, name, few(getattr(optimizers, name)))

import scipy.optimize

minimize = scipy.optimize.minimize


def few_minimized(*args, **kwargs):
    kwargs["options"] = {{**kwargs.get("options", {{}}), "maxiter": STEPS}}
    return minimize(*args, **kwargs)


scipy.optimize.minimize = few_minimized
np.random.seed(0)
sys.argv = ["example"]
runpy.run_path({path!r}, run_name="__main__")
"""


def main() -> int:
    """Run the examples that are named, or all; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--autograd", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    folder = given.checkout / "examples"
    paths = [*sorted(folder.glob("*.py")), *sorted(folder.glob("fluidsim/*.py"))]
    chosen = [p for p in paths if p.stem in (given.names or {p.stem for p in paths} - {*LEFT_OUT})]
    failed = 0
    for path in chosen:
        outcome, text = run(path, given.seconds, given.autograd)
        failed += outcome not in ("runs", "runs on")
        print(f"{path.stem}: {outcome}", flush=True)
        if given.show or outcome == "failed":
            print(text[-4500:], flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} run")
    return int(failed > 0)


def run(path: Path, seconds: float, with_autograd: bool = False) -> tuple[str, str]:
    """What becomes of an example, and what it prints: "runs on" is one that was stopped."""
    driver = DRIVER.format(path=str(path.resolve()), with_autograd=with_autograd)
    root = "" if with_autograd else str(Path(__file__).parents[2])
    known = {
        "PYTHONPATH": os.pathsep.join([root, str(path.parent.resolve())]),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/printed", "w+") as printed:
        command = [sys.executable, "-c", driver]
        try:
            done = subprocess.run(
                command, stdout=printed, stderr=subprocess.STDOUT, timeout=seconds, cwd=folder,
                env={**os.environ, **known}, check=False,
            )  # fmt: skip
            outcome = "failed" if done.returncode else "runs"
        except subprocess.TimeoutExpired:
            outcome = "runs on"
        printed.seek(0)
        return outcome, printed.read()


if __name__ == "__main__":
    raise SystemExit(main())
