"""Functions made of functions, by the names that they have in `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from primgraph import tree
from primgraph.api import public
from primgraph.api.derivatives import of_functions, products
from primgraph.api.vmap import vmap as vectorized
from primgraph.compat.absent import absent
from primgraph.compat.randomness import batch_randomness
from primgraph.compat.torch.core.conjugates import conjugate_values
from primgraph.compat.torch.nn.modules import normalization
from primgraph.compat.torch.nn.stateless import functional_call, stack_module_state
from primgraph.control import branches
from primgraph.errors import ArgumentError, OptionError
from primgraph.operators.variable import Variable

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

Function: TypeAlias = Callable[..., Any]
Positions: TypeAlias = int | Sequence[int]


def grad(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient of `func`, whose result has one element.

    >>> torch.func.grad(lambda x: torch.sum(x * x))(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    func = require_tensors(func, "grad: expected func to return a Tensor, got", has_aux)
    given = public.grad(func, argnums, has_aux)

    def call_conjugated(*args: Any, **kwargs: Any) -> Any:
        found = given(*args, **kwargs)
        return (conjugate_values(found[0]), *found[1:]) if has_aux else conjugate_values(found)

    return call_conjugated


def grad_and_value(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient and the value of `func`.

    With `has_aux`, the value is the pair of the result and what `func` returns beside it.

    >>> torch.func.grad_and_value(lambda x: torch.sum(x * x))(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    func = require_tensors(func, "grad: expected func to return a Tensor, got", has_aux)
    both = of_functions.value_and_grad(func, argnums, has_aux)

    def call_conjugated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = both(*args, **kwargs)
        return conjugate_values(gradient), value

    return call_conjugated


_PLAIN = (int, float, bool, complex, str, type(None))


def require_tensors(func: Function, message: str, has_aux: bool = False) -> Function:
    """Return `func`, with an `ArgumentError` if it returns numbers; `message` begins the text.

    What it returns beside its result with `has_aux` may be anything.
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        result = found[0] if has_aux and isinstance(found, tuple) and found else found
        for leaf in [None] if result is None else tree.leaves(result):
            if isinstance(leaf, _PLAIN):
                raise ArgumentError(
                    f"{message} {type(leaf)}", hint="torch.tensor(x) makes a tensor"
                )
        return found

    return call


def _require_chunk(chunk_size: int | None) -> None:
    if chunk_size is not None and chunk_size < 1:
        raise ArgumentError(f"chunk_size should be greater than 0, and is not {chunk_size}")


def jacrev(
    func: Function,
    argnums: Positions = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """Return the function that computes the Jacobian of `func`, by reverse mode.

    All rows are computed in one vectorized pass, whatever `chunk_size` is.

    >>> torch.func.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _require_chunk(chunk_size)
    func = require_tensors(func, "vjp: expected func to return only tensors, got", has_aux)
    return of_functions.jacrev(func, argnums, has_aux)


def jacfwd(
    func: Function, argnums: Positions = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """Return the function that computes the Jacobian of `func`, by forward mode.

    >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _require_randomness(randomness)
    func = require_tensors(func, "jvp: expected func to return only tensors, got", has_aux)
    return of_functions.jacfwd(func, argnums, has_aux)


def hessian(func: Function, argnums: Positions = 0) -> Function:
    """Return the function that computes second derivatives of `func`, forward over reverse mode.

    >>> torch.func.hessian(lambda x: torch.sum(x**3))(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return `func(*primals)` and the product of its Jacobian with `tangents`.

    With `has_aux`, what `func` returns beside its result follows.

    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.func.jvp(lambda x: x * x, (x,), (torch.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    if not isinstance(primals, tuple | list) or len(primals) != len(tangents):
        raise ArgumentError(
            "jvp(f, primals, tangents): expected primals and tangents to be tuples of one length"
        )
    func = require_tensors(func, "jvp: expected func to return only tensors, got", has_aux)
    value, product = products.jvp(_first_of(func, has_aux), tuple(primals), tuple(tangents))
    return (value, product, func(*primals)[1]) if has_aux else (value, product)


def _first_of(func: Function, has_aux: bool) -> Function:
    """Return the function without what it returns beside its result."""
    return (lambda *args: func(*args)[0]) if has_aux else func


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `func(*primals)` and the function that multiplies a cotangent with its Jacobian.

    With `has_aux`, what `func` returns beside its result follows.

    >>> y, pullback = torch.func.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> pullback(torch.ones(2))
    (tensor([2., 4.]),)
    """
    func = require_tensors(func, "vjp: expected func to return only tensors, got", has_aux)
    plain = _first_of(func, has_aux)

    def back(cotangent: Any, *others: Any) -> tuple[Any, ...]:
        seeds = (cotangent, *others) if others else cotangent
        return tuple(conjugate_values(products.vjp(plain, primals, conjugate_values(seeds))[1]))

    found = func(*primals)
    return (found[0], back, found[1]) if has_aux else (found, back)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """Return `func(*primals)` and the function that multiplies its Jacobian with tangents.

    >>> y, pushforward = torch.func.linearize(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> pushforward(torch.ones(2))
    tensor([2., 4.])
    """

    def push(*tangents: Any) -> Any:
        return products.jvp(func, primals, tangents)[1]

    return func(*primals), push


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """Return the tensor: those in transformed functions are not wrapped.

    >>> torch.func.debug_unwrap(torch.ones(1))
    tensor([1.])
    """
    return tensor


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let batch normalizations in a module keep no running statistics; return the module.

    >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    >>> torch.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, normalization.NormBase):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Any = ()) -> Any:
    """Return `true_fn(*operands)` if `pred`, a boolean, is true, else `false_fn(*operands)`.

    >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))
    tensor([2., 2.])
    """
    if not isinstance(pred, Variable):
        return (true_fn if pred else false_fn)(*operands)
    return branches.cond(pred, true_fn, false_fn, *operands)


def functionalize(func: Function, *, remove: str = "mutations") -> Function:
    """Return `func`: changes in place of its arguments and others are functions already here.

    >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.ones(2))
    tensor([2., 2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise OptionError(f"remove= is 'mutations' or 'mutations_and_views', not {remove!r:.60}")
    return func


def _require_randomness(randomness: str) -> None:
    if randomness not in ("error", "same", "different"):
        raise OptionError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness!r:.60}"
        )


def vmap(
    func: Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Function:
    """Return the function that applies `func` to each sample of a batch.

    `func` is traced, on variables of a program: it takes functions of this package, and methods
    that all arrays of primgraph have. The whole batch is computed at once, whatever `chunk_size`
    is.

    >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    _require_randomness(randomness)
    _require_chunk(chunk_size)
    if isinstance(out_dims, int):
        func = require_tensors(func, "vmap: the function must only return Tensors, got type")

    @wraps(func)
    def sample(*args: Any, **kwargs: Any) -> Any:
        before = batch_randomness.set(randomness)
        try:
            return func(*args, **kwargs)
        finally:
            batch_randomness.reset(before)

    return vectorized(sample, in_dims, out_dims)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
