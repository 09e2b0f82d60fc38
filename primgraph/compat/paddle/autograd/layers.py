"""`PyLayer`: functions with their own backward method, as in Paddle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, final

from primgraph.base.atomic import Setting
from primgraph.custom.called import call_custom
from primgraph.custom.declared import Declared
from primgraph.custom.definition import Call, Definition, call_rule
from primgraph.custom.function import Context
from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.frontend.signature import call_user_function
from primgraph.operators.handle import Handle

_hooks: ContextVar[tuple[Any, Any] | None] = ContextVar("primgraph_saved_hooks", default=None)


@final
class saved_tensors_hooks(Setting):
    """Context in which tensors that a `PyLayer` saves pass through two functions.

    `pack_hook` is called with each tensor that `save_for_backward` gets, and `unpack_hook` with
    what it returned when `saved_tensor` is called. Functions of this package save no tensors.

    >>> with paddle.autograd.saved_tensors_hooks(lambda x: x, lambda x: x):
    ...     pass
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        super().__init__(_hooks, (pack_hook, unpack_hook))


class PyLayerContext(Context):
    """State shared by `forward` and `backward`: tensors, and other things as attributes."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        super().__init__(needs_input_grad)
        self._packed: tuple[Any, Any] | None = None

    def save_for_backward(self, *arrays: Any) -> None:
        """Save tensors for `backward`."""
        hooks = _hooks.get()
        if hooks is None:
            super().save_for_backward(*arrays)
        else:
            pack, unpack = hooks
            self._packed = unpack, [None if a is None else pack(a) for a in arrays]

    def saved_tensor(self) -> tuple[Any, ...]:
        """Return the saved tensors."""
        if self._packed is None:
            return self.saved_tensors
        unpack, packed = self._packed
        return tuple(None if p is None else unpack(p) for p in packed)

    def mark_not_inplace(self, *args: Any) -> None:
        """Do nothing: results are never their arguments."""

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Do nothing: gradients have the dtypes of what they belong to."""


class PyLayer:
    """A function with its own derivative: subclasses define static `forward` and `backward`.

    `forward(ctx, *args, **kwargs)` returns tensors, and `backward(ctx, *grads)` a gradient, or
    None, for each tensor among the arguments. Call it by `apply`.

    >>> class Cube(paddle.autograd.PyLayer):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensor()
    ...         return 3 * x * x * grad
    ...
    >>> x = paddle.to_tensor(2.0, stop_gradient=False)
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    """

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; defined by subclasses."""
        raise MissingMethodError("You must implement the forward function for PyLayer.")

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Compute the gradients; defined by subclasses."""
        raise MissingMethodError("You must implement the backward function for PyLayer.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its derivative is that of `backward`."""
        tensors: list[Any] = []
        _map_tensors((args, kwargs), lambda tensor: tensors.append(tensor))
        rule = Declared(f"{cls.__module__}.{cls.__qualname__}", _OfLayer(cls, args, kwargs))
        return call_custom(rule, tensors, {})


@final
class _OfLayer(Definition):
    """Definition by the methods of a subclass of `PyLayer`, for one structure of arguments."""

    pushes = None

    def __init__(self, owner: type[PyLayer], args: Any, kwargs: Any) -> None:
        self.name = owner.__name__
        self.owner = owner
        self.pulls = owner.backward
        self._arguments = args, kwargs

    def begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        left: Iterator[Any] = iter(args)
        given, named = _map_tensors(self._arguments, lambda _: next(left))
        context = PyLayerContext(tuple(_needs(a) for a in args))
        return call_user_function(self.owner.forward, context, *given, **named), context

    def constants(self, state: Any) -> Collection[Any]:
        found: Collection[Any] = state._constants
        return found

    def materializes(self, state: Any) -> bool:
        found: bool = state._materialize
        return found

    def push(self, call: Call, tangents: Sequence[Any]) -> Sequence[Any]:
        raise AssertionError("there is no rule for tangents")

    def pull(self, call: Call, cotangents: Sequence[Any]) -> Sequence[Any]:
        given = call.unflatten_results(cotangents)
        each = given if isinstance(given, list | tuple) else [given]
        context = call.state
        context._call = call
        try:
            found = call_rule(self.owner.backward, context, *each)
        finally:
            context._call = None
        listed = list(found) if isinstance(found, list | tuple) else [found]
        if len(listed) == len(call.args):
            return listed
        needed = context.needs_input_grad
        if len(listed) == sum(needed):
            left = iter(listed)
            return [next(left) if need else None for need in needed]
        raise ArgumentError(
            f"backward of {self.name} returns {len(listed)} gradients, and forward takes "
            f"{len(call.args)} tensors"
        )


def _needs(tensor: Any) -> bool:
    return not tensor.stop_gradient


def _map_tensors(found: Any, change: Callable[[Any], Any]) -> Any:
    """Return `found` with `change(t)` in place of each tensor, in lists, tuples and dicts, too."""
    if isinstance(found, Handle):
        return change(found)
    if isinstance(found, list | tuple):
        items = [_map_tensors(item, change) for item in found]
        return type(found)(*items) if hasattr(found, "_fields") else type(found)(items)
    if type(found) is dict:
        return {name: _map_tensors(item, change) for name, item in found.items()}
    return found
