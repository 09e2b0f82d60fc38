"""Choice between NumPy and C by measured times, for one graph.

A graph begins on NumPy. Its first calls are timed. When calls have taken so long that C is worth
trying, the C is compiled in the background, and taken up between two calls. A few calls of C are
timed as well, and the faster of both stays. Both times go to the cache.

The time after which C is tried follows the rule for renting or buying: so long that the caller's
part of the work, to send the graph and to load the C, is a small fraction of it. If there is one
processor only, it is the time that the compiler takes.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any, Protocol, TypeAlias, final
from weakref import WeakSet

from primgraph.base.journal import log_choice
from primgraph.base.locks import after_fork, make_lock
from primgraph.codegen.kernel import Kernel, is_native
from primgraph.codegen.runtime.threads import processors
from primgraph.codegen.tiered.background import LOST, TORN
from primgraph.codegen.tiered.times import Times
from primgraph.errors import CompileError

# First calls that do not count, as they generate code and fill caches, and number of timed calls.
WARM, SAMPLES = 2, 6
# Nanoseconds of timed calls that are enough, however few there are.
ENOUGH = 100_000_000
# C stays without another look at NumPy if NumPy took more than so many times as long.
CLEARLY = 1.5
# Nanoseconds of running before C is compiled: the base, and those for each equation.
START, START_EQUATION = 20_000_000, 100_000
# Nanoseconds of running between looks at the background process.
LOOK = 2_000_000

# Number of latest times that are kept.
_KEPT = 24

_ENDLESS: Iterator[bool] = repeat(False)
_AT_ONCE: Iterator[bool] = repeat(True)


class Stage(enum.Enum):
    """State of the choice for a graph."""

    SAMPLING = "NumPy runs, and is timed"
    COUNTING = "NumPy runs"
    COMPILING = "NumPy runs; C is compiled in the background"
    TRYING = "C runs, and is timed"
    CHECKING = "NumPy runs, and is timed once more"
    SETTLED = ""


class Job(Protocol):
    """A compilation in the background."""

    def poll(self) -> str | None:
        """Return None until it ends, then the reason of a failure, or an empty text."""

    def wait(self, seconds: float | None = None) -> str | None:
        """Wait for the end, for at most so many seconds; return what `poll` does."""


class Source(Protocol):
    """Kernels of a choice, and the times that are kept of them."""

    @property
    def name(self) -> str:
        """Name for messages."""

    @property
    def equations(self) -> int:
        """Number of equations."""

    @property
    def cost(self) -> int:
        """Nanoseconds that compiling is expected to take."""

    def numpy(self) -> Kernel:
        """Return the kernel of NumPy."""

    def native(self) -> Kernel:
        """Return the kernel with C. Raises `CompileError` if that fails."""

    def compile(self) -> Job:
        """Begin to compile the C in the background.

        Raises `CompileError` or `OSError` if that is impossible.
        """

    def compile_into(self) -> Job:
        """Likewise for the C that writes into arrays of the caller."""

    def is_ready(self) -> bool:
        """Return whether the C need not be compiled any more."""

    def pays(self) -> bool:
        """Return whether C is expected to save time, if nothing is measured."""

    def keep(self, times: Times) -> None:
        """Keep the times for later processes."""


Clock: TypeAlias = Callable[[], int]
_alive: WeakSet[Choice] = WeakSet()


@final
class Choice:
    """The kernel that runs for a graph, and what is known of the other one.

    A call is timed if `is_timing`; if not, it ends with `next(left)`, which is true if `tick` is to
    be called. `epoch` counts the changes of the kernel: times that belong to an older one are
    dropped. `listeners` are called after each change of these.
    """

    def __init__(
        self, source: Source, times: Times, kernel: Kernel, clock: Clock = time.perf_counter_ns
    ) -> None:
        self.source, self.times, self.clock = source, times, clock
        self.kernel = kernel
        self.listeners: WeakSet[Any] = WeakSet()
        self.left = _ENDLESS
        self.epoch = self.spent = 0
        self.samples: list[int] = []
        self.reason = ""
        self._job: Job | None = None
        self._is_retried = self._is_busy = self._is_behind = self._is_cold = False
        self._lock = make_lock()
        alone = processors() < 2
        self._need = START + START_EQUATION * source.equations
        self._need = max(self._need, source.cost) if alone else self._need
        self.stage = Stage.TRYING if self.is_native else Stage.SAMPLING
        self.is_timing = True
        if times.are_known and times.is_c_faster is self.is_native:
            self._settle(f"as measured before: {times}")
        _alive.add(self)

    @property
    def status(self) -> str:
        """Return what runs, and why."""
        if self.stage is Stage.SETTLED:
            return f"{'C' if self.is_native else 'NumPy'} runs, {self.reason}"
        return f"{self.stage.value}; {self.times}" if any(self.times) else self.stage.value

    @property
    def is_native(self) -> bool:
        """Return whether C runs."""
        return self.kernel.style == "native"

    # Calls.

    def measured(self, run: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Return `run(*args, **named)`, a call of the present kernel."""
        if not self.is_timing:
            found = run(*args, **named)
            if next(self.left):
                self.tick(0, self.epoch)
            return found
        epoch, begun = self.epoch, self.clock()
        found = run(*args, **named)
        self.tick(self.clock() - begun or 1, epoch)
        return found

    def tick(self, ns: int, epoch: int) -> None:
        """Take account of a call that took `ns`, or 0 if it was not timed, and go on if it is time.

        Nothing happens if another thread is here.
        """
        if self._is_busy or not self._lock.acquire(blocking=False):
            return
        try:
            self._is_busy = True
            if self._is_behind:
                self._inform()
            elif epoch == self.epoch:
                self._advance(ns)
        finally:
            self._is_busy = False
            self._lock.release()

    # Changes.

    def _advance(self, ns: int) -> None:
        if ns:
            self.samples.append(ns)
            del self.samples[: -WARM - _KEPT]
        match self.stage:
            case Stage.SAMPLING:
                self._sample(ns)
            case Stage.COUNTING:
                self.start()
            case Stage.COMPILING:
                self._look(ns)
            case Stage.TRYING:
                self._compare()
            case Stage.CHECKING if _are_enough(self.samples[WARM:]):
                _measure_numpy(self)
                self._decide()

    def _sample(self, ns: int) -> None:
        """Time the first calls; then count those that make up the time before C is tried."""
        self.spent += ns
        if self.spent >= self._need:
            self.start()
        elif len(self.samples) >= WARM + SAMPLES:
            self.times = Times(min(self.samples[WARM:]), self.times.c)
            self._pause(Stage.COUNTING, self._need - self.spent)

    def start(self) -> None:
        """Begin to compile the C in the background."""
        _measure_numpy(self)
        try:
            self._job = self.source.compile()
        except (CompileError, OSError) as error:
            self.stay(f"nothing can be compiled in the background: {error}")
            return
        log_choice(f"{self.source.name}: {Stage.COMPILING.value}; {self.times}")
        self.source.keep(self.times)
        self._pause(Stage.COMPILING, LOOK)

    def _pause(self, stage: Stage, ns: int) -> None:
        """Run for about `ns` before the next step, without a clock if calls are short."""
        count = ns // max(self.times.numpy or LOOK, 1)
        self.left = chain(repeat(False, count), repeat(True))
        self._set(stage, is_timing=count < SAMPLES)

    def _look(self, ns: int) -> None:
        """Look whether the C is there, and take it up; if not, time the next call."""
        assert self._job is not None
        result = self._job.poll()
        if result is None and not ns:
            self._set(Stage.COMPILING, is_timing=True)
        elif result is None:
            _measure_numpy(self)
            self._pause(Stage.COMPILING, LOOK)
        elif result == TORN or (result == LOST and not self._is_retried):
            # A forked process has no part in its parent's compilation.
            self._is_retried |= result == LOST
            self.start()
        elif result:
            self.stay(result)
        else:
            self._take_up()

    def _take_up(self) -> None:
        if not self.source.is_ready():
            self.stay("the cache does not keep it")
            return
        found = _load_c(self)
        if found is None:
            return
        _measure_numpy(self)
        self._is_cold = bool(self.samples) and self.times.numpy is None
        self._switch(Stage.TRYING, found)
        log_choice(f"{self.source.name}: {Stage.TRYING.value}")

    def _compare(self) -> None:
        """Stay on C if it is clearly faster; if not, time NumPy once more, at the same load."""
        found, numpy = self.samples[WARM:], self.times.numpy
        if not _are_enough(found):
            return
        self.times = Times(numpy, min(found))
        is_clear = not self._is_cold if numpy is None else min(found) * CLEARLY < numpy
        if is_clear:
            self._decide()
        else:
            self._switch(Stage.CHECKING, self.source.numpy())

    def _decide(self) -> None:
        self.source.keep(self.times)
        is_c = self.times.numpy is None or self.times.is_c_faster
        if is_c is not self.is_native:
            kernel = _load_c(self) if is_c else self.source.numpy()
            if kernel is None:
                return
            self._switch(self.stage, kernel)
        self._settle(f"as measured: {self.times}")
        log_choice(f"{self.source.name}: {self.status}")

    def _switch(self, stage: Stage, kernel: Kernel) -> None:
        """Let calls run another kernel, and time them."""
        self._is_behind, self.samples = True, []
        self.kernel, self.epoch = kernel, self.epoch + 1
        self._set(stage, is_timing=True)

    def stay(self, why: str) -> None:
        """Stay on NumPy for good, and say why."""
        self._settle(f"as C is not available: {why}")
        log_choice(f"{self.source.name}: {self.status}", is_failure=True)

    def _settle(self, reason: str) -> None:
        self.reason, self.left, self._job = reason, _AT_ONCE, None
        self._set(Stage.SETTLED, is_timing=False)

    def _set(self, stage: Stage, *, is_timing: bool) -> None:
        self._is_behind = True
        self.stage, self.is_timing = stage, is_timing
        self._inform()

    def _inform(self) -> None:
        """Let the listeners follow; the next call does so if this one is interrupted."""
        for listener in list(self.listeners):
            listener.follow_choice()
        self._is_behind = False
        if self.stage is Stage.SETTLED:
            self.left = _ENDLESS


