"""Sums over chunks as functions of parameters: values, gradients, Hessian products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph import tree
from primgraph.distributed.chunks import Chunks, chunks, split_feed
from primgraph.distributed.engine import Engine, engine_of
from primgraph.distributed.kernels import Kernels, Maker
from primgraph.distributed.plans import Plan, plan_of, warn_early
from primgraph.distributed.summands import (
    Summand,
    function_summand,
    gauss_newton_times,
    hessian_times,
    program_summand,
    with_gradient,
)
from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.ir.types import TensorType
from primgraph.operators.promotion import array_of
from primgraph.program.compile import compile_kernel
from primgraph.program.program import Program
from primgraph.training.flat import FlatObjective, flat

Array: TypeAlias = "np.ndarray[Any, Any]"


@final
class ChunkedObjective(FlatObjective):
    """Sum over the samples of all chunks, as a function of its parameters; see `objective`.

    Parameters are the containers of arrays given first, or one flat float64 vector `theta`, as for
    SciPy.
    """

    def __init__(
        self,
        engine: Engine,
        data: Chunks,
        summand: Summand,
        structure: tree.Structure,
        program: Program | None,
        debug: bool,
    ) -> None:
        super().__init__([TensorType(a.shape, a.dtype) for a in summand.params])
        self.program = program
        self._engine, self._data, self._summand = engine, data, summand
        self._structure, self._debug = structure, debug
        self._made: dict[Maker, Kernels] = {}
        self._rests: dict[Maker, Any] = {}
        self._warned: set[Maker] = set()
        if not data.total:
            raise ShapeError("there are no rows in the data")

    # Parameters in containers.

    def value_and_grad(self, params: Any = None) -> tuple[Array, Any]:
        """Return the sum, and its gradients in the containers of the parameters."""
        value, *gradients = self._sum_over_chunks(with_gradient, self._leaves(params))
        return value, tree.unflatten(self._structure, gradients)

    def hessian_product(self, params: Any, vector: Any) -> Any:
        """Return the Hessian at `params` times `vector`, which has the same containers."""
        vectors = self._leaves(vector, "vector")
        found = self._sum_over_chunks(hessian_times, self._leaves(params), vectors)
        return tree.unflatten(self._structure, found)

    def gauss_newton_product(self, params: Any, vector: Any) -> Any:
        """Return `J.T @ (J @ vector)`, with the Jacobian J of all rows of the function."""
        vectors = self._leaves(vector, "vector")
        found = self._sum_over_chunks(gauss_newton_times, self._leaves(params), vectors)
        return tree.unflatten(self._structure, found)

    def plan(self, what: str = "value_and_grad") -> Plan:
        """Return the estimated cost of an evaluation; see `pg.distributed.plan`."""
        if what not in _MAKERS:
            raise OptionError(f"there is no {what!r:.60}", hint=f"known are {', '.join(_MAKERS)}")
        return plan_of(what, self._kernels(_MAKERS[what]), self._engine)

    # Flat vectors, for SciPy.

    def _start(self) -> list[Array]:
        """Return the initial parameters."""
        return self._summand.params

    def _evaluate(self, vector: Array) -> tuple[float, Array]:
        value, *gradients = self._sum_over_chunks(with_gradient, self._split_vector(vector))
        return float(value), flat(gradients)

    def hessp(self, theta: Any, p: Any) -> Array:
        """Return the Hessian at `theta` times the vector `p`."""
        found = self._sum_over_chunks(
            hessian_times, self._split_vector(theta), self._split_vector(p)
        )
        return flat(found)

    def unflatten(self, theta: Any) -> Any:
        """Return the parameters whose elements are in `theta`."""
        return tree.unflatten(self._structure, self._split_vector(theta))

    def assign(self, theta: Any) -> None:
        """Store `theta` in the program's scope; raises `OptionError` without a program."""
        if self.program is None:
            raise OptionError("there is no program: unflatten gives the parameters")
        self.program.set_state_dict(
            dict(zip(self._summand.names, self._split_vector(theta), strict=True))
        )

    def _leaves(self, params: Any, what: str = "params") -> list[Array]:
        models = self._summand.params
        if params is None:
            return models
        leaves, structure = tree.flatten(params)
        if structure != self._structure:
            raise ShapeError(f"{what} are {structure}, and {self._structure} is needed")
        arrays = [array_of(x, a.dtype) for x, a in zip(leaves, models, strict=True)]
        for name, array, model in zip(tree.paths_of(structure, what), arrays, models, strict=True):
            if array.shape != model.shape:
                raise ShapeError(f"{name} has shape {array.shape}, and {model.shape} is needed")
        return [x.astype(a.dtype) for x, a in zip(arrays, models, strict=True)]

    # Evaluation.

    def kernels(self, what: str) -> Kernels:
        """Return the kernels for `what`, as in `plan`."""
        return self._kernels(_MAKERS[what])

    def _kernels(self, make: Maker) -> Kernels:
        found = self._made.get(make)
        if found is None:
            found = self._made[make] = Kernels(self._summand, self._data, make)
        return found

    def _sum_over_chunks(
        self, make: Maker, params: Sequence[Array], vectors: Sequence[Array] = ()
    ) -> list[Array]:
        """Return the sums over all chunks, plus the terms without samples."""
        kernels = self._kernels(make)
        if make not in self._warned:
            self._warned.add(make)
            warn_early(kernels, self._engine)
        given = kernels.common_arguments(params, vectors, self._debug)
        found = self._engine.total(
            make.__name__, lambda: kernels.tasks(self._engine, given), self._data.sources
        )
        rest = self._rest(make)
        if rest is None:
            return found
        return [a + b for a, b in zip(found, rest(*given.arrays), strict=True)]

    def _rest(self, make: Maker) -> Any:
        """Return the kernel of the terms that depend on no sample, or None."""
        if make not in self._rests:
            rows = next(n for n in self._data.rows if n)
            drawn = self._summand.graph_for_rows(rows)
            made = None
            if drawn.parts.rest is not None:
                graph = make(drawn, drawn.parts.rest, len(self._summand.params))
                first = graph.inputs[: len(graph.inputs) - drawn.data]
                made = compile_kernel(type(graph)(first, graph.body, graph.outputs, graph.name))
            self._rests[make] = made
        return self._rests[make]


