"""Gradient state of a tensor: `requires_grad`, `.grad` and hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import count
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, final
from weakref import ref

from primgraph.base.atomic import Call, call_all
from primgraph.base.records import dataclass
from primgraph.eager.derivatives.reverse import unshared_node
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import postpone
from primgraph.eager.steps import constant, same
from primgraph.errors import WRITTEN, ArgumentError, DTypeError, NotDifferentiable, ShapeError
from primgraph.ir.types import TensorType
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import functions

D = TypeVar("D", bound="Differentiable[Any]")

_numbers = count()


class TensorWarning(UserWarning):
    """Warning that an operation on a tensor has another effect than elsewhere."""


@final
class Hook:
    """Handle that removes a registered hook."""

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self._hooks = hooks
        self._number = number

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Alias(Protocol):
    """How a tensor shares its elements with others."""

    @property
    def is_stale(self) -> bool: ...

    def refresh(self, tensor: Any) -> None: ...

    def leave(self, tensor: Any) -> None: ...

    def storing(self, tensor: Any, node: Node, stored: dict[Alias, Node]) -> list[Call]: ...


@final
@dataclass(slots=True)
class _Backward(Generic[D]):
    """Gradient of a tensor, as filled by `backward`, and its hooks."""

    gradient: D | None = None
    retained: bool = False
    hooks: dict[int, Callable[[D], D | None]] = field(default_factory=dict)
    after: dict[int, Callable[[Any], None]] = field(default_factory=dict)


class Differentiable(Handle, Generic[D]):
    """Handle that shows a node and keeps state for `backward`; the base class of `Tensor`.

    Gradients have its `family`.
    """

    # `last_node` is the node shown last; that of a view may be older than its storage.
    __slots__ = ("__weakref__", "_alias", "_backward", "last_node")

    family: type[D]
    # Whether a change in place of a view changes what it is a view of.
    writes_through: ClassVar[bool] = False
    # Whether `x.detach()` is a view, and an in-place change within no_grad keeps the derivative.
    shares_detached: ClassVar[bool] = False

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return other arguments for an operator on tensors of this family; None for the same."""
        return None

    def __init__(self, node: Node) -> None:
        # What shares its elements, in families in which views do.
        self._alias: Alias | None = None
        self.last_node = node
        # What concerns `backward`; most tensors have nothing of it.
        self._backward: _Backward[D] | None = None
        try:
            node.holder = ref(self)
        except AttributeError:
            raise ArgumentError(
                f"{type(self).__name__} is not called with {type(node).__name__} {node!r:.60}",
                hint="pg.tensor(x) makes a tensor of an array, a number or a list",
            ) from None

    @property
    def node(self) -> Node:
        """Return the node that this shows; a stale view is refreshed from its storage first."""
        alias = self._alias
        if alias is not None and alias.is_stale:
            alias.refresh(self)
        return self.last_node

    @node.setter
    def node(self, node: Node) -> None:
        self.last_node = node

    @property
    def type(self) -> TensorType:
        return self.last_node.type

    def show(self, node: Node) -> None:
        """Show another value from now on. Its gradient is that of the new value."""
        call_all(self.showing(node))

    def showing(self, node: Node) -> list[Call]:
        """Return the calls that let this tensor show `node`, for `call_all`."""
        before = self.node
        itself: Any = ref(self)
        calls: list[Call] = [(setattr, before, "holder", None)]
        if before.tracked and before.is_leaf:
            calls.append((setattr, before, "former", itself))
        return [*calls, (set_node, self, node), (setattr, node, "holder", itself)]

    def storing(self, node: Node, stored: dict[Alias, Node]) -> list[Call]:
        """Return the calls that give this tensor and all its aliases the value `node`.

        They are for `call_all`. `stored` holds the nodes that earlier calls put into storages.
        """
        if self._alias is None:
            return self.showing(node)
        return self._alias.storing(self, node, stored)

    @property
    def requires_grad(self) -> bool:
        """Return whether derivatives go through it."""
        return self.node.tracked

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        self.requires_grad_(requires_grad)

    @property
    def is_leaf(self) -> bool:
        """Return whether it is a leaf: a given tensor or a constant, not computed from tracked
        ones."""
        return self.node.is_leaf

    @property
    def grad(self) -> D | None:
        """Return the gradient that `backward` accumulated, or None.

        A tensor that is not a leaf has one only after `retain_grad()`; otherwise reading it warns.
        """
        known = self._backward
        if known is not None and known.gradient is not None:
            return known.gradient
        # A tensor attached to a GradManager has such a step, and receives its gradient from the
        # manager.
        if not (self.is_leaf or self.retains_grad or self.node.step is same(self.type)):
            warnings.warn(
                "the .grad of a tensor that is no leaf is not filled by backward(): call "
                "retain_grad() on it before, or pg.grad(y, x)",
                TensorWarning,
                stacklevel=2,
            )
        return None

    @grad.setter
    def grad(self, gradient: D | None) -> None:
        if gradient is not None:
            _require_gradient(self, gradient)
        if gradient is not None or self._backward is not None:
            self.kept().gradient = gradient

    def kept(self) -> _Backward[D]:
        """Return the mutable state for `backward`: gradient and hooks."""
        known = self._backward
        if known is None:
            known = self._backward = _Backward()
        return known

    @property
    def retains_grad(self) -> bool:
        """Return whether `backward` fills `.grad` although this is not a leaf."""
        return self._backward is not None and self._backward.retained

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether derivatives go through this tensor, and return it.

        Raises `NotDifferentiable` for a tensor computed from tracked ones, `DTypeError` for
        integers that are to require a gradient.
        """
        if not isinstance(requires_grad, bool):
            raise ArgumentError(f"requires_grad is True or False, not {requires_grad!r:.60}")
        if not self.is_leaf:
            if requires_grad:
                return self
            raise NotDifferentiable(
                "you can only change requires_grad flags of leaf variables.",
                hint="x.detach() is the same elements as a constant",
            )
        if requires_grad is not self.requires_grad:
            if requires_grad and not self.type.is_inexact:
                raise DTypeError(f"only floats have derivatives, and this tensor is {self.type}")
            self.show(leaf(self.node, requires_grad))
        return self

    def retain_grad(self) -> None:
        """Let `backward` fill `.grad` of this tensor although it is not a leaf.

        Raises `NotDifferentiable` for a tensor that does not require a gradient.
        """
        if not self.requires_grad:
            raise NotDifferentiable("can't retain_grad on a tensor that has requires_grad=False")
        if not self.is_leaf:
            self.kept().retained = True

    def register_hook(self, hook: Callable[[D], D | None]) -> Hook:
        """Call `hook` with each gradient by this tensor; a result other than None replaces it.

        Hooks are called in the order of their registration.

        Raises `NotDifferentiable` for a tensor that does not require a gradient.
        """
        if not self.requires_grad:
            raise NotDifferentiable(
                "cannot register a hook on a tensor that doesn't require gradient"
            )
        return _register_hook(_hooks_of(self), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Self], None]) -> Hook:
        """Call `hook` with this leaf whenever `backward` has added to its `.grad`.

        Raises `NotDifferentiable` for a tensor that is no leaf that requires a gradient.
        """
        if not (self.requires_grad and self.is_leaf):
            raise NotDifferentiable("post accumulate grad hooks are for leaves that require grad")
        return _register_hook(self.kept().after, hook)

    @property
    def has_hooks(self) -> bool:
        """Return whether hooks for the gradient are registered."""
        return self._backward is not None and bool(self._backward.hooks)

    def hooked(self, gradient: Node) -> Node:
        """Return the gradient after all hooks."""
        found: Differentiable[Any] = self.family(unshared_node(gradient))
        for hook in tuple(self.kept().hooks.values()):
            found = _apply_hook(hook, found)
        return found.node

    def received(self, gradient: Node) -> Node:
        """Return the gradient by this tensor, as tensors of its family define it."""
        return gradient

    def call_after(self) -> None:
        """Call the hooks that run after an addition to `.grad`."""
        known = self._backward
        if known is not None and known.after:
            for hook in tuple(known.after.values()):
                hook(self)

    def leaving_hooks(self, before: Node) -> list[Call]:
        """Return the calls that move the hooks to the former value, whose gradient they see."""
        own = self.kept()
        left = self.family(Node(before.type, None, (), False, None))
        left._backward = _Backward(hooks=own.hooks)
        return [
            (setattr, self, "_backward", _Backward(own.gradient, own.retained)),
            (set_node, left, before),
            (setattr, before, "holder", ref(left)),
            (setattr, before, "former", lambda: left),
        ]

    def detach(self) -> D:
        """Return a tensor of the same elements that is a constant for derivatives.

        In-place changes of one do not change the other.
        """
        node = self.node
        if adopting.get() is not None:
            found: D = functions["stop_gradient"](self)
        else:
            found = self.family(leaf(node, False))
            postpone(found, found.node.inputs)
        if isinstance(found, Differentiable):
            found.node.base = node.holder
        return found

    def detach_(self) -> Self:
        """Make this tensor a constant for derivatives."""
        if self.node.tracked:
            calls = self.showing(leaf(self.node, False))
            if self._backward is not None:
                calls.append((setattr, self, "_backward", _Backward(self._backward.gradient)))
            call_all(calls)
        return self

    def clone(self) -> Self:
        """Return a differentiable copy that shares no elements."""
        found = self._dispatch("assign", self)
        if isinstance(found, Differentiable):
            found.node.base = None
            if found._alias is not None:
                found._alias.leave(found)
        return found

    def copy(self, order: str = "C") -> Self:
        """Return `clone()`, under NumPy's name."""
        return self.clone()


