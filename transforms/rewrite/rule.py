"""Infrastructure of the rules of `simplify`: levels, queries, and rule tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, InternalError, UnknownSizeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive, loaded_ops
from primgraph.ir.types import BOOL, TensorType
from primgraph.primitives.constants import constant, extent, full
from primgraph.primitives.elementwise import mul, neg
from primgraph.transforms.rewrite.terms import Row

# From the strictest level to the loosest; each includes the rules of those before it.
LEVELS = ("exact", "signs", "finite", "fast")

# Maximum depth of rewriting the equations that a rule records; it bounds time and recursion.
_DEEPEST = 8

# Maximum number of operands of equations whose applicable rules are cached.
_WIDEST = 3

# A rule takes the operands in the new graph, and returns a replacement or None.
SimplifyRule: TypeAlias = Callable[["Seen", list[Value], dict[str, Any]], Value | None]


# Returns the results of an equation as constants, or None. Called if all operands are constants.
Fold: TypeAlias = Callable[[Builder, Equation, list[Value]], list[Value] | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite rule, and the strictest level at which it applies.

    "exact" rules keep the bits of the results for every input, including NaN, infinities and signed
    zeros (all NaN are equal). "signs" rules are exact up to the sign of zero, and up to overflow or
    underflow of intermediate products with powers of two. "finite" rules are exact up to the sign
    of zero if no NaN, infinity, overflow or underflow occurs. "fast" rules hold in exact
    arithmetic.

    With `of`, the rule applies only if one of these ops computes some operand. With `at`, each of
    these ops, or one of a set, must compute the operand at its position; None stands for any op.
    `alike` has positions of operands that must be the same value. `inexact` tells whether the
    result must be of floats or complex numbers, or must not; None for any dtype.

    `row` is the row of the rule, if it has one. Only rules of `any_dtype` apply to equations with
    complex operands or results. A complex product sums several real products, so that rules for
    real numbers need not hold.
    """

    level: str
    apply: SimplifyRule
    of: frozenset[Op] = frozenset()
    at: tuple[Op | frozenset[Op] | None, ...] = ()
    alike: tuple[tuple[int, int], ...] = ()
    inexact: bool | None = None
    row: Row | None = None
    any_dtype: bool = False

    def may_apply(self, made: Sequence[Op | None]) -> bool:
        """Return whether the rule may apply if the ops `made` compute the operands."""
        if self.of and self.of.isdisjoint(made):
            return False
        if any(made[i] is not made[k] for i, k in self.alike):
            return False
        return all(_allows(op, found) for op, found in zip(self.at, made, strict=False))


def _allows(wanted: Op | frozenset[Op] | None, found: Op | None) -> bool:
    return wanted is None or (found in wanted if isinstance(wanted, frozenset) else found is wanted)


@final
class Family:
    """A family of rules, by the primitive whose equations they rewrite.

    Rules of a family of `any_dtype` move, select or join elements, and do not compute with them.
    Rows of a `late` family are checked and compiled when rules of their primitive are asked for.
    """

    def __init__(self, *, any_dtype: bool = False, late: bool = False) -> None:
        # What was declared, and the rules of the ops that were asked for.
        self._declared: dict[Op, list[Callable[[], Iterable[Rule]]]] = {}
        self._general: list[tuple[Callable[[Op], bool], Callable[[Any], Iterable[Rule]]]] = []
        self._rules: dict[Op, list[Rule]] = {}
        self.any_dtype = any_dtype
        self.late = late

    @property
    def count(self) -> int:
        """The number of declarations."""
        return sum(map(len, self._declared.values()))

    @property
    def rules(self) -> dict[Op, list[Rule]]:
        """The rules of all ops that are loaded."""
        found = {op: self.rules_of(op) for op in loaded_ops().values()}
        return {op: listed for op, listed in found.items() if listed}

    def rules_of(self, op: Op) -> list[Rule]:
        """Return the rules of `op`, in order of declaration."""
        found = self._rules.get(op)
        if found is None:
            found = [rule for make in self._declared.get(op, ()) for rule in make()]
            found += [r for holds, make in self._general if holds(op) for r in make(op)]
            self._rules[op] = found
        return found

    def rule(
        self,
        *ops: Primitive[Any],
        level: str = "exact",
        of: Sequence[Op] = (),
        at: tuple[Op | frozenset[Op] | None, ...] = (),
        any_dtype: bool = False,
    ) -> Callable[[SimplifyRule], SimplifyRule]:
        """Declare a rule for these primitives; rules of one primitive are tried in order.

        `of` and `at` are those of `Rule`; operands of a commutative primitive may be swapped.
        """
        anywhere = any_dtype or self.any_dtype

        def declare(function: SimplifyRule) -> SimplifyRule:
            for op in ops:
                orders = [at, at[::-1]] if op.commutative and at != at[::-1] else [at]
                for order in orders:
                    self.add(op, Rule(level, function, frozenset(of), order, any_dtype=anywhere))
            return function

        return declare

    def add(self, op: Op, rule: Rule) -> None:
        """Add `rule` to the rules for `op`; it is tried last."""
        self.add_late(op, [rule].copy)

    def add_late(self, op: Op, make: Callable[[], Iterable[Rule]]) -> None:
        """Add the rules that `make` returns to those for `op`; they are tried last."""
        self._declared.setdefault(op, []).append(make)
        self._rules.pop(op, None)

    def add_where(self, holds: Callable[[Op], bool], make: Callable[[Any], Iterable[Rule]]) -> None:
        """Add the rules that `make` returns for each op for which a condition `holds`; they are
        tried after all others of the family."""
        self._general.append((holds, make))
        self._rules.clear()


