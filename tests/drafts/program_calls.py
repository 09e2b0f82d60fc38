"""Random programs of calls that come again: of other types, with constants that are nearly equal.

What a program records from its cache of calls is what it records without one: the same equations,
of the same lines, and the same errors.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from program_derivatives import demand
from program_draft import Choices

import primgraph as pg
from primgraph.errors import PrimgraphError
from primgraph.operators import call, call_cache

_STEPS = 24
# Functions, operands and constants of one program are few, so that calls come again.
_FUNCTIONS, _CONSTANTS = 5, 3
_TWICE = 0.6
_IN_THREADS = 4

_INPUTS = (
    ((3,), "f8"), ((3,), "f8"), ((3,), "f4"), ((2, 3), "f8"), ((2, 3), "f4"), ((3,), "i8"),
    ((3,), "?"), ((), "f8"), ((3, 3), "f8"), ((3,), "c16"), ((None, 3), "f8"),
)  # fmt: skip

# Constants that Python takes for equal, or that NumPy promotes in other ways.
_NUMBERS: tuple[Callable[[], Any], ...] = (
    lambda: 0, lambda: 0.0, lambda: -0.0, lambda: False, lambda: 1, lambda: 1.0, lambda: True,
    lambda: 2, lambda: 2.0, lambda: 0.5, lambda: float("nan"), lambda: float("inf"),
    lambda: 1 + 0j, lambda: 10**20, lambda: 2**53 + 1, lambda: np.float32(0.5),
    lambda: np.float64(0.5), lambda: np.int32(1), lambda: np.True_, lambda: np.array(1.0),
    lambda: np.array([1.0, 2.0, 3.0]), lambda: [1.0, 2.0, 3.0], lambda: (1, 2, 3), lambda: None,
)  # fmt: skip
_AXES = (None, 0, -1, 1, True, 1.0, (0,), [0], (), np.int64(0))
_FLAGS = (False, True, 0, 1)
_INDICES = (
    0, True, False, -1, None, ..., slice(1, None), slice(None, None, -1), (0,), [0], (None, 0),
    slice(0, 2), slice(0, True), np.int64(1), (slice(None), 0), 1.0,
)  # fmt: skip
_SHAPES = ((3, 1), [3, 1], (1, 3), (-1,), -1, 3, (True, 3), (3.0,), (3,))
_SHIFTS = (1, True, -1, (1,), 0, 1.0)
_ORDERS = (None, 1, 1.0, 2, "fro", float("inf"), True)

_UNARY = (
    "negative", "abs", "exp", "tanh", "sigmoid", "square", "sqrt", "sign", "floor", "isnan",
    "logical_not", "reciprocal", "relu", "ravel", "flatten", "zeros_like", "positive", "invert",
)  # fmt: skip
_BINARY = (
    "add", "subtract", "multiply", "divide", "power", "maximum", "equal", "less", "arctan2",
    "logaddexp", "floor_divide", "remainder", "logical_and", "bitwise_or", "outer", "dot",
)  # fmt: skip
# Functions of one variable with options: names of these, and their values.
_OPTIONS: dict[str, dict[str, Sequence[Any]]] = {
    "sum": {"axis": _AXES, "keepdims": _FLAGS},
    "max": {"axis": _AXES, "keepdims": _FLAGS},
    "mean": {"axis": _AXES},
    "argmax": {"axis": _AXES},
    "softmax": {"axis": _AXES},
    "cumsum": {"axis": _AXES},
    "norm": {"ord": _ORDERS, "axis": _AXES},
    "var": {"axis": _AXES, "ddof": (0, 1, 1.0, True)},
    "reshape": {"shape": _SHAPES},
    "roll": {"shift": _SHIFTS, "axis": _AXES},
    "getitem": {"index": _INDICES},
    "round": {"decimals": _SHIFTS},
    "expand_dims": {"axis": _AXES},
    "squeeze": {"axis": _AXES},
    "tile": {"reps": _SHIFTS},
    "repeat": {"repeats": _SHIFTS},
    "tril": {"k": _SHIFTS},
    "flip": {"axis": _AXES},
    "leaky_relu": {"negative_slope": (0.0, -0.0, 0.5, 1, True)},
}
_WORLDS = (
    "plain", "no_grad", "cond", "scan", "while", "vmap", "float32", "thread", "checkpoint", "grad",
)  # fmt: skip


@dataclass(frozen=True)
class CallsProgram:
    """The program of a seed, less the steps in `left_out`."""

    seed: int
    left_out: frozenset[int] = frozenset()
    count: int = _STEPS

    @cached_property
    def steps(self) -> list[_Step]:
        draw = Choices(np.random.default_rng((self.seed, 37)))
        names = [draw.choose(_NAMES) for _ in range(_FUNCTIONS)]
        numbers = [draw.choose(_NUMBERS) for _ in range(_CONSTANTS)]
        found: list[_Step] = []
        for _ in range(self.count):
            again = found and draw.chance(_TWICE)
            step = draw.choose(found) if again else _draw_step(draw, draw.choose(names), numbers)
            world = draw.choose(_WORLDS) if draw.chance(0.5) else "plain"
            found.append(_Step(step.name, step.operands, step.options, world, step.is_named))
        return found

    def __str__(self) -> str:
        lines = [f"{k}: {s}" for k, s in enumerate(self.steps) if k not in self.left_out]
        return "\n".join([f"seed {self.seed}", *lines])


@dataclass(frozen=True)
class _Step:
    """A call: operands are places of values, or make constants; options may be passed by name."""

    name: str
    operands: tuple[int | Callable[[], Any], ...]
    options: dict[str, Any]
    world: str
    is_named: bool

    def __str__(self) -> str:
        given = [f"v{a}" if isinstance(a, int) else repr(a()) for a in self.operands]
        return f"{self.name}({', '.join(given)}, {self.options}) in {self.world}"


def _draw_step(draw: Choices, name: str, numbers: Sequence[Callable[[], Any]]) -> _Step:
    options = {key: draw.choose(values) for key, values in _OPTIONS.get(name, {}).items()}
    if options and draw.chance(0.3):
        # The last one has its default.
        options.popitem()
    operands: list[Any] = [draw.below(2 * len(_INPUTS))]
    if name in _BINARY:
        other = draw.below(len(_INPUTS)) if draw.chance(0.5) else draw.choose(numbers)
        operands.insert(draw.below(2), other)
    elif name == "where":
        operands += [draw.choose(numbers), draw.below(len(_INPUTS))]
    elif name == "clip":
        operands += [draw.choose(numbers), draw.choose(numbers)]
    return _Step(name, tuple(operands), options, "plain", draw.chance(0.5))


_NAMES = (*_UNARY, *_BINARY, *_OPTIONS, "where", "clip")


def _apply(step: _Step, values: Sequence[Any]) -> Any:
    """Return the result of the call in its world."""
    at = [a % len(values) if isinstance(a, int) else None for a in step.operands]
    free = [values[k] for k in at if k is not None]

    def called(*variables: Any) -> Any:
        left = iter(variables)
        given = [
            next(left) if isinstance(a, int) else a() for a in step.operands
        ]  # fmt: skip
        if step.name == "getitem":
            return given[0][step.options.get("index", 0)]
        function = getattr(pg, step.name)
        if step.is_named:
            return function(*given, **step.options)
        return function(*given, *step.options.values())

    return _IN_WORLD[step.world](called, free)


def _in_while(called: Callable[..., Any], values: Sequence[Any]) -> Any:
    # Results of another type than what is carried are left aside.
    def body(carried: Any) -> Any:
        called(*values)
        return carried + 1

    pg.while_loop(lambda carried: carried < 2, body, pg.sum(values[0]) * 0)
    return called(*values)


def _in_float32(called: Callable[..., Any], values: Sequence[Any]) -> Any:
    before = pg.get_default_dtype()
    pg.set_default_dtype("float32")
    try:
        return called(*values)
    finally:
        pg.set_default_dtype(before)


def _in_thread(called: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Call from another thread, in the context of this one."""
    found: list[Any] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found.append(context.run(called, *values))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _in_no_grad(called: Callable[..., Any], values: Sequence[Any]) -> Any:
    with pg.no_grad():
        return called(*values)


