"""Executor: feed, run and store state, by a plan that is compiled once for each fetch list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Never, TypeAlias, final, overload

import numpy as np

from primgraph.codegen import Kernel
from primgraph.defaults import target_of
from primgraph.errors import ArgumentError, FeedError, OptionError, RunError, near_matches
from primgraph.ir.frontend.containers import flatten_value, leaves_for, unflatten_value
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.graph import Value
from primgraph.operators.variable import Variable
from primgraph.program.finite import check_finite
from primgraph.program.inputs import check_names, check_sizes, misfit_lines, read_states
from primgraph.program.plans import Plan, SizedPlan, build_plan
from primgraph.program.program import Program, default_main_program
from primgraph.program.scope import Scope, register_storing
from primgraph.program.sized import GENERIC, KEPT, Policy
from primgraph.transforms.rewrite.rule import check_level

Array: TypeAlias = "np.ndarray[Any, Any]"
Fetch: TypeAlias = Variable | str | Sequence["Variable | str"]


_FLAG: object = bool

# Maximum number of restarts of a run whose states are changed by runs inside it.
_TRIES = 10


@final
@checked_methods("run")
class Executor:
    """Runner of programs. Kernels are kept with the program they come from.

    `scope` is where states are read and written, by default each program's own. `math` is "exact",
    "signs", "finite" or "fast", and `target` "numpy" or "c", as for `compile`. New symbolic sizes
    run code for all sizes. Sizes that come again get a kernel of their own, kept for the last
    `kept_sizes` sets; `new_sizes="compile"` compiles for new sizes at once.

    >>> with pg.Program() as program:
    ...     y = 2.0 * pg.data("x", (2,))
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [y])
    [array([2., 4.])]
    """

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        math: str = "exact",
        target: str | None = None,
        kept_sizes: int = KEPT,
        new_sizes: str = GENERIC,
    ) -> None:
        check_level(math)
        self.scope = scope
        self.math = math
        self.target = target_of(target)
        self._policy = Policy.from_options(kept_sizes, new_sizes)

    def __repr__(self) -> str:
        where = "of each program" if self.scope is None else repr(self.scope)
        return f"<Executor: scope {where}, math {self.math!r}>"

    @overload
    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
        out: Sequence[np.ndarray[Any, Any] | None] | None = None,
        borrow: bool = False,
        debug: str | None = None,
        **unknown: Never,
    ) -> list[np.ndarray[Any, Any]]: ...
    @overload
    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Mapping[str, Any] = ...,
        *,
        update: bool = True,
        out: Any = None,
        borrow: bool = False,
        debug: str | None = None,
        **unknown: Never,
    ) -> dict[str, Any]: ...
    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Fetch] | Mapping[str, Any] | None = None,
        *,
        update: bool = True,
        out: Any = None,
        borrow: bool = False,
        debug: str | None = None,
        **unknown: Never,
    ) -> list[np.ndarray[Any, Any]] | dict[str, Any]:
        """Compute what `fetch_list` names from the arrays in `feed`, and update the states.

        `program` is the default main program unless given. `feed` maps names of inputs to arrays of
        exactly the declared shapes, of dtypes that convert safely. `fetch_list` has variables, or
        names of inputs and named variables; nested lists are flattened. It may be a dict of these,
        of lists and of dicts: then results and `out` are dicts with the same keys. Only what the
        fetches and the program's updates need is computed, and has to be fed. The first run for a
        list of fetches compiles a kernel; later ones reuse it. The run of a startup program resets
        the states that were created under it to their initial values.

        A program with updates, such as those of an optimizer, makes them in every run. To compute
        without training, use `update=False`, or `program.clone(for_test=True)`, in which dropout
        and normalization are off too. Results, views of states included, are from before the
        updates; a state that is fetched by its own handle or name is from after. All updates become
        visible at once, or none if the run fails or is interrupted. Runs that update one scope wait
        for each other.

        Return one new array for each fetch. `out` has an array of exactly the fetch's type, or
        None, for each, to write the result into. With `borrow`, the next run in this thread that
        borrows the same fetches overwrites the arrays, unless it is given them.

        With `debug="nan"` the equations are first evaluated one by one, as written. The first that
        makes a NaN or an infinity from finite operands ends the run with a `NumericalError`, before
        anything is stored; see `check_finite`. This takes the time of one more, slow run.

        Raises `FeedError` for a missing, unknown or unfitting feed and for an unknown fetch,
        `ArgumentError` for other objects.
        """
        if fetch_list.__class__ is not list and isinstance(fetch_list, Mapping):
            options = {"update": update, "borrow": borrow, "debug": debug, **unknown}
            return _run_tree(self, program, feed, fetch_list, out, options)
        if unknown or debug is not None:
            _require_options(unknown, debug)
        if update.__class__ is not _FLAG or borrow.__class__ is not _FLAG:
            _require_flags(update=update, borrow=borrow)
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise ArgumentError(
                f"run takes a Program, not {type(program).__name__}",
                hint="write run(program, feed, fetch_list)",
            )
        given = {} if feed is None else feed
        if given.__class__ is not dict and not isinstance(given, Mapping):
            raise ArgumentError(f"feed is a mapping of names, not {type(feed).__name__}")
        if program.starts:
            program.start(self.scope)
        plan = self._plan(program, fetch_list, update)
        scope = program.scope if self.scope is None else self.scope
        is_plain = out is None and not borrow and debug is None
        if is_plain and given.__class__ is dict and isinstance(plan, Plan):
            found = plan.plain_results(given, scope)
            if found is not None:
                return found
        if given.keys() != plan.needed:
            check_names(program, given, plan.names)
            if isinstance(plan, SizedPlan):
                check_sizes(program, given)
        if isinstance(plan, SizedPlan):
            plan = plan.plan_for(program, given)
        wanted = (None if out is None else plan.extend_out(out), bool(borrow), debug is not None)
        try:
            if not plan.changed:
                return _read_only(program, plan, given, scope, *wanted)
            with scope.turn():
                return _run_plan(program, plan, given, scope, *wanted)
        except FeedError as error:
            raise error.located(misfit_lines(program, plan.names, plan.types, given)) from None

    def kernel(
        self,
        program: Program,
        fetch_list: Sequence[Fetch],
        *,
        update: bool = True,
        sizes: Mapping[str, int] | None = None,
    ) -> Kernel:
        """Return a kernel that computes what `run` does for these fetches.

        Its inputs are the feeds and the states; new values of states follow the fetches in its
        results. `run` computes values that depend only on unchanged states once, by a separate
        kernel; here they are part of the kernel.

        Of a program with sizes it is the kernel for `sizes`, which names them all; without these
        the one for all sizes, which takes arrays of sizes that fit each other.

        Raises `UnknownSizeError` where code for all sizes would have to know more of them.
        """
        return self._plan_at(program, fetch_list, update, sizes).pipeline.whole

    def repeated_kernel(
        self,
        program: Program,
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
        sizes: Mapping[str, int] | None = None,
    ) -> Kernel:
        """Return the kernel that each run for these fetches calls.

        Where something depends on states only that stay as they are, that is an input of it. Of a
        program with sizes it is the kernel for `sizes`, as in `kernel`.
        """
        return self._plan_at(program, fetch_list, update, sizes).kernel

    def general_kernel(
        self, program: Program, fetch_list: Sequence[Fetch] | None = None, *, update: bool = True
    ) -> Kernel | None:
        """Return the size-generic kernel that runs for these fetches start with; None for a program
        without symbolic sizes.

        Raises `UnknownSizeError` if its code would need a size as a number.
        """
        plan = self._plan(program, fetch_list, update)
        return plan.plans.whole.kernel if isinstance(plan, SizedPlan) else None

    def sizes(
        self,
        program: Program,
        feed: Mapping[str, Any],
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
    ) -> Mapping[str, int]:
        """Return the sizes of a feed for these fetches, by name; empty without symbolic sizes."""
        plan = self._plan(program, fetch_list, update)
        check_names(program, feed, plan.names)
        return plan.plan_for(program, feed, own=True).sizes if isinstance(plan, SizedPlan) else {}

    def arguments(
        self,
        program: Program,
        feed: Mapping[str, Any],
        fetch_list: Sequence[Fetch] | None = None,
        *,
        update: bool = True,
    ) -> list[Any]:
        """Return the arguments of a run for the kernel of `kernel`, with copies of states.

        For a program with symbolic sizes, the kernel is that for the sizes of the feed.
        """
        plan = self._plan(program, fetch_list, update)
        check_names(program, feed, plan.names)
        if isinstance(plan, SizedPlan):
            plan = plan.plan_for(program, feed, own=True)
        scope = program.scope if self.scope is None else self.scope
        reading = read_states(program, scope, plan.states)
        fed = plan.feed_arrays(feed)
        arrays = plan.arguments(fed, reading.version)
        given = set(map(id, fed))
        return [a if id(a) in given else a.copy() for a in arrays]

    def close(self) -> None:
        """Do nothing; exists for code that closes its executor."""

    def _plan_at(
        self,
        program: Program,
        fetch_list: Sequence[Fetch] | None,
        update: bool,
        sizes: Mapping[str, int] | None,
    ) -> Plan:
        plan = self._plan(program, fetch_list, update)
        if not isinstance(plan, SizedPlan):
            return plan
        return plan.plans.whole if sizes is None else plan.plans.for_sizes(sizes)

    def _plan(
        self, program: Program, fetch_list: Sequence[Fetch] | None, update: bool = True
    ) -> Plan | SizedPlan:
        values = _values(program, fetch_list)
        updates = program.updates if update else _NONE
        key = (values, update, self.math, self.target, self._policy)
        known: tuple[dict[Value, Value], Plan | SizedPlan] | None = program.kernels.get(key)
        if known is None or known[0] != updates:
            known = (dict(updates), build_plan(program, values, updates, key[2:4], self._policy))
            program.kernels[key] = known
        return known[1]


def _run_tree(
    executor: Executor,
    program: Program | None,
    feed: Mapping[str, Any] | None,
    fetch_list: Mapping[str, Any],
    out: Any,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Run with fetches and results in nested containers."""
    tree, listed = flatten_value(fetch_list, lambda item: item is None)
    given = None if out is None else leaves_for(tree, out)
    found = executor.run(program, feed, listed, out=given, **options)
    named: dict[str, Any] = unflatten_value(tree, iter(found))
    return named


