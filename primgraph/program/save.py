"""Save and load programs: a zip of JSON and .npy members, without pickle."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, final

import numpy as np

from primgraph.base.files import open_regular
from primgraph.base.interpreter_limits import is_too_deep, too_deep
from primgraph.base.user_lines import Source, message_text
from primgraph.errors import LoadError
from primgraph.initializers import Assign
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim, parse_size
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Array, Named, find_named
from primgraph.ir.primitive import lookup
from primgraph.ir.text import read_type
from primgraph.ir.types import DTYPE_OF_NAME, NAME_OF_DTYPE, TensorType, as_shape
from primgraph.program.archives import DAMAGE, DATE, Archive, Members, npy, parse_json
from primgraph.program.program import Program
from primgraph.program.scope import Scope, State

FORMAT = 2

_MEMBER = re.compile(r"(?:manifest|program)\.json|(?:constants|states)/\d{6}\.npy", re.ASCII)

# Maximum compression ratio of JSON members; `save` stores denser ones uncompressed. Arrays may be
# all zeros; their unpacked size is known from their types.
_DENSEST = 50

# Maximum lengths of a manifest row, and of the text around the rows.
_ROW, _FRAME = 200, 1000


@check_arguments
def save(program: Program, path: str | os.PathLike[str], scope: Scope | None = None) -> None:
    """Write `program` and its state values, from `scope` or its own, to one file.

    The same program with the same values gives the same bytes. The file is replaced atomically,
    with the permissions of the old file, or those that `open` would give. Raises `ArgumentError`
    for anything but a program, `OSError` if the file cannot be written.

    >>> with pg.Program() as program:
    ...     y = pg.sin(pg.data("x", (2,)))
    >>> pg.save(program, "sine.pgz")
    """
    members = _Writer(program, scope).members()
    listing = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in members}
    manifest = {"format": "primgraph", "version": FORMAT, "members": listing}
    with replace_file(path) as file:
        archive = Archive(file, "w")
        for name, data in [("manifest.json", _json(manifest)), *members]:
            info = zipfile.ZipInfo(name, DATE)
            dense = name.endswith(".json") and len(zlib.compress(data)) * _DENSEST < len(data)
            info.compress_type = zipfile.ZIP_STORED if dense else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
        archive.close()


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces the one at `path`, with its mode, at the end.

    A path that is not a regular file, such as a pipe, is written directly.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # The system applies the umask to the mode of a new file, as for `open`.
    new = 0o666 if mode is None else 0o600
    is_made = False
    try:
        with open(temporary, "wb", opener=lambda name, _: os.open(name, flags, new)) as file:
            is_made = True
            yield file
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and not is_made:
            # The name of the temporary file would not help the user.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


@check_arguments
def load(path: str | os.PathLike[str]) -> Program:
    """Load the program that `save` wrote, with its states in its own scope.

    It can be run and differentiated; find its variables by name. Loading executes nothing, opens no
    other file, and unpacks no more than the declared types need. Raises `LoadError` for a file that
    is damaged or is no such file.

    >>> with pg.Program() as program:
    ...     y = 2.0 * pg.data("x", (2,))
    ...     y.name = "y"
    >>> pg.save(program, "double.pgz")
    >>> pg.Executor().run(pg.load("double.pgz"), {"x": [1.0, 2.0]}, ["y"])
    [array([2., 4.])]
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return _Reader(_read_manifest(archive)).program()
    except LoadError:
        raise
    except OSError as error:
        raise LoadError(f"cannot read {os.fspath(path)!r}: {error}") from None
    except DAMAGE as error:
        fault = f"{type(error).__name__}: {error}".splitlines()[0]
        raise LoadError(f"{os.fspath(path)!r} is damaged or no saved program: {fault}") from error


def _json(data: Any) -> bytes:
    return json.dumps(data, allow_nan=False, separators=(",", ":"), sort_keys=True).encode()


