"""GradManager: attach tensors, record, call backward; with the semantics of MegEngine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Never, final
from weakref import ref

from primgraph.base.atomic import Call, Exit, call_all
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.accumulation import accumulate
from primgraph.eager.derivatives.backward import seeds_of
from primgraph.eager.derivatives.gradient_nodes import path
from primgraph.eager.derivatives.reverse import gradients_through_hooks, unshared_node
from primgraph.eager.node import Node
from primgraph.eager.steps import same
from primgraph.eager.tensor import Tensor, tensors_in
from primgraph.errors import ArgumentError, BuildError, DTypeError, unknown_name

Callback = Callable[[Tensor, Tensor], Tensor]

# Recording managers, outermost first; the managers of a group share an entry.
_recording: ContextVar[tuple[frozenset[GradManager], ...]] = ContextVar("managers", default=())


_WHERE = "backward gives nothing: gradients are in .grad of the attached tensors"


@final
class Nothing:
    """Result of `GradManager.backward`: false in a condition, without attributes."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "None"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            raise unknown_name("what backward gives", name, (), _WHERE)


@dataclass(slots=True)
class _Attached:
    """Attached tensor with its callbacks; `root` is the node that stands for it while recording."""

    tensor: ref[Tensor]
    callbacks: list[Callback] = field(default_factory=list)
    root: Node | None = None
    before: Node | None = None


@final
class GradManager:
    """Record computations with attached tensors, and put gradients into `.grad`.

    With nested managers, the outer one records the inner one's computation, gradients included, and
    can differentiate them; the inner one takes what the outer one computed as constants. Managers
    in a group, `a | b`, see the same computation, but not each other's gradients.

    >>> w = pg.tensor([1.0, 2.0])
    >>> with pg.GradManager().attach([w]) as manager:
    ...     _ = manager.backward(pg.sum(w * w))
    ...
    >>> w.grad
    tensor([2., 4.])
    """

    __hash__ = object.__hash__

    def __init__(self) -> None:
        self._attached: dict[int, _Attached] = {}
        self._is_recording = False

    def attach(
        self,
        tensors: Tensor | Iterable[Tensor],
        callbacks: Callback | Sequence[Callback] | None = (),
    ) -> GradManager:
        """Accumulate gradients by `tensors` into their `.grad`, from now on.

        Each gradient passes `callbacks`, functions of the tensor and the gradient, first. Only weak
        references are kept. Raises `DTypeError` for tensors that are not floats.
        """
        given = tensors_in(tensors)
        more = [callbacks] if callable(callbacks) else () if callbacks is None else callbacks
        if not isinstance(more, list | tuple) or not all(map(callable, more)):
            raise ArgumentError(f"callbacks are functions of tensor and gradient, not {more!r:.60}")
        fresh: dict[int, _Attached] = {}
        calls: list[Call] = []
        for tensor in given:
            if not tensor.type.is_inexact:
                raise DTypeError(f"only floats have gradients, and this tensor is {tensor.type}")
            known = self._attached.get(id(tensor))
            if known is None or known.tensor() is not tensor:
                known = fresh.setdefault(id(tensor), _Attached(ref(tensor)))
                calls.append((self._attached.__setitem__, id(tensor), known))
            calls.append((known.callbacks.extend, more))
        if self._is_recording:
            calls += _attach_calls([*fresh.values()])
        call_all(calls)
        return self

    def attached_tensors(self) -> list[Tensor]:
        """Return the attached tensors that are still alive, in order."""
        found = (a.tensor() for a in self._attached.values())
        return [t for t in found if t is not None]

    def record(self) -> None:
        """Start recording. Raises `BuildError` if it is recording already."""
        _enter([self])

    def release(self) -> None:
        """Release the tape."""
        _release([self])

    def backward(self, y: Any = (), dy: Any = None) -> Nothing:
        """Add the gradients of `<dy, y>` to `.grad` of the attached tensors; then stop recording.

        `dy` is ones by default. A tensor that `y` does not depend on keeps its `.grad`. The result
        is a placeholder for None that explains itself when used as a gradient. Raises `BuildError`
        where nothing is recorded, `ArgumentError` for what is no tensor, such as a `.grad` of None.
        """
        if not self._is_recording:
            raise BuildError(
                "no computation history. did you forget record() or call a method that clears the "
                "history?",
                hint="what a manager has recorded is released by its first backward",
            )
        try:
            if y is None or isinstance(y, Nothing):
                raise ArgumentError(f"backward of {y}, which is no tensor", hint=_WHERE)
            self._backward(tensors_in(y), dy)
        finally:
            self.release()
        return Nothing()

    def _backward(self, ends: list[Tensor], dy: Any) -> None:
        nodes = [t.node for t in ends]
        attached = [a for a in self._attached.values() if a.tensor() is not None]
        roots = [a.root for a in attached if a.root is not None]
        groups = _recording.get()
        outer = next(i for i, g in enumerate(groups) if self in g) > 0
        seeds = seeds_of(nodes, dy, ones=True)
        way = path(nodes, ready=False)
        found = gradients_through_hooks(way, nodes, roots, seeds, tracked=outer)
        received = []
        for one, gradient in zip(attached, found, strict=True):
            tensor = one.tensor()
            if gradient is None or tensor is None:
                continue
            result = tensor.family(unshared_node(gradient))
            for callback in one.callbacks:
                result = callback(tensor, result)
            received.append((tensor, result.node))
            del result
        with recording.enable_grad():
            accumulate(received)

    def __enter__(self) -> GradManager:
        self.record()
        return self

    def _undo_action(self) -> Callable[[], None]:
        return partial(_release_new, [self], [self._is_recording])

    __exit__ = Exit(release, _undo_action)

    def __or__(self, other: GradManager | Group) -> Group:
        return Group([self]) | other