# Empty updates, for runs with `update=False`.
_NONE: dict[Value, Value] = {}


def _read_only(
    program: Program,
    plan: Plan,
    given: Mapping[str, Any],
    scope: Scope,
    out: list[Any] | None,
    borrow: bool,
    debug: bool,
) -> list[Array]:
    """Run a plan that changes no state."""
    reading = read_states(program, scope, plan.states)
    try:
        arrays = plan.arguments(plan.feed_arrays(given), reading.version)
        if debug:
            check_finite(plan.graph, *arrays[: len(plan.graph.inputs)])
        found = None
        if out is None and not borrow and plan.direct is not None:
            found = plan.direct(*arrays)
        if found is None:
            found = plan.kernel(*arrays, out=out, borrow=borrow)
        return found
    finally:
        # An exception that the user keeps refers to this frame, and would keep the arrays
        # read-only.
        del reading


@register_storing
def _run_plan(
    program: Program,
    plan: Plan,
    given: Mapping[str, Any],
    scope: Scope,
    out: list[Any] | None,
    borrow: bool,
    debug: bool,
) -> list[Array]:
    """Run a plan, store all updated states, and return the results.

    It restarts if a nested run, in a function that the program calls or in a signal handler, has
    changed the scope meanwhile.
    """
    changed, fed = plan.changed, plan.feed_arrays(given)
    for _ in range(_TRIES):
        before, first = scope.begin()
        if before.setting.seen is not plan.states:
            read_states(program, scope, plan.states)
            before, first = scope.begin()
        arrays = plan.arguments(fed, before)
        if debug:
            check_finite(plan.graph, *arrays[: len(plan.graph.inputs)])
        new = scope.spare(changed)
        results = plan.kernel.fill(arrays, new, out=out, borrow=borrow)
        if scope.store(before, first, changed, new):
            del results[plan.fetched :]
            return results
    raise RunError(
        f"the states of {program.name} change in every run, before it ends",
        hint="a function that the program calls, or a handler of signals, must not train it",
    )