# Sets the slot itself, also of tensors of classes with a property of that name.
set_node: Callable[[Differentiable[Any], Node], None] = vars(Differentiable)["last_node"].__set__


def _hooks_of(tensor: Differentiable[Any]) -> dict[int, Any]:
    """Return the hooks, which the node keeps after its tensor if it is no leaf."""
    hooks = tensor.kept().hooks
    if not tensor.is_leaf:
        keeper = tensor.family(Node(tensor.type, None, (), False, None))
        keeper._backward = _Backward(hooks=hooks)
        tensor.node.former = lambda: keeper
    return hooks


def _register_hook(hooks: dict[int, Any], hook: Callable[..., Any]) -> Hook:
    if not callable(hook):
        raise ArgumentError(f"a hook is a function, not {hook!r:.60}")
    number = next(_numbers)
    hooks[number] = hook
    return Hook(hooks, number)


def _require_gradient(tensor: Differentiable[Any], gradient: object) -> None:
    """Raise unless `gradient` can be the `.grad` of a tensor."""
    if not isinstance(gradient, Differentiable):
        raise ArgumentError(f"a gradient is a tensor or None, not {gradient!r:.60}")
    if gradient.type != tensor.type:
        raise ShapeError(f"the gradient of {tensor.type} cannot be {gradient.type}")
    if gradient is tensor:
        raise ArgumentError("a tensor cannot be its own gradient")


def _apply_hook(hook: Callable[[Any], Any], gradient: Differentiable[Any]) -> Differentiable[Any]:
    """Return the gradient after a hook, which must keep its type."""
    found = hook(gradient)
    if found is None:
        return gradient
    if not isinstance(found, Differentiable) or found.type != gradient.type:
        kind = found.type if isinstance(found, Differentiable) else type(found).__name__
        raise ShapeError(f"a hook got {gradient.type} and gave {kind}", origin=_line_of(hook))
    return found


def _line_of(function: Any) -> list[str]:
    """Return the line where a function was defined, for an error."""
    code = getattr(function, "__code__", None)
    return [] if code is None else [f"{WRITTEN}  {code.co_filename}:{code.co_firstlineno}"]


def leaf(node: Node, tracked: bool) -> Node:
    """Return a leaf node of the same value."""
    if node.array is not None:
        return array_node(node.array, tracked)
    return Node(node.type, constant(node.type), (node,), tracked, node.place)
