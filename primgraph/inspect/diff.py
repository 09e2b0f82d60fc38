"""Difference of two graphs as text, for example before and after a pass."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt

from primgraph.base.interpreter_limits import uncollected
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.html_tables import ROWS, Row, Sheet, Tabled
from primgraph.ir.frontend.parser import TEXT_FILE
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import bits
from primgraph.ir.text import equation_text, names
from primgraph.operators.handle import ArrayLike, Handle
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.variable import Variable

_LONGEST = 200

Pair: TypeAlias = tuple[Equation, Equation]
# A sign, the text after it, and its source line.
Line: TypeAlias = tuple[str, str, str]


@final
@dataclass(frozen=True, slots=True, repr=False)
class Difference(Tabled):
    """Differences of `after` from `before`; it prints as text, with `-` and `+` for lines.

    `kept` counts equations in both graphs, ignoring names of values. `changed` are pairs of the
    same op with other parameters or operands; an equation that only uses a changed result is kept.
    `removed` and `added` have no partner.

    >>> before = pg.trace(lambda x: pg.sum(x), pg.spec((3, 4)))
    >>> after = pg.trace(lambda x: pg.sum(pg.exp(x)), pg.spec((3, 4)))
    >>> found = pg.diff(before, after)
    >>> print(found.kept, len(found.changed), [eqn.op.name for eqn in found.added])
    0 0 ['exp', 'reduce_sum']
    """

    before: Graph
    after: Graph
    kept: int
    changed: tuple[Pair, ...]
    removed: tuple[Equation, ...]
    added: tuple[Equation, ...]
    returns: bool
    partners: tuple[Pair, ...]

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.changed or self.removed or self.added or self.returns or self.header)

    @property
    def header(self) -> bool:
        """Return whether the types of the inputs differ."""
        return self.before.input_types != self.after.input_types

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of equations of each op before and after, if they differ."""
        one, other = (Counter(e.op.name for e in g.body) for g in (self.before, self.after))
        return {n: (one[n], other[n]) for n in sorted(one | other) if one[n] != other[n]}

    def _title(self) -> str:
        return self._head()[0]

    def __str__(self) -> str:
        return "\n".join([*self._head(), *map(_format_line, self._lines())])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        lines = [_format_line(line) for line in islice(self._lines(), ROWS)]
        more = self._count - len(lines)
        printer.text("\n".join([*self._head(), *lines, *([f"... {more} more"] if more else [])]))

    def _sheet(self) -> Sheet:
        title, *notes = self._head()
        rows = (Row((sign, text, place), tint=sign) for sign, text, place in self._lines())
        head = ("", "equation", "line") if self else ()
        return Sheet(title, "ccc", head, rows, self._count, tuple(notes))

    @property
    def _count(self) -> int:
        """Return the number of lines that differ."""
        return (
            2 * (len(self.changed) + self.header + self.returns)
            + len(self.removed)
            + len(self.added)
        )

    def _head(self) -> list[str]:
        """Return the summary: numbers of differences, and of equations by op."""
        if not self:
            return [f"the graphs are equal: {_format_count(self.kept, 'equation')}"]
        parts = [
            f"{len(found)} {word}"
            for found, word in (
                (self.removed, "removed"),
                (self.added, "added"),
                (self.changed, "changed"),
            )
            if found
        ]
        sizes = f"{_format_count(len(self.before), 'equation')} -> {len(self.after)}"
        lines = [f"{sizes}: {', '.join([*parts, f'{self.kept} kept'])}"]
        return lines + [f"  {name} {a} -> {b}" for name, (a, b) in self.counts().items()]

    def _lines(self) -> Iterator[Line]:
        """Yield the equations that differ, in graph order, with the user's lines."""
        if not self:
            return
        old, new = names(self.before), names(self.after)
        if self.header:
            yield _inputs("-", self.before, old)
            yield _inputs("+", self.after, new)
        partner = {b: a for a, b in self.partners}
        changed = {b for _, b in self.changed}
        place = {eqn: i for i, eqn in enumerate(self.before.body)}
        gone = deque(self.removed)
        for eqn, end in zip(self.after.body, self._ends(place, partner), strict=True):
            while gone and place[gone[0]] < end:
                yield _line("-", gone.popleft(), old)
            if eqn in changed:
                yield _line("-", partner[eqn], old)
            if eqn in changed or eqn not in partner:
                yield _line("+", eqn, new)
        yield from (_line("-", eqn, old) for eqn in gone)
        if self.returns:
            yield "-", f"return {', '.join(old[v] for v in self.before.outputs)}", ""
            yield "+", f"return {', '.join(new[v] for v in self.after.outputs)}", ""

    def _ends(self, place: dict[Equation, int], partner: dict[Equation, Equation]) -> list[int]:
        """Return, for each equation after, the index before of the next one with a partner."""
        end, found = len(place), []
        for eqn in reversed(self.after.body):
            end = place[partner[eqn]] if eqn in partner else end
            found.append(end)
        return found[::-1]


