"""Derivatives of what has been built: compositions of transforms, with no rules of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce, wraps
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from primgraph.autodiff.subgraph import Path, called, reached_by, record
from primgraph.errors import (
    ArgumentError,
    NotDifferentiable,
    OptionError,
    PrimgraphError,
    ShapeError,
)
from primgraph.ir.builder import Builder
from primgraph.ir.collection import uncollected
from primgraph.ir.graph import Value
from primgraph.ir.primitive import recording
from primgraph.ir.signature import checked_late
from primgraph.operators.call import common_recorder
from primgraph.operators.promotion import array_of, lift
from primgraph.operators.variable import ArrayLike, Variable
from primgraph.primitives.constants import filled
from primgraph.primitives.elementwise import add, mul
from primgraph.source import caller
from primgraph.transforms.diagonal import is_diagonal

Seeds = ArrayLike | Sequence[ArrayLike | None] | None
Variables = Variable | Sequence[Variable]
Gradients = Variable | list[Variable] | list[Variable | None] | None

P = ParamSpec("P")
R = TypeVar("R")


def _is_numbers(given: Any) -> bool:
    """Whether `given` is an array or a number, or a list that begins with one."""
    first = given[0] if isinstance(given, list | tuple) and given else given
    return isinstance(first, np.ndarray | np.generic | int | float)


def _traced(name: str) -> str:
    """How the derivative of that name of a function is computed from arrays."""
    one = {"grad": "f(x), x", "forward_grad": "f(x), x", "hvp": "f, x, v", "vhp": "f, x, v"}
    taken = one.get(name, "f, x")
    return (
        "variables are inputs of a program or of a traced function: write "
        f"pg.compile(pg.trace(lambda x: pg.{name}({taken}), x0))(x0)"
    )


def _refuse_functions(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function in place of outputs raise an `ArgumentError` that shows how to trace it."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        outputs = args[0] if args else kwargs.get("outputs")
        if callable(outputs):
            raise ArgumentError(
                f"{function.__name__} takes variables, not the function {outputs!r:.60}",
                hint=_traced(function.__name__),
            )
        return function(*args, **kwargs)

    return call


# Where nobody says that inputs may be unused, checkers of types take it that none is.
@overload
def grad(
    outputs: Variables,
    inputs: Variable,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    materialize_grads: bool = False,
    strict_scalar: bool = False,
    is_grads_batched: bool = False,
    no_grad_vars: Collection[Variable] | None = None,
) -> Variable: ...
@overload
def grad(
    outputs: Variables,
    inputs: Sequence[Variable],
    grad_outputs: Seeds = None,
    *,
    allow_unused: Literal[False] = False,
    materialize_grads: bool = False,
    strict_scalar: bool = False,
    is_grads_batched: bool = False,
    no_grad_vars: Collection[Variable] | None = None,
) -> list[Variable]: ...
@overload
def grad(
    outputs: Variables,
    inputs: Sequence[Variable],
    grad_outputs: Seeds = None,
    *,
    allow_unused: Literal[True],
    materialize_grads: bool = False,
    strict_scalar: bool = False,
    is_grads_batched: bool = False,
    no_grad_vars: Collection[Variable] | None = None,
) -> list[Variable | None]: ...
@overload
def grad(
    outputs: Variables,
    inputs: Variables,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    materialize_grads: bool = False,
    strict_scalar: bool = False,
    is_grads_batched: bool = False,
    no_grad_vars: Collection[Variable] | None = None,
) -> Gradients: ...
@_refuse_functions
@checked_late
def grad(
    outputs: Variables,
    inputs: Variables,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    materialize_grads: bool = False,
    strict_scalar: bool = False,
    is_grads_batched: bool = False,
    no_grad_vars: Collection[Variable] | None = None,
) -> Gradients:
    """The gradient of `sum_i <grad_outputs[i], outputs[i]>` with respect to `inputs`.

    One result of the input's type for each input, alone for a single input, in a list for a
    sequence; None for an input that no output depends on. Zeros, which cost nothing, where an
    output depends on it and the derivative is zero everywhere, as for the third derivative of
    `x**2`: a derivative counts as a function of all that the outputs depend on. Outputs that no
    input reaches, beside others that are reached, contribute nothing. `grad_outputs` are arrays
    or variables of the outputs' shapes, cast to their dtypes; one that is None, or all by
    default, are ones (so that outputs need not be scalars).

    Inputs may be intermediate values: each gets its full gradient, also beside another one that
    it is computed from. Outputs or inputs listed twice count twice. Equal expressions are one
    value in a program, so the gradient for an intermediate value is that for all its equals.

    Values with `stop_gradient` set, and those in `no_grad_vars`, are constants: nothing goes
    through them, and as inputs they count as unused.

    - `allow_unused=False` makes an unused input an error.
    - `materialize_grads=True` gives zeros for unused inputs, also where all outputs are
      independent of all inputs, which is an error otherwise.
    - `strict_scalar=True` asks for a seed for each output that has not exactly one element.
    - `is_grads_batched=True` takes seeds with one more leading axis, of one extent N for all,
      and gives results of shape `(N, *x.shape)`, all N in one vectorised pass. None still stands
      for ones, for each of the N.

    Results are variables of the same program and can be differentiated again.

    Raises `NotDifferentiable` if an input or output is not of a float dtype, if no output
    depends on any input, or an input is unused and must not be; `ArgumentError` for arguments
    that are not variables; `ShapeError` for seeds that do not fit; `OptionError`, a ValueError,
    for `materialize_grads` with `allow_unused=False`.
    """
    request = Request.of("grad", outputs, inputs, no_grad_vars)
    if materialize_grads and not allow_unused:
        raise OptionError(
            "grad cannot both refuse unused inputs and give zeros for them",
            origin=request.origin(),
            hint="leave out allow_unused=False or materialize_grads=True",
        )
    try:
        if strict_scalar:
            _require_seeds(request, grad_outputs)
        count = _batch_extent(request, grad_outputs) if is_grads_batched else None
        seeds = request.seeds("grad_outputs", grad_outputs, request.outputs, count)
        results = _reverse(request, seeds, count, lenient=materialize_grads)
        if not allow_unused:
            _refuse_unused(request, results)
    except PrimgraphError as error:
        raise error.located(request.origin()) from None
    if materialize_grads:
        results = request.with_zeros(results, request.inputs, count)
    for x, found in zip(request.inputs, results, strict=True):
        if found is not None:
            request.builder.gradients.setdefault(found, x)
            if len(request.outputs) == 1:
                request.builder.targets.setdefault(found, request.outputs[0])
    return request.answer(results, inputs)


@overload
def forward_grad(outputs: Variable, inputs: Variables, grad_inputs: Seeds = None) -> Variable: ...
@overload
def forward_grad(
    outputs: Sequence[Variable], inputs: Variables, grad_inputs: Seeds = None
) -> list[Variable]: ...
@overload
def forward_grad(outputs: Variables, inputs: Variables, grad_inputs: Seeds = None) -> Gradients: ...
@_refuse_functions
@checked_late
def forward_grad(outputs: Variables, inputs: Variables, grad_inputs: Seeds = None) -> Gradients:
    """The directional derivatives of `outputs` along `grad_inputs`, by forward mode.

    One result of the output's type for each output, summed over all inputs; alone for a single
    output, in a list for a sequence; None for an output that depends on no input. `grad_inputs`
    are arrays or variables of the inputs' shapes, cast to their dtypes, ones by default.
    Nothing goes through values with `stop_gradient` set.

    Results are variables of the same program and can be differentiated again. Raises as `grad`
    does, except that an output may be independent of all inputs.
    """
    request = Request.of("forward_grad", outputs, inputs)
    try:
        seeds = request.seeds("grad_inputs", grad_inputs, request.inputs)
        results = _forward(request, seeds)
    except PrimgraphError as error:
        raise error.located(request.origin()) from None
    return request.answer(results, outputs)


@dataclass(frozen=True, slots=True)
class Request:
    """What is differentiated, and by what: values of one builder. Nothing passes `constants`."""

    name: str
    builder: Builder
    outputs: list[Value]
    inputs: list[Value]
    constants: AbstractSet[Value]

    @staticmethod
    def of(
        name: str, outputs: Any, inputs: Any, no_grad_vars: Collection[Variable] | None = None
    ) -> Request:
        """Raises `ArgumentError` for other things than variables, `NotDifferentiable` for
        variables that are not of a float dtype."""
        ends, starts = variables_of(name, "outputs", outputs), variables_of(name, "inputs", inputs)
        constant = [] if no_grad_vars is None else _constants(name, no_grad_vars)
        builder = common_recorder([*ends, *starts, *constant])
        assert isinstance(builder, Builder)
        request = Request(
            name,
            builder,
            [v.value for v in ends],
            [v.value for v in starts],
            builder.stopped.union(v.value for v in constant) if constant else builder.stopped,
        )
        request.require_floats("input", request.inputs)
        request.require_floats("output", request.outputs)
        return request

    def require_floats(self, role: str, values: Sequence[Value]) -> None:
        for value in values:
            if not value.type.is_float:
                raise NotDifferentiable(
                    f"{self.name}: {called(role, value)} is {value.type}, and only floats have "
                    "derivatives",
                    origin=self.origin(),
                )

    def origin(self) -> list[str]:
        """Lines for an error: where the derivative was asked for, and of what."""
        return self.builder.origin(caller(), [*self.outputs, *self.inputs])

    def seeds(
        self, name: str, given: Any, values: Sequence[Value], count: int | None = None
    ) -> list[Value | None]:
        """One seed for each of `values`; None stands for ones."""
        return seeds_for(self.builder, name, given, values, count)

    def with_zeros(
        self, results: Sequence[Value | None], like: Sequence[Value], count: int | None = None
    ) -> list[Value | None]:
        """`results` with zeros of the types of `like` where there is none."""
        lead = () if count is None else (count,)
        with recording(self.builder):
            return [
                filled(0, v.type.with_shape((*lead, *v.shape))) if found is None else found
                for v, found in zip(like, results, strict=True)
            ]

    def answer(
        self, results: Sequence[Value | None], given: Any
    ) -> Variable | list[Variable | None] | None:
        """Handles on the results, in the form in which the variables were given."""
        found = [None if v is None else Variable(self.builder, v) for v in results]
        return found[0] if isinstance(given, Variable) else found


def variables_of(name: str, role: str, given: Any) -> list[Variable]:
    """The variables in `given`, one or a sequence of them; `ArgumentError` for anything else."""
    listed = [given] if isinstance(given, Variable) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(v, Variable) for v in listed):
        raise ArgumentError(
            f"{name} takes a variable or a sequence of variables as {role}, not {given!r:.100}",
            hint=_traced(name.lower()) if _is_numbers(given) else "",
        )
    if not listed:
        raise ArgumentError(f"{name} got no {role}")
    return list(listed)


def _constants(name: str, given: Any) -> list[Variable]:
    """The variables in a collection that may be empty."""
    listed = [given] if isinstance(given, Variable) else given
    if not isinstance(listed, list | tuple | set | frozenset) or not all(
        isinstance(v, Variable) for v in listed
    ):
        raise ArgumentError(f"{name} takes a set of variables as no_grad_vars, not {given!r:.100}")
    return list(listed)


def listed_seeds(name: str, given: Any, count: int) -> list[Any]:
    """`given` as one seed for each of `count` variables; None stands for no seed."""
    if given is None:
        return [None] * count
    seeds = list(given) if isinstance(given, list | tuple) else [given]
    if len(seeds) != count:
        raise ArgumentError(f"{name} has {len(seeds)} entries for {count} variables")
    return seeds


def seeds_for(
    builder: Builder, name: str, given: Any, values: Sequence[Value], count: int | None = None
) -> list[Value | None]:
    """The seeds as values of `builder`, cast to the dtypes of `values`.

    With `count` each has one more leading axis of that extent. Raises `ArgumentError` for a
    wrong number, `ShapeError` for a wrong shape.
    """
    seeds = listed_seeds(name, given, len(values))
    with recording(builder):
        return [_seed(name, s, v, count) for s, v in zip(seeds, values, strict=True)]


def _seed(name: str, seed: Any, value: Value, count: int | None) -> Value | None:
    if seed is None:
        return None
    if not isinstance(seed, Variable):
        # Refuses complex numbers, which a conversion to the output's dtype would cut.
        array_of(seed)
    variable = lift(seed, value.dtype)
    wanted = value.shape if count is None else (count, *value.shape)
    if variable.shape != wanted:
        batched = "" if count is None else f", and the batched seeds need shape {wanted}"
        raise ShapeError(
            f"{name}: a seed of shape {variable.shape} is given for {value.type}{batched}"
        )
    return variable.value


def _require_seeds(request: Request, given: Any) -> None:
    """Refuse an output of other than one element that has no seed."""
    seeds = listed_seeds("grad_outputs", given, len(request.outputs))
    for value, seed in zip(request.outputs, seeds, strict=True):
        if seed is None and value.type.size != 1:
            raise ShapeError(
                f"grad: {called('output', value)} is {value.type}, and only one of one element "
                "needs no seed",
                hint="pass grad_outputs, or leave out strict_scalar",
            )


def _batch_extent(request: Request, given: Any) -> int:
    """The extent of the leading axis of batched seeds."""
    seeds = listed_seeds("grad_outputs", given, len(request.outputs))
    shapes = [s.shape if isinstance(s, Variable) else np.shape(s) for s in seeds if s is not None]
    extents = sorted({shape[0] for shape in shapes if shape})
    if len(extents) != 1 or not all(shapes):
        raise ShapeError(
            f"grad: batched seeds share one leading extent, and {shapes} do not",
            hint="with is_grads_batched, pass at least one seed of shape (N, *output.shape)",
        )
    extent: int = extents[0]
    return extent


def _refuse_unused(request: Request, results: Sequence[Value | None]) -> None:
    for value, found in zip(request.inputs, results, strict=True):
        if found is None:
            raise NotDifferentiable(
                f"grad: {called('input', value)}, {value.type}, is used by no output",
                origin=request.builder.origin(caller(), [value]),
                hint="pg.explain(y, x) tells why; pass allow_unused=True for None, or "
                "materialize_grads=True for zeros",
            )


@uncollected
def _reverse(
    request: Request, seeds: Sequence[Value | None], count: int | None, *, lenient: bool
) -> list[Value | None]:
    """One cotangent for each input of `request`, from those of its outputs."""
    path = Path.between(request.builder, request.inputs, request.outputs, request.constants)
    if not lenient:
        _refuse_independent(request, path)
    if not path.wrt:
        return [None] * len(request.inputs)
    if len(path.moved) == 1 and is_diagonal(path.graph, path.moved):
        if len(seeds) == 1:
            found = _record(request, path, seeds, count, forward=True)
            return [found[0] if v is path.wrt[0] else None for v in request.inputs]
        if count is None:
            slope = _by_diagonal(request, path, seeds)
            return [slope if v is path.wrt[0] else None for v in request.inputs]
    found = _record(request, path, seeds, count)
    result = dict(zip(path.wrt, found, strict=True))
    return [result.get(v) for v in request.inputs]


def _refuse_independent(request: Request, path: Path) -> None:
    """Refuse outputs of which none depends on an input, unless because of its own flag."""
    reached = path.reached
    if not request.constants.isdisjoint(request.inputs):
        reached = reached_by(request.builder, request.inputs, request.outputs, request.constants)
    if any(reached):
        return
    value, *others = request.outputs
    among = f", and none of {len(others)} others does" if others else ""
    raise NotDifferentiable(
        f"{called('output', value)}, {value.type}, does not depend on the inputs{among}",
        hint="pg.explain(y, x) tells why; ask for zeros with materialize_grads",
    )


def _by_diagonal(request: Request, path: Path, seeds: Sequence[Value | None]) -> Value:
    """The gradient where the Jacobian is diagonal: one forward pass, whatever the outputs."""
    slopes = _record(request, path, [None], None, forward=True)
    with recording(request.builder):
        parts = [d if s is None else mul(s, d) for s, d in zip(seeds, slopes, strict=True)]
        return reduce(add, parts)


@uncollected
def _forward(request: Request, seeds: Sequence[Value | None]) -> list[Value | None]:
    """One tangent for each output of `request`, from those of its inputs."""
    path = Path.between(request.builder, request.inputs, request.outputs, request.constants)
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
    found = _record(request, path, [total[v] for v in path.wrt], None, forward=True)
    return [v if r else None for v, r in zip(found, path.reached, strict=True)]


def _record(
    request: Request,
    path: Path,
    seeds: Sequence[Value | None],
    count: int | None,
    *,
    forward: bool = False,
) -> list[Value]:
    """Record the derivative along `path` on `seeds`; with `count` on that many at once."""
    derivative = path.jvp() if forward else path.vjp()
    given = [*path.free, *seeds]
    places = range(len(path.free), len(given))
    return record(request.builder, path, derivative, given, count=count, batched=places)
