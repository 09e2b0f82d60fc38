"""What happens when a number is looked at: all that it needs becomes one structure, and is run."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from contextvars import ContextVar
from hashlib import blake2b
from threading import local
from typing import Any, TypeAlias, TypeVar, final
from weakref import ref

import numpy as np

from primgraph.base.user_lines import Source, source_at
from primgraph.codegen.kernel import Kernel, taken
from primgraph.eager.buffer_pool import LEAST, shelf
from primgraph.eager.compilation_log import Compilation, Part, log
from primgraph.eager.node import MANY, Holder, Node, forget, lock, numbers, unknown
from primgraph.eager.steps import NOWHERE, Step, evaluated
from primgraph.eager.structure_cache import Pattern
from primgraph.errors import WRITTEN, BoundsError, RunError, run_error
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Graph, Value
from primgraph.primitives.elementwise import stop_gradient
from primgraph.program.compile import compile_last, optimized
from primgraph.program.finite import check_finite

Array: TypeAlias = np.ndarray[Any, Any]
K = TypeVar("K")
V = TypeVar("V")

# Whether what is computed is computed at once, and searched for NaN.
debugging: ContextVar[bool] = ContextVar("primgraph_eager_debug", default=False)

# What is longer, without derivatives in it, is run in pieces: those of a loop are often alike.
_LONG = 4096
_PIECE = 2048
# What stands in keys; leaves are numbered downwards from there.
_WANTED = -1
_CONSTANT = -2
_SAME = -3
# So many results are told that are looked at in one structure and not in another.
_TOLD = 3
# How many structures are remembered, and how many of them with their kernels.
_MOST_SEEN = 65_536
_MOST_COMPILED = 512


Begun: TypeAlias = tuple[Kernel, list[Any], list[Node]]
# A kernel, and how to recognise what it is for, where there is a way.
Known: TypeAlias = tuple[Kernel, Pattern | None]

# A structure is steps and how they are wired, whatever the arrays. Those that came once are known
# by a digest; from the second time on there is a kernel.
_seen: dict[bytes, None] = {}
_kernels: dict[tuple[int, ...], Known] = {}

# What was run last for a step that is asked for first, as it most often is what comes next.
_latest: dict[Step | None, Known] = {}


@final
class _Along(local):
    """Tensors of this thread that are computed along with whatever is looked at next, and those
    that are so afterwards, if they are there still. `mark` is the number of the last look, and
    `looks` counts those that had something to compute."""

    def __init__(self) -> None:
        self.tensors: dict[int, ref[Holder]] = {}
        self.later: dict[int, ref[Holder]] = {}
        self.mark = -1
        self.looks = 0


_along = _Along()


def along(tensor: Holder) -> None:
    """Let `tensor` be computed along with what this thread looks at next.

    What is changed in place, or gathers gradients, lives on: computed later, it would need again
    what is at hand now, and keep all that it was ever computed from.
    """
    _along.tensors[id(tensor)] = ref(tensor)


def postpone(tensor: Holder) -> None:
    """Let a constant that has not been computed wait for a look or two, and not for ever.

    Nobody may ever look at it, as at a mean of all losses, or not for long. What goes on from
    things of before the last look is computed at the next one, with what that has to compute of
    them anyway. What begins there may be part of a step, and is left alone until that is done.
    """
    node = tensor.node
    waits = False
    for other in node.inputs:
        if other.array is None:
            waits = True
            if other.spent or other.number < _along.mark:
                node.spent = True
                _along.tensors[id(tensor)] = ref(tensor)
                return
    if waits:
        _along.later[id(tensor)] = ref(tensor)


def looks() -> int:
    """How often this thread has computed something."""
    return _along.looks


def _taken_along(roots: Sequence[Node]) -> Sequence[Node]:
    """`roots`, and the nodes of the tensors that are computed along with them."""
    waiting, _along.tensors, _along.later = _along.tensors, _along.later, {}
    _along.mark = next(numbers)
    tensors = [t for t in (r() for r in waiting.values()) if t is not None]
    return [*dict.fromkeys([*roots, *(t.node for t in tensors)])]


def compute(roots: Sequence[Node]) -> None:
    """Give `roots` their arrays, and all others on the way that a tensor shows.

    What has been changed in place is computed with them.
    """
    if _along.tensors or _along.later:
        roots = _taken_along(roots)
    if not roots:
        return
    try:
        _compute(roots)
    except Exception:
        # What has been told is not told again where somebody looks at something else.
        _along.tensors, _along.later = {}, {}
        raise


def _compute(roots: Sequence[Node]) -> None:
    with lock:
        begun = _recognised(roots)
        nodes = unknown(roots) if begun is None else []
        if begun is not None or nodes:
            _along.looks += 1
        if len(nodes) > _LONG and not _are_whole(nodes):
            for part, wanted in _pieces(nodes, roots):
                _finish(_begun(part, wanted))
            return
        if nodes:
            begun = _begun(nodes, roots)
    _finish(begun)


def _recognised(roots: Sequence[Node]) -> Begun | None:
    """What is to be run, where all is as it was when the first root's step was asked for last."""
    known = _latest.get(roots[0].step)
    if known is None or debugging.get():
        return None
    kernel, pattern = known
    found = None if pattern is None else pattern.found(roots)
    if found is None:
        return None
    leaves, wanted = found
    return kernel, [leaf.array for leaf in leaves], wanted


