"""`Function`: custom forward and backward methods, as in torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, final

from primgraph.custom.called import call_custom
from primgraph.custom.declared import Declared
from primgraph.custom.definition import Call, Definition, call_rule
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BuildError, MissingMethodError
from primgraph.ir.frontend.containers import LEAF
from primgraph.ir.frontend.signature import call_user_function
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable


class Context:
    """State shared by `forward` and `backward`: arrays by `save_for_backward`, others as
    attributes.

    `needs_input_grad` is True for each argument whose gradient may be requested.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._kept: tuple[Any, ...] = ()
        self._constants: tuple[Any, ...] = ()
        self._materialize = True
        self._call: Call | None = None

    def save_for_backward(self, *arrays: Any) -> None:
        """Save arrays, or None: arguments, results, and intermediate values."""
        for array in arrays:
            if array is not None and not isinstance(array, Handle):
                raise ArgumentError(
                    f"save_for_backward takes tensors, variables and None, not {array!r:.60}",
                    hint="other things are kept as attributes: ctx.name = value",
                )
        self._kept = tuple([_current_value(a) for a in arrays])

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Saved arrays. Results have the derivative that `backward` defines."""
        call = self._call
        if call is None:
            raise BuildError(
                "saved_tensors is there in backward and jvp, and not before",
            )
        return tuple([None if a is None else call.saved_array(a) for a in self._kept])

    def mark_non_differentiable(self, *results: Any) -> None:
        """Make results constants, although they may be floats."""
        self._constants = results

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` gets zeros, or None, for results without a cotangent.

        Programs always pass zeros.
        """
        self._materialize = bool(value)

    def mark_dirty(self, *arguments: Any) -> None:
        """Do nothing: in-place operations let a handle show a new value, and change no array."""


def _current_value(array: Any) -> Any:
    """Return the current node of a tensor, as it may show another value later."""
    if isinstance(array, Tensor):
        return array.node
    return None if array is None else Variable(array.recorder, array.value)


class Function:
    """A function with its own derivative: subclasses define static `forward` and `backward`.

    `forward(ctx, *args)` returns a tensor, or several in a tuple. `backward(ctx, *grads)` takes a
    gradient, or None, for each, and returns one, or None, for each argument of `forward`. Instead
    of a context, `forward(*args)` may be combined with `setup_context(ctx, inputs, output)`.
    `jvp(ctx, *tangents)` takes a tangent or None for each argument and returns one for each result;
    without it, forward mode is derived from `backward`. Call the function by `apply`.

    On tensors both run at each call, with numbers at hand. In programs, and for derivatives of
    tensors other than by `backward` and `pg.grad`, they are traced: there no number can be looked
    at.

    >>> class Cube(pg.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * grad
    ...
    >>> x = pg.tensor(2.0, requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y.backward()
    >>> print(y, x.grad)
    tensor(8., requires_grad=True) tensor(12.)
    """

    forward: Any
    backward: Any
    setup_context: Any = None
    jvp: Any = None
    # Whether gradients in `backward` are the conjugates of those here.
    _conjugated: ClassVar[bool] = False
    _declared: Declared | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ArgumentError(
            f"{type(self).__name__} is not called itself",
            hint=f"write {type(self).__name__}.apply(x)",
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the function; its derivative is that of `backward`.

        Raises `MissingMethodError` if either method is missing.
        """
        return call_custom(cls._rules(), args, {})

    @classmethod
    def _rules(cls) -> Declared:
        found = cls.__dict__.get("_declared")
        if found is None:
            found = Declared(f"{cls.__module__}.{cls.__qualname__}", _OfClass(cls))
            cls._declared = found
        rules: Declared = found
        return rules


@final
class _OfClass(Definition):
    """Definition by the methods of a subclass of `Function`."""

    def __init__(self, owner: type[Function]) -> None:
        self.name = owner.__name__
        self.owner = owner
        if not callable(getattr(owner, "forward", None)):
            raise MissingMethodError(f"{self.name} has no forward")
        self.pushes = owner.jvp
        self.pulls = getattr(owner, "backward", None)
        if self.pushes is None and self.pulls is None:
            raise MissingMethodError(
                f"{self.name} has no backward",
                hint="define it as a static method: backward(ctx, *grads)",
            )

    def begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        context = Context(tuple([_needs(a) for a in args]))
        if self.owner.setup_context is None:
            return call_user_function(self.owner.forward, context, *args), context
        result = call_user_function(self.owner.forward, *args)
        call_user_function(self.owner.setup_context, context, tuple(args), result)
        return result, context

    def constants(self, state: Any) -> Collection[Any]:
        found: Collection[Any] = state._constants
        return found

    def materializes(self, state: Any) -> bool:
        found: bool = state._materialize
        return found

    def push(self, call: Call, tangents: Sequence[Any]) -> Sequence[Any]:
        assert self.pushes is not None
        found = self._with_kept(call, self.pushes, tangents)
        if call.tree == LEAF and isinstance(found, list | tuple) and len(found) == 1:
            return list(found)
        return call.flatten_result(found, self.pushes)

    def pull(self, call: Call, cotangents: Sequence[Any]) -> Sequence[Any]:
        assert self.pulls is not None
        given = call.unflatten_results(cotangents)
        each = given if isinstance(given, list | tuple) else [given]
        if self.owner._conjugated:
            found = _conjugates(_list_results(self._with_kept(call, self.pulls, _conjugates(each))))
        else:
            found = _list_results(self._with_kept(call, self.pulls, each))
        while len(found) > len(call.args) and found[-1] is None:
            found.pop()
        return found

    def _with_kept(self, call: Call, rule: Any, given: Sequence[Any]) -> Any:
        """Call a rule while the context provides the saved arrays."""
        context = call.state
        context._call = call
        try:
            return call_rule(rule, context, *given)
        finally:
            context._call = None


def _needs(argument: Any) -> bool:
    if isinstance(argument, Tensor):
        return argument.requires_grad
    return isinstance(argument, Handle) and argument.type.is_inexact


def _conjugates(given: Sequence[Any]) -> list[Any]:
    return [g.conj() if _is_complex(g) else g for g in given]


def _is_complex(given: Any) -> bool:
    return isinstance(given, Handle) and given.type.is_complex


def _list_results(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]
