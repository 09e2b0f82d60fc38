"""Primitives of values with user-defined derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, MissingRuleError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.params import Named, find_named
from primgraph.ir.primitive import Types, active_recorder, primitive
from primgraph.ir.types import TensorType
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.rewrite.sink_moves import LAST, without_own_slope

# Static arguments of a call, by position or name, in order.
Static: TypeAlias = tuple[tuple[int | str, Any], ...]
# For each batching of a call: the batch size, and which operands have the batch axis.
Batched: TypeAlias = tuple[tuple[int, tuple[bool, ...]], ...]


class Slope(ABC):
    """Derivative of a call on operands of given types, as graphs of primitives.

    Only the floats among the results count. Each graph is created on demand.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def floats(self) -> tuple[int, ...]:
        """Positions of the operands with a derivative: the floats among the arguments."""

    @property
    @abstractmethod
    def defined_rules(self) -> tuple[bool, bool]:
        """Whether the user defined `push`, and whether the user defined `pull`."""

    @abstractmethod
    def push(self, present: tuple[int, ...]) -> Graph:
        """Return the graph from operands, results and tangents of the operands at `present` to
        tangents of the results."""

    @abstractmethod
    def pull(self, present: tuple[int, ...]) -> Graph:
        """Return the graph from operands, results and cotangents of the results to cotangents of
        the operands at `present`."""


class Rules(Named, ABC):
    """Rules of one function, or of one call of it."""

    __slots__ = ()

    @abstractmethod
    def slope(self, static: Static, types: Types, batched: Batched) -> Slope | None:
        """Return the derivative of a call; None if this object is for another call.

        `types` are those of operands with batch axes.
        """


def slope_of(rule: Named, call: Named, static: Static, types: Types, batched: Batched) -> Slope:
    """Return the derivative of a call, looked up by name if the call was read from text or a file.

    Raises `MissingRuleError` if no function of that name is declared.
    """
    for given in (call, rule):
        known = given if isinstance(given, Rules) else find_named(given.name)
        found = known.slope(static, types, batched) if isinstance(known, Rules) else None
        if found is not None:
            return found
    raise MissingRuleError(
        f"nothing here is named {rule.name!r}, by whose rules this value is to be differentiated",
        hint="import the module that declares it; what was declared in another function, or again "
        "under the same name, is known to the process that did so only",
    )


@primitive(impl=lambda z, *others, **params: np.array(z), formal=True, own_slope="given",
           singular=True, flops=0)  # fmt: skip
def as_custom(
    z: TensorType,
    *others: TensorType,
    rule: Named,
    call: Named,
    static: Static,
    count: int,
    result: int,
    batched: Batched,
) -> TensorType:
    """Return `z`, the float result number `result` of a custom function of `count` operands.

    `others` starts with the operands; for several float results, all of these follow. `rule` is the
    function, and `call` its trace for these operands.
    """
    _require_objects("as_custom", rule, call)
    if not z.is_inexact:
        raise DTypeError(f"as_custom takes floats, not {z}")
    results = others[count:] or (z,)
    if not 0 <= count <= len(others) or not 0 <= result < len(results) or results[result] != z:
        raise ShapeError(f"as_custom: {z} is not result {result} of {', '.join(map(str, results))}")
    return z


@primitive(
    impl=lambda *inputs, **params: _compute_tangents(inputs, **params),
    linear=lambda *, present, **params: tuple(range(len(present))),
    multiple=True,
    singular=True,
    flops=0,
)
def custom_tangents(
    *inputs: TensorType,
    rule: Named,
    call: Named,
    static: Static,
    count: int,
    present: tuple[int, ...],
    batched: Batched,
) -> tuple[TensorType, ...]:
    """Return the tangents of a custom function's results, from those of the operands at `present`.

    After the tangents, `inputs` has all operands and the results. Transforms that will transpose it
    use this op, so that cotangents pass the user's cotangent rule.
    """
    _require_objects("custom_tangents", rule, call)
    return inputs[len(present) + count :]


for _op in (as_custom, custom_tangents):
    _op.opaque("the rule in the parameters says it: see `slopes`")


# Only where nothing is differentiated any more.
LAST.rule(as_custom)(without_own_slope)


