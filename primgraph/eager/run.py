"""Evaluate tensors: collect the pending nodes, look up their structure, and run its kernel."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from contextvars import ContextVar
from importlib import import_module
from threading import local
from typing import Any, TypeAlias, TypeVar, final
from weakref import ref

import numpy as np

from primgraph.base.user_lines import Source, source_at
from primgraph.codegen.kernel import Kernel, convert_feeds
from primgraph.eager.buffer_pool import LEAST, shelf
from primgraph.eager.compilation_log import Compilation, Part, log
from primgraph.eager.node import MANY, Holder, Node, forget, lock, nodes_to_compute, numbers
from primgraph.eager.steps import NOWHERE, Step, evaluate_graph
from primgraph.eager.structure_cache import Pattern
from primgraph.errors import WRITTEN, BoundsError, RunError, run_error
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Graph, Value
from primgraph.primitives.elementwise import stop_gradient
from primgraph.program.compile import compile_last
from primgraph.program.finite import check_finite
from primgraph.transforms.pipeline import optimize_graph

Array: TypeAlias = np.ndarray[Any, Any]
K = TypeVar("K")
V = TypeVar("V")

# Whether every operation is computed at once and checked for NaN.
debugging: ContextVar[bool] = ContextVar("primgraph_eager_debug", default=False)

# Longer lists of nodes without derivatives run in pieces, as the pieces of a loop often repeat.
_LONG = 4096
_PIECE = 2048
# Markers in keys; leaves are numbered downwards from there.
_WANTED = -1
_CONSTANT = -2
_SAME = -3
# Maximum number of results that the log names as held in only one of two structures.
_TOLD = 3
# Maximum numbers of remembered structures, and of those with kernels.
_MOST_SEEN = 65_536
_MOST_COMPILED = 512
_MOST_GRAPHS = 16


Begun: TypeAlias = tuple[Kernel, list[Any], list[Node]]
# A kernel, and the pattern of its structure if it can be matched.
Known: TypeAlias = tuple[Kernel, Pattern | None]

# A structure is steps and their wiring, without arrays. One seen once is known by a digest; at the
# second time it gets a kernel.
_seen: dict[bytes, None] = {}
# Graphs of the structures that were seen once last: most of those that repeat do so soon.
_graphs: dict[bytes, Graph] = {}
_kernels: dict[tuple[int, ...], Known] = {}

# The kernel that ran last for the step of the first root: most often it is the next one, too.
_latest: dict[Step | None, Known] = {}


@final
class _PendingTensors(local):
    """Tensors of this thread to be computed with the next evaluation (`tensors`) or the one after
    it (`later`), held weakly. `mark` is the node number at the last evaluation, and
    `evaluation_count` counts evaluations."""

    def __init__(self) -> None:
        self.tensors: dict[int, ref[Holder]] = {}
        self.later: dict[int, ref[Holder]] = {}
        self.mark = -1
        self.looks = 0


_along = _PendingTensors()


def add_to_evaluation(tensor: Holder) -> None:
    """Let `tensor` be computed with the next evaluation of this thread.

    Tensors changed in place, and gradient sums, live on. Computed later, they would need values
    that are at hand now, and keep their whole history alive.
    """
    _along.tensors[id(tensor)] = ref(tensor)


def postpone(tensor: Holder, inputs: Sequence[Node]) -> None:
    """Postpone a pending constant by one or two evaluations, but not forever.

    It is computed from `inputs`. It may never be evaluated explicitly, like a running mean of
    losses. If it depends on nodes older than the last evaluation, the next evaluation computes it,
    with these. A new one may be part of an unfinished step and waits until that is done.
    """
    waits = False
    for other in inputs:
        if other.array is None:
            waits = True
            if other.spent or other.number < _along.mark:
                tensor.node.spent = True
                _along.tensors[id(tensor)] = ref(tensor)
                return
    if waits:
        _along.later[id(tensor)] = ref(tensor)


def evaluation_count() -> int:
    """Return how many evaluations this thread has run."""
    return _along.looks


def _taken_along(roots: Sequence[Node]) -> Sequence[Node]:
    """Return `roots`, and the nodes of the tensors that are computed with them."""
    waiting, _along.tensors, _along.later = _along.tensors, _along.later, {}
    _along.mark = next(numbers)
    tensors = [t for t in (r() for r in waiting.values()) if t is not None]
    return [*dict.fromkeys([*roots, *(t.node for t in tensors)])]


def compute(roots: Sequence[Node]) -> None:
    """Compute the arrays of `roots`, and of all pending nodes on the way that a tensor shows.

    Tensors changed in place are computed with them.
    """
    if _along.tensors or _along.later:
        roots = _taken_along(roots)
    if not roots:
        return
    try:
        _compute(roots)
    except Exception:
        # An error that was raised is not raised again by the next evaluation of something else.
        _along.tensors, _along.later = {}, {}
        raise


def _compute(roots: Sequence[Node]) -> None:
    with lock:
        begun = _match_last_kernel(roots)
        nodes = nodes_to_compute(roots) if begun is None else []
        if begun is not None or nodes:
            _along.looks += 1
        if len(nodes) > _LONG and not _are_whole(nodes):
            for part, wanted in _pieces(nodes, roots):
                _finish(_prepare_kernel(part, wanted))
            return
        if nodes:
            begun = _prepare_kernel(nodes, roots)
    _finish(begun)


def _match_last_kernel(roots: Sequence[Node]) -> Begun | None:
    """Return the kernel of the last run if the pending nodes match its pattern, else None."""
    known = _latest.get(roots[0].step)
    if known is None or debugging.get():
        return None
    kernel, pattern = known
    found = None if pattern is None else pattern.match_roots(roots)
    if found is None:
        return None
    leaves, wanted = found
    return kernel, [leaf.array for leaf in leaves], wanted


def _finish(begun: Begun | None) -> None:
    """Run a kernel, without the lock, so that other threads can run theirs."""
    if begun is None:
        return
    kernel, arrays, wanted = begun
    try:
        results = kernel(*arrays) if not kernel.handed else _run_kernel(kernel, arrays)
    except RunError as error:
        _blame(wanted)
        if isinstance(error.__cause__, IndexError):
            raise BoundsError(error.message, origin=error.origin) from error.__cause__
        raise
    with lock:
        _assign(wanted, results)


def _run_kernel(kernel: Kernel, arrays: Sequence[Any]) -> list[Array]:
    """Run a kernel; large results are written into arrays from the buffer pool."""
    types = kernel.graph.output_types
    return kernel.fill(convert_feeds(kernel, arrays), shelf.take([types[k] for k in kernel.handed]))


def _pieces(nodes: list[Node], roots: Sequence[Node]) -> list[tuple[list[Node], list[Node]]]:
    """Split `nodes` into pieces, each with those of its nodes that later pieces need."""
    last = {n: i for i, node in enumerate(nodes) for n in node.inputs}
    last.update((r, len(nodes)) for r in roots)
    found = []
    for start in range(0, len(nodes), _PIECE):
        part = nodes[start : start + _PIECE]
        end = start + len(part)
        found.append((part, [n for n in part if last.get(n, 0) >= end]))
    return found


def _blame(wanted: Sequence[Node]) -> None:
    """Raise the error of a kernel again with the line of the failing node, if it can be found.

    A kernel knows the lines of the structure that it was compiled for; these may differ.
    """
    with lock:
        nodes = nodes_to_compute(wanted)
    known: dict[Node, Array] = {}
    with np.errstate(all="ignore"):
        for node in nodes:
            arrays = [known.get(n) if n.array is None else n.array for n in node.inputs]
            if node.step is not None and not node.step.whole and all(a is not None for a in arrays):
                known[node] = _evaluate_step(node, arrays)


def _evaluate_step(node: Node, arrays: list[Any]) -> Array:
    """Evaluate the step of a node. Raises `BoundsError` and `RunError`, with the line."""
    try:
        return node.step.evaluate(arrays)  # type: ignore[union-attr]
    except IndexError as error:
        raise BoundsError(f"{node.step}: {error}", origin=origin_of(node)) from None
    except RunError as error:
        cause = error.__cause__
        kind = BoundsError if isinstance(cause, IndexError) else run_error(cause)
        raise kind(error.message, origin=origin_of(node)) from error.__cause__


def _prepare_kernel(nodes: list[Node], roots: Sequence[Node]) -> Begun | None:
    """Return the kernel that is left to run; None if all results were computed here."""
    key, leaves, wanted = _key(nodes, roots)
    arrays = [leaf.array for leaf in leaves]
    if debugging.get():
        _assign(wanted, check_finite(graph_of(nodes, leaves, wanted), *arrays))
        return None
    structure = tuple(key)
    known = _kernels.get(structure)
    if known is None:
        digest = import_module("hashlib").blake2b(array("q", key), digest_size=16).digest()
        if digest not in _seen:
            _add(_seen, digest, None, _MOST_SEEN)
            if _are_whole(nodes):
                graph = graph_of(nodes, leaves, wanted)
                _add(_graphs, digest, graph, _MOST_GRAPHS)
                try:
                    found = evaluate_graph(optimize_graph(graph), arrays)  # type: ignore[arg-type]
                except (IndexError, RunError):
                    _blame(wanted)
                    raise
                _assign(wanted, found)
            else:
                _one_by_one(nodes, wanted)
            return None
        graph = _graphs.pop(digest) if digest in _graphs else graph_of(nodes, leaves, wanted)
        kernel = _compile_graph(graph, nodes, key)
        asked = all(root.array is None for root in roots)
        pattern = Pattern(roots, nodes, leaves, wanted) if asked else None
        known = kernel, pattern
        _add(_kernels, structure, known, _MOST_COMPILED)
    if roots:
        _add(_latest, roots[0].step, known, _MOST_COMPILED)
    return known[0], arrays, wanted


def _add(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Add an entry, and evict the oldest ones over the limit."""
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]


