"""Runs that update states: all at once or not at all, whatever interrupts them and whoever looks.

And what such runs compute but once.
"""

import faulthandler
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
from interrupts import Interrupter

import primgraph as pg
from primgraph import initializers, nn, optimizer

PLACES = 500


def network():
    """A training step of a small network by Adam, with dropout, and its feed."""
    with pg.Program("network") as program:
        x, labels = pg.data("x", (8, 5)), pg.data("labels", (8,), "int64")
        model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Dropout(0.3), nn.Linear(7, 3))
        loss = pg.cross_entropy(model(x), labels)
        optimizer.Adam(0.05).minimize(loss)
    rng = np.random.default_rng(0)
    return program, loss, {"x": rng.standard_normal((8, 5)), "labels": rng.integers(0, 3, 8)}


def frozen(states):
    return {name: array.tobytes() for name, array in states.items()}


def test_a_step_that_is_interrupted_anywhere_is_made_or_not(tmp_path):
    program, loss, feed = network()
    executor = pg.Executor()
    for _ in range(3):
        executor.run(program, feed, [loss])
    start = program.state_dict()
    executor.run(program, feed, [loss])
    before, after = frozen(start), frozen(program.state_dict())
    # With arrays to write to, and without; there they are all in place, and here new ones.
    steps = {
        "kept": lambda: executor.run(program, feed, [loss]),
        "given": lambda: executor.run(program, feed, [loss], out=[np.empty(())]),
    }
    seen = {"before": 0, "after": 0}
    for step in steps.values():
        program.set_state_dict(start)
        counting = Interrupter(0)
        counting.run(step)
        for place in np.linspace(1, counting.count, PLACES // len(steps)).astype(int):
            program.set_state_dict(start)
            Interrupter(int(place)).run(step)
            found = frozen(program.state_dict())
            assert found in (before, after), f"torn at instruction {place} of {counting.count}"
            seen["after" if found == after else "before"] += 1
            if sum(seen.values()) % 10 == 0:
                pg.save(program, tmp_path / "state.pgz")
                assert frozen(pg.load(tmp_path / "state.pgz").state_dict()) == found
    assert seen["before"] > PLACES / 2
    assert seen["after"] > 0
    program.set_state_dict(start)
    others = threading.Thread(target=executor.run, args=(program, feed, [loss]), daemon=True)
    others.start()
    others.join(60)
    assert frozen(program.state_dict()) == after


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_signals_leave_whole_states():
    """As Ctrl-C does, at times that nobody has chosen."""
    program, loss, feed = network()
    executor = pg.Executor()
    possible = []
    for _ in range(60):
        possible.append(frozen(program.state_dict()))
        executor.run(program, feed, [loss])
    program.initialize()

    def interrupt(number, frame):
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, interrupt)
    rng = np.random.default_rng(0)
    try:
        interrupted = 0
        for _ in range(150):
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 2e-3)))
                try:
                    for _ in range(40):
                        executor.run(program, feed, [loss])
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            assert frozen(program.state_dict()) in possible
            program.initialize()
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert interrupted > 20


def sgd(shape=()):
    """A program whose `w` and `v` become less by 1 in each run."""
    with pg.Program() as program:
        w = pg.create_parameter(shape, name="w", is_bias=True)
        v = pg.create_parameter(shape, name="v", is_bias=True)
        loss = pg.sum(w) + pg.sum(v)
        optimizer.SGD(1.0).minimize(loss)
    return program, loss


def in_threads(*functions):
    failures = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@pytest.mark.parametrize("shared", [True, False])
def test_steps_of_several_threads_follow_one_another(shared):
    program, loss = sgd((500,))
    executors = [pg.Executor(program.scope if shared else None) for _ in range(4)]

    def steps(executor):
        for _ in range(50):
            executor.run(program, {}, [loss])

    in_threads(*(lambda e=e: steps(e) for e in executors))
    found = program.state_dict()
    assert found["sgd.step"] == 200
    assert np.array_equal(found["w"], np.full(500, -200.0))


