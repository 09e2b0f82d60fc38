"""Computation of the nodes of a model, one after the other, on arrays and variables."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.errors import PrimgraphError
from primgraph.interop.lacking import Lacking
from primgraph.interop.onnx.node import (
    Node,
    Value,
    attribute_value,
    dense,
    dtype_of,
    has_sizes,
    plain,
)
from primgraph.interop.onnx.operators.sizes import FIRST_ONLY, SIZE_FUNCTIONS
from primgraph.interop.onnx.table import find_meaning
from primgraph.ir.interpret import interpret
from primgraph.operators import array, reshape, stack
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    import onnx
else:
    onnx = late("onnx")

_DEFAULT = ("", "ai.onnx")
NOTHING: frozenset[str] = frozenset()


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """Names in a graph: their values, what these depend on, and attributes of an outer function."""

    values: ChainMap[str, Any]
    roots: ChainMap[str, frozenset[str]]
    versions: Mapping[str, int]
    attributes: Mapping[str, Any]

    def inside(self) -> Scope:
        """Return the scope of a subgraph, which sees all names of this one."""
        values, roots = self.values.new_child(), self.roots.new_child()
        return Scope(values, roots, self.versions, self.attributes)

    def version(self, domain: str) -> int:
        names = _DEFAULT if domain in _DEFAULT else (domain,)
        return max([self.versions[name] for name in names if name in self.versions], default=1)


@final
class Walker:
    """Runs the nodes of a model; `functions` are those that the model itself defines."""

    def __init__(self, functions: Sequence[Any]) -> None:
        self.functions = {(f.domain, f.name): f for f in functions}

    def run_graph(self, graph: Any, scope: Scope) -> list[Value]:
        """Run a graph whose inputs are in the scope; return its outputs."""
        for tensor in graph.initializer:
            if tensor.name not in scope.values.maps[0]:
                scope.values[tensor.name] = onnx.numpy_helper.to_array(tensor)
                scope.roots[tensor.name] = NOTHING
        for sparse in graph.sparse_initializer:
            scope.values[sparse.values.name] = dense(sparse)
            scope.roots[sparse.values.name] = NOTHING
        for node in graph.node:
            self._run_node(node, scope)
        return [scope.values[output.name] for output in graph.output]

    def _run_node(self, proto: Any, scope: Scope) -> None:
        inputs = [scope.values[name] if name else None for name in proto.input]
        roots = tuple([scope.roots.get(name, NOTHING) for name in proto.input])
        attributes = self._attributes(proto, scope)
        meaning = _meaning(proto, scope)
        if meaning is None:
            found = self._expand(proto, inputs, roots, attributes, scope)
        else:
            found = self._apply(meaning, proto, inputs, roots, attributes, scope)
        union = NOTHING.union(*roots, self._captured(attributes, scope))
        for name, value in zip(proto.output, found, strict=False):
            if name:
                scope.values[name], scope.roots[name] = value, union

    def _attributes(self, proto: Any, scope: Scope) -> dict[str, Any]:
        """Return the attributes of a node; those that refer to a function's are looked up."""
        found = {}
        for attribute in proto.attribute:
            given = attribute
            if attribute.ref_attr_name:
                given = scope.attributes.get(attribute.ref_attr_name)
            if given is not None:
                found[attribute.name] = given
        return found

    def _apply(
        self,
        meaning: Callable[..., Any],
        proto: Any,
        inputs: list[Any],
        roots: tuple[frozenset[str], ...],
        attributes: dict[str, Any],
        scope: Scope,
    ) -> list[Any]:
        """Call the function of an operator; errors name the node."""
        data = inputs[:1] if proto.op_type in FIRST_ONLY else inputs
        if proto.op_type in SIZE_FUNCTIONS and any(map(has_sizes, data)):
            if all(isinstance(x, np.ndarray) for x in inputs) and not _makes_floats(proto):
                meaning = SIZE_FUNCTIONS[proto.op_type]
            else:
                inputs = [as_variable(x) if has_sizes(x) else x for x in inputs]
        captured = self._captured(attributes, scope)
        union = NOTHING.union(*roots, captured)
        node = Node(
            kind=proto.op_type,
            name=proto.name,
            version=scope.version(proto.domain),
            attributes={name: attribute_value(x) for name, x in attributes.items()},
            roots=roots,
            wanted=tuple([bool(name) for name in proto.output]),
            run=lambda graph, *values: self._run_subgraph(graph, values, scope, union),
        )
        try:
            found = meaning(node, *inputs)
        except PrimgraphError as error:
            raise error.located([f"computed by {node.kind}, {node.place}"]) from None
        results = [as_value(x) for x in (found if isinstance(found, tuple | list) else (found,))]
        if not captured and all(isinstance(x, np.ndarray) for x in inputs):
            return [x if isinstance(x, np.ndarray) else _evaluated(x) for x in results]
        return results

    def _run_subgraph(
        self, graph: Any, values: Sequence[Any], scope: Scope, roots: frozenset[str]
    ) -> list[Value]:
        inner = scope.inside()
        for declared, value in zip(graph.input, values, strict=False):
            inner.values[declared.name], inner.roots[declared.name] = value, roots
        return self.run_graph(graph, inner)

    def _captured(self, attributes: Mapping[str, Any], scope: Scope) -> frozenset[str]:
        """Return what the subgraphs of a node depend on."""
        graphs = [x.g for x in attributes.values() if x.type == onnx.AttributeProto.GRAPH]
        names = {name for graph in graphs for name in _names_used(graph)}
        return NOTHING.union(*(scope.roots.get(name, NOTHING) for name in names))

    def _expand(
        self,
        proto: Any,
        inputs: list[Any],
        roots: tuple[frozenset[str], ...],
        attributes: dict[str, Any],
        scope: Scope,
    ) -> list[Any]:
        """Run the body of a function: of the model, or of the standard for this operator."""
        body = self.functions.get((proto.domain, proto.op_type))
        if body is None:
            if not has_standard_body(proto, scope.version(proto.domain)):
                lacking = Lacking("from_onnx", "ONNX")
                lacking.add(proto.op_type, _place(proto))
                lacking.require_none()
            types = [None if x is None else _type_of(x) for x in inputs]
            resolved = _with_attributes(proto, attributes)
            body, given = standard_body(resolved, scope.version(proto.domain), types)
            given.update(attributes)
            attributes = given
        for declared in body.attribute_proto:
            attributes.setdefault(declared.name, declared)
        versions = {opset.domain: opset.version for opset in body.opset_import}
        inner = Scope(ChainMap(), ChainMap(), {**scope.versions, **versions}, attributes)
        for k, name in enumerate(body.input):
            inner.values[name] = inputs[k] if k < len(inputs) else None
            inner.roots[name] = roots[k] if k < len(roots) else NOTHING
        inner.values[""] = None
        for node in body.node:
            self._run_node(node, inner)
        return [inner.values[name] if wanted else None for name, wanted in _wanted(body, proto)]

    # Operators that are lacking.

    def require_known(self, model: Any, lacking: Lacking) -> None:
        """Raise `UnsupportedError` that lists all operators without a meaning."""
        versions = {opset.domain: opset.version for opset in model.opset_import}
        scope = Scope(ChainMap(), ChainMap(), versions, {})
        for node in _all_nodes(model.graph.node):
            self._note_lacking(node, scope, lacking)
        for function in model.functions:
            inner = {**versions, **{x.domain: x.version for x in function.opset_import}}
            for node in _all_nodes(function.node):
                self._note_lacking(node, Scope(ChainMap(), ChainMap(), inner, {}), lacking)
        lacking.require_none()

    def _note_lacking(self, node: Any, scope: Scope, lacking: Lacking) -> None:
        if (node.domain, node.op_type) in self.functions or _meaning(node, scope) is not None:
            return
        if not has_standard_body(node, scope.version(node.domain)):
            name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            lacking.add(name, _place(node))


