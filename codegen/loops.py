"""Branches and loops in planned code: their bodies are compiled once, and run again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, cycle
from struct import pack_into
from typing import Any, Protocol, TypeAlias, final

import numpy as np

from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.run.growing import Growing
from primgraph.ir.dims import TRIPS
from primgraph.ir.graph import Graph
from primgraph.ir.types import TensorType
from primgraph.primitives.control import branch_taken, checkpoint, cond, parted, scan

Array: TypeAlias = "np.ndarray[Any, Any]"
Arrays: TypeAlias = Sequence[Array]
# Runs a branch or a loop on arrays, and leaves its results in others.
Runner: TypeAlias = Callable[[Arrays, Arrays], None]


# The workspace of a code that may run again.
Spare: TypeAlias = "tuple[Code, Any]"
# Makes trips on lists of Python's numbers, as `scalar_trips` writes it.
Numbers: TypeAlias = Callable[[Any, Any, Any], Any]
# Trips whose rows are lists of numbers at one time.
_SOME = 1024


@final
class Code:
    """A compiled body. Of those that run at one time, each has a workspace of its own.

    `run(workspace, arrays, results)` writes its results into arrays; `trips(workspace, fixed,
    rows)`, where there is one, does that in each trip of a loop. `scalar(*arrays)`, where there
    is one, makes new results faster, or gives None.
    """

    __slots__ = ("_free", "_start", "run", "scalar", "trips")

    def __init__(
        self,
        run: Callable[..., Any] | None,
        start: Callable[[], Any],
        scalar: Callable[..., Any] | None = None,
        trips: Callable[..., Any] | None = None,
    ) -> None:
        self.run = run
        self.scalar = scalar
        self.trips = trips
        self._start = start
        self._free: list[Any] = []

    def workspace(self) -> Any:
        """A workspace that nobody uses, to be given back."""
        try:
            return self._free.pop()
        except IndexError:
            return self._start()

    def give_back(self, workspace: Any) -> None:
        self._free.append(workspace)

    def once(self, arrays: Arrays, results: Arrays) -> None:
        """One run."""
        workspace = self.workspace()
        self.trip(workspace, arrays, results)
        self.give_back(workspace)

    def alone(self, spare: list[Spare], arrays: Arrays, results: Arrays) -> None:
        """One run, before which the workspace of another code is dropped: `spare` has one."""
        try:
            code, workspace = spare.pop()
        except IndexError:
            code = None
        if code is not self:
            workspace = None
            workspace = self._start()
        self.trip(workspace, [*map(_plain, arrays)], results)
        spare[:] = [(self, workspace)]

    def trip(self, workspace: Any, arrays: Arrays, results: Arrays) -> None:
        """A run in a workspace."""
        found = None if self.scalar is None else self.scalar(*arrays)
        if found is None:
            assert self.run is not None
            self.run(workspace, arrays, results)
            return
        for array, result in zip(found, results, strict=True):
            result[...] = array


class Compiler(Protocol):
    """What compiles bodies: each when it is first needed."""

    def code(self, body: Graph) -> Code:
        """Code for a branch, or for a test."""

    def trips(self, body: Graph, consts: int, carries: int) -> Code:
        """Code for what is done in each trip of a loop."""

    def numbers(
        self, body: Graph, consts: int, carries: int, test: Graph | None = None
    ) -> Numbers | None:
        """Code for the trips of a loop of a few numbers; None where it would not be faster."""


def runner_of(step: Step, compiler: Compiler, spare: list[Spare]) -> Runner:
    """What runs the branches or the loop of `step`, whose bodies are to be compiled.

    Checkpoints share what is `spare`, the workspace of the one that has run last.
    """
    if step.op is checkpoint:
        return partial(compiler.code(step.params["body"]).alone, spare)
    if step.op is cond:
        return _branches([compiler.code(branch) for branch in step.params["branches"]])
    return _Scan(compiler, step) if step.op is scan else _While(compiler, step)


def _branches(codes: Sequence[Code]) -> Runner:
    def run(arrays: Arrays, results: Arrays) -> None:
        index, *operands = map(_plain, arrays)
        codes[branch_taken(index, len(codes))].once(operands, results)

    return run


@final
class _Scan:
    """The trips of a scan: on Python's numbers where there is code for that, else on arrays."""

    def __init__(self, compiler: Compiler, step: Step) -> None:
        p = step.params
        self.consts, self.carries, self.counted = p["consts"], p["carries"], p["counted"]
        self.length, self.reverse = p["length"], p["reverse"]
        self.types = step.results[: self.carries]
        self.numbers = compiler.numbers(p["body"], self.consts, self.carries)
        self.compiler, self.body = compiler, p["body"]
        self.code = None if self.numbers is not None else self._compiled()

    def __call__(self, arrays: Arrays, results: Arrays) -> None:
        given = [_plain(a) for a in arrays]
        fixed, state, xs = parted(given[self.counted :], self.consts, self.carries)
        count = self.length
        if self.counted:
            count = max(int(given[0]), 0)
            count = count if self.length is TRIPS else min(count, self.length)
        ends = results[: self.carries]
        ys = [_room(y, count) for y in results[self.carries :]]
        if self.counted:
            if self.length is not TRIPS:
                for y in ys:
                    y[count:] = 0
            xs, ys = [x[:count] for x in xs], [y[:count] for y in ys]
        if self.reverse:
            xs, ys = [x[::-1] for x in xs], [y[::-1] for y in ys]
        done = 0
        if self.numbers is not None:
            done, state = self._numbered(self.numbers, fixed, state, xs, ys, count)
        if done == count:
            _copy(state, ends)
        else:
            xs, ys = [x[done:] for x in xs], [y[done:] for y in ys]
            self._rest(fixed, state, xs, ys, ends, count - done)

    def _numbered(
        self, numbers: Numbers, fixed: Arrays, state: Arrays, xs: Arrays, ys: Arrays, count: int
    ) -> tuple[int, list[Array]]:
        """Trips on numbers: how many, and what is carried after these.

        Where results would be special values these trips are left to be made on arrays.
        """
        plain, carried = _lists(fixed), _lists(state)
        for start in range(0, count, _SOME):
            part = slice(start, min(start + _SOME, count))
            rows = [range(part.start, part.stop), *[_rows_of_numbers(x[part]) for x in xs]]
            found = numbers(plain, carried, rows)
            if found is None:
                return start, _arrays(carried, self.types)
            carried = found[0]
            _stack(found[1], [y[part] for y in ys])
        return count, _arrays(carried, self.types)

    def _rest(
        self, fixed: Arrays, state: Arrays, xs: Arrays, ys: Arrays, ends: Arrays, count: int
    ) -> None:
        """Trips on arrays, one at least. Carries go to and fro between two arrays each."""
        code = self.code
        if code is None:
            code = self.code = self._compiled()
        spare = _made(self.types) if count > 1 else list(ends)
        one, other = (ends, spare) if count % 2 else (spare, ends)
        to_and_fro = cycle([(*one, *other), (*other, *one)])
        phases = chain([(*state, *one)], to_and_fro)
        rows = [range(count), phases, *map(_rows, xs), *map(_rows, ys)]
        workspace = code.workspace()
        if code.trips is not None:
            code.trips(workspace, fixed, rows)
        else:
            given = len(xs)
            for _, both, *more in zip(*rows, strict=False):
                operands = [*fixed, *both[: self.carries], *more[:given]]
                code.trip(workspace, operands, [*both[self.carries :], *more[given:]])
        code.give_back(workspace)

    def _compiled(self) -> Code:
        return self.compiler.trips(self.body, self.consts, self.carries)


