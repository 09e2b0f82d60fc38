"""Derivatives of functions of pytrees, as functions of the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, final, overload

from numpy.typing import NDArray

from primgraph import tree
from primgraph.api.arguments import SelectedArguments, positions_of
from primgraph.api.transformed import (
    A,
    Array,
    Aux,
    B,
    C,
    First,
    H,
    Out,
    P,
    R,
    S,
    Second,
    Three,
    Transformed,
    Two,
    describe_function,
)
from primgraph.api.world import is_array
from primgraph.derivatives.request import require_direction
from primgraph.errors import ArgumentError, NotDifferentiable, NotScalarError
from primgraph.ir.frontend.result_names import generated_name
from primgraph.ir.frontend.signature import check_arguments, checked_late
from primgraph.ir.types import TensorType
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import type_of


@final
class Derivative(Transformed[P, R]):
    """Derivative of `function` by some of its arguments, as a function of all of them."""

    def __init__(
        self,
        name: str,
        kind: str,
        function: Callable[..., Any],
        argnums: int | Sequence[int],
        has_aux: bool,
        holomorphic: bool = False,
    ) -> None:
        super().__init__(name, function)
        self.kind = kind
        self.argnums = argnums
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        self._places = positions_of(name, argnums)

    @property
    def generated_name(self) -> str:
        return generated_name(self.function) if self._is_inner else super().generated_name

    @property
    def description(self) -> str:
        return describe_function(self.function) if self._is_inner else super().description

    @property
    def _is_inner(self) -> bool:
        """Whether this is the gradient in a Hessian, which has the name of the Hessian."""
        return (self.name, self.kind) == ("hessian", "gradient")

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.name, self.kind, self.function, self.argnums, self.has_aux, self.holomorphic
        return Derivative, given

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        chosen = SelectedArguments.from_call(self.name, self.function, args, kwargs, self._places)
        found: R = chosen.world.convert_results(_KINDS[self.kind](_Evaluated(self, chosen)))
        return found


@final
class _Evaluated:
    """Function called for its derivative, with its results."""

    def __init__(self, derivative: Derivative[..., Any], chosen: SelectedArguments) -> None:
        self._derivative = derivative
        self._chosen = chosen
        self._outputs = Outputs(chosen.name)
        self._applied = chosen.world.apply(chosen.name, self._call_function, chosen.leaves)

    def _call_function(self, leaves: Sequence[Any]) -> list[Any]:
        result, aux = self._chosen.call(leaves), None
        if self._derivative.has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise ArgumentError(
                    f"{self._chosen.name}: with has_aux the function returns a value and what else "
                    f"there is, and it returned {result!r:.80}"
                )
            result, aux = result
        if self._derivative.kind in _OF_ONE:
            require_one(self._chosen.name, result)
        opened = self._outputs.flatten_result(result, aux)
        self._require_direction(opened[: self._outputs.count])
        return opened

    def _require_direction(self, results: Sequence[Any]) -> None:
        """Raise for complex results, unless the function is declared holomorphic."""
        asked = self._derivative
        inputs, outputs = (list(map(_type_of, v)) for v in (self._chosen.leaves, results))
        of_one = asked.kind in _OF_ONE
        require_direction(asked.name, inputs, outputs, asked.holomorphic, of_one=of_one)

    def value(self) -> Any:
        """Return the result of the function: a pair with `has_aux`."""
        value, aux = self._outputs.unflatten_results(self._applied.results)
        return (value, aux) if self._derivative.has_aux else value

    def with_aux(self, found: Any) -> Any:
        """Return a derivative, together with the auxiliary result if there is one."""
        if not self._derivative.has_aux:
            return found
        return found, self._outputs.unflatten_results(self._applied.results)[1]

    def gradient(self) -> Any:
        """Return the gradient by the selected arguments, in their containers."""
        return self._group_by_argument(self._applied.vjp(1, [None]))

    def matrix(self, mode: str | None) -> Any:
        """Return the Jacobian: the containers of the outputs, with those of the arguments as
        leaves."""
        self._outputs.require_floats()
        rows = self._applied.matrix(self._outputs.count, mode)
        return tree.unflatten(
            self._outputs.structure, [self._group_by_argument(row) for row in rows]
        )

    def _group_by_argument(self, leaves: Sequence[Any]) -> Any:
        """Return leaves in the containers of each selected argument; in a tuple for several
        `argnums`."""
        found = self._chosen.unflatten_leaves(leaves)
        return tuple(found) if isinstance(self._derivative.argnums, list | tuple) else found[0]


_KINDS: dict[str, Callable[[_Evaluated], Any]] = {
    "gradient": lambda e: e.with_aux(e.gradient()),
    "value and gradient": lambda e: (e.value(), e.gradient()),
    "jacobian": lambda e: e.with_aux(e.matrix(None)),
    "forward": lambda e: e.with_aux(e.matrix("forward")),
    "reverse": lambda e: e.with_aux(e.matrix("reverse")),
}
# Derivatives of functions of one element.
_OF_ONE = ("gradient", "value and gradient")


@final
class Outputs:
    """Arrays in the result of a function, and the containers around them.

    Those that are differentiated come first, then those in `aux`; other objects in `aux` are kept
    as they are.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[Any] = []
        self.structure = self._aux_structure = tree.LEAF
        self._aux: list[Any] = []
        self.count = 0

    @property
    def paths(self) -> list[str]:
        """Return the names of the differentiated arrays for messages."""
        return tree.paths_of(self.structure, "result")

    def flatten_result(self, value: Any, aux: Any) -> list[Any]:
        """Flatten the result to a list of all arrays."""
        self._found, self.structure = tree.flatten(value)
        for leaf, path in zip(self._found, self.paths, strict=True):
            if not is_array(leaf):
                raise ArgumentError(
                    f"{self._name}: the function returned {type(leaf).__name__} {leaf!r:.60} as "
                    f"{path}, not an array",
                    hint="with has_aux=True what stands second may be anything",
                )
        if not self._found:
            raise ArgumentError(f"{self._name}: the function returned {value!r:.80}, not an array")
        self._aux, self._aux_structure = tree.flatten(aux)
        self.count = len(self._found)
        return [*self._found, *(leaf for leaf in self._aux if isinstance(leaf, Handle))]

    def unflatten_results(self, results: Sequence[Handle]) -> tuple[Any, Any]:
        """Unflatten `results` into the containers of the result."""
        value = tree.unflatten(self.structure, results[: self.count])
        others = iter(results[self.count :])
        aux = [next(others) if isinstance(leaf, Handle) else leaf for leaf in self._aux]
        return value, tree.unflatten(self._aux_structure, aux)

    def require_floats(self) -> None:
        """Raise `NotDifferentiable` unless all arrays are floats."""
        for leaf, path in zip(self._found, self.paths, strict=True):
            if isinstance(leaf, Handle) and not leaf.type.is_inexact:
                raise NotDifferentiable(
                    f"{self._name}: {path} is {leaf.type}, and only floats have derivatives"
                )


