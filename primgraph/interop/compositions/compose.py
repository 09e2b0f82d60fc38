"""Pass that replaces primitives by compositions of others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import final

from primgraph.base.user_lines import Source
from primgraph.interop.compositions import integers, spectra, systems  # noqa: F401
from primgraph.interop.compositions.complex_numbers import compute_by_parts, splits
from primgraph.interop.compositions.table import COMPOSITIONS, has_composition, is_complex
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.params import bits
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.rebuild import NOWHERE, rebuild
from primgraph.ir.slices import drop_formal
from primgraph.operators.variable import Variable
from primgraph.primitives import parts
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.edits import dead_code

# The parts of complex numbers.
_PARTS: dict[Op, int] = {parts.real: 0, parts.imag: 1}


def compose(graph: Graph, has_word: Callable[[Equation], bool]) -> Graph:
    """Replace primitives without a word by compositions, in which others may be replaced, too.

    Primitives that have no composition stay. An error at run time, such as that of a singular
    matrix, becomes NaN or infinity.
    """
    known: dict[Hashable, Graph] = {}

    def rewrite(graph: Graph) -> Graph:
        recorder = _Recorder(graph)
        for eqn in graph.body:
            if not (has_composition(eqn) or splits(eqn)) or has_word(eqn):
                recorder.add(map_bodies(eqn, rewrite), recorder.moved, eqn.source)
                continue
            key = eqn.op, tuple([v.type for v in eqn.inputs]), bits(eqn.params)
            if key not in known:
                known[key] = rewrite(_composed(eqn))
            recorder.inline(known[key], eqn)
        return dead_code(recorder.result(graph.outputs))

    found = rewrite(graph)
    return found if known else graph


@final
class _Recorder:
    """A graph under construction, which reads the parts of complex numbers from what joins them.

    A later pass may not do so: it would join the parts of what moves elements again.
    """

    def __init__(self, graph: Graph) -> None:
        self._builder, self.moved = rebuild(graph)
        self._pairs: dict[Value, tuple[Value, ...]] = {}

    def add(self, eqn: Equation, moved: dict[Value, Value], source: Source | None) -> None:
        """Record an equation on the values that `moved` has."""
        inputs = tuple([moved[v] for v in eqn.inputs])
        part = _PARTS.get(eqn.op)
        if part is not None and inputs[0] in self._pairs:
            moved[eqn.output] = self._pairs[inputs[0]][part]
            return
        self._builder.add_all([eqn], moved, source)
        if _joins_parts(eqn):
            self._pairs[moved.setdefault(eqn.output, eqn.output)] = inputs
        for v in eqn.outputs:
            moved.setdefault(v, v)

    def inline(self, part: Graph, eqn: Equation) -> None:
        """Record a graph in the place of an equation."""
        inner = {v: self.moved[w] for v, w in zip(part.inputs, eqn.inputs, strict=True)}
        for one in part.body:
            self.add(one, inner, eqn.source)
        self.moved |= zip(eqn.outputs, [inner[v] for v in part.outputs], strict=True)

    def result(self, outputs: Sequence[Value]) -> Graph:
        """Return the graph with these outputs of the old one."""
        return self._builder.graph([self.moved[v] for v in outputs])


def _joins_parts(eqn: Equation) -> bool:
    """Return whether an equation makes complex numbers of a real and an imaginary part."""
    if not isinstance(eqn.op, Primitive) or not eqn.op.elementwise or len(eqn.inputs) != 2:
        return False
    return eqn.output.type.is_complex and not any(v.type.is_complex for v in eqn.inputs)


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
    graph = lower(builder.graph([x.value for x in results]))
    return drop_formal(graph if is_complex(eqn) else clean_up(graph))
