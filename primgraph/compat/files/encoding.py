"""Encoding of objects as JSON and arrays: tensors, numbers, texts and containers of these.

Numbers, texts, booleans and None are JSON's own. All else is a list: a word for its kind, and what
it holds. Lists, dicts, tensors and arrays are numbered in the order in which they begin, and an
object that occurs again is its number. Tensors that share elements are parts of one array.
"""

from __future__ import annotations

import base64
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, final

import numpy as np

from primgraph.compat.dtypes import LibraryDType
from primgraph.eager.derivatives.reverse import unshared_node
from primgraph.eager.inplace.views import Storage, View
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError

Array = np.ndarray[Any, Any]

_KINDS = "biufcSU"
_PLAIN = (bool, str, type(None))


@final
class Encoder:
    """Encoder of one object; `arrays` are those that it refers to.

    `is_parameter` says which tensors are parameters.
    """

    def __init__(self, is_parameter: Callable[[Any], bool]) -> None:
        self.arrays: list[Array] = []
        self._is_parameter = is_parameter
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        self._storages: dict[int, int] = {}

    def encode(self, x: Any) -> Any:
        """Return `x` as JSON has it. Raises `ArgumentError` for other objects."""
        if isinstance(x, _PLAIN) or (type(x) is float and math.isfinite(x)):
            return x
        if type(x) is int:
            return x if abs(x) < 2**53 else ["int", str(x)]
        if id(x) in self._numbers:
            return ["again", self._numbers[id(x)]]
        container = self._encode_container(x)
        if container is not None:
            return container
        if isinstance(x, Tensor):
            return self._number(x, lambda: self._encode_tensor(x))
        if isinstance(x, np.ndarray):
            return self._number(x, lambda: ["array", self._store(x)])
        found = _encode_value(x)
        if found is None and isinstance(x, np.generic):
            found = ["scalar", self._store(np.asarray(x))]
        if found is None:
            raise ArgumentError(
                f"an object of class {type(x).__name__} is not saved", hint=_hint(x)
            )
        return found

    def _encode_container(self, x: Any) -> Any:
        """Return a container as JSON has it; None for other objects."""
        if isinstance(x, dict):
            kind = next((k.__name__ for k in (OrderedDict, Counter) if isinstance(x, k)), "dict")
            return self._number(
                x, lambda: [kind, [[self.encode(k), self.encode(v)] for k, v in x.items()]]
            )
        if type(x) is list:
            return self._number(x, lambda: ["list", [self.encode(v) for v in x]])
        if type(x) is tuple or type(x).__name__ == "Sizes":
            kind = "tuple" if type(x) is tuple else "Size"
            return [kind, [self.encode(v) for v in x]]
        if isinstance(x, set | frozenset):
            return [type(x).__name__, [self.encode(v) for v in x]]
        if isinstance(x, slice):
            return ["slice", [self.encode(v) for v in (x.start, x.stop, x.step)]]
        return None

    def _number(self, x: Any, encode: Callable[[], Any]) -> Any:
        """Encode an object that may occur again."""
        self._numbers[id(x)] = len(self._numbers)
        # Ids are those of living objects.
        self._kept.append(x)
        return encode()

    def _store(self, array: Array) -> int:
        if array.dtype.kind not in _KINDS:
            raise ArgumentError(
                f"an array of dtype {array.dtype} is not saved: its elements are objects",
                hint="save a list of them",
            )
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _encode_tensor(self, x: Tensor) -> Any:
        kind = "parameter" if self._is_parameter(x) else "tensor"
        requires_grad = bool(x.requires_grad)
        alias: Any = x._alias
        if isinstance(alias, View):
            layout = alias.layout()
            whole = x.family(unshared_node(alias.storage.node))._array()
            if layout is not None and not alias.is_copy:
                places = alias._apply_to_array(np.arange(whole.size).reshape(whole.shape))
                first = int(places.flat[0]) if places is not None and places.size else 0
                number = self._store_shared(alias.storage, whole)
                return [
                    kind,
                    requires_grad,
                    number,
                    list(layout.shape),
                    first,
                    list(layout.strides),
                ]
        if isinstance(alias, Storage):
            number = self._store_shared(alias, x._array())
            return [kind, requires_grad, number]
        return [kind, requires_grad, self._store(x._array())]

    def _store_shared(self, storage: Storage, array: Array) -> int:
        """Return the number of an array whose elements several tensors share."""
        found = self._storages.get(id(storage))
        if found is None:
            found = self._storages[id(storage)] = self._store(array)
            self._kept.append(storage)
        return found


def _encode_value(x: Any) -> Any:
    """Return a number, a dtype or a device as JSON has it; None for other objects."""
    if type(x) is float:
        return ["float", repr(x)]
    if type(x) is complex:
        return ["complex", repr(x)]
    if type(x) is bytes:
        return ["bytes", base64.b64encode(x).decode()]
    if isinstance(x, LibraryDType):
        return ["library dtype", x.library, str(x.dtype)]
    if isinstance(x, np.dtype) and x.kind in _KINDS:
        return ["dtype", x.str]
    if type(x).__name__ == "device" and getattr(x, "type", None) == "cpu":
        return ["device"]
    return None


def _hint(x: Any) -> str:
    """Return a call that saves the data of an object instead."""
    if hasattr(x, "state_dict"):
        return "save its numbers, x.state_dict(), and load them into an object made by your code"
    if callable(x):
        return "functions and classes are code, which files do not hold"
    return "save its attributes, vars(x), as a dict"
