"""Executor of Paddle's static mode: feeds and fetches, by variable or name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Set
from typing import Any, final
from weakref import WeakKeyDictionary

from primgraph.compat.paddle.core.assignments import current
from primgraph.compat.paddle.core.program import building_program
from primgraph.compat.paddle.dynamic import as_tensor
from primgraph.compat.paddle.framework import CPUPlace
from primgraph.compat.paddle.static.backward import gradient_named
from primgraph.compat.paddle.static.scopes import GlobalScope, current_scope
from primgraph.errors import ArgumentError, FeedError
from primgraph.ir.frontend.signature import checked_methods
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, belongs_to_program, program_of
from primgraph.program.run import Executor as _Executor
from primgraph.program.scope import Scope as _Scope

# Functions to call before each run of a program, with the scope of the run.
before_runs: WeakKeyDictionary[Program, list[Callable[[_Scope], Any]]] = WeakKeyDictionary()


class MissingFeedError(FeedError, KeyError):
    """An input that a run needs is not fed."""

    __str__ = FeedError.__str__


@final
class CompiledProgram:
    """A program, which runs as it does without this: programs are always compiled.

    >>> program = paddle.static.Program()
    >>> paddle.static.CompiledProgram(program).program is program
    True
    """

    def __init__(self, program_or_graph: Any, build_strategy: Any = None) -> None:
        self.program = program_or_graph


class BuildStrategy:
    """Options of compilation, which have no effect.

    >>> strategy = paddle.static.BuildStrategy()
    >>> strategy.fuse_elewise_add_act_ops = True
    """

    __slots__ = ("__dict__",)


class ExecutionStrategy(BuildStrategy):
    """Options of runs, which have no effect.

    >>> strategy = paddle.static.ExecutionStrategy()
    >>> strategy.num_threads = 1
    """

    __slots__ = ()


@final
@checked_methods(late=True)
class Executor:
    """`pg.Executor` with the arguments of Paddle's.

    Of `place` only the processor exists. Raises `ArgumentError` for another one.

    >>> paddle.enable_static()
    >>> main = paddle.static.Program()
    >>> with paddle.static.program_guard(main):
    ...     x = paddle.static.data("x", [3])
    ...     y = paddle.sum(x * x)
    ...
    >>> exe = paddle.static.Executor()
    >>> exe.run(main, feed={"x": np.ones(3, np.float32)}, fetch_list=[y])
    [array(3., dtype=float32)]
    """

    def __init__(self, place: CPUPlace | None = None) -> None:
        if not isinstance(place, CPUPlace | None):
            raise ArgumentError(f"programs run on CPUPlace() only, not on {place!r:.60}")
        self.place = CPUPlace()

    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Any = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        use_prune: bool = False,
    ) -> list[Any]:
        """Compute what `fetch_list` names from `feed`, and make the program's updates.

        The program is the one being built unless given. A surplus name in `feed` is ignored,
        with a warning. A tuple in `fetch_list` is what `minimize` returned, which adds nothing
        to the results, or a pair of a parameter and its gradient. A variable of another program,
        such as the one of which this is a clone, stands for what has its name and type here.

        Programs are always kept compiled, and what neither the fetches nor the updates need is
        never run: the other arguments change nothing.
        Raises what `pg.Executor.run` does.
        """
        chosen = getattr(program, "program", program)
        chosen = building_program() if chosen is None else chosen
        where = current_scope() if scope is None else scope
        storage: Any = getattr(where, "storage", where)
        given = feed
        if isinstance(chosen, Program):
            if isinstance(where, GlobalScope):
                where.note(chosen)
            for prepare in before_runs.get(chosen, ()):
                prepare(chosen.scope if storage is None else storage)
        if isinstance(chosen, Program) and isinstance(feed, Mapping):
            surplus = [name for name in feed if name not in chosen.inputs]
            given = {name: array for name, array in feed.items() if name not in surplus}
            if surplus:
                names = ", ".join(map(repr, surplus))
                warnings.warn(f"the program has no inputs {names}: ignored", stacklevel=3)
        fetches = _in_program(chosen, _fetches(fetch_list))
        try:
            found = _Executor(storage).run(chosen, given, fetches)
        except FeedError as error:
            if isinstance(chosen, Program) and set(chosen.inputs) - set(given or ()):
                raise MissingFeedError(
                    error.message, origin=error.origin, hint=error.hint
                ) from None
            raise
        return found if return_numpy else [as_tensor(array) for array in found]

    def close(self) -> None:
        """Nothing has to be released."""


def _fetches(fetch_list: Any) -> list[Any] | None:
    """The fetches in the forms that `pg.Executor.run` takes."""
    if fetch_list is None:
        return None
    if isinstance(fetch_list, Variable | str):
        return [fetch_list]
    if isinstance(fetch_list, Mapping | Set):
        raise ArgumentError(f"fetch_list is a list of variables or names, not {fetch_list!r:.60}")
    found: list[Any] = []
    for item in fetch_list:
        if not isinstance(item, tuple):
            found.append(item)
        elif item and all(isinstance(v, Variable) for v in item):
            found.append(list(item))
        elif not item or not isinstance(item[0], list):
            raise ArgumentError(
                f"a tuple in fetch_list is what minimize returned, not {item!r:.60}"
            )
    return found


def _assigned(item: Any) -> Any:
    """Return what a fetch stands for; a state is read after the run, which stores its value."""
    return item if isinstance(item, Variable) and _is_state(item) else current(item)


def _is_state(variable: Variable) -> bool:
    return belongs_to_program(variable) and variable.value in program_of(variable).states


def _in_program(program: Any, fetches: list[Any] | None) -> list[Any] | None:
    """The fetches with variables of other programs replaced by those of the same name."""
    if fetches is None or not isinstance(program, Program):
        return fetches
    found: list[Any] = []
    for item in map(_assigned, fetches):
        if isinstance(item, list):
            found.append(_in_program(program, item))
        elif isinstance(item, str) and program.variable(item) is None:
            gradient = gradient_named(program, item)
            found.append(item if gradient is None else gradient)
        elif isinstance(item, Variable) and item.recorder is not program.builder:
            here = program.variable(item.name)
            found.append(item if here is None or here.type != item.type else here)
        else:
            found.append(item)
    return found