def _require_options(unknown: Mapping[str, Any], debug: Any) -> None:
    """Raise for unknown arguments of `run`, and for unknown debug modes."""
    if unknown:
        name = next(iter(unknown))
        known = ("program", "feed", "fetch_list", "update", "out", "borrow", "debug")
        raise ArgumentError(
            f"run: there is no argument {name!r}",
            hint=f"{near_matches(name, known)} it takes {', '.join(known)}".strip(),
        )
    if debug != "nan":
        raise OptionError(f"debug={debug!r:.60} is not known", hint="choose 'nan', or None")


def _require_flags(**flags: Any) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise ArgumentError(f"run: {name} is True or False, not {flag!r:.60}")


def _values(program: Program, fetch_list: Sequence[Any] | None) -> tuple[Value, ...]:
    """Return the fetched values. A fast path handles lists of variables."""
    builder, values = program.builder, []
    if fetch_list.__class__ is list:
        if len(fetch_list) == 1:
            (item,) = fetch_list
            if item.__class__ is Variable and item.recorder is builder:
                return (item.value,)
        for item in fetch_list:
            if item.__class__ is not Variable or item.recorder is not builder:
                break
            values.append(item.value)
        else:
            return tuple(values)
    return tuple(_fetched_value(program, item) for item in _flat(fetch_list))