def _with_attributes(proto: Any, attributes: Mapping[str, Any]) -> Any:
    """Return a node whose attributes refer to no function's."""
    found = onnx.NodeProto()
    found.CopyFrom(proto)
    found.ClearField("attribute")
    for name, attribute in attributes.items():
        found.attribute.add().CopyFrom(attribute)
        found.attribute[-1].name = name
    return found


def _place(node: Any) -> str:
    return f"node {node.name!r}" if node.name else f"the node of {', '.join(node.output)}"


def _wanted(body: Any, proto: Any) -> Iterator[tuple[str, bool]]:
    for k, name in enumerate(body.output):
        yield name, k < len(proto.output) and bool(proto.output[k])


def _meaning(proto: Any, scope: Scope) -> Callable[..., Any] | None:
    if proto.domain not in _DEFAULT:
        return None
    return find_meaning(proto.op_type, scope.version(proto.domain))


def _all_nodes(nodes: Sequence[Any]) -> Iterator[Any]:
    """Yield the nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _all_nodes(attribute.g.node)


def _names_used(graph: Any) -> Iterator[str]:
    for node in _all_nodes(graph.node):
        yield from node.input
    yield from (output.name for output in graph.output)


def _evaluated(result: Any) -> Any:
    """Return the elements of a variable that depends on known arrays only."""
    if result is None:
        return None
    graph = result.recorder.part([], [result.value])
    return result if graph.sizes else interpret(graph)[0]


def _makes_floats(proto: Any) -> bool:
    """Return whether a node converts sizes to another dtype than integers."""
    return proto.op_type == "Cast" and dtype_of(attribute_value(proto.attribute[0])).kind != "i"


def as_value(result: Any) -> Any:
    """Return a result of a function as an array or a variable."""
    if result is None or isinstance(result, Variable):
        return result
    return np.asarray(result)


def as_variable(value: Value) -> Variable:
    """Return a value as a variable; symbolic sizes become integers."""
    if isinstance(value, Variable):
        return value
    if value.dtype != object:
        return array(value)
    return reshape(stack([array(plain(n)) for n in value.reshape(-1)]), value.shape)


# Bodies that the standard gives for operators.


def _schema(proto: Any, version: int) -> Any:
    domain = "" if proto.domain in _DEFAULT else proto.domain
    try:
        return onnx.defs.get_schema(proto.op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def has_standard_body(proto: Any, version: int) -> bool:
    """Return whether the standard defines an operator by others."""
    schema = _schema(proto, version)
    return schema is not None and bool(
        schema.function_opset_versions or schema.context_dependent_function_opset_versions
    )


def _latest(versions: Sequence[int], version: int) -> int:
    """Return the newest body for a version of the operator set, or the oldest there is."""
    return max([v for v in versions if v <= version], default=min(versions))


def standard_body(proto: Any, version: int, types: list[Any]) -> tuple[Any, dict[str, Any]]:
    """Return the body that the standard gives for a node, and default attributes."""
    schema = _schema(proto, version)
    body = onnx.FunctionProto()
    if schema.function_opset_versions:
        number = _latest(schema.function_opset_versions, version)
        body.ParseFromString(schema.get_function_with_opset_version(number))
    else:
        number = _latest(schema.context_dependent_function_opset_versions, version)
        given = [(onnx.TypeProto() if t is None else t).SerializeToString() for t in types]
        text = proto.SerializeToString()
        body.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(number, text, given)
        )
    defaults = {name: x.default_value for name, x in schema.attributes.items()}
    return body, {name: x for name, x in defaults.items() if x.name}


def _type_of(value: Value) -> Any:
    """Return the type of a value in ONNX's words; symbolic sizes have their names."""
    dtype = np.dtype(np.int64) if value.dtype == object else value.dtype
    shape = [n if type(n) is int else str(n) for n in value.shape]
    code = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    return onnx.helper.make_tensor_type_proto(code, shape)
