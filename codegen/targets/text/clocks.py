"""Clocks in generated code: timers around every step."""

from __future__ import annotations

import time
from typing import final

from primgraph.codegen.targets.text.module import Function, Line, Module

# Names that generated code does not use: its own end in a number, or are NumPy's names.
_SECONDS, _CALLS, _CLOCK = "clock_seconds", "clock_calls", "clock_now"
_BEFORE, _AFTER, _RESULT = "clock_before", "clock_after", "clock_result"


@final
class Clocks:
    """Time and run count of each step of a module.

    The last entries are for lines that belong to no step. `reading` is the overhead of reading the
    clock, in seconds, which is included in every interval.
    """

    def __init__(self, steps: int) -> None:
        self.seconds = [0.0] * (steps + 1)
        self.calls = [0] * (steps + 1)
        self.reading = _clock_overhead()

    def take(self) -> tuple[list[float], list[int]]:
        """Return seconds and runs since the last call, without the overhead of the clocks."""
        pairs = zip(self.seconds, self.calls, strict=True)
        seconds = [max(s - n * self.reading, 0.0) for s, n in pairs]
        calls = list(self.calls)
        self.seconds[:] = [0.0] * len(seconds)
        self.calls[:] = [0] * len(calls)
        return seconds, calls


def with_clocks(module: Module, steps: int) -> Clocks:
    """Insert clocks into `module`, around each of its `steps` steps."""
    clocks = Clocks(steps)
    for function in module.functions:
        if any(line.step >= 0 for line in function.rows):
            _insert(function, steps)
    module.table |= {
        _SECONDS: clocks.seconds,
        _CALLS: clocks.calls,
        _CLOCK: time.perf_counter,
    }
    return clocks


def _insert(function: Function, rest: int) -> None:
    """Read the clock after each run of lines of one step; `rest` is the index of other lines.

    A line that opens a block is followed by a reading within it. The return value is computed
    before the last reading. Loops that are called have clocks of their own.
    """
    lines, result = function.body, function.result
    if result:
        text, step, *_ = result[0]
        lines = [*lines, Line(f"{_RESULT} = {text}", step), *result[1:]]
        function.returns([_RESULT], step)
    body = [Line(f"{_BEFORE} = {_CLOCK}()")]
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        body.append(line)
        if following is None or following.step != line.step or following.depth < line.depth:
            depth = line.depth if following is None else max(line.depth, following.depth)
            body += _readings(line, rest, depth)
    function.body = body


def _readings(line: Line, rest: int, depth: int) -> list[Line]:
    place = line.step if line.step >= 0 else rest
    texts = (
        f"{_AFTER} = {_CLOCK}()",
        f"{_SECONDS}[{place}] += {_AFTER} - {_BEFORE}",
        f"{_CALLS}[{place}] += 1",
        f"{_BEFORE} = {_CLOCK}()",
    )
    return [Line(text, line.step, depth) for text in (texts[-1:] if line.shares else texts)]


def _clock_overhead() -> float:
    """Return the time of one reading of the clock, in seconds: the median of many."""
    clock = time.perf_counter
    found = []
    for _ in range(1001):
        before = clock()
        after = clock()
        found.append(after - before)
    return sorted(found)[len(found) // 2]
