"""Nodes of the graph of derivatives, `x.grad_fn`, named as torch names them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from primgraph.eager.node import Node as EagerNode
from primgraph.eager.steps import Traced
from primgraph.operators.handle import Handle

# Names of backward nodes that are not those of our functions, by function.
_NAMES = {
    "absolute": "Abs",
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctan2": "Atan2",
    "arctanh": "Atanh",
    "assign": "Clone",
    "astype": "ToCopy",
    "broadcast_to": "Expand",
    "clip": "Clamp",
    "concatenate": "Cat",
    "divide": "Div",
    "expand_dims": "Unsqueeze",
    "expit": "Sigmoid",
    "extract": "MaskedSelect",
    "flatten": "View",
    "gammaln": "Lgamma",
    "getitem": "Index",
    "inv": "LinalgInvEx",
    "logsumexp": "Logsumexp",
    "log_softmax": "LogSoftmax",
    "matrix_transpose": "T",
    "moveaxis": "Permute",
    "multiply": "Mul",
    "negative": "Neg",
    "norm": "LinalgVectorNorm",
    "outer": "Mul",
    "power": "Pow",
    "ravel": "View",
    "repeat": "RepeatInterleave",
    "reshape": "View",
    "scatter_add": "IndexAdd",
    "set_slice": "CopySlices",
    "solve": "LinalgSolveEx",
    "subtract": "Sub",
    "swapaxes": "Transpose",
    "take": "IndexSelect",
    "take_along_axis": "Gather",
    "tile": "Repeat",
    "transpose": "Permute",
    "vector_norm": "LinalgVectorNorm",
}
# Names of products by numbers of axes.
_PRODUCTS: dict[tuple[int, ...], str] = {(1, 1): "Dot", (2, 1): "Mv", (2, 2): "Mm", (3, 3): "Bmm"}
# Functions whose backward node has another number for a call with an axis.
_BY_AXIS = ("max", "mean", "min", "prod", "std", "sum", "var")


@lru_cache(maxsize=4096)
def _node_type(name: str) -> type[Node]:
    return type(name, (Node,), {"__slots__": ()})


class Node:
    """Node of the graph of derivatives: the operation that a tensor comes from.

    >>> x = torch.ones(2, requires_grad=True)
    >>> type((x * 2).grad_fn).__name__
    'MulBackward0'
    """

    __slots__ = ("_node",)

    def __init__(self, node: EagerNode) -> None:
        self._node = node

    def name(self) -> str:
        """Return the name of the operation."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Nodes of the operands, with the number of the operation's result."""
        step = self._node.step
        inputs = (
            self._node.inputs if step is None else [self._node.inputs[i] for i in step.reaching]
        )
        return tuple((gradient_node(n, None), 0) for n in inputs)

    @property
    def metadata(self) -> dict[str, Any]:
        """Empty dictionary."""
        return {}

    def register_hook(self, hook: Any) -> Any:
        """Register a hook on the gradient of the tensor that shows this node."""
        holder: Any = None if self._node.holder is None else self._node.holder()
        return holder.register_hook(lambda gradient: _first(hook((gradient,), (gradient,))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._node is other._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        name = type(self).__name__
        # As in torch, nodes of functions of the user have no number, and stand in a module.
        module = "torch.autograd.function." if name.endswith("Backward") else ""
        return f"<{module}{name} object at {hex(id(self._node))}>"


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, tuple) and found else found


class AccumulateGrad(Node):
    """End of the graph: the gradient is added to `.grad` of `variable`."""

    __slots__ = ()

    @property
    def variable(self) -> Any:
        """The leaf."""
        holder: Any = self._node.holder
        return None if holder is None else holder()


def gradient_node(node: EagerNode, tensor: Handle | None) -> Node | None:
    """Return the node of the graph of derivatives for a node of tensors; None for constants."""
    if not node.tracked:
        return None
    if node.is_leaf:
        return AccumulateGrad(node)
    return _node_type(_name_of(node))(node)


def _name_of(node: EagerNode) -> str:
    if node.passed is not None:
        return f"{node.passed.name}Backward"
    step = getattr(node, "released", node.step)
    if isinstance(step, str):
        return f"{step}Backward"
    if not isinstance(step, Traced):
        return "Backward"
    name = step.graph.name
    body = [eqn.op.name for eqn in step.graph.body]
    if name == "matmul":
        ranks = tuple(len(v.type.shape) for v in step.graph.inputs)
        return f"{_PRODUCTS.get(ranks, 'UnsafeView')}Backward0"
    if name == "getitem":
        return f"{_index_name(body)}Backward0"
    number = 0
    if name in _BY_AXIS and step.type.shape:
        number = 1
    if name == "power" and len(step.graph.inputs) > 1:
        number = 1
    own = _NAMES.get(name, "".join(w.capitalize() for w in name.split("_")))
    return f"{own}Backward{1 if name == 'clip' else number}"


def _index_name(body: list[str]) -> str:
    """Return the name for an index: of a slice, of one position, or of arrays."""
    if any("gather" in name or "take" in name for name in body):
        return "Index"
    return "Select" if any("reshape" in name for name in body) else "Slice"
