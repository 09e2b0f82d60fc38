"""Archives of arrays and JSON: written atomically, and read with full validation."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.errors import LoadError, PrimgraphError
from primgraph.ir.types import TensorType

Array: TypeAlias = "np.ndarray[Any, Any]"

# Constant date of all members, so that equal content gives equal bytes.
DATE = (1980, 1, 1, 0, 0, 0)

# A file that declares a larger unpacked size is rejected before reading.
_LARGEST = 2**33

# Bounds of the length of a .npy header.
_LEAST_HEADER, _LONGEST_HEADER = 10, 1000

_MAGIC = b"\x93NUMPY\x01\x00"

_CHUNK = 2**20

# Exceptions that reading a damaged file may raise, in the standard library and here.
DAMAGE = (
    *(PrimgraphError, zipfile.BadZipFile, zlib.error, EOFError, MemoryError, RecursionError),
    *(ArithmeticError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError),
    *(ValueError, struct.error),
)


@final
class Archive(zipfile.ZipFile):
    """Zip file for writing, closed explicitly, not by `with`.

    If writing is interrupted it stays unfinished: closing it would raise another error.
    """

    # Do not close it in the destructor either. This one is in C: an exception in a Python
    # destructor would be lost.
    __del__ = object.__hash__  # type: ignore[assignment]


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Return the arrays by name in NumPy's .npz format, uncompressed; all names are allowed."""
    memory = io.BytesIO()
    archive = Archive(memory, "w")
    for name, array in arrays.items():
        info = zipfile.ZipInfo(f"{name}.npy", DATE)
        with archive.open(info, "w", force_zip64=True) as file:
            np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)
    archive.close()
    return memory.getvalue()


def npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
    np.lib.format.write_array(buffer, little, (1, 0))
    return buffer.getvalue()


def _header(type: TensorType) -> bytes:
    """Return the .npy header that NumPy writes for such an array, without padding.

    Comparison suffices: NumPy's own reader would parse any Python literal.
    """
    descr = type.dtype.newbyteorder("<").str
    return f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {type.shape}, }}".encode()


def _end_of_header(data: memoryview) -> int:
    begin = len(_MAGIC) + 2
    return begin + int.from_bytes(data[len(_MAGIC) : begin], "little")


def _elements(name: str, data: memoryview, type: TensorType) -> memoryview:
    """Return the elements in a .npy member, which must have this type."""
    end = _end_of_header(data)
    header = bytes(data[len(_MAGIC) + 2 : end]).rstrip(b" \n")
    if data[: len(_MAGIC)] != _MAGIC or header != _header(type):
        raise LoadError(f"member {name} is not the {type} that it should be")
    if data.nbytes - end != type.nbytes:
        raise LoadError(f"member {name} has another size than it should have")
    return data[end:]


@final
class Members:
    """Members of an archive that match `names` and are packed by `methods`; each is read once.

    The caller gives the size limit of a member. The declared size is checked before unpacking, and
    the unpacked data against both.
    """

    def __init__(
        self, archive: zipfile.ZipFile, names: re.Pattern[str], methods: Sequence[int]
    ) -> None:
        self.archive = archive
        infos = archive.infolist()
        self.infos = {info.filename: info for info in infos}
        if len(self.infos) != len(infos) or not all(names.fullmatch(n) for n in self.infos):
            raise LoadError("the archive has members that such a file does not have")
        if any(info.compress_type not in methods for info in infos):
            raise LoadError("the archive is packed by a method that such a file does not use")
        if sum(info.file_size for info in infos) > _LARGEST:
            raise LoadError(f"the archive unpacks to more than {_LARGEST} bytes")
        assert archive.fp is not None
        if sum(info.compress_size for info in infos) > archive.fp.seek(0, os.SEEK_END):
            raise LoadError("the members of the archive are larger than itself")
        self.listing: dict[str, Any] = {}
        self.unread = set(self.infos)

    def expect(self, listing: dict[str, Any]) -> None:
        """Set the expected remaining members, each with size and digest."""
        if set(listing) != self.unread:
            raise LoadError("the archive has not the members that its manifest lists")
        self.listing = listing

    def raw(self, name: str) -> bytearray:
        """Return the bytes of a stored .npy member of any length."""
        info = self.infos[name]
        data = memoryview(self.unpack_member(name, info.compress_size, _LEAST_HEADER))
        count = data.nbytes - _end_of_header(data)
        return bytearray(_elements(name, data, TensorType((max(count, 0),), np.dtype(np.uint8))))

    def array(self, name: str, type: TensorType) -> np.ndarray[Any, Any]:
        """Return the array of a .npy member, which must have this type."""
        data = memoryview(self.unpack_member(name, type.nbytes + _LONGEST_HEADER, type.nbytes))
        little = np.frombuffer(_elements(name, data, type), type.dtype.newbyteorder("<"))
        array = little.astype(type.dtype, copy=False).reshape(type.shape)
        array.setflags(write=False)
        return array

    def unpack_member(self, name: str, most: int, least: int = 0) -> bytearray:
        """Unpack a member of `least` to `most` bytes, and check its integrity."""
        size = self.infos[name].file_size
        listed, digest = self.listing.get(name, (size, None))
        if not least <= size <= most or size != listed:
            raise LoadError(f"member {name} has another size than it should have")
        self.unread.remove(name)
        found, sum = bytearray(), hashlib.sha256()
        with self.archive.open(name) as file:
            while chunk := file.read(min(_CHUNK, size + 1 - len(found))):
                found += chunk
                sum.update(chunk)
        if len(found) != size or digest not in (None, sum.hexdigest()):
            raise LoadError(f"member {name} is damaged")
        return found


def parse_json(data: bytearray) -> Any:
    """Parse JSON without NaN and infinities."""

    def refuse(text: str) -> Any:
        raise LoadError(f"{text} is no JSON number")

    parsed = json.loads(data.decode("utf-8"), parse_constant=refuse)
    if not isinstance(parsed, dict):
        raise LoadError("a JSON member is no object")
    return parsed
