"""Programs in files: a zip of JSON and .npy members, and never a pickle."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, final

import numpy as np

from primgraph.errors import LoadError, PrimgraphError
from primgraph.initializers import Assign
from primgraph.ir.graph import Equation, Value
from primgraph.ir.params import Array
from primgraph.ir.primitive import lookup
from primgraph.ir.signature import checked
from primgraph.ir.source import Source
from primgraph.ir.types import DTYPE_OF_NAME, NAME_OF_DTYPE, TensorType
from primgraph.program import Program, State
from primgraph.scope import Scope

FORMAT = 1

_MEMBER = re.compile(r"(?:manifest|program)\.json|(?:constants|states)/\d{6}\.npy", re.ASCII)
_DATE = (1980, 1, 1, 0, 0, 0)

# A file that claims to unpack to more is refused before anything is read.
_LARGEST = 2**33

# What reading a damaged file may raise, below our own code and in it.
_DAMAGE = (
    *(PrimgraphError, zipfile.BadZipFile, zlib.error, EOFError, MemoryError, RecursionError),
    *(ArithmeticError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError),
    ValueError,
)


@checked
def save(program: Program, path: str | os.PathLike[str], scope: Scope | None = None) -> None:
    """Write `program` and the values of its states, from `scope` or its own, to one file.

    The same program with the same values gives the same bytes. The file is put in place whole:
    a crash leaves the old one. Raises `ArgumentError` for anything but a program, `OSError` where
    no file can be written.
    """
    members = _Writer(program, scope).members()
    listing = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in members}
    manifest = {"format": "primgraph", "version": FORMAT, "members": listing}
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}.")
    except OSError as error:
        # The name of the temporary file tells nobody anything.
        raise OSError(error.errno, error.strerror, str(target)) from None
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, data in [("manifest.json", _json(manifest)), *members]:
                info = zipfile.ZipInfo(name, _DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, data)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@checked
def load(path: str | os.PathLike[str]) -> Program:
    """The program that `save` wrote, with its states in its own scope.

    It can be run and differentiated as before; its variables are found by their names. Nothing
    in the file is executed. Raises `LoadError` for a file that is damaged or is no such file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _Reader(_checked_members(archive)).program()
    except LoadError:
        raise
    except OSError as error:
        raise LoadError(f"cannot read {os.fspath(path)!r}: {error}") from None
    except _DAMAGE as error:
        fault = f"{type(error).__name__}: {error}".splitlines()[0]
        raise LoadError(f"{os.fspath(path)!r} is damaged or no saved program: {fault}") from error


def _json(data: Any) -> bytes:
    return json.dumps(data, allow_nan=False, separators=(",", ":"), sort_keys=True).encode()


@final
class _Writer:
    """Turns a program into members: values and constants become numbers."""

    def __init__(self, program: Program, scope: Scope | None) -> None:
        self.program = program
        self.values = program.state_dict(scope)
        self.constants: dict[Array, int] = {}
        self.number: dict[Value, int] = {}

    def members(self) -> list[tuple[str, bytes]]:
        builder = self.program.builder
        inputs = [self._input(v) for v in builder.inputs]
        # Inputs and equations may have been made in turns; only equations depend on order.
        body = [self._equation(e) for e in builder.body]
        updates = [(self.number[s], self.number[n]) for s, n in self.program.updates.items()]
        described = {
            "name": self.program.name,
            "seed": self.program.random_seed,
            "keys": self.program.keys_taken,
            "inputs": inputs,
            "body": body,
            "names": {name: self.number[v] for name, v in builder.names.items()},
            "updates": updates,
            "stopped": sorted(self.number[v] for v in builder.stopped),
        }
        states = [self.values[s.name] for s in self.program.states.values()]
        return [
            ("program.json", _json(described)),
            *((f"constants/{i:06d}.npy", _npy(c.data)) for c, i in self.constants.items()),
            *((f"states/{i:06d}.npy", _npy(array)) for i, array in enumerate(states)),
        ]

    def _input(self, value: Value) -> Any:
        self.number[value] = len(self.number)
        state = self.program.states.get(value)
        return [value.hint, str(value.type), None if state is None else state.trainable]

    def _equation(self, eqn: Equation) -> Any:
        inputs = [self.number[v] for v in eqn.inputs]
        for value in eqn.outputs:
            self.number[value] = len(self.number)
        params = {name: self._encode(value) for name, value in eqn.params}
        types = [str(v.type) for v in eqn.outputs]
        source = eqn.source
        place = None
        if source is not None:
            place = [Path(source.file).name, source.line, source.role]
            place += [source.operator] if source.operator else []
        return [eqn.op.name, inputs, params, types, place]

    def _encode(self, value: Any) -> Any:
        """A parameter as JSON: whole numbers, booleans, strings and None stand for themselves."""
        if isinstance(value, tuple):
            return [self._encode(v) for v in value]
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, np.dtype):
            return {"dtype": NAME_OF_DTYPE[value]}
        if isinstance(value, Array):
            return {"constant": self.constants.setdefault(value, len(self.constants))}
        return value


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array).reshape(array.shape), (1, 0))
    return buffer.getvalue()


