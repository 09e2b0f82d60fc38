"""Compilation in the background: one process for all kernels of this one.

A process of its own, and not a thread, as planning and printing are Python: a thread would take the
interpreter from the caller for as long as they take. It is started, not forked, as a fork of a
program with threads may hang. It fills the disk cache, from which this process loads the C.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections import deque
from typing import Any, final

from primgraph.base.debug_mode import debugging
from primgraph.base.locks import after_fork, make_lock
from primgraph.codegen.runtime.threads import processors
from primgraph.codegen.runtime.toolchain import cache
from primgraph.codegen.runtime.toolchain.compile_c import find_compiler
from primgraph.codegen.runtime.toolchain.run_compiler import starting
from primgraph.codegen.tiered.worker import HEAD

# Reduction of the priority of the background process, as of the command `nice`.
_PRIORITY = 10
# Seconds between looks at the answers by a thread that waits.
_LOOK = 0.05
# The results of a job whose process ended before it, and of one that an interruption made end.
LOST = "the background process ended"
TORN = "an interruption ended the background process"

_PROGRAM = (
    "import sys; sys.path[:] = {}; import primgraph.codegen.tiered.worker as w; w.main({}, {})"
)


@final
class Ticket:
    """A job of the background process.

    `result` is None until it ends, then the reason of a failure, or an empty text. `seconds` are
    the processor time of the background process before and during the job.
    """

    __slots__ = ("result", "seconds", "worker")

    def __init__(self, worker: _Worker) -> None:
        self.worker = worker
        self.result: str | None = None
        self.seconds = 0.0, 0.0

    def poll(self) -> str | None:
        """Return the result, without waiting for it."""
        if self.result is None:
            self.worker.exchange()
        return self.result

    def wait(self, seconds: float | None = None) -> str | None:
        """Return the result as soon as there is one, or None after so many seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        while self.poll() is None:
            left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
            if left <= 0:
                break
            with contextlib.suppress(OSError, ValueError):
                # Another thread may read the answer, or close the pipe.
                select.select([self.worker.answers], [], [], left)
        return self.result


@final
class _Worker:
    """The background process, and the pipes to and from it.

    Both are read and written without blocking. `is_torn` is true while bytes are on their way, and
    stays so if an interrupt came then.
    """

    def __init__(self) -> None:
        with cache.usable_folder() as folder:
            place = folder.path
        own = {"PRIMGRAPH_CACHE": place, "PRIMGRAPH_DEBUG": "0", "OPENBLAS_NUM_THREADS": "1"}
        path = [entry for entry in sys.path if isinstance(entry, str)]
        with starting:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM.format(path, os.getpid(), _PRIORITY)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                # The keyboard interrupts this process only.
                start_new_session=True,
                env={**os.environ, **own},
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.jobs, self.answers = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.jobs, False)
        os.set_blocking(self.answers, False)
        self.waiting: deque[Ticket] = deque()
        self.unsent, self.unread = bytearray(), bytearray()
        self.is_torn = self.is_closed = False
        self.jobs_sent = 0
        self.lock = make_lock()

    def submit(self, job: bytes) -> Ticket:
        """Add a job, and return its ticket."""
        ticket = Ticket(self)
        with self.lock:
            self.is_torn = True
            self.unsent += HEAD.pack(len(job)) + job
            self.waiting.append(ticket)
            self.jobs_sent += 1
            self.is_torn = False
        self.exchange()
        return ticket

    def exchange(self) -> None:
        """Send what the process can take of the jobs, and read its answers."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            if self.is_torn:
                self.close(TORN)
            if self.is_closed:
                return
            self.is_torn = True
            try:
                self._send()
                self._receive()
            except OSError:
                self.close()
            self.is_torn = False
        finally:
            self.lock.release()

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                del self.unsent[: os.write(self.jobs, self.unsent[: 1 << 16])]

    def _receive(self) -> None:
        is_over = False
        with contextlib.suppress(BlockingIOError):
            while found := os.read(self.answers, 1 << 16):
                self.unread += found
            is_over = True
        *lines, self.unread = self.unread.split(b"\n")
        for line in lines:
            fault, *seconds = json.loads(line)
            ticket = self.waiting.popleft()
            ticket.seconds, ticket.result = tuple(seconds), fault
        if is_over:
            self.close()

    def close(self, result: str = LOST) -> None:
        """End the process, without waiting; its jobs are lost."""
        self.is_closed = True
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        # It ends by itself as its input does, and kills its compilers: nobody waits for it.
        if self.process.poll() is None:
            self.process.returncode = 0
        while self.waiting:
            self.waiting.popleft().result = result


_lock = make_lock()
_workers: list[_Worker] = []


def is_possible() -> bool:
    """Return whether this process can start one in the background."""
    return bool(sys.executable) and os.name == "posix" and hasattr(os, "set_blocking")


def ready_worker() -> Any:
    """Return the background process, which is started if there is none.

    Raises `OSError` if it cannot be started.
    """
    with _lock:
        if _workers:
            _workers[0].exchange()
            if _workers[0].is_closed:
                _workers.clear()
        if not _workers:
            _workers.append(_Worker())
        return _workers[0]


def submit(job: bytes) -> Ticket:
    """Compile a pickled job in the background. Raises `OSError` if no process can be started."""
    found: Ticket = ready_worker().submit(job)
    _needs.note(is_needed=True)
    return found


def expect(*, is_certain: bool = False) -> None:
    """Start the background process if this program is likely to need it, as its last run did.

    Its imports take as long as those of this process, so that it must begin early. There must be
    another processor for it.
    """
    if _workers or not is_possible() or processors() < 2 or debugging.get():
        return
    if (is_certain or _needs.are_likely()) and find_compiler() is not None:
        with contextlib.suppress(OSError):
            ready_worker()


class _Needs:
    """Whether runs of this program need the background process, as kept in the cache.

    They do not if all their kernels are known.
    """

    def __init__(self) -> None:
        self.known: bool | None = None

    @property
    def name(self) -> str:
        """Name of the file in the cache."""
        main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
        return f"{cache.key_of('background', os.path.abspath(main))}{cache.TIMES}"

    def are_likely(self) -> bool:
        """Return whether the last run needed it, or there was none."""
        if self.known is None:
            self.known = True
            with contextlib.suppress(OSError), cache.usable_folder() as folder:
                self.known = cache.recall(folder, self.name) != b"false"
        return self.known

    def note(self, *, is_needed: bool) -> None:
        """Keep for later runs whether it was needed."""
        if self.are_likely() is not is_needed:
            self.known = is_needed
            with contextlib.suppress(OSError), cache.usable_folder() as folder:
                cache.keep(folder, self.name, json.dumps(is_needed).encode())


_needs = _Needs()


@after_fork
def _leave_to_parent() -> None:
    """Close the copies of the pipes in a forked process: the background process is the parent's."""
    _stop()


def _stop() -> None:
    for worker in _workers:
        worker.close()
    _workers.clear()


@atexit.register
def _end() -> None:
    """Let the background process end with this one, and note if it had nothing to do."""
    if any(not worker.jobs_sent for worker in _workers):
        _needs.note(is_needed=False)
    _stop()
