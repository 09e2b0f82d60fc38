"""Derivatives of what has been built: compositions of transforms, with no rules of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, overload

from primgraph.errors import ArgumentError, NotDifferentiable, PrimgraphError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.source import caller
from primgraph.operators.call import common_recorder
from primgraph.operators.promotion import lift
from primgraph.operators.variable import ArrayLike, Variable
from primgraph.primitives.constants import filled
from primgraph.primitives.elementwise import add, mul
from primgraph.transforms.bind import bind
from primgraph.transforms.clean_up import clean_up
from primgraph.transforms.diagonal import is_diagonal
from primgraph.transforms.linearize import depending, linearize
from primgraph.transforms.lower import lower
from primgraph.transforms.transpose import transpose

Seeds = ArrayLike | Sequence[ArrayLike | None] | None


@overload
def grad(
    outputs: Variable | Sequence[Variable], inputs: Variable, grad_outputs: Seeds = None
) -> Variable: ...
@overload
def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Sequence[Variable],
    grad_outputs: Seeds = None,
) -> list[Variable | None]: ...
def grad(
    outputs: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    grad_outputs: Seeds = None,
) -> Variable | list[Variable | None] | None:
    """The gradient of `sum_i <grad_outputs[i], outputs[i]>` with respect to `inputs`.

    One result of the input's type for each input, alone for a single input, in a list for a
    sequence; None for an input that no output depends on. `grad_outputs` are arrays or variables
    of the outputs' shapes, ones by default (so that outputs need not be scalars).

    Inputs may be intermediate values: each gets its full gradient, also beside another one that
    it is computed from. Outputs or inputs listed twice count twice. Equal expressions are one
    value in a program, so the gradient for an intermediate value is that for all its equals.

    Results are variables of the same program and can be differentiated again.

    Raises `NotDifferentiable` if an input or output is not of a float dtype, or an output
    depends on no input; `ArgumentError` for arguments that are not variables; `ShapeError` for
    seeds that do not fit.
    """
    request = _Request.of("grad", outputs, inputs)
    try:
        seeds = request.seeds("grad_outputs", grad_outputs, request.outputs)
        results = _reverse(request, seeds)
    except PrimgraphError as error:
        raise error.located(request.origin()) from None
    return request.answer(results, inputs)


@overload
def forward_grad(
    outputs: Variable, inputs: Variable | Sequence[Variable], grad_inputs: Seeds = None
) -> Variable | None: ...
@overload
def forward_grad(
    outputs: Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    grad_inputs: Seeds = None,
) -> list[Variable | None]: ...
def forward_grad(
    outputs: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    grad_inputs: Seeds = None,
) -> Variable | list[Variable | None] | None:
    """The directional derivatives of `outputs` along `grad_inputs`, by forward mode.

    One result of the output's type for each output, summed over all inputs; alone for a single
    output, in a list for a sequence; None for an output that depends on no input. `grad_inputs`
    are arrays or variables of the inputs' shapes, ones by default.

    Results are variables of the same program and can be differentiated again. Raises as `grad`
    does, except that an output may be independent of all inputs.
    """
    request = _Request.of("forward_grad", outputs, inputs)
    try:
        seeds = request.seeds("grad_inputs", grad_inputs, request.inputs)
        results = _forward(request, seeds)
    except PrimgraphError as error:
        raise error.located(request.origin()) from None
    return request.answer(results, outputs)


@dataclass(frozen=True, slots=True)
class _Request:
    """What is differentiated, and by what: values of one builder."""

    builder: Builder
    outputs: list[Value]
    inputs: list[Value]

    @staticmethod
    def of(name: str, outputs: Any, inputs: Any) -> _Request:
        variables = [_variables(name, "outputs", outputs), _variables(name, "inputs", inputs)]
        builder = common_recorder([*variables[0], *variables[1]])
        assert isinstance(builder, Builder)
        request = _Request(builder, *([v.value for v in part] for part in variables))
        for role, values in (("input", request.inputs), ("output", request.outputs)):
            for value in values:
                if not value.type.is_float:
                    raise NotDifferentiable(
                        f"{name}: {role} {value.hint!r} is {value.type}, and only floats have "
                        "derivatives",
                        origin=request.origin(),
                    )
        return request

    def origin(self) -> list[str]:
        """Lines for an error: where the derivative was asked for, and of what."""
        return self.builder.origin(caller(), [*self.outputs, *self.inputs])

    def seeds(self, name: str, given: Any, values: list[Value]) -> list[Value | None]:
        """One seed for each of `values`; None stands for ones."""
        if given is None:
            return [None] * len(values)
        seeds = list(given) if isinstance(given, list | tuple) else [given]
        if len(seeds) != len(values):
            raise ArgumentError(f"{name} has {len(seeds)} entries for {len(values)} variables")
        with recording(self.builder):
            return [_seed(name, s, v) for s, v in zip(seeds, values, strict=True)]

    def answer(
        self, results: list[Value | None], given: Any
    ) -> Variable | list[Variable | None] | None:
        """Handles on the results, in the form in which the variables were given."""
        found = [None if v is None else Variable(self.builder, v) for v in results]
        return found[0] if isinstance(given, Variable) else found


def _variables(name: str, role: str, given: Any) -> list[Variable]:
    listed = [given] if isinstance(given, Variable) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(v, Variable) for v in listed):
        raise ArgumentError(
            f"{name} takes a variable or a sequence of variables as {role}, not {given!r:.100}"
        )
    if not listed:
        raise ArgumentError(f"{name} got no {role}")
    return list(listed)


def _seed(name: str, seed: Any, value: Value) -> Value | None:
    if seed is None:
        return None
    variable = lift(seed, value.dtype)
    if variable.shape != value.shape:
        raise ShapeError(f"{name}: a seed of shape {variable.shape} is given for {value.type}")
    return variable.value


@dataclass(frozen=True, slots=True)
class _Path:
    """What lies between inputs and outputs of a request, as a lowered graph of its own.

    Whatever else it needs is an input of `graph`, listed in `free` as the builder's values.
    `wrt` are the inputs of the request that the outputs depend on, each once; `moved` are their
    places in `graph`. `reached` are the outputs that depend on any of them.
    """

    graph: Graph
    free: list[Value]
    wrt: list[Value]
    moved: list[Value]
    reached: list[bool]

    @staticmethod
    def of(request: _Request) -> _Path:
        needed = request.builder.slice(request.outputs)
        inputs = list(dict.fromkeys(request.inputs))
        active = depending(Graph((), needed, ()), inputs)
        relevant = _relevant(needed, request.outputs)
        wrt = [v for v in inputs if v in relevant]
        body = [e for e in needed if not e.inputs or not active.isdisjoint(e.inputs)]
        made = {v for e in body for v in e.outputs}
        used = dict.fromkeys(v for e in body for v in e.inputs)
        free = dict.fromkeys(v for v in (*used, *wrt, *request.outputs) if v not in made)
        whole = Graph(free, body, (*request.outputs, *wrt), request.builder.name)
        lowered = lower(whole)
        count = len(request.outputs)
        return _Path(
            lowered.with_outputs(lowered.outputs[:count]),
            list(free),
            wrt,
            list(lowered.outputs[count:]),
            [v in active for v in request.outputs],
        )

    def jvp(self) -> Graph:
        """From free values and tangents of `wrt` to tangents of the outputs."""
        jvp = linearize(self.graph, self.moved)
        return jvp.with_outputs(jvp.outputs[len(self.graph.outputs) :])


def _relevant(equations: Sequence[Equation], outputs: Sequence[Value]) -> set[Value]:
    """The float values that `outputs` depend on in a differentiable way."""
    relevant = set(outputs)
    for eqn in reversed(equations):
        if not relevant.isdisjoint(eqn.outputs) and eqn.op.name != "stop_gradient":
            relevant.update(v for v in eqn.inputs if v.type.is_float)
    return relevant


def _reverse(request: _Request, seeds: list[Value | None]) -> list[Value | None]:
    """One cotangent for each input of `request`, from those of its outputs."""
    path = _Path.of(request)
    for value, reached in zip(request.outputs, path.reached, strict=True):
        if not reached:
            raise NotDifferentiable(
                f"output {value.hint!r}, {value.type}, does not depend on the inputs"
                if value.hint
                else f"an output, {value.type}, does not depend on the inputs",
                hint="its derivative is zero everywhere; leave it out",
            )
    if len(path.moved) == 1 and is_diagonal(path.graph, path.moved):
        slope = _by_diagonal(request, path, seeds)
        return [slope if v is path.wrt[0] else None for v in request.inputs]
    jvp = path.jvp()
    count = len(path.free)
    derivative = transpose(jvp, range(count, count + len(path.wrt)))
    found = _record(request, derivative, path.free, seeds)
    result = dict(zip(path.wrt, found, strict=True))
    return [result.get(v) for v in request.inputs]


def _by_diagonal(request: _Request, path: _Path, seeds: list[Value | None]) -> Value:
    """The gradient where the Jacobian is diagonal: one forward pass, whatever the outputs."""
    if len(seeds) == 1:
        return _record(request, path.jvp(), path.free, seeds)[0]
    slopes = _record(request, path.jvp(), path.free, [None])
    with recording(request.builder):
        parts = [d if s is None else mul(s, d) for s, d in zip(seeds, slopes, strict=True)]
        return reduce(add, parts)


def _forward(request: _Request, seeds: list[Value | None]) -> list[Value | None]:
    """One tangent for each output of `request`, from those of its inputs."""
    path = _Path.of(request)
    if not path.wrt:
        return [None] * len(request.outputs)
    with recording(request.builder):
        total: dict[Value, Value | None] = {}
        for value, seed in zip(request.inputs, seeds, strict=True):
            if value in total:
                total[value] = add(
                    *(filled(1, value.type) if s is None else s for s in (total[value], seed))
                )
            else:
                total[value] = seed
    found = _record(request, path.jvp(), path.free, [total[v] for v in path.wrt])
    return [v if r else None for v, r in zip(found, path.reached, strict=True)]


def _record(
    request: _Request, derivative: Graph, free: list[Value], seeds: Sequence[Value | None]
) -> list[Value]:
    """Clean `derivative` up and record it; its inputs are `free` and `seeds`, None for ones."""
    ones = {len(free) + i: 1.0 for i, seed in enumerate(seeds) if seed is None}
    graph = clean_up(bind(derivative, ones))
    given = [seed for seed in seeds if seed is not None]
    return request.builder.inline(graph, [*free, *given])
