"""Worker threads: the blocks of a loop go to a few threads, of which the caller is one.

Which thread computes a block changes nothing in it, and totals are added up in the order of the
blocks, so that results do not depend on the number of threads, nor on which was faster.
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

from primgraph.base.locks import make_lock
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.frontend.signature import checked_late

# The things that one thread has for each block of a loop, those for all loops of a kernel, and a
# loop that goes through them.
Blocks: TypeAlias = Sequence[Any]
Space: TypeAlias = Sequence[Blocks]
Loop: TypeAlias = Callable[[Any, Callable[[], None], Any], None]

_VARIABLE = "PRIMGRAPH_THREADS"


@checked_late
def set_num_threads(count: int) -> None:
    """Let kernels that run from now on use up to `count` threads each, the caller's included.

    At the start it is what the environment variable PRIMGRAPH_THREADS says, or else the number
    of processors that the process may use. Only large kernels use more than one, and results do
    not depend on it, in no bit. Raises `ArgumentError` for anything but a positive integer.

    >>> pg.set_num_threads(2)
    """
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"the number of threads is a positive integer, not {count!r}")
    _chosen[:] = [int(count)]
    for tell in _followers:
        tell(int(count))


def get_num_threads() -> int:
    """How many threads a kernel uses at the most.

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
    """Do `loop(blocks, turn, outside)`, each block in one of up to `most` threads.

    Other threads than the caller's take the things of their blocks, those of loop `number`, from
    one of the `spares`, or make a `space()`. What a block adds to totals it adds after `turn()`,
    which waits for the blocks before it. An error is that of the first block that has one, as it
    is in one thread.
    """
    count = min(most, len(blocks), get_num_threads())
    if count < 2 or getattr(_here, "busy", False):
        loop(blocks, _at_once, outside)
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


# Whether this thread is at work for some loop: what finalisers and signal handlers run meanwhile
# stays in it.
_here = threading.local()


@contextmanager
def alone() -> Iterator[None]:
    """In this context the thread that calls a kernel does all blocks itself; bits stay the same."""
    before = getattr(_here, "busy", False)
    _here.busy = True
    try:
        yield
    finally:
        _here.busy = before


def _at_once() -> None:
    """The turn of a block that comes after all others before it."""


class _Abandoned(Exception):
    """An earlier block has failed, so that this one is not needed."""


@final
class _Job:
    """A loop that is being worked on. Blocks are taken from the first to the last."""

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
        # The first block that nobody has taken, and the first that is not finished.
        self.next = self.finished = 0
        # The first block that is not to be done: none, or the first one that has failed.
        self.end = count
        self.error: BaseException | None = None
        self.helpers = 0
        self.closed = False

    def work(self, blocks: Blocks) -> None:
        """Do blocks, in this thread, until there are none left."""
        mine = _Hand(self, blocks)
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
        """Work in a thread that is not the caller's, unless all is done by now."""
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
        """Wait until no other thread works any more; arrays are the caller's again."""
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
                # Or the error would hold this frame, which holds the error.
                del error


@final
class _Hand:
    """The blocks that one thread takes, one after the other."""

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
class _Crew:
    """Threads that wait for jobs. They are made when they are first needed, and stay."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.lock = make_lock()
        self.dismissed = False

    def call(self, job: _Job, count: int) -> None:
        """Offer a job to `count` threads; those that are busy may come too late."""
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
                # Daemons, so that the interpreter does not wait for them before it can tell them.
                thread = threading.Thread(target=_serve, args=(self.jobs,), name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    # The system has no more threads, or the interpreter is about to end.
                    return
                self.threads.append(thread)

    def dismiss(self) -> None:
        """Let all threads end, and wait for it: none may run when the interpreter is gone."""
        with self.lock:
            self.dismissed = True
            threads, self.threads = self.threads, []
            for _ in threads:
                self.jobs.put(None)
            for thread in threads:
                thread.join()


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """The life of a thread of the crew."""
    np.seterr(all="ignore")
    _here.busy = True
    while (job := jobs.get()) is not None:
        # Where there is no room for another space, the others do this thread's share.
        with suppress(MemoryError):
            job.help()
        del job


_crew = _Crew()


def _after_fork() -> None:
    """In a child process there are no threads but the one that forked."""
    global _crew
    atexit.unregister(_crew.dismiss)
    _crew = _Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
