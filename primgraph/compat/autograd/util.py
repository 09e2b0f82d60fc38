"""Small things that programs import from `autograd.util`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from primgraph.compat.autograd.test_util import check_grads
from primgraph.compat.autograd.wrap_util import subvals

__all__ = ["func", "quick_grad_check", "subval", "subvals"]


def func(function: Any) -> Any:
    """The function itself."""
    return function


def subval(values: Sequence[Any], place: int, value: Any) -> tuple[Any, ...]:
    """A tuple of these values, with another at one place."""
    return subvals(values, [(place, value)])


def quick_grad_check(
    fun: Callable[..., Any],
    arg0: Any,
    extra_args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Deprecated: `check_grads(fun, modes=["rev"], order=1)(arg0)`."""
    warnings.warn("quick_grad_check is deprecated: use check_grads", stacklevel=2)

    def call_one(x: Any) -> Any:
        return fun(x, *extra_args, **(kwargs or {}))

    check_grads(call_one, modes=["rev"], order=1)(arg0)
