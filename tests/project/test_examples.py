"""The examples run, and what they compute is right; each in a folder of its own."""

import importlib.util
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from exported import STRICT, compiled, compiler, sanitized

import primgraph as pg

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not here"),
]

# What each example prints, and the arguments and variables that make it quick.
RUNS = {
    "tanh": ("derivative 3 at 1: 0.62162668", {}),
    "two_worlds": ("taken 600 steps in both worlds", {}),
    "newton": ("largest distance from the known minimum", {}),
    "adaptive": ("largest distance from what the equation says", {}),
    "burgers": ("relative L2 error", {"PRIMGRAPH_EXAMPLE_STEPS": "20"}),
    "orbit": ("standard deviations", {"PRIMGRAPH_EXAMPLE_STEPS": "3"}),
    "recurrent": ("of the chances are of letters", {"PRIMGRAPH_EXAMPLE_STEPS": "1"}),
    "trajectory": ("the pole ends at 180.0 degrees, the cart at 1.00 m", {}),
    "gmm": ("spent outside the kernel", {}),
    "gaussian_process": ("within two standard deviations", {}),
    "vendored": ("runs without primgraph", {}),
    "cluster": ("largest distance from the model", {"PRIMGRAPH_EXAMPLE_ROWS": "40000"}),
}


def run(name, folder, *arguments, **variables):
    """The output of a copy of the example in `folder`, where it may write."""
    copy = shutil.copy(EXAMPLES / f"{name}.py", folder)
    paths = {"PYTHONPATH": str(Path(pg.__file__).parent.parent), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(copy), *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PRIMGRAPH_DEBUG": "0", **paths, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", RUNS)
def test_the_example_runs(name, tmp_path):
    if name in ("gmm", "gaussian_process", "trajectory", "vendored"):
        pytest.importorskip("scipy", reason="SciPy is not installed")
    if name == "cluster":
        pytest.importorskip("scipy", reason="SciPy is not installed")
        pytest.importorskip("distributed", reason="dask and distributed are not installed")
    words, variables = RUNS[name]
    assert words in run(name, tmp_path, **variables)


# The robot in C.


def test_the_robot_drives_the_same_way_in_c(tmp_path):
    if not compiler():
        pytest.skip("there is no C compiler")
    shutil.copy(EXAMPLES / "embedded" / "main.c", tmp_path)
    expected = run("embedded/robot_model", tmp_path)
    files = [tmp_path / "main.c", tmp_path / "robot.c"]
    compiled([*STRICT, *sanitized(), "-o", tmp_path / "robot", *files, "-lm"])
    compiled(["-std=c99", "-Wconversion", "-Werror", "-fsyntax-only", files[1]])
    found = subprocess.run([tmp_path / "robot"], capture_output=True, text=True, check=True)
    assert found.stdout == expected
    assert len(expected.splitlines()) == 6
    # It has come to its goal, and knows that.
    x, y = map(float, expected.splitlines()[-1].split()[1:3])
    assert math.hypot(x - 3.0, y - 1.0) < 0.25


# The mixture of Gaussians.


@pytest.fixture(scope="module")
def gmm():
    spec = importlib.util.spec_from_file_location("example_gmm", EXAMPLES / "gmm.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def log_sum_exp(numbers):
    top = max(numbers)
    return top + math.log(sum(math.exp(a - top) for a in numbers))


def likelihood_by_loops(problem):
    """The log-likelihood, one point, one component and one element of a factor after another."""
    n, d = problem.points.shape
    total = -0.5 * n * d * math.log(2 * math.pi) - n * log_sum_exp(problem.alphas)
    for x in problem.points:
        exponents = []
        for alpha, mean, row in zip(problem.alphas, problem.means, problem.icf, strict=True):
            scaled, place = [math.exp(row[i]) * (x[i] - mean[i]) for i in range(d)], d
            for column in range(d):
                for i in range(column + 1, d):
                    scaled[i] += row[place] * (x[column] - mean[column])
                    place += 1
            exponents.append(alpha + sum(row[:d]) - 0.5 * sum(s * s for s in scaled))
        total += log_sum_exp(exponents)
    return total


def prior_by_loops(problem):
    """Minus the logarithm of the prior, one component after another."""
    d, m, gamma = problem.points.shape[1], problem.m, problem.gamma
    degrees = d + m + 1
    norm = degrees * d * math.log(gamma / math.sqrt(2)) - 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, d + 1):
        norm -= math.lgamma(0.5 * degrees + 0.5 * (1 - j))
    total = 0.0
    for row in problem.icf:
        squares = sum(math.exp(q) ** 2 for q in row[:d]) + sum(q * q for q in row[d:])
        total += 0.5 * gamma**2 * squares - m * sum(row[:d]) - norm
    return total


@pytest.mark.parametrize(("d", "k", "m"), [(1, 1, 0), (2, 3, 0), (4, 2, 3)])
def test_the_mixture_is_what_loops_compute(gmm, d, k, m):
    problem = gmm.made_up(d=d, k=k, n=7, seed=d)
    problem.gamma, problem.m = 1.5, m
    value, loss = gmm.build(problem)
    likelihood, prior = likelihood_by_loops(problem), prior_by_loops(problem)
    assert value.fun(value.x0) == pytest.approx(likelihood + prior, rel=1e-12)
    assert loss.fun(loss.x0) == pytest.approx(prior - likelihood, rel=1e-12)
    assert gmm.worst_slope(value, value.x0, np.random.default_rng(0)) < 1e-7
    assert value.size == k * (1 + d + d * (d + 1) // 2)


def test_the_mixture_is_read_from_a_file(gmm, tmp_path):
    path = tmp_path / "problem.txt"
    arrays = np.arange(1.0, 1 + 3 + 3 * 2 + 3 * 3 + 2 * 2) / 10
    numbers = "\n".join(map(str, arrays))
    path.write_text(f"2 3 2\n{numbers}\n1.5 2\n", encoding="ascii")
    problem = gmm.read(path)
    np.testing.assert_array_equal(problem.alphas, arrays[:3])
    np.testing.assert_array_equal(problem.means, arrays[3:9].reshape(3, 2))
    np.testing.assert_array_equal(problem.icf, arrays[9:18].reshape(3, 3))
    np.testing.assert_array_equal(problem.points, arrays[18:].reshape(2, 2))
    assert (problem.gamma, problem.m) == (1.5, 2)
    path.write_text(f"2 3 9\n{numbers}\n1.5 2\n", encoding="ascii")
    with pytest.raises(ValueError, match="4 coordinates are left for 9 points"):
        gmm.read(path)
    one = "\n".join(map(str, arrays[:-2]))
    path.write_text(f"2 3 9\n{one}\n1.5 2\n", encoding="ascii")
    np.testing.assert_array_equal(gmm.read(path).points, np.tile(arrays[18:20], (9, 1)))
