"""Runtime of branches and loops in planned code; their bodies are compiled once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, cycle
from struct import pack_into
from typing import Any, Protocol, TypeAlias, final

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.runtime.growing import Growing
from primgraph.ir.dims import TRIPS
from primgraph.ir.graph import Graph
from primgraph.ir.types import TensorType
from primgraph.primitives.control import Flow, branch_taken, split_operands

Array: TypeAlias = "np.ndarray[Any, Any]"
Arrays: TypeAlias = Sequence[Array]
# Runs a branch or a loop on arrays, and writes its results to others.
Runner: TypeAlias = Callable[[Arrays, Arrays], None]


# A code, and a workspace of it that is not in use.
Spare: TypeAlias = "tuple[Code, Any]"
# Runs iterations on lists of Python numbers, as `scalar_trips` generates it.
Numbers: TypeAlias = Callable[[Any, Any, Any], Any]
# Number of iterations whose rows are converted to lists of numbers at a time.
_SOME = 1024


@final
class Code:
    """A compiled body; each concurrent run has its own workspace.

    `run(workspace, arrays, results)` writes its results into arrays. `trips(workspace, fixed,
    rows)`, if any, runs all iterations of a loop. `scalar(*arrays)`, if any, is faster,
    and returns new results or None.
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
        """Return an unused workspace, to be given back."""
        try:
            return self._free.pop()
        except IndexError:
            return self._start()

    def release_workspace(self, workspace: Any) -> None:
        self._free.append(workspace)

    def once(self, arrays: Arrays, results: Arrays) -> None:
        """Run once."""
        workspace = self.workspace()
        self.trip(workspace, arrays, results)
        self.release_workspace(workspace)

    def run_once(self, spare: list[Spare], arrays: Arrays, results: Arrays) -> None:
        """Run once, and drop the workspace of the other code that `spare` holds."""
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
        """Run in a given workspace."""
        found = None if self.scalar is None else self.scalar(*arrays)
        if found is None:
            assert self.run is not None
            self.run(workspace, arrays, results)
            return
        for array, result in zip(found, results, strict=True):
            result[...] = array


class Compiler(Protocol):
    """Interface of the compiler of bodies, called when a body is first needed."""

    def code(self, body: Graph) -> Code:
        """Return the code of a branch or of a test."""

    def trips(self, body: Graph, consts: int, carries: int) -> Code:
        """Return the code of a loop body."""

    def numbers(
        self, body: Graph, consts: int, carries: int, test: Graph | None = None
    ) -> Numbers | None:
        """Return the scalar code of a loop body; None if it would not be faster."""


def runner_of(step: Step, compiler: Compiler, spare: list[Spare]) -> Runner:
    """Return the runner of the branches or the loop of `step`, whose bodies it compiles.

    Checkpoints share `spare`, the workspace of the last one that ran.
    """
    regions = step.regions
    assert regions is not None
    match regions.flow:
        case Flow.ONCE:
            return partial(compiler.code(regions.bodies[0]).run_once, spare)
        case Flow.CHOICE:
            return _branches([compiler.code(branch) for branch in regions.bodies])
        case Flow.ROWS:
            return _Scan(compiler, step)
        case Flow.TEST:
            return _While(compiler, step)


def _branches(codes: Sequence[Code]) -> Runner:
    def run(arrays: Arrays, results: Arrays) -> None:
        index, *operands = map(_plain, arrays)
        codes[branch_taken(index, len(codes))].once(operands, results)

    return run


