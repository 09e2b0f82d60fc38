"""Views that share elements: an in-place change of one tensor changes all tensors on its storage.

This applies to families of tensors with `writes_through`, like those of torch and Paddle. Nodes are
immutable, so that sharing is bookkeeping. A `Storage` has the node of all elements, the tensor that
shows it, and a version counter. A write to a view puts a new node into the storage. Another view
notices at the next read that it is stale, and takes its part of the new node. Results computed
before keep the former node.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, TypeAlias, cast, final
from weakref import ref

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.differentiable import Alias, Differentiable, leaf
from primgraph.eager.derivatives.reverse import unshared_node
from primgraph.eager.inplace.indexing import elements_at, with_numbers
from primgraph.eager.node import Node
from primgraph.eager.run import add_to_evaluation
from primgraph.eager.steps import Step, Traced, trace_call
from primgraph.errors import ArgumentError, NotDifferentiable
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType
from primgraph.ir.views import Reshape
from primgraph.numpy.aliasing import VIEWS, Link, is_basic
from primgraph.operators.call import called
from primgraph.operators.index.scatter import set_places
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import Variable, emit
from primgraph.operators.view_graphs import ViewGraph
from primgraph.primitives.elementwise import as_another

Array: TypeAlias = np.ndarray[Any, Any]
AnyTensor: TypeAlias = Differentiable[Any]


@final
class Storage:
    """Storage of an array and its views: `owner` is the base, `node` the current value.

    `version` counts the in-place changes.
    """

    __slots__ = ("node", "owner", "version")

    is_stale = False

    def __init__(self, owner: AnyTensor) -> None:
        self.node = owner.node
        self.owner: Callable[[], AnyTensor | None] = ref(owner)
        self.version = 0

    def refresh(self, tensor: Any) -> None:
        """Do nothing: the owner shows its own node."""

    def storing(self, tensor: AnyTensor, node: Node, stored: dict[Alias, Node]) -> list[Call]:
        """Return the calls that give the base, `tensor`, the new value `node`."""
        return [*tensor.showing(node), *self.view_store_calls(node, stored)]

    def view_store_calls(self, node: Node, stored: dict[Alias, Node]) -> list[Call]:
        """Return the calls that give all views the new value `node`."""
        stored[self] = node
        return [(setattr, self, "node", node), (setattr, self, "version", self.version + 1)]

    def leave(self, tensor: AnyTensor) -> None:
        """Detach `tensor`, the owner, from its views."""
        self.node, self.owner = tensor.node, _dead_reference
        tensor._alias = None


@final
class View:
    """Part of a storage that a tensor shows, taken from `source`, its base.

    `take` computes the node from that of the base, and `part` is the same view of a NumPy array.
    `part` is None for computed elements, such as real parts of complex numbers. With `is_followed`,
    derivatives go through. `seen` is the version of the storage that is shown. `refusal` is the
    reason why the view cannot be written to, if any. `component` is "real" or "imag" for that part
    of complex numbers.
    """

    __slots__ = (
        "component", "is_followed", "outer", "part", "refusal", "seen", "source", "storage", "take",
    )  # fmt: skip

    def __init__(
        self,
        source: AnyTensor,
        take: Callable[[Node], Node],
        part: Callable[[Array], Array] | None,
        is_followed: bool,
    ) -> None:
        node, outer = source.node, source._alias
        self.outer: View | None = outer if isinstance(outer, View) else None
        if isinstance(outer, View):
            self.storage: Storage = outer.storage
        else:
            self.storage = outer if isinstance(outer, Storage) else Storage(source)
            source._alias = self.storage
            self.storage.node = node
        self.source: Callable[[], AnyTensor | None] = ref(source)
        self.take = take
        self.part = part
        self.is_followed = is_followed
        self.refusal = self.component = ""
        self.seen = self.storage.version

    def layout(self) -> Array | None:
        """Return an array with the memory layout of this view of a C-contiguous array in NumPy."""
        return self._apply_to_array(self._unset())

    def geometry(self) -> tuple[int, tuple[int, ...]] | None:
        """Return the offset and the strides of a view in elements; None for computed elements."""
        whole = self._unset()
        part = self._apply_to_array(whole)
        return None if part is None else (part.ctypes.data - whole.ctypes.data, part.strides)

    @property
    def is_copy(self) -> bool:
        """Return whether NumPy copies the elements, as in some reshapes of transposes."""
        whole = self._unset()
        return _are_apart(self._apply_to_array(whole), whole)

    @property
    def is_stale(self) -> bool:
        """Return whether the storage changed since the last refresh."""
        return self.seen != self.storage.version

    def _way(self) -> list[View]:
        """Return the views from the storage to this one."""
        found: list[View] = []
        view: View | None = self
        while view is not None:
            found.append(view)
            view = view.outer
        return found[::-1]

    def _apply_to_array(self, whole: Array) -> Array | None:
        """Apply this view to an array of all elements; None for computed elements."""
        found = whole
        for view in self._way():
            if view.part is None:
                return None
            found = view.part(found)
        return found

    @property
    def is_contiguous(self) -> bool:
        """Return whether the elements are contiguous in memory."""
        part = self._apply_to_array(self._unset())
        return part is None or bool(part.flags.c_contiguous)

    def _unset(self) -> Array:
        """Return an uninitialised array of the storage's shape."""
        return np.empty(self.storage.node.type.shape, np.int8)

    def refresh(self, tensor: AnyTensor) -> None:
        """Let `tensor` show the current elements; a leaf stays one."""
        owner = self.storage.owner()
        node = self.storage.node if owner is None else owner.node
        way = self._way()
        for view, inner in zip(way, [*way[1:], None], strict=True):
            shown = tensor if inner is None else inner.source()
            if shown is None or shown._alias is not view:
                node = view.take(node)
            else:
                node = view._update_node(shown, node)

    def _update_node(self, tensor: AnyTensor, source: Node) -> Node:
        """Return the node of `tensor`, which shows this view of `source`."""
        before = tensor.last_node
        if not self.is_stale:
            return before
        self.seen = self.storage.version
        node = self.take(source)
        is_leaf = before.tracked and before.is_leaf
        tensor.show(leaf(node, True) if is_leaf else node)
        if tensor.has_hooks and not is_leaf:
            call_all(tensor.leaving_hooks(before))
        return tensor.node

    def leave(self, tensor: AnyTensor) -> None:
        """Detach `tensor` from its storage."""
        tensor._alias = None

    def storing(self, tensor: AnyTensor, node: Node, stored: dict[Alias, Node]) -> list[Call]:
        """Return the calls that write `node` to the elements of `tensor`, which shows this view.

        The tensor is stale then, and shows its part of the storage at the next read.

        Raises `ArgumentError` for computed elements and for views with repeated elements,
        `NotDifferentiable` for a view of a leaf that requires a gradient.
        """
        refusals = [view.refusal for view in self._way() if view.refusal]
        if refusals:
            raise ArgumentError(
                refusals[0], hint="x.copy() has elements of its own, which may be assigned to"
            )
        shape = self.storage.node.type.shape
        part = self._apply_to_array(np.arange(self.storage.node.type.size).reshape(shape))
        if part is None:
            raise ArgumentError(
                "this is computed from the elements of another tensor, and cannot be changed in "
                "place: it would be the other tensor that changes",
                hint="compute the new elements, and write them to the other tensor",
            )
        places = np.full(shape, -1)
        places.reshape(-1)[part] = np.arange(part.size).reshape(part.shape)
        if np.count_nonzero(places >= 0) < part.size:
            raise ArgumentError(
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location",
                hint="x.clone() has elements of its own",
            )
        is_recorded = recording.is_on.get() and all(view.is_followed for view in self._way())
        if is_recorded:
            self._refuse_leaves()
        owner = self.storage.owner()
        family = type(tensor).family
        if owner is not None and self.storage not in stored:
            whole = owner
        else:
            whole = family(unshared_node(stored.get(self.storage, self.storage.node)))
        with nullcontext() if is_recorded else recording.no_grad():
            value = self._with_other_component(whole, part, family(unshared_node(node)))
            numbers, taking = np.maximum(places, 0), places >= 0
            new = _whole(whole, numbers, taking, value).node
        if not is_recorded and family.shares_detached:
            new = with_history(whole.node, new)
        calls = self.storage.view_store_calls(new, stored)
        if owner is not None:
            calls += owner.showing(new)
            add_to_evaluation(owner)
        return calls

    def _with_other_component(self, whole: AnyTensor, part: Array, value: AnyTensor) -> AnyTensor:
        """Return complex numbers if the view shows real or imaginary parts: with the other part."""
        component = next((view.component for view in self._way() if view.component), "")
        if not component:
            return value
        held = functions["take"](functions["reshape"](whole, (-1,)), part)
        pair = (value, held.imag) if component == "real" else (held.real, value)
        return cast("AnyTensor", functions["complex"](*pair))

    def _refuse_leaves(self) -> None:
        for view in self._way():
            source = view.source()
            if source is not None and source.requires_grad and source.is_leaf:
                raise NotDifferentiable(
                    "a view of a leaf Variable that requires grad is being used in an in-place "
                    "operation.",
                    hint="change it within no_grad()",
                )


