"""Raising: recognise operators in primitives, for backends that have a better implementation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any, TypeAlias

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.params import bits, freeze_all
from primgraph.ir.primitive import Fact, Op, lookup
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.ir.types import TensorType
from primgraph.operators.call import Operator
from primgraph.operators.elementwise.elementary import exp, log
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise, logic, shapes
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.reductions import SUMS
from primgraph.transforms.dataflow.contract import transform
from primgraph.transforms.lower import lower, operator_names
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.optimize.simplify import simplify
from primgraph.transforms.rewrite.sink_moves import OWN_SLOPES

Definitions: TypeAlias = dict[Value, Equation]
Instance: TypeAlias = tuple[tuple[TensorType, ...], dict[str, Any]]
Finder: TypeAlias = Callable[[Equation, Definitions], Iterator[Instance]]
Finders: TypeAlias = dict[Op, tuple[tuple[str, Finder, Callable[..., Variable] | None], ...]]

# Maximum distance from the last equation of a pattern to its reduction or product.
_REACH = 6


@transform()
def raise_(graph: Graph, math: str = "exact", deny: Collection[str] | None = None) -> Graph:
    """Replace decompositions by their operators: the inverse of `lower`.

    Recognised are softmax, log_softmax, logsumexp, mean, linear, gelu, silu, softplus and relu.
    Each is matched against its own cleaned-up decomposition, so that lowering the result gives the
    same computation. This includes bodies of loops and branches. Larger patterns take precedence.
    Operators named in `deny` are not recognised.

    At level "fast" the graph is cleaned up at that level, which finds sigmoid, softplus and
    log_softmax in forms that overflow or cancel, and `log(sum(exp(x)))` and `exp(x) /
    sum(exp(x))` are recognised without the shift that keeps them finite. Lowering the result
    gives the same real numbers then, in the stable form.

    >>> graph = pg.transforms.lower(pg.trace(pg.softmax, pg.spec(3)))
    >>> print(pg.transforms.raise_(graph))
    graph softmax(%x: f64[3]) {
      %0: f64[3] = softmax(%x, axis=-1)
      return %0
    }
    """
    return _raise_graph(graph, {}, math, operator_names(deny) or frozenset())


def _raise_graph(
    graph: Graph, patterns: dict[Hashable, Graph], math: str, denied: frozenset[str]
) -> Graph:
    """Raise `graph` and its bodies, with a cache of `patterns`."""
    plain = _plain(graph, math)
    builder, moved = rebuild(plain)
    definitions = {v: e for e in plain.body for v in e.outputs}
    for eqn in plain.body:
        if eqn.op.has_bodies:
            raised = map_bodies(eqn, lambda b: _raise_graph(b, patterns, math, denied))
            copy(builder, raised, moved)
            continue
        found = _recognise(eqn, definitions, patterns, math, denied)
        if found is None:
            copy(builder, eqn, moved)
            continue
        op, inputs, params = found
        builder.source = eqn.source or NOWHERE
        moved[eqn.output] = builder.emit(op, [moved[v] for v in inputs], params)[0]
    return dead_code(builder.graph([moved[v] for v in plain.outputs]))


def _recognise(
    eqn: Equation,
    definitions: Definitions,
    patterns: dict[Hashable, Graph],
    math: str,
    denied: frozenset[str],
) -> tuple[Operator, list[Value], dict[str, Any]] | None:
    """Return the operator, operands and parameters whose decomposition ends in `eqn`."""
    finders = _LOOSE_FINDERS if math == "fast" else _FINDERS
    for name, instances, written in finders.get(eqn.op, ()):
        if name in denied:
            continue
        op = lookup(name)
        assert isinstance(op, Operator)
        for types, params in instances(eqn, definitions):
            key = (name, written, types, bits(freeze_all(params.items())))
            if key not in patterns:
                patterns[key] = _pattern(op, types, params, written, math)
            pattern = patterns[key]
            # The mean of a single number is that number: its pattern is empty.
            binding = _match(pattern, eqn.output, definitions) if pattern.body else None
            if binding is not None:
                return op, [binding[v] for v in pattern.inputs], params
    return None


def _pattern(
    op: Operator,
    types: tuple[TensorType, ...],
    params: dict[str, Any],
    written: Callable[..., Variable] | None,
    math: str,
) -> Graph:
    """Return the operator in primitives: its decomposition, or the form `written`."""
    builder = Builder(op.name, source=NOWHERE)
    inputs = [builder.input(t) for t in types]
    if written is None:
        result = builder.emit(op, inputs, params)[0]
    else:
        with builder:
            result = written(*(Variable(builder, v) for v in inputs), **params).value
    return _plain(builder.graph([result]), math)


def _plain(graph: Graph, math: str) -> Graph:
    """Return `graph` in primitives, cleaned up, with custom derivatives removed."""
    loose = math == "fast"
    computed = simplify(lower(graph), extra=OWN_SLOPES)
    # Remaining custom derivatives belong to no operator.
    last = loose and not any(eqn.op.own_slope for eqn in computed.body)
    return clean_up(computed, math, last=last, stable=loose)


def _match(pattern: Graph, value: Value, definitions: Definitions) -> dict[Value, Value] | None:
    """Match `pattern` with its output at `value`; return the binding, or None."""
    parts = {v: e for e in pattern.body for v in e.outputs}

    def extend(part: Value, whole: Value, binding: dict[Value, Value]) -> dict[Value, Value] | None:
        if part in binding:
            return binding if binding[part] is whole else None
        if part.type != whole.type:
            return None
        wanted, found = parts.get(part), definitions.get(whole)
        if wanted is None:
            return {**binding, part: whole}
        if found is None or not wanted.applies_as(found):
            return None
        if len(wanted.inputs) != len(found.inputs):
            return None
        orders = [found.inputs]
        if wanted.op.commutative:
            orders.append(found.inputs[::-1])
        for order in orders:
            extended: dict[Value, Value] | None = {**binding, part: whole}
            for inner, outer in zip(wanted.inputs, order, strict=True):
                if extended is not None:
                    extended = extend(inner, outer, extended)
            if extended is not None:
                return extended
        return None

    return extend(pattern.outputs[0], value, {})


# Candidate instances of an operator that end in an equation: operand types, parameters.


def _alike(eqn: Equation, definitions: Definitions) -> Iterator[Instance]:
    """Yield operators of one operand, of the type of the result."""
    yield (eqn.output.type,), {}


def _gelu(eqn: Equation, definitions: Definitions) -> Iterator[Instance]:
    for approximate in (False, True):
        yield (eqn.output.type,), {"approximate": approximate}


def _axis_operators(eqn: Equation, definitions: Definitions) -> Iterator[Instance]:
    """Yield operators of one operand of the result's type, along the axes of a reduction above."""
    for reduction in _ancestors(eqn, definitions, SUMS):
        axes = reduction.kwargs["axes"]
        if reduction.inputs[0].type == eqn.output.type:
            last = axes == (eqn.output.type.ndim - 1,)
            yield (eqn.output.type,), {"axis": -1 if last else axes}


