"""Apply functions of variables to tensors: each call is a step, traced once per signature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

import numpy as np

from primgraph.base.user_lines import caller, instruction
from primgraph.defaults import current as default_dtype
from primgraph.eager.derivatives.recording import is_tracked
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.inplace.indexing import with_numbers
from primgraph.eager.inplace.views import makes_views, share_as_numpy, share_step
from primgraph.eager.mixed import apply_tracing, in_program_of
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import compute, debugging, postpone, source_of
from primgraph.eager.steps import Call, Step, assemble_result, constant_classes, key_of, trace_call
from primgraph.eager.tensor import Tensor, plain_families
from primgraph.errors import WRITTEN, ArgumentError, PrimgraphError, ShapeError
from primgraph.ir.types import TensorType
from primgraph.numpy.aliasing import view_of
from primgraph.operators.call import appliers
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable, handles

# Functions with the positions at which Python numbers are data: their values are no part of the
# cache key.
_OF_NUMBERS = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "maximum", "minimum"), (0, 1)),
    **dict.fromkeys(("remainder", "floor_divide", "equal", "not_equal"), (0, 1)),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), (0, 1)),
    "power": (0, 1),
    "where": (1, 2),
    "clip": (0, 1, 2),
}
# Integers up to this bound are exact in float64.
_EXACT = 2**53
# Numbers up to here are finite in all floats.
_FINITE = 65_504
_KEPT = 16_384

_known = (*_OF_NUMBERS, "getitem", "set_slice")
_wrapped = {name: functions[name].__wrapped__ for name in _known}  # type: ignore[attr-defined]
_of_numbers = {_wrapped[name]: places for name, places in _OF_NUMBERS.items()}
_power = _wrapped["power"]
# Functions with boolean-mask indices: the number of true elements decides the result's shape.
_by_masks = {_wrapped["getitem"], _wrapped["set_slice"]}
# Functions that got NumPy integers as sizes or axes, which are part of the structure.
_by_integers: set[Callable[..., Any]] = set()
_MOST_AXES = 64
_ARRAYS = (np.ndarray, np.generic)
# Traced calls by signature: only those whose operands are of the dtypes that the family wants.
_calls: dict[Any, Call] = {}
# Place of the family in a signature, after the function and the default dtype. That decides the
# dtype of Python floats and of creation functions, and the family which results share elements.
_FAMILY = 2


def apply(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Apply `function`, of variables, to arguments that contain tensors."""
    if (adoption := adopting.get()) is not None:
        return apply_tracing(adoption, function, args, kwargs)
    if function in _by_masks:
        args, kwargs = _with_numbers(args, kwargs)
    inputs: list[Node] = []
    entries: list[Any] = [function, default_dtype[0], Tensor]
    family = Tensor
    for argument in args:
        kind = type(argument)
        if kind is Tensor and argument._alias is None:
            node = argument.last_node
            inputs.append(node)
            entries.append(node.type)
        elif kind in plain_families:
            node = argument.last_node if argument._alias is None else argument.node
            inputs.append(node)
            entries.append(node.type)
            family = family if (known := plain_families[kind]) is Tensor else known
        else:
            entries.append(_key_entry(function, argument, args, inputs))
            if kind is not float and kind is not int:
                family = _family(argument, family)
    for name, argument in kwargs.items():
        entries += (name, _key_entry(function, argument, (), inputs))
        family = _family(argument, family)
    entries[_FAMILY] = family
    signature = tuple(entries)
    call = _calls.get(signature)
    if call is None:
        if (others := family.operands(function, args)) is not None:
            return apply(function, others, kwargs)
        if any(isinstance(v, Variable) for v in handles((*args, *kwargs.values()))):
            return in_program_of(function, args, kwargs)
        call, inputs = _new_call(signature, function, args, kwargs, inputs)
    place = instruction(3)
    nodes = tuple(inputs)
    step = call.plain
    if step is None or debugging.get():
        return _results_of_steps(call, nodes, place, family, function, args, kwargs)
    tracked = is_tracked(step, nodes)
    found = family(Node(step.type, step, nodes, tracked, place))
    if not tracked:
        postpone(found, nodes)
    if call.shares:
        _share_views([found], function, args, kwargs, call)
    return found


def _has_integers(argument: Any) -> bool:
    """Return whether an argument is a short tensor of integers or booleans, or holds one."""
    if isinstance(argument, list | tuple):
        return any(map(_has_integers, argument))
    return (
        isinstance(argument, Tensor)
        and argument.dtype.kind in "biu"
        and argument.size <= _MOST_AXES
    )


def _as_integers(argument: Any) -> Any:
    """Return an argument with lists of numbers for its short tensors of integers."""
    if isinstance(argument, list | tuple):
        return type(argument)(map(_as_integers, argument))
    return argument.tolist() if _has_integers(argument) else argument