_IN_WORLD: dict[str, Callable[[Callable[..., Any], Sequence[Any]], Any]] = {
    "plain": lambda called, values: called(*values),
    "no_grad": _in_no_grad,
    "cond": lambda called, values: pg.cond(
        pg.sum(pg.abs(values[0])) > 0, lambda: called(*values), lambda: called(*values)
    ),
    "scan": lambda called, values: pg.scan(
        lambda carried, _: (carried, called(*values)), pg.zeros(()), length=2
    )[1],
    "while": _in_while,
    "vmap": lambda called, values: pg.vmap(called)(*values),
    "float32": _in_float32,
    "thread": _in_thread,
    "checkpoint": lambda called, values: pg.checkpoint(called)(*values),
    "grad": lambda called, values: pg.grad(lambda *xs: pg.sum(called(*xs)))(*values),
}


def _recorded(program: CallsProgram) -> str:
    """Return a description of what the program records, and of the results and errors of calls."""
    told: list[str] = []
    with pg.Program() as recorded:
        values: list[Any] = [
            pg.data(f"x{k}", shape, dtype) for k, (shape, dtype) in enumerate(_INPUTS)
        ]
        for k, step in enumerate(program.steps):
            if k in program.left_out:
                continue
            try:
                found = _apply(step, values)
                told.append(f"{k} {type(found).__name__} {getattr(found, 'type', found)}")
                if isinstance(found, pg.Variable) and len(values) < 2 * len(_INPUTS):
                    values.append(found)
            except PrimgraphError as error:
                told.append(f"{k} {type(error).__name__}: {error}")
    sources = [str(eqn.source) for eqn in recorded.builder.body]
    return "\n".join([str(recorded), *sources, *told])