_MAKERS: dict[str, Maker] = {
    "value_and_grad": with_gradient,
    "hessian_product": hessian_times,
    "gauss_newton_product": gauss_newton_times,
}


def objective(
    f_or_program: Callable[..., Any] | Program,
    params: Any,
    data: Any,
    client: Any = None,
    *,
    loss: Any = None,
    debug: str | None = None,
) -> ChunkedObjective:
    """Return the sum of `f_or_program` over the samples of `data`, as a function of its parameters.

        total = pg.distributed.objective(f, {"w": np.zeros(20)}, (x, y), client)
        found = scipy.optimize.minimize(total.fun_and_jac, total.x0, jac=True)

    A function is called as `f(params, data)`, or `f(params, *data)` for a tuple, with some rows of
    the data. It returns a loss for each row, or their sum. Means are over all rows of all chunks,
    and terms without a sample, such as a penalty of the parameters, are added once. A program has
    such a `loss`, a variable or its name; its data are a dict by the names of inputs, of which
    those with a symbolic first size are chunked; `params` are arrays by name, or None for the
    values of the parameters.

    `data` are as in `pg.distributed.chunks`. Tasks run on `client`, by default on dask's default
    client, else in threads of this process, as with `client="threads"`. Results have the same bits
    wherever and in whatever order tasks run, on machines of one kind. With `debug="nan"` the first
    NaN or infinity of any equation is an error that names chunk, file and equation.

    Raises `MixedSamplesError`, with the line, for what is no sum over samples; `ShapeError` for
    chunks that do not fit, `ArgumentError` for a closed client and for other arguments,
    `OptionError` where dask is not installed.
    """
    if debug not in (None, "nan"):
        raise OptionError(f"debug={debug!r:.60} is not known", hint="choose 'nan', or None")
    engine = engine_of(client)
    if isinstance(f_or_program, Program):
        return _objective_of_program(engine, f_or_program, params, data, loss, debug is not None)
    if loss is not None:
        raise ArgumentError("a function gives its loss itself: loss is for programs")
    chunked = chunks(data).load_unknown_rows(engine)
    summand = function_summand(f_or_program, params, chunked.structure, chunked.columns)
    if not summand.params:
        raise ArgumentError("there are no parameters: params has no arrays")
    return ChunkedObjective(
        engine, chunked, summand, tree.structure(params), None, debug is not None
    )


