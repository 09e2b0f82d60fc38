"""Taylor mode: derivatives of high order of functions along a curve, and of built values along a
line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph import tree
from primgraph.api.arguments import SelectedArguments
from primgraph.api.derivatives import of_values, operators
from primgraph.api.derivatives.of_functions import Outputs
from primgraph.api.public import inputs_as_variables
from primgraph.api.world import is_array
from primgraph.derivatives import jets as of_variables
from primgraph.derivatives.grad import checked_order
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import checked_late
from primgraph.operators.call import constant_in_no_grad
from primgraph.operators.handle import Handle


@checked_late
def jet(function: Callable[..., Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """Return the value of `function`, and its derivatives along a curve, by Taylor mode.

    `primals` are the arguments: arrays, tensors or variables. `series` has for each of them the
    list of its derivatives along the curve: first, second and so on, each of the argument's shape,
    or None for zero, which costs nothing. A single argument needs no sequence around it and its
    series. For such a curve `x(t)`, the result is `f(x(0))` and the list of the derivatives of
    `f(x(t))` by t at 0, up to the highest order given. As in JAX these are derivatives;
    coefficients of the Taylor series are `1/k!` of them.

    If the function returns a container of arrays, the second result has such a list at each place.
    Work and equations grow at most as the square of the order, where nested derivatives may double
    with each (A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, 2008, chapter 13).

    Results can be differentiated again. Raises `ArgumentError` for what is no function or array,
    and for a wrong number of series; `ShapeError` for a wrong shape; `NotDifferentiable` for
    integers.

    >>> pg.jet(lambda x: x**3, (2.0,), ((1.0, 0.0, 0.0),))
    (array(8.), [array(12.), array(12.), array(6.)])
    """
    single = not isinstance(primals, list | tuple)
    args = (primals,) if single else tuple(primals)
    listed = _series_per_argument(series, single, len(args))
    order = max(map(len, listed))
    chosen = SelectedArguments.from_call("jet", function, args, {}, range(len(args)))
    if len(chosen.leaves) != len(args) or not all(map(is_array, args)):
        raise ArgumentError("jet takes arrays as arguments, and no containers of them")
    outputs = Outputs("jet")
    applied = chosen.world.apply(
        "jet", lambda leaves: outputs.flatten_result(chosen.call(leaves), None), chosen.leaves
    )
    outputs.require_floats()
    terms = [{k: v for k, v in enumerate(s, 1) if v is not None} for s in listed]
    rows = applied.jets(outputs.count, terms, order)
    value, _ = outputs.unflatten_results(applied.results)
    found: tuple[Any, Any] = chosen.world.convert_results(
        (value, tree.unflatten(outputs.structure, rows))
    )
    return found


def _series_per_argument(series: Any, single: bool, count: int) -> list[list[Any]]:
    """Return the derivatives of each argument, as lists."""
    given = [series] if single else series
    fits = isinstance(given, list | tuple) and all(isinstance(s, list | tuple) for s in given)
    if not fits or len(given) != count:
        raise ArgumentError(
            f"jet takes a list of derivatives for each of {count} arguments, not {series!r:.80}",
            hint="pg.jet(f, (x,), ([dx, ddx],)), or pg.jet(f, x, [dx, ddx])",
        )
    found = [list(s) for s in given]
    if not any(found):
        raise ArgumentError("jet got no derivatives", hint="give at least the first: [dx]")
    return found


@checked_late
@constant_in_no_grad
def taylor(outputs: Any, inputs: Any, order: int, direction: Any = None) -> Any:
    """Return `outputs` and their derivatives along `direction` up to `order`: `[y, y', y'', ...]`.

    `outputs` and `inputs` are variables or tensors, or sequences of them. `direction` has arrays,
    variables or tensors of the inputs' shapes, ones by default. Element k of the list is the k-th
    derivative of `y` at `x + t direction` by t; for elementwise `y`, the k-th derivative of each
    element. A sequence of outputs gives a list of such lists. Outputs that depend on no input have
    zeros.

    One pass of Taylor mode computes all orders; its equations grow at most as the square of the
    order. Coefficients of the Taylor series are `1/k!` of these derivatives.

    Results can be differentiated again. Raises like `pg.forward_grad`.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", ())
    ...     derivatives = pg.taylor(x**3, x, 3)
    >>> pg.Executor().run(program, {"x": 2.0}, [derivatives])
    [array(8.), array(12.), array(12.), array(6.)]
    """
    if isinstance(outputs, Tensor) or (
        isinstance(outputs, list | tuple) and any(isinstance(y, Tensor) for y in outputs)
    ):
        return of_values.taylor(outputs, inputs, checked_order("taylor", order), direction)
    if callable(outputs) and not isinstance(outputs, Handle):
        raise ArgumentError(
            f"taylor takes variables or tensors, not the function {outputs!r:.60}",
            hint="pg.jet(f, x, [dx, None, None]) gives those of a function to order three",
        )
    return of_variables.taylor(outputs, inputs_as_variables(outputs, inputs), order, direction)


@checked_late
@constant_in_no_grad
def partials(u: Any, x: Any, orders: Any, is_batched: bool = False, *, check: bool = True) -> Any:
    """Compute mixed partial derivatives of `u` by the elements of `x`.

    `u` and `x` are variables or tensors, or a function of one array and its argument. `x` has shape
    `(d,)`, or with `is_batched` `(B, d)` with independent samples, as in `pg.hessian_diagonal`.
    `orders` is a list of tuples of d numbers, and the result is a list of as many derivatives, each
    of the type of `u`. `[(2, 0), (1, 2)]` asks for the second derivative by the first of two
    elements, and for the derivative once by the first and twice by the second.

    Each derivative is a sum, with exact rational weights, of derivatives along a few directions,
    which Taylor mode computes in one vectorized pass: 3 directions for `(1, 2)`, 4 for `(2, 2)` or
    `(1, 1, 1)`. Several results share directions. See A. Griewank, J. Utke, A. Walther, Math. Comp.
    69 (2000), 1117. A few derivatives of low order are taken axis by axis where that has fewer
    coefficients. Elements that `u` does not depend on give zeros, at no cost.

    Raises `ArgumentError` for other orders, `ShapeError` for another shape of `x`, and otherwise as
    `pg.hessian_diagonal`.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (2,))
    ...     (mixed,) = pg.partials(x[0] ** 2 * x[1], x, [(1, 1)])
    >>> pg.Executor().run(program, {"x": [3.0, 5.0]}, [mixed])
    [array(6.)]
    """
    return operators.differential("partials", u, x, is_batched, check, orders)


@checked_late
@constant_in_no_grad
def biharmonic(y: Any, x: Any = None, is_batched: bool = False, *, check: bool = True) -> Any:
    """Compute the Laplacian of the Laplacian of `y`, one element, by `x`.

    `y` and `x` are variables or tensors, or a function and its argument, as in `pg.laplacian`. The
    result has the type of `y`. With `is_batched`, axis 0 is the batch of independent samples, and
    `y` and the result have shape `(B,)` or `(B, 1)`; for `check` see `pg.hessian_diagonal`.

    It is a sum of fourth derivatives along directions, by Taylor mode: 3 for two elements, 6 for
    three, n * n for n. Operations that are linear in fourth derivatives apply to their sum. Raises
    as `pg.laplacian` does.

    >>> pg.biharmonic(lambda x: pg.sum(x**4))(np.array([1.0, 2.0]))
    array(48.)
    """
    return operators.differential("biharmonic", y, x, is_batched, check)
