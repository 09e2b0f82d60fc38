"""The background process: compile the C of graphs into the disk cache, at low priority.

It reads jobs from its input, and answers each by a line. It ends when the process that started it
does: then its input ends, or it gets another parent. Compilers that run are killed.
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
from typing import Any

from primgraph.errors import CompileError

# Size of the number of bytes that precedes each job.
HEAD = struct.Struct("<q")
# Seconds without a job after which the process ends, and between looks for another parent.
_IDLE, _LOOK = 30.0, 1.0

_Jobs = queue.SimpleQueue[bytes]


def main(parent: int, priority: int) -> None:
    """Compile jobs of the process `parent` until it ends, or no job comes for a while."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answers, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    # Whatever else prints must not be taken for an answer.
    os.dup2(nothing, 1)
    if hasattr(os, "nice"):
        os.nice(priority)
    jobs: _Jobs = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs, parent), daemon=True).start()
    try:
        for name in ("native", "targets.c.driver"):
            importlib.import_module(f"primgraph.codegen.{name}")
        while True:
            os.write(answers, answer_line(jobs.get(timeout=_IDLE)))
    except (KeyboardInterrupt, queue.Empty, BrokenPipeError):
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


def _read_jobs(jobs: _Jobs, parent: int) -> None:
    """Put jobs from the input into the queue; at its end interrupt the main thread."""
    data = bytearray()
    while os.getppid() == parent:
        if not select.select([0], [], [], _LOOK)[0]:
            continue
        found = os.read(0, 1 << 16)
        if not found:
            break
        data += found
        while len(data) >= HEAD.size:
            end = HEAD.size + HEAD.unpack_from(data)[0]
            if len(data) < end:
                break
            jobs.put(bytes(data[HEAD.size : end]))
            del data[:end]
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    # Interrupts the wait for a compiler as well.
    signal.pthread_kill(main_thread, signal.SIGINT)
