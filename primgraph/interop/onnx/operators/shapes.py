"""Operators that move elements: shapes, parts, joining and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.interop.onnx.node import Known, Node, Optional, Value, dtype_of, has_sizes, plain
from primgraph.interop.onnx.table import means
from primgraph.ir.dims import Dim
from primgraph.operators.promotion import lift


@means("Constant")
def _constant(node: Node) -> Any:
    for name in ("value", "sparse_value"):
        if name in node.attributes:
            return node.attributes[name]
    if "value_int" in node.attributes or "value_ints" in node.attributes:
        return np.asarray(node.get("value_int", node.get("value_ints")), np.int64)
    if "value_float" in node.attributes or "value_floats" in node.attributes:
        return np.asarray(node.get("value_float", node.get("value_floats")), np.float32)
    raise node.unsupported("a constant of strings")


@means("ConstantOfShape")
def _constant_of_shape(node: Node, shape: Value) -> Any:
    number = node.get("value", np.zeros(1, np.float32)).reshape(())
    return _filled(sizes(node, (shape,), 0), number)


def _filled(shape: Sequence[Any], number: Known) -> Any:
    """Return an array of equal elements; it is known if its shape is."""
    if any(type(n) is Dim for n in shape):
        return pnp.broadcast_to(number, tuple(shape))
    return np.full(tuple(shape), number)


def sizes(node: Node, inputs: Sequence[Optional], k: int, role: str = "shape") -> list[Any]:
    """Return the sizes that input `k` holds."""
    return [plain(n) for n in node.known(inputs, k, role).reshape(-1)]


def size_array(numbers: Sequence[Any]) -> Known:
    """Return sizes as an array: of integers, or of objects if some are symbolic."""
    symbolic = any(type(n) is Dim for n in numbers)
    found = np.empty(len(numbers), object if symbolic else np.int64)
    found[:] = numbers
    return found


@means("Shape")
def _shape(node: Node, x: Value) -> Any:
    start, end = node.get("start", 0), node.get("end")
    return size_array(x.shape[start:end])


@means("Size")
def _size(node: Node, x: Value) -> Any:
    return size_array([math.prod(x.shape)]).reshape(())


@means("Reshape")
def _reshape(node: Node, x: Value, *shape: Value) -> Any:
    wanted = node.numbers("shape", (x, *shape), 1)
    assert wanted is not None
    if not node.get("allowzero", 0):
        wanted = [x.shape[k] if type(n) is int and n == 0 else n for k, n in enumerate(wanted)]
    if -1 in wanted and not any(type(n) is int and n == 0 for n in (*wanted, *x.shape)):
        others = [n for n in wanted if not (type(n) is int and n == -1)]
        wanted[wanted.index(-1)] = _without(list(x.shape), others)
    return pnp.reshape(x, tuple(wanted))


def _without(whole: list[Any], others: list[Any]) -> Any:
    """Return the product of `whole` divided by that of `others`, with equal sizes cancelled."""
    left, rest = [], list(others)
    for n in whole:
        if n in rest:
            rest.remove(n)
        else:
            left.append(n)
    return math.prod(left) // math.prod(rest)


@means("Flatten")
def _flatten(node: Node, x: Value) -> Any:
    axis = node.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return pnp.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@means("Transpose")
def _transpose(node: Node, x: Value) -> Any:
    return pnp.transpose(x, node.get("perm"))


@means("Squeeze")
def _squeeze(node: Node, x: Value, *axes: Optional) -> Any:
    given = node.numbers("axes", (x, *axes), 1)
    return pnp.squeeze(x, None if given is None else tuple(given))


@means("Unsqueeze")
def _unsqueeze(node: Node, x: Value, *axes: Value) -> Any:
    given = node.numbers("axes", (x, *axes), 1)
    assert given is not None
    return pnp.expand_dims(x, tuple(given))


@means("Concat")
def _concat(node: Node, *inputs: Value) -> Any:
    return pnp.concatenate(list(inputs), node.get("axis", 1))


@means("Split")
def _split(node: Node, x: Value, *split: Optional) -> Any:
    axis = node.get("axis", 0)
    given = node.numbers("split", (x, *split), 1)
    count = node.get("num_outputs", len(node.wanted))
    if given is None:
        part = -(-x.shape[axis] // count)
        given = [part] * count
    ends = np.cumsum(given[:-1]).tolist()
    return tuple(pnp.split(x, ends, axis))


@means("Slice")
def _slice(node: Node, x: Value, *inputs: Optional) -> Any:
    given = (x, *inputs)
    starts, ends = node.numbers("starts", given, 1), node.numbers("ends", given, 2)
    assert starts is not None
    assert ends is not None
    axes = node.numbers("axes", given, 3) or list(range(len(starts)))
    steps = node.numbers("steps", given, 4) or [1] * len(starts)
    index: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index[axis] = _range_of(x.shape[axis], start, end, step)
    return x[tuple(index)]


def _range_of(size: Any, start: Any, end: Any, step: int) -> slice:
    """Return a slice of Python; ends far beyond the axis stand for the whole rest."""
    if step < 0 and type(end) is int and (end < -(1 << 31) or (type(size) is int and end < -size)):
        end = None
    if type(end) is int and end >= (1 << 31) - 1:
        end = None if step > 0 else end
    if type(start) is int and start >= (1 << 31) - 1 and step < 0:
        start = None
    if type(start) is int and type(size) is int and start < -size and step < 0:
        return slice(0, 0, step)
    return slice(start, end, step)


@means("Expand")
def _expand(node: Node, x: Value, shape: Value) -> Any:
    wanted = sizes(node, (x, shape), 1)
    lead = [1] * (len(wanted) - x.ndim)
    own = [*lead, *x.shape]
    wanted = [1] * (x.ndim - len(wanted)) + wanted
    both = [n if type(m) is int and m == 1 else m for m, n in zip(wanted, own, strict=True)]
    symbolic = any(type(n) is not int for n in both)
    return pnp.broadcast_to(lift(x) if symbolic else x, tuple(both))


@means("Tile")
def _tile(node: Node, x: Value, *repeats: Value) -> Any:
    if node.version < 6:
        counts = [1] * x.ndim
        counts[int(node.known((x, *repeats), 2, "axis"))] = int(
            node.known((x, *repeats), 1, "tiles")
        )
        return pnp.tile(x, counts)
    return pnp.tile(x, sizes(node, (x, *repeats), 1, "repeats"))


_MODES = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@means("Pad")
def _pad(node: Node, x: Value, *inputs: Optional) -> Any:
    given = (x, *inputs)
    pads = node.numbers("paddings" if node.version < 2 else "pads", given, 1)
    fill = node.get("value", 0.0) if len(given) < 3 or given[2] is None else given[2]
    axes = node.numbers("axes", given, 3) or list(range(x.ndim))
    assert pads is not None
    low, high = [0] * x.ndim, [0] * x.ndim
    for k, axis in enumerate(axes):
        low[axis], high[axis] = pads[k], pads[k + len(axes)]
    index = [slice(max(-a, 0), n - max(-b, 0)) for n, a, b in zip(x.shape, low, high, strict=True)]
    width = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    inner = x[tuple(index)] if any(n < 0 for n in (*low, *high)) else x
    mode = node.get("mode", "constant")
    if mode in _MODES:
        return pnp.pad(inner, width, mode)
    if isinstance(fill, float):
        fill = x.dtype.type(fill)
    return pad_constant(inner, width, pnp.reshape(fill, ()))


def pad_constant(x: Value, width: Sequence[tuple[Any, Any]], fill: Any) -> Any:
    """Pad with a number or a variable of one element."""
    if isinstance(fill, np.ndarray | np.generic):
        return pnp.pad(x, width, "constant", constant_values=x.dtype.type(fill))
    inside = pnp.pad(np.ones(1, bool) | np.zeros(x.shape, bool), width, "constant")
    return pnp.where(inside, pnp.pad(x, width, "constant"), fill)


@means("Range")
def _range(node: Node, *inputs: Value) -> Any:
    start, limit, delta = (node.known(inputs, k, "bound").reshape(()) for k in range(3))
    if any(map(has_sizes, (start, limit, delta))):
        low, high, step = (n.item() for n in (start, limit, delta))
        return pnp.arange((high - low) // step) * step + low
    count = max(math.ceil((limit - start) / delta), 0)
    return (start + np.arange(count).astype(start.dtype) * delta).astype(start.dtype)


@means("EyeLike")
def _eye_like(node: Node, x: Value) -> Any:
    code = node.get("dtype")
    dtype = x.dtype if code is None else dtype_of(code)
    return np.eye(x.shape[0], x.shape[1], k=node.get("k", 0), dtype=dtype)


@means("DepthToSpace")
def _depth_to_space(node: Node, x: Value) -> Any:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        parts = pnp.transpose(pnp.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = pnp.transpose(pnp.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return pnp.reshape(parts, (n, c // (b * b), h * b, w * b))


@means("SpaceToDepth")
def _space_to_depth(node: Node, x: Value) -> Any:
    n, c, h, w = x.shape
    b = node.get("blocksize")
    parts = pnp.reshape(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if node.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return pnp.reshape(pnp.transpose(parts, order), (n, c * b * b, h // b, w // b))


@means("Trilu")
def _trilu(node: Node, x: Value, *k: Optional) -> Any:
    given = (x, *k)
    offset = 0 if len(given) < 2 or k[0] is None else int(node.known(given, 1, "k"))
    return (pnp.triu if node.get("upper", 1) else pnp.tril)(x, offset)


@means("ReverseSequence")
def _reverse_sequence(node: Node, x: Value, lengths: Value) -> Any:
    """Reverse the first elements along the time axis, as many as the length of each sample."""
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    along, across = [1] * x.ndim, [1] * x.ndim
    along[time], across[batch] = x.shape[time], x.shape[batch]
    place = pnp.reshape(np.arange(x.shape[time]), along)
    count = pnp.reshape(lengths, across)
    source = pnp.where(place < count, count - 1 - place, place)
    return pnp.take_along_axis(x, pnp.broadcast_to(source, x.shape), time)