@contextmanager
def _forgetting() -> Iterator[None]:
    """Calls are recorded without a cache."""
    before = call.call_again
    call.call_again = lambda *arguments: None  # type: ignore[assignment]
    try:
        yield
    finally:
        call.call_again = before


@contextmanager
def _counting(seen: Counter[str]) -> Iterator[None]:
    """Count the calls that are recorded from a cache."""
    copy = call_cache._copy

    def counted(*arguments: Any) -> Any:
        seen["calls from a cache"] += 1
        return copy(*arguments)

    call_cache._copy = counted  # type: ignore[assignment]
    try:
        yield
    finally:
        call_cache._copy = copy


def check_calls(program: CallsProgram, seen: Counter[str]) -> None:
    """Check that a program is the same with and without the cache of calls, in threads as well."""
    with _forgetting():
        expected = _recorded(program)
    with _counting(seen):
        found = _recorded(program)
    demand(found == expected, f"the cache of calls matters:\n{_difference(expected, found)}")
    if program.seed % _IN_THREADS == 0:
        _check_in_threads(program, expected)
        seen["programs of calls in threads"] += 1
    seen["programs of calls"] += 1


def _check_in_threads(program: CallsProgram, expected: str) -> None:
    """Two threads record the program at the same time."""
    # The default dtype is that of all threads.
    alone = {k for k, step in enumerate(program.steps) if step.world == "float32"}
    fewer = CallsProgram(program.seed, program.left_out | alone)
    if alone:
        with _forgetting():
            expected = _recorded(fewer)
    found: list[str] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: found.append(_recorded(fewer))) for _ in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for text in found:
        demand(text == expected, f"in a thread:\n{_difference(expected, text)}")
    demand(len(found) == len(threads), "a thread has failed")


def _difference(expected: str, found: str) -> str:
    pairs = zip(expected.split("\n"), found.split("\n"), strict=False)
    return "\n".join([f"- {a}\n+ {b}" for a, b in pairs if a != b][:6])
