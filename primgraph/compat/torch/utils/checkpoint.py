"""Checkpoints: functions whose residuals are computed again in reverse mode, as in torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.control.checkpoints import checkpoint as _checkpoint
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function whose residuals are computed again in reverse mode.

    Values and derivatives are those of the function, random numbers included. In functions that are
    traced, as by `torch.compile`, reverse mode computes the inside again. Eager calls store the
    residuals: primgraph computes them when they are read.

    With `use_reentrant=True` results have no gradient unless an argument requires one, as in torch.
    Raises `ArgumentError` for keyword arguments and for `context_fn` with it.

    >>> from primgraph.compat.torch.utils.checkpoint import checkpoint
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: (x**2).sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    kwargs.pop("preserve_rng_state", None)
    if use_reentrant and (kwargs or context_fn is not None):
        found = ", ".join(kwargs) or "context_fn"
        raise ArgumentError(f"Unexpected keyword arguments: {found}")
    if adopting.get() is not None:
        return _checkpoint(function)(*args, **kwargs)
    is_cut = use_reentrant and not any(isinstance(x, Tensor) and x.requires_grad for x in args)
    context = nullcontext() if context_fn is None else context_fn()[0]
    with no_grad() if is_cut else nullcontext(), context:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Call functions one after another, in `segments` checkpoints; the last segment is none.

    >>> from primgraph.compat.torch.utils.checkpoint import checkpoint_sequential
    >>> checkpoint_sequential([torch.exp, torch.log], 2, torch.zeros(2), use_reentrant=False)
    tensor([0., 0.])
    """
    kwargs.pop("preserve_rng_state", None)
    if kwargs:
        raise ArgumentError(f"Unexpected keyword arguments: {', '.join(kwargs)}")
    parts = list(functions)
    size = len(parts) // segments
    for k in range(segments - 1):
        segment = _chain(parts[k * size : (k + 1) * size])
        input = checkpoint(segment, input, use_reentrant=use_reentrant)
    return _chain(parts[(segments - 1) * size :])(input)


def _chain(functions: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    """Return the composition of functions, the first one first."""

    def call(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return call


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accept whether checkpoints explain their errors, which has no effect.

    >>> with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):
    ...     pass
    """
    yield


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Accept whether checkpoints stop early, which has no effect.

    >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     pass
    """
    yield


__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