def _assign(nodes: Sequence[Node], arrays: Sequence[Array]) -> None:
    for node, found in zip(nodes, arrays, strict=True):
        node.array = found
        forget(node)


def _are_whole(nodes: Sequence[Node]) -> bool:
    """Return whether the nodes have to be evaluated together."""
    return any(n.step is not None and n.step.whole for n in nodes)


def _key(nodes: list[Node], roots: Sequence[Node]) -> tuple[list[int], list[Node], list[Node]]:
    """Return the cache key of `nodes`, the leaves that they depend on, and the wanted nodes.

    A node is encoded by the number of its step and the positions of its inputs. `_WANTED` before it
    marks a wanted node, `_CONSTANT` one that is not tracked. `_SAME` marks one whose inputs are
    those of the node at the position that follows, as in a step family.
    """
    slots: dict[Node, int] = {}
    wired: dict[int, int] = {}
    leaves: list[Node] = []
    wanted: list[Node] = []
    key: list[int] = []
    asked = set(roots)
    for place, node in enumerate(nodes):
        holder = node.holder
        if (holder is not None and holder() is not None) or node in asked:
            wanted.append(node)
            key.append(_WANTED)
        if not node.tracked:
            key.append(_CONSTANT)
        inputs = node.inputs
        first = wired.setdefault(id(inputs), place) if len(inputs) > MANY else place
        if first != place:
            key += (_SAME, node.step.number, first)  # type: ignore[union-attr]
            slots[node] = place
            continue
        key.append(node.step.number)  # type: ignore[union-attr]
        for other in inputs:
            slot = slots.get(other)
            if slot is None:
                leaves.append(other)
                slot = slots[other] = _SAME - len(leaves)
            key.append(slot)
        slots[node] = place
    return key, leaves, wanted


