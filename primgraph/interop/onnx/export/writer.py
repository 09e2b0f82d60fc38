"""Models of ONNX under construction: nodes, constants and names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.base.providers import late
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Graph, Value
from primgraph.ir.types import TensorType, real_dtype

if TYPE_CHECKING:
    import onnx
else:
    onnx = late("onnx")

# The version of the operator set that files are written in, and that of the file format.
OPSET, FORMAT = 18, 8

_SIZE_WORDS = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.FloorDiv: "Div"}


@final
class Writer:
    """Nodes of one graph or body; constants and names are shared by all of a model."""

    def __init__(self, outer: Writer | None = None) -> None:
        self.nodes: list[Any] = []
        self.names: dict[Value, str] = {} if outer is None else dict(outer.names)
        self.root: Writer = self if outer is None else outer.root
        if outer is None:
            # Nodes of constants by dtype, shape and bytes, and initializers.
            self.constants: dict[tuple[Any, ...], Any] = {}
            self.held: list[Any] = []
            self.sizes: dict[str, str] = {}
            self._taken: set[str] = set()

    def fresh(self, hint: str) -> str:
        """Return a name that is not in use, such as `hint`."""
        taken, name, count = self.root._taken, hint, 0
        while name in taken:
            count += 1
            name = f"{hint}_{count}"
        taken.add(name)
        return name

    def emit(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return the name of the output."""
        return self.emit_several(kind, inputs, 1, **attributes)[0]

    def emit_several(
        self, kind: str, inputs: Sequence[str], count: int, **attributes: Any
    ) -> list[str]:
        """Add a node; return the names of its outputs."""
        outputs = [self.fresh(f"v{len(self.root._taken)}") for _ in range(count)]
        node = onnx.helper.make_node(kind, list(inputs), outputs, self.fresh(kind), **attributes)
        self.nodes.append(node)
        return outputs

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Return the name of an array that belongs to the formula: a number, or indices."""
        held = np.array(in_parts(np.asarray(array, dtype)), order="C")
        key = held.dtype.str, held.shape, held.tobytes()
        constants = self.root.constants
        if key not in constants:
            name = self.fresh(f"c{len(constants)}")
            tensor = onnx.numpy_helper.from_array(held, name)
            constants[key] = onnx.helper.make_node("Constant", [], [name], value=tensor)
        return str(constants[key].output[0])

    def hold(self, array: Any) -> str:
        """Return the name of an array of the user's, which the model holds as an initializer."""
        name = self.fresh(f"w{len(self.root.held)}")
        held = np.array(in_parts(array), order="C")
        self.root.held.append(onnx.numpy_helper.from_array(held, name))
        return name

    def integers(self, numbers: Sequence[Any]) -> str:
        """Return the name of a list of integers, of which some may be symbolic sizes."""
        if not any(type(n) is Dim for n in numbers):
            return self.constant(np.array(numbers, np.int64).reshape(len(numbers)))
        parts = [self.size(n) for n in numbers]
        return self.emit("Concat", *parts, axis=0)

    def size(self, number: Any) -> str:
        """Return the name of a size, as an array of one integer."""
        if type(number) is not Dim:
            return self.constant([int(number)], np.int64)
        return self._size_of(ast.parse(str(number), mode="eval").body)

    def _size_of(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return self.constant([node.value], np.int64)
        if isinstance(node, ast.Name):
            return self.root.sizes[node.id]
        if isinstance(node, ast.UnaryOp):
            return self.emit("Neg", self._size_of(node.operand))
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            kind = {"max": "Max", "min": "Min", "mod": "Mod"}[node.func.id]
            return self.emit(kind, *map(self._size_of, node.args))
        assert isinstance(node, ast.BinOp)
        if isinstance(node.op, ast.Pow):
            return self.emit("Pow", self._size_of(node.left), self._size_of(node.right))
        kind = _SIZE_WORDS[type(node.op)]
        return self.emit(kind, self._size_of(node.left), self._size_of(node.right))

    def read_sizes(self, graph: Graph) -> None:
        """Compute each symbolic size from an axis of an input that has it."""
        for value in graph.inputs:
            for axis, extent in enumerate(value.type.shape):
                if type(extent) is Dim and str(extent) not in self.sizes:
                    name = self.names[value]
                    self.sizes[str(extent)] = self.emit("Shape", name, start=axis, end=axis + 1)


def tensor_info(name: str, type_: TensorType) -> Any:
    """Return the declaration of a tensor: name, dtype and shape."""
    plain = type_in_parts(type_)
    shape = [str(n) if type(n) is Dim else n for n in plain.shape]
    return onnx.helper.make_tensor_value_info(name, code_of(plain.dtype), shape)


def type_in_parts(type_: TensorType) -> TensorType:
    """Return the type of a tensor; complex numbers are two real ones, along a last axis."""
    if not type_.is_complex:
        return type_
    return TensorType((*type_.shape, 2), real_dtype(type_.dtype))


def in_parts(array: Any) -> Any:
    """Return an array as a tensor; complex numbers are two real ones, along a last axis."""
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def code_of(dtype: Any) -> int:
    """Return ONNX's number of a dtype."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