def _whole(whole: AnyTensor, numbers: Array, taking: Array, value: AnyTensor) -> AnyTensor:
    """Return all elements, with those where `taking` replaced by elements of `value`, by index."""
    if taking.all():
        if np.array_equal(numbers.reshape(-1), np.arange(numbers.size)):
            return cast("AnyTensor", functions["reshape"](value, whole.type.shape))
        return cast("AnyTensor", functions["take"](functions["reshape"](value, (-1,)), numbers))
    found: Any = set_places(whole, numbers, taking, value.type.shape, value)
    return cast("AnyTensor", found)


def with_history(before: Node, node: Node) -> Node:
    """Return a node with the value of `node` and the derivative of `before`."""
    if not before.tracked:
        return node
    if before.is_leaf:
        return leaf(node, True)
    return Node(node.type, _replacement_step(node.type), (node, before), True, node.place)


@lru_cache(maxsize=1024)
def _replacement_step(type: TensorType) -> Step:
    """Return the step that returns its first operand with the derivative of its second."""

    def replace_value(new: Variable, old: Variable) -> Variable:
        held: Any = functions["stop_gradient"](new)
        return emit(as_another, held, old, number=1)

    return trace_call(replace_value, [type, type], lambda both: (tuple(both), {})).steps[0]


# Operators whose results share elements if their steps are views. The second set computes elements
# from complex numbers, and still shares them in torch and Paddle.
_SHARING = frozenset(
    (
        "astype",
        "assign",
        "broadcast_to",
        "conj",
        "diagonal",
        "expand_dims",
        "flatten",
        "getitem",
        "imag",
        "matrix_transpose",
        "moveaxis",
        "ravel",
        "real",
        "reshape",
        "split",
        "squeeze",
        "swapaxes",
        "transpose",
    )
)
_COMPUTED = frozenset(("conj", "diagonal", "imag", "real"))


