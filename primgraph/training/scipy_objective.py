"""Loss of a program as a function of one flat vector, for SciPy's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, final, overload

import numpy as np

from primgraph.base.locks import cached_property
from primgraph.base.providers import provider
from primgraph.base.user_lines import caller
from primgraph.codegen import Kernel
from primgraph.derivatives.grad import forward_grad, grad
from primgraph.errors import ArgumentError, BuildError, OptionError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_late, checked_methods
from primgraph.ir.graph import Graph, Value
from primgraph.ir.sizes import fit_to_arrays
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators import concatenate, ravel, reshape, zeros
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile_kernel, style_for
from primgraph.program.inputs import check_names, input_values, state_values
from primgraph.program.program import Program, program_of
from primgraph.training.flat import FlatObjective
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up

Array = np.ndarray[Any, Any]


@overload
def scipy_objective(
    program: Program,
    loss: Variable,
    parameters: Iterable[Variable] | None = None,
    feed: Mapping[str, Any] | None = None,
    *,
    hess: str = "dense",
    target: str | None = None,
    client: None = None,
) -> Objective: ...
@overload
def scipy_objective(
    program: Program,
    loss: Variable,
    parameters: Iterable[Variable] | None = None,
    feed: Any = None,
    *,
    hess: str = "dense",
    target: str | None = None,
    client: Any,
) -> Any: ...
@checked_late
def scipy_objective(
    program: Program,
    loss: Variable,
    parameters: Iterable[Variable] | None = None,
    feed: Any = None,
    *,
    hess: str = "dense",
    target: str | None = None,
    client: Any = None,
) -> Any:
    """Return `loss` as a function of one float64 vector, for the optimizers of SciPy.

        objective = pg.scipy_objective(program, loss)
        found = scipy.optimize.minimize(
            objective.fun_and_jac, objective.x0, jac=True, method="L-BFGS-B"
        )
        objective.assign(found.x)

    The vector has the elements of `parameters`: by default all trainable ones that `loss` depends
    on, in the order of their creation. The arrays in `feed`, and other states in the program's
    scope, are read once and stay the same in all evaluations; symbolic sizes are those of the feed.
    Updates of the program are not made.

    SciPy itself is needed only for `hess="sparse"`: the Hessian is then a `scipy.sparse.csr_array`
    of the elements that may be nonzero, computed by few products, for trust-constr and Newton-CG.
    Use `hessp` for trust-ncg and trust-krylov; trust-exact and dogleg take dense arrays only.

    `target` is as in `pg.compile`: "numpy", "c" or "auto".

    With a dask `client`, its workers compute. `feed` then has arrays in chunks, as for
    `pg.distributed.chunks`, for inputs with a symbolic first size. The loss is a sum or a mean over
    all rows. The result is a `pg.distributed.ChunkedObjective`, with Hessian-vector products but
    without the Hessian; its errors are those of `pg.distributed.objective`.

    Raises `OptionError` for another `hess`, `CompileError` for another target, `ShapeError` for a
    loss of more than one element, `BuildError` if there is nothing to vary or a variable is no
    parameter of the program, `FeedError` for feeds that do not fit, `ArgumentError` for a target
    beside a client, and `NotDifferentiable` as `grad` does.

    >>> with pg.Program() as program:
    ...     w = pg.create_parameter((2,), initializer=pg.initializers.Constant(2.0))
    ...     loss = pg.sum(w * w)
    >>> objective = pg.scipy_objective(program, loss)
    >>> objective.fun_and_jac(objective.x0)
    (8.0, array([4., 4.]))
    """
    return _objective_of(program, loss, parameters, feed, hess, target, client)


def _objective_of(
    program: Program,
    loss: Variable,
    parameters: Iterable[Variable] | None,
    feed: Any,
    hess: str,
    target: str | None,
    client: Any,
) -> Any:
    """Check the arguments of `scipy_objective`, and return what computes it, here or on workers."""
    if client is not None and target is not None:
        raise ArgumentError(
            "a target is for what this process computes, and a client was given",
            hint="set PRIMGRAPH_TARGET for the workers",
        )
    if client is not None and isinstance(program, Program):
        module = provider("distributed objectives")
        chosen = None if parameters is None else list(parameters)
        return module.objective(program, chosen, feed or {}, client, loss=loss)
    if not isinstance(program, Program) or not isinstance(loss, Variable):
        raise ArgumentError(f"scipy_objective takes a program and a loss, not {loss!r:.60}")
    if program_of(loss) is not program:
        raise BuildError(f"the loss {loss!r} belongs to another program")
    if loss.size != 1:
        raise ShapeError(f"a loss has one element, not {loss.type}")
    if hess not in ("dense", "sparse"):
        raise OptionError(f"hess is 'dense' or 'sparse', not {hess!r:.60}")
    style = style_for("planned", target)
    return Objective(
        program, loss, _select_parameters(program, loss, parameters), feed or {}, hess, style
    )


def _select_parameters(
    program: Program, loss: Variable, parameters: Iterable[Variable] | None
) -> list[Variable]:
    if parameters is None:
        used = {v for eqn in program.builder.slice([loss.value]) for v in eqn.inputs}
        chosen = [p for p in program.parameters() if p.value in used or p.value is loss.value]
    else:
        chosen = list(parameters)
    for parameter in chosen:
        if not isinstance(parameter, Variable) or parameter.value not in program.states:
            raise BuildError(f"{parameter!r} is not a parameter of the program of the loss")
    if not chosen:
        raise BuildError("the loss depends on no parameter that may be varied")
    if len({p.value for p in chosen}) < len(chosen):
        raise BuildError("a parameter is listed twice")
    return chosen


@final
@checked_methods(late=True)
class Objective(FlatObjective):
    """Value, gradient and Hessian of a loss at flat float64 vectors `theta`.

    Each kernel is compiled at its first use. One kernel computes value and gradient.
    """

    def __init__(
        self,
        program: Program,
        loss: Variable,
        parameters: Sequence[Variable],
        feed: Mapping[str, Any],
        hess: str = "dense",
        style: str | None = None,
    ) -> None:
        super().__init__([p.type for p in parameters])
        self.program = program
        self._style = style
        self._is_sparse = hess == "sparse"
        self.parameters = tuple(parameters)
        self._record = _Record(program, loss, self.parameters, style)
        others = self._record.others
        check_names(program, feed, [v.hint for v in others if v not in program.states])
        self._others = input_values(program, others, feed)
        self._record.fit(self._others)

    def _start(self) -> Sequence[Array]:
        """Return the current parameters: their initial values before any run."""
        states = [self.program.states[p.value] for p in self.parameters]
        return state_values(self.program, self.program.scope, states)

    def hess(self, theta: Any) -> Any:
        """Return the Hessian at `theta`, one row per element: an array, or sparse with
        `hess="sparse"`."""
        if self._is_sparse:
            kernel, matrix = self._sparse_hessian
            (values,) = kernel(self._vector(theta), *self._others)
            return matrix.to_scipy(values)
        directions = np.eye(self.size)
        (rows,) = self.hess_kernel(self._vector(theta), directions, *self._others)
        found: Array = rows
        return found

    def hessp(self, theta: Any, p: Any) -> Array:
        """Return the Hessian at `theta` times the vector `p`, without forming the Hessian."""
        (product,) = self.hessp_kernel(self._vector(theta), self._vector(p), *self._others)
        found: Array = product
        return found

    def unflatten(self, theta: Any) -> dict[str, Array]:
        """Return the parameters whose elements are in `theta`, by name."""
        names = [p.name for p in self.parameters]
        return dict(zip(names, self._split_vector(theta), strict=True))

    def assign(self, theta: Any) -> None:
        """Store `theta` as the values of the parameters, in the program's scope."""
        self.program.set_state_dict(self.unflatten(theta))

    @cached_property
    def kernel(self) -> Kernel:
        """Kernel of value and gradient from `theta` and constants."""
        return self._record.kernel()

    @cached_property
    def hessp_kernel(self) -> Kernel:
        """Kernel of the product of the Hessian with a vector."""
        return compile_kernel(self._record.curvature, style=self._style)

    @cached_property
    def hess_kernel(self) -> Kernel:
        """Kernel of the products of the Hessian with the rows of a matrix, all at once."""
        graph = clean_up(lower(self._record.curvature))
        axes = [None, 0, *(None for _ in self._others)]
        return compile_kernel(batch(graph, self.size, axes), style=self._style)

    @cached_property
    def _sparse_hessian(self) -> tuple[Kernel, Any]:
        """Kernel of the possibly nonzero elements of the Hessian, and their sparse matrix."""
        return self._record.sparse_hessian()

    def _evaluate(self, vector: Array) -> tuple[float, Array]:
        value, gradient = self.kernel(vector, *self._others)
        return float(value), gradient


