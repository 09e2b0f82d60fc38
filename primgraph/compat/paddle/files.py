"""Files of tensors, state dicts and containers of them, as in Paddle, without pickle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from primgraph.compat.files.container import Files
from primgraph.compat.paddle.dynamic import Tensor
from primgraph.compat.paddle.framework import CPUPlace, paddles
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, LoadError, OptionError


def _make_tensor(array: Any, requires_grad: bool) -> Tensor:
    """Return a constant: parameters take its elements by `set_state_dict`."""
    return Tensor(array_node(array.copy()))


_MAKERS: dict[str, Any] = {
    "tensor": _make_tensor,
    "parameter": _make_tensor,
    "Size": tuple,
    "device": CPUPlace,
}
_files = Files(Tensor, _MAKERS, lambda x: False)


@paddles
def save(obj: Any, path: Any, protocol: int = 4, **configs: Any) -> None:
    """Write tensors, state dicts, numbers, texts, and containers of them to a path or buffer.

    The file is a zip of JSON and arrays, which only primgraph reads. A path with the suffix
    `.safetensors` takes a dict of tensors, in that format. Folders of the path are made. Raises
    `ArgumentError` for objects of other classes, such as layers: save `state_dict()`.

    >>> paddle.save({"w": paddle.ones([2])}, "layer.pdparams")
    >>> list(paddle.load("layer.pdparams"))
    ['w']
    """
    if protocol not in (2, 3, 4):
        raise ArgumentError(f"protocol is 2, 3 or 4, not {protocol!r:.60}")
    _require_options("save", configs, ("use_binary_format", "pickle_protocol"))
    if isinstance(path, str | os.PathLike):
        if not Path(path).name:
            raise ArgumentError(f"save: {str(path)!r} names no file")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    _files.save(obj, path)


@paddles
def load(path: Any, return_numpy: bool = False, **configs: Any) -> Any:
    """Read what `save` wrote, with arrays for tensors if `return_numpy`. Nothing is executed.

    Raises `LoadError`, a ValueError, for a path without a file, and for another file, such as one
    that Paddle wrote.

    >>> paddle.save([paddle.zeros([2]), 1], "list.pd")
    >>> paddle.load("list.pd", return_numpy=True)
    [array([0., 0.], dtype=float32), 1]
    """
    _require_options("load", configs, ("model_filename", "params_filename", "keep_name_table"))
    if isinstance(path, str | os.PathLike) and not Path(path).exists():
        raise LoadError(f"The ``path`` ({path}) to load model not exists.")
    found = _files.load(path)
    return _to_arrays(found) if return_numpy else found


def _require_options(function: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    """Raise `OptionError` for options of Paddle that are given, and `ArgumentError` for others."""
    for name, value in given.items():
        if name not in known:
            raise ArgumentError(f"{function} has no argument {name!r}")
        if value not in (None, False):
            raise OptionError(f"{function}: {name}={value!r:.60} is not supported, leave it out")


def _to_arrays(x: Any) -> Any:
    """Return `x` with arrays in place of tensors."""
    if isinstance(x, _Tensor):
        return x.numpy()
    if isinstance(x, dict):
        return type(x)({key: _to_arrays(value) for key, value in x.items()})
    if type(x) in (list, tuple):
        return type(x)(_to_arrays(value) for value in x)
    return x
