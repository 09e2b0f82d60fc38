"""In-place operations: the tensor shows a new node; nodes computed from the old one keep it.

Views write through to their base. Families whose views do not share elements warn instead.
"""

from __future__ import annotations

import dis
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.base.user_lines import caller, instruction
from primgraph.eager.array_elements import made_at
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.differentiable import (
    Alias,
    Differentiable,
    TensorWarning,
    leaf,
)
from primgraph.eager.inplace.adoption import Adoption, adopting
from primgraph.eager.inplace.indexing import (
    constant,
    has_arrays,
    moves,
    numpy_index_error,
    require_fit,
    with_numbers,
)
from primgraph.eager.inplace.views import View, with_history
from primgraph.eager.node import Node
from primgraph.eager.run import add_to_evaluation, origin_of, source_of
from primgraph.errors import (
    ArgumentError,
    BoundsError,
    BuildError,
    DTypeError,
    NotDifferentiable,
    ShapeError,
)
from primgraph.operators.handle import are_numbers_fixed
from primgraph.operators.index.scatter import places_of, set_places
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import Variable

T = TypeVar("T", bound=Differentiable[Any])


def change(tensor: T, value: Any, *, augmented: bool = False) -> T:
    """Let `tensor` show `value` from now on, like an in-place operation, and return it.

    `augmented` says that this is `x += y` or similar, after which Python stores the result.

    Raises `ShapeError` and `DTypeError` for a value that does not fit, `BuildError` for a variable,
    and `NotDifferentiable` for a leaf that requires a gradient outside `no_grad`.
    """
    if augmented and are_numbers_fixed.get() and _is_number(tensor):
        found: T = value
        return found
    adoption = adopting.get()
    if isinstance(value, Variable) and adoption is not None:
        return _change_traced(adoption, tensor, value)
    before = tensor.node
    call_all(_changing(tensor, value, {}, augmented))
    del before
    return tensor


def change_together(pairs: Sequence[tuple[T, Any]]) -> None:
    """Let each tensor show its value from now on: all of them, or none after an interrupt or error.

    Raises the errors of `change`.
    """
    # What is replaced lives until all calls are made.
    before = [tensor.node for tensor, _ in pairs]
    stored: dict[Alias, Node] = {}
    calls: list[Call] = []
    for tensor, value in pairs:
        calls += _changing(tensor, value, stored, False)
    call_all(calls)
    del before


def _changing(
    tensor: Differentiable[Any], value: Any, stored: dict[Alias, Node], augmented: bool
) -> list[Call]:
    """Return the calls of a change; `stored` holds the nodes that others put into storages."""
    value = _convert_value(tensor, value)
    is_trained = tensor.requires_grad and tensor.is_leaf
    if is_trained and recording.is_on.get():
        raise NotDifferentiable(
            "a leaf Variable that requires grad is being used in an in-place operation.",
            hint="change it within pg.no_grad()",
        )
    _tell_of_base(tensor, augmented)
    node, before = value.node, tensor.node
    if is_trained:
        node = leaf(node, True)
    elif tensor.shares_detached and not recording.is_on.get():
        node = with_history(before, node)
    calls = tensor.storing(node, stored)
    if tensor.has_hooks and not is_trained:
        calls += tensor.leaving_hooks(before)
    add_to_evaluation(tensor)
    return calls


def _change_traced(adoption: Adoption[Any], tensor: T, value: Variable) -> T:
    """Let the function that is traced change `tensor` to `value`."""
    _require_fit(tensor, value)
    if value.type.dtype != tensor.type.dtype:
        value = functions["astype"](value, tensor.type.dtype)
    adoption.change(tensor, value)
    return tensor


def _is_number(tensor: Differentiable[Any]) -> bool:
    return tensor.ndim == 0 and not isinstance(tensor._alias, View)


def set_elements(tensor: Differentiable[Any], index: Any, value: Any) -> None:
    """Set the elements of `tensor` at `index` to `value`."""
    known = constant(with_numbers(index))
    entries = known if isinstance(known, tuple) else (known,)
    number = _as_data(tensor, value)
    try:
        if not (has_arrays(known) or moves(tensor, entries)):
            change(tensor, functions["set_slice"](tensor, entries, number))
            return
        require_fit(tensor.shape, entries)
        change(tensor, set_places(tensor, *places_of(tensor.shape, known), number))
    except (ArgumentError, BoundsError, DTypeError) as error:
        raise numpy_index_error(error, tensor.shape, entries) from None


def _as_data(tensor: Differentiable[Any], value: Any) -> Any:
    """Convert a number that `tensor` can hold to an array, so that it is data."""
    dtype = tensor.dtype
    if type(value) is complex and dtype.kind == "c":
        return np.array(value, dtype)
    if type(value) is float or type(value) is int:
        if dtype.kind in "fc":
            with np.errstate(over="ignore"):
                return np.array(value, dtype)
        if type(value) is int and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return np.array(value, dtype) if limits.min <= value <= limits.max else value
    return value


def _convert_value(tensor: Differentiable[Any], value: Any) -> Any:
    """Return `value` in the dtype of `tensor`, or raise if it does not fit."""
    if isinstance(value, Variable):
        raise BuildError(
            "a variable of a program has no elements that a tensor could take",
            origin=[*made_at(value), *origin_of(tensor.node)],
            hint="run the program, and give what it returns",
        )
    if isinstance(value, Differentiable) and value.node.type is tensor.node.type:
        return value
    _require_fit(tensor, value)
    return value if value.dtype == tensor.dtype else value.astype(tensor.dtype)


def _require_fit(tensor: Differentiable[Any], value: Any) -> None:
    """Raise `ShapeError` or `DTypeError` for a value that does not fit."""
    if value.type.shape != tensor.type.shape:
        raise ShapeError(f"{tensor.type} cannot be changed in place into {value.type}")
    if not np.can_cast(value.type.dtype, tensor.type.dtype, "same_kind"):
        raise DTypeError(f"{tensor.type} cannot hold {value.type}")


def _tell_of_base(tensor: Differentiable[Any], augmented: bool) -> None:
    """Warn if `tensor` is a copied part of a live tensor, which an in-place change does not
    affect."""
    base = None if tensor.node.base is None else tensor.node.base()
    if tensor.shares_detached or base is None or base is tensor:
        return
    if augmented and _is_stored_back():
        return
    place = caller()
    taken = source_of(tensor.node)
    taken_at = "" if taken is None else f", taken at {taken}   {taken.text}"
    warnings.warn_explicit(
        f"this changes a tensor{taken_at}, and not the one that it was taken from: the two share "
        "no elements; write x[index] = ... on that one",
        TensorWarning,
        place.file,
        place.line,
    )


def _is_stored_back() -> bool:
    """Return whether the running statement is `x[index] += y`, which stores its result back."""
    running = instruction()
    if running is None:
        return False
    code, offset = running
    after = [i.opname for i in dis.get_instructions(code) if i.offset > offset][:6]
    stored = next((name for name in after if name.startswith("STORE_")), "")
    return stored == "STORE_SUBSCR"
