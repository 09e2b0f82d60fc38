"""Orders of derivatives: which differentiation each equation of a picture belongs to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from primgraph.ir.frontend.gradient_names import Line
from primgraph.ir.frontend.result_names import UNTITLED, Title
from primgraph.ir.graph import Equation, Graph, Value


class Result(NamedTuple):
    """A derivative that is known: results of one differentiation have one `key`.

    `order` is how often something was differentiated to get it, as far as that is known.
    """

    key: Hashable
    order: int


def gradient_results(graph: Graph) -> dict[Value, Result]:
    """Return the results of `graph` that are gradients by its titles."""
    known = zip(graph.outputs, graph.titles, strict=False)
    return {v: Result(t[1:], t.order) for v, t in known if _is_gradient(t)}


def _is_gradient(title: Title) -> bool:
    return title is not UNTITLED and bool(title.by) and not title.state


def known_results(
    gradients: Mapping[Value, Value], targets: Mapping[Value, Value], lines: Mapping[Value, Line]
) -> dict[Value, Result]:
    """Return all derivatives that a builder knows; see `primgraph.ir.frontend.gradient_names`."""
    found = {
        v: Result((line.base, line.input, line.seed, line.order), line.order)
        for v, line in lines.items()
    }
    for gradient in gradients:
        # Those of gradients come after these: a chain is followed up to what is known.
        chain: list[Value] = []
        value: Value | None = gradient
        while value is not None and value in gradients and value not in found:
            chain.append(value)
            found[value] = Result(value, 0)
            value = targets.get(value)
        order = found[value].order if value in found and value not in chain else 0
        for value in reversed(chain):
            order += 1
            found[value] = Result(targets.get(value), order)
    return found


def orders_of(graph: Graph, results: Mapping[Value, Result]) -> dict[Equation, int]:
    """Return the order of each equation that is of a derivative.

    Sources say how often the line of an equation was differentiated, which is the order of what it
    computes at most: Taylor mode computes all orders at once, and the reverse sweep through a first
    derivative differentiates lines that had not been differentiated before. So what is computed for
    a known derivative, and for none before it, has the order of that derivative. Takes linear time.
    """
    derived = {
        eqn: max(eqn.source.order, 1)
        for eqn in graph.body
        if eqn.source is not None and eqn.source.is_derived and eqn.inputs
    }
    made = {v: (i, eqn) for i, eqn in enumerate(graph.body) for v in eqn.outputs}
    passes: dict[Hashable, list[Value]] = {}
    for value, result in results.items():
        if value in made:
            passes.setdefault(result.key, []).append(value)
    seen: set[Equation] = set()
    for values in sorted(passes.values(), key=lambda p: max(made[v][0] for v in p)):
        own, read = _exclusive([made[v][1] for v in values], made, seen)
        own = [eqn for eqn in own if eqn in derived]
        if not own:
            continue
        known = max(results[v].order for v in values)
        written = max(derived[eqn] for eqn in own)
        before = max((derived.get(eqn, 0) for eqn in read), default=0)
        # Where the derivatives before it are unknown, sources tell more of what is computed for it.
        if 0 < before >= max(known, written) - 1 or written < known:
            derived.update(dict.fromkeys(own, max(known, written)))
    for eqn in graph.body:
        if eqn in derived:
            # What takes part of a higher derivative belongs to no lower one.
            read_orders = (derived.get(made[v][1], 0) for v in eqn.inputs if v in made)
            derived[eqn] = max([derived[eqn], *read_orders])
    return derived


def _exclusive(
    roots: Sequence[Equation], made: Mapping[Value, tuple[int, Equation]], seen: set[Equation]
) -> tuple[list[Equation], list[Equation]]:
    """Return what `roots` need that was not seen so far, and what of the rest that reads."""
    own: list[Equation] = []
    read: dict[Equation, None] = {}
    waiting = list(roots)
    while waiting:
        eqn = waiting.pop()
        if eqn in seen:
            read[eqn] = None
            continue
        seen.add(eqn)
        own.append(eqn)
        waiting += [made[v][1] for v in eqn.inputs if v in made]
    mine = set(own)
    return own, [eqn for eqn in read if eqn not in mine]
