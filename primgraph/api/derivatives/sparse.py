"""Sparse Jacobians and Hessians of variables and of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

from primgraph import tree
from primgraph.api.arguments import call_differentiated, positions_of
from primgraph.api.jit import Jit
from primgraph.api.transformed import Transformed
from primgraph.api.world import InProgram, world_of
from primgraph.derivatives.matrices.sparse import hessian_plan, jacobian_plan, matrix_of
from primgraph.derivatives.request import located, origin_of
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import checked_late
from primgraph.operators.handle import Handle


@checked_late
def sparse_jacobian(
    y: Any,
    x: Any = None,
    *,
    pattern: Any = None,
    mode: str | None = None,
    order: str = "auto",
    format: str = "csr",
    check: bool = False,
    argnums: int | Sequence[int] = 0,
) -> Any:
    """Compute the Jacobian of `y` by `x` as a sparse matrix, with few products.

    `y` and `x` are variables, or `y` is a function and `x` its argument or a sequence of its
    arguments: variables, tensors, or arrays, for which the function is compiled. Without `x`,
    return the function that computes the matrix, by the arguments at `argnums`, as in `pg.grad`;
    columns of several arguments stand side by side. The matrix has a row for each element of all
    outputs and a column for each element of all inputs. It is a `SparseMatrix` in the `format`
    "csr", "csc" or "coo", whose `data` can be differentiated again.

    The pattern is derived from the program, as by `jacobian_sparsity`, or given as `pattern`: a
    `Pattern`, a mask of shape (N, M), or a sparse matrix of SciPy. Elements outside a given pattern
    are not computed, and spoil others; `check=True` compares it with the derived one. Columns that
    share no row have one colour and take one product in forward mode; rows that share no column,
    one in reverse mode. `mode` is "forward", "reverse" or "both", by default the one with fewest
    products. `order` is the order of colouring: "natural", "largest_first", "smallest_last", or
    "auto", which tries them. All products are one vectorized pass: see Curtis, Powell and Reid, J.
    Inst. Math. Appl. 13, 1974, and `coloring`.

    Where the program indexes by fed values, all elements that these may reach count; `note` of the
    result says so, with their number. Structural zeros are zero, even where a dense computation
    would give 0 * inf = NaN.

    Raises `CheckError` for an element outside a checked pattern, with the lines; `ShapeError` for a
    pattern of another shape; `OptionError` for other options and for symbolic sizes; otherwise as
    `jacobian`.

    >>> pg.sparse_jacobian(lambda x: x[1:] * x[:-1])(np.ones(100))
    <SparseMatrix csr 99 x 100, 198 values>
    """
    options = {"pattern": pattern, "mode": mode, "order": order, "check": check}
    return _sparse("sparse_jacobian", y, x, argnums, (options, format, None))


@checked_late
def sparse_hessian(
    y: Any,
    x: Any = None,
    *,
    pattern: Any = None,
    method: str = "auto",
    order: str = "auto",
    format: str = "csr",
    triangle: str | None = None,
    check: bool = False,
    argnums: int | Sequence[int] = 0,
) -> Any:
    """Compute the Hessian of `y`, one element, as a sparse matrix, with few products.

    Like `sparse_jacobian`, but an element may be read from its mirror image. `method` says which
    columns may have one colour: "star", where each element or its mirror image is alone in a
    product; "acyclic", with fewer colours, where elements are found by substitution, with the
    rounding of those before; or "columns", as in a Jacobian. "auto" is "star". Both images of an
    element are the same number. `triangle="lower"` or "upper" stores only that triangle and the
    diagonal, as solvers want it.

    Products are by forward mode over one gradient. See `symmetric_coloring` for references.

    Raises `NotScalarError` for a `y` of more elements; otherwise as `sparse_jacobian`.

    >>> pg.sparse_hessian(lambda x: pg.sum(x[1:] * x[:-1]))(np.ones(100))
    <SparseMatrix csr 100 x 100, 198 values>
    """
    options = {"pattern": pattern, "method": method, "order": order, "check": check}
    return _sparse("sparse_hessian", y, x, argnums, (options, format, triangle))


_PLANS: dict[str, Callable[..., Any]] = {
    "sparse_jacobian": jacobian_plan,
    "sparse_hessian": hessian_plan,
}


def _sparse(
    name: str, y: Any, x: Any, argnums: int | Sequence[int], options: tuple[Any, ...]
) -> Any:
    if callable(y) and not isinstance(y, Handle):
        if x is None:
            return Sparse(name, y, argnums, *options)
        if type(x) is int:
            raise ArgumentError(
                f"{name}: {x} beside a function may be the number of an argument or the point",
                hint=f"write pg.{name}(f, argnums={x}) for the one",
            )
        inputs = x if isinstance(x, list | tuple) else [x]
        return Sparse(name, y, tuple(range(len(inputs))), *options)(*inputs)
    if isinstance(y, Tensor) or isinstance(x, Tensor):
        raise ArgumentError(
            f"{name} takes a function of tensors, not what it has given",
            hint=f"pg.{name}(function, tensor)",
        )
    return _matrix_of_variables(name, y, x, *options)


def _matrix_of_variables(
    name: str, y: Any, x: Any, options: dict[str, Any], format: str, triangle: str | None
) -> Any:
    with located(partial(origin_of, x)):
        return matrix_of(_PLANS[name](name, y, x, **options), format, triangle)


@final
class Sparse(Transformed[..., Any]):
    """Sparse derivative matrix of a function, as a function of the same arguments."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        argnums: int | Sequence[int],
        options: dict[str, Any],
        format: str,
        triangle: str | None,
    ) -> None:
        super().__init__(name, function)
        self._argnums = argnums
        self._places = positions_of(name, argnums)
        self._options = options, format, triangle
        self._compiled = Jit(self._record_matrix, rebind=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (self.name, self.function, self._argnums, *self._options)

    def _record_matrix(self, *args: Any, **kwargs: Any) -> Any:
        places = [n % len(args) for n in self._places]
        inputs = [args[n] for n in places]

        def function(*chosen: Any) -> Any:
            known = dict(zip(places, chosen, strict=True))
            positional = [known.get(n, x) for n, x in enumerate(args)]
            return call_differentiated(self.function, *positional, **kwargs)

        x = inputs[0] if len(inputs) == 1 else inputs
        return _matrix_of_variables(self.name, function, x, *self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for n in self._places:
            if not -len(args) <= n < len(args):
                raise ArgumentError(
                    f"{self.name}: there is no argument {n} in a call with {len(args)} by position"
                )
        world = world_of(args, kwargs)
        if isinstance(world, InProgram):
            leaves, structure = tree.flatten((args, kwargs))
            args, kwargs = tree.unflatten(structure, map(world.convert_leaf, leaves))
            return self._record_matrix(*args, **kwargs)
        return self._compiled(*args, **kwargs)
