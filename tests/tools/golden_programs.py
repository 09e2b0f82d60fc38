"""Programs whose source is kept as text, in `tests/golden`, and read as a person's.

The source of the programs below is readable NumPy code; those in `tests/golden/programs`, each in a
file as a user writes it, are saved as files that stand alone, in Python and some in C.

    python tests/tools/golden_programs.py

writes what comes out now; read the difference line by line before it goes into a commit.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import primgraph as pg
from primgraph.codegen import Kernel

FOLDER = Path(__file__).parents[1] / "golden"


def mlp() -> Kernel:
    """A step of training: loss, gradients, and what Adam does with them."""
    with pg.Program("train") as program:
        x, target = pg.data("x", (8, 3)), pg.data("target", (8, 1))
        w1 = pg.create_parameter((3, 16), name="w1")
        b1 = pg.create_parameter((16,), name="b1")
        w2 = pg.create_parameter((16, 1), name="w2")
        hidden = pg.tanh(x @ w1 + b1)
        predicted = hidden @ w2
        loss = pg.mean((predicted - target) ** 2)
        pg.optimizer.Adam(1e-3).minimize(loss)
    return pg.Executor().kernel(program, [loss])


def attention() -> Kernel:
    with pg.Program("attention") as program:
        q, k, v = (pg.data(name, (64, 16)) for name in "qkv")
        s = pg.softmax((q @ k.T) / 4.0, axis=-1)
        out = pg.sum((s @ v) * v)
        gradients = pg.grad(out, [q, k, v])
    return pg.Executor().kernel(program, gradients)


def mixture() -> Kernel:
    """The likelihood of a mixture of Gaussians, and its gradient."""
    with pg.Program("mixture") as program:
        x, means = pg.data("x", (100, 2)), pg.data("means", (5, 2))
        scales, logits = pg.data("scales", (5,)), pg.data("logits", (5,))
        distance = pg.sum((x[:, None, :] - means) ** 2, axis=2)
        weights = pg.log_softmax(logits) - 2 * pg.log(scales)
        scores = weights - distance / (2 * scales**2)
        total = pg.sum(pg.logsumexp(scores, axis=1))
        gradients = pg.grad(total, [means, scales, logits])
    return pg.Executor().kernel(program, [total, *gradients])


def third() -> Kernel:
    """A third derivative."""
    with pg.Program("third") as program:
        x = pg.data("x", (5,))
        y = x * pg.tanh(x)
        first = pg.grad(y, x)
        second = pg.grad(first, x)
        third = pg.grad(second, x)
    return pg.Executor().kernel(program, [third])


def jacobian() -> Kernel:
    with pg.Program("jacobian") as program:
        w, x = pg.data("w", (4, 3)), pg.data("x", (3,))
        y = pg.tanh(w @ x) * pg.cumsum(w @ x)
        slopes = pg.Jacobian(y, x)[:]
    return pg.Executor().kernel(program, [slopes])


PROGRAMS: dict[str, Callable[[], Kernel]] = {
    f.__name__: f for f in (mlp, attention, mixture, third, jacobian)
}


# The files that are saved, each with the program that it is from.
SAVED = {
    **{f"{path.stem}.py": path.stem for path in sorted((FOLDER / "programs").glob("*.py"))},
    "arm.c": "arm",
    "kalman.c": "kalman",
}
# Programs whose files may import SciPy.
WITH_SCIPY = frozenset({"greeks"})


@cache
def kernel_of(name: str) -> Any:
    """The kernel of a program in a file of its own."""
    return runpy.run_path(str(FOLDER / "programs" / f"{name}.py"))["kernel"]


def save(file: str, folder: Path) -> None:
    """Save the file of that name, and the header beside it, to a folder."""
    name = SAVED[file]
    scipy = name in WITH_SCIPY and file.endswith(".py")
    kernel_of(name).save(folder / file, force=True, scipy=scipy)


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.py"


if __name__ == "__main__":
    for file in SAVED:
        save(file, FOLDER)
    for name, program in PROGRAMS.items():
        path_of(name).write_text(program().source, encoding="ascii")
