"""The background process: compile the C of graphs into the disk cache, at low priority.

It reads jobs from its input, and answers each by a line. It ends when the process that started it
does: then its input ends, or it gets another parent. It also ends by a signal. Compilers that run
are killed.

No signal interrupts the main thread: an exception while a compiler starts would lose it, and one
just before a wait would come after it.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import queue
import select
import signal
import struct
import threading
import time
from collections.abc import Iterable
from typing import Any

from primgraph.codegen.runtime.toolchain.run_compiler import end_all
from primgraph.errors import CompileError

# Size of the number of bytes that precedes each job.
HEAD = struct.Struct("<q")
# Seconds without a job after which the process ends, and between looks for another parent.
_IDLE, _LOOK = 30.0, 1.0
# Seconds in which the main thread can remove its files, once compilers have been killed.
_GRACE = 5.0

_Jobs = queue.SimpleQueue[bytes | None]


def main(parent: int, priority: int) -> None:
    """Compile jobs of the process `parent` until it ends, or no job comes for a while."""
    answers, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    # Whatever else prints must not be taken for an answer.
    os.dup2(nothing, 1)
    if hasattr(os, "nice"):
        os.nice(priority)
    jobs: _Jobs = queue.SimpleQueue()
    signals = _caught((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    threading.Thread(target=_serve, args=(jobs, parent, signals), daemon=True).start()
    try:
        importlib.import_module("primgraph.codegen.native")
        importlib.import_module("primgraph.codegen.targets.c.driver")
        while (job := jobs.get(timeout=_IDLE)) is not None:
            os.write(answers, answer_line(job))
    except (queue.Empty, BrokenPipeError):
        # The parent has ended or needs nothing.
        return


def answer_line(job: bytes) -> bytes:
    """Compile the pickled arguments of `prepare`, and return a line with the answer.

    It has the reason of a failure, and the seconds of processor time before and during the job.
    """
    fault, before = "", processor_seconds()
    try:
        native: Any = importlib.import_module("primgraph.codegen.native")
        if native.prepare(*pickle.loads(job)) is None:
            fault = "its stacks grow, and some steps have no C"
    except CompileError as error:
        fault = error.message
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    return json.dumps([fault, before, processor_seconds() - before]).encode() + b"\n"


def processor_seconds() -> float:
    """Return the processor time of this process, and of child processes that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _caught(numbers: Iterable[signal.Signals]) -> int:
    """Return a file descriptor that becomes readable as one of these signals comes."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return read


def _serve(jobs: _Jobs, parent: int, signals: int) -> None:
    """Put jobs into the queue; after the last one kill compilers, and end the process."""
    try:
        _read_jobs(jobs, parent, signals)
    finally:
        end_all("the background process ends")
        jobs.put(None)
        time.sleep(_GRACE)
        # The main thread still plans or prints.
        os._exit(0)


def _read_jobs(jobs: _Jobs, parent: int, signals: int) -> None:
    """Put jobs from the input into the queue, until it ends or a signal comes."""
    data = bytearray()
    while os.getppid() == parent:
        ready = select.select([0, signals], [], [], _LOOK)[0]
        if signals in ready:
            return
        if not ready:
            continue
        found = os.read(0, 1 << 16)
        if not found:
            return
        data += found
        while len(data) >= HEAD.size:
            end = HEAD.size + HEAD.unpack_from(data)[0]
            if len(data) < end:
                break
            jobs.put(bytes(data[HEAD.size : end]))
            del data[:end]