def _type_of(array: Any) -> TensorType:
    return array.type if isinstance(array, Handle) else type_of(array)


def require_one(name: str, result: Any) -> None:
    """Raise `NotScalarError` unless a function returned one float element."""
    if not is_array(result):
        hint = ""
        if isinstance(result, tuple) and len(result) == 2:
            hint = "with has_aux=True, the second of two is not differentiated"
        raise NotScalarError(
            f"{name} needs a function of one element, and it returned {result!r:.80}", hint=hint
        )
    if not isinstance(result, Handle):
        return
    if not result.type.is_inexact:
        raise NotDifferentiable(
            f"{name}: the function returned {result.type}, and only floats have derivatives"
        )
    if result.size != 1:
        raise NotScalarError(
            f"{name} needs a function of one element, not {result.type}",
            hint="sum it, or ask for all derivatives with pg.jacrev or pg.jacfwd",
        )


@checked_late
def gradient_of(
    outputs: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[..., Any]:
    """Return the gradient function of the function `outputs`; see `pg.grad`."""
    return Derivative("grad", "gradient", outputs, argnums, has_aux, holomorphic)


# The name in messages.
gradient_of.__wrapped__.__qualname__ = "grad"  # type: ignore[attr-defined]


@overload
def value_and_grad(
    function: Callable[Concatenate[A, P], R],
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(
    function: Callable[Concatenate[A, P], tuple[Out, Aux]],
    argnums: First = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, P], tuple[tuple[Out, Aux], A]]: ...
@overload
def value_and_grad(
    function: Callable[Concatenate[A, B, P], R],
    argnums: Second,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, B, P], tuple[R, B]]: ...
