"""Worker threads: the blocks of a loop are shared by a few threads, including the caller's.

Results do not depend on the number of threads, nor on their speed: each block is computed in the
same way in any thread, and totals are added in the order of the blocks.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.locks import after_fork, make_lock
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.frontend.signature import checked_late

# The objects that one thread uses for each block of a loop, those for all loops of a kernel, and a
# loop over blocks.
Blocks: TypeAlias = Sequence[Any]
Space: TypeAlias = Sequence[Blocks]
Loop: TypeAlias = Callable[[Any, Callable[[], None], Any], None]

_VARIABLE = "PRIMGRAPH_THREADS"


@checked_late
def set_num_threads(count: int) -> None:
    """Let kernels that run from now on use up to `count` threads each, the caller's included.

    The default is the environment variable PRIMGRAPH_THREADS, or else the number of processors that
    the process may use. Only large kernels use more than one thread. The number changes no bit of
    the results. Raises `ArgumentError` for anything but a positive integer.

    >>> pg.set_num_threads(2)
    """
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"the number of threads is a positive integer, not {count!r}")
    _chosen[:] = [int(count)]
    for tell in _followers:
        tell(int(count))


def get_num_threads() -> int:
    """Return the maximal number of threads of a kernel.

    Raises `OptionError` if PRIMGRAPH_THREADS is not a positive integer.

    >>> pg.get_num_threads() >= 1
    True
    """
    if not _chosen:
        _chosen.append(_number_at_the_start())
    return _chosen[0]


def _number_at_the_start() -> int:
    text = os.environ.get(_VARIABLE, "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise OptionError(
                f"the environment variable {_VARIABLE} is {text!r}",
                hint="it is the number of threads that a kernel may use: 1, 2, ...",
            )
        return int(text)
    return processors()


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_chosen: list[int] = []
_followers: list[Callable[[int], None]] = []


def follow(tell: Callable[[int], None]) -> None:
    """Call `tell` with the number of threads, now and whenever it changes."""
    tell(get_num_threads())
    _followers.append(tell)


def share(
    loop: Loop,
    blocks: Blocks,
    outside: Any,
    most: int,
    number: int,
    space: Callable[[], Space],
    spares: list[Space],
) -> None:
    """Run `loop(blocks, turn, outside)`, each block in one of up to `most` threads.

    Threads other than the caller's take the objects of loop `number` from one of the `spares`, or
    from a new `space()`. A block adds to totals after `turn()`, which waits for the blocks before
    it. The error raised is that of the first failing block, as in a single thread.
    """
    count = min(most, len(blocks), get_num_threads())
    if count < 2 or getattr(_here, "busy", False):
        loop(blocks, _do_nothing, outside)
        return
    job = _Job(loop, outside, number, space, spares, len(blocks))
    _here.busy = True
    try:
        _crew.call(job, count - 1)
        job.work(blocks)
    finally:
        _here.busy = False
        job.close()
    job.answer()


# Whether this thread is in a loop: kernels called by finalisers and signal handlers meanwhile do
# not start threads.
_here = threading.local()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Run all blocks in the calling thread within this context; bits stay the same."""
    before = getattr(_here, "busy", False)
    _here.busy = True
    try:
        yield
    finally:
        _here.busy = before


def _do_nothing() -> None:
    """Do nothing: all earlier blocks are done."""


class _Abandoned(Exception):
    """Raised in a block that is not needed, as an earlier one has failed."""