def _one_by_one(nodes: list[Node], wanted: Sequence[Node]) -> None:
    """Evaluate each node in order; drop arrays that are no longer needed."""
    known: dict[Node, Array] = {}
    last = {n: i for i, node in enumerate(nodes) for n in node.inputs}
    last.update((n, len(nodes)) for n in wanted)
    with np.errstate(all="ignore"):
        for i, node in enumerate(nodes):
            inputs = node.inputs
            arrays: Any = [n.array if n.array is not None else known[n] for n in inputs]
            known[node] = _evaluate_step(node, arrays)
            for other in inputs:
                if last[other] == i:
                    known.pop(other, None)
    _assign(wanted, [known[n] for n in wanted])


def graph_of(nodes: list[Node], leaves: list[Node], wanted: list[Node]) -> Graph:
    """Return the structure as a graph from the arrays of `leaves` to those of `wanted`."""
    builder = Builder("eager", source=NOWHERE)
    builder.in_call = True
    values: dict[Node, Value] = {n: builder.input(n.type) for n in leaves}
    # By family and operands, the results that no node uses yet.
    made: dict[Hashable, dict[int, Value]] = {}
    for node in nodes:
        step = node.step
        if step is None:
            continue
        builder.source = source_of(node) or NOWHERE
        operands = tuple([values[n] for n in node.inputs])
        key = (step.family, operands)
        if step.place not in made.get(key, ()):
            builder.begin_call()
            results = step.record(builder, operands)
            made[key] = dict(enumerate(builder.hand_out(results)))
        value = made[key].pop(step.place)
        if not node.tracked and node.type.is_inexact and not is_open(node.type.shape):
            (value,) = builder.emit(stop_gradient, [value], {})
        values[node] = value
    return builder.part(builder.inputs, [values[n] for n in wanted])