def _with_numbers(
    args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments of an indexing function with numbers for tensors in slices."""
    if "index" in kwargs:
        kwargs = {**kwargs, "index": with_numbers(kwargs["index"])}
    return [args[0], *map(with_numbers, args[1:2]), *args[2:]], kwargs


def _results_of_steps(
    call: Call,
    nodes: tuple[Node, ...],
    place: tuple[CodeType, int] | None,
    family: type[Tensor],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """Return the results of a call that has several, or a view, or that is computed at once."""
    results = [family(_build_node(s, nodes, place, family)) for s in call.steps]
    for result in results:
        if not result.node.tracked:
            postpone(result, nodes)
    if call.shares:
        _share_views(results, function, args, kwargs, call)
    return assemble_result(call, results)


def _new_call(
    signature: tuple[Any, ...],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    inputs: list[Node],
) -> tuple[Call, list[Node]]:
    """Trace a call that needs no other operands, and return it with its input nodes."""
    family = signature[_FAMILY]
    try:
        call = _trace_call(function, args, kwargs, inputs)
    except PrimgraphError as error:
        again = _call_with_integers(function, args, kwargs, family)
        if again is None and isinstance(error, ArgumentError | ShapeError):
            again = _call_with_lists(function, args, kwargs, family)
        if again is None:
            raise
        call, inputs, signature = again
    call.shares = family.writes_through and makes_views(function, family)
    _calls[signature] = call
    if len(_calls) > _KEPT:
        del _calls[next(iter(_calls))]
    return call, inputs


def _share_views(
    results: Sequence[Tensor],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    call: Call,
) -> None:
    """Let results that are views share the elements of an argument."""
    if not results:
        return
    if not type(results[0]).shares_detached:
        for i, (result, step) in enumerate(zip(results, call.steps, strict=True)):
            number = None if call.tree is None else i
            link = view_of(function, tuple(args), kwargs, number, Tensor)
            if link is not None:
                share_as_numpy(result, step, link)
        return
    source = args[0] if args else None
    if isinstance(source, Tensor):
        for result, step in zip(results, call.steps, strict=True):
            share_step(result, source, function, step)


def _call_with_integers(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    family: type[Tensor],
) -> tuple[Call, list[Node], tuple[Any, ...]] | None:
    """Return the call that treats NumPy integers as structure, like shapes; None if impossible.

    Beside the call stand its input nodes and its signature.
    """
    if function in _by_integers or not _holds_integers((*args, *kwargs.values())):
        return None
    _by_integers.add(function)
    try:
        return _keyed_call(function, args, kwargs, family)
    except PrimgraphError:
        _by_integers.discard(function)
        return None


def _call_with_lists(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    family: type[Tensor],
) -> tuple[Call, list[Node], tuple[Any, ...]] | None:
    """Return the call with numbers for short tensors of static integers, as those of `insert`."""
    if not any(map(_has_integers, (*args[1:], *kwargs.values()))):
        return None
    named = {name: _as_integers(a) for name, a in kwargs.items()}
    try:
        return _keyed_call(function, [*args[:1], *map(_as_integers, args[1:])], named, family)
    except PrimgraphError:
        return None


def _keyed_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    family: type[Tensor],
) -> tuple[Call, list[Node], tuple[Any, ...]]:
    """Trace a call, and return it with its input nodes and its signature."""
    inputs: list[Node] = []
    key: list[Any] = [function, default_dtype[0], family]
    key += [_key_entry(function, a, args, inputs) for a in args]
    for name, argument in kwargs.items():
        key += (name, _key_entry(function, argument, (), inputs))
    return _trace_call(function, args, kwargs, inputs), inputs, tuple(key)


def _holds_integers(arguments: Sequence[Any]) -> bool:
    return any(
        _holds_integers(a) if isinstance(a, list | tuple) else _may_be_structure(a)
        for a in arguments
    )


def _may_be_structure(argument: Any) -> bool:
    """Return whether an argument may be a size or an axis, or several, given as NumPy integers."""
    if isinstance(argument, np.ndarray):
        return argument.dtype.kind in "iu" and argument.ndim < 2 and argument.size <= _MOST_AXES
    return isinstance(argument, np.integer)


def _family(argument: Any, known: type[Tensor]) -> type[Tensor]:
    """Return the tensor family of `argument` if it is a subclass, else `known`."""
    if isinstance(argument, Tensor):
        return known if argument.family is Tensor else argument.family
    if type(argument) is list or type(argument) is tuple:
        for item in argument:
            known = _family(item, known)
    return known


def _build_node(
    step: Step,
    inputs: tuple[Node, ...],
    place: tuple[CodeType, int] | None,
    family: type[Tensor],
) -> Node:
    tracked = is_tracked(step, inputs)
    node = Node(step.type, step, inputs, tracked, place)
    if step.is_view:
        (source,) = inputs
        if not family.writes_through:
            node.base = source.holder
        if not tracked and source.array is not None:
            # Other parts of one array are no other structure.
            node.array = step.evaluate([source.array])
            node.step, node.inputs = None, ()
    if debugging.get():
        compute([node])
    return node


def _key_entry(
    function: Callable[..., Any], argument: Any, args: Sequence[Any], inputs: list[Node]
) -> Any:
    """Return the cache-key entry of an argument, and append its arrays to `inputs`."""
    kind = type(argument)
    if kind is float or kind is int:
        dtype = _number_dtype(function, argument, args)
        if dtype is None:
            return (kind, argument) if kind is int else key_of(argument)
        type_ = TensorType((), dtype)
        inputs.append(Node(type_, None, (), False, None, _array(argument, dtype)))
        return (kind, type_)
    if kind in constant_classes:
        return (kind, argument)
    if kind is slice:
        return key_of(argument)
    if isinstance(argument, Tensor):
        node = argument.node
        inputs.append(node)
        return node.type
    if kind is list or kind is tuple:
        return (kind, *[_key_entry(function, a, (), inputs) for a in argument])
    if isinstance(argument, Variable):
        return Variable
    if _is_data(function, argument):
        node = array_node(np.array(array_of(argument)))
        inputs.append(node)
        # A tensor of this type may be promoted in another way.
        return (kind, node.type)
    return key_of(argument)


def _number_dtype(function: Callable[..., Any], number: float, args: Sequence[Any]) -> Any:
    """Return the dtype of a Python number that is data of `function`; None if it is structure."""
    places = _of_numbers.get(function)
    if places is None:
        return None
    exact = -_EXACT <= number <= _EXACT
    if function is _power and (not exact or 2 * number == round(2 * number)):
        # Powers with exponents such as 2 and 0.5 have formulas of their own.
        return None
    dtype = None
    for i in places:
        other = args[i] if i < len(args) else None
        if other is not number and isinstance(other, Tensor):
            found = other.last_node.type.dtype
            if dtype is not None and found is not dtype and found != dtype:
                return None
            dtype = found
    if dtype is None or (dtype.kind in "fc" and (exact or type(number) is float)):
        return dtype
    if type(number) is int and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return dtype if limits.min <= number <= limits.max else None
    return None


def _array(number: float, dtype: Any) -> np.ndarray[Any, Any]:
    """Convert a number to an array; values out of range become infinite, as in programs."""
    if -_FINITE <= number <= _FINITE or dtype.kind != "f":
        return np.array(number, dtype)
    with np.errstate(over="ignore"):
        return np.array(number, dtype)


def _is_data(function: Callable[..., Any], argument: Any) -> bool:
    """Return whether an argument is an array whose elements are not part of the structure."""
    if not isinstance(argument, _ARRAYS):
        return False
    if function in _by_integers and _may_be_structure(argument):
        return False
    return argument.dtype.kind != "b" or function not in _by_masks


def _trace_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], inputs: list[Node]
) -> Call:
    def arrange_arguments(variables: Iterator[Variable]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (
            tuple([_fill_variables(function, a, args, variables) for a in args]),
            {n: _fill_variables(function, a, (), variables) for n, a in kwargs.items()},
        )

    try:
        return trace_call(function, [n.type for n in inputs], arrange_arguments)
    except PrimgraphError as error:
        error.origin = ()
        raise error.located(_origin(inputs)) from None


def _origin(inputs: Sequence[Node]) -> list[str]:
    """Return the lines for an error: the user's line, and the lines that computed the operands."""
    place = caller()
    lines = [f"{WRITTEN}  {place}   {place.text}".rstrip()]
    for node in dict.fromkeys(inputs):
        made = source_of(node)
        if made is not None:
            step = "" if node.step is None else f"{node.step} at "
            lines.append(f"{node.type} comes from {step}{made}   {made.text}".rstrip())
    return lines


def _fill_variables(
    function: Callable[..., Any], argument: Any, args: Sequence[Any], variables: Iterator[Variable]
) -> Any:
    """Return `argument` with variables in place of the arrays that `_key_entry` collected."""
    kind = type(argument)
    if isinstance(argument, Tensor):
        return next(variables)
    if kind is float or kind is int:
        number = _number_dtype(function, argument, args) is not None
        return next(variables) if number else argument
    if kind is list or kind is tuple:
        return kind([_fill_variables(function, a, (), variables) for a in argument])
    if _is_data(function, argument):
        return next(variables)
    return argument


# `object` stands for arrays.
appliers.update(
    {kind: apply for kind in (object, *appliers) if issubclass(kind, Tensor) or kind is object}
)
