"""What lives between runs: parameters, initialisers, scopes, updates, clones, keys."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import primgraph as pg
from primgraph import initializers
from primgraph.ir.frontend import signature

PACKAGE = Path(pg.__file__).parent

X = np.array([1.0, 2.0, 3.0])


def counting():
    """A program whose state `w`, zeros at first, grows by `x` in every run."""
    with pg.Program("counting") as program:
        x = pg.data("x", (3,))
        w = pg.create_parameter((3,), name="w", is_bias=True)
        program.update(w, w + x)
    return program, x, w


def values(initializer, shape, dtype="float64", name="w", seed=0):
    with pg.Program() as program:
        program.random_seed = seed
        pg.create_parameter(shape, dtype, name, initializer)
    (array,) = program.state_dict().values()
    assert array.shape == shape
    assert array.dtype == np.dtype(dtype)
    return array


@pytest.mark.parametrize(
    ("initializer", "shape", "bound", "variance"),
    [
        (initializers.Uniform(-2.0, 3.0), (40, 50), 3.0, 25 / 12),
        (initializers.Normal(0.0, 2.0), (40, 50), math.inf, 4.0),
        (initializers.Xavier(), (40, 60), math.sqrt(6 / 100), 2 / 100),
        (initializers.Xavier(uniform=False), (40, 60), math.inf, 2 / 100),
        (initializers.Xavier(), (5, 20, 20), math.sqrt(6 / 200), 2 / 200),
        (initializers.Xavier(), (900,), math.sqrt(6 / 1800), 2 / 1800),
        (initializers.Kaiming(), (40, 60), math.sqrt(6 / 40), 2 / 40),
        (initializers.Kaiming(uniform=False), (40, 60), math.inf, 2 / 40),
    ],
)
def test_random_initialisers_have_their_bounds_and_variance(initializer, shape, bound, variance):
    array = values(initializer, shape)
    assert np.abs(array).max() <= bound
    assert math.isclose(array.var(), variance, rel_tol=0.1)
    assert values(initializer, shape, "float32").dtype == np.float32


def test_constant_initialisers():
    np.testing.assert_array_equal(values(initializers.Constant(1.5), (2, 3)), np.full((2, 3), 1.5))
    np.testing.assert_array_equal(values(initializers.Assign([1, 2]), (2,)), [1.0, 2.0])
    assert initializers.fans(()) == (1, 1)
    with pytest.raises(pg.ArgumentError, match=r"shape \(2,\) cannot initialise \(3,\)"):
        values(initializers.Assign([1, 2]), (3,))


def test_defaults_are_xavier_for_weights_and_zero_for_biases():
    with pg.Program() as program:
        names = [pg.create_parameter((4, 4), is_bias=b).name for b in (False, True, False)]
    assert names == ["weight", "bias", "weight_1"]
    found = program.state_dict()
    assert not found["bias"].any()
    assert 0 < np.abs(found["weight"]).max() <= math.sqrt(6 / 8)
    assert [v.name for v in program.parameters()] == names


def test_first_values_depend_on_seed_and_name_and_on_nothing_else():
    rule = initializers.Normal()
    first = values(rule, (3,))
    np.testing.assert_array_equal(values(rule, (3,)), first)
    assert not np.isclose(values(rule, (3,), name="v"), first).any()
    assert not np.isclose(values(rule, (3,), seed=1), first).any()
    assert np.isfinite(values(rule, (3,), seed=-(2**70))).all()
    code = (
        "import primgraph as pg\n"
        "with pg.Program() as program:\n"
        "    pg.create_parameter((3,), name='w', initializer=pg.initializers.Normal())\n"
        "print(program.state_dict()['w'].tobytes().hex())\n"
    )
    for hash_seed in ("0", "1"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": str(PACKAGE.parent), "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert run.stdout.strip() == first.tobytes().hex(), run.stderr


def test_updates_see_the_values_from_before_the_run():
    with pg.Program() as program:
        a = pg.create_parameter((3,), name="a", initializer=initializers.Constant(1.0))
        b = pg.create_parameter((3,), name="b", initializer=initializers.Constant(2.0))
        program.update(a, b)
        program.update(b, a)
        both = a + 10 * b
    executor = pg.Executor()
    # What is computed is from before; what is fetched of a state is from after.
    first = executor.run(program, {}, [both, a, "b"])
    for found, expected in zip(first, (21, 2, 1), strict=True):
        np.testing.assert_array_equal(found, np.full(3, float(expected)))
    second = executor.run(program, fetch_list=[both, a, b])
    assert [array[0] for array in second] == [12, 1, 2]


def test_states_may_become_views_of_each_other():
    start = np.arange(4.0).reshape(2, 2)
    with pg.Program() as program:
        a = pg.create_parameter((2, 2), name="a", initializer=initializers.Assign(start))
        b = pg.create_parameter((2, 2), name="b", initializer=initializers.Assign(start * 10))
        program.update(b, b * 2.0)
        program.update(a, b.T)
    run = pg.Executor().run
    run(program)
    found = run(program, fetch_list=[a, b])
    np.testing.assert_array_equal(found[0], start.T * 20)
    np.testing.assert_array_equal(found[1], start * 40)


def test_what_is_stored_is_nobody_elses():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        w = pg.create_parameter((3,), name="w")
        program.update(w, x)
    executor = pg.Executor()
    feed = X.copy()
    fetched = executor.run(program, {"x": feed}, [w, x])
    for array in (feed, *fetched):
        array[...] = -1.0
    program.state_dict()["w"][...] = -2.0
    program.scope.get("w")[...] = -3.0
    np.testing.assert_array_equal(program.state_dict()["w"], X)
    given = {"w": X.copy()}
    program.set_state_dict(given)
    given["w"][...] = -4.0
    np.testing.assert_array_equal(program.state_dict()["w"], X)


def test_a_later_update_takes_the_place_of_an_earlier_one():
    program, x, w = counting()
    with program:
        assert program.next_value(x).value is x.value
        program.update(w, program.next_value(w) + 1.0)
    np.testing.assert_array_equal(pg.Executor().run(program, {"x": X}, [w])[0], X + 1)


def test_wrong_updates_are_refused():
    program, x, w = counting()
    _, x_of_another, w_of_another = counting()
    with program:
        with pytest.raises(pg.BuildError, match="not a parameter of this program"):
            program.update(x, w)
        with pytest.raises(pg.BuildError, match="belongs to another program"):
            program.update(w_of_another, w)
        with pytest.raises(pg.BuildError, match="belongs to another program"):
            program.update(w, x_of_another)
        with pytest.raises(pg.ShapeError, match=r"'w' is f64\[3\] and cannot become f64\[\]"):
            program.update(w, pg.sum(x))
        with pytest.raises(pg.ShapeError, match="cannot become f32"):
            program.update(w, x.astype("float32"))
    assert pg.Executor().run(program, {"x": X}, [w])[0].tolist() == X.tolist()


def test_scopes_do_not_see_each_other():
    program, _, w = counting()
    mine, yours = pg.Scope(), pg.Scope()
    run_in_mine, run_in_yours = pg.Executor(mine).run, pg.Executor(yours).run
    for _ in range(3):
        run_in_mine(program, {"x": X})
    run_in_yours(program, {"x": X}, [w])
    np.testing.assert_array_equal(mine.get("w"), 3 * X)
    np.testing.assert_array_equal(yours.get("w"), X)
    assert not program.state_dict()["w"].any()
    assert "w" not in program.scope
    np.testing.assert_array_equal(program.state_dict(mine)["w"], 3 * X)
    program.set_state_dict({"w": 9 * X}, yours)
    np.testing.assert_array_equal(run_in_yours(program, {"x": X}, [w])[0], 10 * X)
    program.initialize(yours)
    assert not yours.get("w").any()
    assert (list(yours), len(yours)) == (["w"], 1)
    # Executors without a scope of their own share the program's.
    for _ in range(2):
        (found,) = pg.Executor().run(program, {"x": X}, [w])
    np.testing.assert_array_equal(found, 2 * X)
    with pytest.raises(pg.FeedError, match="holds no 'v'"):
        yours.get("v")
    with pytest.raises(pg.ArgumentError, match="scope is a Scope or None, not dict"):
        pg.Executor({})


def test_a_scope_with_something_else_by_that_name_is_refused():
    program, _, w = counting()
    scope = pg.Scope()
    scope.set("w", np.zeros(4))
    with pytest.raises(pg.FeedError, match=r"holds float64 of shape \(4,\) for 'w'.*f64\[3\]"):
        pg.Executor(scope).run(program, {"x": X}, [w])


def test_state_is_set_whole_or_not_at_all():
    with pg.Program() as program:
        pg.create_parameter((3,), "float32", name="a", is_bias=True)
        pg.create_parameter((2, 2), name="b", is_bias=True)
    program.set_state_dict({"a": [1, 2, 3]})
    before = program.state_dict()
    assert before["a"].dtype == np.float32
    good = np.ones(3)
    for wrong, words in [
        ({"a": good, "c": 1.0}, "no states named 'c'"),
        ({"a": good, "b": np.ones(4)}, r"'b' is f64\[2,2\]"),
        ({"a": good, "b": np.ones((2, 2), complex)}, "complex128"),
        ({"a": good, "b": [["x", "y"]] * 2}, r"'b' is f64\[2,2\]"),
    ]:
        with pytest.raises(pg.FeedError, match=words):
            program.set_state_dict(wrong)
        after = program.state_dict()
        assert all((after[name] == before[name]).all() for name in before)


def test_a_failing_run_leaves_the_state_as_it_was():
    with pg.Program() as program:
        x, i = pg.data("x", (3,)), pg.data("i", (), "int64")
        v = pg.create_parameter((3,), name="v", is_bias=True)
        program.update(v, v + 1.0)
        w = pg.create_parameter((3,), name="w", is_bias=True)
        program.update(w, w + pg.take(x, i))
    run = pg.Executor().run
    run(program, {"x": X, "i": 1})
    with pytest.raises(pg.RunError):
        run(program, {"x": X, "i": 7})
    np.testing.assert_array_equal(program.state_dict()["w"], np.full(3, 2.0))
    np.testing.assert_array_equal(program.state_dict()["v"], np.ones(3))


def test_updates_run_and_want_their_feeds_whatever_is_fetched():
    program, _, _ = counting()
    with program:
        y = pg.data("y", (2,)) * 2.0
    run = pg.Executor().run
    assert run(program, {"x": X, "y": [1, 2]}, [y])[0].tolist() == [2, 4]
    np.testing.assert_array_equal(program.state_dict()["w"], X)
    with pytest.raises(pg.FeedError, match="missing 'x'"):
        run(program, {"y": [1, 2]}, [y])


def test_initialize_gives_first_values_again():
    program, _, w = counting()
    pg.Executor().run(program, {"x": X}, [w])
    program.initialize()
    assert not program.state_dict()["w"].any()


def test_a_clone_shares_the_scope_and_nothing_else():
    program, _x, w = counting()
    with program:
        y = w * 2.0
        y.name = "y"
    clone = program.clone()
    assert str(clone) == str(program)
    with clone:
        clone.variable("y").T + 1.0
        pg.create_parameter((2,), name="v")
    assert program.variable("v") is None
    run = pg.Executor().run
    np.testing.assert_array_equal(run(clone, {"x": X}, ["w"])[0], X)
    np.testing.assert_array_equal(run(program, {"x": X}, ["y", w])[1], 2 * X)
    with pytest.raises(pg.FeedError, match="another program"):
        run(clone, {"x": X}, [y])
    with pytest.raises(pg.FeedError) as caught:
        run(clone)
    assert 'pg.data("x", (3,))' in str(caught.value)


def test_a_clone_for_test_updates_nothing():
    program, _, w = counting()
    test = program.clone(for_test=True)
    run = pg.Executor().run
    run(program, {"x": X})
    for _ in range(2):
        np.testing.assert_array_equal(run(test, fetch_list=["w"])[0], X)
    assert not test.updates
    assert len(program.updates) == 1
    assert w.value in program.states


def test_a_clone_for_test_has_the_names_of_what_is_equal_in_evaluation_only(tmp_path):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pg.dropout(x, 1, 0.5, training=True) + pg.dropout(x, 1, 0.5, training=False)
        layers = [y := pg.tanh(y) for _ in range(3)]
    clone = program.clone(for_test=True)
    again = clone.clone()
    pg.save(clone, tmp_path / "clone.pgz")
    wanted = X + X
    for layer in layers:
        wanted = np.tanh(wanted)
        for other in (clone, again, pg.load(tmp_path / "clone.pgz")):
            (found,) = pg.Executor().run(other, {"x": X}, [layer.name])
            np.testing.assert_array_equal(found, wanted)


def test_a_clone_keeps_what_was_marked_as_constant():
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = x * x
        y.stop_gradient = True
        y.name = "y"
    clone = program.clone()
    assert clone.variable("y").stop_gradient
    assert not clone.variable("x").stop_gradient


def masks(seed, runs=2, scope=None):
    with pg.Program() as program:
        ones = pg.ones((50,))
        outputs = [pg.dropout(ones, program.next_key(), 0.5) for _ in range(2)]
        program.random_seed = seed
    run = pg.Executor(scope).run
    return [array.astype(bool) for _ in range(runs) for array in run(program, {}, outputs)]


def test_keys_differ_between_calls_and_runs_and_follow_the_seed():
    found = masks(3)
    assert len({m.tobytes() for m in found}) == 4
    for again, mask in zip(masks(3), found, strict=True):
        np.testing.assert_array_equal(again, mask)
    assert not {m.tobytes() for m in masks(4)} & {m.tobytes() for m in found}


def test_many_keys_fit_into_one_program():
    with pg.Program() as program:
        program.random_seed = 2**80
        keys = pg.stack([program.next_key() for _ in range(500)])
    run = pg.Executor().run
    first, second = run(program, {}, [keys])[0], run(program, {}, [keys])[0]
    assert len({*first, *second}) == 1000


@pytest.mark.parametrize("given", [[1, 2, 3], np.arange(3), np.ones(3, "f4"), np.arange(3.0)])
def test_initializers_of_ones_own_give_the_dtype_that_is_declared(given):
    with pg.Program() as program:
        w = pg.create_parameter((3,), name="w", initializer=lambda shape, dtype, rng: given)
        program.update(w, w + 0.5)
    assert program.state_dict()["w"].dtype == np.float64
    executor = pg.Executor()
    for _ in range(2):
        executor.run(program)
    np.testing.assert_array_equal(program.scope.get("w"), np.asarray(given) + 1.0)


@pytest.mark.parametrize("given", [np.ones(5), np.ones(1), 1.0, np.ones(3) * 1j])
def test_initializers_that_do_not_fit_are_refused(given):
    with pg.Program() as program:
        w = pg.create_parameter((3,), name="w", initializer=lambda shape, dtype, rng: given)
    for use in (program.state_dict, lambda: pg.Executor().run(program, {}, [w])):
        with pytest.raises(pg.ArgumentError, match=r"'w' does not fit f64\[3\]") as caught:
            use()
        assert "test_state.py" in str(caught.value)


def test_parameters_are_floats_with_callable_initializers():
    with pg.Program():
        for create in (pg.create_parameter, pg.nn.Layer().create_parameter):
            for dtype in ("int64", "bool"):
                with pytest.raises(pg.DTypeError, match="float dtype"):
                    create((2,), dtype)
            for wrong in (3, 0.0, np.ones(2)):
                with pytest.raises(pg.ArgumentError, match="an initializer is a function"):
                    create((2,), initializer=wrong)


def test_seeds_may_be_integers_of_numpy():
    program, other = pg.Program(), pg.Program()
    program.random_seed, other.random_seed = np.int64(3), 3
    assert program.random_seed == other.random_seed
    assert type(program.random_seed) is int


def test_wrong_seeds_and_places_are_refused():
    with pg.Program() as program:
        for seed in (1.5, True, "1", None):
            with pytest.raises(pg.ArgumentError, match="a seed is an integer"):
                program.random_seed = seed
        pg.create_parameter((2,), name="w")
        with pytest.raises(pg.BuildError, match="named 'w' already"):
            pg.create_parameter((2,), name="w")
        with pytest.raises(pg.BuildError, match="named 'w' already"):
            pg.data("w", (2,))
    with pytest.raises(pg.BuildError, match="none is being built here"):
        pg.trace(lambda x: x + pg.create_parameter((2,)), pg.spec((2,)))
    run = pg.Executor().run
    with pytest.raises(pg.FeedError, match="unexpected 'w'"):
        run(program, {"w": [1, 2]}, ["w"])


def test_free_names_avoid_names_and_what_stands_before_their_dots():
    with pg.Program() as program:
        pg.data("adam.step", ())
        pg.data("adam_1", ())
    assert program.free_name("adam") == "adam_2"
    assert program.free_name("step") == "step"


# What depends on states only is computed once, and again when these change.


def scaled():
    """A program that multiplies `x` by a matrix that takes work to make from the state `w`."""
    with pg.Program("scaled") as program:
        x = pg.data("x", (4, 3))
        w = pg.create_parameter((3, 3), name="w", initializer=initializers.Constant(0.5))
        y = x @ pg.tanh(pg.exp(w) @ w)
    return program, y


class Counting:
    """Counts the calls of what it stands for."""

    def __init__(self, kernel):
        self.kernel, self.calls = kernel, 0

    def __call__(self, *arrays):
        self.calls += 1
        return self.kernel(*arrays)


def counted(executor, program, y):
    """The counter of the kernel that computes what depends on states only."""
    early = executor._plan(program, [y]).early
    early.kernel = Counting(early.kernel)
    return early.kernel


def expected(x, w):
    return x @ np.tanh(np.exp(w) @ w)


FEED = np.arange(12.0).reshape(4, 3)


def test_what_depends_on_states_only_is_computed_once():
    program, y = scaled()
    executor = pg.Executor()
    counter = counted(executor, program, y)
    for i in range(5):
        (found,) = executor.run(program, {"x": FEED + i}, [y])
        np.testing.assert_allclose(found, expected(FEED + i, np.full((3, 3), 0.5)), rtol=1e-14)
    assert counter.calls == 1
    whole = executor.kernel(program, [y])
    assert whole is executor.kernel(program, [y])
    np.testing.assert_allclose(whole(FEED + 4, np.full((3, 3), 0.5))[0], found, rtol=1e-14)
    assert "tanh" in whole.source


@pytest.mark.parametrize("change", ["set", "dict", "initialize", "train", "startup"])
def test_it_is_computed_again_when_a_state_has_changed(change):
    startup = pg.Program()
    with pg.program_guard(pg.Program(), startup):
        program = pg.Program("twice")
        with program:
            x = pg.data("x", (4, 3))
            w = pg.create_parameter((3, 3), name="w", initializer=initializers.Constant(0.5))
            y = x @ pg.tanh(pg.exp(w) @ w)
        training = program.clone()
        with training:
            training.update(training.variable("w"), training.variable("w") * 2.0)
    executor = pg.Executor()
    changes = {
        "set": lambda: program.scope.set("w", np.full((3, 3), 0.25)),
        "dict": lambda: program.set_state_dict({"w": np.full((3, 3), 0.25)}),
        "initialize": program.initialize,
        "train": lambda: executor.run(training, {}, []),
        "startup": lambda: executor.run(startup),
    }
    executor.run(program, {"x": FEED}, [y])
    program.set_state_dict({"w": np.full((3, 3), -1.0)})
    executor.run(program, {"x": FEED}, [y])
    counter = counted(executor, program, y)
    changes[change]()
    for _ in range(2):
        (found,) = executor.run(program, {"x": FEED}, [y])
        np.testing.assert_allclose(found, expected(FEED, program.scope.get("w")), rtol=1e-14)
    assert counter.calls == 1
    assert program.scope.get("w")[0, 0] != -1.0


def test_two_scopes_are_not_mistaken_for_one_another():
    program, y = scaled()
    scopes = [pg.Scope(), pg.Scope()]
    for number, scope in enumerate(scopes):
        scope.set("w", np.full((3, 3), 0.1 * (number + 1)))
    executors = [pg.Executor(scope) for scope in scopes]
    for _ in range(3):
        for number, executor in enumerate(executors):
            (found,) = executor.run(program, {"x": FEED}, [y])
            w = np.full((3, 3), 0.1 * (number + 1))
            np.testing.assert_allclose(found, expected(FEED, w), rtol=1e-14)


def test_versions_of_a_scope_that_are_read_at_the_same_time_are_told_apart():
    program, y = scaled()
    early = pg.Executor()._plan(program, [y]).early
    readings = []
    for number in (0.25, 0.75):
        program.scope.set("w", np.full((3, 3), number))
        readings.append(program.scope.read())
    for reading in (*readings, *readings):
        w = reading.version.arrays["w"]
        (found,) = early.results(reading.version)
        np.testing.assert_allclose(found, np.tanh(np.exp(w) @ w), rtol=1e-14)
    assert readings[0].version.arrays["w"][0, 0] == 0.25


def test_results_that_depend_on_states_only_are_the_callers_own():
    with pg.Program() as program:
        w = pg.create_parameter((3,), name="w", initializer=initializers.Constant(0.5))
        y = pg.exp(w)
    executor = pg.Executor()
    first = executor.run(program, {}, [y])[0]
    first[...] = 0.0
    assert np.array_equal(executor.run(program, {}, [y])[0], np.exp(np.full(3, 0.5)))


def test_a_program_that_updates_its_states_runs_as_one_kernel():
    program, y = scaled()
    program.update(program.variable("w"), program.variable("w") * 2.0)
    assert pg.Executor()._plan(program, [y]).early is None


@pytest.mark.parametrize("update", [False, True])
def test_runs_after_the_first_check_no_signatures(monkeypatch, update):
    """That would be a good part of the time of a small step, for calls that are all our own."""
    program, _x, w = counting()
    executor, checked = pg.Executor(), []
    executor.run(program, {"x": X}, [w * 2.0], update=update)
    fetched = [w * 2.0]
    executor.run(program, {"x": X}, fetched, update=update)
    monkeypatch.setattr(signature, "_require", lambda function, *rest: checked.append(function))
    executor.run(program, {"x": X}, fetched, update=update)
    assert checked == []


def test_the_arguments_of_a_run_are_no_way_into_the_scope():
    program, y = scaled()
    executor = pg.Executor()
    before = executor.run(program, {"x": FEED}, [y])[0]
    for array in executor.arguments(program, {"x": FEED.copy()}, [y]):
        array[...] = 7.0
    np.testing.assert_array_equal(executor.run(program, {"x": FEED}, [y])[0], before)