def _finish(begun: Begun | None) -> None:
    """Run a kernel, without the lock: others may run theirs."""
    if begun is None:
        return
    kernel, arrays, wanted = begun
    try:
        results = kernel(*arrays) if not kernel.handed else _filled(kernel, arrays)
    except RunError as error:
        _blame(wanted)
        if isinstance(error.__cause__, IndexError):
            raise BoundsError(error.message, origin=error.origin) from error.__cause__
        raise
    with lock:
        _assign(wanted, results)


def _filled(kernel: Kernel, arrays: Sequence[Any]) -> list[Array]:
    """The results of a kernel, large ones in arrays that nobody has any more."""
    types = kernel.graph.output_types
    return kernel.fill(taken(kernel, arrays), shelf.take([types[k] for k in kernel.handed]))


def _pieces(nodes: list[Node], roots: Sequence[Node]) -> list[tuple[list[Node], list[Node]]]:
    """`nodes` in pieces, each with those of it that a later piece needs."""
    last = {n: i for i, node in enumerate(nodes) for n in node.inputs}
    last.update((r, len(nodes)) for r in roots)
    found = []
    for start in range(0, len(nodes), _PIECE):
        part = nodes[start : start + _PIECE]
        end = start + len(part)
        found.append((part, [n for n in part if last.get(n, 0) >= end]))
    return found


def _blame(wanted: Sequence[Node]) -> None:
    """Raise what failed in a kernel, with the line of the node that fails, where one is found.

    A kernel knows the lines of the structure that came first, which may have been others.
    """
    with lock:
        nodes = unknown(wanted)
    known: dict[Node, Array] = {}
    with np.errstate(all="ignore"):
        for node in nodes:
            arrays = [known.get(n) if n.array is None else n.array for n in node.inputs]
            if node.step is not None and not node.step.whole and all(a is not None for a in arrays):
                known[node] = _evaluated(node, arrays)


def _evaluated(node: Node, arrays: list[Any]) -> Array:
    """What the step of a node gives. Raises `BoundsError` and `RunError`, with the line."""
    try:
        return node.step.evaluate(arrays)  # type: ignore[union-attr]
    except IndexError as error:
        raise BoundsError(f"{node.step}: {error}", origin=origin_of(node)) from None
    except RunError as error:
        cause = error.__cause__
        kind = BoundsError if isinstance(cause, IndexError) else run_error(cause)
        raise kind(error.message, origin=origin_of(node)) from error.__cause__


def _begun(nodes: list[Node], roots: Sequence[Node]) -> Begun | None:
    """What is left to be run by a kernel; None where all has been computed here."""
    key, leaves, wanted = _key(nodes, roots)
    arrays = [leaf.array for leaf in leaves]
    if debugging.get():
        _assign(wanted, check_finite(graph_of(nodes, leaves, wanted), *arrays))
        return None
    structure = tuple(key)
    known = _kernels.get(structure)
    if known is None:
        digest = blake2b(array("q", key), digest_size=16).digest()
        if digest not in _seen:
            _add(_seen, digest, None, _MOST_SEEN)
            if _are_whole(nodes):
                graph = optimized(graph_of(nodes, leaves, wanted))
                try:
                    found = evaluated(graph, arrays)  # type: ignore[arg-type]
                except (IndexError, RunError):
                    _blame(wanted)
                    raise
                _assign(wanted, found)
            else:
                _one_by_one(nodes, wanted)
            return None
        kernel = _compiled(nodes, leaves, wanted, key)
        asked = all(root.array is None for root in roots)
        pattern = Pattern(roots, nodes, leaves, wanted) if asked else None
        known = kernel, pattern
        _add(_kernels, structure, known, _MOST_COMPILED)
    if roots:
        _add(_latest, roots[0].step, known, _MOST_COMPILED)
    return known[0], arrays, wanted


