"""Settings of torch as a whole: threads, determinism, compilation, classes of tensors by dtype."""

from __future__ import annotations

import builtins
from typing import Any

from primgraph.codegen import get_num_threads, set_num_threads
from primgraph.compat.dtypes import LibraryDType
from primgraph.compat.torch import framework
from primgraph.compat.torch.core.leaves import make_sized_leaf
from primgraph.compat.torch.core.tensor_types import NAMES
from primgraph.compat.torch.tensor import Tensor
from primgraph.eager.derivatives.recording import is_on
from primgraph.errors import OptionError

__all__ = [
    "are_deterministic_algorithms_enabled",
    "channels_last",
    "compile",
    "contiguous_format",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_inference_mode_enabled",
    "is_warn_always_enabled",
    "preserve_format",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_warn_always",
    "strided",
    "use_deterministic_algorithms",
]

strided = "torch.strided"
contiguous_format = "torch.contiguous_format"
preserve_format = "torch.preserve_format"
channels_last = "torch.channels_last"


def compile(
    model: Any = None,
    *,
    fullgraph: builtins.bool = False,
    dynamic: builtins.bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: builtins.bool = False,
) -> Any:
    """Return the function or module itself; without one, a decorator.

    Operations on tensors are recorded and compiled together anyway, and the result is the same.
    `pg.jit` compiles a function as a whole.

    >>> torch.compile(lambda x: x * 2)(torch.ones(2))
    tensor([2., 2.])
    """
    return (lambda function: function) if model is None else model


def use_deterministic_algorithms(mode: builtins.bool, *, warn_only: builtins.bool = False) -> None:
    """Accept either mode: all algorithms here are deterministic.

    >>> torch.use_deterministic_algorithms(True)
    """


def are_deterministic_algorithms_enabled() -> builtins.bool:
    """Return True: all algorithms here are deterministic.

    >>> torch.are_deterministic_algorithms_enabled()
    True
    """
    return True


def is_deterministic_algorithms_warn_only_enabled() -> builtins.bool:
    """Return False.

    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return False


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """Accept any mode: all algorithms here are deterministic.

    >>> torch.set_deterministic_debug_mode("error")
    """
    if debug_mode not in (0, 1, 2, "default", "warn", "error"):
        raise OptionError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
            f"{debug_mode!r:.60}"
        )


def get_deterministic_debug_mode() -> builtins.int:
    """Return 2, the mode in which algorithms that are not deterministic are errors.

    >>> torch.get_deterministic_debug_mode()
    2
    """
    return 2


def set_flush_denormal(mode: builtins.bool) -> builtins.bool:
    """Return whether the mode is set: denormal numbers are kept here.

    >>> torch.set_flush_denormal(True)
    False
    """
    return not mode


def set_float32_matmul_precision(precision: str) -> None:
    """Accept a precision of products: they are computed in float32 whatever it is.

    >>> torch.set_float32_matmul_precision("high")
    """
    if precision not in ("highest", "high", "medium"):
        raise OptionError(f"precision is 'highest', 'high' or 'medium', not {precision!r:.60}")


def get_float32_matmul_precision() -> str:
    """Return "highest", the precision of products.

    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return "highest"


def get_num_interop_threads() -> int:
    """Return 1: operations run one after the other.

    >>> torch.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(int: int) -> None:
    """Accept a number of threads between operations, which run one after the other.

    >>> torch.set_num_interop_threads(1)
    """


def set_warn_always(b: builtins.bool) -> None:
    """Accept whether warnings are repeated: `warnings.simplefilter` decides it.

    >>> torch.set_warn_always(False)
    """


def is_warn_always_enabled() -> builtins.bool:
    """Return False.

    >>> torch.is_warn_always_enabled()
    False
    """
    return False


def is_inference_mode_enabled() -> builtins.bool:
    """Return whether no derivatives are recorded: inference mode is `no_grad` here.

    >>> with torch.inference_mode():
    ...     torch.is_inference_mode_enabled()
    True
    """
    return not is_on.get()


class _OfDType(type):
    """Class of tensors of one dtype: `isinstance` looks at it, and a call makes such a tensor."""

    dtype: LibraryDType

    def __instancecheck__(cls, instance: Any) -> builtins.bool:
        return isinstance(instance, Tensor) and instance.type.dtype == cls.dtype

    def __call__(cls, *data: Any) -> Any:
        return Tensor(make_sized_leaf(data, cls.dtype))


def _of_dtype(name: str, dtype: LibraryDType) -> Any:
    text = f"Tensors of {dtype.dtype}.\n\n>>> torch.{name}([1, 0]).dtype\n{dtype!r}\n"
    return _OfDType(name, (), {"dtype": dtype, "__doc__": text})


TYPES: dict[str, Any] = {
    name: _of_dtype(name, dtype) for name, dtype in NAMES.items() if not dtype.is_complex
}


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype of floats without one, by a class of tensors or its name.

    >>> torch.set_default_tensor_type(torch.FloatTensor)
    """
    found = TYPES.get(t.removeprefix("torch."), t) if isinstance(t, str) else t
    framework.set_default_dtype(found.dtype)
