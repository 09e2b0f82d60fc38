"""Validated arguments of a derivative: outputs, inputs, constants and seeds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, final

import numpy as np

from primgraph.base.locks import cached_property
from primgraph.base.records import dataclass
from primgraph.base.user_lines import caller
from primgraph.derivatives.subgraph import Path, reached_by
from primgraph.derivatives.traced_call import Call
from primgraph.errors import (
    ArgumentError,
    BuildError,
    NotDifferentiable,
    NotScalarError,
    PrimgraphError,
    ShapeError,
)
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.primitive import recording
from primgraph.ir.types import TensorType
from primgraph.operators.call import common_program, common_recorder
from primgraph.operators.handle import ArrayLike, Handle
from primgraph.operators.promotion import array_of, lift
from primgraph.operators.variable import Variable, handle_of, handles
from primgraph.primitives.constants import filled_constant

Seeds = ArrayLike | Sequence[ArrayLike | None] | None
Variables = Variable | Sequence[Variable]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Request:
    """Outputs and inputs of a derivative, values of one builder. No gradient passes `constants`.

    With `apart`, no gradient passes one input on the way to another either. The outputs may be
    those of the `call` of a function, whose arguments are distinct.
    """

    name: str
    builder: Builder
    outputs: list[Value]
    inputs: list[Value]
    constants: AbstractSet[Value]
    apart: bool = False
    call: Call | None = None

    @staticmethod
    def from_variables(
        name: str, outputs: Any, inputs: Any, no_grad_vars: Collection[Variable] | None = None
    ) -> Request:
        """Return the request. Raises `ArgumentError` for objects other than variables,
        `NotDifferentiable` for variables that are neither floats nor complex."""
        ends, starts = variables_of(name, "outputs", outputs), variables_of(name, "inputs", inputs)
        constant = [] if no_grad_vars is None else _constants(name, no_grad_vars)
        if len({id(v.recorder) for v in (*ends, *starts, *constant)}) > 1:
            ends, starts, constant = _in_one_body(name, ends, starts, constant)
        builder = common_recorder([*ends, *starts, *constant])
        assert isinstance(builder, Builder)
        cut = builder.stopped.union(v.value for v in constant) if constant else builder.stopped
        values = [v.value for v in ends], [v.value for v in starts]
        request = Request(name, builder, *values, cut)
        request.require_floats()
        return request

    @staticmethod
    def from_call(name: str, function: Any, inputs: Sequence[Variable]) -> Request:
        """Call `function` once; see `Call.trace_function`."""
        call = Call.trace_function(name, function, inputs)
        return Request(name, call.builder, call.outputs, call.inputs, call.constants, call=call)

    def first(self, count: int) -> Request:
        """Return the request for the first outputs only."""
        return self.select_outputs(slice(count)) if count < len(self.outputs) else self

    def select_outputs(self, which: slice) -> Request:
        """Return the request for some outputs only."""
        call = self.call and replace(self.call, results=self.call.results[which])
        return replace(self, outputs=self.outputs[which], call=call)

    @property
    def sources(self) -> list[Value]:
        """The inputs as they occur on the path to the outputs."""
        return self.inputs if self.call is None else self.call.arguments

    @cached_property
    def path(self) -> Path:
        """Path between inputs and outputs."""
        if self.call is not None:
            return self.call.path()
        ends = self.inputs, self.outputs, self.constants
        return Path.from_builder(self.builder, *ends, apart=self.apart)

    def origin(self) -> list[str]:
        """Return the lines for an error: the user's line, and the lines that computed the
        variables."""
        ends = self.outputs if self.call is None else ()
        return self.builder.origin(caller(), [*ends, *self.inputs])

    def require_floats(self) -> None:
        """Raise `NotDifferentiable` unless all inputs and outputs are floats or complex."""
        for role, values in (("input", self.inputs), ("output", self.outputs)):
            for value in values:
                if not value.type.is_inexact:
                    raise NotDifferentiable(
                        f"{self.name}: {value_name(role, value)} is {value.type}, and only "
                        "floats have "
                        "derivatives",
                        origin=self.origin(),
                    )

    def seeds(
        self, name: str, given: Any, values: Sequence[Value], count: int | None = None
    ) -> list[Value | None]:
        """Return one seed for each of `values`; None stands for ones."""
        return seeds_for(self.builder, name, given, values, count)

    def require_direction(self, given: Any, holomorphic: bool) -> None:
        """Raise for a complex output without a seed, unless `holomorphic`; see the function."""
        seeds = _list_seeds("grad_outputs", given, len(self.outputs))
        unseeded = [v.type for v, s in zip(self.outputs, seeds, strict=True) if s is None]
        outputs = [v.type for v in self.outputs] if holomorphic else unseeded
        inputs = [v.type for v in self.inputs]
        require_direction(self.name, inputs, outputs, holomorphic, of_one=True)

    def require_seeds(self, given: Any) -> None:
        """Raise for an output without a seed that has not exactly one element."""
        seeds = _list_seeds("grad_outputs", given, len(self.outputs))
        for value, seed in zip(self.outputs, seeds, strict=True):
            if seed is None and value.type.size != 1:
                raise ShapeError(
                    f"{self.name}: {value_name('output', value)} is {value.type}, and only one of "
                    "one element needs no seed",
                    hint="pass grad_outputs, or leave out strict_scalar",
                )

    def batch_extent(self, given: Any) -> int:
        """Return the size of the leading axis of batched seeds."""
        seeds = _list_seeds("grad_outputs", given, len(self.outputs))
        present = [s for s in seeds if s is not None]
        shapes = [s.shape if isinstance(s, Variable) else np.shape(s) for s in present]
        extents = sorted({shape[0] for shape in shapes if shape})
        if len(extents) != 1 or not all(shapes):
            raise ShapeError(
                f"{self.name}: batched seeds share one leading extent, and {shapes} do not",
                hint="with is_grads_batched, pass at least one seed of shape (N, *output.shape)",
            )
        extent: int = extents[0]
        return extent

    def refuse_unused(self, results: Sequence[Value | None]) -> None:
        """Raise for an input without a result."""
        for value, found in zip(self.inputs, results, strict=True):
            if found is None:
                raise NotDifferentiable(
                    f"{self.name}: {value_name('input', value)}, {value.type}, is used by no "
                    "output",
                    origin=self.builder.origin(caller(), [value]),
                    hint="pg.explain(y, x) tells why; pass allow_unused=True for None, or "
                    "materialize_grads=True for zeros",
                )

    def with_zeros(
        self, results: Sequence[Value | None], like: Sequence[Value], count: int | None = None
    ) -> list[Value | None]:
        """Replace missing `results` by zeros of the types of `like`."""
        lead = () if count is None else (count,)
        with recording(self.builder):
            return [
                filled_constant(0, v.type.with_shape((*lead, *v.shape))) if found is None else found
                for v, found in zip(like, results, strict=True)
            ]

    def note_gradients(self, results: Sequence[Value | None]) -> None:
        """Note in the builder which results are gradients, by which inputs, of a single output."""
        for x, found in zip(self.inputs, results, strict=True):
            if found is not None:
                self.builder.gradients.setdefault(found, x)
                if len(self.outputs) == 1:
                    self.builder.targets.setdefault(found, self.outputs[0])

    @property
    def value(self) -> Variable | list[Variable]:
        """Results of the call: alone if the function returned one variable, else in a list."""
        found = [handle_of(self.builder, v) for v in self.outputs]
        return found[0] if self.call is not None and self.call.single else found

    def answer(
        self, results: Sequence[Value | None], given: Any
    ) -> Variable | list[Variable | None] | None:
        """Return handles of the results: alone for a single variable, else in a list."""
        found = [None if v is None else handle_of(self.builder, v) for v in results]
        return found[0] if isinstance(given, Variable) else found


# Variables and arrays of the user.


def variables_of(name: str, role: str, given: Any) -> list[Variable]:
    """Return the variables in `given`, one or a sequence; raises `ArgumentError` for anything
    else."""
    listed = [given] if isinstance(given, Variable) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(v, Variable) for v in listed):
        raise ArgumentError(
            f"{name} takes a variable or a sequence of variables as {role}, not "
            f"{' '.join(repr(given).split()):.100}",
            hint=_hint_for(name, given),
        )
    if not listed:
        raise ArgumentError(f"{name} got no {role}")
    return list(listed)


def _hint_for(name: str, given: Any) -> str:
    short = name.lower()
    if _is_numbers(given):
        return f"write pg.{short}(f)(x) for a function f of arrays; {_how_to_trace(short)}"
    if given is None or callable(given):
        return f"write pg.{short}(y, x) for variables, pg.{short}(f)(x) for a function f"
    return f"write pg.{short}(y, x) with variables y and x" if isinstance(given, str) else ""


def variable_of(name: str, role: str, given: Any) -> Variable:
    """Return `given` if it is one variable; raises `ArgumentError` for anything else."""
    if isinstance(given, Variable):
        return given
    hint = ""
    if isinstance(given, list | tuple):
        hint = f"call it for each of them: pg.{name}(y, x)"
    elif callable(given) or _is_numbers(given):
        hint = _how_to_trace(name)
    raise ArgumentError(f"{name} takes one variable as {role}, not {given!r:.100}", hint=hint)


def _in_one_body(
    name: str, ends: list[Variable], starts: list[Variable], constant: list[Variable]
) -> tuple[list[Variable], list[Variable], list[Variable]]:
    """Return all these variables as variables of the body that is being built.

    Raises `BuildError` if an output depends on an outer input through another outer value, which
    the body captures as it is.
    """
    builder, found = common_program([*ends, *starts, *constant])
    assert isinstance(builder, Builder)
    first, last = len(ends), len(ends) + len(starts)
    outputs = [v.value for v in found[:first]]
    for given in starts:
        if given.recorder is not builder and _reaches_around(builder, outputs, given.value):
            raise BuildError(
                f"{name}: outputs depend on {value_name('input', given.value)} {given.type} "
                "through "
                "what was computed from it outside the body",
                origin=builder.origin(caller(), outputs),
                hint="compute that in the body as well, or differentiate a function: pg.grad(f)(x)",
            )
    return found[:first], found[first:last], found[last:]


def _reaches_around(body: Builder, outputs: Sequence[Value], x: Value) -> bool:
    """Return whether `outputs` of a body depend on the outer value `x` other than directly."""
    builder, ends = body, list(outputs)
    while x not in builder:
        used = {v for eqn in builder.slice(ends) for v in eqn.inputs}.union(ends)
        outer = builder.outer
        assert outer is not None
        direct = x if builder is body else None
        ends = [outer.own(v) for v, w in builder.captured.items() if w in used and v is not direct]
        builder = outer
    return bool(ends) and any(reached_by(builder, [x], ends, builder.stopped))


def _constants(name: str, given: Any) -> list[Variable]:
    """Return the variables in a collection that may be empty."""
    listed = [given] if isinstance(given, Variable) else given
    if not isinstance(listed, list | tuple | set | frozenset) or not all(
        isinstance(v, Variable) for v in listed
    ):
        raise ArgumentError(f"{name} takes a set of variables as no_grad_vars, not {given!r:.100}")
    return list(listed)


def seeds_for(
    builder: Builder, name: str, given: Any, values: Sequence[Value], count: int | None = None
) -> list[Value | None]:
    """Return the seeds as values of `builder`, cast to the dtypes of `values`.

    With `count`, each has a leading axis of that size. Raises `ArgumentError` for a wrong number,
    `ShapeError` for a wrong shape.
    """
    seeds = _list_seeds(name, given, len(values))
    with recording(builder):
        found = [_seed(name, s, v, count) for s, v in zip(seeds, values, strict=True)]
    # In the body of a loop or branch, seeds may be values of the enclosing program.
    return [None if v is None else builder.own(v) for v in found]


def _list_seeds(name: str, given: Any, count: int) -> list[Any]:
    """Return one seed for each of `count` variables; None stands for no seed."""
    if given is None:
        return [None] * count
    seeds = list(given) if isinstance(given, list | tuple) else [given]
    if len(seeds) != count:
        raise ArgumentError(f"{name} has {len(seeds)} entries for {count} variables")
    return seeds


def _seed(name: str, seed: Any, value: Value, count: int | None) -> Value | None:
    if seed is None:
        return None
    if not isinstance(seed, Variable):
        # Raise for objects that are not arrays before the conversion to the output's dtype.
        array_of(seed)
    variable = lift(seed, value.dtype)
    wanted = value.shape if count is None else (count, *value.shape)
    if variable.shape != wanted:
        batched = "" if count is None else f", and the batched seeds need shape {wanted}"
        raise ShapeError(
            f"{name}: the seed has shape {variable.shape}, but the variable is "
            f"{value.type}{batched}",
            hint="a seed has the shape of its variable, and weights its elements",
        )
    return variable.value


# Errors and their messages.


def require_direction(
    name: str,
    inputs: Sequence[TensorType],
    outputs: Sequence[TensorType],
    holomorphic: bool,
    *,
    of_one: bool = False,
) -> None:
    """Raise for a derivative that is not a number: of a complex output without a direction.

    A gradient (`of_one`) exists only for real outputs, by complex and by real inputs. A derivative
    matrix of complex outputs by real inputs is complex. With `holomorphic`, all must be complex.
    Raises `NotDifferentiable`.
    """
    roles = [("output", t) for t in outputs] + [("input", t) for t in inputs]
    if holomorphic:
        for role, type in roles:
            if not type.is_complex:
                raise NotDifferentiable(
                    f"{name}: with holomorphic=True all is complex, and an {role} is {type}",
                    hint="leave out holomorphic=True",
                )
        return
    made = next((t for t in outputs if t.is_complex), None)
    along = next((t for t in inputs if of_one or t.is_complex), None)
    if made is None or along is None:
        return
    depends = ": it depends on the direction" if along.is_complex else ""
    raise NotDifferentiable(
        f"{name}: an output is {made}, whose derivative by {along} is no single number{depends}",
        hint="holomorphic=True says that it does not depend on it; else differentiate pg.real(y) "
        "and pg.imag(y), or give the cotangent: pg.vjp, or grad_outputs",
    )


# Operators with an option `is_batched`.
_BATCHED = ("Hessian", "biharmonic", "hessian_diagonal", "laplacian")


def require_scalar(name: str, value: Handle, rank: int) -> None:
    """Raise `NotScalarError` unless there is one element, or one per sample if `rank` is 1."""
    lead = value.shape[:rank]
    sizes = value.type.with_shape(value.shape[rank:]).size
    if len(lead) != rank or sizes != 1:
        wanted = "shape (B,) or (B, 1)" if rank else "one element"
        batched = ", or use is_batched=True for one of independent samples"
        raise NotScalarError(
            f"{name} needs a function of {wanted}, not {value.type}",
            hint="" if rank else f"sum it{batched if name in _BATCHED else ''}",
        )


def value_name(role: str, value: Value) -> str:
    """Return the name of a value for an error message."""
    return f"{role} {value.hint!r}" if value.hint else f"an {role}"


@final
class located:
    """Context manager that adds the lines of `origin`, computed on demand, to errors."""

    def __init__(self, origin: Callable[[], list[str]]) -> None:
        self.origin = origin

    def __enter__(self) -> None:
        """Do nothing on entry."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, PrimgraphError):
            error.located(self.origin())


