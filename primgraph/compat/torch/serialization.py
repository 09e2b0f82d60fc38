"""Files of tensors, state dicts and containers of them, as in torch, without pickle."""

from __future__ import annotations

from typing import Any

from primgraph.compat.files.container import Files
from primgraph.compat.torch import framework
from primgraph.compat.torch.core.methods import Sizes
from primgraph.compat.torch.tensor import Parameter, Tensor
from primgraph.eager.node import array_node
from primgraph.errors import OptionError

__all__ = ["load", "save"]


def make_files(family: type[Tensor]) -> Files:
    """Return files of the tensors of a class."""
    makers: dict[str, Any] = {
        "tensor": lambda array, requires_grad: family(array_node(array.copy(), requires_grad)),
        "parameter": lambda array, requires_grad: Parameter(
            Tensor(array_node(array)), requires_grad
        ),
        "Size": Sizes,
        "device": framework.device,
    }
    return Files(family, makers, lambda x: isinstance(x, Parameter))


_files = make_files(Tensor)


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors, state dicts, numbers, texts, and containers of them to a path or file.

    The file is a zip of JSON and arrays, which only primgraph reads; tensors that share elements do
    so after loading. A path with the suffix `.safetensors` takes a dict of tensors, in that format.
    Raises `ArgumentError` for objects of other classes, such as modules: save `state_dict()`.

    >>> torch.save({"w": torch.ones(2), "epoch": 3}, "checkpoint.pt")
    >>> torch.load("checkpoint.pt")
    {'w': tensor([1., 1.]), 'epoch': 3}
    """
    _files.save(obj, f)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` wrote, from a path or file. Nothing in the file is executed.

    Raises `FileNotFoundError` for a path without a file, `LoadError` for another file, such as one
    that torch wrote, and `OptionError` for a `map_location` other than the processor.

    >>> torch.save([torch.arange(2)], "list.pt")
    >>> torch.load("list.pt", map_location="cpu", weights_only=True)
    [tensor([0, 1])]
    """
    check_location(map_location)
    return _files.load(f)


def check_location(given: Any) -> None:
    """Raise `OptionError` for another place than the processor."""
    if isinstance(given, dict):
        for target in given.values():
            framework.checked_device(target)
    elif callable(given) and not isinstance(given, framework.device):
        return
    elif given is not None:
        try:
            framework.checked_device(given)
        except OptionError:
            raise OptionError(
                f"map_location={given!r:.60}: tensors are on the 'cpu'", hint="map_location='cpu'"
            ) from None
