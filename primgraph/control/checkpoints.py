"""Checkpoints: rematerialisation of a function's residuals in reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, final

from primgraph import tree
from primgraph.api.arguments import call_differentiated
from primgraph.api.jit import Jit
from primgraph.api.transformed import P, R, Transformed
from primgraph.api.world import is_array
from primgraph.control.bodies import captured_values, inputs_of, record, trace_body
from primgraph.control.world import call_in_world, own
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators.promotion import SCALARS
from primgraph.operators.variable import Variable
from primgraph.primitives import control


@check_arguments
def checkpoint(function: Callable[P, R]) -> Checkpointed[P, R]:
    """Return the same function, recomputed in reverse mode: only its arguments are stored.

    Derivatives compute the inside of the function once more: memory for the time of one more call.
    Values and derivatives of all orders and modes are those of the function. Checkpoints nest, and
    work in bodies of loops, where each step then stores the operands only.

    Arguments and results are containers of arrays; other arguments, Python numbers included, are
    passed on. Variables and tensors from around the function are stored like arguments. The
    function is traced once for each kind of call, on tensors too.

    This is `jax.checkpoint`; see A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008,
    chapter 12. Raises `ArgumentError` for results that are not arrays.

    >>> pg.grad(pg.checkpoint(lambda x: pg.sum(x**2)))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return Checkpointed(function)


@final
class Checkpointed(Transformed[P, R]):
    """Function of which reverse mode stores only the arguments; see `checkpoint`."""

    def __init__(self, function: Callable[P, R]) -> None:
        super().__init__("checkpoint", function)
        # Compiled functions of tensors, by the static arguments.
        self._on_tensors: dict[Hashable, OnTensors] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Checkpointed, (self.function,)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        leaves, structure = tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if is_array(x) and type(x) not in SCALARS]
        others = [(i, type(x), x) for i, x in enumerate(leaves) if i not in places]

        def call(*arrays: Any) -> Any:
            known = dict(zip(places, arrays, strict=True))
            given = [known.get(i, x) for i, x in enumerate(leaves)]
            positional, named = tree.unflatten(structure, given)
            return call_differentiated(self.function, *positional, **named)

        def build(*arrays: Any) -> Any:
            return _record_checkpoint(call, getattr(self.function, "__name__", "body"), arrays)

        def run(*arrays: Any) -> Any:
            try:
                known = self._on_tensors.setdefault((structure, *others), OnTensors(build))
            except TypeError:
                listed = ", ".join(kind.__name__ for _, kind, _ in others)
                raise ArgumentError(
                    f"checkpoint: what is no array is part of the kind of call: {listed} cannot be "
                    "hashed"
                ) from None
            return known(*arrays)

        result: R = call_in_world(build, run, [leaves[i] for i in places])
        return result


def _record_checkpoint(call: Callable[..., Any], name: str, arrays: Sequence[Any]) -> Any:
    given = [own(x) for x in arrays]
    hints = [v.value.hint for v in given]

    def arguments(builder: Builder) -> list[Any]:
        made = inputs_of(builder, [v.type for v in given], hints)
        return [Variable(builder, v) for v in made]

    body = trace_body("checkpoint", call, arguments, name)
    if not body.found:
        return tree.unflatten(body.structure, [])
    outside = captured_values([body])
    values = [*outside, *[v.value for v in given]]
    found = record(values, partial(control.checkpoint, body=body.graph(outside)))
    return tree.unflatten(body.structure, found)


@final
class OnTensors:
    """Recording function applied to tensors: compiled for each signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._compiled = Jit(function)

    def __call__(self, *arguments: Any) -> Any:
        return self._compiled(*arguments)
