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


def test_auc_is_of_all_batches_and_of_one(program) -> None:
    scores = static.data("scores", [None, 2], "float32")
    labels = static.data("labels", [None, 1], "int64")
    whole, batch, counts = static.auc(scores, labels, num_thresholds=200)
    rng, all_batches = np.random.default_rng(0), paddle.metric.Auc(num_thresholds=200)
    for _ in range(3):
        score = rng.uniform(size=9).astype("float32")
        feed = {"scores": np.stack([1 - score, score], 1), "labels": rng.integers(0, 2, (9, 1))}
        one = paddle.metric.Auc(num_thresholds=200)
        for metric in (one, all_batches):
            metric.update(*feed.values())
        found = run(program, whole, batch, counts[2], counts[3], **feed)
        assert_allclose(found[:2], [all_batches.accumulate(), one.accumulate()])
    assert found[2].sum() + found[3].sum() == 27


def test_serialized_programs_and_states_are_read_back(program) -> None:
    x = static.data("x", [None, 2], "float32")
    y = static.nn.fc(x, 1)
    executor = static.Executor()
    feed = {"x": np.ones((3, 2), "float32")}
    (before,) = executor.run(program, feed, [y])
    text = static.serialize_program([x], [y])
    values = static.serialize_persistables([x], [y], executor)
    other = static.deserialize_program(text)
    static.set_program_state(
        other, {p.name: np.zeros(p.shape, "float32") for p in program.all_parameters()}
    )
    assert_allclose(executor.run(other, feed, [y])[0], 0.0)
    static.deserialize_persistables(other, values, executor)
    assert_allclose(executor.run(other, feed, [y])[0], before)


def test_a_weight_of_normalized_directions_begins_as_its_initializer(program) -> None:
    value = np.arange(1.0, 7.0, dtype="float32").reshape(3, 2)
    for dim in (None, 0, 1):
        attr = static.WeightNormParamAttr(dim, initializer=paddle.nn.initializer.Assign(value))
        x = static.data(f"x{dim}", [1, 3], "float32")
        y = static.nn.fc(x, 2, weight_attr=attr, bias_attr=False)
        feed = {f"x{dim}": np.ones((1, 3), "float32")}
        assert_allclose(static.Executor().run(program, feed, [y])[0], [value.sum(0)], rtol=1e-6)
    shapes = [p.shape for p in program.parameters()]
    assert shapes == [[3, 2], [1, 1], [3, 2], [3, 1], [3, 2], [1, 2]]


@pytest.mark.parametrize("kind", ["LogNormal", "Gumbel", "Multinomial"])
def test_samples_in_programs_are_new_at_each_run(program, kind) -> None:
    made = getattr(paddle.distribution, kind)
    given = (50, paddle.to_tensor([0.5, 0.5])) if kind == "Multinomial" else (0.0, 1.0)
    drawn = made(*given).sample([4])
    first, second = (run(program, drawn)[0] for _ in range(2))
    assert not np.array_equal(first, second)


F = paddle.nn.functional
RANDOM = {
    "dropout": (lambda x: F.dropout(x, 0.5), 1.0),
    "alpha_dropout": (lambda x: F.alpha_dropout(x, 0.5), 1.0),
    "rrelu": (lambda x: F.rrelu(-x), -(1 / 8 + 1 / 3) / 2),
    "dropout in cond": (
        lambda x: static.nn.cond(paddle.mean(x) > 0.0, lambda: F.dropout(x, 0.5), lambda: x),
        1.0,
    ),
    "dropout in while_loop": (
        lambda x: static.nn.while_loop(
            lambda i, x: i < 1, lambda i, x: [i + 1, F.dropout(x, 0.5)],
            [paddle.full([1], 0, "int64"), x],
        )[1],
        1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", RANDOM)
def test_dropout_is_new_at_each_run_and_off_in_clones_for_tests(program, kind) -> None:
    compute, value = RANDOM[kind]
    x = static.data("x", [None, 8], "float32")
    y = compute(x)
    feed = {"x": np.ones((6, 8), "float32")}
    first, second = (run(program, y, **feed)[0] for _ in range(2))
    assert not np.array_equal(first, second)
    assert_allclose(run(program.clone(for_test=True), y, **feed)[0], value, rtol=1e-6)


def test_gradients_are_fetched_by_name_after_minimize(program) -> None:
    x = static.data("x", [2], "float32")
    w = static.create_parameter([2], "float32", name="w")
    paddle.optimizer.SGD(0.1).minimize(paddle.sum(w * x))
    (found,) = run(program, "w@GRAD", x=np.array([1.0, 2.0], "float32"))
    assert found.tolist() == [1.0, 2.0]


def test_dropout_is_new_in_each_iteration(program) -> None:
    x = static.data("x", [1, 40], "float32")
    start = [paddle.full([1], 0, "int64"), paddle.zeros([1, 40])]

    def body(i, total):
        return [i + 1, total * 3.0 + F.dropout(x, 0.5, mode="downscale_in_infer")]

    _, y = static.nn.while_loop(lambda i, total: i < 2, body, start)
    (found,) = run(program, y, x=np.ones((1, 40), "float32"))
    assert set(found.ravel()) == {0.0, 1.0, 3.0, 4.0}
