"""The passes of `pg.compile`, in order."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection
from functools import cache, partial
from importlib import import_module
from typing import final

from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError
from primgraph.ir.facts.passes import BY_ORDER, SOLVES, SPECTRUM, STRUCTURED
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Graph
from primgraph.primitives.elementwise import is_addition
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.rewrite.rule import LEVELS, check_level


def _has_bodies(graph: Graph) -> bool:
    return graph.has_bodies


def _has_spectra(graph: Graph) -> bool:
    return any(op.fact(SPECTRUM) for op in graph.ops)


def _has_systems(graph: Graph) -> bool:
    return any(op.fact(STRUCTURED) for op in graph.ops)


def _has_solves(graph: Graph) -> bool:
    return any(op.fact(SOLVES) for op in graph.ops)


def may_have_loops(graph: Graph) -> bool:
    """Return whether `graph` may have Python loops that `vectorize_stacks` finds."""
    if len(graph.body) < LEAST_OF_LOOP:
        return False
    if max(map(len, [eqn.inputs for eqn in graph.body])) >= LEAST_OF_LOOP:
        return True
    return sum(map(is_addition, graph.body)) >= LEAST_OF_LOOP


def _has_sorts(graph: Graph) -> bool:
    return any(op.fact(BY_ORDER) for op in graph.ops)


@final
@dataclass(frozen=True, slots=True)
class Pass:
    """A step of the pipeline: a function from a graph to a graph, and when it runs.

    It runs at `level` and at looser levels, for graphs that it `applies` to; with None, for all. If
    it changes the graph and `cleans` is set, `clean_up` follows.
    """

    function: Callable[..., Graph]
    level: str = "exact"
    applies: Callable[[Graph], bool] | None = None
    cleans: bool = True

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", self.function))

    def bound(self, math: str) -> Callable[..., Graph]:
        """Return the function, with `math` if it has a parameter of that name."""
        return partial(self.function, math=math) if _takes_level(self.function) else self.function


@cache
def _takes_level(function: Callable[..., Graph]) -> bool:
    return "math" in inspect.signature(function).parameters


def _late(module: str, name: str) -> Callable[..., Graph]:
    """Return the pass of that name, whose module is imported when it first runs."""

    def run(graph: Graph, math: str = "exact") -> Graph:
        function: Callable[..., Graph] = getattr(import_module(module), name)
        return function(graph, math=math) if _takes_level(function) else function(graph)

    run.__name__ = run.__qualname__ = name
    return run


_CLEAN_UP = "clean_up"
# Python loops of fewer steps are left as they were recorded.
LEAST_OF_LOOP = 32
# Code generation takes their results only.
_REQUIRED = ("lower", "expand_solutions")

# The pipeline; docs/guide/passes.md describes each pass.
PASSES: list[Pass] = [
    Pass(lower, cleans=False),
    Pass(
        _late("primgraph.transforms.loops.implicit_solution", "expand_solutions"),
        applies=_has_bodies,
        cleans=False,
    ),
    Pass(
        _late("primgraph.transforms.vectorize_stacks", "vectorize_stacks"),
        applies=may_have_loops,
        cleans=False,
    ),
    Pass(clean_up),
    Pass(
        _late("primgraph.transforms.optimize.matrix_structure", "structure"), applies=_has_systems
    ),
    Pass(
        _late("primgraph.transforms.optimize.drop_eigenvectors", "drop_eigenvectors"),
        applies=_has_spectra,
        cleans=False,
    ),
    Pass(_late("primgraph.transforms.loops.split_loops", "split_loops"), applies=_has_bodies),
    Pass(_late("primgraph.transforms.optimize.join_solves", "join_solves"), applies=_has_solves),
    Pass(_late("primgraph.transforms.join_sorts", "join_sorts"), applies=_has_sorts, cleans=False),
    Pass(_late("primgraph.transforms.optimize.join_products", "join_products"), "fast"),
    Pass(_late("primgraph.transforms.optimize.matrix_chain", "matrix_chain"), "fast", cleans=False),
]

# Read once, so that all kernels of a process, which are cached by graphs before the passes, agree.
_SKIPPED_ALWAYS = tuple(os.environ.get("PRIMGRAPH_SKIP_PASSES", "").replace(",", " ").split())


@check_arguments
def add_pass(
    function: Callable[..., Graph],
    *,
    before: str | None = None,
    after: str | None = None,
    level: str = "exact",
) -> None:
    """Add a pass to `pg.compile`, directly before or after the pass of a name.

    `function` maps a graph to one that computes the same at `level`, and is left out at stricter
    levels. If it has a parameter `math`, it is given the level of the compilation. `clean_up`
    follows where it changes the graph. It does not see graphs that are differentiated, only those
    that are compiled, and no kernel that exists already.

    Raises `ArgumentError` for a second pass of one name, for an unknown name or level, and unless
    exactly one of `before` and `after` is given.

    >>> from primgraph.extend import add_pass, primitives_only, transform
    >>> @transform(requires=(primitives_only,), ensures=(primitives_only,))
    ... def my_package_outputs_only(graph):
    ...     return pg.transforms.dead_code(graph)
    >>> add_pass(my_package_outputs_only, after="clean_up")
    """
    check_level(level)
    added, names = Pass(function, level), pass_names()
    if added.name in names:
        raise ArgumentError(f"there is a pass {added.name!r} already", hint="name yours otherwise")
    if (before is None) == (after is None):
        raise ArgumentError("add_pass takes one of before and after", hint='after="clean_up"')
    place = before if after is None else after
    _require_known([str(place)])
    PASSES.insert(names.index(str(place)) + (after is not None), added)


def pass_names() -> list[str]:
    """Return the names of the passes of `pg.compile`, in order.

    >>> from primgraph.extend import pass_names
    >>> pass_names()[:3]
    ['lower', 'expand_solutions', 'vectorize_stacks']
    """
    return [step.name for step in PASSES]


def _require_known(names: Collection[str]) -> None:
    known = pass_names()
    for name in names:
        if name not in known:
            raise ArgumentError(f"there is no pass {name!r}", hint=f"passes: {', '.join(known)}")


def skipped(skip: Collection[str]) -> frozenset[str]:
    """Return the names of passes to leave out: `skip`, and those of $PRIMGRAPH_SKIP_PASSES.

    Raises `ArgumentError` for unknown names, and for passes that code generation needs.
    """
    if isinstance(skip, str):
        raise ArgumentError(f"skip is a list of names, not {skip!r}", hint=f"skip=[{skip!r}]")
    names = frozenset((*_SKIPPED_ALWAYS, *skip))
    if not names:
        return names
    _require_known(names)
    for name in _REQUIRED:
        if name in names:
            raise ArgumentError(f"{name} can't be skipped: there is no code for what it replaces")
    return names


def optimize_graph(graph: Graph, math: str = "exact", skip: Collection[str] = ()) -> Graph:
    """Apply the passes that hold at level `math` to `graph`, but those in `skip`."""
    check_level(math)
    left_out = skipped(skip)
    levels = LEVELS[: LEVELS.index(math) + 1]

    def clean(graph: Graph) -> Graph:
        return graph if _CLEAN_UP in left_out else clean_up(graph, math, last=True)

    # Loops merge and split while they compute the same, before looser rules, which depend on the
    # readers of values, change them in different ways.
    looser = math != "exact" and graph.has_bodies
    plain = optimize_graph(graph, skip=skip) if looser else graph
    for step in tuple(PASSES):
        if step.name in left_out or step.level not in levels:
            continue
        if step.applies is not None and not step.applies(plain):
            continue
        if step.name == _CLEAN_UP:
            plain = clean(plain)
            continue
        found = step.bound(math)(plain)
        plain = clean(found) if step.cleans and found != plain else found
    return plain.in_form(graph.form).titled(graph.titles)
