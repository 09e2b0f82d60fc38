"""Files of tensors, state dicts and containers of them, as in OneFlow: torch's, without pickle."""

from __future__ import annotations

from typing import Any

from primgraph.compat.oneflow.tensor import Tensor
from primgraph.compat.torch.serialization import check_location, make_files

_files = make_files(Tensor)


def save(obj: Any, path: Any, global_dst_rank: int | None = None, **options: Any) -> None:
    """Write tensors, state dicts, numbers, texts, and containers of them to a path or file.

    See `torch.save`.
    """
    _files.save(obj, path)


def load(
    path: Any, global_src_rank: int | None = None, map_location: Any = None, **options: Any
) -> Any:
    """Read what `save` wrote, from a path or file. Nothing in the file is executed.

    See `torch.load`.
    """
    check_location(map_location)
    return _files.load(path)