def _flat(items: Sequence[Any] | None) -> Iterable[Any]:
    """Yield the items of a fetch list, with nested lists flattened.

    The result of `minimize`, a tuple that begins with a list, stands for the optimizer step, which
    every run takes, and yields nothing; its pairs can be fetched as a list.
    """
    if isinstance(items, Variable | str):
        given = repr(items) if isinstance(items, str) else items.value.hint or "y"
        raise ArgumentError(
            f"fetch_list is a list of variables or names, not {items!r:.60}",
            hint=f"write fetch_list=[{given}]",
        )
    if isinstance(items, Mapping | Set) or not isinstance(items, Iterable | None):
        raise ArgumentError(f"fetch_list is a list of variables or names, not {items!r:.60}")
    for item in () if items is None else items:
        if isinstance(item, tuple) and item and isinstance(item[0], list):
            continue
        if isinstance(item, list | tuple):
            yield from item
        else:
            yield item


def _fetched_value(program: Program, item: Any) -> Value:
    if isinstance(item, Variable):
        if item.recorder is not program.builder:
            raise FeedError(
                f"cannot fetch {item!r}: it belongs to another program, "
                f"{getattr(item.recorder, 'title', 'a graph')}, not to {program.builder.title}",
                hint=f"fetch it by its name, {item.name!r}, if this program is a clone of that one",
            )
        return item.value
    if isinstance(item, str):
        variable = program.variable(item)
        if variable is None:
            names = program.builder.names
            there = ", ".join(map(repr, list(names)[:20])) + (", ..." if len(names) > 20 else "")
            hint = near_matches(item, names) or f"it has {there or 'no names yet'}"
            raise FeedError(f"cannot fetch {item!r}: the program has no such name", hint=hint)
        return variable.value
    if item is None:
        raise ArgumentError(
            "cannot fetch None",
            hint="a derivative is None where there is no path to the input: pg.explain(y, x) tells "
            "why; leave it out",
        )
    raise ArgumentError(
        f"cannot fetch a {type(item).__name__}: only variables and names",
        hint="lists in fetch_list are opened once, not twice"
        if isinstance(item, list | tuple)
        else "",
    )
