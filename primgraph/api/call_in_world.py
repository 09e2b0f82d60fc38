"""Function calls on distinct arguments: recorded in a program, or eager on tensors.

All derivatives of functions use one of these two. They distinguish arguments from values that the
function closes over, even if these are the same array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, final

import numpy as np

from primgraph.base.providers import late, provider
from primgraph.derivatives.modes import forward, reverse
from primgraph.derivatives.request import Request, located
from primgraph.eager.inplace.adoption import adopting
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Recorder
from primgraph.ir.primitive import recording as into
from primgraph.ir.types import TensorType
from primgraph.operators.call import handed_out, taken_in
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable, handle_of

if TYPE_CHECKING:
    from primgraph.derivatives.matrices import jacobian as matrices
    from primgraph.eager import mixed
    from primgraph.eager import node as nodes
    from primgraph.eager import tensor as tensors
    from primgraph.eager.derivatives import gradient_nodes, other_modes, recording
    from primgraph.eager.derivatives import reverse as reverse_mode
else:
    matrices = late("primgraph.derivatives.matrices.jacobian")
    gradient_nodes = late("primgraph.eager.derivatives.gradient_nodes")
    other_modes = late("primgraph.eager.derivatives.other_modes")
    recording = late("primgraph.eager.derivatives.recording")
    reverse_mode = late("primgraph.eager.derivatives.reverse")
    mixed = late("primgraph.eager.mixed")
    nodes = late("primgraph.eager.node")
    tensors = late("primgraph.eager.tensor")


Flat: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""A function of a row of arrays that gives a row of arrays."""


class Applied(ABC):
    """Result of a function of a list of arrays, and its derivatives by its arguments.

    `count` is the number of leading results that are differentiated. A seed of None stands for
    ones. Derivatives without dependence are zeros.
    """

    results: Sequence[Handle]

    @abstractmethod
    def vjp(self, count: int, seeds: Sequence[Any]) -> list[Handle]:
        """Return the derivative by each argument of all results along `seeds`."""

    @abstractmethod
    def jvp(self, count: int, seeds: Sequence[Any]) -> list[Handle]:
        """Return the derivative of each result by all arguments along `seeds`."""

    @abstractmethod
    def jets(
        self, count: int, series: Sequence[Mapping[int, Any]], order: int
    ) -> list[list[Handle]]:
        """Return the derivatives of each result of orders 1 to `order`; `series` has the nonzero
        derivatives of the arguments, by order."""

    @abstractmethod
    def matrix(self, count: int, mode: str | None) -> list[list[Handle]]:
        """Return a block for each result and each argument, with the axes of both."""

    @abstractmethod
    def depends(self, count: int) -> tuple[list[bool], list[bool]]:
        """Return which results depend on an argument, and which arguments are used."""

    def origin(self) -> list[str]:
        """Lines for an error: where the function was called, and on what."""
        return []


@final
class Recorded(Applied):
    """Function of variables, in their program."""

    def __init__(self, name: str, function: Flat, inputs: Sequence[Variable]) -> None:
        self._request = Request.from_call(name, lambda *arguments: [*function(arguments)], inputs)
        self.results = self._handles(self._request.outputs)

    def _handles(self, values: Sequence[Any]) -> list[Handle]:
        return handed_out([handle_of(self._request.builder, v) for v in values])

    def _move_seeds(self, seeds: Sequence[Any]) -> list[Any]:
        """Move seeds that are tensors to the program."""
        builder = self._request.builder
        return [in_program(builder, s) if is_tensor(s) else s for s in seeds]

    def vjp(self, count: int, seeds: Sequence[Any]) -> list[Handle]:
        request = self._request.first(count)
        with located(request.origin):
            values = request.seeds("v", self._move_seeds(seeds), request.outputs)
            found = request.with_zeros(reverse(request, values, None, lenient=True), request.inputs)
            if values == [None]:
                request.note_gradients(found)
            return self._handles(found)

    def jvp(self, count: int, seeds: Sequence[Any]) -> list[Handle]:
        request = self._request.first(count)
        with located(request.origin):
            values = request.seeds("v", self._move_seeds(seeds), request.inputs)
            return self._handles(request.with_zeros(forward(request, values), request.outputs))

    def jets(
        self, count: int, series: Sequence[Mapping[int, Any]], order: int
    ) -> list[list[Handle]]:
        request = self._request.first(count)
        with located(request.origin):
            given = [
                dict(zip(terms, self._move_seeds([*terms.values()]), strict=True))
                for terms in series
            ]
            rows = provider("Taylor mode").array_derivatives(request, given, order)
            return [self._handles(row) for row in rows]

    def matrix(self, count: int, mode: str | None) -> list[list[Handle]]:
        with located(self._request.origin):
            return [[*row] for row in matrices.blocks_of(self._request.first(count), mode)]

    def depends(self, count: int) -> tuple[list[bool], list[bool]]:
        request = self._request.first(count)
        return request.path.reached, [a in request.path.wrt for a in request.sources]

    def origin(self) -> list[str]:
        return self._request.origin()


