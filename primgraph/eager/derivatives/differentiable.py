"""What derivatives make of a tensor: whether they go through it; what `backward` keeps for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, final
from weakref import ref

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives.reverse import unheld
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.node import Node, given
from primgraph.eager.run import postpone
from primgraph.eager.steps import constant, same
from primgraph.errors import WRITTEN, ArgumentError, DTypeError, NotDifferentiable, ShapeError
from primgraph.ir.types import TensorType
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import functions

D = TypeVar("D", bound="Differentiable[Any]")

_numbers = count()


class TensorWarning(UserWarning):
    """What a tensor is asked for has another effect than it would have elsewhere."""


@final
class Hook:
    """What takes a hook away again."""

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self._hooks = hooks
        self._number = number

    def remove(self) -> None:
        """Let the hook be called no more."""
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
    """What `backward` has put into a tensor, and what it is to call."""

    gradient: D | None = None
    retained: bool = False
    hooks: dict[int, Callable[[D], D | None]] = field(default_factory=dict)
    after: dict[int, Callable[[Any], None]] = field(default_factory=dict)


class Differentiable(Handle, Generic[D]):
    """A handle that shows a node, and has what `backward` keeps for it: `Tensor` is the one.

    Gradients are of its `family`.
    """

    # The node that was shown last is in `last_node`: that of a view may be older than its storage.
    __slots__ = ("__weakref__", "_alias", "_backward", "last_node")

    family: type[D]
    # Whether a change in place of a view changes what it is a view of.
    writes_through: ClassVar[bool] = False
    # Whether `x.detach()` is a view, and a change that is not recorded keeps the derivative.
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
        """The node that this shows; that of a view is of what its storage holds by now."""
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
        """Show another value from now on. Gradients by what it was are its own, too."""
        call_all(self.showing(node))

    def showing(self, node: Node) -> list[Call]:
        """The calls that let this tensor show `node`, for `call_all`."""
        before = self.node
        itself: Any = ref(self)
        calls: list[Call] = [(setattr, before, "holder", None)]
        if before.tracked and before.is_leaf:
            calls.append((setattr, before, "former", itself))
        return [*calls, (set_node, self, node), (setattr, node, "holder", itself)]

    def storing(self, node: Node, stored: dict[Alias, Node]) -> list[Call]:
        """Return the calls that let this tensor, and all that share its elements, show `node`.

        They are for `call_all`. `stored` has what calls before these put into storages.
        """
        if self._alias is None:
            return self.showing(node)
        return self._alias.storing(self, node, stored)

    @property
    def requires_grad(self) -> bool:
        """Whether derivatives go through it."""
        return self.node.tracked

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        self.requires_grad_(requires_grad)

    @property
    def is_leaf(self) -> bool:
        """Whether it was given, or counts as a constant, and not computed from what is tracked."""
        return self.node.is_leaf

    @property
    def grad(self) -> D | None:
        """The gradient that `backward` has put there, or None.

        Tensors that are no leaves have one only after `retain_grad()`; a warning says so.
        """
        known = self._backward
        if known is not None and known.gradient is not None:
            return known.gradient
        # What is attached to a manager stands on such a step: it gets its gradient from there.
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
            if not isinstance(gradient, Differentiable):
                raise ArgumentError(f"a gradient is a tensor or None, not {gradient!r:.60}")
            if gradient.type != self.type:
                raise ShapeError(f"the gradient of {self.type} cannot be {gradient.type}")
            if gradient is self:
                raise ArgumentError("a tensor cannot be its own gradient")
        if gradient is not None or self._backward is not None:
            self.kept().gradient = gradient

    def kept(self) -> _Backward[D]:
        """The gradient, the hooks and what else `backward` keeps, to be changed."""
        known = self._backward
        if known is None:
            known = self._backward = _Backward()
        return known

    @property
    def retains_grad(self) -> bool:
        """Whether `backward` puts the gradient here though it is no leaf."""
        return self._backward is not None and self._backward.retained

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Let derivatives go through it from now on, or not; the tensor itself is returned.

        Raises `NotDifferentiable` for one that was computed from what is tracked, `DTypeError`
        where derivatives are asked of integers.
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
        """Let `backward` put the gradient into `.grad` here, too, though it is no leaf.

        Raises `NotDifferentiable` for a tensor that does not require a gradient.
        """
        if not self.requires_grad:
            raise NotDifferentiable("can't retain_grad on a tensor that has requires_grad=False")
        if not self.is_leaf:
            self.kept().retained = True

    def register_hook(self, hook: Callable[[D], D | None]) -> Hook:
        """Let `hook` see each gradient by this tensor, and change it: what it gives counts, if not
        None. Hooks are called in the order in which they were registered.

        Raises `NotDifferentiable` for a tensor that does not require a gradient.
        """
        if not self.requires_grad:
            raise NotDifferentiable(
                "cannot register a hook on a tensor that doesn't require gradient"
            )
        return _registered(self.kept().hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Self], None]) -> Hook:
        """Call `hook` with this leaf whenever `backward` has added to its `.grad`.

        Raises `NotDifferentiable` for a tensor that is no leaf that requires a gradient.
        """
        if not (self.requires_grad and self.is_leaf):
            raise NotDifferentiable("post accumulate grad hooks are for leaves that require grad")
        return _registered(self.kept().after, hook)

    @property
    def has_hooks(self) -> bool:
        """Whether hooks see the gradient by it."""
        return self._backward is not None and bool(self._backward.hooks)

    def hooked(self, gradient: Node) -> Node:
        """What the hooks make of a gradient."""
        found = self.family(unheld(gradient))
        for hook in tuple(self.kept().hooks.values()):
            changed = hook(found)
            if changed is None:
                continue
            if not isinstance(changed, Differentiable) or changed.type != found.type:
                kind = (
                    changed.type if isinstance(changed, Differentiable) else type(changed).__name__
                )
                raise ShapeError(f"a hook got {found.type} and gave {kind}", origin=_line_of(hook))
            found = changed
        return found.node

    def received(self, gradient: Node) -> Node:
        """The gradient by this tensor, as tensors of its family have it."""
        return gradient

    def call_after(self) -> None:
        """Call the hooks that wait for an addition to `.grad`."""
        for hook in tuple(self.kept().after.values()):
            hook(self)

    def leaving_hooks(self, before: Node) -> list[Call]:
        """The calls that leave the hooks to the value before, for whose gradient they are."""
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
        """A tensor of the same elements that is a constant for derivatives.

        A change in place of one of the two is not one of the other.
        """
        node = self.node
        if adopting.get() is not None:
            found: D = functions["stop_gradient"](self)
        else:
            found = self.family(leaf(node, False))
            postpone(found)
        if isinstance(found, Differentiable):
            found.node.base = node.holder
        return found

    def detach_(self) -> Self:
        """Count as a constant for derivatives from now on."""
        if self.node.tracked:
            calls = self.showing(leaf(self.node, False))
            if self._backward is not None:
                calls.append((setattr, self, "_backward", _Backward(self._backward.gradient)))
            call_all(calls)
        return self

    def clone(self) -> Self:
        """The same elements, with derivatives going through, as a tensor that is no view."""
        found = self._given("assign", self)
        if isinstance(found, Differentiable):
            found.node.base = None
            if found._alias is not None:
                found._alias.leave(found)
        return found

    def copy(self, order: str = "C") -> Self:
        """`clone`, as NumPy calls it: code that was written for NumPy goes on to change it."""
        return self.clone()


# Sets the slot itself, also of tensors of classes with a property of that name.
set_node: Callable[[Differentiable[Any], Node], None] = vars(Differentiable)["last_node"].__set__


def _registered(hooks: dict[int, Any], hook: Callable[..., Any]) -> Hook:
    if not callable(hook):
        raise ArgumentError(f"a hook is a function, not {hook!r:.60}")
    number = next(_numbers)
    hooks[number] = hook
    return Hook(hooks, number)


def _line_of(function: Any) -> list[str]:
    """Where a function was written, for an error."""
    code = getattr(function, "__code__", None)
    return [] if code is None else [f"{WRITTEN}  {code.co_filename}:{code.co_firstlineno}"]


def leaf(node: Node, tracked: bool) -> Node:
    """A node of the same value that derivatives take as given."""
    if node.array is not None:
        return given(node.array, tracked)
    return Node(node.type, constant(node.type), (node,), tracked, node.place)
