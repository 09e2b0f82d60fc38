"""What the rules of `simplify` are: a level, what they may ask, and the table they stand in."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from primgraph.errors import ArgumentError, InternalError, UnknownSizeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.constants import constant, full
from primgraph.primitives.elementwise import neg
from primgraph.transforms.rewrite.terms import Row

# From the strictest level to the loosest; each one has the rules of those before it too.
LEVELS = ("exact", "signs", "finite", "fast")

# How deep what a rule records may be rewritten in its turn, which bounds time and recursion.
_DEEPEST = 8

# Operands of an equation up to which it is remembered what may be done with it.
_WIDEST = 3

# A rule sees the operands in the new graph and answers with a replacement, or None.
SimplifyRule: TypeAlias = Callable[["Seen", list[Value], dict[str, Any]], Value | None]


# Gives the results of an equation of a builder as constants, or None; asked where all operands are
# constants.
Fold: TypeAlias = Callable[[Builder, Equation, list[Value]], list[Value] | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewriting rule, and the level from which on it is applied.

    "exact" rules give the same bits for every input, NaN, infinities and both zeros included
    (one NaN is like any other). "signs" rules do up to the sign of zero, and but for products with
    powers of two that over- or underflow on the way. "finite" rules do where no NaN, infinity,
    overflow or underflow occurs in the program, up to the sign of zero. "fast" rules are true of
    real numbers.

    With `of`, the rule does nothing unless one of these computes some operand; with `at`, unless
    each of these computes the operand at its place, None standing for anything. `row` is what the
    rule was made from, if both its sides are expressions. What has complex operands or a complex
    result is rewritten by rules of `any_dtype` alone: a product with a complex number adds up
    several others, so that what is exact, or true, of real numbers need not be so of these.
    """

    level: str
    apply: SimplifyRule
    of: frozenset[Op] = frozenset()
    at: tuple[Op | None, ...] = ()
    row: Row | None = None
    any_dtype: bool = False

    def may_apply(self, made: Sequence[Op | None]) -> bool:
        """Whether the rule may do something where `made` compute the operands."""
        if self.of and self.of.isdisjoint(made):
            return False
        return all(op is None or op is found for op, found in zip(self.at, made, strict=False))


@final
class Family:
    """The rules of one family, by the primitive whose equations they rewrite.

    Those of a family of `any_dtype` move, choose or join elements, and do not compute with them.
    """

    def __init__(self, *, any_dtype: bool = False) -> None:
        self.rules: dict[Op, list[Rule]] = {}
        self.any_dtype = any_dtype

    def rule(
        self,
        *ops: Primitive[Any],
        level: str = "exact",
        of: Sequence[Primitive[Any]] = (),
        any_dtype: bool = False,
    ) -> Callable[[SimplifyRule], SimplifyRule]:
        """Declare a rule for these primitives; rules of one primitive are tried in order.

        With `of` it is tried only where one of these computes some operand.
        """
        anywhere = any_dtype or self.any_dtype

        def declare(function: SimplifyRule) -> SimplifyRule:
            for op in ops:
                self.add(op, Rule(level, function, frozenset(of), any_dtype=anywhere))
            return function

        return declare

    def add(self, op: Op, rule: Rule) -> None:
        """Try `rule` for equations of `op`, after those that are there."""
        self.rules.setdefault(op, []).append(rule)


def check_level(math: str) -> None:
    """Raise `ArgumentError` for what is no level."""
    if math not in LEVELS:
        raise ArgumentError(
            f"math={math!r} is not known", hint=f"choose one of {', '.join(map(repr, LEVELS))}"
        )


def selected(table: dict[Op, list[Rule]], math: str) -> dict[Op, list[Rule]]:
    """The rules of `table` that hold at level `math`, the strictest first."""
    check_level(math)
    allowed = LEVELS[: LEVELS.index(math) + 1]
    chosen = {
        op: [r for level in allowed for r in listed if r.level == level]
        for op, listed in table.items()
    }
    return {op: listed for op, listed in chosen.items() if listed}


def level_of_derivatives(math: str) -> str:
    """The level of what derivatives compute, in a program of which level `math` is asked."""
    return "signs" if math == "exact" else math


