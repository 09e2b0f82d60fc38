"""Runs a compiler: it ends in time, with all that it has started, and no fork waits for it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from typing import IO

from primgraph.base.locks import make_lock


def run(
    command: Sequence[str], limit: float, given: str = "", folder: str = ""
) -> subprocess.CompletedProcess[str] | None:
    """Run a command, which reads `given`; return None if it did not end in time.

    It writes its temporary files to `folder`, and messages in English. It is ended with all that
    it has started, then and where this run is interrupted.
    """
    # Not by pipes: processes that split off meanwhile would hold their ends.
    with _file() as read, _file() as out, _file() as told:
        read.write(given.encode())
        read.seek(0)
        with _starting:
            process = subprocess.Popen(
                command,
                stdin=read,
                stdout=out,
                stderr=told,
                start_new_session=True,
                env=_environment(folder),
            )
        try:
            _wait(process, limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return None
        except BaseException:
            _end(process)
            raise
        texts = []
        for file in (out, told):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess(command, process.returncode, *texts)


def _file() -> IO[bytes]:
    """Make a file for what a process reads and writes, in memory if the system has such files."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.fdopen(os.memfd_create("primgraph"), "w+b")
    return tempfile.TemporaryFile()


def _environment(folder: str) -> dict[str, str]:
    places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), folder) if folder else {}
    # `NO_ROOM` knows English messages.
    return {**os.environ, **places, "LC_ALL": "C"}


# Held while a process starts, in which none may split off: the start would wait for its end.
_starting = make_lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_starting.acquire,
        after_in_parent=_starting.release,
        after_in_child=_starting.release,
    )


def _wait(process: subprocess.Popen[bytes], limit: float) -> None:
    """Wait for the end, without looking for it from time to time where that can be."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError), os.fdopen(os.pidfd_open(process.pid)) as handle:
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            ended.poll(1000 * limit)
            # What has ended has done so by now.
            limit = 0.0
    process.wait(limit)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


# Messages of compilers and linkers about disks and memory, and about programs of theirs that were
# killed or are missing. A fatal error in the source ends with "compilation terminated".
NO_ROOM = re.compile(
    "No space left|Disk quota|cannot allocate|Cannot allocate|out of memory|Read-only file system"
    "|[Kk]illed|signal terminated|terminated (?:by|with) signal|cannot execute"
)
