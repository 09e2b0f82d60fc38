"""Checks of what is installed."""

from __future__ import annotations

import importlib
from types import ModuleType


def run_check() -> None:
    """Print that the package is installed.

    >>> paddle.utils.run_check()
    primgraph.compat.paddle computes on 1 CPU.
    """
    print("primgraph.compat.paddle computes on 1 CPU.")


def try_import(module_name: str, err_msg: str | None = None) -> ModuleType:
    """Import a module by name; the `ImportError` of a missing one says how to install it.

    >>> paddle.utils.try_import("math").pi
    3.141592653589793
    """
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        text = f"Failed importing {module_name}: pip install {module_name}"
        raise ImportError(err_msg or text) from error
