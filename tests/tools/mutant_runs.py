"""Runs tests on code with a fault: in a forked process that has all tests at hand already.

There the functions of the file get the code that they would have with the fault. What runs on
import has done so before, so that a fault there is not for this.
"""

from __future__ import annotations

import gc
import inspect
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias, final

import pytest
from mutant_changes import Mutant

# What tells the code of a function from others of its file: names do not tell lambdas apart.
_Key: TypeAlias = tuple[object, ...]
_Codes: TypeAlias = dict[_Key, CodeType]


@dataclass(frozen=True, slots=True)
class Trial:
    """A fault, the tests to try on it, and how many seconds they may compute."""

    mutant: Mutant
    tests: Sequence[str]
    patience: float


def faulty_codes(mutant: Mutant, source: bytes) -> _Codes | None:
    """The code of each function with the fault, by the code without.

    None if the fault is in what runs on import, such as the body of a class or defaults.
    """
    found: _Codes = {}
    waiting = [[compile(s, mutant.file, "exec") for s in (source, mutant.applied(source))]]
    while waiting:
        plain, faulty = waiting.pop()
        is_function = bool(plain.co_flags & inspect.CO_OPTIMIZED)
        if not is_function and _own(plain) != _own(faulty):
            return None
        if is_function:
            found[_key(plain)] = faulty
        pairs = zip(_inner(plain), _inner(faulty), strict=True)
        waiting += [list(pair) for pair in pairs]
    return found


def _inner(code: CodeType) -> list[CodeType]:
    return [c for c in code.co_consts if isinstance(c, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    constants = [(type(c), c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, str(constants), code.co_names


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno, tuple(code.co_positions())


def functions_of(files: set[str], root: Path) -> dict[str, list[FunctionType]]:
    """All functions there are, by the file that they come from."""
    found: dict[str, list[FunctionType]] = {file: [] for file in files}
    names = {str(root / file): file for file in files}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename in names:
            found[names[thing.__code__.co_filename]].append(thing)
    return found


@final
@dataclass(slots=True)
class Forks:
    """A plugin of pytest that tries faults instead of running tests.

    `done` is called with each fault and whether the tests passed; with None in the place of that
    if the fault cannot be tried here. Each process has a cache of compiled code in `place`: C that
    a fault has written is never found under the key of the graph without.
    """

    root: Path
    trials: list[Trial]
    jobs: int
    done: Callable[[Trial, bool | None], None]
    deadline: float
    place: Path
    running: dict[int, Trial] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {i.nodeid: i for i in session.items}
        functions = functions_of({t.mutant.file for t in self.trials}, self.root)
        for trial in self.trials:
            source = (self.root / trial.mutant.file).read_bytes()
            codes = faulty_codes(trial.mutant, source)
            if codes is None:
                self.done(trial, None)
                continue
            while len(self.running) >= self.jobs:
                self._reap()
            if time.monotonic() > self.deadline:
                break
            self._start(session, trial, codes, functions[trial.mutant.file], items)
        while self.running:
            self._reap()
        return True

    def _start(
        self,
        session: pytest.Session,
        trial: Trial,
        codes: _Codes,
        functions: list[FunctionType],
        items: dict[str, pytest.Item],
    ) -> None:
        process = os.fork()
        if process:
            self.running[process] = trial
            return
        status = 2
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            limit_time(trial.patience)
            os.environ["PRIMGRAPH_CACHE"] = str(self.place / f"cache{os.getpid()}")
            for function in functions:
                function.__code__ = codes.get(_key(function.__code__), function.__code__)
            status = int(_fails(session, [items[t] for t in _single(trial.tests, items)]))
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """Wait until a process ends."""
        process, status = os.wait()
        trial = self.running.pop(process)
        self.done(trial, status == 0)


def limit_time(seconds: float) -> None:
    """End this process when it has computed for so long, however busy the machine is."""
    limit = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


def _single(tests: Sequence[str], items: dict[str, pytest.Item]) -> Iterator[str]:
    """Names of tests, and of all tests of what is named by its file."""
    for name in tests:
        if name in items:
            yield name
        else:
            yield from (i for i in items if i.startswith((f"{name}::", f"{name}[")))


def _fails(session: pytest.Session, items: list[pytest.Item]) -> bool:
    """Whether one of the tests fails, which is the last that is run then."""
    sys.argv = sys.argv[:1]
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return True
    return False