@final
class _Writer:
    """Writer that turns a program into members, with numbers for values and constants."""

    def __init__(self, program: Program, scope: Scope | None) -> None:
        self.program = program
        self.values = program.state_dict(scope)
        self.constants: dict[Array, int] = {}
        self.lines: dict[str, int] = {}
        self.number: dict[Value, int] = {}

    def members(self) -> list[tuple[str, bytes]]:
        builder = self.program.builder
        inputs = [self._input(v) for v in builder.inputs]
        # Inputs and equations may have been created in turns; only the order of equations matters.
        body = [self._equation(e, self.number) for e in builder.body]
        updates = [(self.number[s], self.number[n]) for s, n in self.program.updates.items()]
        described = {
            "name": self.program.name,
            "seed": self.program.random_seed,
            "keys": self.program.keys_taken,
            "inputs": inputs,
            "body": body,
            "names": {name: self.number[v] for name, v in builder.names.items()},
            "updates": updates,
            "lines": list(self.lines),
            "stopped": sorted(self.number[v] for v in builder.stopped),
        }
        states = [self.values[s.name] for s in self.program.states.values()]
        return [
            ("program.json", _json(described)),
            *((f"constants/{i:06d}.npy", npy(c.data)) for c, i in self.constants.items()),
            *((f"states/{i:06d}.npy", npy(array)) for i, array in enumerate(states)),
        ]

    def _input(self, value: Value) -> Any:
        self.number[value] = len(self.number)
        state = self.program.states.get(value)
        return [value.hint, str(value.type), None if state is None else state.trainable]

    def _equation(self, eqn: Equation, number: dict[Value, int]) -> Any:
        inputs = [number[v] for v in eqn.inputs]
        for value in eqn.outputs:
            number[value] = len(number)
        params = {name: self._encode(value) for name, value in eqn.params}
        types = [str(v.type) for v in eqn.outputs]
        return [eqn.op.name, inputs, params, types, self._place(eqn.source)]

    def _graph(self, graph: Graph) -> Any:
        """Encode a branch, or the body of a loop, with its own numbering."""
        number = {v: i for i, v in enumerate(graph.inputs)}
        inputs = [[v.hint, str(v.type)] for v in graph.inputs]
        body = [self._equation(e, number) for e in graph.body]
        return [graph.name, inputs, body, [number[v] for v in graph.outputs]]

    def _place(self, source: Source | None) -> Any:
        """Encode a source line with its text, as the reader may not have the file."""
        if source is None:
            return None
        text = self.lines.setdefault(source.text, len(self.lines))
        marks: list[int] = []
        if source.scope or source.order:
            marks = [self.lines.setdefault(source.scope, len(self.lines)), source.order]
        name = Path(source.file).name
        return [name, source.line, source.role, source.operator, text, *marks]

    def _encode(self, value: Any) -> Any:
        """Encode a parameter as JSON: integers, booleans, strings and None stand for themselves."""
        if isinstance(value, tuple):
            return [self._encode(v) for v in value]
        if isinstance(value, complex):
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, np.dtype):
            return {"dtype": NAME_OF_DTYPE[value]}
        if isinstance(value, Array):
            number = self.constants.setdefault(value, len(self.constants))
            return {"constant": [number, str(value.type)]}
        if isinstance(value, Named):
            return {"object": value.name}
        if isinstance(value, Graph):
            return {"graph": self._graph(value)}
        if isinstance(value, Dim):
            return {"size": str(value)}
        return value