@final
class Computed(Applied):
    """Function of tensors.

    Results and derivatives are constants unless they depend on tensors, other than the arguments,
    that require gradients.
    """

    def __init__(self, name: str, function: Flat, inputs: Sequence[tensors.Tensor]) -> None:
        self._name = name
        self._arguments = [other_modes.argument(t.node) for t in inputs]
        self._family = tensors.family_of(inputs)
        with recording.track_all():
            found = function([self._family(n) for n in self._arguments])
        made = [r if isinstance(r, tensors.Tensor) else _as_tensor(name, r) for r in found]
        self._outputs = [t.node for t in made]
        self._tracked = recording.is_on.get() and other_modes.depends_beyond(
            self._outputs, self._arguments
        )
        self.results = made if self._tracked else [t.detach() for t in made]

    def vjp(self, count: int, seeds: Sequence[Any]) -> list[Handle]:
        values = self._seeds(seeds, self._outputs[:count])
        live = [i for i in range(count) if self._outputs[i].tracked]
        outputs, given = [self._outputs[i] for i in live], [values[i] for i in live]
        way, tracked = gradient_nodes.path(outputs, ready=False), self._follows(values)
        found: Sequence[nodes.Node | None]
        if not any(n.passed is not None for n in way):
            found = gradient_nodes.gradients(
                outputs, self._arguments, given, tracked=tracked, way=way
            )
        else:
            # Custom rules are called with numbers, which they may use in Python's control flow.
            behind = other_modes.dependent_nodes(outputs, self._arguments, ready=False)
            found = reverse_mode.gradients_through_hooks(
                way, outputs, self._arguments, given, tracked=tracked, behind=behind
            )
        return self._with_zeros(found, self._arguments)

    def jvp(self, count: int, seeds: Sequence[Any]) -> list[Handle]:
        values = self._seeds(seeds, self._arguments)
        outputs = self._outputs[:count]
        found = other_modes.tangents(
            outputs, self._arguments, values, tracked=self._follows(values)
        )
        return self._with_zeros(found, outputs)

    def jets(
        self, count: int, series: Sequence[Mapping[int, Any]], order: int
    ) -> list[list[Handle]]:
        pairs = zip(series, self._arguments, strict=True)
        curves = [{k: _seed(s, x.type, "series") for k, s in terms.items()} for terms, x in pairs]
        tracked = self._follows([s for curve in curves for s in curve.values()])
        outputs = self._outputs[:count]
        rows = other_modes.jets(outputs, self._arguments, curves, order, tracked=tracked)
        return [
            [self._zeros(y.type)] * order if row is None else [self._family(n) for n in row]
            for y, row in zip(outputs, rows, strict=True)
        ]

    def matrix(self, count: int, mode: str | None) -> list[list[Handle]]:
        found = other_modes.matrix(
            "jacobian",
            self._outputs[:count],
            self._arguments,
            tracked=self._tracked,
            options={"mode": mode},
        )
        return [[self._family(n) for n in row] for row in found]

    def depends(self, count: int) -> tuple[list[bool], list[bool]]:
        outputs = self._outputs[:count]
        before = set(gradient_nodes.path(outputs, ready=False))
        behind = other_modes.dependent_nodes(outputs, self._arguments, ready=False)
        return [n in behind for n in outputs], [a in before for a in self._arguments]

    def _seeds(self, seeds: Sequence[Any], like: Sequence[nodes.Node]) -> list[nodes.Node | None]:
        if len(seeds) != len(like):
            raise ArgumentError(f"v has {len(seeds)} entries for {len(like)} tensors")
        return [_seed(s, n.type) for s, n in zip(seeds, like, strict=True)]

    def _follows(self, seeds: Sequence[nodes.Node | None]) -> bool:
        """Return whether a derivative along `seeds` is itself differentiable by captured
        tensors."""
        moved = any(s is not None and s.tracked for s in seeds)
        return self._tracked or (moved and recording.is_on.get())

    def _with_zeros(
        self, found: Sequence[nodes.Node | None], like: Sequence[nodes.Node]
    ) -> list[Handle]:
        pairs = zip(found, like, strict=True)
        return [self._zeros(n.type) if f is None else self._family(f) for f, n in pairs]

    def _zeros(self, type: TensorType) -> tensors.Tensor:
        return self._family(nodes.array_node(np.zeros(type.shape, type.dtype)))


def is_tensor(value: Any) -> TypeGuard[tensors.Tensor]:
    """Return whether `value` is a tensor, without the import of tensors where there are none."""
    return isinstance(value, Handle) and value._has_elements


def in_program(recorder: Recorder, leaf: Any) -> Variable:
    """Return an array, a tensor or a variable as a variable of that program.

    A body captures variables of enclosing programs.
    """
    if isinstance(leaf, Variable):
        if isinstance(recorder, Builder) and recorder.outer is not None:
            found: Variable = taken_in(recorder, leaf)
            return found
        return leaf
    adoption = adopting.get()
    with into(recorder):
        if not is_tensor(leaf):
            return lift(leaf)
        if adoption is not None and adoption.builder is recorder:
            return adoption.variable(leaf)
        return lift(mixed.replace_tensors(Variable(recorder, Value(leaf.type)), leaf))


def _as_tensor(name: str, result: Any) -> tensors.Tensor:
    if isinstance(result, Handle):
        raise ArgumentError(
            f"{name}: the function was called on tensors, and returned a variable of a program"
        )
    return tensors.tensor(result)


def _seed(seed: Any, type: TensorType, name: str = "v") -> nodes.Node | None:
    """Convert a seed for an array of that type, in its dtype."""
    if seed is None:
        return None
    found = seed if isinstance(seed, tensors.Tensor) else tensors.tensor(seed, type.dtype)
    if found.shape != type.shape:
        raise ShapeError(
            f"{name}: the seed has shape {found.shape}, but the variable is {type}",
            hint="a seed has the shape of its variable, and weights its elements",
        )
    cast: tensors.Tensor = found if found.dtype == type.dtype else found.astype(type.dtype)
    return cast.node