def _objective_of_program(
    engine: Engine, program: Program, params: Any, data: Any, loss: Any, debug: bool
) -> ChunkedObjective:
    if loss is None:
        raise ArgumentError("the loss of the program is needed", hint="loss=variable")
    chunked, columns, feed = split_feed(program, data, engine)
    summand = program_summand(program, loss, params, columns, feed)
    form = tree.structure(dict.fromkeys(summand.names, 0.0))
    return ChunkedObjective(engine, chunked, summand, form, program, debug)


def value_and_grad(
    f_or_program: Callable[..., Any] | Program,
    *others: Any,
    client: Any = None,
    loss: Any = None,
    debug: str | None = None,
) -> Callable[..., tuple[Array, Any]]:
    """Return a function that sums `f_or_program` over all samples and computes the gradients.

    Call it like `pg.value_and_grad(f)`: with `params`, then the data, one argument for each that
    `f` takes, or a single `pg.distributed.chunks` of them. It returns the sum and its gradients in
    the containers of `params`.

        value, gradients = pg.distributed.value_and_grad(f, client=client)(params, x, y)

    Options, data and errors are those of `pg.distributed.objective`, which is faster for many
    evaluations on the same data.
    """
    if others:
        raise ArgumentError(
            "value_and_grad takes one function or program, and options by name",
            hint="write pg.distributed.value_and_grad(f, client=client)(params, data): it returns "
            "a function, as pg.value_and_grad does",
        )

    def call(params: Any, *data: Any) -> tuple[Array, Any]:
        if not data:
            raise ArgumentError(
                "value_and_grad: the data are missing",
                hint="write pg.distributed.value_and_grad(f)(params, data)",
            )
        given = data[0] if len(data) == 1 else data
        found = objective(f_or_program, params, given, client, loss=loss, debug=debug)
        return found.value_and_grad()

    return call


def hessian_product(
    f_or_program: Callable[..., Any] | Program,
    params: Any,
    vector: Any,
    data: Any,
    client: Any = None,
    *,
    loss: Any = None,
) -> Any:
    """Compute the Hessian of the sum over all samples at `params`, times `vector`.

    `vector` and the result have the containers of `params`; see `pg.distributed.objective`.
    """
    found = objective(f_or_program, params, data, client, loss=loss)
    return found.hessian_product(None, vector)


def gauss_newton_product(
    f: Callable[..., Any], params: Any, vector: Any, data: Any, client: Any = None
) -> Any:
    """Compute `J.T @ (J @ vector)`, where J is the Jacobian of `f` by `params`.

    `f` returns residuals, whose rows belong to samples; see `pg.distributed.objective`.
    """
    found = objective(f, params, data, client)
    return found.gauss_newton_product(None, vector)


def plan(
    f_or_program: Callable[..., Any] | Program,
    params: Any,
    data: Any,
    client: Any = None,
    *,
    loss: Any = None,
    what: str = "value_and_grad",
) -> Plan:
    """Estimate the cost of one evaluation of the sum: chunks, operations, bytes moved, memory.

    `what` is "value_and_grad", "hessian_product" or "gauss_newton_product". The result prints as a
    few lines; if a task does not fit into a worker's memory, with the number of rows that fits.
    Nothing is computed, but files and delayed chunks are loaded. Arguments and errors are those of
    `pg.distributed.objective`.
    """
    return objective(f_or_program, params, data, client, loss=loss).plan(what)
