"""Decoding of objects that `primgraph.compat.files.encoding` encoded."""

from __future__ import annotations

import base64
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from primgraph.compat.dtypes import LibraryDType
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.derivatives.reverse import unshared_node
from primgraph.eager.inplace.views import View
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import LoadError
from primgraph.operators.lazy_loading import functions

Array = np.ndarray[Any, Any]

# Makers of a tensor or parameter, of an array and whether it requires a gradient.
Makers = Mapping[str, Callable[[Array, bool], Any]]


@final
class Decoder:
    """Decoder of one object that refers to `arrays`; `makers` make tensors and parameters."""

    def __init__(self, arrays: Sequence[Array], makers: Makers, family: type[Tensor]) -> None:
        self._arrays, self._makers, self._family = arrays, makers, family
        self._known: list[Any] = []
        # Tensors that own the elements of arrays, by the numbers of these.
        self._owners: dict[int, Any] = {}

    def decode(self, x: Any) -> Any:
        """Return the object that is `x` in JSON."""
        if not isinstance(x, list):
            return x
        kind, *rest = x
        if kind in ("list", "dict", "OrderedDict", "Counter"):
            return self._decode_mutable(kind, rest[0])
        if kind in ("tensor", "parameter", "array"):
            return self._decode_array(kind, *rest)
        if kind == "again":
            return self._known[rest[0]]
        if kind in _OF_ITEMS:
            items = [self.decode(v) for v in rest[0]]
            maker = self._makers["Size"] if kind == "Size" else _OF_ITEMS[kind]
            return maker(items)  # type: ignore[call-arg,arg-type]
        if kind == "scalar":
            return self._arrays[rest[0]][()]
        if kind == "device":
            return self._makers["device"]()  # type: ignore[call-arg]
        return _VALUES[kind](*rest)

    def _decode_mutable(self, kind: str, items: Sequence[Any]) -> Any:
        found: Any = _MUTABLE[kind]()
        self._known.append(found)
        for item in items:
            if kind == "list":
                found.append(self.decode(item))
            else:
                key = self.decode(item[0])
                found[key] = self.decode(item[1])
        return found

    def _decode_array(self, kind: str, *rest: Any) -> Any:
        place = len(self._known)
        self._known.append(None)
        if kind == "array":
            found: Any = self._arrays[rest[0]].copy()
        else:
            found = self._decode_tensor(kind, *rest)
        self._known[place] = found
        return found

    def _decode_tensor(
        self,
        kind: str,
        requires_grad: bool,
        number: int,
        shape: Sequence[int] | None = None,
        first: int = 0,
        strides: Sequence[int] = (),
    ) -> Any:
        array = self._arrays[number]
        owner = self._owners.get(number)
        if owner is None and shape is not None and number not in self._owners:
            is_whole = np.prod(shape, dtype=int) == array.size and _is_ordered(shape, strides)
            array = array.reshape(shape) if is_whole else array
            shape = None if is_whole else shape
        if owner is None and shape is None:
            self._owners[number] = found = self._makers[kind](array, requires_grad)
            return found
        if owner is None:
            self._owners[number] = owner = self._family(array_node(array.copy()))
        if shape is None:
            shape, strides = array.shape, _strides(array.shape)
        return self._view(kind, requires_grad, owner, shape, first, strides)

    def _view(
        self,
        kind: str,
        requires_grad: bool,
        owner: Any,
        shape: Sequence[int],
        first: int,
        strides: Sequence[int],
    ) -> Any:
        """Return a tensor that shares elements of `owner`."""
        size = owner.type.size
        if size and not 0 <= first + sum((n - 1) * s for n, s in zip(shape, strides)) < size:  # noqa: B905
            raise LoadError("a tensor has elements that its array does not have")

        def part(whole: Array) -> Array:
            steps = [s * whole.itemsize for s in strides]
            return np.lib.stride_tricks.as_strided(whole.reshape(-1)[first:], shape, steps)

        places = part(np.arange(size))

        def take(node: Node) -> Node:
            with no_grad():
                flat = functions["reshape"](self._family(unshared_node(node)), (-1,))
                taken: Node = functions["take"](flat, places).node
                return taken

        found = self._makers[kind](part(owner._array()), requires_grad)
        found._alias = View(owner, take, part, False)
        return found


def _strides(shape: Sequence[int]) -> list[int]:
    """Return the strides of a C-contiguous array, in elements."""
    return [int(np.prod(shape[i + 1 :], dtype=int)) for i in range(len(shape))]


def _is_ordered(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether elements lie in C order."""
    pairs = zip(shape, strides, _strides(shape), strict=True)
    return all(s == wanted or n == 1 for n, s, wanted in pairs)


_MUTABLE: dict[str, Callable[[], Any]] = {
    "list": list,
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
}
_OF_ITEMS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "Size": tuple,
    "set": set,
    "frozenset": frozenset,
    "slice": lambda items: slice(*items),
}
_VALUES: dict[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "complex": complex,
    "bytes": base64.b64decode,
    "dtype": np.dtype,
    "library dtype": LibraryDType,
}