def test_readers_see_what_was_there_at_one_moment(tmp_path):
    program, loss = sgd((2000,))
    reader = program.clone(for_test=True)
    w, v = reader.variable("w"), reader.variable("v")
    with reader:
        apart = pg.max(pg.abs(w - v))
    program.initialize()
    done = threading.Event()

    def train():
        executor = pg.Executor()
        for _ in range(400):
            executor.run(program, {}, [loss])
        done.set()

    def whole(values):
        arrays = [values["w"], values["v"], np.full(2000, -float(values["sgd.step"]))]
        assert all(np.array_equal(a, arrays[0]) for a in arrays)

    def look():
        executor = pg.Executor()
        while not done.is_set():
            whole(program.state_dict())
            whole(program.scope.snapshot())
            assert len(set(program.scope.get("w"))) == 1
            found = executor.run(reader, {}, [apart, w, v])
            assert found[0] == 0
            assert np.array_equal(found[1], found[2])
            pg.save(program, tmp_path / "now.pgz")
            whole(pg.load(tmp_path / "now.pgz").state_dict())

    in_threads(train, look)
    whole(program.state_dict())
    assert program.scope.get("w")[0] == -400


def test_what_was_handed_out_stays_as_it_is():
    program, loss = sgd((100,))
    executor = pg.Executor()
    w = program.variable("w")
    kept = []
    for step in range(1, 8):
        found = [executor.run(program, {}, [w])[0], program.scope.get("w")]
        found += [program.state_dict()["w"], program.scope.snapshot()["w"]]
        found += executor.arguments(program, {}, [loss])[:1]
        kept += [(array, -step) for array in found]
    assert all((array == number).all() for array, number in kept)


def test_arrays_of_states_are_used_again_unless_somebody_reads_them():
    program, loss = sgd((100,))
    executor, scope = pg.Executor(), program.scope

    def places(runs):
        found = []
        for _ in range(runs):
            executor.run(program, {}, [loss])
            found.append(scope.newest.arrays["w"].ctypes.data)
        return found

    places(3)
    assert len(set(places(10))) == 2
    reading = scope.read()
    held = reading.version.arrays["w"]
    value = held[0]
    places(5)
    assert (held == value).all()
    del reading, held
    places(3)
    assert len(set(places(10))) == 2


def test_a_handler_of_signals_may_look_and_set():
    """It runs in the midst of a step, in its thread."""
    program, loss, feed = network()
    executor = pg.Executor()
    made = program.scope
    executor.run(program, feed, [loss])
    calls = []

    def trace(frame, event, arg):
        if frame.f_code.co_name == "fill" and not calls:
            calls.append(program.state_dict())
            made.set("adam.learning_rate", 0.0)
        return None

    before = program.state_dict()
    sys.settrace(trace)
    try:
        executor.run(program, feed, [loss])
    finally:
        sys.settrace(None)
    assert frozen(calls[0]) == frozen(before)
    after = program.state_dict()
    # The step was made anew, with the rate that was set meanwhile.
    assert after["adam.learning_rate"] == 0
    assert after["adam.step"] == 2
    weights = [p.name for p in program.parameters()]
    assert all(np.array_equal(after[n], before[n]) for n in weights)