class _Record:
    """Loss on slices of a vector, in a separate builder, with its derivatives."""

    def __init__(
        self,
        program: Program,
        loss: Variable,
        parameters: Sequence[Variable],
        style: str | None = None,
    ) -> None:
        self.style = style
        self.parameters = parameters
        self.builder = builder = Builder(program.name, source=caller())
        count = sum(p.size for p in parameters)
        self.type = TensorType((count,), FLOAT64)
        self.theta = Variable(builder, builder.input(self.type, program.free_name("theta")))
        self.parts = self._slices()
        moved = {p.value: part.value for p, part in zip(parameters, self.parts, strict=True)}
        body = program.builder.slice([loss.value])
        used = {v for eqn in body for v in eqn.inputs} | {loss.value}
        self.others = [v for v in program.builder.inputs if v in used and v not in moved]
        self.constants = [builder.input(v.type, v.hint) for v in self.others]
        moved.update(zip(self.others, self.constants, strict=True))
        for eqn in body:
            results = builder.copy_distinct(eqn, tuple(moved[v] for v in eqn.inputs))
            moved.update(zip(eqn.outputs, results, strict=True))
        builder.stopped.update(moved[v] for v in program.builder.stopped if v in moved)
        self.loss = Variable(builder, moved[loss.value])

    def fit(self, arrays: Sequence[Array]) -> None:
        """Set symbolic sizes to those of the arrays, which are the same for all vectors."""
        inputs = [self.theta.value, *self.constants]
        if not any(v.type.names for v in inputs):
            return
        stopped = [v for v in self.builder.stopped if v not in inputs]
        held = [v in self.builder.stopped for v in inputs]
        outputs = [self.loss.value, *[part.value for part in self.parts], *stopped]
        graph = Graph(inputs, self.builder.slice(outputs), outputs, self.builder.name)
        known = fit_to_arrays(graph, [np.zeros(self.type.shape), *arrays])
        builder = self.builder = Builder(self.builder.name, source=self.builder.source)
        theta, *constants = (builder.input(v.type, v.hint) for v in known.inputs)
        loss, *others = builder.inline(known, [theta, *constants])
        parts, stopped = others[: len(self.parts)], others[len(self.parts) :]
        flagged = (v for v, h in zip((theta, *constants), held, strict=True) if h)
        builder.stopped.update((*stopped, *flagged))
        self.theta, self.constants = Variable(builder, theta), constants
        self.loss, self.parts = Variable(builder, loss), [Variable(builder, v) for v in parts]

    def _slices(self) -> list[Variable]:
        parts, start = [], 0
        for p in self.parameters:
            part = self.theta[start : start + p.size]
            parts.append(reshape(part, p.shape).astype(p.dtype))
            start += p.size
        return parts

    @cached_property
    def gradient(self) -> Variable:
        """Gradient as one vector; zeros for unused parameters."""
        with self.builder:
            found = grad(self.loss, self.parts)
            flat = [
                zeros((part.size,), FLOAT64) if g is None else ravel(g).astype(FLOAT64)
                for part, g in zip(self.parts, found, strict=True)
            ]
            return concatenate(flat)

    def kernel(self) -> Kernel:
        """Return the kernel from the vector and the constants to the value and the gradient."""
        with self.builder:
            outputs = [reshape(self.loss, ()).astype(FLOAT64), self.gradient]
        graph = self._graph([self.theta.value, *self.constants], outputs)
        return compile_kernel(graph, style=self.style)

    def sparse_hessian(self) -> tuple[Kernel, Any]:
        """Return the kernel from the vector and the constants to elements of the Hessian, and their
        matrix."""
        module = import_module("primgraph.derivatives.matrices.sparse")
        with self.builder:
            loss = reshape(self.loss, ()).astype(FLOAT64)
            matrix = module.sparse_hessian("scipy_objective", loss, self.theta)
        graph = self._graph([self.theta.value, *self.constants], [matrix.data])
        return compile_kernel(graph, style=self.style), matrix

    @cached_property
    def curvature(self) -> Graph:
        """Graph from the vector, a direction and the constants to the Hessian times the
        direction."""
        with self.builder:
            direction = Variable(self.builder, self.builder.input(self.type))
            change = forward_grad(self.gradient, self.theta, direction)
            product = zeros(self.type.shape, FLOAT64) if change is None else change
        inputs = [self.theta.value, direction.value, *self.constants]
        return self._graph(inputs, [product])

    def _graph(self, inputs: Sequence[Value], outputs: Sequence[Variable]) -> Graph:
        values = [v.value for v in outputs]
        return self.builder.part(inputs, values)