@final
class _Scan:
    """Runner of a scan: on Python numbers if there is scalar code, else on arrays."""

    def __init__(self, compiler: Compiler, step: Step) -> None:
        p = step.params
        self.consts, self.carries, self.counted = p["consts"], p["carries"], p["counted"]
        self.length, self.reverse = p["length"], p["reverse"]
        self.types = step.results[: self.carries]
        self.numbers = compiler.numbers(p["body"], self.consts, self.carries)
        self.compiler, self.body = compiler, p["body"]
        self.code = None if self.numbers is not None else self._compile_bodies()

    def __call__(self, arrays: Arrays, results: Arrays) -> None:
        given = [_plain(a) for a in arrays]
        fixed, state, xs = split_operands(given[self.counted :], self.consts, self.carries)
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
            done, state = self._run_on_numbers(self.numbers, fixed, state, xs, ys, count)
        if done == count:
            _copy(state, ends)
        else:
            xs, ys = [x[done:] for x in xs], [y[done:] for y in ys]
            self._rest(fixed, state, xs, ys, ends, count - done)

    def _run_on_numbers(
        self, numbers: Numbers, fixed: Arrays, state: Arrays, xs: Arrays, ys: Arrays, count: int
    ) -> tuple[int, list[Array]]:
        """Run iterations on numbers; return their count and the carries after them.

        It stops before iterations whose results would be special values.
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
        """Run at least one iteration on arrays. Each carry alternates between two arrays."""
        code = self.code
        if code is None:
            code = self.code = self._compile_bodies()
        spare = _allocate_arrays(self.types) if count > 1 else list(ends)
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
        code.release_workspace(workspace)

    def _compile_bodies(self) -> Code:
        return self.compiler.trips(self.body, self.consts, self.carries)


@final
class _While:
    """Runner of a loop that ends by a test."""

    def __init__(self, compiler: Compiler, step: Step) -> None:
        p = step.params
        self.consts, self.limit = p["consts"], p["limit"]
        self.carries = len(step.operands) - self.consts
        self.types = step.results[: self.carries]
        self.numbers = compiler.numbers(p["body"], self.consts, self.carries, p["test"])
        self.compiler, self.test, self.body = compiler, p["test"], p["body"]
        self.codes = None if self.numbers is not None else self._compile_bodies()

    def __call__(self, arrays: Arrays, results: Arrays) -> None:
        given = [_plain(a) for a in arrays]
        fixed, state = given[: self.consts], given[self.consts :]
        ends, ys = results[: self.carries], results[self.carries + 1 :]
        trips, ended = 0, False
        if self.numbers is not None:
            trips, ended, state = self._run_on_numbers(self.numbers, fixed, state, ys)
        if not ended:
            trips, state = self._rest(fixed, state, ys, trips)
        _copy(state, ends)
        results[self.carries][...] = trips
        if self.limit is not None:
            for y in ys:
                y[trips:] = 0

    def _run_on_numbers(
        self, numbers: Numbers, fixed: Arrays, state: Arrays, ys: Arrays
    ) -> tuple[int, bool, list[Array]]:
        """Run iterations on numbers; return their count, whether the loop ended, the carries."""
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
        """Run the remaining iterations on arrays; return the total count and the carries."""
        if self.codes is None:
            self.codes = self._compile_bodies()
        test, code = self.codes
        one, other = _allocate_arrays(self.types), _allocate_arrays(self.types)
        asking, workspace = test.workspace(), code.workspace()
        truth = np.empty((), np.bool_)
        while self.limit is None or trips < self.limit:
            test.trip(asking, [*fixed, *state], [truth])
            if not truth:
                break
            code.trip(workspace, [*fixed, *state], [*one, *[_row(y, trips) for y in ys]])
            state, one, other = one, other, one
            trips += 1
        test.release_workspace(asking)
        code.release_workspace(workspace)
        return trips, state

    def _compile_bodies(self) -> tuple[Code, Code]:
        return self.compiler.code(self.test), self.compiler.code(self.body)


def _rows(stack: Array) -> Iterable[Array]:
    """Return the rows of a stack, as arrays."""
    if stack.ndim > 1:
        return stack
    return (stack[k, ...] for k in range(len(stack)))


def _rows_of_numbers(stack: Array) -> list[Any]:
    """Return the number, or the list of numbers, of each row."""
    rows, size = len(stack), stack[0].size
    found: list[Any] = stack.reshape((rows, size) if size > 1 else (rows,)).tolist()
    return found


def _stack(lists: Sequence[list[Any]], ys: Arrays) -> None:
    """Write lists of numbers into arrays; packing floats takes a third of NumPy's time."""
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
    """Return the elements in row-major order, as bodies take them."""
    return array.rows if type(array) is Growing else np.asarray(array, order="C")


def _room(stack: Any, count: int) -> Array:
    """Return a stack with space for `count` rows to be written."""
    return stack.room(count) if type(stack) is Growing else stack


def _go_on(stack: Any, count: int) -> Array:
    """Return `count` rows, of which the first ones have been written."""
    return (stack.go_on(count) if type(stack) is Growing else stack)[:count]


def _row(stack: Any, k: int) -> Array:
    """Return row `k`, after the rows before it have been written."""
    return stack.row(k) if type(stack) is Growing else stack[k, ...]


def _allocate_arrays(types: Sequence[TensorType]) -> list[Array]:
    return [np.empty(t.shape, t.dtype) for t in types]


def _copy(arrays: Arrays, results: Arrays) -> None:
    for array, result in zip(arrays, results, strict=True):
        result[...] = array
