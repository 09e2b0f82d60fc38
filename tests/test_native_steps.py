"""Native code for steps that are no arithmetic: indices, loops without a bound, errors."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from native_checks import outside
from test_native import same

import primgraph as pg

pytestmark = [
    pytest.mark.skipif(
        not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
    ),
    pytest.mark.usefixtures("native_cache"),
]

rng = np.random.default_rng(7)


def all_in_c(function, *arrays, rtol=1e-14):
    """As `same`, with no step that NumPy does."""
    kernel = same(function, *arrays, rtol=rtol)
    assert not outside(kernel.graph)
    return kernel


def test_reading_and_adding_at_places():
    x, i = rng.normal(size=(5, 4)), np.array([3, 0, -1, 3])
    j = np.array([[0, -2], [1, 3]])

    def f(x, i, j):
        rows = pg.take(x * 2, i, axis=0) + 1
        spread = x[:, j] - x[:, 1:3, None]
        edge = x[i, i - 1] * pg.sin(x[0, 0])
        put = pg.scatter_add(x, i, rows) * 2
        return [
            rows,
            spread,
            edge,
            put,
            pg.grad(pg.sum(spread**2) + pg.sum(rows) * pg.sum(put**2), x),
        ]

    all_in_c(f, x, i, j)
    all_in_c(f, rng.normal(size=(300, 4)), np.arange(600) % 4, j, rtol=1e-12)


def test_a_place_out_of_range_is_an_error_with_the_users_line():
    x, i = np.arange(4.0), np.array([0, 2])
    kernel = all_in_c(lambda x, i: pg.exp(x[i] * 2), x, i)
    for wrong in ([0, 4], [-5, 1]):
        with pytest.raises(pg.RunError, match="out of bounds") as caught:
            kernel(x, np.array(wrong))
        assert "pg.exp(x[i] * 2)" in str(caught.value)
    assert kernel(x, np.array([-4, 3])).tolist() == np.exp([0.0, 6.0]).tolist()

    def loop(x, i):
        return pg.scan(lambda c, k: (c + x[k], c), 0.0, i)

    inside = all_in_c(loop, x, i)
    with pytest.raises(pg.RunError, match="out of bounds"):
        inside(x, np.array([1, 9]))


def test_a_loop_without_a_bound():
    def f(x):
        root = pg.while_loop(
            lambda c: pg.any(pg.abs(c * c - x) > 1e-12), lambda c: (c + x / c) * 0.5, x
        )
        collatz = pg.while_loop(
            lambda s: s[0] != 1,
            lambda s: (pg.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
            (pg.array(27), pg.array(0)),
        )
        return [root, *collatz]

    x = np.array([2.0, 10.0, 0.3])
    kernel = all_in_c(f, x)
    assert kernel(x)[2] == 111


_ENDLESS = """
import numpy as np, os, signal, threading
import primgraph as pg
signal.signal(signal.SIGINT, signal.default_int_handler)
def forever(x):
    return pg.while_loop(lambda c: pg.sum(c) > 0, lambda c: c * 1.0, x)
for size in (2, 10000):
    kernel = pg.compile(pg.trace(forever, np.ones(size)), target="c")
    assert kernel(np.zeros(size)).sum() == 0
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        kernel(np.ones(size))
    except KeyboardInterrupt:
        print("interrupted", kernel(np.zeros(size)).sum())
"""


def test_a_loop_without_an_end_can_be_interrupted():
    command = [sys.executable, "-c", _ENDLESS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ})
    assert done.stdout == "interrupted 0.0\n" * 2, done.stderr
