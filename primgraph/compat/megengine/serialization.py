"""Files of tensors, state dicts and containers of them, as in MegEngine, without pickle."""

from __future__ import annotations

from typing import Any

from primgraph.compat.files.container import Files
from primgraph.compat.megengine.tensor import Parameter, Tensor
from primgraph.errors import OptionError

_MAKERS: dict[str, Any] = {
    "tensor": lambda array, requires_grad: Tensor(array, array.dtype),
    "parameter": lambda array, requires_grad: Parameter(array, array.dtype),
    "Size": tuple,
    "device": lambda: "cpu",
}
_files = Files(Tensor, _MAKERS, lambda x: isinstance(x, Parameter))


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 4) -> None:
    """Write tensors, state dicts, numbers, texts, and containers of them to a path or file.

    The file is a zip of JSON and arrays, which only primgraph reads. Raises `ArgumentError` for
    objects of other classes, such as modules: save `state_dict()`.

    >>> megengine.save({"epoch": 3}, "checkpoint.pkl")
    >>> megengine.load("checkpoint.pkl")
    {'epoch': 3}
    """
    _files.save(obj, f)


def load(f: Any, map_location: Any = None, pickle_module: Any = None) -> Any:
    """Read what `save` wrote, from a path or file. Nothing in the file is executed.

    Raises `FileNotFoundError` for a path without a file, `LoadError` for another file, and
    `OptionError` for a `map_location` other than the processor.

    >>> megengine.save([megengine.tensor([1.0, 2.0])], "list.pkl")
    >>> megengine.load("list.pkl")
    [Tensor([1. 2.], device=xpux:0)]
    """
    places = map_location.values() if isinstance(map_location, dict) else [map_location]
    for place in places:
        if isinstance(place, str) and not place.startswith(("cpu", "xpu")):
            raise OptionError(f"map_location={place!r:.60}: tensors are on the processor, 'cpu0'")
    return _files.load(f)