def check_level(math: str) -> None:
    """Raise `ArgumentError` for an unknown level."""
    if math not in LEVELS:
        raise ArgumentError(
            f"math={math!r} is not known", hint=f"choose one of {', '.join(map(repr, LEVELS))}"
        )


def select_rules(families: Iterable[Family], op: Op, math: str) -> list[Rule]:
    """Return the rules of `op` that hold at level `math`, the strictest first."""
    allowed = LEVELS[: LEVELS.index(math) + 1]
    listed = [rule for family in families for rule in family.rules_of(op)]
    return [r for level in allowed for r in listed if r.level == level]


def level_of_derivatives(math: str) -> str:
    """Return the level for equations of derivatives, in a program of level `math`."""
    return "signs" if math == "exact" else math


@final
class Readers:
    """Lazy use counts of the values of a new graph, including the values they replaced.

    Few rules ask, so that counting waits for the first query.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._count: Counter[Value] | None = None
        self._replaced: list[tuple[Value, Value]] = []

    def replace(self, old: Value, new: Value) -> None:
        """Record that `new` is read where `old` was."""
        self._replaced.append((old, new))

    def count_readers(self, value: Value) -> int:
        if self._count is None:
            read = chain.from_iterable(e.inputs for e in self._graph.body)
            self._count = Counter(chain(self._graph.outputs, read))
        for old, new in self._replaced:
            self._count[new] += self._count[old]
        self._replaced.clear()
        return self._count[value]


class Possible(NamedTuple):
    """The rewrites that an equation allows: whether to fold it, and the rules that may apply.

    `of_floats` and `of_others` have those by the dtype of the result, `of_complex` those for
    equations with complex operands or results. `makes_factor` tells whether it is a negation, or a
    product with a number.
    """

    folding: bool
    rules: list[Rule]
    of_floats: list[Rule]
    of_others: list[Rule]
    of_complex: list[Rule]
    makes_factor: bool


@final
class Table:
    """The rules of one level by primitive, filtered by the ops that compute the operands."""

    def __init__(self, rules: Callable[[Op], Iterable[Rule]]) -> None:
        self._rules = rules
        # Cache keyed by an op and the ops that compute its operands.
        self.known: dict[tuple[Op | None, ...], Possible] = {}

    def possible(self, op: Op, made: tuple[Op | None, ...]) -> Possible:
        """Return the rewrites of `op` whose operands the ops `made` compute, cached."""
        rules = [r for r in self._rules(op) if r.may_apply(made)]
        of_floats, of_others = ([r for r in rules if r.inexact in (None, k)] for k in (True, False))
        of_complex = [r for r in rules if r.any_dtype]
        folding = op not in (full, constant, extent) and all(o in (full, constant) for o in made)
        makes_factor = op is neg or (op is mul and full in made)
        found = Possible(folding, rules, of_floats, of_others, of_complex, makes_factor)
        if len(made) <= _WIDEST:
            self.known[op, *made] = found
        return found


@final
class Seen:
    """Questions that rules may ask, about the operands and the type of the result.

    `tables` has the rules for the program's equations, and those for derivatives; `derived` tells
    which apply. Equations that rules record are rewritten and folded in turn. `readers` counts how
    often the old graph reads values of the new graph. `declined` is set if a rule did not apply
    because a value has several uses.
    """

    def __init__(
        self, builder: Builder, tables: tuple[Table, Table], fold: Fold, readers: Readers
    ) -> None:
        self.builder = builder
        self._fold = fold
        self.source = builder.source
        self.expands = builder.expands
        self.rename = builder.rename
        self.hold = builder.hold
        self.name_of = builder.name_of
        self.described = builder.described
        self.stopped, self.weak = builder.stopped, builder.weak
        self.in_call = True
        self.begin_call = builder.begin_call
        self.hand_out = builder.hand_out
        self.type = TensorType((), BOOL)
        self.readers = readers
        self.declined = False
        # Whether there may be signs or numbers as factors, and the cached distances to them.
        self.has_factors = False
        self.distances: dict[Value, int] = {}
        # Results of equations on constants, by op, operands and parameters; None if not folded.
        self._folded: dict[Hashable, list[Value] | None] = {}
        self._depth = 0
        self._definition = builder.definition
        self._tables = tables
        self.turn(False)

    def turn(self, derived: bool) -> None:
        """Switch between the rules for derivatives and those for the program."""
        self.derived = derived
        self._table = self._tables[derived]
        self._possible = self._table.known

    def emit(self, op: Op, inputs: Sequence[Value], params: dict[str, Any]) -> tuple[Value, ...]:
        builder, operands = self.builder, tuple(inputs)
        possible = self.possible(op, operands)
        frozen = builder.params.frozen(params) if params else ()
        if possible.rules and self._depth < _DEEPEST:
            type = builder.infer(op, tuple([v.type for v in operands]), frozen)[0]
            better = self.rewrite(possible, list(operands), params, type)
            if better is not None:
                return tuple(better)
        outputs = builder.record(op, operands, frozen)
        if possible.makes_factor:
            self.has_factors = True
        eqn = self._definition(outputs[0]) if possible.folding else None
        results = None if eqn is None else self.fold(eqn, list(eqn.inputs))
        return outputs if results is None else tuple(results)

    def fold(self, eqn: Equation, inputs: list[Value]) -> list[Value] | None:
        """Return the results of `eqn` on constant `inputs` as constants, cached; None if it is not
        to be folded."""
        key = (eqn.op, *inputs, id(self.builder.params.own(eqn.params)))
        if key not in self._folded:
            self._folded[key] = self._fold(self.builder, eqn, inputs)
        return self._folded[key]

    def possible(self, op: Op, inputs: Sequence[Value]) -> Possible:
        """Return the rewrites of `op` that the ops of its operands allow."""
        key = (op, *[eqn and eqn.op for eqn in map(self._definition, inputs)])
        return self._possible.get(key) or self._table.possible(op, key[1:])

    def rewrite(
        self,
        possible: Possible,
        inputs: list[Value],
        params: dict[str, Any],
        type: TensorType,
    ) -> list[Value] | None:
        """Return the result of the first of the `possible` rules that applies, or None."""
        outer, found = self.type, None
        self._depth += 1
        if type.is_complex or True in [v.type.is_complex for v in inputs]:
            rules = possible.of_complex
        else:
            rules = possible.of_floats if type.is_inexact else possible.of_others
        for rule in rules:
            self.type = type
            try:
                better = rule.apply(self, inputs, params)
            except UnknownSizeError:
                # Rules that depend on symbolic sizes wait until these are known.
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
        """Return whether `eqn` is from the current source line; outside derivatives always true."""
        if not self.derived:
            return True
        here, there = self.builder.source, eqn.source
        if here is None or there is None:
            return False
        return (here.file, here.line) == (there.file, there.line)

    def scalar(self, value: Value) -> bool | int | float | None:
        """Return the real scalar that all elements of `value` equal, or None."""
        eqn = self._definition(value)
        if eqn is None or eqn.op is not full or value.type.is_complex:
            return None
        found: bool | int | float = eqn.kwargs["value"]
        return found

    def uniform(self, value: Value) -> bool | int | float | complex | None:
        """Return the scalar that all elements of `value` equal, also a complex one, or None."""
        eqn = self._definition(value)
        return eqn.kwargs["value"] if eqn is not None and eqn.op is full else None

    def array(self, value: Value) -> np.ndarray[Any, Any] | None:
        """Return the array of a `constant`, or None."""
        eqn = self.made_by(constant, value)
        return None if eqn is None else eqn.kwargs["value"].data

    def made_by(self, op: Primitive[Any], value: Value) -> Equation | None:
        """Return the equation of `value` if it applies `op`, else None.

        In a derivative, a `neg` of another source line is not matched.
        """
        eqn = self._definition(value)
        if eqn is None or eqn.op is not op or (op is neg and not self.of_line(eqn)):
            return None
        return eqn

    def inside(self, op: Primitive[Any], value: Value) -> Value | None:
        """Return `x` if `value` is `op(x)`, else None."""
        eqn = self.made_by(op, value)
        return None if eqn is None else eqn.inputs[0]

    def single(self, value: Value) -> bool:
        """Return whether only the current equation reads `value`, as far as is known."""
        if self.readers.count_readers(value) <= 1:
            return True
        self.declined = True
        return False


def is_zero(scalar: bool | int | float | None, sign: float) -> bool:
    """Return whether `scalar` is a zero of that sign; integers have one zero only."""
    if scalar is None or scalar != 0:
        return False
    return not isinstance(scalar, float) or math.copysign(1.0, scalar) == sign


def is_power_of_two(scalar: bool | int | float | None) -> bool:
    """Return whether `scalar` is a float that is plus or minus a power of two."""
    if not isinstance(scalar, float) or not math.isfinite(scalar):
        return False
    return abs(math.frexp(scalar)[0]) == 0.5
