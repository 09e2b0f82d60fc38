"""Files with models of ONNX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from primgraph.base.files import require_own
from primgraph.base.providers import late
from primgraph.errors import CompileError, UnsupportedError
from primgraph.interop.compositions.compose import compose
from primgraph.interop.compositions.table import is_complex
from primgraph.interop.lacking import Lacking, nested_equations, require_library
from primgraph.interop.onnx.export import transforms  # noqa: F401
from primgraph.interop.onnx.export.control import write_body
from primgraph.interop.onnx.export.structure import SymbolicSizeError
from primgraph.interop.onnx.export.words import has_word
from primgraph.interop.onnx.export.writer import FORMAT, OPSET, Writer, tensor_info
from primgraph.ir.graph import Graph
from primgraph.ir.slices import drop_formal

if TYPE_CHECKING:
    import onnx
else:
    onnx = late("onnx")

_PRODUCER = "primgraph"


def save_model(path: str | os.PathLike[str], graph: Graph, *, force: bool) -> None:
    """Write a model; overwrite files of other origin only with `force`.

    Raises `ArgumentError` for such files without `force`, and the errors of `onnx_model`.
    """
    model = onnx_model(graph)
    if not force:
        require_own(path, "save to another file, or say force=True")
    Path(path).write_bytes(model.SerializeToString())


def onnx_model(graph: Graph) -> Any:
    """Return the model of a graph of primitives.

    Symbolic sizes become named axes. Raises `UnsupportedError` that lists all primitives for which
    ONNX has no words, and `CompileError` for symbolic sizes that no input has as an axis.
    """
    require_library("onnx", "kernel.save")
    plain = compose(drop_formal(graph), has_word)
    require_words(plain)
    w = Writer()
    inputs = []
    for k, value in enumerate(plain.inputs):
        w.names[value] = name = w.fresh(value.hint or f"x{k}")
        inputs.append(tensor_info(name, value.type))
    w.read_sizes(plain)
    missing = [name for name in plain.sizes if name not in w.sizes]
    if missing:
        raise CompileError(f"save: no axis of an input has the size {', '.join(missing)}")
    try:
        write_body(w, plain)
    except SymbolicSizeError as error:
        raise UnsupportedError(f"save: ONNX has no words for {error}") from None
    outputs = []
    for k, value in enumerate(plain.outputs):
        name = w.fresh(f"y{k}" if len(plain.outputs) > 1 else "y")
        w.nodes.append(onnx.helper.make_node("Identity", [w.names[value]], [name]))
        outputs.append(tensor_info(name, value.type))
    nodes = [*w.constants.values(), *w.nodes]
    found = onnx.helper.make_graph(nodes, graph.name, inputs, outputs, w.held)
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(
        found, producer_name=_PRODUCER, opset_imports=opsets, ir_version=FORMAT
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def require_words(graph: Graph) -> None:
    """Raise `UnsupportedError` that lists all primitives for which ONNX has no words."""
    lacking = Lacking("save", "primgraph", "ONNX")
    for eqn in nested_equations(graph):
        if not has_word(eqn):
            of = " of complex numbers" if is_complex(eqn) else ""
            lacking.add(f"{eqn.op.name}{of}", str(eqn.source or ""))
    lacking.require_none()