def _read_manifest(archive: zipfile.ZipFile) -> Members:
    """Return the members listed in the manifest of a saved program."""
    members = Members(archive, _MEMBER, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    manifest = parse_json(
        members.unpack_member("manifest.json", _FRAME + _ROW * len(members.infos))
    )
    if manifest.get("format") != "primgraph":
        raise LoadError("the archive is no saved program")
    if manifest.get("version") != FORMAT:
        found = manifest.get("version")
        raise LoadError(f"the format is {found!r}; this version reads {FORMAT}")
    members.expect(manifest["members"])
    return members


@final
class _Reader:
    """Reader that builds a program from members; every type is inferred again and compared."""

    def __init__(self, members: Members) -> None:
        self.members = members
        most = _FRAME + _DENSEST * members.infos["program.json"].compress_size
        self.described = parse_json(members.unpack_member("program.json", most))
        self.lines = [message_text(_text(line)) for line in self.described["lines"]]
        self.constants: dict[int, Array] = {}
        self.values: list[Value] = []
        # Current nesting depth of graphs.
        self.depth = 0

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
            self._update(program, self.values[_integer(state)], self.values[_integer(new)])
        if self.members.unread:
            raise LoadError(f"the program has no {', '.join(sorted(self.members.unread))}")
        return program

    def _input(
        self, program: Program, number: int, name: str, type: TensorType, trainable: bool | None
    ) -> None:
        value = program.builder.input(type, name)
        self.values.append(value)
        if trainable is None:
            return
        array = self.members.array(f"states/{len(program.states):06d}.npy", type)
        program.scope.set(name, array, type)
        program.states[value] = State(name, type, Assign(array), bool(trainable))

    def _equation(
        self, program: Program, op: str, inputs: Any, params: Any, types: Any, place: Any
    ) -> None:
        outputs = self._emit_equation(
            program.builder, self.values, op, inputs, params, types, place
        )
        self.values.extend(outputs)

    def _emit_equation(
        self,
        builder: Builder,
        values: Sequence[Value],
        op: str,
        inputs: Any,
        params: Any,
        types: Any,
        place: Any,
    ) -> tuple[Value, ...]:
        operands = [values[_integer(i)] for i in inputs]
        decoded = {name: self._decode(value) for name, value in params.items()}
        builder.source = None if place is None else self._place(*place)
        outputs = builder.emit(lookup(op), operands, decoded, distinct=True)
        builder.source = None
        if [str(v.type) for v in outputs] != types:
            raise LoadError(f"{op} has another type than the file says")
        return outputs

    def _graph(self, name: Any, inputs: Any, body: Any, outputs: Any) -> Graph:
        """Decode a branch, or the body of a loop."""
        self.depth += 1
        if is_too_deep(self.depth):
            raise LoadError(too_deep())
        builder = Builder(_text(name))
        values = [builder.input(_type(type), _text(hint)) for hint, type in inputs]
        for row in body:
            values.extend(self._emit_equation(builder, values, *row))
        self.depth -= 1
        return builder.graph([values[_integer(i)] for i in outputs])

    def _place(
        self, file: Any, line: Any, role: Any, operator: Any, text: Any, *marks: Any
    ) -> Source:
        """Decode a source line, with the text stored in the file."""
        name, mode, part = (message_text(_text(word)) for word in (file, role, operator))
        scope, order = marks or (None, 0)
        layer = "" if scope is None else self.lines[_integer(scope)]
        told = self.lines[_integer(text)]
        return Source(name, _integer(line), mode, part, told, layer, _integer(order))

    def _update(self, program: Program, state: Value, new: Value) -> None:
        if state not in program.states:
            raise LoadError("an update is of something that is no state")
        if state.type != new.type:
            raise LoadError(f"{state.hint!r} is {state.type} and cannot become {new.type}")
        program.updates[state] = new

    def _decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._decode(v) for v in value)
        if not isinstance(value, dict):
            return value
        ((kind, inner),) = value.items()
        if kind == "float":
            return float.fromhex(inner)
        if kind == "complex":
            real, imaginary = map(float.fromhex, inner)
            return complex(real, imaginary)
        if kind == "dtype":
            return DTYPE_OF_NAME[inner]
        if kind == "constant":
            number, type = inner
            return self._constant(_integer(number), _type(type))
        if kind == "graph":
            return self._graph(*inner)
        if kind == "object":
            return find_named(_text(inner))
        if kind == "size":
            return parse_size(_text(inner))
        raise LoadError(f"{kind!r} is no kind of parameter")

    def _constant(self, number: int, type: TensorType) -> Array:
        found = self.constants.get(number)
        if found is None:
            array = self.members.array(f"constants/{number:06d}.npy", type)
            found = self.constants[number] = Array(array)
        elif found.type != type:
            raise LoadError(f"constant {number} is {found.type} and not {type}")
        return found


def _integer(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise LoadError(f"{value!r} is no number of a value")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise LoadError(f"{value!r:.100} is no text")
    return value


def _type(text: str) -> TensorType:
    match = re.fullmatch(r"(\w+)\[((?:\d+(?:,\d+)*)?)\]", text, re.ASCII)
    if match is None:
        return read_type(text)
    shape = as_shape([int(n) for n in match[2].split(",") if n])
    return TensorType(shape, DTYPE_OF_NAME[match[1]])
