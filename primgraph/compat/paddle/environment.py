"""Settings of Paddle's process, and names of torch that Paddle has at its root."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, final

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.amp import auto_cast
from primgraph.compat.paddle.creation import arange
from primgraph.compat.paddle.dynamic import Tensor, to_tensor
from primgraph.compat.paddle.framework import checked_place, paddles, seed
from primgraph.errors import ArgumentError, OptionError

__all__ = [
    "LazyGuard",
    "asarray",
    "autocast",
    "batch",
    "disable_signal_handler",
    "from_dlpack",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_cuda_rng_state",
    "get_flags",
    "is_autocast_enabled",
    "manual_seed",
    "range",
    "set_cuda_rng_state",
    "set_flags",
    "shard_index",
    "to_dlpack",
]

manual_seed = seed


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Any:
    """Return a tensor of an array, list, number or tensor.

    >>> paddle.asarray([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    checked_place("asarray", device)
    if isinstance(obj, Tensor) and not copy and dtype is None and not requires_grad:
        return obj
    return to_tensor(obj, dtype=dtype, stop_gradient=not requires_grad)


@paddles
def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    dtype: Any = None,
    *,
    name: str | None = None,
) -> Any:
    """Return numbers from `start` up to and including `end`, `step` apart; `arange` excludes it.

    >>> paddle.range(0, 5, 2).tolist()
    [0.0, 2.0, 4.0]
    """
    first, last = (0.0, start) if end is None else (start, end)
    count = int(np.floor((float(last) - float(first)) / float(step))) + 1
    return arange(first, first + (count - 0.5) * step, step, dtype or "float32")


def batch(
    reader: Callable[[], Iterable[Any]], batch_size: int, drop_last: bool = False
) -> Callable[[], Iterator[list[Any]]]:
    """Return a reader of lists of `batch_size` samples.

    >>> list(paddle.batch(lambda: iter("abcde"), batch_size=2)())
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    if batch_size <= 0:
        raise OptionError(f"batch_size should be a positive integer value, but got {batch_size}")

    def batches() -> Iterator[list[Any]]:
        found: list[Any] = []
        for sample in reader():
            found.append(sample)
            if len(found) == batch_size:
                yield found
                found = []
        if found and not drop_last:
            yield found

    return batches


@paddles
def shard_index(
    input: Any, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Any:
    """Return indices within a shard of `index_num` classes; `ignore_value` for other shards.

    >>> paddle.shard_index(paddle.to_tensor([[16], [1]]), 20, 2, 0).tolist()
    [[-1], [1]]
    """
    if not 0 <= shard_id < nshards:
        raise OptionError(f"The shard_id({shard_id}) should be in [0, {nshards})")
    size = (index_num + nshards - 1) // nshards
    is_here = pg.equal(pg.floor_divide(input, size), shard_id)
    return pg.where(is_here, pg.remainder(input, size), ignore_value)


_flags: dict[str, Any] = {"FLAGS_check_nan_inf": False, "FLAGS_benchmark": False}


def set_flags(flags: Mapping[str, Any]) -> None:
    """Store settings of Paddle by name, which have no effect.

    Raises `OptionError` for `FLAGS_check_nan_inf`: `pg.eager.debug()` finds such elements.

    >>> paddle.set_flags({"FLAGS_cudnn_deterministic": True})
    >>> paddle.get_flags("FLAGS_cudnn_deterministic")
    {'FLAGS_cudnn_deterministic': True}
    """
    for name, value in flags.items():
        if not name.startswith("FLAGS_"):
            raise OptionError(f"Flag {name} cannot set its value through this function.")
        if name == "FLAGS_check_nan_inf" and value:
            raise OptionError(
                "FLAGS_check_nan_inf is not supported",
                hint="with pg.eager.debug(): each operation is computed at its line",
            )
        _flags[name] = value


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """Return settings by name. Raises `OptionError` for one that was not set.

    >>> paddle.get_flags(["FLAGS_benchmark"])
    {'FLAGS_benchmark': False}
    """
    names = [flags] if isinstance(flags, str) else list(flags)
    unknown = [n for n in names if n not in _flags]
    if unknown:
        raise OptionError(f"Flag {unknown[0]} cannot get its value through this function.")
    return {name: _flags[name] for name in names}


def disable_signal_handler() -> None:
    """Do nothing: there are no signal handlers.

    >>> paddle.disable_signal_handler()
    """


@final
class LazyGuard:
    """Context in which layers are made; their parameters have values at once.

    >>> with paddle.LazyGuard():
    ...     layer = paddle.nn.Linear(2, 1)
    >>> layer.weight.initialize()
    """

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *error: Any) -> None:
        """Do nothing."""


def autocast(
    device_type: str | None,
    dtype: Any = "float16",
    enabled: bool = True,
    cache_enabled: bool = True,
) -> AbstractContextManager[None]:
    """Change nothing: see `paddle.amp.auto_cast`.

    >>> with paddle.autocast("cpu", enabled=False):
    ...     pass
    """
    return auto_cast(enabled, dtype=dtype)


def is_autocast_enabled(device_type: Any = None) -> bool:
    """Return False.

    >>> paddle.is_autocast_enabled()
    False
    """
    return False


def get_autocast_dtype(device_type: Any = None) -> str:
    """Return "float16", which is the default of `paddle.amp.auto_cast`.

    >>> paddle.get_autocast_dtype()
    'float16'
    """
    return "float16"


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype


def get_cuda_rng_state() -> list[Any]:
    """Return no states: there is no CUDA.

    >>> paddle.get_cuda_rng_state()
    []
    """
    return []


def set_cuda_rng_state(state_list: Any) -> None:
    """Do nothing, with a warning for a state: there is no CUDA.

    >>> paddle.set_cuda_rng_state(paddle.get_cuda_rng_state())
    """
    if list(state_list):
        warnings.warn("there is no CUDA, whose states would be set", stacklevel=2)


class _Exported:
    """The capsule of an array, as an object that exports it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def to_dlpack(x: Any) -> Any:
    """Return a copy of the elements of a tensor as a DLPack capsule.

    >>> paddle.from_dlpack(paddle.to_dlpack(paddle.ones([2]))).tolist()
    [1.0, 1.0]
    """
    return np.array(x.numpy()).__dlpack__()


def from_dlpack(dlpack: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return a tensor of a DLPack capsule, or of an array of another package.

    >>> paddle.from_dlpack(np.ones(2)).tolist()
    [1.0, 1.0]
    """
    checked_place("from_dlpack", device)
    if not hasattr(dlpack, "__dlpack__"):
        if type(dlpack).__name__ != "PyCapsule":
            raise ArgumentError(f"from_dlpack takes an array or a capsule, not {dlpack!r:.60}")
        dlpack = _Exported(dlpack)
    return to_tensor(np.from_dlpack(dlpack))