def test_a_run_that_is_trained_from_within_is_refused():
    program, loss = sgd()
    executor = pg.Executor()
    executor.run(program, {}, [loss])
    depth = []

    def trace(frame, event, arg):
        if frame.f_code.co_name == "fill" and not depth:
            depth.append(1)
            executor.run(program, {}, [loss])
            depth.clear()
        return None

    sys.settrace(trace)
    try:
        with pytest.raises(pg.RunError, match="change in every run"):
            executor.run(program, {}, [loss])
    finally:
        sys.settrace(None)
    states = program.state_dict()
    assert states["w"] == states["v"] == -states["sgd.step"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_another_thread_trains_can_train(tmp_path):
    program, loss, feed = network()
    executor = pg.Executor()
    executor.run(program, feed, [loss])
    done = threading.Event()

    def train():
        while not done.is_set():
            executor.run(program, feed, [loss])

    thread = threading.Thread(target=train)
    thread.start()
    codes, locked, told = [], 0, tmp_path / "told"
    told.write_text("")
    try:
        while len(codes) < 20 and locked < 3:
            time.sleep(0.002)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    faulthandler.dump_traceback_later(20, exit=True, file=told.open("w"))
                    first = program.state_dict()["adam.step"]
                    pg.Executor().run(program, feed, [loss])
                    code = int(program.state_dict()["adam.step"] != first + 1)
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            # OpenBLAS has locks of its own, which a fork in the midst of a product leaves taken:
            # its calls are the one place where a child may hang, in the text of a kernel itself.
            if code and told.read_text().partition("most recent call first")[2][3:].startswith(
                '  File "<primgraph kernel'
            ):
                locked += 1
            else:
                codes.append(code)
    finally:
        done.set()
        thread.join()
    assert codes == [0] * 20


@pytest.mark.parametrize("how", ["update", "clone"])
def test_results_can_be_looked_at_without_training(how):
    program, loss, feed = network()
    loss.name = "loss"
    executor = pg.Executor()
    executor.run(program, feed, [loss])
    before = frozen(program.state_dict())
    weight = program.parameters()[0].name
    shown = program if how == "update" else program.clone(for_test=True)
    options = {"update": False} if how == "update" else {}
    first = executor.run(shown, feed, ["loss", weight], **options)
    again = executor.run(shown, feed, {"loss": "loss"}, **options)
    assert first[0] == again["loss"]
    assert np.array_equal(first[1], program.state_dict()[weight])
    assert frozen(program.state_dict()) == before
    if how == "update":
        assert len(executor.kernel(program, [loss], update=False).graph.outputs) == 1
        assert len(executor.repeated_kernel(program, [loss], update=False).graph.outputs) == 1
        with pytest.raises(pg.ArgumentError, match="update is True or False"):
            executor.run(program, feed, [loss], update="no")
    executor.run(program, feed, [loss])
    assert frozen(program.state_dict()) != before


def test_nothing_may_be_fetched_in_every_way():
    program, _ = sgd()
    executor = pg.Executor()
    for options in ({}, {"out": []}, {"borrow": True}, {"out": [], "borrow": True}):
        for update in (True, False):
            assert executor.run(program, {}, [], update=update, **options) == []
    assert program.state_dict()["w"] == -4


# What is computed but once.

SIZE = 20


def constants():
    """Constant parts, none of which is small enough to be folded."""
    order = pg.arange(SIZE * SIZE, dtype="float64")
    table = pg.reshape(order, (SIZE, SIZE))
    rates = pg.exp(pg.arange(SIZE, dtype="float64") * -0.1)
    return {
        "tril": lambda: pg.tril(pg.ones((SIZE, SIZE))),
        "encoding": lambda: pg.sin(table * rates),
        "eye": lambda: pg.eye(SIZE) * 2.0,
        "uniform": lambda: pg.uniform(3, (SIZE, SIZE)),
        "dropout": lambda: pg.where(pg.uniform(7, (SIZE, SIZE)) < 0.5, 0.0, 2.0),
    }


NAMES = ("tril", "encoding", "eye", "uniform", "dropout")


def with_constant(name, how):
    """A program that trains `w` on a loss with a constant part, and the step in NumPy."""
    with pg.Program() as program:
        x = pg.data("x", (SIZE, SIZE))
        w = pg.create_parameter((SIZE, SIZE), name="w", initializer=initializers.Normal())
        still = pg.create_parameter((SIZE, SIZE), name="still")
        still.stop_gradient = True
        part = constants()[name]()
        loss = pg.mean((w * part + x) ** 2 * pg.exp(still))
        if how == "minimize":
            optimizer.SGD(0.1).minimize(loss)
        else:
            program.update(w, w - 0.1 * pg.grad(loss, w))
    with pg.Program() as alone:
        fixed = constants()[name]()
    (array,) = pg.interpret(alone.graph([fixed]))

    def step(x, w, still):
        factor = np.exp(still) / (SIZE * SIZE)
        value = ((w * array + x) ** 2 * factor).sum()
        return value, w - 0.1 * 2 * (w * array + x) * array * factor

    return program, loss, step


X = np.linspace(-1.0, 1.0, SIZE * SIZE).reshape(SIZE, SIZE)
RUNS = {
    "run": lambda e, p, loss: e.run(p, {"x": X}, [loss])[0],
    "fit": lambda e, p, loss: pg.fit(p, loss, [{"x": X}], 1, executor=e)[0],
    "debug": lambda e, p, loss: e.run(p, {"x": X}, [loss], debug="nan")[0],
    "out": lambda e, p, loss: e.run(p, {"x": X}, [loss], out=[np.empty(())])[0],
    "borrow": lambda e, p, loss: e.run(p, {"x": X}, [loss], borrow=True)[0],
    "both": lambda e, p, loss: e.run(p, {"x": X}, [loss], out=[None], borrow=True)[0],
}


@pytest.mark.parametrize("how", ["minimize", "update"])
@pytest.mark.parametrize("name", NAMES)
def test_programs_with_constant_parts_train(name, how, tmp_path):
    program, loss, step = with_constant(name, how)
    loss.name = "loss"
    executor = pg.Executor()
    for loaded in (False, True):
        if loaded:
            pg.save(program, tmp_path / "program.pgz")
            program = pg.load(tmp_path / "program.pgz")
            loss = program.variable("loss")
        for way, run in RUNS.items():
            values = program.state_dict()
            expected, new = step(X, values["w"], values["still"])
            found = run(executor, program, loss)
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=way)
            after = program.state_dict()
            np.testing.assert_allclose(after["w"], new, rtol=1e-12, atol=1e-14, err_msg=way)
            assert np.array_equal(after["still"], values["still"])


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_programs_with_constant_parts(name):
    program, loss, step = with_constant(name, "minimize")
    executor = pg.Executor()
    values = program.state_dict()
    expected = step(X, values["w"], values["still"])
    arguments = executor.arguments(program, {"x": X}, [loss])
    names = [v.hint for v in executor.kernel(program, [loss]).graph.inputs]
    for kernel, arrays in (
        (executor.repeated_kernel(program, [loss]), arguments),
        (executor.kernel(program, [loss]), [{**values, "x": X}[n] for n in names]),
    ):
        for _ in range(2):
            found = kernel(*arrays)
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
            (w,) = [r for r in found[1:] if r.shape == X.shape]
            np.testing.assert_allclose(w, expected[1], rtol=1e-12, atol=1e-14)
    assert np.array_equal(program.state_dict()["w"], values["w"])
    profile = pg.profile(program, {"x": X}, [loss], repeats=2)
    assert profile.explained > 0
    assert np.array_equal(program.state_dict()["w"], values["w"])
    assert pg.cost(program, [loss]).kept_bytes > 0


