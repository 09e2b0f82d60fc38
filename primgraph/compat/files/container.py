"""Containers of objects: zip files of a JSON member and of the elements of arrays."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from typing import IO, Any, final

import numpy as np

from primgraph.base.files import open_regular
from primgraph.compat.files.decoding import Decoder, Makers
from primgraph.compat.files.encoding import Encoder
from primgraph.compat.files.safetensors import read_tensors, write_tensors
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, LoadError
from primgraph.program.archives import DAMAGE, DATE, Archive, Members, parse_json
from primgraph.program.save import replace_file

_MEMBER = re.compile(r"objects\.json|arrays/\d{6}", re.ASCII)
_LONGEST_JSON = 2**30
_FOREIGN = (
    "it was written by pickle, and loading it would run code: load it there, and write its arrays "
    "with numpy.savez or as .safetensors"
)


@final
class Files:
    """Saving and loading for a system: its family of tensors, and makers of its objects."""

    def __init__(
        self, family: type[Tensor], makers: Makers, is_parameter: Callable[[Any], bool]
    ) -> None:
        self._family, self._makers, self._is_parameter = family, makers, is_parameter

    def save(self, x: Any, file: Any) -> None:
        """Write an object to a path or to a file that is open for writing.

        A path is replaced atomically. With the suffix `.safetensors` a dict of tensors is written
        in that format.
        """
        if isinstance(file, str | os.PathLike):
            if str(file).endswith(".safetensors"):
                with replace_file(file) as opened:
                    write_tensors(x, opened)
                return
            data = self._pack(x)
            with replace_file(file) as opened:
                opened.write(data)
        elif hasattr(file, "write"):
            file.write(self._pack(x))
        else:
            raise ArgumentError(f"save takes a path or a file, not {file!r:.60}")

    def _pack(self, x: Any) -> bytes:
        encoder = Encoder(self._is_parameter)
        tree = encoder.encode(x)
        arrays = [np.ascontiguousarray(a).reshape(a.shape) for a in encoder.arrays]
        listing = [[a.dtype.newbyteorder("<").str, list(a.shape)] for a in arrays]
        head = {"format": "primgraph objects", "version": 1, "arrays": listing, "object": tree}
        memory = io.BytesIO()
        archive = Archive(memory, "w")
        archive.writestr(zipfile.ZipInfo("objects.json", DATE), json.dumps(head).encode())
        for i, a in enumerate(arrays):
            little = a.astype(a.dtype.newbyteorder("<"), copy=False)
            archive.writestr(zipfile.ZipInfo(f"arrays/{i:06d}", DATE), little.tobytes())
        archive.close()
        return memory.getvalue()

    def load(self, file: Any) -> Any:
        """Read an object from a path or from a file that is open for reading.

        Raises `FileNotFoundError` for a path without a file, and `LoadError` for a file that is
        damaged or was not written by `save`.
        """
        is_path = isinstance(file, str | os.PathLike)
        if not (is_path or hasattr(file, "read")):
            raise ArgumentError(f"load takes a path or a file, not {file!r:.60}")
        with open_regular(file) if is_path else nullcontext(file) as opened:
            try:
                return self._read(opened, is_path and str(file).endswith(".safetensors"))
            except LoadError:
                raise
            except DAMAGE as error:
                raise LoadError(f"{_name(file)} is damaged: {error}") from error

    def _read(self, file: IO[bytes], is_safetensors: bool) -> Any:
        if is_safetensors:
            known = read_tensors(file)
            return {name: self._makers["tensor"](a, False) for name, a in known.items()}
        # A buffer is read from where it stands.
        data = io.BytesIO(file.read())
        if not zipfile.is_zipfile(data):
            is_pickle = data.getvalue()[:1] == b"\x80"
            reason = _FOREIGN if is_pickle else "it is no zip file"
            raise LoadError(f"{_name(file)} is no file that primgraph saved: {reason}")
        with zipfile.ZipFile(data) as archive:
            if "objects.json" not in archive.namelist():
                is_pickle = any(n.endswith("data.pkl") for n in archive.namelist())
                reason = _FOREIGN if is_pickle else "it has no objects"
                raise LoadError(f"{_name(file)} is no file that primgraph saved: {reason}")
            members = Members(archive, _MEMBER, (zipfile.ZIP_STORED,))
            head = parse_json(members.unpack_member("objects.json", _LONGEST_JSON))
            if head.get("version") != 1:
                raise LoadError(f"{_name(file)} was written by a later version of primgraph")
            rows = enumerate(head["arrays"])
            arrays = [_array(members, f"arrays/{i:06d}", *row) for i, row in rows]
        return Decoder(arrays, self._makers, self._family).decode(head["object"])


def _array(members: Members, name: str, text: str, shape: list[int]) -> Any:
    """Return the array of a member, of that dtype and shape."""
    dtype = np.dtype(text)
    if dtype.kind not in "biufcSU" or any(n < 0 for n in shape):
        raise LoadError(f"member {name} is no array of {text}{shape}")
    size = dtype.itemsize
    for n in shape:
        size *= n
    data = members.unpack_member(name, size, size)
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False).reshape(shape)


def _name(file: Any) -> str:
    return repr(os.fspath(file)) if isinstance(file, str | os.PathLike) else "the file"
