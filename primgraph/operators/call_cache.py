"""Cache of recorded calls: a call like an earlier one records copies of its equations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import EllipsisType, NoneType
from typing import Any, ParamSpec, TypeVar

from primgraph.base.grad_mode import is_on
from primgraph.base.user_lines import caller
from primgraph.defaults import current as default_dtype
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.primitive import innermost
from primgraph.ir.rebuild import Equations
from primgraph.operators.variable import Variable, manner

P = ParamSpec("P")
R = TypeVar("R")

# Functions whose equations follow from the types of variables and from their other arguments.
_decided: set[Callable[..., Any]] = set()

# Maximum number of calls that a builder remembers.
_MOST = 4096

# Classes of static arguments that are equal only if they mean the same.
_PLAIN = frozenset({int, str, bool, NoneType, EllipsisType})


def decided_by_types(function: Callable[P, R]) -> Callable[P, R]:
    """Declare that a function records the same equations for variables of the same types.

    Beside these types, only the other arguments and the default dtype may matter: not how the
    variables were computed, and no state.

    >>> from primgraph.extend import emit, lift, lookup, public
    >>> from primgraph.operators.call_cache import decided_by_types
    >>> @public
    ... @decided_by_types
    ... def negative_sine(x):
    ...     return emit(lookup("neg"), emit(lookup("sin"), lift(x)))
    >>> negative_sine(0.0)
    tensor(-0.)
    """
    _decided.add(function)
    return function


def is_decided_by_types(function: Callable[..., Any]) -> bool:
    """Return whether `decided_by_types` has declared a function."""
    return function in _decided


def call_again(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    apply: Callable[..., Any],
) -> Any:
    """Return the result of a call that the program being recorded has seen, or None.

    The first call of a kind learns, by `apply`, which equations are recorded; later ones record
    copies of these, without the checks. Calls inside others, with symbolic sizes, arrays or
    variables in containers are not remembered.
    """
    context = innermost.get()
    if context is None or context.mixed or manner() is not Variable or not is_on.get():
        return None
    builder: Any = context.recorder
    if type(builder) is not Builder or builder.in_call or not builder.written or builder.ended:
        return None
    values: list[Value] = []
    key: list[Any] = [function, default_dtype[0]]
    for argument in args:
        if not _add_argument(key, values, builder, argument):
            return None
    for name, argument in kwargs.items():
        key.append(name)
        if not _add_argument(key, values, builder, argument):
            return None
    if not values:
        return None
    calls, kind = builder.calls, tuple(key)
    known = calls.get(kind)
    if known:
        return Variable(builder, _copy(builder, known, values))
    if known is not None:
        return None
    result = apply(builder, function, args, kwargs)
    if len(calls) >= _MOST:
        calls.clear()
    is_one = type(result) is Variable and result.recorder is builder
    calls[kind] = _equations_of(builder, values, result.value) if is_one else ()
    return result


def _copy(builder: Builder, equations: Equations, values: list[Value]) -> Value:
    """Record the equations of an earlier call on the operands `values`, and return the result."""
    source = builder.source or caller(3)
    builder.begin_call()
    for eqn, places in equations[:-1]:
        values += builder.copy(eqn, tuple([values[i] for i in places]), source)
    eqn, places = equations[-1]
    return builder.copy(eqn, tuple([values[i] for i in places]), source, held=True)[0]


def _add_argument(key: list[Any], values: list[Value], builder: Builder, argument: Any) -> bool:
    """Add an argument to the key of a call, and the value of a variable to `values`.

    Return False for an argument that a key cannot tell from others.
    """
    kind = argument.__class__
    if kind is Variable:
        value = argument.value
        if argument.recorder is not builder or value not in builder:
            return False
        if value in values:
            key.append(values.index(value))
            return True
        values.append(value)
        key.append(value.type)
        return not value.type.names
    if kind in _PLAIN:
        key += kind, argument
        return True
    if kind is float:
        # Zeros differ by their sign.
        key += kind, argument or repr(argument)
        return bool(argument == argument)
    static = _static_key(argument)
    key += kind, static
    return static is not None


def _static_key(argument: Any) -> Hashable | None:
    """Return a key of a static argument; None for others."""
    kind = argument.__class__
    if kind in _PLAIN:
        return kind, argument
    if kind is slice:
        argument = argument.start, argument.stop, argument.step
    elif kind is not tuple and kind is not list:
        return None
    keys = [_static_key(item) for item in argument]
    return None if None in keys else (kind, *keys)


def _equations_of(builder: Builder, values: Sequence[Value], result: Value) -> Equations:
    """Return the equations that compute `result` from `values`, with the places of operands.

    They are empty if these are not all, or if an identity was added to make the result distinct.
    """
    places = {value: place for place, value in enumerate(values)}
    for value in values:
        # A value that no user holds may be an equal one that the function records, too.
        if builder.definition(value) is not None and not builder.is_held(value):
            return ()
    last = builder.definition(result)
    if result in places or last is None or len(last.outputs) > 1:
        return ()
    if last.op.is_view and last.inputs[0].type is result.type:
        return ()
    whole = places.keys() >= set(last.inputs)
    found = []
    for eqn in [last] if whole else builder.slice([result], values):
        if not places.keys() >= set(eqn.inputs):
            return ()
        found.append((eqn, tuple([places[v] for v in eqn.inputs])))
        for value in eqn.outputs:
            places[value] = len(places)
    return tuple(found)