@final
class _Job:
    """A loop that is being run. Blocks are taken in order."""

    def __init__(
        self,
        loop: Loop,
        outside: Any,
        number: int,
        space: Callable[[], Space],
        spares: list[Space],
        count: int,
    ) -> None:
        self.loop, self.outside, self.number = loop, outside, number
        self.space, self.spares = space, spares
        self.changed = threading.Condition(make_lock())
        # The first block that is not taken, and the first that is not finished.
        self.next = self.finished = 0
        # The end of the blocks to do: their number, or the first one that has failed.
        self.end = count
        self.error: BaseException | None = None
        self.helpers = 0
        self.closed = False

    def work(self, blocks: Blocks) -> None:
        """Run blocks in this thread until none is left."""
        mine = _BlockQueue(self, blocks)
        try:
            self.loop(mine, mine.turn, self.outside)
        except BaseException as error:
            with self.changed:
                if not isinstance(error, _Abandoned) and mine.block < self.end:
                    self.end, self.error = mine.block, error
                self.changed.notify_all()
            if not isinstance(error, Exception):
                raise

    def help(self) -> None:
        """Run blocks in a worker thread, unless all are taken."""
        with self.changed:
            if self.closed or self.next >= self.end:
                return
            self.helpers += 1
        try:
            try:
                space = self.spares.pop()
            except IndexError:
                space = self.space()
            self.work(space[self.number])
            self.spares.append(space)
        finally:
            with self.changed:
                self.helpers -= 1
                self.changed.notify_all()

    def close(self) -> None:
        """Wait until no other thread works; the arrays belong to the caller again."""
        with self.changed:
            self.closed = True
            while self.helpers:
                self.changed.wait()
            self.outside = None

    def answer(self) -> None:
        """Raise the error of the first block that has failed."""
        if self.error is not None:
            error, self.error = self.error, None
            try:
                raise error
            finally:
                # Otherwise the error would hold this frame, which holds the error.
                del error


@final
class _BlockQueue:
    """The blocks that one thread takes, in order."""

    __slots__ = ("block", "blocks", "job")

    def __init__(self, job: _Job, blocks: Blocks) -> None:
        self.job, self.blocks = job, blocks
        self.block = -1

    def __iter__(self) -> Iterator[Any]:
        job = self.job
        while True:
            with job.changed:
                if self.block >= 0:
                    job.finished = self.block + 1
                    job.changed.notify_all()
                if job.next >= job.end:
                    return
                self.block = job.next
                job.next += 1
            yield self.blocks[self.block]

    def turn(self) -> None:
        """Wait until all blocks before this one are finished."""
        job = self.job
        with job.changed:
            while job.finished < self.block:
                if job.end < self.block:
                    raise _Abandoned
                job.changed.wait()


@final
class _ThreadPool:
    """A pool of threads that wait for jobs. They are created on demand, and stay."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.lock = make_lock()
        self.dismissed = False

    def call(self, job: _Job, count: int) -> None:
        """Offer a job to `count` threads; busy ones may come too late."""
        if len(self.threads) < count:
            self._grow(count)
        for _ in self.threads[:count]:
            self.jobs.put(job)

    def _grow(self, count: int) -> None:
        with self.lock:
            if not self.threads:
                atexit.register(self.dismiss)
            while len(self.threads) < count and not self.dismissed:
                name = f"primgraph-{len(self.threads) + 1}"
                # Daemons, so that the interpreter does not wait for them before it can dismiss
                # them.
                thread = threading.Thread(target=_serve, args=(self.jobs,), name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    # The system has no more threads, or the interpreter is shutting down.
                    return
                self.threads.append(thread)

    def dismiss(self) -> None:
        """Stop all threads, and wait for them: none may run after the interpreter ends."""
        with self.lock:
            self.dismissed = True
            threads, self.threads = self.threads, []
            for _ in threads:
                self.jobs.put(None)
            for thread in threads:
                thread.join()


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """Serve jobs until dismissed."""
    np.seterr(all="ignore")
    _here.busy = True
    while (job := jobs.get()) is not None:
        # Without memory for another space, other threads do this thread's share.
        with suppress(MemoryError):
            job.help()
        del job


_crew = _ThreadPool()


@after_fork
def _reset_after_fork() -> None:
    """Reset the pool in a child process, which has no threads but the one that forked."""
    global _crew
    atexit.unregister(_crew.dismiss)
    _crew = _ThreadPool()
