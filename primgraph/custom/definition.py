"""Definitions of custom functions, calls of these as rules see them, and results of rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from primgraph.base.user_lines import definition_line
from primgraph.custom.saved import Saved
from primgraph.errors import WRITTEN, ArgumentError, DTypeError, PrimgraphError, ShapeError
from primgraph.ir.frontend.containers import Leaf, Tree, open_container, unflatten_value
from primgraph.ir.frontend.signature import call_user_function
from primgraph.ir.primitive import Types
from primgraph.ir.types import TensorType
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import SCALARS


class Definition(ABC):
    """User's definition: a function, and rules for its derivative.

    Arguments have the form that the function takes, with arrays as variables of one builder, and
    results the form that it returns. `pushes` is the rule for tangents, `pulls` that for
    cotangents; one of them may be missing. They are used in messages only.
    """

    name: str
    pushes: Callable[..., Any] | None
    pulls: Callable[..., Any] | None
    # Whether the rule for tangents takes None for those that are zero.
    skips_zeros: bool = False
    # Calls whose rules are pickled as graphs; None if the function is found by its name.
    saved: Saved | None = None

    @abstractmethod
    def begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Run the function: return its results, and the state that its rules need."""

    def constants(self, state: Any) -> Collection[Any]:
        """Return the results without derivative although they are floats; none by default."""
        return ()

    def materializes(self, state: Any) -> bool:
        """Return whether zeros replace None for cotangents known to be zero."""
        return True

    @abstractmethod
    def push(self, call: Call, tangents: Sequence[Any]) -> Sequence[Any]:
        """Return a tangent for each leaf of the results, from one for each argument.

        None stands for zero, and for the tangent of a value that is not a float.
        """

    @abstractmethod
    def pull(self, call: Call, cotangents: Sequence[Any]) -> Sequence[Any]:
        """Return a cotangent for each positional argument, from one for each leaf of the results.

        None stands for zero, and for the cotangent of a value that is not a float.
        """


class Call(ABC):
    """Call of a custom function, as its rules see it.

    `args` and `kwargs` are its arguments, `state` what `forward` saved, and `types` those of the
    arrays in its result, whose containers are in `tree`.
    """

    definition: Definition
    kwargs: dict[str, Any]
    state: Any
    tree: Tree
    types: Types

    @property
    @abstractmethod
    def args(self) -> Sequence[Any]:
        """Positional arguments."""

    @abstractmethod
    def saved_array(self, kept: Any) -> Any:
        """Return a saved array; a result has the derivative of the rules."""

    @abstractmethod
    def note(self, rule: Callable[..., Any], values: Sequence[Any]) -> None:
        """Note the value that a rule returns, for the check of rules."""

    @abstractmethod
    def lift(self, array: Any) -> Any:
        """Convert an array or a number to a handle of the arguments' class."""

    @abstractmethod
    def zeros(self, type: TensorType) -> Any:
        """Return zeros as a handle of the arguments' class."""

    def unflatten_results(self, leaves: Sequence[Any]) -> Any:
        """Unflatten one item per result into the containers of the function's result."""
        return unflatten_value(self.tree, iter(leaves))

    def flatten_result(self, found: Any, rule: Callable[..., Any]) -> list[Any]:
        """Flatten the result of a rule in these containers into one item per result."""
        items = _items(self.tree, found)
        if items is None:
            raise rule_error(
                ArgumentError,
                f"a rule of {self.definition.name} gives {found!r:.80}, and what the function "
                f"gives is {self.unflatten_results([str(t) for t in self.types])}",
                rule,
            )
        return items


# Results of rules.


def push_tangents(call: Call, tangents: Sequence[Any]) -> list[Any]:
    """Call the tangent rule: return a handle, or None for zero, for each result."""
    definition = call.definition
    rule = definition.pushes
    found = definition.push(call, tangents)
    _require_count(call, rule, "tangents", found, [f"result {i}" for i in range(len(call.types))])
    return [
        _convert_result(call, rule, f"the tangent of result {i}", d, t) if t.is_inexact else None
        for i, (d, t) in enumerate(zip(found, call.types, strict=True))
    ]