def _checked_members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """The members of the archive, which are those that its manifest lists, unharmed."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(set(names)) != len(names) or not all(_MEMBER.fullmatch(n) for n in names):
        raise LoadError("the archive has members that a saved program does not have")
    if sum(info.file_size for info in infos) > _LARGEST:
        raise LoadError(f"the archive unpacks to more than {_LARGEST} bytes")
    manifest = _parsed(_read(archive, "manifest.json", 2**24))
    if manifest.get("format") != "primgraph":
        raise LoadError("the archive is no saved program")
    if manifest.get("version") != FORMAT:
        raise LoadError(f"the format is {manifest.get('version')!r}; this version reads {FORMAT}")
    listing = manifest["members"]
    if {*listing, "manifest.json"} != set(names):
        raise LoadError("the archive has not the members that its manifest lists")
    found = {}
    for name, (size, digest) in listing.items():
        data = _read(archive, name, size)
        if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
            raise LoadError(f"member {name} is damaged")
        found[name] = data
    return found


def _read(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(name) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise LoadError(f"member {name} is larger than it should be")
    return data


def _parsed(data: bytes) -> Any:
    """JSON without the numbers that JSON does not have."""

    def refuse(text: str) -> Any:
        raise LoadError(f"{text} is no JSON number")

    parsed = json.loads(data.decode("utf-8"), parse_constant=refuse)
    if not isinstance(parsed, dict):
        raise LoadError("a JSON member is no object")
    return parsed


@final
class _Reader:
    """Turns members into a program; every type is inferred anew and compared."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self.members = members
        self.described = _parsed(members["program.json"])
        self.values: list[Value] = []

    def program(self) -> Program:
        described = self.described
        program = Program(described["name"])
        program.random_seed = described["seed"]
        program.keys_taken = _integer(described["keys"])
        for number, (name, type, trainable) in enumerate(described["inputs"]):
            self._input(program, number, name, _type(type), trainable)
        for row in described["body"]:
            self._equation(program, *row)
        for name, number in described["names"].items():
            if program.builder.names.get(name) is not self.values[_integer(number)]:
                program.builder.rename(self.values[number], name)
        for number in described["stopped"]:
            program.builder.stopped.add(self.values[_integer(number)])
        for state, new in described["updates"]:
            program.updates[self._state(program, state)] = self.values[_integer(new)]
        return program

    def _input(
        self, program: Program, number: int, name: str, type: TensorType, trainable: bool | None
    ) -> None:
        value = program.builder.input(type, name)
        self.values.append(value)
        if trainable is None:
            return
        array = _array(self.members[f"states/{len(program.states):06d}.npy"])
        program.scope.set(name, array, type)
        program.states[value] = State(name, type, Assign(array), bool(trainable))

    def _equation(
        self, program: Program, op: str, inputs: Any, params: Any, types: Any, place: Any
    ) -> None:
        operands = [self.values[_integer(i)] for i in inputs]
        decoded = {name: self._decode(value) for name, value in params.items()}
        program.builder.source = None if place is None else Source(*_place(place))
        outputs = program.builder.emit(lookup(op), operands, decoded)
        program.builder.source = None
        if [str(v.type) for v in outputs] != types:
            raise LoadError(f"{op} has another type than the file says")
        self.values.extend(outputs)

    def _state(self, program: Program, number: Any) -> Value:
        value = self.values[_integer(number)]
        if value not in program.states:
            raise LoadError("an update is of something that is no state")
        return value

    def _decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._decode(v) for v in value)
        if not isinstance(value, dict):
            return value
        ((kind, inner),) = value.items()
        if kind == "float":
            return float.fromhex(inner)
        if kind == "dtype":
            return DTYPE_OF_NAME[inner]
        if kind == "constant":
            return Array(_array(self.members[f"constants/{_integer(inner):06d}.npy"]))
        raise LoadError(f"{kind!r} is no kind of parameter")


def _integer(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise LoadError(f"{value!r} is no number of a value")
    return value


def _place(place: Any) -> tuple[str, int, str, str]:
    file, line, role, *rest = place
    (operator,) = rest or [""]
    if not all(isinstance(text, str) for text in (file, role, operator)):
        raise LoadError("a source line is malformed")
    return file, _integer(line), role, operator


def _type(text: str) -> TensorType:
    match = re.fullmatch(r"(\w+)\[((?:\d+(?:,\d+)*)?)\]", text, re.ASCII)
    if match is None:
        raise LoadError(f"{text!r} is no type")
    shape = tuple(int(n) for n in match[2].split(",") if n)
    return TensorType(shape, DTYPE_OF_NAME[match[1]])


def _array(data: bytes) -> np.ndarray[Any, Any]:
    """The array of a .npy member, whose header is compared with its size before any use."""
    buffer = io.BytesIO(data)
    if np.lib.format.read_magic(buffer) != (1, 0):
        raise LoadError("an array is stored in an unknown version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
    rest = data[buffer.tell() :]
    if fortran or dtype not in NAME_OF_DTYPE or math.prod(shape) * dtype.itemsize != len(rest):
        raise LoadError("an array does not have the size that its header says")
    return np.frombuffer(rest, dtype).reshape(shape)
