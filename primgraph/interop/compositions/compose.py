"""Pass that replaces primitives by compositions of others."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from primgraph.interop.compositions import integers, spectra, systems  # noqa: F401
from primgraph.interop.compositions.complex_numbers import compute_by_parts, splits
from primgraph.interop.compositions.table import COMPOSITIONS, has_composition
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, map_bodies
from primgraph.ir.params import bits
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.ir.slices import drop_formal
from primgraph.operators.variable import Variable
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up


def compose(graph: Graph, has_word: Callable[[Equation], bool]) -> Graph:
    """Replace primitives without a word by compositions, in which others may be replaced, too.

    Primitives that have no composition stay. An error at run time, such as that of a singular
    matrix, becomes NaN or infinity.
    """
    parts: dict[Hashable, Graph] = {}

    def rewrite(graph: Graph) -> Graph:
        builder, moved = rebuild(graph)
        for eqn in graph.body:
            if has_word(eqn) or not (has_composition(eqn) or splits(eqn)):
                copy(builder, map_bodies(eqn, rewrite), moved)
                continue
            key = eqn.op, tuple([v.type for v in eqn.inputs]), bits(eqn.params)
            if key not in parts:
                parts[key] = rewrite(_composed(eqn))
            part = parts[key]
            inner = {v: moved[w] for v, w in zip(part.inputs, eqn.inputs, strict=True)}
            builder.add_all(part.body, inner, eqn.source or NOWHERE)
            results = [inner.get(v, v) for v in part.outputs]
            moved |= zip(eqn.outputs, results, strict=True)
        return builder.graph([moved[v] for v in graph.outputs])

    found = rewrite(graph)
    return clean_up(found) if parts else graph


def _composed(eqn: Equation) -> Graph:
    """Return the graph of the composition, for operands of the same types."""
    builder = Builder(eqn.op.name, source=eqn.source or NOWHERE)
    with builder:
        operands = [Variable(builder, builder.input(v.type)) for v in eqn.inputs]
        if has_composition(eqn):
            found = COMPOSITIONS[eqn.op][0](*operands, **eqn.kwargs)
        else:
            found = compute_by_parts(eqn, operands)
    results = found if isinstance(found, tuple) else (found,)
    return drop_formal(clean_up(lower(builder.graph([x.value for x in results]))))