def makes_views(function: Callable[..., Any], family: type[AnyTensor]) -> bool:
    """Return whether results of `function`, applied to variables, may share elements.

    The family decides whether the rules are NumPy's or torch's.
    """
    names = _SHARING if family.shares_detached else VIEWS
    return function.__name__ in names and function in called


def share_step(
    found: AnyTensor, source: AnyTensor, function: Callable[..., Any], step: Step
) -> None:
    """Make `found`, the result of `step`, an alias of `source` if it is a view of it."""
    if not (step.is_view or (function.__name__ in _COMPUTED and len(found.node.inputs) == 1)):
        return
    followed = recording.is_on.get()

    def take(node: Node) -> Node:
        tracked = followed and bool(step.reaching) and node.tracked
        return Node(step.type, step, (node,), tracked, node.place)

    view = View(source, take, _part(step), followed)
    # Only a reshape of a view that is not contiguous is a copy.
    if view.part is not None and _reshapes(step):
        is_copy = view.is_copy if view.outer is not None else _copies_contiguous(step)
        if is_copy:
            return
    found._alias = view


@lru_cache(maxsize=4096)
def _reshapes(step: Step) -> bool:
    """Return whether a step may reshape its operand."""
    return not isinstance(step, Traced) or any(
        not isinstance(eqn.op, Primitive)
        or isinstance(eqn.op.seen(k, eqn.inputs[0].type, eqn.kwargs), Reshape | None)
        for eqn in step.graph.body
        for k in range(len(eqn.outputs))
    )


@lru_cache(maxsize=4096)
def _copies_contiguous(step: Step) -> bool:
    """Return whether NumPy copies the elements of a contiguous array in a step with views."""
    assert isinstance(step, Traced)
    whole = np.empty(step.graph.inputs[0].type.shape, np.int8)
    return _are_apart(ViewGraph(step.graph).part(whole), whole)


def _are_apart(part: Array | None, whole: Array) -> bool:
    return part is not None and part.size > 0 and not np.may_share_memory(part, whole)


@lru_cache(maxsize=4096)
def _part(step: Step) -> Callable[[Array], Array] | None:
    """Return the function that applies the view of `step` to an array; None if it is no view."""
    return ViewGraph(step.graph).part if step.is_view and isinstance(step, Traced) else None