@as_custom.pushforward
def _as_custom_pushforward(
    inputs: Sequence[Value],
    tangents: Mapping[int, Value],
    turned: bool,
    *,
    rule: Named,
    call: Named,
    static: Static,
    count: int,
    result: int,
    batched: Batched,
) -> tuple[Value | None]:
    x, z = inputs[1 : 1 + count], inputs[1 + count :]
    present = tuple(i for i in range(count) if i + 1 in tangents)
    if not present:
        return (None,)
    params = {"rule": rule, "call": call, "static": static, "count": count, "batched": batched}
    y = [as_custom(v, *x, *z, result=i, **params) for i, v in enumerate(z or inputs[:1])]
    dx = [tangents[i + 1] for i in present]
    if turned:
        return (custom_tangents(*dx, *x, *y, present=present, **params)[result],)
    graph = slope_of(rule, call, static, _types(x), batched).push(present)
    return (
        _inline_graph(graph.with_outputs(graph.outputs[result : result + 1]), [*x, *y, *dx])[0],
    )


@as_custom.slopes
def _as_custom_slopes(
    inputs: Sequence[Value],
    positions: Sequence[int],
    *,
    rule: Named,
    call: Named,
    static: Static,
    count: int,
    batched: Batched,
    result: int,
) -> list[tuple[Graph, Sequence[Value], Sequence[Value]]]:
    x = inputs[1 : 1 + count]
    slope = slope_of(rule, call, static, _types(x), batched)
    present = tuple(p - 1 for p in positions if p - 1 in slope.floats)
    pushes, pulls = slope.defined_rules
    if not present:
        return []
    graphs = [*([slope.push(present)] if pushes else []), *([slope.pull(present)] if pulls else [])]
    return [(g, [g.inputs[i] for i in present], g.inputs[count:]) for g in graphs]


@as_custom.batch
def _as_custom_batch(
    flags: tuple[bool, ...], *inputs: Value, count: int, batched: Batched, **params: Any
) -> Value:
    size = next(v.shape[0] for v, has in zip(inputs, flags, strict=True) if has)
    operands = [
        v if has or 0 < i <= count else broadcast(v, shape=(size, *v.shape), new_axes=(0,))
        for i, (v, has) in enumerate(zip(inputs, flags, strict=True))
    ]
    now = (*batched, (size, flags[1 : 1 + count]))
    return as_custom(*operands, count=count, batched=now, **params)


@custom_tangents.transpose
def _custom_tangents_transpose(
    cts: Sequence[Value],
    *inputs: Any,
    rule: Named,
    call: Named,
    static: Static,
    count: int,
    present: tuple[int, ...],
    batched: Batched,
) -> tuple[Value | None, ...]:
    rest = inputs[len(present) :]
    slope = slope_of(rule, call, static, _types(rest[:count]), batched)
    return (*_inline_graph(slope.pull(present), [*rest, *cts]), *[None] * len(rest))


@custom_tangents.batch
def _custom_tangents_batch(
    flags: tuple[bool, ...], *inputs: Value, count: int, batched: Batched, **params: Any
) -> tuple[Value, ...]:
    size = next(v.shape[0] for v, has in zip(inputs, flags, strict=True) if has)
    operands = [
        v if has else broadcast(v, shape=(size, *v.shape), new_axes=(0,))
        for v, has in zip(inputs, flags, strict=True)
    ]
    now = (*batched, (size, (True,) * count))
    return custom_tangents(*operands, count=count, batched=now, **params)


def _compute_tangents(
    inputs: Sequence[Any],
    *,
    rule: Named,
    call: Named,
    static: Static,
    count: int,
    present: tuple[int, ...],
    batched: Batched,
) -> list[Any]:
    """Compute the tangents of the results from arrays."""
    dx, rest = inputs[: len(present)], inputs[len(present) :]
    types = tuple([TensorType(np.shape(a), np.asarray(a).dtype) for a in rest[:count]])
    return interpret(slope_of(rule, call, static, types, batched).push(present), *rest, *dx)


def _require_objects(name: str, *given: Any) -> None:
    for value in given:
        if not isinstance(value, Named):
            raise ArgumentError(f"the rule of {name} is an object, not {value!r:.60}")


def _types(values: Sequence[Value]) -> Types:
    return tuple([v.type for v in values])


def _inline_graph(graph: Graph, inputs: Sequence[Value]) -> list[Value]:
    """Record `graph` on `inputs` with the source line that is being differentiated."""
    builder = active_recorder()
    assert isinstance(builder, Builder)
    moved = dict(zip(graph.inputs, inputs, strict=True))
    builder.add_all(graph.body, moved, builder.source)
    return [moved.get(v, v) for v in graph.outputs]
