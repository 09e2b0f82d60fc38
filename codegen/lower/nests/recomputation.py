"""Recomputation: nests compute a cheap value again rather than read it from memory.

A large array that one nest stores and another one reads costs two passes over memory. A few
operations on arrays that are in memory anyway cost less.
"""

from __future__ import annotations

from collections.abc import Mapping

from primgraph.codegen.ir.statements import Node
from primgraph.ir.dims import typical
from primgraph.ir.types import TensorType

# Arrays of fewer elements stay in the cache.
_LEAST = 1 << 14
# Maximum number of operations on an element, and of arrays that are read for it.
_OPERATIONS, _READS = 8, 2
# Maximum number of nodes of these operations, copies included.
_NODES = 16
_KINDS = ("text", "copy", "inner", "parts")


def nodes_to_repeat(nodes: Mapping[int, Node], value: int, type: TensorType) -> list[Node]:
    """Return the nodes that compute `value` from memory, in order; none if that costs too much."""
    if typical(type.size) < _LEAST:
        return []
    found = _needed_nodes(nodes, value)
    reads = {o.root for node in found for o in node.operands if o.root >= 0}
    work = sum(map(_operations, found))
    return found if work <= _OPERATIONS and len(reads) <= _READS else []


def _needed_nodes(nodes: Mapping[int, Node], value: int) -> list[Node]:
    """Return the nodes that a value needs, operands first; none if they are unknown or many."""
    found: dict[int, Node] = {}

    def collect(value: int) -> bool:
        node = nodes.get(value)
        if node is None or node.kind not in _KINDS or len(found) == _NODES:
            return False
        if not all(o.value < 0 or o.value in found or collect(o.value) for o in node.operands):
            return False
        found[value] = node
        return True

    return list(found.values()) if collect(value) else []


def _operations(node: Node) -> int:
    """Return the number of operations on an element."""
    if node.step is None or node.kind != "text":
        return 0
    size = max(typical(node.step.results[0].size), 1)
    return typical(node.step.op.flops(node.step.operands, node.step.params)) // size
