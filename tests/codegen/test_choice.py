"""The choice between NumPy and C by measured times, with a pretended clock and compiler."""

import itertools
import logging
import os
import threading
import time

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen.tiered import choice as home
from primgraph.codegen.tiered.background import LOST, TORN
from primgraph.codegen.tiered.choice import Choice, Stage, wait_for_c
from primgraph.codegen.tiered.kernel import TieredKernel
from primgraph.codegen.tiered.times import Times
from primgraph.errors import CompileError

GRAPH = pg.trace(lambda x: x * 2.0 + 1.0, pg.spec(3))
X = np.arange(3.0)
BOTH = Times(50_000, 5_000)
UNKNOWN = Times()


class Ended:
    """A compilation in the background that has ended, or has not: its result is None."""

    def __init__(self, result):
        self.result = result

    def poll(self):
        return self.result

    def wait(self, seconds=None):
        return self.result


class Pretended:
    """NumPy and C, whose calls take the times that are said."""

    name, equations, cost = "kernel f", 2, 80_000_000

    def __init__(self, numpy=50_000, c=5_000, result="", alike=True):
        self.now, self.took = 0, {"planned": numpy, "native": c}
        self.job, self.kept, self.compiled, self.alike = Ended(result), [], 0, alike
        self.kernels = {style: pg.compile(GRAPH, target="numpy") for style in self.took}
        object.__setattr__(self.kernels["native"], "style", "native")

    def numpy(self):
        return self.kernels["planned"]

    def native(self):
        return self.kernels["native"]

    def compile(self):
        self.compiled += 1
        return self.job

    def is_ready(self):
        return self.alike

    def pays(self):
        return True

    def keep(self, times):
        self.kept.append(times)

    def clock(self):
        return self.now


@pytest.fixture(autouse=True)
def two_processors(monkeypatch):
    monkeypatch.setattr(home, "processors", lambda: 2)
    monkeypatch.setattr(home, "is_native", lambda kernel: kernel.style == "native")


def choice_of(source, times=UNKNOWN, style="planned"):
    return Choice(source, times, source.kernels[style], source.clock)


def call(choice, count=1):
    """Call the kernel of a choice; the clock goes on by what a call takes."""
    source = choice.source

    def run(x):
        source.now += source.took[choice.kernel.style]
        return choice.kernel(x)

    for _ in range(count):
        np.testing.assert_array_equal(choice.measured(run, X), [1, 3, 5])


def calls_until(choice, stage, most=100_000):
    for count in range(most):
        if choice.stage is stage:
            return count
        call(choice)
    raise AssertionError(f"still {choice.stage}")


def test_calls_are_counted_until_c_is_worth_its_start():
    source = Pretended(result=None)
    choice = choice_of(source)
    count = calls_until(choice, Stage.COMPILING)
    need = home.START + 2 * home.START_EQUATION
    assert need <= count * 50_000 <= need + 2 * 50_000
    assert source.compiled == 1
    assert source.kept == [Times(50_000, None)]
    assert choice.status == f"{Stage.COMPILING.value}; NumPy takes 50 us a call"


def test_only_the_first_calls_look_at_the_clock():
    source = Pretended(result=None)
    looks = itertools.count()
    source.clock = lambda: next(looks) and source.now
    choice = choice_of(source)
    calls_until(choice, Stage.COUNTING)
    before = next(looks)
    assert before == 2 * (home.WARM + home.SAMPLES)
    call(choice, 300)
    assert next(looks) == before + 1


def test_c_is_taken_up_between_calls_and_stays_if_it_is_faster(caplog):
    caplog.set_level(logging.INFO, "primgraph")
    source = Pretended()
    choice = choice_of(source)
    calls_until(choice, Stage.TRYING)
    assert choice.is_native
    assert calls_until(choice, Stage.SETTLED) == home.WARM + home.SAMPLES
    assert choice.is_native
    assert source.kept[-1] == BOTH
    told = "C runs, as measured: NumPy takes 50 us a call, C takes 5 us a call"
    assert choice.status == told
    assert [r.getMessage() for r in caplog.records] == [
        f"kernel f: {Stage.COMPILING.value}; NumPy takes 50 us a call",
        f"kernel f: {Stage.TRYING.value}",
        f"kernel f: {told}",
    ]


def test_slower_c_is_left_again_after_another_look_at_numpy():
    source = Pretended(c=55_000)
    choice = choice_of(source)
    calls_until(choice, Stage.TRYING)
    assert calls_until(choice, Stage.CHECKING) == home.WARM + home.SAMPLES
    assert not choice.is_native
    assert calls_until(choice, Stage.SETTLED) == home.WARM + home.SAMPLES
    assert not choice.is_native
    assert source.kept[-1] == Times(50_000, 55_000)


