# ruff: noqa: NPY002
"""Random numbers, clocks and arrays that change: what a compiled function keeps, and warnings."""

import datetime
import random
import time
import warnings
from random import gauss
from time import perf_counter

import numpy as np
import pytest

import primgraph as pg
from primgraph.cli.main import main

pytestmark = pytest.mark.quick

GENERATOR = np.random.default_rng(0)
X = np.ones(3)


def helper(x):
    return x + np.random.uniform()


IMPURE = {
    "np.random.normal": lambda x: x + np.random.normal(size=3),
    "np.random.uniform": helper,
    "np.random.default_rng": lambda x: x + np.random.default_rng().normal(),
    "random.random": lambda x: x + random.random(),
    "random.gauss": lambda x: x * gauss(0.0, 1.0),
    "time.time": lambda x: x + time.time(),
    "time.perf_counter": lambda x: x + perf_counter(),
    "datetime.now": lambda x: x + datetime.datetime.now().timestamp(),
    "date.today": lambda x: x + datetime.date.today().year,
    "'GENERATOR', a Generator": lambda x: x + GENERATOR.normal(),
}


@pytest.mark.parametrize("what", IMPURE)
@pytest.mark.parametrize("transform", [lambda f: f, lambda f: pg.grad(lambda x: pg.sum(f(x) * x))])
def test_what_is_read_once_while_tracing_is_warned_of(what, transform):
    fast = pg.jit(transform(IMPURE[what]))
    with pytest.warns(pg.TracingWarning) as caught:
        first = fast(X)
    (warning,) = caught
    assert str(warning.message).startswith(what)
    assert "keeps what it gave" in str(warning.message)
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fast(X), first)


@pytest.mark.parametrize("what", IMPURE)
def test_what_is_read_once_by_trace_is_warned_of(what):
    with pytest.warns(pg.TracingWarning) as caught:
        kernel = pg.compile(pg.trace(IMPURE[what], X))
    (warning,) = caught
    assert str(warning.message).startswith(what)
    assert warning.filename == __file__
    np.testing.assert_array_equal(kernel(X), kernel(X))


def test_a_function_that_is_written_to_a_file_is_warned_of(tmp_path, monkeypatch):
    text = "import numpy as np\n\ndef noisy(x):\n    return x + np.random.normal()\n"
    (tmp_path / "shipped.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(pg.TracingWarning, match=r"np.random.normal is called while 'noisy'"):
        main(["emit", "shipped.py:noisy", "3", "--output", "out.py"])


def test_what_is_no_reading_is_not_warned_of():
    def fine(x):
        assert isinstance(datetime.date(2020, 1, 1), datetime.date)
        started = datetime.timedelta(seconds=1) + datetime.datetime(2020, 1, 1)
        np.random.seed(3)
        drawn = np.random.default_rng(3).normal()
        time.sleep(0)
        return x + drawn + started.year + random.Random(3).random()

    state = np.random.get_state()
    assert pg.jit(fine)(X).shape == (3,)
    np.random.set_state(state)
    # Where nothing is compiled, each call draws.
    assert pg.grad(lambda x: pg.sum(x * np.random.normal()))(X).shape == (3,)
    assert pg.jit(lambda key, x: x + pg.random.normal(key, x.shape))(7, X).shape == (3,)


def test_captured_arrays_that_change_are_seen_when_the_function_is_compiled_again():
    weights, other = np.ones(3), np.ones(2)
    scaled = pg.jit(lambda x: pg.sum(x) * pg.sum(weights) + other[0])
    assert scaled(X) == 10.0
    assert scaled(np.ones(4)) == 13.0
    weights[0] = 2.0
    with pytest.warns(pg.TracingWarning, match="the array 'weights'.* has changed") as caught:
        assert scaled(np.ones(5)) == 21.0
    assert len(caught) == 1
    with pytest.warns(pg.TracingWarning, match="clear_cache"), pg.transforms.debug():
        assert scaled(X) == 10.0
    scaled.clear_cache()
    assert scaled(X) == 13.0


class _Filter:
    def __init__(self):
        self.x = 0.0
        self.seen = {}
        self.steps = 0

    def step(self, z):
        self.x = 0.9 * self.x + 0.1 * z
        return self.x

    def note(self, z):
        self.seen["z"] = z * 2.0
        return z

    def count(self, z):
        self.steps += 1
        return z

    __call__ = step


STATE = {"x": 0.0}
LEVEL = 0.0


def _in_a_dict(z):
    STATE["x"] = STATE["x"] + z
    return STATE["x"]


def _in_a_global(z):
    global LEVEL
    LEVEL = LEVEL + z
    return LEVEL


def _in_a_closure():
    level, holder = 0.0, _Filter()

    def add(z):
        nonlocal level
        level = level + z
        holder.seen["level"] = level
        return level

    return add


KEEPING = {
    "self.x keeps a variable of the traced function 'step'": lambda: _Filter().step,
    "self.seen['z'] keeps a variable": lambda: _Filter().note,
    "self.x keeps a variable": _Filter,
    "STATE['x'] keeps a variable": lambda: _in_a_dict,
    "LEVEL keeps a variable": lambda: _in_a_global,
    "level, holder.seen['level'] keep a variable": _in_a_closure,
}


@pytest.mark.parametrize("text", KEEPING)
def test_state_that_keeps_a_variable_is_warned_of(text):
    fast = pg.jit(KEEPING[text]())
    with pytest.warns(pg.TracingWarning) as caught:
        fast(1.0)
    (warning,) = caught
    assert str(warning.message).startswith(text)
    assert "return the new one" in str(warning.message)
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(1.0)


def test_state_of_numbers_and_static_objects_are_told_apart():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        holder = _Filter()
        pg.jit(holder.count)(1.0)
        # What was there before the trace is not warned of.
        holder.seen["before"] = pg.spec(3)
        pg.trace(holder.count, pg.spec(3))
    with pytest.warns(pg.TracingWarning, match=r"self\.x keeps"):
        pg.jit(_Filter.step, static_argnums=0)(_Filter(), 1.0)
    with pytest.warns(pg.TracingWarning, match=r"self\.x keeps"):
        pg.trace(_Filter().step, pg.spec(()))


class Nameless:
    """SymPy's undefined functions are of classes like this one."""

    def __init__(self):
        self.factor = 2.0


Nameless.__module__ = None


def test_objects_of_classes_without_a_module_are_searched():
    held = Nameless()
    scaled = pg.jit(lambda x: x * held.factor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(scaled(X), 2.0 * X)
        np.testing.assert_array_equal(
            pg.compile(pg.trace(lambda x: x * held.factor, X))(X), 2.0 * X
        )
