"""Functions with separate derivative rules: `custom_jvp`, `custom_vjp`, `custom_gradient`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, reduce, update_wrapper
from types import MethodType
from typing import Any, TypeVar, final

from primgraph.custom.called import call_custom
from primgraph.custom.declared import Declared
from primgraph.custom.definition import Call, Definition, call_rule, lift_result, rule_error
from primgraph.errors import ArgumentError, MissingRuleError
from primgraph.ir.frontend.signature import call_user_function
from primgraph.operators.elementwise.arithmetic import add

R = TypeVar("R", bound=Callable[..., Any])


@final
class _Ruled(Definition):
    """Function with its rules as separate functions, as in JAX."""

    def __init__(self, function: Callable[..., Any], fixed: Sequence[int]) -> None:
        self.name = _name(function)
        self.function = function
        self.fixed = _positions(fixed)
        self.pushes = None
        self.pulls = None
        self.forward: Callable[..., Any] | None = None

    def begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        return call_user_function(self.function, *args, **kwargs), None

    def push(self, call: Call, tangents: Sequence[Any]) -> Sequence[Any]:
        assert self.pushes is not None
        before, primals = self._split_arguments(call.args)
        numbers = [
            0.0 if d is None and type(a) is float else d
            for a, d in zip(call.args, tangents, strict=True)
        ]
        _, along = self._split_arguments(numbers)
        found = call_rule(self.pushes, *before, tuple(primals), tuple(along))
        value, tangent = _pair(self.pushes, found, "the value and its tangent")
        _compare(call, self.pushes, value)
        return call.flatten_result(tangent, self.pushes)

    def pull(self, call: Call, cotangents: Sequence[Any]) -> Sequence[Any]:
        assert self.forward is not None
        assert self.pulls is not None
        before, primals = self._split_arguments(call.args)
        found = call_rule(partial(self.forward, **call.kwargs), *call.args)
        value, kept = _pair(self.forward, found, "the value and what the other one needs")
        _compare(call, self.forward, value)
        given = _list_results(
            call_rule(self.pulls, *before, kept, call.unflatten_results(cotangents))
        )
        if len(given) != len(primals):
            return given
        waiting = iter(given)
        return [None if i in self.fixed else next(waiting) for i in range(len(call.args))]

    def _split_arguments(self, given: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Split arguments into those at the fixed positions, and the rest."""
        return (
            [given[i] for i in self.fixed if i < len(given)],
            [a for i, a in enumerate(given) if i not in self.fixed],
        )


def _positions(numbers: Any) -> tuple[int, ...]:
    """Return argument positions from a list or one number."""
    found = [numbers] if isinstance(numbers, int) else numbers
    if isinstance(found, list | tuple) and all(type(n) is int for n in found):
        return tuple(found)
    raise ArgumentError(f"nondiff_argnums are positions in a list or tuple, not {numbers!r:.60}")


