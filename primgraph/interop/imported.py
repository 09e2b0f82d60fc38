"""Functions imported from other libraries."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, final

import numpy as np

from primgraph.api.jit import Jit
from primgraph.control.bodies import active_builder
from primgraph.control.world import call_in_world, own
from primgraph.errors import DTypeError, FeedError
from primgraph.ir.frontend.containers import unflatten_value
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import fit_to_arrays
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable


@final
class Imported:
    """Function imported from another library; its graph needs nothing of that library.

    It is called like a function of NumPy: with arrays, with tensors, and in programs and traced
    functions, so that `pg.jit`, `pg.grad`, `pg.vmap` and `pg.trace` apply. Arguments have the
    shapes of the inputs of `graph`, of which symbolic sizes fit any number; they are converted to
    the dtypes of the inputs where NumPy's rule "same_kind" allows it.

    Raises `FeedError` for other shapes and containers, `DTypeError` for other dtypes.

    >>> halved = pg.interop.Imported(pg.trace(lambda x: x / 2, pg.spec(("N",))))
    >>> halved(np.array([1.0, 3.0]))
    array([0.5, 1.5])
    >>> pg.grad(lambda x: pg.sum(halved(x) ** 2))(np.array([1.0, 3.0]))
    array([0.5, 1.5])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.__name__ = self.__qualname__ = graph.name
        self._on_tensors = Jit(self._record)

    def __reduce__(self) -> tuple[Any, ...]:
        return Imported, (self.graph,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = self.graph.in_order(args, kwargs)
        return call_in_world(self._record, self._on_tensors, leaves)

    def _record(self, *leaves: Any) -> Any:
        """Record the graph on arrays, one for each input."""
        builder = active_builder()
        given = [own(leaf) for leaf in leaves]
        graph = fit_to_arrays(self.graph, given)
        pairs = zip(given, graph.inputs, strict=True)
        converted = [_convert(x, value.type, value.hint or "input") for x, value in pairs]
        found = builder.inline(graph, [x.value for x in converted])
        results = [Variable(builder, value) for value in found]
        if graph.form is None:
            return results[0] if len(results) == 1 else tuple(results)
        return unflatten_value(graph.form.results, iter(results))

    def __repr__(self) -> str:
        return f"<imported {self.graph!r:.200}>"


class ImportedModel:
    """Function imported with its parameters, which are arrays by name."""

    def __init__(
        self, graph: Graph, parameters: dict[str, Any], fixed: tuple[Any, ...] = ()
    ) -> None:
        self.imported = Imported(graph)
        self.parameters = parameters
        # Arguments between the parameters and those of a call.
        self.fixed = fixed
        self.__name__ = self.__qualname__ = graph.name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.imported.graph, self.parameters, self.fixed)

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = self.imported.graph.parameters[1 + len(self.fixed) :]
        return inspect.Signature([inspect.Parameter(name, kind) for name in names])

    @property
    def specs(self) -> tuple[TensorType, ...]:
        """Return the types of the arrays of a call."""
        count = len(self.parameters) + sum(map(len, self.fixed))
        return self.imported.graph.input_types[count:]

    def apply(self, parameters: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call the function with other parameters."""
        return self.imported(parameters, *self.fixed, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.imported(self.parameters, *self.fixed, *args, **kwargs)

    def __repr__(self) -> str:
        count = len(self.parameters)
        return f"<{self.imported!r:.200}, {count} parameter{'s' * (count != 1)}>"


def _convert(given: Variable, wanted: TensorType, name: str) -> Variable:
    """Return an argument in the dtype of its input `name`, of type `wanted`."""
    if given.shape != wanted.shape:
        raise FeedError(f"input {name!r} is {wanted}: an array of shape {given.shape} is given")
    if not np.can_cast(given.dtype, wanted.dtype, "same_kind"):
        raise DTypeError(f"input {name!r} is {wanted}: an array of {given.dtype} is given")
    return given.astype(wanted.dtype)