def _add(table: dict[K, V], key: K, value: V, most: int) -> None:
    """Add an entry; the oldest ones go where there are too many."""
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]


def _assign(nodes: Sequence[Node], arrays: Sequence[Array]) -> None:
    for node, found in zip(nodes, arrays, strict=True):
        node.array = found
        forget(node)


def _are_whole(nodes: Sequence[Node]) -> bool:
    """Whether the nodes have to be evaluated together."""
    return any(n.step is not None and n.step.whole for n in nodes)


def _key(nodes: list[Node], roots: Sequence[Node]) -> tuple[list[int], list[Node], list[Node]]:
    """What tells the structure of `nodes` from others; what it is computed from, and what of it
    is wanted.

    A node is the number of its step and where its inputs are. With `_WANTED` before it, it is
    wanted, with `_CONSTANT`, no derivative goes through it, with `_SAME`, its inputs are those of
    the node whose place follows: steps of a family have many in common.
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
    """Evaluate each node in order; what nobody wants goes when it is not needed any more."""
    known: dict[Node, Array] = {}
    last = {n: i for i, node in enumerate(nodes) for n in node.inputs}
    last.update((n, len(nodes)) for n in wanted)
    with np.errstate(all="ignore"):
        for i, node in enumerate(nodes):
            inputs = node.inputs
            arrays: Any = [n.array if n.array is not None else known[n] for n in inputs]
            known[node] = _evaluated(node, arrays)
            for other in inputs:
                if last[other] == i:
                    known.pop(other, None)
    _assign(wanted, [known[n] for n in wanted])


def graph_of(nodes: list[Node], leaves: list[Node], wanted: list[Node]) -> Graph:
    """The structure as a graph from the arrays of `leaves` to those that are `wanted`."""
    builder = Builder("eager", source=NOWHERE)
    builder.in_call = True
    values: dict[Node, Value] = {n: builder.input(n.type) for n in leaves}
    # By families and operands, the results that no node has yet.
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
    """The user's line that made a node, where that is known."""
    return None if node.place is None else source_at(*node.place)


def origin_of(node: Node) -> list[str]:
    """Lines for an error: where the node was made."""
    source = source_of(node)
    return [] if source is None else [f"{WRITTEN}  {source}   {source.text}".rstrip()]


# Compiling, and what the log says of it.


def _compiled(nodes: list[Node], leaves: list[Node], wanted: list[Node], key: list[int]) -> Kernel:
    graph = graph_of(nodes, leaves, wanted)
    parts = _parts(nodes, key)
    reason, place = _reason(nodes, parts)
    line = "" if place is None else str(source_of(place) or "")
    log.add(Compilation(len(graph.body), reason, line), parts)
    return compile_last(graph, LEAST)


def _parts(nodes: list[Node], key: list[int]) -> list[Part]:
    """The key, cut into what belongs to each node."""
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
    """What was new, and the node whose line is told beside it."""
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
    if _wiring(new) != _wiring(old):
        return f"{node.step} is of other results", node
    if (_WANTED in new) == (_WANTED in old):
        through = "does not go" if _CONSTANT in new else "goes"
        return f"a derivative {through} through {node.step}, other than before", node
    return _told_of_looks(nodes, parts, known, place)


def _told_of_looks(
    nodes: list[Node], parts: list[Part], known: Sequence[Part], place: int
) -> tuple[str, Node]:
    """Which results are held or looked at, beside another structure that is the same so far."""
    added = _WANTED in parts[place]
    listed: list[Node] = []
    for i in range(place, min(len(parts), len(known))):
        if _wiring(parts[i]) != _wiring(known[i]) or len(listed) == _TOLD:
            break
        if (_WANTED in parts[i], _WANTED in known[i]) == (added, not added):
            listed.append(nodes[i])
    names = [f"{n.step} at {source_of(n)}" if source_of(n) else str(n.step) for n in listed[:-1]]
    named = ", ".join([*names, str(listed[-1].step)])
    when = "this time and not before" if added else "before and not this time"
    return f"held or looked at {when}: {named}", listed[-1]


def _wiring(part: Part) -> Part:
    """What a part says of its step and of where its inputs are."""
    return tuple([n for n in part if n not in (_WANTED, _CONSTANT)])