@final
class Readers:
    """How often a graph reads the values of a new one, or what these have replaced.

    Few rules ask, so that counting waits until one does.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._count: Counter[Value] | None = None
        self._replaced: list[tuple[Value, Value]] = []

    def replace(self, old: Value, new: Value) -> None:
        """Note that `new` is read where `old` was."""
        self._replaced.append((old, new))

    def of(self, value: Value) -> int:
        if self._count is None:
            read = chain.from_iterable(e.inputs for e in self._graph.body)
            self._count = Counter(chain(self._graph.outputs, read))
        for old, new in self._replaced:
            self._count[new] += self._count[old]
        self._replaced.clear()
        return self._count[value]


class Possible(NamedTuple):
    """What may be done with an equation: whether to fold it, and the rules that may apply."""

    folding: bool
    rules: list[Rule]


@final
class Table:
    """The rules of one level by primitive, and which of them the ops of operands leave possible."""

    def __init__(self, rules: dict[Op, list[Rule]]) -> None:
        self._rules = rules
        # By an op and what computes its operands.
        self.known: dict[tuple[Op | None, ...], Possible] = {}

    def possible(self, op: Op, made: tuple[Op | None, ...]) -> Possible:
        """What may be done with an equation of `op` whose operands `made` compute; remembered."""
        rules = [r for r in self._rules.get(op, ()) if r.may_apply(made)]
        found = Possible(all(o in (full, constant) for o in made), rules)
        if len(made) <= _WIDEST:
            self.known[op, *made] = found
        return found


@final
class Seen:
    """What the rules may ask: about the operands, and the type of the result.

    `tables` has the rules for what the program computes, and those for what a derivative does;
    `derived` tells which is at hand. What they record is rewritten by the rules, and folded, in
    its turn. `readers` counts, for values that are in the new graph already, how often the old
    graph reads them. `declined` tells that a rule did nothing because a value was used more than
    once.
    """

    def __init__(
        self, builder: Builder, tables: tuple[Table, Table], fold: Fold, readers: Readers
    ) -> None:
        self.builder = builder
        self.fold = fold
        self.source = builder.source
        self.expands = builder.expands
        self.rename = builder.rename
        self.hold = builder.hold
        self.name_of = builder.name_of
        self.described = builder.described
        self.stopped = builder.stopped
        self.in_call = True
        self.begin_call = builder.begin_call
        self.hand_out = builder.hand_out
        self.type = TensorType((), BOOL)
        self.readers = readers
        self.declined = False
        self._depth = 0
        self._definition = builder.definition
        self._tables = tables
        self.turn(False)

    def turn(self, derived: bool) -> None:
        """What comes next is, or is not, a part of a derivative."""
        self.derived = derived
        self._table = self._tables[derived]
        self._possible = self._table.known

    def emit(self, op: Op, inputs: Sequence[Value], params: dict[str, Any]) -> tuple[Value, ...]:
        possible = self.possible(op, inputs)
        if possible.rules and self._depth < _DEEPEST:
            types = tuple([v.type for v in inputs])
            type = (op.infer(types, params) if params else self.builder.infer(op, types))[0]
            better = self.rewrite(possible.rules, list(inputs), params, type)
            if better is not None:
                return tuple(better)
        outputs = self.builder.emit(op, inputs, params)
        eqn = self._definition(outputs[0]) if possible.folding else None
        results = None if eqn is None else self.fold(self.builder, eqn, list(eqn.inputs))
        return outputs if results is None else tuple(results)

    def possible(self, op: Op, inputs: Sequence[Value]) -> Possible:
        """What may be done with `op`, as far as the ops that compute its operands tell."""
        made = [self._definition(v) for v in inputs]
        key = (op, *[None if eqn is None else eqn.op for eqn in made])
        return self._possible.get(key) or self._table.possible(op, key[1:])

    def rewrite(
        self,
        rules: Sequence[Rule],
        inputs: list[Value],
        params: dict[str, Any],
        type: TensorType,
    ) -> list[Value] | None:
        """What the first of `rules` that does something makes of this equation."""
        outer, found = self.type, None
        self._depth += 1
        if any(v.type.dtype.kind == "c" for v in inputs) or type.dtype.kind == "c":
            rules = [rule for rule in rules if rule.any_dtype]
        for rule in rules:
            self.type = type
            try:
                better = rule.apply(self, inputs, params)
            except UnknownSizeError:
                # What depends on sizes is decided when these are known.
                continue
            if better is not None:
                if better.type != type:
                    raise InternalError(f"{rule.apply.__name__} turns {type} into {better.type}")
                found = [better]
                break
        self._depth -= 1
        self.type = outer
        return found

    def of_line(self, eqn: Equation) -> bool:
        """Whether `eqn` is of the user's line that is at hand; what is no derivative may be any."""
        if not self.derived:
            return True
        here, there = self.builder.source, eqn.source
        if here is None or there is None:
            return False
        return (here.file, here.line) == (there.file, there.line)

    def scalar(self, value: Value) -> bool | int | float | None:
        """The scalar that all elements of `value` equal, if that is known and no complex number."""
        eqn = self._definition(value)
        if eqn is None or eqn.op is not full or value.type.is_complex:
            return None
        found: bool | int | float = eqn.kwargs["value"]
        return found

    def uniform(self, value: Value) -> bool | int | float | complex | None:
        """The scalar that all elements of `value` equal, complex ones too."""
        eqn = self._definition(value)
        return eqn.kwargs["value"] if eqn is not None and eqn.op is full else None

    def array(self, value: Value) -> np.ndarray[Any, Any] | None:
        """The elements of `value` if it is a constant array."""
        eqn = self.made_by(constant, value)
        return None if eqn is None else eqn.kwargs["value"].data

    def made_by(self, op: Primitive[Any], value: Value) -> Equation | None:
        """The equation that computes `value`, if it applies `op`.

        A sign that one line hands on to another, in a derivative, is not looked behind.
        """
        eqn = self._definition(value)
        if eqn is None or eqn.op is not op or (op is neg and not self.of_line(eqn)):
            return None
        return eqn

    def inside(self, op: Primitive[Any], value: Value) -> Value | None:
        """`x` if `value` is `op(x)`."""
        eqn = self.made_by(op, value)
        return None if eqn is None else eqn.inputs[0]

    def single(self, value: Value) -> bool:
        """Whether nothing but the equation at hand reads `value`, as far as is known."""
        if self.readers.of(value) <= 1:
            return True
        self.declined = True
        return False


def is_zero(scalar: bool | int | float | None, sign: float) -> bool:
    """Whether `scalar` is a zero of that sign; integers have one zero only."""
    if scalar is None or scalar != 0:
        return False
    return not isinstance(scalar, float) or math.copysign(1.0, scalar) == sign


def is_power_of_two(scalar: bool | int | float | None) -> bool:
    """Whether `scalar` is a float plus or minus a power of two."""
    if not isinstance(scalar, float) or not math.isfinite(scalar):
        return False
    return abs(math.frexp(scalar)[0]) == 0.5
