"""Registry of rules: a function for each primitive of JAX, called with the operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol, TypeAlias, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.errors import UnsupportedError
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive, active_recorder
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.operators.promotion import wrap
from primgraph.operators.variable import Variable
from primgraph.primitives import shapes
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import cast

Results: TypeAlias = "Variable | Sequence[Variable]"
Rule: TypeAlias = "Callable[..., Results]"

# The rules by the names of JAX's primitives.
RULES: dict[str, Rule] = {}
TAKES_KEYS: set[str] = set()


class Evaluator(Protocol):
    """Object that records jaxprs, as rules of control flow need it; see `Evaluation`."""

    solvers: dict[Any, Any]

    def evaluate(
        self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Variable]
    ) -> list[Variable]: ...

    def active(self, key: Any) -> Any: ...

    def entered(self, key: Any, custom: Any, deepest: int) -> AbstractContextManager[None]: ...

    def cotangents(
        self,
        backward: Any,
        residuals: Sequence[Variable],
        cts: Sequence[Variable | None],
        results: Sequence[Any],
        arguments: Sequence[Any],
    ) -> list[Variable | None]: ...

    def run(self, jaxpr: Any, operands: Sequence[Variable]) -> list[Variable]:
        """Record a closed jaxpr on operands."""

    def run_elements(
        self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Variable]
    ) -> list[Variable]:
        """Record a jaxpr of scalars for all elements of arrays of one shape."""

    def expand(self, function: Callable[..., Any], *operands: Variable) -> list[Variable]:
        """Record a function of JAX on arrays."""


@final
@dataclass(frozen=True, slots=True)
class Site:
    """Equation of a jaxpr, as its rule sees it: parameters, and types of operands and results.

    Sizes in parameters are those of this package: integers or symbolic sizes.
    """

    primitive: Any
    params: Mapping[str, Any]
    # Abstract values of JAX, with types of keys of random numbers.
    operands: Sequence[Any]
    types: tuple[TensorType, ...]
    evaluator: Evaluator

    def __getitem__(self, name: str) -> Any:
        return self.params[name]

    @property
    def name(self) -> str:
        """Name of JAX's primitive."""
        return str(self.primitive.name)

    def refuse(self, what: str) -> NoReturn:
        """Raise `UnsupportedError` for parameters without a meaning here."""
        raise UnsupportedError(f"from_jax: {self.name} with {what} is not supported")

    @property
    def type(self) -> TensorType:
        """Type of the only result."""
        return self.types[0]

    @property
    def dtype(self) -> DType:
        return self.types[0].dtype

    @property
    def shape(self) -> Shape:
        return self.types[0].shape


def rule(*names: str, keys: bool = False, broadcasts: bool = False) -> Callable[[Rule], Rule]:
    """Return a decorator that registers a function as the rule of JAX's primitives `names`.

    A rule with `keys` takes keys of random numbers: arrays of unsigned integers with more axes. The
    operands of one that `broadcasts` are first repeated to the shape of the result.
    """

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES, f"{name} has a rule already"
            RULES[name] = _broadcasting(function) if broadcasts else function
            if keys:
                TAKES_KEYS.add(name)
        return function

    return register


def register_plain(table: Mapping[str, Primitive[Value]]) -> None:
    """Register primitives that take the operands and no parameters."""
    for name, op in table.items():
        rule(name, broadcasts=True)(_plain(op))


def _broadcasting(function: Rule) -> Rule:
    def apply(at: Site, *operands: Variable) -> Results:
        return function(at, *[fit(x, at.shape) for x in operands])

    return apply


def _plain(op: Primitive[Value]) -> Rule:
    def apply(at: Site, *operands: Variable) -> Variable:
        return emit(op, *operands)

    return apply


# Small parts of rules.


def index_of_platform(platforms: Sequence[Sequence[str] | None]) -> int:
    """Return the number of the branch for CPUs."""
    return next((i for i, names in enumerate(platforms) if names is None or "cpu" in names), 0)


def emit(op: Primitive[Value], *operands: Variable, **params: Any) -> Variable:
    """Apply a primitive with one result in the active program, which may be a body."""
    return emit_all(op, *operands, **params)[0]


def emit_all(op: Primitive[Any], *operands: Variable, **params: Any) -> tuple[Variable, ...]:
    """Apply a primitive in the active program."""
    recorder = active_recorder()
    results = recorder.emit(op, [v.value for v in operands], params)
    return tuple([Variable(recorder, v) for v in results])


def constant(value: Any, dtype: Any, shape: Shape = ()) -> Variable:
    """Return an array of one number."""
    return wrap(filled_constant(value, TensorType(shape, np.dtype(dtype))))


def full_like(x: Variable, value: Any) -> Variable:
    """Return an array of one number, of the type of `x`."""
    return wrap(filled_constant(value, x.type))


def convert(x: Variable, dtype: DType) -> Variable:
    """Return `x` in another dtype."""
    return x if x.dtype == dtype else emit(cast, x, dtype=dtype)


def reshape(x: Variable, shape: Iterable[int]) -> Variable:
    wanted = tuple(shape)
    return x if x.shape == wanted else emit(shapes.reshape, x, shape=wanted)


def permute(x: Variable, axes: Iterable[int]) -> Variable:
    order = tuple(axes)
    return x if order == tuple(range(len(order))) else emit(shapes.permute, x, axes=order)


def spread(x: Variable, shape: Iterable[int], axes: Sequence[int]) -> Variable:
    """Return `x` with its axes at `axes`, in ascending order, of an array of this shape.

    Axes of size one are repeated.
    """
    wanted = tuple(shape)
    kept = [a for i, a in enumerate(axes) if x.shape[i] == wanted[a]]
    core = reshape(x, [wanted[a] for a in kept])
    new = tuple([a for a in range(len(wanted)) if a not in kept])
    return emit(shapes.broadcast, core, shape=wanted, new_axes=new) if new else core


def fit(x: Variable, shape: Shape) -> Variable:
    """Return `x` repeated to `shape`, along axes of size one and more axes in front."""
    more = len(shape) - x.ndim
    return x if x.shape == shape else spread(x, shape, range(more, len(shape)))


def sliced(x: Variable, axis: int, start: int, size: int, step: int = 1) -> Variable:
    """Return `size` elements of an axis from `start` on."""
    starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return emit(shapes.slice_, x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


def concatenated(parts: Sequence[Variable], axis: int) -> Variable:
    return parts[0] if len(parts) == 1 else emit(shapes.concat, *parts, axis=axis)


def stacked(parts: Sequence[Variable], axis: int) -> Variable:
    rows = [reshape(x, (*x.shape[:axis], 1, *x.shape[axis:])) for x in parts]
    return concatenated(rows, axis)


__all__ = [
    "RULES", "TAKES_KEYS", "Evaluator", "Results", "Rule", "Site", "concatenated", "constant",
    "convert", "emit", "emit_all", "fit", "full_like", "index_of_platform", "permute",
    "register_plain", "reshape", "rule", "sliced", "spread", "stacked",
]  # fmt: skip
