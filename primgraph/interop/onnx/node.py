"""Nodes of ONNX models, as the functions of operators see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.errors import UnsupportedError
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    import onnx
else:
    onnx = late("onnx")

# A value of a model: an array of known elements, which may be symbolic sizes, or a variable.
Known = npt.NDArray[Any]
Value = Known | Variable
# Values of a node's optional inputs.
Optional = Value | None


@final
class UnknownElements(Exception):
    """A node needs the elements of a value that depends on inputs or parameters of the model."""

    def __init__(self, place: str, role: str, roots: frozenset[str]) -> None:
        super().__init__(place)
        self.place, self.role, self.roots = place, role, roots


@final
@dataclass(frozen=True, slots=True)
class Node:
    """One node: its operator `kind`, the `version` of the operator set, and its attributes.

    `roots` has, for each input, the inputs and parameters of the model that it depends on, and
    `wanted` tells which results are used. `run` computes a subgraph from values of its inputs.
    """

    kind: str
    name: str
    version: int
    attributes: Mapping[str, Any]
    roots: tuple[frozenset[str], ...]
    wanted: tuple[bool, ...]
    run: Callable[..., list[Value]]

    @property
    def place(self) -> str:
        return f"node {self.name!r}" if self.name else f"a node {self.kind}"

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute: a number, a list of numbers, a string, an array or a subgraph."""
        found = self.attributes.get(name)
        return default if found is None else found

    def known(self, inputs: Sequence[Optional], k: int, role: str) -> Known:
        """Return the elements of input `k`, which the operator uses as its `role`."""
        value = inputs[k]
        if isinstance(value, np.ndarray):
            return value
        raise UnknownElements(f"{self.kind} ({self.place})", role, self.roots[k])

    def numbers(self, name: str, inputs: Sequence[Optional], k: int) -> list[Any] | None:
        """Return the list that is input `k`, or attribute `name` in older versions; else None."""
        if len(inputs) > k and inputs[k] is not None:
            return [plain(n) for n in self.known(inputs, k, name).reshape(-1)]
        found = self.attributes.get(name)
        return None if found is None else list(np.atleast_1d(found).tolist())

    def unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"from_onnx: {self.kind} ({self.place}): {what} is not supported")


def plain(number: Any) -> Any:
    """Return an element of an array as a number of Python; a symbolic size stays."""
    return number.item() if isinstance(number, np.generic) else number


def dtype_of(code: int) -> np.dtype[Any]:
    """Return the dtype of a number of ONNX's `TensorProto.DataType`."""
    found: np.dtype[Any] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    return found


def has_sizes(value: Optional) -> bool:
    """Return whether a value is an array of symbolic sizes."""
    return isinstance(value, np.ndarray) and value.dtype == object


def attribute_value(attribute: Any) -> Any:
    """Return the value of an attribute; tensors become arrays."""
    found = onnx.helper.get_attribute_value(attribute)
    if isinstance(found, onnx.TensorProto):
        return onnx.numpy_helper.to_array(found)
    if isinstance(found, onnx.SparseTensorProto):
        return dense(found)
    if isinstance(found, bytes):
        return found.decode()
    if isinstance(found, list | tuple) and found and isinstance(found[0], bytes):
        return [text.decode() for text in found]
    return found


def dense(sparse: Any) -> Known:
    """Return a sparse tensor as an array."""
    values = onnx.numpy_helper.to_array(sparse.values)
    indices = onnx.numpy_helper.to_array(sparse.indices)
    found = np.zeros(tuple(sparse.dims), values.dtype)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), found.shape)
    found.reshape(-1)[flat] = values
    return found
