"""Execution of compilers: with a timeout, including child processes, and safe under fork."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import IO, Self, TypeAlias, final

from primgraph.base.locks import make_lock
from primgraph.codegen.runtime.threads import processors

Done: TypeAlias = subprocess.CompletedProcess[str]


def run(command: Sequence[str], limit: float, given: str = "", folder: str = "") -> Done | None:
    """Run a command with `given` as its input; return None if it timed out.

    It writes temporary files to `folder`, and messages in English. On timeout or interrupt the
    command and its child processes are killed.
    """
    with _Running(command, given, folder) as running:
        return running.result(limit)


def run_all(
    commands: Sequence[Sequence[str]], limit: float, folder: str
) -> list[tuple[int, Done | None]]:
    """Run commands side by side on all processors; return their places and results as they end.

    The result is None for one that timed out. Commands that have not begun when one fails or times
    out are not run. On timeout or interrupt all are killed.
    """
    done: list[tuple[int, Done | None]] = []
    with contextlib.ExitStack() as stack:
        left = enumerate(commands)
        running: dict[int, _Running] = {}
        while True:
            for place, command in islice(left, processors() - len(running)):
                running[place] = stack.enter_context(_Running(command, "", folder))
            if not running:
                break
            place = _first_to_end(running, limit)
            done.append((place, running.pop(place).result(limit)))
            result = done[-1][1]
            if result is None or result.returncode:
                break
    return done


def _first_to_end(running: Mapping[int, _Running], limit: float) -> int:
    """Wait until one of some commands has ended, if the system can tell; return its place."""
    first = next(iter(running))
    if len(running) > 1 and hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            ended, places = select.poll(), {}
            for place, command in running.items():
                handle = stack.enter_context(os.fdopen(os.pidfd_open(command.process.pid)))
                places[handle.fileno()] = place
                ended.register(handle, select.POLLIN)
            found = ended.poll(1000 * limit)
            return places[found[0][0]] if found else first
    return first


@final
class _Running:
    """A command that runs, with files instead of pipes for its input and output.

    Processes forked meanwhile would hold the ends of pipes open. At the end of the context the
    command and its child processes are killed if they still run.
    """

    def __init__(self, command: Sequence[str], given: str, folder: str) -> None:
        self.command = command
        with contextlib.ExitStack() as stack:
            read, self.out, self.told = [stack.enter_context(_file()) for _ in range(3)]
            read.write(given.encode())
            read.seek(0)
            with starting:
                if _refusals:
                    raise InterruptedError(_refusals[0])
                self.process = subprocess.Popen(
                    command,
                    stdin=read,
                    stdout=self.out,
                    stderr=self.told,
                    start_new_session=True,
                    env=_environment(folder),
                )
                _started.add(self.process)
            self.files = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.files:
            if self.process.returncode is None:
                _kill(self.process)
                self.process.wait()
            with starting:
                _started.discard(self.process)

    def result(self, limit: float) -> Done | None:
        """Wait for the end, and return the output; None after `limit` seconds."""
        try:
            _wait(self.process, limit)
        except subprocess.TimeoutExpired:
            return None
        texts = []
        for file in (self.out, self.told):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return subprocess.CompletedProcess(self.command, self.process.returncode, *texts)


def _file() -> IO[bytes]:
    """Create a file for a process's input or output, in memory if the system supports it."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.fdopen(os.memfd_create("primgraph"), "w+b")
    made: IO[bytes] = importlib.import_module("tempfile").TemporaryFile()
    return made


def _environment(folder: str) -> dict[str, str]:
    places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), folder) if folder else {}
    # `NO_ROOM` matches English messages.
    return {**os.environ, **places, "LC_ALL": "C"}


# Held while a process starts, to prevent a concurrent fork, for which the start would wait.
starting = make_lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=starting.acquire,
        after_in_parent=starting.release,
        after_in_child=starting.release,
    )
# Processes that run, and the reason why no others may start. Both change while `starting` is held.
_started: set[subprocess.Popen[bytes]] = set()
_refusals: list[str] = []


def end_all(reason: str) -> None:
    """Kill all commands and their child processes, and let no others start in this process.

    Called by a thread beside those that run commands. These get the results of killed commands;
    `run` raises `OSError` with the reason afterwards.
    """
    with starting:
        _refusals.append(reason)
        for process in _started:
            if process.returncode is None:
                _kill(process)


def _wait(process: subprocess.Popen[bytes], limit: float) -> None:
    """Wait for the process to end, without polling if possible."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError), os.fdopen(os.pidfd_open(process.pid)) as handle:
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            if ended.poll(1000 * limit):
                # It has ended: this takes no time, but for another thread that asks meanwhile.
                process.wait()
                return
            limit = 0.0
    process.wait(limit)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


# Messages of compilers and linkers about full disks and memory, and about subprocesses that were
# killed or are missing. Fatal errors in the source end with "compilation terminated".
NO_ROOM = re.compile(
    "No space left|Disk quota|cannot allocate|Cannot allocate|out of memory|Read-only file system"
    "|[Kk]illed|signal terminated|terminated (?:by|with) signal|cannot execute"
)

_FAULT = re.compile(r"kernel\.c:(\d+)")


def fault_line(told: str) -> int:
    """Return the number of the first line that a compiler's message is about, 0 for none."""
    found = _FAULT.search(told)
    return int(found[1]) if found else 0
