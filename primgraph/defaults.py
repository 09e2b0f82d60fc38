"""Default dtype, and default target of compilation."""

from __future__ import annotations

import os
from typing import Any, Self, final

from primgraph.base.providers import provider
from primgraph.errors import CompileError, DTypeError
from primgraph.ir.types import FLOAT64, DType, as_dtype

# Targets of `pg.compile` that are array libraries.
LIBRARIES = ("cupy", "jax", "torch")
TARGETS = ("numpy", "c", "auto")

# The default target is the only item; None stands for that of the environment.
_target: list[str | None] = [None]

# The default dtype is the only item.
current: list[DType] = [FLOAT64]


def get_default_dtype() -> DType:
    """Return the dtype of inputs declared without one and of Python floats; float64 at the start.

    >>> pg.get_default_dtype()
    dtype('float64')
    """
    return current[0]


def set_default_dtype(dtype: Any) -> None:
    """Set the default dtype for all programs built from now on.

    Raises `DTypeError` for anything but a float dtype.

    >>> pg.set_default_dtype("float32")
    >>> pg.zeros(2).dtype
    dtype('float32')
    >>> pg.set_default_dtype("float64")
    """
    found = as_dtype(dtype)
    if found.kind != "f":
        raise DTypeError(f"the default dtype is a float dtype, not {found}")
    current[0] = found


def default_target() -> str:
    """Return the default target: that of `pg.config`, of $PRIMGRAPH_TARGET, or "numpy"."""
    return _target[0] or os.environ.get("PRIMGRAPH_TARGET") or "numpy"


def target_of(target: str | None) -> str:
    """Return `target`, or the default. Raises `CompileError` for an unknown one."""
    wanted = default_target() if target is None else target
    if wanted not in TARGETS:
        targets, libraries = ", ".join(TARGETS), ", ".join(LIBRARIES)
        hint = f"targets: {targets}; pg.compile also takes {libraries}"
        if wanted in LIBRARIES:
            hint = "only pg.compile takes it"
        raise CompileError(f"there is no target {wanted!r}", hint=hint)
    return wanted


@final
class config:
    """Set the default target of this process: "numpy", "c" or "auto".

    It applies to everything that is compiled from now on without a target of its own: functions
    with `pg.jit`, `pg.compile`, programs and tensors. None stands for the environment variable
    PRIMGRAPH_TARGET, or NumPy. In a `with` statement the setting ends with the block. With "auto"
    the process that compiles in the background begins at once, if this program needed one before.

    Raises `CompileError` for an unknown target.

    >>> with pg.config(target="auto"):
    ...     pg.Executor().target
    'auto'
    >>> pg.Executor().target
    'numpy'
    """

    __slots__ = ("_before",)

    def __init__(self, *, target: str | None) -> None:
        if target is not None:
            target_of(target)
        self._before = _target[0]
        _target[0] = target
        if target == "auto":
            provider("background compiler").expect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        _target[0] = self._before
