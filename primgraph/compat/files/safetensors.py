"""The format of safetensors: a JSON header, and the elements of arrays one after another."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from primgraph.errors import ArgumentError, LoadError

Array = np.ndarray[Any, Any]

_NAMES = {
    **{f"F{8 * n}": f"<f{n}" for n in (2, 4, 8)},
    **{f"I{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    "BOOL": "|b1",
    "C64": "<c8",
}
_DTYPES = {np.dtype(text): name for name, text in _NAMES.items()}


def write_tensors(tensors: Any, file: IO[bytes]) -> None:
    """Write a dict of tensors. Raises `ArgumentError` for anything else."""
    if not isinstance(tensors, Mapping) or not all(isinstance(k, str) for k in tensors):
        raise ArgumentError(
            "a .safetensors file holds a dict of tensors by names",
            hint="another suffix, such as .pt, holds any containers",
        )
    header: dict[str, Any] = {}
    parts, end = [], 0
    for name, tensor in tensors.items():
        if not hasattr(tensor, "shape"):
            raise ArgumentError(f"a .safetensors file holds tensors, and {name!r} is none")
        array = np.asarray(tensor.detach() if hasattr(tensor, "detach") else tensor)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype not in _DTYPES:
            raise ArgumentError(f"a .safetensors file has no dtype {array.dtype}: of {name!r}")
        begin, end = end, end + array.nbytes
        kind = _DTYPES[array.dtype]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}
        parts.append(array.tobytes())
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for part in parts:
        file.write(part)


def read_tensors(file: IO[bytes]) -> dict[str, Array]:
    """Read the arrays of a file. Raises `LoadError` for one that is damaged."""
    data = memoryview(file.read())
    length = int.from_bytes(data[:8], "little")
    if data.nbytes < 8 + length:
        raise LoadError("the header is longer than the file")
    header = json.loads(bytes(data[8 : 8 + length]).decode())
    body, found = data[8 + length :], {}
    for name, row in header.items():
        if name == "__metadata__":
            continue
        if row["dtype"] not in _NAMES:
            raise LoadError(f"{name!r} is of {row['dtype']}, a dtype that primgraph does not have")
        dtype, (begin, end) = np.dtype(_NAMES[row["dtype"]]), row["data_offsets"]
        count = math.prod(row["shape"])
        if not 0 <= begin <= end <= body.nbytes or end - begin != count * dtype.itemsize:
            raise LoadError(f"{name!r} has other bytes than its shape needs")
        array = np.frombuffer(body[begin:end], dtype).reshape(row["shape"])
        found[name] = array.astype(dtype.newbyteorder("="))
    return found