def wait_for_c(choice: Choice, seconds: float | None = None) -> None:
    """Wait for the C, and take it up; begin to compile it if it is expected to pay."""
    end = None if seconds is None else time.monotonic() + seconds
    begin = (Stage.SAMPLING, Stage.COUNTING)
    if choice.stage in begin and choice.source.pays():
        with choice._lock:
            if choice.stage in begin:
                choice.start()
    while choice.stage is Stage.COMPILING:
        job, left = choice._job, None if end is None else max(end - time.monotonic(), 0.0)
        if job is not None and job.wait(left) is None:
            return
        with choice._lock:
            if choice.stage is Stage.COMPILING and choice._job is job:
                choice._look(0)


def _measure_numpy(choice: Choice) -> None:
    """Set the time of NumPy from the latest calls; first ones count only if they are long."""
    found = choice.samples[WARM:] or [ns for ns in choice.samples if ns >= ENOUGH]
    if found:
        choice.times = Times(min(found), choice.times.c)


def _load_c(choice: Choice) -> Kernel | None:
    """Return the kernel with C; stay on NumPy and return None if that fails."""
    try:
        found, fault = choice.source.native(), "the C cannot be loaded"
        if is_native(found):
            return found
    except (CompileError, OSError) as error:
        fault = str(getattr(error, "message", error))
    choice.stay(fault)
    return None


def _are_enough(times: list[int]) -> bool:
    """Return whether these times, of calls after the first ones, can be compared."""
    return len(times) >= SAMPLES or sum(times) >= ENOUGH


@after_fork
def _forget_threads() -> None:
    for choice in list(_alive):
        # The thread that was at work does not exist here.
        choice._is_busy = choice._is_retried = False