def test_long_calls_are_compared_by_few_of_them():
    source = Pretended(numpy=200_000_000, c=900_000_000)
    choice = choice_of(source)
    assert calls_until(choice, Stage.COMPILING) == 1
    calls_until(choice, Stage.TRYING)
    assert calls_until(choice, Stage.SETTLED) == 2 * (home.WARM + 1)
    assert not choice.is_native


def test_a_machine_that_becomes_busy_while_c_is_timed_decides_nothing():
    source = Pretended()
    choice = choice_of(source)
    calls_until(choice, Stage.TRYING)
    source.took = {"planned": 700_000, "native": 70_000}
    calls_until(choice, Stage.SETTLED)
    assert choice.is_native
    assert source.kept[-1] == Times(700_000, 70_000)


@pytest.mark.parametrize("style", ["planned", "native"])
def test_a_process_starts_with_what_was_learned(style):
    known = BOTH if style == "native" else Times(*reversed(BOTH))
    source = Pretended()
    choice = choice_of(source, known, style)
    assert choice.stage is Stage.SETTLED
    assert choice.is_native is (style == "native")
    call(choice, 1000)
    assert (source.compiled, source.kept) == (0, [])
    assert "as measured before" in choice.status


def test_c_without_times_of_numpy_stays():
    source = Pretended()
    choice = choice_of(source, Times(), "native")
    calls_until(choice, Stage.SETTLED)
    assert choice.is_native
    assert source.kept == [Times(None, 5_000)]


@pytest.mark.parametrize(("result", "alike"), [("cc failed", True), ("", False)])
def test_a_failure_leaves_numpy_and_is_logged_once(caplog, result, alike):
    source = Pretended(result=result, alike=alike)
    choice = choice_of(source)
    calls_until(choice, Stage.SETTLED)
    call(choice, 1000)
    assert not choice.is_native
    warned = [r for r in caplog.records if r.levelno == logging.WARNING]
    why = result or "the cache does not keep it"
    assert [r.getMessage() for r in warned] == [
        f"kernel f: NumPy runs, as C is not available: {why}"
    ]
    assert source.compiled == 1


@pytest.mark.parametrize("error", [OSError("no processes left"), CompileError("no pickle")])
def test_without_a_background_process_numpy_stays(error):
    source = Pretended()

    def fail():
        raise error

    source.compile = fail
    choice = choice_of(source)
    calls_until(choice, Stage.SETTLED)
    assert str(error) in choice.status


def test_compilations_that_interrupts_end_are_begun_again():
    source = Pretended(result=TORN)
    choice = choice_of(source)
    calls_until(choice, Stage.COMPILING)
    call(choice, 1000)
    assert choice.stage is Stage.COMPILING
    source.job.result = ""
    calls_until(choice, Stage.SETTLED)
    assert choice.is_native
    assert source.compiled > 2


def test_a_lost_compilation_is_begun_once_more():
    source = Pretended(result=LOST)
    choice = choice_of(source)
    calls_until(choice, Stage.SETTLED)
    assert source.compiled == 2
    assert LOST in choice.status


def test_one_processor_runs_numpy_for_as_long_as_the_compiler_would_take(monkeypatch):
    monkeypatch.setattr(home, "processors", lambda: 1)
    source = Pretended()
    assert calls_until(choice_of(source), Stage.COMPILING) * 50_000 >= source.cost


def test_an_interrupt_or_an_error_in_a_call_leaves_the_choice_as_it_was():
    source = Pretended()
    choice = choice_of(source)

    def stop(x):
        raise KeyboardInterrupt

    for stage in (Stage.SAMPLING, Stage.COUNTING, Stage.TRYING):
        calls_until(choice, stage)
        before = [*choice.samples], choice.spent
        with pytest.raises(KeyboardInterrupt):
            choice.measured(stop, X)
        assert ([*choice.samples], choice.spent) == before
    calls_until(choice, Stage.SETTLED)
    assert choice.is_native


def test_an_interrupt_while_c_is_loaded_is_made_up_for():
    source = Pretended()
    native, times = source.native, iter([True])

    def load():
        if next(times, False):
            raise KeyboardInterrupt
        return native()

    source.native = load
    choice = choice_of(source)
    calls_until(choice, Stage.COMPILING)
    with pytest.raises(KeyboardInterrupt):
        call(choice, 1000)
    calls_until(choice, Stage.SETTLED)
    assert choice.is_native


