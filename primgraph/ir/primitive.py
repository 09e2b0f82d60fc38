"""Primitives: ops of the small closed set, with the rules that transforms need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, final, overload

from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, MissingRuleError, PrimgraphError
from primgraph.ir.dims import Dim
from primgraph.ir.facts.ops import (
    Fact,
    Op,
    Recorder,
    Rule,
    Types,
    active_recorder,
    homes,
    innermost,
    later,
    loaded_ops,
    lookup,
    record_by_default_into,
    recording,
    registered,
)
from primgraph.ir.facts.rules import SLOTS, Ruled, no_tangent
from primgraph.ir.frontend.signature import check_arguments, signature_error
from primgraph.ir.index_maps import Dependence, Opaque, identity, view_map
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.ir.value import Value
from primgraph.ir.views import View

__all__ = [
    "Fact", "Linear", "Op", "Primitive", "Recorder", "Rule", "Types", "active_recorder", "homes",
    "innermost", "later", "loaded_ops", "lookup", "primitive", "record_by_default_into",
    "recording", "registered",
]  # fmt: skip

# The result of calling a primitive: a value, or a tuple of values.
R = TypeVar("R")
T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """Placeholder in a transpose rule for an operand in which the equation is linear."""

    type: TensorType

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype


@final
class Primitive(Ruled, Generic[R]):
    """Operation of the small closed set, with every rule that the transforms need.

    Called on values it returns an `R`: a `Value`, or a tuple of them if it is `multiple`. `linear`
    says in which operands it is linear: True for all jointly, a tuple for some of them jointly, a
    function that returns these from the parameters, `"each"` for each operand alone (a product),
    None for none. `elementwise` primitives map operands of equal shape element by element.
    `singular` ones may return an infinity or NaN, in value or derivative, for finite operands.
    `constant` ones have derivative zero wherever it exists. `moves` marks those that only rearrange
    elements of their operands and add zeros; primitives declared as views do so, too. `literal`
    ones have no operands: their parameters hold the result, so that recomputing it is free.
    `random` ones draw random numbers, so the result says nothing about the operand. `flops` is the
    cost: operations per element of the result, or a rule `rule(*types, **params)` for the whole
    result. `facts` are further facts, by kind; see `Fact`. `rules_task` is the task of a module
    that declares rules, which is loaded when one is asked for.
    """

    __slots__ = (
        "_flops", "constant", "elementwise", "impl", "linear", "literal", "random", "singular",
        "type_rule",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        type_rule: Rule,
        impl: Rule,
        *,
        linear: bool | tuple[int, ...] | str | Callable[..., tuple[int, ...]] | None = None,
        multiple: bool = False,
        commutative: bool = False,
        elementwise: bool = False,
        singular: bool = False,
        constant: bool = False,
        formal: bool = False,
        own_slope: bool | str = False,
        stops: bool = False,
        moves: bool = False,
        literal: bool = False,
        random: bool = False,
        has_bodies: bool = False,
        flops: int | Rule | None = None,
        facts: Mapping[Fact[Any], Any] | None = None,
        rules_task: str = "",
    ) -> None:
        _require_functions(name, type_rule, impl)
        super().__init__(
            name,
            multiple=multiple,
            commutative=commutative,
            formal=formal,
            own_slope=own_slope,
            stops=stops,
            has_bodies=has_bodies,
        )
        self.type_rule = type_rule
        self.impl = impl
        self.linear = linear
        self.elementwise = elementwise
        self.singular = singular
        self.constant = constant
        self.literal = literal
        self.moves = moves
        self.random = random
        self._flops = flops
        self._jvp = {}
        self.rules_task = rules_task
        if not rules_task:
            for slot in SLOTS:
                setattr(self, slot, None)
        for kind, fact in (facts or {}).items():
            self.declare(kind, fact)

    @overload
    def __call__(self: Primitive[Value], *inputs: Value, **params: Any) -> Value: ...

    @overload
    def __call__(
        self: Primitive[tuple[Value, ...]], *inputs: Value, **params: Any
    ) -> tuple[Value, ...]: ...

    def __call__(self, *inputs: Value, **params: Any) -> Value | tuple[Value, ...]:
        """Record this primitive on values of the active builder."""
        outputs = active_recorder().emit(self, inputs, params)
        return outputs if self.multiple else outputs[0]

    def infer(self, types: Types, params: dict[str, Any]) -> Types:
        try:
            result = self.type_rule(*types, **params)
        except TypeError as error:
            found = _misfit_error(self, error, types, params)
            if found is None:
                raise
            raise found from None
        return result if self.multiple else (result,)

    def evaluate(self, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        result = self.impl(*arrays, **params)
        return tuple(result) if self.multiple else (result,)

    def linear_operands(self, count: int, params: dict[str, Any] | None = None) -> tuple[int, ...]:
        """Return the positions, among `count` operands, in which this primitive is linear.

        None of them if that depends on the parameters and these are missing.
        """
        if self.linear is True or self.linear == "each":
            return tuple(range(count))
        if callable(self.linear):
            return () if params is None else self.linear(**params)
        return self.linear if isinstance(self.linear, tuple) else ()

    def flops(self, types: Types, params: dict[str, Any]) -> int:
        """Return the number of floating-point operations on operands of these types.

        Additions, subtractions, multiplications and comparisons count as one, divisions and square
        roots as four, other functions as eight: F. H. McMahon, The Livermore Fortran Kernels,
        report UCRL-53745, 1986. Integers and booleans count like floats, moves as nothing.

        Raises `MissingRuleError` for a primitive that was declared without it.
        """
        if self._flops is None:
            raise MissingRuleError(
                f"it is not known what primitive {self.name} costs",
                hint="declare it with flops=..., a number for each element or a rule of the types",
            )
        if callable(self._flops):
            found = self._flops(*types, **params)
            return found if isinstance(found, Dim) else int(found)
        if self._flops == 0:
            return 0
        return self._flops * sum(t.size for t in self.infer(types, params))

    @property
    def costs_nothing(self) -> bool:
        """Whether it is declared to cost no operation, whatever the operands."""
        return self._flops == 0

    @property
    def has_index_map(self) -> bool:
        """Whether it is declared what elements of results depend on."""
        declared = self._index_map is not None or self.elementwise or self.is_view
        return declared or self.has_bodies

    def dependence(
        self, k: int, i: int, operands: Types, results: Types, params: dict[str, Any]
    ) -> Dependence:
        """Return what of operand `i` the elements of result `k` depend on; see `index_map`.

        Of a formal primitive the first operand is the result, and the others are what it stands
        for.
        """
        if self.elementwise or (self.formal and i == 0):
            return identity(results[k].shape)
        if self._view is not None:
            return view_map(self.seen(k, operands[i], params), operands[i].shape, results[k].shape)
        if self._index_map is None:
            return Opaque("its graphs say it" if self.has_bodies else "it is not declared")
        found: Dependence = self._index_map(k, i, operands, results, **params)
        return found

    def moving(self, inputs: Sequence[T]) -> Sequence[T]:
        """Return those `inputs` along which the derivative may be nonzero."""
        if no_tangent not in self._jvp.values():
            return inputs
        return [v for i, v in enumerate(inputs) if self._jvp.get(i) is not no_tangent]

    def is_flat(self, position: int) -> bool:
        """Whether no tangent comes from the operand at this position; see `flat`."""
        return self._jvp.get(position) is no_tangent

    def jvp_rule(self, position: int) -> Rule | None:
        return self._jvp.get(position)

    @property
    def transpose_rule(self) -> Rule:
        return _require_rule(self.name, self._transpose, "transpose")

    @property
    def batch_rule(self) -> Rule:
        return _require_rule(self.name, self._batch, "batching")

    @property
    def has_transpose_rule(self) -> bool:
        return self._transpose is not None

    @property
    def has_batch_rule(self) -> bool:
        return self._batch is not None

    def seen(self, k: int, x: TensorType, params: dict[str, Any]) -> View | None:
        """Return how result `k` is a view of the operand `x`, for a view primitive."""
        found: View | None = _require_rule(self.name, self._view, "view")(k, x, **params)
        return found


def _require_functions(name: str, type_rule: Any, impl: Any) -> None:
    for part, rule in (("type rule", type_rule), ("impl", impl)):
        if not callable(rule):
            raise ArgumentError(f"the {part} of {name} is a function, not {rule!r:.60}")


def _require_rule(name: str, rule: Rule | None, kind: str) -> Rule:
    """Return `rule`; raise `MissingRuleError` if the primitive of that name has none."""
    if rule is None:
        raise MissingRuleError(
            f"primitive {name} has no {kind} rule",
            hint=f"declare one with @{name}.{'batch' if kind == 'batching' else kind}",
        )
    return rule


def _misfit_error(
    op: Primitive[Any], error: TypeError, types: Types, params: dict[str, Any]
) -> ArgumentError | None:
    """Return the error for arguments that the type rule does not take, if that is the fault."""
    is_own = isinstance(error, PrimgraphError)
    found = None if is_own else signature_error(op.type_rule, types, params)
    if found is None:
        return None
    return ArgumentError(f"{op.name}:{found.message.partition(':')[2]}", hint=found.hint)


@overload
def primitive(
    *, name: str | None = None, impl: Rule, multiple: Literal[False] = False, **properties: Any
) -> Callable[[Rule], Primitive[Value]]: ...


@overload
def primitive(
    *, name: str | None = None, impl: Rule, multiple: Literal[True], **properties: Any
) -> Callable[[Rule], Primitive[tuple[Value, ...]]]: ...


@check_arguments
def primitive(
    *, name: str | None = None, impl: Rule, **properties: Any
) -> Callable[[Rule], Primitive[Any]]:
    """Decorate a type rule to make it a primitive, by default of the same name.

    `impl` computes the value from arrays; `properties` are those of `Primitive`.

    >>> from primgraph.extend import emit, lift, primitive
    >>> @primitive(impl=lambda x: x[::-1], linear=True)
    ... def backwards(x):
    ...     return x
    >>> @backwards.transpose
    ... def backwards_transpose(ct, x):
    ...     return (backwards(ct),)
    >>> pg.check_grads(lambda x: emit(backwards, lift(x)), [np.array([1.0, 2.0])])
    """

    def declare(type_rule: Rule) -> Primitive[Any]:
        return Primitive(name or type_rule.__name__.rstrip("_"), type_rule, impl, **properties)

    return declare