@final
class _While:
    """The trips of a loop that ends by a test."""

    def __init__(self, compiler: Compiler, step: Step) -> None:
        p = step.params
        self.consts, self.limit = p["consts"], p["limit"]
        self.carries = len(step.operands) - self.consts
        self.types = step.results[: self.carries]
        self.numbers = compiler.numbers(p["body"], self.consts, self.carries, p["test"])
        self.compiler, self.test, self.body = compiler, p["test"], p["body"]
        self.codes = None if self.numbers is not None else self._compiled()

    def __call__(self, arrays: Arrays, results: Arrays) -> None:
        given = [_plain(a) for a in arrays]
        fixed, state = given[: self.consts], given[self.consts :]
        ends, ys = results[: self.carries], results[self.carries + 1 :]
        trips, ended = 0, False
        if self.numbers is not None:
            trips, ended, state = self._numbered(self.numbers, fixed, state, ys)
        if not ended:
            trips, state = self._rest(fixed, state, ys, trips)
        _copy(state, ends)
        results[self.carries][...] = trips
        if self.limit is not None:
            for y in ys:
                y[trips:] = 0

    def _numbered(
        self, numbers: Numbers, fixed: Arrays, state: Arrays, ys: Arrays
    ) -> tuple[int, bool, list[Array]]:
        """Trips on numbers: how many, whether these are all, and what is carried after them."""
        plain, carried = _lists(fixed), _lists(state)
        trips, ended = 0, self.limit == 0
        while not ended:
            some = _SOME if self.limit is None else min(_SOME, self.limit - trips)
            found = numbers(plain, carried, [range(some)])
            if found is None:
                break
            carried, stacks, made, ended = found
            _stack(stacks, [_go_on(y, trips + made)[trips:] for y in ys])
            trips += made
            ended = ended or trips == self.limit
        return trips, ended, _arrays(carried, self.types)

    def _rest(
        self, fixed: Arrays, state: list[Array], ys: Arrays, trips: int
    ) -> tuple[int, list[Array]]:
        """Trips on arrays, from that number on: how many there are in all, and what is carried."""
        if self.codes is None:
            self.codes = self._compiled()
        test, code = self.codes
        one, other = _made(self.types), _made(self.types)
        asking, workspace = test.workspace(), code.workspace()
        truth = np.empty((), np.bool_)
        while self.limit is None or trips < self.limit:
            test.trip(asking, [*fixed, *state], [truth])
            if not truth:
                break
            code.trip(workspace, [*fixed, *state], [*one, *[_row(y, trips) for y in ys]])
            state, one, other = one, other, one
            trips += 1
        test.give_back(asking)
        code.give_back(workspace)
        return trips, state

    def _compiled(self) -> tuple[Code, Code]:
        return self.compiler.code(self.test), self.compiler.code(self.body)