@final
class Group:
    """Managers that are entered together and record the same computation."""

    def __init__(self, managers: Sequence[GradManager]) -> None:
        self._managers = list(dict.fromkeys(managers))

    def __or__(self, other: GradManager | Group) -> Group:
        more = other._managers if isinstance(other, Group) else [other]
        return Group([*self._managers, *more])

    __ror__ = __or__

    def __enter__(self) -> Group:
        _enter(self._managers)
        return self

    def _leave(self) -> None:
        _release(self._managers)

    def _undo_action(self) -> Callable[[], None]:
        return partial(_release_new, self._managers, [m._is_recording for m in self._managers])

    __exit__ = Exit(_leave, _undo_action)


def _enter(managers: Sequence[GradManager]) -> None:
    if any(m._is_recording for m in managers):
        raise BuildError("A grad manager is already recording")
    calls: list[Call] = [(_recording.set, (*_recording.get(), frozenset(managers)))]
    calls += [(setattr, manager, "_is_recording", True) for manager in managers]
    try:
        call_all([*calls, *_attach_calls([a for m in managers for a in m._attached.values()])])
    except BaseException:
        # If interrupted here, the caller does not know that recording started.
        _release(managers)
        raise


def _release_new(managers: Sequence[GradManager], before: Sequence[bool]) -> None:
    """Release the managers that record now and did not before."""
    _release([m for m, was in zip(managers, before, strict=True) if not was])


def _attach_calls(listed: Sequence[_Attached]) -> list[Call]:
    """Return the calls that let attached tensors show root nodes of their own."""
    calls: list[Call] = []
    shown: dict[int, tuple[Tensor, Node]] = {}
    for attached in listed:
        tensor = attached.tensor()
        if tensor is None:
            continue
        _, before = shown.get(id(tensor), (tensor, tensor.node))
        root = Node(tensor.type, same(tensor.type), (before,), True, None)
        shown[id(tensor)] = tensor, root
        calls += [(setattr, attached, "before", before), (setattr, attached, "root", root)]
    return calls + [call for tensor, node in shown.values() for call in tensor.showing(node)]


def _release(managers: Sequence[GradManager]) -> None:
    """Release the tapes of these managers, last entered first."""
    released = [m for m in managers if m._is_recording]
    if not released:
        return
    calls: list[Call] = [(setattr, manager, "_is_recording", False) for manager in released]
    shown: dict[int, tuple[Tensor, Node]] = {}
    for manager in reversed(released):
        for attached in manager._attached.values():
            tensor = attached.tensor()
            if tensor is not None and attached.before is not None:
                _, node = shown.get(id(tensor), (tensor, tensor.node))
                if node is attached.root:
                    shown[id(tensor)] = tensor, attached.before
            calls += [(setattr, attached, "root", None), (setattr, attached, "before", None)]
    for tensor, node in shown.values():
        calls += tensor.showing(node)
    still = [m for g in _recording.get() for m in g if m._is_recording and m not in released]
    left = tuple([g for g in _recording.get() if not g.isdisjoint(still)])
    call_all([*calls, (_recording.set, left)])