@overload
def value_and_grad(
    function: Callable[Concatenate[A, B, P], R],
    argnums: Two,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, B, P], tuple[R, tuple[A, B]]]: ...
@overload
def value_and_grad(
    function: Callable[Concatenate[A, B, C, P], R],
    argnums: Three,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, B, C, P], tuple[R, tuple[A, B, C]]]: ...
@overload
def value_and_grad(
    function: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...
@check_arguments
def value_and_grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[..., Any]:
    """Return a function that computes the value of `function` and its gradient together.

    With `has_aux` the value is `(value, aux)`. Other rules are those of `pg.grad`.

    >>> pg.value_and_grad(lambda x: pg.sum(x**2))(np.array([1.0, 2.0]))
    (array(5.), array([2., 4.]))
    """
    return Derivative(
        "value_and_grad", "value and gradient", function, argnums, has_aux, holomorphic
    )


@overload
def jacfwd(
    function: Callable[Concatenate[NDArray[S], P], Array],
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[NDArray[S], P], NDArray[S]]: ...
@overload
def jacfwd(
    function: Callable[Concatenate[H, P], H],
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[H, P], H]: ...
@overload
def jacfwd(
    function: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...
@check_arguments
def jacfwd(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[..., Any]:
    """Return a function that computes the Jacobian of `function` by forward mode.

    For an array result and an array argument, the Jacobian has the axes of the result, then those
    of the argument. For containers, it has the containers of the result, with those of the argument
    at each place. One vectorized pass has a direction for each element of the arguments: less work
    than `jacrev` if these are fewer than the elements of the result.

    `argnums`, `has_aux` and `holomorphic` are as in `pg.grad`. Without `holomorphic`, `jacfwd`
    takes derivatives of complex results by real arguments, and `jacrev` those of real results by
    complex arguments.

    >>> pg.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return Derivative("jacfwd", "forward", function, argnums, has_aux, holomorphic)


@overload
def jacrev(
    function: Callable[Concatenate[NDArray[S], P], Array],
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[NDArray[S], P], NDArray[S]]: ...
@overload
def jacrev(
    function: Callable[Concatenate[H, P], H],
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[H, P], H]: ...
@overload
def jacrev(
    function: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...
@check_arguments
def jacrev(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[..., Any]:
    """Return a function that computes the Jacobian of `function` by reverse mode.

    Like `jacfwd`, with one direction for each element of the result.

    >>> pg.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return Derivative("jacrev", "reverse", function, argnums, has_aux, holomorphic)


def jacobian_of(
    function: Callable[..., Any],
    mode: str | None = None,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[..., Any]:
    """Like `jacfwd` or `jacrev`, whichever needs fewer directions; see `pg.jacobian`."""
    return Derivative("jacobian", mode or "jacobian", function, argnums, has_aux, holomorphic)


def hessian_of(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[..., Any]:
    """Return the Hessian function of `function`; see `pg.hessian`.

    It uses forward over reverse mode.
    """
    gradient: Derivative[..., Any] = Derivative(
        "hessian", "gradient", function, argnums, has_aux, holomorphic
    )
    return Derivative("hessian", "forward", gradient, argnums, has_aux, holomorphic)