def _rows(stack: Array) -> Iterable[Array]:
    """The rows of a stack, as arrays."""
    if stack.ndim > 1:
        return stack
    return (stack[k, ...] for k in range(len(stack)))


def _rows_of_numbers(stack: Array) -> list[Any]:
    """Of each row its number, or a list of its numbers."""
    rows, size = len(stack), stack[0].size
    found: list[Any] = stack.reshape((rows, size) if size > 1 else (rows,)).tolist()
    return found


def _stack(lists: Sequence[list[Any]], ys: Arrays) -> None:
    """Write lists of numbers into arrays; floats are packed in a third of NumPy's time."""
    for found, y in zip(lists, ys, strict=True):
        if y.dtype == np.float64 and y.flags.c_contiguous and len(found) == y.size:
            pack_into(f"{len(found)}d", y.data, 0, *found)
        elif len(y):
            y[...] = np.array(found).reshape(y.shape)


def _lists(arrays: Arrays) -> list[list[Any]]:
    return [a.ravel().tolist() for a in arrays]


def _arrays(lists: Sequence[list[Any]], types: Sequence[TensorType]) -> list[Array]:
    pairs = zip(lists, types, strict=True)
    return [np.array(found, t.dtype).reshape(t.shape) for found, t in pairs]


def _plain(array: Any) -> Array:
    """The elements in row-major order, as bodies take them."""
    return array.rows if type(array) is Growing else np.asarray(array, order="C")


def _room(stack: Any, count: int) -> Array:
    """A stack that so many rows are written into."""
    return stack.room(count) if type(stack) is Growing else stack


def _go_on(stack: Any, count: int) -> Array:
    """So many rows, of which the first ones have been written."""
    return (stack.go_on(count) if type(stack) is Growing else stack)[:count]


def _row(stack: Any, k: int) -> Array:
    """The place of row `k`, where those before have been written."""
    return stack.row(k) if type(stack) is Growing else stack[k, ...]


def _made(types: Sequence[TensorType]) -> list[Array]:
    return [np.empty(t.shape, t.dtype) for t in types]


def _copy(arrays: Arrays, results: Arrays) -> None:
    for array, result in zip(arrays, results, strict=True):
        result[...] = array