def origin_of(given: Any = ()) -> list[str]:
    """Return the lines for an error: the user's line, and the lines that computed the variables."""
    found = [v for v in handles((given,)) if isinstance(v.recorder, Builder)]
    builder = found[0].recorder if found else Builder()
    assert isinstance(builder, Builder)
    return builder.origin(caller(), [v.value for v in found])


def refuse_functions(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to raise `ArgumentError`, with a hint on tracing, for functions as
    outputs."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        outputs = args[0] if args else kwargs.get("outputs")
        if callable(outputs):
            raise ArgumentError(
                f"{function.__name__} takes variables, not the function {outputs!r:.60}",
                hint=_how_to_trace(function.__name__),
            )
        return function(*args, **kwargs)

    return call


def _is_numbers(given: Any) -> bool:
    """Return whether `given` is an array or a number, or a list that starts with one."""
    first = given[0] if isinstance(given, list | tuple) and given else given
    return isinstance(first, np.ndarray | np.generic | int | float | complex)


def _how_to_trace(name: str) -> str:
    """Return the hint how to compute the derivative of a function from arrays."""
    of_functions = {"hessian": "", "jvp": "", "vjp": "", "hvp": ", v", "vhp": ", v"}
    taken = f"f, x{of_functions[name]}" if name in of_functions else "f(x), x"
    return (
        "variables are inputs of a program or of a traced function: write "
        f"pg.compile(pg.trace(lambda x: pg.{name}({taken}), x0))(x0)"
    )