def _reductions(eqn: Equation, definitions: Definitions) -> Iterator[Instance]:
    """Yield operators that reduce one operand, over the axes of a reduction above."""
    for reduction in _ancestors(eqn, definitions, SUMS):
        x, axes = reduction.inputs[0].type, reduction.kwargs["axes"]
        for keepdims in (False, True):
            axis = None if len(axes) == x.ndim and not keepdims else axes
            yield (x,), {"axis": axis, "keepdims": keepdims}


def _linear(eqn: Equation, definitions: Definitions) -> Iterator[Instance]:
    """Yield products with a matrix, plus a bias of one axis."""
    for product in _ancestors(eqn, definitions, CONTRACTS):
        weight = product.inputs[1].type
        bias = TensorType(weight.shape[-1:], weight.dtype)
        x = TensorType((*eqn.output.shape[:-1], weight.shape[-2]), weight.dtype)
        if weight.ndim == 2:
            yield (x, weight, bias), {"transposed": False}


def _ancestors(eqn: Equation, definitions: Definitions, fact: Fact[bool]) -> Iterator[Equation]:
    """Yield equations whose op has the fact within a few steps above `eqn`, the nearest first."""
    level, seen = [eqn], {eqn}
    for _ in range(_REACH):
        yield from (e for e in level if e.op.fact(fact))
        above = [definitions[v] for e in level for v in e.inputs if v in definitions]
        level = [e for e in dict.fromkeys(above) if e not in seen]
        seen.update(level)


# Common ways to write operators that may overflow.


def _naive_logsumexp(x: Variable, axis: Any, keepdims: bool) -> Variable:
    return log(sum(exp(x), axis, keepdims))


def _naive_softmax(x: Variable, axis: Any) -> Variable:
    return exp(x) / sum(exp(x), axis, True)


# Keyed by the last primitive of the decomposition; larger patterns come first.
_FINDERS: Finders = {
    elementwise.div: (("softmax", _axis_operators, None), ("mean", _reductions, None)),
    elementwise.sub: (("log_softmax", _axis_operators, None),),
    elementwise.add: (("logsumexp", _reductions, None), ("linear", _linear, None)),
    shapes.reshape: (("logsumexp", _reductions, None),),
    elementwise.mul: (("gelu", _gelu, None), ("silu", _alike, None), ("mean", _reductions, None)),
    elementwise.logaddexp: (("softplus", _alike, None),),
    logic.select: (("relu", _alike, None),),
    logic.unless_nan: (("relu", _alike, None),),
}
_LOOSE_FINDERS: Finders = {
    **_FINDERS,
    elementwise.log: (("logsumexp", _reductions, _naive_logsumexp),),
    shapes.reshape: (*_FINDERS[shapes.reshape], ("logsumexp", _reductions, _naive_logsumexp)),
    elementwise.div: (*_FINDERS[elementwise.div], ("softmax", _axis_operators, _naive_softmax)),
}
