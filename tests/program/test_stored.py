"""A program that an earlier version saved is read, and computes the same.

`python tests/program/test_stored.py FILE` saves it, for a format that is new.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

import primgraph as pg

STORED = Path(__file__).parents[1] / "saved" / "format-2.pgz"
FEEDS = {"x": np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5]]), "k": np.array([2, 0])}
# What two steps give, and the parameters after them.
LOSSES, TRAINED = [0.185047, 0.135893], [0.304171, 0.5, 0.300737]


def program() -> pg.Program:
    """A training step with symbolic sizes, a loop, a branch, constants, and states."""
    with pg.Program() as made:
        x, k = pg.data("x", shape=("N", 3)), pg.data("k", shape=("N",), dtype="int64")
        w = pg.create_parameter((3,), name="w", initializer=pg.initializers.Constant(0.5))
        hidden = pg.fori_loop(0, 3, lambda i, h: pg.tanh(h * w + np.array([0.1, 0.2, 0.3])), x)
        chosen = pg.take_along_axis(hidden, k[:, None], axis=1)
        loss = pg.mean(pg.cond(pg.sum(chosen) > 0.0, lambda t: t * t, lambda t: -t, chosen))
        loss.name = "loss"
        pg.optimizer.Adam(learning_rate=0.1).minimize(loss)
    return made


def losses(made: pg.Program) -> list[float]:
    executor = pg.Executor()
    return [float(executor.run(made, feed=FEEDS, fetch_list=["loss"])[0]) for _ in range(2)]


def test_a_program_saved_by_an_earlier_version_computes_the_same():
    stored = pg.load(STORED)
    np.testing.assert_allclose(losses(stored), LOSSES, rtol=1e-4)
    np.testing.assert_allclose(stored.state_dict()["w"], TRAINED, rtol=1e-4)


def test_what_is_saved_now_is_what_is_stored(tmp_path):
    """So the stored file stands for today's program, and not for a smaller one."""
    made = program()
    pg.save(made, tmp_path / "again.pgz")
    again, stored = pg.load(tmp_path / "again.pgz"), pg.load(STORED)
    assert set(again.inputs) == set(stored.inputs) == {"x", "k"}
    np.testing.assert_allclose(losses(again), losses(stored), rtol=1e-12)


def printed(code: str) -> str:
    """Run `code` in a fresh process, and return what it prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_programs_with_operators_that_load_late_are_read_in_a_fresh_process(tmp_path):
    with pg.Program() as program:
        x, w = pg.data("x", (1, 2, 8)), pg.data("w", (3, 2, 3))
        pg.softmax(pg.conv1d(x, w))
    path = tmp_path / "program.pgz"
    pg.save(program, path)
    assert "conv1d" in printed(f"import primgraph as pg; print(pg.load({str(path)!r}))")


def test_every_operator_is_found_by_its_name_alone():
    ask = "import primgraph; from primgraph.ir import primitive;"
    names = printed(f"{ask} print(*primitive.registered())").split()
    assert {"conv1d", "softmax", "eigh", "scan"} <= {*names}
    printed(f"{ask} [primitive.lookup(name) for name in {names}]")


if __name__ == "__main__":
    pg.save(program(), sys.argv[1])