def test_an_interrupt_in_the_change_is_made_up_for(monkeypatch):
    source = Pretended()
    source.clock = itertools.count(0, 50_000).__next__
    choice = choice_of(source)
    kernel, follow, stopped = TieredKernel(choice, GRAPH.form), TieredKernel.follow_choice, []
    run = pg.codegen.kernel.direct(kernel)

    def interrupt(self):
        key = choice.stage, choice.is_timing
        if key not in stopped:
            stopped.append(key)
            raise KeyboardInterrupt
        follow(self)

    monkeypatch.setattr(TieredKernel, "follow_choice", interrupt)
    for call in itertools.islice(itertools.cycle([kernel, run]), 1000):
        try:
            assert call(X).tolist() == [1, 3, 5]
        except KeyboardInterrupt:
            continue
        assert kernel._kernel is choice.kernel
    assert choice.stage is Stage.SETTLED
    assert kernel._target is choice.kernel
    assert (Stage.SETTLED, False) in stopped
    assert len(stopped) >= 4


def test_c_that_is_lost_while_numpy_is_timed_again_leaves_numpy():
    source = Pretended(c=49_000)
    choice = choice_of(source)
    calls_until(choice, Stage.CHECKING)

    def fail():
        raise CompileError("it is gone")

    source.native = fail
    calls_until(choice, Stage.SETTLED)
    assert choice.status == "NumPy runs, as C is not available: it is gone"


def test_waiting_begins_a_compilation_and_takes_up_the_c():
    source = Pretended()
    choice = choice_of(source)
    wait_for_c(choice)
    assert (choice.stage, choice.is_native, source.compiled) == (Stage.TRYING, True, 1)
    wait_for_c(choice)
    late = Pretended(result=None)
    choice = choice_of(late)
    wait_for_c(choice, 0.01)
    assert (choice.stage, choice.is_native) == (Stage.COMPILING, False)
    poor = Pretended()
    poor.pays = lambda: False
    choice = choice_of(poor)
    wait_for_c(choice)
    assert (choice.stage, poor.compiled) == (Stage.SAMPLING, 0)


def test_first_calls_that_are_short_do_not_tell_the_time_of_numpy():
    source = Pretended(numpy=5_000_000, c=20_000)
    choice = choice_of(source)
    # The first call generates code.
    call(choice)
    source.took["planned"] = 10_000
    wait_for_c(choice)
    calls_until(choice, Stage.SETTLED)
    assert not choice.is_native
    assert source.kept[-1] == Times(10_000, 20_000)
    long = Pretended(numpy=home.ENOUGH, c=20_000)
    choice = choice_of(long)
    call(choice)
    wait_for_c(choice)
    assert calls_until(choice, Stage.SETTLED) == home.WARM + home.SAMPLES
    assert long.kept[-1] == Times(home.ENOUGH, 20_000)


def test_threads_call_while_the_kernel_changes(monkeypatch):
    monkeypatch.setattr(home, "START_EQUATION", 1_000_000)
    monkeypatch.setattr(home, "START", 0)
    source = Pretended()
    source.clock = time.perf_counter_ns
    choice = choice_of(source)
    kernel, faults = TieredKernel(choice, GRAPH.form), []
    begin = threading.Barrier(4)

    def work():
        begin.wait()
        for _ in range(1000):
            if kernel(X).tolist() != [1, 3, 5]:
                faults.append(choice.stage)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert source.compiled == 1
    assert choice.stage is Stage.SETTLED


def test_calls_from_a_signal_handler_or_a_fork_go_on():
    source = Pretended(result=None)
    choice = choice_of(source)
    calls_until(choice, Stage.COMPILING)
    choice._is_busy = True
    call(choice, 100)
    source.job.result = ""
    child = os.fork()
    if not child:
        # The thread that was busy is not here.
        calls_until(choice, Stage.SETTLED)
        os._exit(0 if choice.is_native else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert choice.stage is Stage.COMPILING


def test_fast_paths_follow_the_choice():
    source = Pretended()

    def clock():
        source.now += source.took[choice.kernel.style]
        return source.now

    source.clock = clock
    choice = choice_of(source)
    kernel = TieredKernel(choice, GRAPH.form)
    run, told = pg.codegen.kernel.direct(kernel), []
    pg.codegen.kernel.when_settled(kernel, told.append)
    while choice.stage is not Stage.SETTLED:
        assert run(X).tolist() == [1, 3, 5]
        assert run(np.arange(3)) is None
    assert [k.style for k in told] == ["native"]
    assert run(X).tolist() == [1, 3, 5]
    pg.codegen.kernel.when_settled(kernel, told.append)
    assert len(told) == 2


def test_kernels_in_other_containers_share_the_choice():
    source = Pretended()
    choice = choice_of(source)
    kernel = TieredKernel(choice, GRAPH.form)
    flat = kernel.flat
    assert flat is kernel.flat
    assert flat(X)[0].tolist() == [1, 3, 5]
    assert len(choice.samples) == 1
    assert isinstance(kernel(X), np.ndarray)
    assert len(choice.samples) == 2