def source_of(node: Node) -> Source | None:
    """Return the user's line that created a node, if known."""
    return None if node.place is None else source_at(*node.place)


def origin_of(node: Node) -> list[str]:
    """Return the line for an error: where the node was created."""
    source = source_of(node)
    return [] if source is None else [f"{WRITTEN}  {source}   {source.text}".rstrip()]


# Compilation and its log entry.


def _compile_graph(graph: Graph, nodes: list[Node], key: list[int]) -> Kernel:
    parts = _parts(nodes, key)
    reason, place = _reason(nodes, parts)
    line = "" if place is None else str(source_of(place) or "")
    log.add(Compilation(len(graph.body), reason, line), parts)
    return compile_last(graph, LEAST)


def _parts(nodes: list[Node], key: list[int]) -> list[Part]:
    """Split the key into one part per node."""
    parts: list[Part] = []
    start = 0
    for node in nodes:
        step = start
        while key[step] < 0:
            step += 1
        end = step + 1 + (1 if _SAME in key[start:step] else len(node.inputs))
        parts.append((*key[step:end], *key[start:step]))
        start = end
    return parts


def _reason(nodes: list[Node], parts: list[Part]) -> tuple[str, Node | None]:
    """Return the reason why a structure is new, and the node whose line the log names."""
    found = log.difference(parts)
    if found is None:
        return "the first structure", nodes[0]
    place, known = found
    if place == len(parts):
        return "it ends where another one goes on", nodes[-1]
    node = nodes[place]
    if place == len(known):
        return f"{node.step} comes after all of another one", node
    new, old = parts[place], known[place]
    if new[0] != old[0]:
        return f"{node.step} is new there", node
    if _strip_markers(new) != _strip_markers(old):
        return f"{node.step} is of other results", node
    if (_WANTED in new) == (_WANTED in old):
        through = "does not go" if _CONSTANT in new else "goes"
        return f"a derivative {through} through {node.step}, other than before", node
    return _told_of_looks(nodes, parts, known, place)


def _told_of_looks(
    nodes: list[Node], parts: list[Part], known: Sequence[Part], place: int
) -> tuple[str, Node]:
    """Describe which results are held in only one of two structures."""
    added = _WANTED in parts[place]
    listed: list[Node] = []
    for i in range(place, min(len(parts), len(known))):
        if _strip_markers(parts[i]) != _strip_markers(known[i]) or len(listed) == _TOLD:
            break
        if (_WANTED in parts[i], _WANTED in known[i]) == (added, not added):
            listed.append(nodes[i])
    names = [f"{n.step} at {source_of(n)}" if source_of(n) else str(n.step) for n in listed[:-1]]
    named = ", ".join([*names, str(listed[-1].step)])
    when = "this time and not before" if added else "before and not this time"
    return f"held or looked at {when}: {named}", listed[-1]


def _strip_markers(part: Part) -> Part:
    """Return the step and the input positions of a part, without markers."""
    return tuple([n for n in part if n not in (_WANTED, _CONSTANT)])