def pull_cotangents(call: Call, cotangents: Sequence[Any]) -> list[Any]:
    """Call the cotangent rule: return a handle, or None for zero, for each argument."""
    definition = call.definition
    rule = definition.pulls
    if definition.materializes(call.state):
        cotangents = [
            call.zeros(t) if ct is None and t.is_inexact else ct
            for ct, t in zip(cotangents, call.types, strict=True)
        ]
    found = definition.pull(call, cotangents)
    names = [f"argument {i}" for i in range(len(call.args))]
    _require_count(call, rule, "cotangents", found, names)
    return [
        _convert_result(call, rule, f"the cotangent of {n}", d, a.type) if _is_float(a) else None
        for n, a, d in zip(names, call.args, found, strict=True)
    ]


def _is_float(argument: Any) -> bool:
    return isinstance(argument, Handle) and argument.type.is_inexact


def call_rule(rule: Callable[..., Any], *given: Any) -> Any:
    """Call a rule; an error about its arguments names the line of its definition."""
    try:
        return call_user_function(rule, *given)
    except ArgumentError as error:
        raise error.located(rule_lines(rule)) from None


def rule_error(
    error: type[PrimgraphError], message: str, rule: Callable[..., Any] | None, hint: str = ""
) -> PrimgraphError:
    """Return the error for an invalid result of a rule, with the line of its definition."""
    return error(message, origin=rule_lines(rule), hint=hint)


def rule_lines(rule: Callable[..., Any] | None) -> tuple[str, ...]:
    """Return the line of an error: where the rule is defined."""
    source = None if rule is None else definition_line(rule)
    return () if source is None else (f"{WRITTEN}  {source}   {source.text}",)


def _items(tree: Tree, found: Any) -> list[Any] | None:
    """Flatten `found` by the containers of `tree`; None if its containers differ."""
    if isinstance(tree, Leaf):
        return [found]
    around = open_container(found)
    if around is None or around[1] != tree.keys:
        return None
    items: list[Any] = []
    for part, inner in zip(tree.parts, around[2], strict=True):
        below = _items(part, inner)
        if below is None:
            return None
        items += below
    return items


def _require_count(
    call: Call,
    rule: Callable[..., Any] | None,
    kind: str,
    found: Sequence[Any],
    wanted: Sequence[str],
) -> None:
    if len(found) != len(wanted):
        raise rule_error(
            ArgumentError,
            f"the rule of {call.definition.name} gives {len(found)} {kind} in the place of "
            f"{len(wanted)}: of {', '.join(wanted)}",
            rule,
            "return None for zero, and for arguments that are not arrays",
        )


def lift_result(call: Call, rule: Callable[..., Any] | None, what: str, found: Any) -> Any:
    """Convert a rule's result for one array to a handle."""
    if isinstance(found, (Handle, *SCALARS)) or hasattr(found, "__array__"):
        return call.lift(found)
    raise rule_error(
        ArgumentError,
        f"{what} of {call.definition.name} is {found!r:.80}, not an array",
        rule,
    )


def _convert_result(
    call: Call, rule: Callable[..., Any] | None, what: str, found: Any, wanted: TensorType
) -> Any:
    """Convert a rule's result for one array to a handle of the required type; None for zero."""
    if found is None:
        return None
    if type(found) in SCALARS and wanted.shape == ():
        found = np.array(found, wanted.dtype)
    handle = lift_result(call, rule, what, found)
    if handle.type != wanted:
        kind = ShapeError if handle.shape != wanted.shape else DTypeError
        name = call.definition.name
        raise rule_error(kind, f"{what} of {name} is {handle.type}, but must be {wanted}", rule)
    return handle
