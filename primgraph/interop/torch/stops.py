"""Stops of derivatives in exported programs, which torch drops when it decomposes operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from primgraph.base.providers import late

if TYPE_CHECKING:
    import torch
else:
    torch = late("torch")


@contextmanager
def keep_stops(exported: Any) -> Iterator[None]:
    """Write `detach` and blocks of `no_grad` in operators that last, for the time of the block."""
    modules = [m for m in exported.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    detach, stop = torch.ops.aten.detach.default, _stop()
    renamed = [n for m in modules for n in m.graph.find_nodes(op="call_function", target=detach)]
    outputs = {
        n: n.args for m in _without_gradients(modules) for n in m.graph.find_nodes(op="output")
    }
    for node in renamed:
        node.target = stop
    for node, args in outputs.items():
        node.args = torch.fx.map_arg(args, partial(_stopped, node, stop))
    try:
        for module in modules:
            module.recompile()
        yield
    finally:
        for node in renamed:
            node.target = detach
        for node, args in outputs.items():
            added = set(node.all_input_nodes)
            node.args = args
            for unused in added - set(node.all_input_nodes):
                node.graph.erase_node(unused)
        for module in modules:
            module.recompile()


def _without_gradients(modules: Sequence[Any]) -> Iterator[Any]:
    """Yield the bodies of blocks of `no_grad`."""
    block = torch.ops.higher_order.wrap_with_set_grad_enabled
    for module in modules:
        for node in module.graph.find_nodes(op="call_function", target=block):
            if not node.args[0]:
                yield module.get_submodule(node.args[1].target)


def _stopped(output: Any, stop: Any, node: Any) -> Any:
    """Return a node before `output` that stops derivatives of a result, if that is a tensor."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return node
    with output.graph.inserting_before(output):
        found = output.graph.call_function(stop, (node,))
    found.meta = dict(node.meta)
    return found


@cache
def _stop() -> Any:
    """Return an operator that copies a tensor; it has no derivative."""
    made: Any = torch.library.custom_op(
        "primgraph::stop_gradient",
        lambda x: x.clone(),
        mutates_args=(),
        schema="(Tensor x) -> Tensor",
    )
    made.register_fake(torch.empty_like)
    return torch.ops.primgraph.stop_gradient.default
