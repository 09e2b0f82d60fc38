"""Changes in place in programs of `compat.paddle`: later operations read the new value."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import primgraph.compat.paddle as paddle
from primgraph.errors import BuildError, ShapeError

static = paddle.static


@pytest.fixture
def program():
    paddle.enable_static()
    made = static.Program()
    with static.program_guard(made, static.Program()):
        yield made
    paddle.disable_static()


def run(program, *fetches, **feed):
    return static.Executor().run(program, feed=feed, fetch_list=list(fetches))


def test_a_state_counts_runs_and_is_read_after_its_assignment(program) -> None:
    step = static.create_global_var([1], 0.0, "float32", name="step")
    before = step * 10.0
    assert paddle.assign(step + 1.0, output=step) is step
    after = step * 10.0
    paddle.assign(step + 1.0, step)
    found = [run(program, before, after, step) for _ in range(2)]
    assert [[float(v[0]) for v in row] for row in found] == [[0.0, 10.0, 2.0], [20.0, 30.0, 4.0]]


def test_in_place_functions_and_increment_change_variables(program) -> None:
    x = static.data("x", [2], "float32")
    y = x + 1.0
    y.tanh_()
    i = paddle.full([1], 3, "int64")
    paddle.increment(i)
    total = paddle.concat([y, paddle.cast(i, "float32")])
    (found,) = run(program, total, x=np.zeros(2, "float32"))
    assert_allclose(found, [np.tanh(1.0)] * 2 + [4.0], rtol=1e-6)
    (changed,) = run(program, y, x=np.zeros(2, "float32"))
    assert_allclose(changed, [np.tanh(1.0)] * 2, rtol=1e-6)


def test_bodies_of_loops_change_their_own_variables(program) -> None:
    i, s = paddle.full([1], 0, "int64"), paddle.full([1], 1.0, "float32")

    def body(i, s):
        paddle.assign(s * 2.0, output=s)
        paddle.increment(i)
        return [i, s]

    i, s = static.nn.while_loop(lambda i, s: i < 3, body, [i, s])
    assert [float(v[0]) for v in run(program, i, s)] == [3.0, 8.0]


def test_an_assignment_from_a_branch_to_a_variable_outside_is_an_error(program) -> None:
    x = static.data("x", [1], "float32")
    y = x * 2.0

    def assigning():
        return paddle.assign(x, output=y)

    with pytest.raises(BuildError, match="within a branch or loop"):
        static.nn.cond(paddle.sum(x) > 0.0, assigning, lambda: x)
    with pytest.raises(ShapeError, match="cannot become"):
        paddle.assign(paddle.ones([2]), output=y)


def test_hand_written_descent_updates_a_parameter(program) -> None:
    w = static.create_parameter([2], "float32", name="w")
    x = static.data("x", [2], "float32")
    ((parameter, gradient),) = static.append_backward(paddle.sum(w * x))
    paddle.assign(parameter - 0.5 * gradient, output=parameter)
    x_value = np.array([1.0, -2.0], "float32")
    (first,) = run(program, w, x=x_value)
    (second,) = run(program, w, x=x_value)
    assert_allclose(second - first, -0.5 * x_value, rtol=1e-6)
