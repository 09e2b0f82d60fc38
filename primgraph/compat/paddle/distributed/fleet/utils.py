"""Recomputation: functions whose residuals are computed again in reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph.compat.torch.utils.checkpoint import checkpoint, checkpoint_sequential

__all__ = ["recompute", "recompute_sequential"]


def recompute(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function whose residuals are computed again in reverse mode of traced functions.

    Values and derivatives are those of the function, random numbers included.

    >>> from primgraph.compat.paddle.distributed.fleet.utils import recompute
    >>> float(recompute(paddle.exp, paddle.zeros([1]))[0])
    1.0
    """
    for name in ("preserve_rng_state", "use_reentrant", "offload_indices"):
        kwargs.pop(name, None)
    return checkpoint(function, *args, **kwargs)


def recompute_sequential(
    ctx: dict[str, Any], functions: Sequence[Callable[..., Any]], *args: Any, **kwargs: Any
) -> Any:
    """Call functions one after another, in segments whose residuals are computed again.

    >>> from primgraph.compat.paddle.distributed.fleet.utils import recompute_sequential
    >>> x = recompute_sequential({"segments": 1}, [paddle.exp, paddle.log], paddle.zeros([1]))
    >>> float(x[0])
    0.0
    """
    (x,) = args
    return checkpoint_sequential(functions, ctx.get("segments", 1), x)
