"""Random programs with `target="auto"`: each call gives what NumPy gives, or what C does.

The C is compiled in this process, some looks after it was asked for, or is lost on the way; clocks
go at random, so that either kernel may turn out the faster one.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from program_derivatives import demand
from program_draft import Choices
from program_tolerance import same_bits
from random_programs import Program

import primgraph as pg
from primgraph.base.debug_mode import debug
from primgraph.codegen.runtime.toolchain import graph_keys
from primgraph.codegen.tiered import background, choice, worker
from primgraph.codegen.tiered import kernel as kernels
from primgraph.codegen.tiered.choice import Stage
from primgraph.codegen.tiered.kernel import TieredKernel
from primgraph.codegen.tiered.times import Times
from primgraph.errors import FeedError

_CALLS = 40
# Looks at a compilation before it ends, at most, and how many end in another way than by C.
_LOOKS = 6
_LOST = 0.2

Arrays = Sequence[np.ndarray]


class _Job:
    """A compilation in this process, which ends after some looks, or is lost.

    Once one has ended, `done` has an item.
    """

    def __init__(self, job: bytes, draw: Choices, done: list[bool]) -> None:
        self.job, self.looks, self.done = job, draw.below(_LOOKS), done
        lost = (background.LOST, background.TORN, "there is no C today")
        self.result: str | None = draw.choose(lost) if draw.chance(_LOST) else None

    def poll(self) -> str | None:
        self.looks -= 1
        return None if self.looks >= 0 else self.wait()

    def wait(self, seconds: float | None = None) -> str | None:
        if self.result is None:
            self.result = json.loads(worker.answer_line(self.job))[0]
            self.done.append(True)
        return self.result


@contextmanager
def _tiers(draw: Choices) -> Iterator[None]:
    """C is tried after the first calls, and compiled in this process.

    The cache knows at first what is drawn.
    """
    done = [True] * draw.chance(0.1)
    known = [draw.below(1000, 1) if draw.chance(0.3) else None for _ in "ab"]
    with (
        mock.patch.object(kernels, "is_stored", side_effect=lambda key: bool(done)),
        mock.patch.object(kernels, "recall_times", return_value=Times(*known)),
        mock.patch.object(kernels, "keep_times"),
        mock.patch.object(graph_keys, "LOADED", math.inf),
        mock.patch.object(choice, "log_choice"),
        mock.patch.object(choice, "START", 0),
        mock.patch.object(choice, "START_EQUATION", 0),
        mock.patch.object(choice, "processors", return_value=2),
        mock.patch.object(background, "submit", side_effect=lambda job: _Job(job, draw, done)),
        mock.patch.object(background, "expect"),
        debug(False),
    ):
        yield


class _Calls:
    """Calls of one kernel, and the results that they may have."""

    def __init__(self, program: Program, draw: Choices) -> None:
        self.draw, self.graph = draw, program.graph
        self.feeds = [program.feeds, program.others]
        self.by = {
            target: [_outcome(pg.compile(self.graph, target=target), f) for f in self.feeds]
            for target in ("numpy", "c")
        }

    def expect(self, kernel: Any, place: int, found: Any, before: str) -> None:
        """Demand that results are those of NumPy, or of C, and of the kernel that stays."""
        after, fits = (
            kernel.style,
            {
                style: _are_same(self.by[target][place], found)
                for style, target in (("planned", "numpy"), ("native", "c"))
            },
        )
        demand(any(fits.values()), f"neither NumPy nor C gives the results of a call, {after}")
        if before == after and before in fits:
            demand(fits[before], f"results are not those of the kernel that runs, {before}")

    def plain(self, kernel: Any) -> None:
        place, before = self.draw.below(2), kernel.style
        self.expect(kernel, place, _outcome(kernel, self.feeds[place]), before)

    def filled(self, kernel: Any) -> None:
        """Results go into arrays of the caller, or borrowed ones, by C of its own."""
        place = self.draw.below(2)
        out = [np.empty(v.shape, v.dtype) for v in self.graph.outputs]
        how: dict[str, Any] = {"borrow": True} if self.draw.chance(0.5) else {"out": out}
        found = _outcome(kernel, self.feeds[place], **how)
        self.expect(kernel, place, found, "")

    def refused(self, kernel: Any) -> None:
        """A call with one array too few fails, and nothing else changes."""
        try:
            kernel(*self.feeds[0][1:])
        except FeedError:
            return
        demand(False, "a call without its first array was accepted")

    def copied(self, kernel: Any) -> None:
        """A copy is called in the place of the kernel."""
        how: Callable[[Any], Any] = self.draw.choose(
            (copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k)), lambda k: k.flat)
        )
        self.plain(how(kernel))

    def waited(self, kernel: Any) -> None:
        demand(kernel.wait(None if self.draw.chance(0.5) else 0.0) is kernel, "wait")
        demand(bool(str(kernel.plan)), "the plan is empty")

    def in_threads(self, kernel: Any) -> None:
        """Two threads call it at the same time, several times."""
        found: list[tuple[int, Any]] = []

        def call(place: int) -> None:
            for _ in range(5):
                found.append((place, _outcome(kernel, self.feeds[place])))

        threads = [threading.Thread(target=call, args=(place,)) for place in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        demand(len(found) == 10, "a thread has failed")
        for place, results in found:
            self.expect(kernel, place, results, "")

    def settle(self, kernel: Any) -> None:
        """Once the C is there or lost, some calls of each kernel decide which one stays."""
        self.plain(kernel)
        kernel.wait()
        for _ in range(2 * (choice.WARM + choice.SAMPLES) + 1):
            self.plain(kernel)
        demand(kernel._choice.stage is Stage.SETTLED, "no kernel was chosen")


class _Stages:
    """A listener that counts the stages of a choice, however short they are."""

    def __init__(self, choice_: choice.Choice, seen: Counter[str]) -> None:
        self.choice, self.seen = choice_, seen
        choice_.listeners.add(self)

    def follow_choice(self) -> None:
        self.seen[f"tiers: {self.choice.stage.name.lower()}"] += 1


def _outcome(kernel: Any, feeds: Arrays, **how: Any) -> Any:
    """Return the results as arrays of their own, or the class and first line of an error."""
    try:
        with np.errstate(all="ignore"):
            return [np.array(x) for x in kernel(*feeds, **how)]
    except pg.PrimgraphError as error:
        return type(error).__name__


def _are_same(expected: Any, found: Any) -> bool:
    if isinstance(expected, str) or isinstance(found, str):
        return bool(expected == found)
    return all(
        a.dtype == b.dtype and a.shape == b.shape and bool(np.all(same_bits(a, b)))
        for a, b in zip(expected, found, strict=True)
    )


def check_tiered(program: Program, seen: Counter[str]) -> None:
    """Check that calls of a kernel that changes give the results of NumPy or of C."""
    draw = Choices(np.random.default_rng((program.seed, 41)))
    with _tiers(draw):
        calls = _Calls(program, draw)
        kernel = pg.compile(program.graph, target="auto")
        if not isinstance(kernel, TieredKernel):
            seen["programs without tiers"] += 1
            return
        ticks, choice_ = draw.rng, kernel._choice
        now = [0]

        def clock() -> int:
            now[0] += int(10 ** ticks.uniform(3.0, 7.0))
            return now[0]

        choice_.clock = clock
        stages = _Stages(choice_, seen)
        for listener in (kernel, stages):
            listener.follow_choice()
        kinds = (calls.filled, calls.refused, calls.copied, calls.waited, calls.in_threads)
        for _ in range(_CALLS):
            step = draw.choose(kinds) if draw.chance(0.2) else calls.plain
            step(kernel)
        calls.settle(kernel)
        seen[f"tiers end with {kernel.style}"] += 1
    seen["programs with tiers"] += 1