@overload
def diff(before: Graph, after: Graph) -> Difference: ...
@overload
def diff(
    before: Handle | npt.NDArray[Any],
    after: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Variable: ...
@checked_late
@uncollected
def diff(before: Any, after: Any = None, *options: Any, **named: Any) -> Difference | Variable:
    """Return the differences of `after` from `before`: what a pass did to a graph, for instance.

    Equations are equal if they apply the same op with the same parameters to the same values, down
    to the inputs, which are matched by position; names and order do not count. Other equations are
    paired if they apply the same op to the same values, or the same op with the same parameters on
    the same line of yours; of several such, those that share an operand. The time is linear in the
    number of equations. Raises `ArgumentError` for anything but graphs.

    For an array, a variable or a tensor, `diff` is NumPy's function, the differences of neighbours:
    `pg.diff(x, n=1, axis=-1, prepend=None, append=None)`.

    >>> found = pg.diff(pg.trace(pg.sin, pg.spec(3)), pg.trace(pg.cos, pg.spec(3)))
    >>> print(str(found).splitlines()[0])
    1 equation -> 1: 1 removed, 1 added, 0 kept
    """
    if isinstance(before, Handle | np.ndarray):
        times = () if after is None else (after,)
        found: Variable = named_function("diff")(before, *times, *options, **named)
        return found
    if after is None:
        raise ArgumentError(
            "diff: missing a required argument: 'after'", hint="it takes (before, after)"
        )
    for graph in (before, after):
        if not isinstance(graph, Graph):
            raise ArgumentError(
                f"diff takes two graphs, not {type(graph).__name__}",
                hint="pg.trace(function, *specs), program.graph() and kernel.graph are graphs",
            )
    return _Matching(before, after).difference()


@final
class _Matching:
    """Matching of the equations of `after` to partners in `before`, one after the other.

    `moved` maps values after to values before. `open` has the unmatched equations before, by search
    key.
    """

    def __init__(self, before: Graph, after: Graph) -> None:
        self.before = before
        self.after = after
        self.moved: dict[Value, Value] = {
            b: a for a, b in zip(before.inputs, after.inputs, strict=False) if a.type == b.type
        }
        self.taken: set[Equation] = set()
        self.partner: dict[Equation, Equation] = {}
        self.changed: list[Pair] = []
        self.open: defaultdict[Hashable, deque[Equation]] = defaultdict(deque)

    def difference(self) -> Difference:
        self._match_equal()
        for eqn in self.before.body:
            if eqn not in self.taken:
                for key in self._keys(eqn, eqn.inputs):
                    self.open[key].append(eqn)
        for eqn in self.after.body:
            if eqn not in self.partner:
                self._match_like(eqn)
        body, partner = self.after.body, self.partner
        outputs = tuple(self.moved.get(v) for v in self.after.outputs)
        return Difference(
            before=self.before,
            after=self.after,
            kept=len(partner) - len(self.changed),
            changed=tuple(self.changed),
            removed=tuple(e for e in self.before.body if e not in self.taken),
            added=tuple(e for e in body if e not in partner),
            returns=outputs != self.before.outputs,
            partners=tuple((partner[e], e) for e in body if e in partner),
        )

    def _match_equal(self) -> None:
        """Match equations that are equal down to the inputs."""
        number: dict[Hashable, int] = {}
        there: dict[int, deque[Equation]] = defaultdict(deque)
        for eqn, key in _number_equations(self.before, number):
            there[key].append(eqn)
        for eqn, key in _number_equations(self.after, number):
            if there[key]:
                self._pair(there[key].popleft(), eqn)

    def _match_like(self, eqn: Equation) -> None:
        """Match an equation whose operands, or parameters, differ."""
        operands = tuple(self.moved.get(v) for v in eqn.inputs)
        for key in self._keys(eqn, operands):
            waiting = self.open.get(key)
            while waiting and waiting[0] in self.taken:
                waiting.popleft()
            if waiting:
                found = waiting.popleft()
                self._pair(found, eqn)
                same = _canonical_operands(found, found.inputs) == _canonical_operands(
                    eqn, operands
                )
                if not same or bits(found.params) != bits(eqn.params):
                    self.changed.append((found, eqn))
                return

    def _keys(self, eqn: Equation, operands: Sequence[Value | None]) -> Iterator[Hashable]:
        """Yield the search keys of an equation, most specific first."""
        types = tuple(v.type for v in eqn.outputs)
        label = (eqn.op.name, bits(eqn.params), types)
        known = [(k, v) for k, v in enumerate(operands) if v is not None]
        complete = operands and len(known) == len(operands)
        if complete:
            yield label, _canonical_operands(eqn, operands)
        place = eqn.source if eqn.source is None or eqn.source.file != TEXT_FILE else None
        for k, value in known:
            yield label, place, value if eqn.op.commutative else (k, value)
        if complete:
            yield eqn.op.name, types, _canonical_operands(eqn, operands)
        yield label, place

    def _pair(self, before: Equation, after: Equation) -> None:
        self.taken.add(before)
        self.partner[after] = before
        self.moved.update(zip(after.outputs, before.outputs, strict=True))


def _number_equations(graph: Graph, number: dict[Hashable, int]) -> Iterator[tuple[Equation, int]]:
    """Number the equations; equal ones, in all graphs numbered so, have equal numbers."""
    known: dict[Value, int] = {
        v: number.setdefault(("input", i, v.type), len(number)) for i, v in enumerate(graph.inputs)
    }
    for eqn in graph.body:
        operands = [known[v] for v in eqn.inputs]
        if eqn.op.commutative:
            operands.sort()
        types = tuple(v.type for v in eqn.outputs)
        key = (eqn.op.name, bits(eqn.params), tuple(operands), types)
        found = number.setdefault(key, len(number))
        for k, value in enumerate(eqn.outputs):
            known[value] = number.setdefault((found, k), len(number))
        yield eqn, found


def _canonical_operands(
    eqn: Equation, operands: Sequence[Value | None]
) -> tuple[Value | None, ...]:
    """Return the operands, in a canonical order for a commutative op."""
    return tuple(sorted(operands, key=id) if eqn.op.commutative else operands)


def _format_line(line: Line) -> str:
    sign, text, place = line
    return f"{sign} {text}  # {place}" if place else f"{sign} {text}"


def _line(sign: str, eqn: Equation, name: dict[Value, str]) -> Line:
    text = equation_text(eqn, name).replace("\n", " ")
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return sign, short, str(eqn.source or "")


def _inputs(sign: str, graph: Graph, name: dict[Value, str]) -> Line:
    listed = ", ".join(f"{name[v]}: {v.type}" for v in graph.inputs)
    return sign, f"graph {graph.name}({listed})", ""


def _format_count(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