@final
class _WithGradient(Definition):
    """Function that returns its value and its gradient function, as in TensorFlow."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = _name(function)
        self.function = self.pulls = function
        self.pushes = None

    def begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        found = call_user_function(self.function, *args, **kwargs)
        return _pair(self.function, found, "its value and the function of the gradient")

    def pull(self, call: Call, cotangents: Sequence[Any]) -> Sequence[Any]:
        if not callable(call.state):
            raise rule_error(
                ArgumentError,
                f"{self.name} gives {call.state!r:.80} for the function of its gradient",
                self.function,
            )
        return _list_results(call_rule(call.state, *cotangents))

    def push(self, call: Call, tangents: Sequence[Any]) -> Sequence[Any]:
        raise NotImplementedError


@final
class CustomFunction:
    """Function whose derivative is defined by rules, independent of how it is computed.

    It is differentiated by its array arguments, which are passed by position. All other arguments,
    Python numbers included, are static: the function is traced again for other values.

    The function and its rules may close over values of the enclosing program or traced function. A
    derivative by such a value raises `NotDifferentiable`. Weights must be arguments: a tensor that
    requires a gradient is an error in a program.

    Rules are functions of variables, so that derivatives of any order and all transforms are
    supported. Given one of the rules for tangents and cotangents, the other is its transpose. Given
    both, forward mode uses the first and reverse mode the second; `pg.check_rules` compares them.
    """

    def __init__(self, function: Callable[..., Any], definition: Definition) -> None:
        update_wrapper(self, function)
        home = getattr(function, "__module__", "")
        name = getattr(function, "__qualname__", definition.name)
        self.definition = definition
        self.declared = Declared(f"{home}.{name}", definition)
        self._signature = inspect.signature(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        definition = self.definition
        if definition.pushes is None and definition.pulls is None:
            raise MissingRuleError(
                f"{definition.name} has no rule for its derivative",
                hint=f"give one with {definition.name}.defjvp(rule) or "
                f"{definition.name}.defvjp(forward, backward)",
            )
        fixed = definition.fixed if isinstance(definition, _Ruled) else ()
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{definition.name}: {error}") from None
        bound.apply_defaults()
        return call_custom(self.declared, bound.args, bound.kwargs, fixed)

    def __get__(self, owner: Any, kind: type[Any] | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __repr__(self) -> str:
        return f"<custom function {self.declared.name}>"

    def defjvp(self, rule: R) -> R:
        """Set `rule(primals, tangents)`, which returns the value and its tangent.

        Both arguments are tuples with an item for each argument of the function; the tangent of an
        argument that is not a float is None. Arguments in `nondiff_argnums` come first. The tangent
        is linear in the tangents, with the types of the value. Returns the rule, so that this can
        be used as a decorator.
        """
        self._require_rules("defjvp").pushes = _function("defjvp", rule)
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set a `rule(tangent, value, *primals)` for each argument: its contribution to the
        tangent.

        None says that an argument contributes nothing.
        """
        listed = [None if r is None else _function("defjvps", r) for r in rules]
        self.defjvp(partial(_combine_rules, self, listed))

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Set the two functions of the cotangent rule.

        `forward` takes the function's arguments, and returns its value and the residuals for
        `backward`. `backward(residuals, ct)` takes these and the cotangent of the value, in the
        same containers. It returns a tuple with a cotangent, or None for zero, for each argument.
        Arguments in `nondiff_argnums` come first and have no cotangent. `backward` need not be
        linear; if it is not, forward mode needs a rule for tangents.
        """
        definition = self._require_rules("defvjp")
        definition.forward = _function("defvjp", forward)
        definition.pulls = _function("defvjp", backward)

    def _require_rules(self, name: str) -> _Ruled:
        if isinstance(self.definition, _Ruled):
            return self.definition
        raise ArgumentError(f"{name} is for what custom_jvp or custom_vjp has made")


def _combine_rules(
    custom: CustomFunction,
    rules: Sequence[Callable[..., Any] | None],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> tuple[Any, Any]:
    """Combine rules for single tangents into a rule for all."""
    value = custom(*primals)
    if len(rules) != len(primals):
        raise ArgumentError(
            f"defjvps got {len(rules)} rules for the {len(primals)} arguments of "
            f"{custom.definition.name}"
        )
    parts = [
        call_user_function(r, d, value, *primals)
        for r, d in zip(rules, tangents, strict=True)
        if r is not None and d is not None
    ]
    return value, reduce(add, parts) if parts else None


def custom_jvp(
    function: Callable[..., Any] | None = None, *, nondiff_argnums: Sequence[int] = ()
) -> Any:
    """Decorate a function to use the tangents of a rule, which `defjvp` sets.

    Arguments at `nondiff_argnums` are not differentiated; the rule receives them separately.

    >>> @pg.custom_jvp
    ... def clipped(x):
    ...     return pg.clip(x, -1.0, 1.0)
    >>> @clipped.defjvp
    ... def rule(primals, tangents):
    ...     return clipped(primals[0]), tangents[0]
    >>> pg.grad(clipped)(5.0)
    array(1.)
    """
    if function is None:
        return partial(custom_jvp, nondiff_argnums=nondiff_argnums)
    return CustomFunction(function, _Ruled(_function("custom_jvp", function), nondiff_argnums))


def custom_vjp(
    function: Callable[..., Any] | None = None, *, nondiff_argnums: Sequence[int] = ()
) -> Any:
    """Decorate a function to use the cotangents of a rule, which `defvjp` sets.

    Arguments at `nondiff_argnums` are not differentiated; the rule receives them separately.

    >>> clipped = pg.custom_vjp(lambda x: pg.clip(x, -1.0, 1.0))
    >>> clipped.defvjp(lambda x: (clipped(x), None), lambda residuals, slope: (slope,))
    >>> pg.grad(clipped)(5.0)
    array(1.)
    """
    if function is None:
        return partial(custom_vjp, nondiff_argnums=nondiff_argnums)
    return CustomFunction(function, _Ruled(_function("custom_vjp", function), nondiff_argnums))


def custom_gradient(function: Callable[..., Any]) -> CustomFunction:
    """Decorate a function to use the gradient that it returns beside its value.

    That function takes a cotangent for each array in the value. It returns a cotangent, or None for
    zero, for each argument; alone for a single argument. The decorated function returns the value.

    >>> @pg.custom_gradient
    ... def clipped(x):
    ...     return pg.clip(x, -1.0, 1.0), lambda slope: slope
    >>> pg.grad(clipped)(5.0)
    array(1.)
    """
    return CustomFunction(function, _WithGradient(_function("custom_gradient", function)))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _function(name: str, given: Any) -> Callable[..., Any]:
    if not callable(given):
        raise ArgumentError(f"{name} takes a function, not {given!r:.80}")
    found: Callable[..., Any] = given
    return found


def _compare(call: Call, rule: Callable[..., Any], value: Any) -> None:
    """Raise if a rule's value has other types than the function's value."""
    items = call.flatten_result(value, rule)
    values = [lift_result(call, rule, "the value", v) for v in items]
    found = [v.type for v in values]
    wanted = list(call.types)
    if found != wanted:
        raise rule_error(
            ArgumentError,
            f"the value that a rule of {call.definition.name} gives is {_types(found)}, and the "
            f"function itself gives {_types(wanted)}",
            rule,
        )
    call.note(rule, values)


def _types(found: Sequence[Any]) -> str:
    return ", ".join(map(str, found))


def _list_results(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def _pair(rule: Callable[..., Any], found: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(found, list | tuple) or len(found) != 2:
        raise rule_error(
            ArgumentError, f"{_name(rule)} gives a pair, {what}, and not {found!r:.80}", rule
        )
    return found[0], found[1]
