"""Layers that `paddle.jit.load` returns: programs with parameters that can be trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.compat.paddle.core.parameters import EagerParamBase
from primgraph.compat.paddle.dynamic import Tensor, as_tensor
from primgraph.compat.paddle.nn.layer import Layer
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.node import array_node
from primgraph.eager.replay import replay_graph
from primgraph.errors import ArgumentError
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import fit_to_arrays
from primgraph.operators.variable import Variable

_KEPT = 64


class TranslatedLayer(Layer):
    """A layer that `paddle.jit.load` returns: the program of a saved layer, and its parameters.

    After `train()` it computes as the saved layer does in training, and its parameters have
    gradients. It begins in the mode of evaluation.

    >>> paddle.jit.save(paddle.nn.Linear(2, 1), "linear", [paddle.ones([3, 2])])
    >>> layer = paddle.jit.load("linear")
    >>> layer(paddle.ones([3, 2])).shape
    paddle.Size([3, 1])
    >>> [p.shape for p in layer.parameters()]
    [paddle.Size([2, 1]), paddle.Size([1])]
    """

    def __init__(
        self,
        program: Any,
        feeds: Sequence[str],
        fetches: Sequence[Any],
        training: tuple[Any, Sequence[Any]] | None = None,
    ) -> None:
        super().__init__()
        self._program, self._feeds = program, list(feeds)
        # Programs with their fetches, by whether they are those of training.
        self._programs = {False: (program, list(fetches)), True: training or (program, fetches)}
        self._graphs: dict[Any, Graph] = {}
        for source, _ in self._programs.values():
            self._register(source)
        self.eval()

    def _register(self, program: Any) -> None:
        """Register the states of a program as parameters and buffers, by their names."""
        values = program.state_dict()
        for state in program.states.values():
            name = state.name
            if name in self._parameters or name in self._buffers:
                continue
            if state.trainable:
                self._parameters[name] = EagerParamBase(array_node(values[name], True), name)
            else:
                self._buffers[name] = as_tensor(values[name])
                if program is not self._program:
                    self._non_persistent_buffers_set.add(name)

    def forward(self, *inputs: Any) -> Any:
        """Return the results of the program."""
        if len(inputs) != len(self._feeds):
            raise ArgumentError(f"the layer takes {len(self._feeds)} inputs, not {len(inputs)}")
        given = {**self._parameters, **self._buffers}
        arguments = [x if isinstance(x, Tensor) else as_tensor(x) for x in inputs]
        given |= zip(self._feeds, arguments, strict=True)
        program, fetches = self._programs[self.training]
        states = list(program.updates)
        news = [Variable(program.builder, v) for v in program.updates.values()]
        graph = program.graph([*fetches, *news])
        tensors = [
            _of_type(given[v.hint], v.type.dtype) for v in graph.inputs if isinstance(v.hint, str)
        ]
        graph = self._fitted(graph, tensors)
        nodes = replay_graph(graph, [t.node for t in tensors])
        found = [Tensor(node) for node in nodes]
        for state, new in zip(states, found[len(fetches) :], strict=True):
            with no_grad():
                self._buffers[program.states[state].name].copy_(new.detach())
        results = found[: len(fetches)]
        return results[0] if len(results) == 1 else results

    def _fitted(self, graph: Graph, tensors: Sequence[Tensor]) -> Graph:
        """Return the graph for the sizes of the inputs."""
        shapes = tuple(t.type.shape for t in tensors)
        key = self.training, shapes
        if key not in self._graphs:
            if len(self._graphs) == _KEPT:
                self._graphs.clear()
            arrays = [np.broadcast_to(np.zeros(()), shape) for shape in shapes]
            self._graphs[key] = fit_to_arrays(graph, arrays)
        return self._graphs[key]

    def program(self, method_name: str = "forward") -> Any:
        """Return the program for inference."""
        return self._program


def _of_type(x: Any, dtype: Any) -> Any:
    """Return a tensor in the dtype of an input, as a feed of an executor is converted."""
    return x if x.type.dtype == dtype else x.astype(dtype)
