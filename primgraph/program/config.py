"""Settings of the process: `pg.config`."""

from __future__ import annotations

import importlib
import os
from typing import Self, final

from primgraph.errors import CompileError

TARGETS = ("numpy", "c", "auto")

# The default target is the only item; None stands for that of the environment.
_current: list[str | None] = [None]


def default_target() -> str:
    """Return the default target: that of `pg.config`, of $PRIMGRAPH_TARGET, or "numpy"."""
    return _current[0] or os.environ.get("PRIMGRAPH_TARGET") or "numpy"


def target_of(target: str | None) -> str:
    """Return `target`, or the default. Raises `CompileError` for an unknown one."""
    wanted = default_target() if target is None else target
    if wanted not in TARGETS:
        raise CompileError(f"there is no target {wanted!r}", hint=f"targets: {', '.join(TARGETS)}")
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
        self._before = _current[0]
        _current[0] = target
        if target == "auto":
            importlib.import_module("primgraph.codegen.tiered.background").expect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        _current[0] = self._before