def counting(kernel, calls):
    """Count how often what a kernel keeps is computed."""
    once = kernel._code.once
    run = once.run

    def count(*args):
        calls.append(once)
        return run(*args)

    once.run = count


def test_constant_parts_are_computed_once_and_not_in_each_step():
    program, loss, _ = with_constant("encoding", "minimize")
    reader = program.clone(for_test=True)
    other = reader.variables()[-1]
    executor = pg.Executor()
    calls = []
    counting(executor.repeated_kernel(program, [loss]), calls)
    plan = executor._plan(program, [loss])
    early = plan.early
    assert early is not None
    for _ in range(4):
        executor.run(program, {"x": X}, [loss])
        executor.run(program, {"x": X}, [loss], update=False)
        executor.run(reader, {"x": X}, [other])
    assert len(calls) == 1
    # What depends on states that stay is not computed again because others have changed.
    latest = early._latest
    executor.run(program, {"x": X}, [loss])
    assert early._latest is latest
    program.set_state_dict({"still": np.zeros((SIZE, SIZE))})
    executor.run(program, {"x": X}, [loss])
    assert early._latest is not latest


def test_compiled_functions_compute_constant_parts_once_too():
    graph = pg.trace(lambda x: x + constants()["encoding"](), pg.spec((SIZE, SIZE)))
    kernel = pg.compile(graph)
    calls = []
    counting(kernel, calls)
    (expected,) = pg.interpret(graph, X)
    for _ in range(3):
        assert np.array_equal(np.squeeze(kernel(X)), expected)
    assert len(calls) == 1
    again = pickle.loads(pickle.dumps(kernel))
    assert again.once == kernel.once
    assert np.array_equal(np.squeeze(again(X)), expected)
    assert "sin" in kernel.source
    assert "sin" not in kernel.planned_source


def test_errors_in_what_is_computed_once_name_the_line(tmp_path):
    with pg.Program() as program:
        x = pg.data("x", (SIZE,))
        places = pg.arange(SIZE) * 2
        y = x + pg.take(pg.exp(pg.arange(SIZE, dtype="float64")), places)
    for _ in range(2):
        with pytest.raises(pg.RunError, match="out of bounds") as caught:
            pg.Executor().run(program, {"x": np.ones(SIZE)}, [y])
        assert "pg.take(" in str(caught.value)
