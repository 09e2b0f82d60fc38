"""Loops over pairs: nests over all (i, j) of one set that compute symmetric values run over i < j.

Forces between points are antisymmetric, energies symmetric: their elements at (j, i) are those at
(i, j), up to the sign. One pass over i < j adds both to the sums over rows and columns. Squares
along the diagonal are computed as a whole, by nests of their own, before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.c_extents import is_one, is_zero
from primgraph.codegen.ir.statements import PLAIN, Item, Nest, Nests, Node, Operand, values_read
from primgraph.codegen.ops.c.spellings import literal
from primgraph.ir.dims import typical
from primgraph.ir.primitive import Op
from primgraph.ir.types import Shape, TensorType
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic

# Minimum number of points, and maximum work for a pair, in that of two elements of the whole.
_LEAST, _GAIN = 24, 0.8
# Rows for which the inner loop begins at the same column: the next row reads the vectors that a row
# writes.
ROWS = 8
# The indices of a pair differ.
_COMPARED: Mapping[Op, str] = {logic.equal: "0", logic.not_equal: "1"}
_KINDS = ("text", "call", "copy", "sum")


class _Term(NamedTuple):
    """An operand, or its negative; if `unsure`, a zero may have either sign."""

    sign: int
    operand: Operand
    unsure: bool = False


class _Sum(NamedTuple):
    """A sum over rows or columns: the terms that a pair adds for its first and its second index."""

    node: Node
    first: _Term
    second: _Term


class _Asymmetric(Exception):
    """A value that cannot be computed from those of exchanged indices, up to the sign."""


def pair_loops(plan: Nests) -> Nests:
    """Return `plan` with loops over pairs where these save work.

    Sums add the same elements in another order.
    """
    chosen, types = _choose(plan)
    if not chosen:
        return plan
    items: list[Item] = []
    ends: dict[int, int] = {}
    for at, item in enumerate(plan.items):
        items += [item] if at not in chosen else chosen[at].nests()
        ends[at] = len(items) - 1
    ends[len(plan.items)] = len(items)
    last = {v: ends[at] for v, at in plan.last.items()}
    for at, item in enumerate(items):
        sums = item.nodes if isinstance(item, Nest) and item.pairs else ()
        for v in (*values_read(item), *(n.value for n in sums if n.kind not in PLAIN)):
            last[v] = max(at, last.get(v, at))
    return replace(plan, items=tuple(items), types=types, last=last)


def _choose(plan: Nests) -> tuple[dict[int, _Pairs], dict[int, TensorType]]:
    """Return the nests that run over pairs, by index, and the types of all values.

    Only such nests read what they store.
    """
    places = {at for at, item in enumerate(plan.items) if _is_square(item, plan)}
    while True:
        types = dict(plan.types)
        known: dict[int, _Pairs] = {}
        found: dict[int, _Pairs] = {}
        for at in sorted(places):
            item = plan.items[at]
            assert isinstance(item, Nest)
            try:
                pairs = _Pairs(item, plan, known, types)
            except _Asymmetric:
                continue
            found[at] = pairs
            known.update(dict.fromkeys(item.stored, pairs))
        found = {at: found[at] for group in _linked(found) if _pays(group, found) for at in group}
        others = [item for at, item in enumerate(plan.items) if at not in found]
        read = {v for item in others for v in values_read(item)}
        kept = {at for at, pairs in found.items() if read.isdisjoint(pairs.nest.stored)}
        if kept == places:
            return found, types
        places = kept


def _linked(found: Mapping[int, _Pairs]) -> Iterator[list[int]]:
    """Yield the nests that read what others of them store, in groups."""
    groups: dict[int, list[int]] = {}
    makers = {v: at for at, pairs in found.items() for v in pairs.nest.stored}
    for at, pairs in found.items():
        group = groups[at] = [at]
        for maker in {makers[v] for v in values_read(pairs.nest) if v in makers}:
            if groups[maker] is not group:
                group += groups[maker]
                groups.update(dict.fromkeys(groups[maker], group))
    yield from {id(group): group for group in groups.values()}.values()


def _pays(group: Sequence[int], found: Mapping[int, _Pairs]) -> bool:
    """Return whether a pair is less work than two elements."""
    whole = sum(_work(found[at].nest.nodes) for at in group)
    return sum(_work(found[at].nodes) for at in group) <= 2 * _GAIN * whole


def _work(nodes: Sequence[Node]) -> int:
    """Return the estimated work for the elements of one index."""
    work = 0
    for node in nodes:
        if node.step is None or node.kind == "sum":
            continue
        size = max(typical(node.step.results[0].size), 1)
        work += max(typical(node.step.op.flops(node.step.operands, node.step.params)) // size, 1)
    return work


def _is_square(item: Item, plan: Nests) -> bool:
    """Return whether an item sums floats over all pairs of a set."""
    if not isinstance(item, Nest) or len(item.domain) != 2 or plan.is_block:
        return False
    rows, columns = item.domain
    sums = [node for node in item.nodes if node.kind == "sum"]
    return (
        (rows is columns or rows == columns)
        and typical(rows) >= _LEAST
        and all(node.kind in _KINDS for node in item.nodes)
        and bool(sums)
        and all(plan.types[node.value].dtype.kind == "f" for node in sums)
        and item.stored.keys().isdisjoint(plan.outputs)
    )


@final
class _Pairs:
    """The values of a nest for a pair: `here` at (i, j), and `there` at (j, i), as terms.

    `known` has the pairs of the values that earlier nests store. New values get a type.
    """

    def __init__(
        self, nest: Nest, plan: Nests, known: Mapping[int, _Pairs], types: dict[int, TensorType]
    ) -> None:
        self.nest, self.plan, self.known, self.types = nest, plan, known, types
        self.here: dict[int, _Term] = {}
        self.there: dict[int, _Term] = {}
        self.nodes: list[Node] = []
        # Nodes by what they compute, up to a sign, and operands in the order of their use.
        self.made: dict[Any, _Term] = {}
        self.rank: dict[Operand, int] = {}
        # Vectors that are not contiguous, and their copies.
        self.packed: dict[Operand, int] = {}
        self.sums: list[_Sum] = []
        for node in nest.nodes:
            here, there = ([self.term(o, swap) for o in node.operands] for swap in (False, True))
            if node.kind == "sum":
                self.sums.append(self.sum(node, *here, *there))
            else:
                self.here[node.value] = self.value(node, here, node.value)
                self.there[node.value] = self.value(node, there)
        # Stored values that other pairs read; they compute others again.
        self.stored = {
            v: None
            for v in nest.stored
            if self.here[v] == (1, Operand(value=v), False)
            and self.there[v].operand == Operand(value=v)
        }

    def new(self, like: int) -> int:
        """Return a new value of the type of another one."""
        self.types[value := len(self.types)] = self.types[like]
        return value

    def term(self, o: Operand, swap: bool) -> _Term:
        """Return the term of an operand, for exchanged indices if `swap`."""
        if o.value >= 0:
            return (self.there if swap else self.here)[o.value]
        steps = [n for n in o.strides if not is_zero(n)]
        if o.root >= 0 and len(steps) == 2:
            return self.matrix(o, swap)
        if o.root >= 0 and steps and not is_one(steps[0]):
            vector = replace(o, strides=(steps[0],))
            if vector not in self.packed:
                copy = self.packed[vector] = self.new(o.root)
                self.types[copy] = self.types[o.root].with_shape(self.nest.domain[:1])
            strides = (0, 1) if is_zero(o.strides[0]) else (1, 0)
            o = Operand(root=self.packed[vector], strides=strides)
        return _Term(1, replace(o, strides=o.strides[::-1]) if swap else o)

    def matrix(self, o: Operand, swap: bool) -> _Term:
        """Return the term of an element of a stored matrix, or of a constant one."""
        n = self.nest.domain[0]
        if o.strides != (n, 1) or o.offset != 0:
            # Columns of a matrix are far apart.
            raise _Asymmetric
        if o.root in self.known:
            return self.again(self.known[o.root], o.root, swap)
        array = self.plan.constants.get(o.root)
        if array is None or array.size != n * n:
            raise _Asymmetric
        outside = array.reshape(n, n)[~np.eye(n, dtype=bool)]
        if len(set(outside.view(f"V{array.itemsize}").tolist())) == 1:
            return _Term(1, Operand(text=literal(outside[0], array.dtype)))
        if not swap:
            return _Term(1, o)
        exchanged = array.reshape(n, n).T.tobytes()
        for root, other in self.plan.constants.items():
            if other.dtype == array.dtype and other.tobytes() == exchanged:
                return _Term(1, replace(o, root=root))
        raise _Asymmetric

    def again(self, maker: _Pairs, value: int, swap: bool) -> _Term:
        """Return a value of an earlier nest: what it has stored, or computed again."""
        if value in maker.stored:
            own = Operand(root=value, strides=(self.nest.domain[0], 1))
            return maker.there[value]._replace(operand=own) if swap else _Term(1, own)
        node = next(node for node in maker.nest.nodes if node.value == value)
        args = [
            self.term(o, swap) if o.value < 0 else self.again(maker, o.value, swap)
            for o in node.operands
        ]
        return self.value(node, args)

    def signed(self, term: _Term) -> Operand:
        """Return the operand that equals a term."""
        return term.operand if term.sign > 0 else self.apply("-", term.operand)

    def apply(self, function: str, operand: Operand) -> Operand:
        """Return the value of a prefix of C on an operand."""
        key = function, operand
        like = max(operand.value, operand.root)
        if like < 0:
            raise _Asymmetric
        if key not in self.made:
            self.made[key] = _Term(1, self.emit(_prefixed(like, function, operand)))
        return self.made[key].operand

    def emit(self, node: Node, value: int | None = None) -> Operand:
        """Append a node, which computes `value`, or a new one; return its value."""
        value = self.new(node.value) if value is None else value
        self.nodes.append(replace(node, value=value))
        return Operand(value=value)

    def value(self, node: Node, args: list[_Term], value: int | None = None) -> _Term:
        """Return the value of a node, which becomes a node of the pair unless it is known."""
        if node.kind == "copy":
            return args[0]
        assert node.step is not None
        is_float = self.types[node.value].dtype.kind == "f"
        op = node.step.op if node.kind == "text" and is_float else None
        operands, unsure = [t.operand for t in args], any(t.unsure for t in args)
        sign = orientation = 1
        key: Any = node.step.op, node.step.eqn.params, node.name, tuple(operands)
        if op is e.neg:
            return args[0]._replace(sign=-args[0].sign)
        if op is e.add or op is e.sub:
            sign, second = args[0].sign, args[1].sign * (1 if op is e.add else -1)
            key, is_sum = (sign == second, frozenset(operands)), sign == second
            ranks = [self.rank.setdefault(o, len(self.rank)) for o in operands]
            orientation = 1 if is_sum or ranks[0] <= ranks[1] else -1
            if is_sum is (op is e.sub):
                operands[1] = self.apply("-", operands[1])
        elif op is e.mul:
            sign, key = args[0].sign * args[1].sign, (op, frozenset(operands))
            unsure = unsure and operands[0] != operands[1]
        elif op is e.div and not args[1].unsure:
            sign = args[0].sign * args[1].sign
        elif op is e.abs_ or (op is e.integer_pow and node.step.params["n"] % 2 == 0):
            unsure = False
        elif op is e.round_ or (op is e.integer_pow and node.step.params["n"] > 0):
            sign = args[0].sign
        elif unsure:
            raise _Asymmetric
        else:
            operands = [self.signed(t) for t in args]
            key = *key[:-1], (frozenset if node.step.op.commutative else tuple)(operands)
            if node.step.op in _COMPARED and _are_indices(operands):
                return _Term(1, Operand(text=_COMPARED[node.step.op]))
        if key not in self.made:
            made = self.emit(replace(node, operands=tuple(operands)), value)
            self.made[key] = _Term(orientation, made)
        sign *= orientation * self.made[key].sign
        # A difference that is zero has no sign.
        unsure = unsure or (sign < 0 and op in (e.add, e.sub))
        return _Term(sign, self.made[key].operand, unsure)

    def sum(self, node: Node, here: _Term, there: _Term) -> _Sum:
        """Return a sum over rows, over columns or of all."""
        if node.strides == (0, 0):
            if (here.sign, here.operand) != (there.sign, there.operand):
                raise _Asymmetric
            twice = literal(2, self.types[node.value].dtype)
            here = _Term(1, self.apply(f"{twice} * ", self.signed(here)))
            return _Sum(node, here, here)
        if node.strides == (1, 0):
            return _Sum(node, here, there)
        if node.strides == (0, 1):
            return _Sum(node, there, here)
        raise _Asymmetric

    # Nests.

    def nests(self) -> list[Item]:
        """Return the nests: copies of vectors, squares, the pairs, sums that equal others."""
        line = self.nest.domain[:1]
        copies = [Node(None, v, "copy", "", (o,)) for o, v in self.packed.items()]
        found = [Nest(line, copies, dict.fromkeys(self.packed.values()))] if copies else []
        sums: dict[Any, tuple[int, _Sum]] = {}
        equal: list[Node] = []
        kept: list[_Sum] = []
        # Of two sums, the one that adds and not subtracts along the inner loop is computed.
        for each in sorted(self.sums, key=lambda sum: -sum.first.sign):
            value, (first, second) = each.node.value, each[1:]
            if any(each.node.strides):
                key = first.operand, second.operand, first.sign * second.sign
                sign, other = sums.setdefault(key, (first.sign, each))
                if other is not each:
                    function = "" if sign == first.sign else "-"
                    operand = Operand(root=other.node.value, strides=(1,))
                    equal.append(_prefixed(value, function, operand))
                    continue
            kept.append(each)
        found += _squares(self, {each.node.value for each in kept})
        for node, first, second in kept:
            self.nodes.append(replace(node, operands=(self.signed(first),)))
            if any(node.strides):
                self.nodes[-1] = replace(self.nodes[-1], strides=(1, 0))
                operand = self.signed(second)
                self.nodes.append(replace(node, operands=(operand,), strides=(0, 1)))
        found.append(Nest(self.nest.domain, self.nodes, self.stored, True, ROWS))
        if equal:
            found.append(Nest(line, equal, {node.value: None for node in equal}))
        return [*found]


def _squares(pairs: _Pairs, sums: Set[int]) -> Iterator[Nest]:
    """Yield the nests over the squares along the diagonal, which pairs leave out."""
    n = pairs.nest.domain[0]
    yield _square(pairs, (n // ROWS, ROWS, ROWS), 0, sums)
    if not is_zero(n % ROWS):
        yield _square(pairs, (n % ROWS, n % ROWS), n // ROWS * ROWS, sums)


def _square(pairs: _Pairs, domain: Shape, first: int, sums: Set[int]) -> Nest:
    """Return the nest over squares, whose first elements are those of the row `first`."""
    own: dict[int, int] = {}

    def steps(strides: Shape) -> Shape:
        return (ROWS * (strides[0] + strides[1]), *strides)[-len(domain) :]

    def operand(o: Operand) -> Operand:
        if o.value >= 0:
            return Operand(value=own[o.value])
        offset = o.offset + first * sum(o.strides)
        return replace(o, offset=offset, strides=steps(o.strides)) if o.strides else o

    nodes = []
    for node in pairs.nest.nodes:
        operands = tuple(map(operand, node.operands))
        if node.kind != "sum":
            value = own[node.value] = pairs.new(node.value)
            nodes.append(replace(node, value=value, operands=operands))
        elif node.value in sums:
            offset, strides = first * sum(node.strides), steps(node.strides)
            nodes.append(replace(node, operands=operands, strides=strides, offset=offset))
    whole = row_major(pairs.nest.domain)
    for v in pairs.nest.stored:
        one = Operand(value=own[v])
        nodes.append(Node(None, v, "put", "", (one,), steps(whole), first * sum(whole)))
    return Nest(domain, nodes, added=not is_zero(first))


def _are_indices(operands: Sequence[Operand]) -> bool:
    """Return whether the operands are the first and the second index of a pair."""
    steps = {o.strides for o in operands if o.cast}
    return steps == {(0, 1), (1, 0)} and len(operands) == 2


def _prefixed(value: int, function: str, operand: Operand) -> Node:
    """Return a node that computes a value by a prefix of C, or copies if there is none."""
    return Node(None, value, "text" if function else "copy", function, (operand,))
