"""Import of ONNX models: from the protocol buffers to functions with parameters."""

from __future__ import annotations

import inspect
import keyword
import os
import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from primgraph.base.providers import late
from primgraph.errors import ArgumentError, ShapeError, UnknownKeyError, UnknownValueError
from primgraph.interop.imported import ImportedModel
from primgraph.interop.lacking import Lacking, require_library
from primgraph.interop.onnx.node import UnknownElements, Value, dense, dtype_of
from primgraph.interop.onnx.walk import Scope, Walker, as_variable
from primgraph.ir.graph import Graph
from primgraph.ir.types import TensorType, as_dtype, declared_shape
from primgraph.program.trace import trace

if TYPE_CHECKING:
    import onnx
else:
    onnx = late("onnx")

Arrays = Mapping[str, npt.ArrayLike]


@final
class OnnxFunction(ImportedModel):
    """Function imported from an ONNX model; its graph needs nothing of ONNX.

    A call takes the inputs of the model, by position or name, and uses `parameters`, the float
    initializers of the model by name. `apply(parameters, *inputs)` is the same function of both, so
    that a model can be differentiated by its parameters, and trained. `specs` are the types of the
    inputs, and `imported` is the graph as a function; see `pg.interop.Imported`.
    """


def from_onnx(
    model: Any,
    *,
    known: Arrays | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> OnnxFunction:
    """Return the function of an ONNX model: a path, the bytes of a file, or a `ModelProto`.

    Float initializers become parameters; see `OnnxFunction`. Named dynamic axes become symbolic
    sizes. `shapes` gives the shapes of inputs, by name, in place of those that the model declares.

    Shapes of results follow from shapes of inputs. Where a model computes one from the elements of
    an input, `known` has the array of that input, which then is no argument.

    A model returns an array, or a tuple of arrays if it has several outputs.

    Raises `UnsupportedError` that lists all operators that are lacking, `UnknownValueError` if
    `known` lacks an input, and `UnknownKeyError` for other names than those of inputs. Needs the
    package `onnx`.

        f = pg.interop.from_onnx("model.onnx")
        y = f(x)
        gradient = pg.grad(lambda p: pg.mean((f.apply(p, x) - target) ** 2))(f.parameters)
    """
    require_library("onnx", "from_onnx")
    proto = _load(model)
    walker = Walker(proto.functions)
    walker.require_known(proto, Lacking("from_onnx", "ONNX"))
    given = _Given(proto, known or {}, shapes or {})
    while True:
        try:
            return OnnxFunction(given.trace(walker), given.parameters)
        except UnknownElements as error:
            given.fix(error)


def _load(model: Any) -> Any:
    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, bytes):
        return onnx.load_from_string(model)
    if isinstance(model, str | os.PathLike):
        return onnx.load(os.fspath(model))
    raise ArgumentError(
        f"from_onnx: model is a path, bytes or a ModelProto, not {type(model).__name__}"
    )


@final
class _Given:
    """A model with the values of its inputs that are known, and its parameters."""

    def __init__(
        self, proto: Any, known: Arrays, shapes: Mapping[str, Sequence[int | str]]
    ) -> None:
        self.proto = proto
        initial = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
        initial |= {s.values.name: dense(s) for s in proto.graph.sparse_initializer}
        self.inputs = [x for x in proto.graph.input if x.name not in initial]
        names = [x.name for x in self.inputs]
        for name in (*known, *shapes):
            if name not in names:
                raise UnknownKeyError(f"from_onnx: the model has inputs {names}, and no {name!r}")
        self.parameters = {name: x for name, x in initial.items() if x.dtype.kind == "f"}
        self.constants = {name: x for name, x in initial.items() if x.dtype.kind != "f"}
        self.known = {name: np.asarray(x) for name, x in known.items()}
        self.inputs = [x for x in self.inputs if x.name not in self.known]
        self.types = [_type_of(x, shapes.get(x.name)) for x in self.inputs]

    def fix(self, error: UnknownElements) -> None:
        """Take the parameters that a shape depends on as constants."""
        fixed = error.roots.intersection(self.parameters)
        for name in fixed:
            self.constants[name] = self.parameters.pop(name)
        if fixed:
            return
        needed = sorted(error.roots)
        example = ", ".join(f"{name!r}: array" for name in needed)
        raise UnknownValueError(
            f"from_onnx: {error.place} needs the elements of its {error.role}, which depend on "
            f"{needed}",
            hint=f"give the arrays of these inputs, as in known={{{example}}}",
        ) from None

    def trace(self, walker: Walker) -> Graph:
        names = _identifiers([x.name for x in self.inputs], {"parameters"})
        versions = {opset.domain: opset.version for opset in self.proto.opset_import}

        def run(parameters: Any, *inputs: Any) -> Any:
            scope = Scope(ChainMap(), ChainMap(), versions, {})
            scope.values.update(self.constants | self.known)
            for name, value in parameters.items():
                scope.values[name], scope.roots[name] = value, frozenset((name,))
            for declared, value in zip(self.inputs, inputs, strict=True):
                scope.values[declared.name] = value
                scope.roots[declared.name] = frozenset((declared.name,))
            found: list[Value] = walker.run_graph(self.proto.graph, scope)
            results = [as_variable(value) for value in found]
            return results[0] if len(results) == 1 else tuple(results)

        run.__name__ = _identifiers([self.proto.graph.name or "model"], set())[0]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, kind) for name in ("parameters", *names)]
        )
        types = {
            name: TensorType(declared_shape(x.shape), as_dtype(x.dtype))
            for name, x in self.parameters.items()
        }
        return trace(run, types, *self.types, rebind=False)


def _identifiers(names: Sequence[str], taken: set[str]) -> list[str]:
    """Return names as identifiers of Python, each of them once."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name) or "x"
        plain = f"x{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain
        chosen, count = plain, 0
        while chosen in taken or chosen in found:
            count += 1
            chosen = f"{plain}_{count}"
        found.append(chosen)
    return found


def _type_of(declared: Any, shape: Sequence[int | str] | None) -> TensorType:
    """Return the type of an input; an axis without a size has the name of the input in its own."""
    kind = declared.type.WhichOneof("value")
    if kind != "tensor_type":
        raise ArgumentError(f"from_onnx: input {declared.name!r} is a {kind}, not a tensor")
    tensor = declared.type.tensor_type
    if shape is None:
        if not tensor.HasField("shape"):
            raise ShapeError(
                f"from_onnx: the model does not declare the shape of input {declared.name!r}",
                hint=f"give it, as in shapes={{{declared.name!r}: ('N', 3)}}",
            )
        stem = _identifiers([declared.name], set())[0]
        shape = [_size(axis, f"{stem}_{k}") for k, axis in enumerate(tensor.shape.dim)]
    return TensorType(declared_shape(tuple(shape)), as_dtype(dtype_of(tensor.elem_type)))


def _size(axis: Any, name: str) -> int | str:
    """Return a size: a number, or a name that is an identifier."""
    if axis.HasField("dim_value"):
        return int(axis.dim_value)
    return _identifiers([axis.dim_param or name], set())[0]