def share_as_numpy(found: AnyTensor, step: Step, link: Link) -> None:
    """Let `found`, the result of `step`, share the elements of its base, like NumPy's view.

    Computed elements count as C-contiguous.
    """
    source: Any = link.base
    followed, family = recording.is_on.get(), type(source).family
    part = _part(step)

    def take(node: Node) -> Node:
        if part is not None:
            tracked = followed and bool(step.reaching) and node.tracked
            return Node(step.type, step, (node,), tracked, node.place)
        with recording.set_grad_enabled(followed):
            taken: Node = link.again(family(unshared_node(node))).node
            return taken

    if part is None and link.name == "getitem":
        # Index with tensors: `share_part` reads their numbers.
        return
    if link.may_copy:
        alias = source._alias
        unset = np.empty(source.shape, np.int8)
        layout = alias.layout() if isinstance(alias, View) else unset
        if layout is None or link.copies(layout):
            return
    if part is None and link.graph is not None:
        part = link.graph.part
    found._alias = view = View(source, take, part, followed)
    view.refusal = link.read_only
    if link.base.type.is_complex and link.name in ("imag", "real"):
        view.component = link.name


def share_part(found: AnyTensor, source: AnyTensor, index: Any) -> None:
    """Make `found`, which is `source[index]`, an alias of `source` if the index has no arrays."""
    entries = index if isinstance(index, tuple) else (index,)
    if any(isinstance(entry, bool | np.bool_) or not _is_basic(entry) for entry in entries):
        return
    known = tuple([with_numbers(e) if _is_plain(e) else e.__index__() for e in entries])
    followed = recording.is_on.get()
    family = type(source).family
    if not (family.shares_detached or is_basic(known, source.ndim)):
        # NumPy returns a scalar for a single element; torch returns a view.
        return

    def take(node: Node) -> Node:
        with recording.set_grad_enabled(followed):
            taken: Node = elements_at(family(unshared_node(node)), known).node
            return taken

    # With an ellipsis, NumPy returns a view of a single element, too.
    whole = known if Ellipsis in map(_ellipsis_or_none, known) else (*known, Ellipsis)
    found._alias = View(source, take, lambda array: cast("Array", array[whole]), followed)


def share_computed(found: Any, source: Any, function: Callable[[Any], Any]) -> Any:
    """Return `found`, made a view `function(source)` of `source` if both are tensors."""
    if isinstance(found, Differentiable) and isinstance(source, Differentiable):
        family, followed = type(source).family, recording.is_on.get()

        def take(node: Node) -> Node:
            with recording.set_grad_enabled(followed):
                taken: Node = function(family(unshared_node(node))).node
                return taken

        found._alias = View(source, take, None, followed)
    return found


def part_from_storage(tensor: AnyTensor) -> None:
    """Detach `tensor` from its storage; its other views stay."""
    if tensor._alias is not None:
        tensor._alias.leave(tensor)


def show_view(tensor: AnyTensor, view: AnyTensor) -> None:
    """Let `tensor` become what `view`, a view of it, is: the same elements in another shape."""
    alias = view._alias
    part_from_storage(tensor)
    tensor.show(view.node)
    if isinstance(alias, View):
        alias.source = _dead_reference
        tensor._alias = alias


def _dead_reference() -> None:
    return None


def show_elements(tensor: AnyTensor, other: AnyTensor) -> None:
    """Let `tensor` share the elements of `other` from now on.

    Its derivative stays.
    """
    before = tensor.node
    view = View(other, lambda node: leaf(node, False), lambda array: array[...], False)
    part_from_storage(tensor)
    tensor.show(with_history(before, leaf(other.node, False)))
    tensor._alias = view


def _ellipsis_or_none(entry: Any) -> Any:
    return entry if entry is Ellipsis else None


def _is_plain(entry: Any) -> bool:
    return entry is None or entry is Ellipsis or isinstance(entry, slice | int)


def _is_basic(entry: Any) -> bool:
    """Return whether an index entry is basic: a slice, None, an ellipsis or an integer scalar."""
    if _is_plain(entry) or isinstance(entry, np.integer):
        return True
    dtype = getattr(entry, "dtype", None)
    return dtype is not None and dtype.kind in "iu" and getattr(entry, "shape", None) == ()


def share_all(found: AnyTensor, source: AnyTensor) -> None:
    """Make `found`, a constant for derivatives, an alias of all of `source`."""
    found._alias = View(source, lambda node: leaf(node, False), lambda array: array[...], False)
