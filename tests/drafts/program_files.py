"""Random programs in texts and files: they come back as they were, and any damage is told."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from program_derivatives import demand

import primgraph as pg
from primgraph.ir.graph import Graph, Value
from primgraph.ir.rebuild import copy as copied
from primgraph.ir.text import parse, to_text
from primgraph.ir.verify import verify

_CHARACTERS = '%()[]{}=:,"\\#.-+0123456789abefgnrxX_ \t\n\r\x00\x0c\x1b\x85é²\u2028\ud800😀'
_TOKENS = re.compile(r'%?[A-Za-z_]\w*|%"[^"]*"|\d+|\S|\s+')

# What stands in the place of a token; much of it is read by functions of Python's and NumPy's.
_WORDS = (
    *("", " ", "0", "-1", "1.5", "00", "256", "-129", "1e999", "inf", "nan", "-0.0", "0x", "0x0"),
    *("9" * 25, "9" * 5000, "1e", "True", "None", "f64", "i8", "bool", "f64[", "f64[]", "q64"),
    *("f64[2]{0x00}", "bool[2]{0x0203}", "i8[1]{300}", "u8[1]{-1}", "f64[1]{x}", "f16[1]{1e9}"),
    *("f64[-1]", "f64[1.5]", "f64[inf]", "f64[9223372036854775807,4]", "f64[2 2]", "f64[,]"),
    *('"\\q"', '"\\ud800"', '"', '""', '%""', '%"\\u12"', '%"\\x"', "%", "%%", "(" * 3000, "[" * 9),
    *("f64[200]{sha256:}", "f64[2]{sha256:00}", "graph", "return", "}", "{", "=", ")", ",", "#"),
    *("axes=(0,)", "axes=(9,)", "axes=(-1,)", "shape=(2,)", "shape=(-3,)", "dtype=f64", "value=1"),
)


# Texts.


def _one(rng: np.random.Generator, count: int) -> int:
    return int(rng.integers(max(count, 1)))


def _deleted(text: str, rng: np.random.Generator) -> str:
    i = _one(rng, len(text))
    return text[:i] + text[i + 1 + _one(rng, 8) * _one(rng, 2) :]


def _replaced(text: str, rng: np.random.Generator) -> str:
    i = _one(rng, len(text))
    return text[:i] + _CHARACTERS[_one(rng, len(_CHARACTERS))] + text[i + _one(rng, 2) :]


def _swapped(text: str, rng: np.random.Generator) -> str:
    i = _one(rng, len(text) - 1)
    return text[:i] + text[i : i + 2][::-1] + text[i + 2 :]


def _truncated(text: str, rng: np.random.Generator) -> str:
    return text[: _one(rng, len(text))]


def _another_token(text: str, rng: np.random.Generator) -> str:
    words = _TOKENS.findall(text) or [""]
    i, kind = _one(rng, len(words)), rng.random()
    words[i] = words[_one(rng, len(words))] if kind < 0.4 else _WORDS[_one(rng, len(_WORDS))]
    return "".join(words)


def _moved_line(text: str, rng: np.random.Generator) -> str:
    lines = text.split("\n")
    taken = lines.pop(_one(rng, len(lines)))
    kind = _one(rng, 3)
    place = _one(rng, len(lines) + 1)
    lines[place:place] = [[], [taken], [taken, taken]][kind]
    return "\n".join(lines)


_OF_TEXT = (_deleted, _replaced, _swapped, _truncated, _another_token, _another_token, _moved_line)


def damaged_text(graph: Graph, rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """The text of `graph` with damage at one to three places, and the constants beside it."""
    text = to_text(graph)
    for _ in range(1 + _one(rng, 3) * _one(rng, 2)):
        text = _OF_TEXT[_one(rng, len(_OF_TEXT))](text, rng)
    constants: dict[str, Any] = dict(graph.constants)
    for key in list(constants):
        kind = _one(rng, 4)
        if kind == 1:
            del constants[key]
        elif kind == 2:
            constants[key] = [3, "x", np.zeros(3), constants[key][::-1]][_one(rng, 4)]
    return text, constants


def check_damaged_text(graph: Graph, rng: np.random.Generator) -> str:
    """The kind of fault that is found in a damaged text of `graph`; empty where there is none."""
    text, constants = damaged_text(graph, rng)
    try:
        found = parse(text, constants)
    except pg.LoadError as error:
        return _located(error, text)
    verify(found)
    printed = to_text(found)
    again = parse(printed, found.constants)
    demand(again == found, "damaged text was read, but does not print and read back")
    demand(to_text(again) == printed, "damaged text was read, but prints differently again")
    return ""


def _located(error: pg.LoadError, text: str) -> str:
    """What the error says after line and column, which have to be in the text."""
    found = re.match(r"graph text, line (\d+), column (\d+): (.+)", error.message)
    if found is None or "\n" in error.message:
        raise AssertionError(f"no line and column: {error.message!r}")
    lines = text.splitlines() or [""]
    line, column = int(found[1]), int(found[2])
    if not (1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1].rstrip()) + 1):
        raise AssertionError(f"there is no such place: {error.message!r}")
    return _kind(found[3])


def _kind(fault: str) -> str:
    """The same for the same fault of other names and numbers."""
    return " ".join(re.findall(r"[a-z]{2,}", re.sub(r"'[^']*'|\"[^\"]*\"", "", fault))[:4])


# Files.


def program_of(graph: Graph, rng: np.random.Generator) -> pg.Program:
    """A program of these equations: some inputs are states, and some of those have updates."""
    program = pg.Program("random")
    moved: dict[Value, Value] = {}
    with program:
        for i, value in enumerate(graph.inputs):
            if value.type.is_float and not value.type.names and rng.random() < 0.5:
                made = pg.create_parameter(value.type.shape, value.type.dtype, name=f"s{i}")
            else:
                made = pg.data(f"x{i}", value.type.shape, value.type.dtype)
            moved[value] = made.value
    for eqn in graph.body:
        copied(program.builder, eqn, moved)
    results = [moved[v] for v in graph.outputs]
    for state in program.states:
        fitting = [v for v in results if v.type == state.type]
        if fitting:
            program.updates[state] = fitting[_one(rng, len(fitting))]
    return program


def check_file(program: pg.Program, path: Path) -> None:
    """A saved program comes back as it was, to the byte of its states and of the file."""
    pg.save(program, path)
    again = pg.load(path)
    demand(again.graph() == program.graph(), "another program was loaded than was saved")
    demand(_updates(again) == _updates(program), "states or updates differ after loading")
    values = [p.state_dict() for p in (program, again)]
    for name, value in values[0].items():
        demand(values[1][name].tobytes() == value.tobytes(), f"state {name} differs after loading")
    lines = [[e.source.text for e in p.builder.body if e.source] for p in (program, again)]
    demand(lines[0] == lines[1], "source lines differ after loading")
    before = path.read_bytes()
    pg.save(again, path)
    demand(path.read_bytes() == before, "what was loaded saves as another file")


def _updates(program: pg.Program) -> list[tuple[str, int | None]]:
    """The name of each state, and the number of the value that a run stores in it."""
    number = {v: i for i, v in enumerate(v for e in program.builder.body for v in e.outputs)}
    number |= {v: -1 - i for i, v in enumerate(program.builder.inputs)}
    updates = program.updates
    return [
        (s.name, number[updates[v]] if v in updates else None) for v, s in program.states.items()
    ]


_STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 1.5, 10**30, "", "x", "f64[2]", "\ud800", [], [0], {}, {"a": 1}),
    *({"float": "x"}, {"float": "1e999999"}, {"dtype": "x"}, {"constant": 3}, {"constant": [9, 9]}),
    *({"constant": [0, "f64[3]"]}, [[[[]]]], "9" * 5000, f"f64[{2**70}]", "f64[0]", ["x", 1, ""]),
)


def _places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, list | dict):
            yield from _places(value, (*path, key))
        else:
            yield (*path, key)


def _changed_json(members: dict[str, bytes], rng: np.random.Generator) -> None:
    """Another value at one place of a JSON member, or none, or two that change places."""
    name = "manifest.json" if rng.random() < 0.1 else "program.json"
    try:
        data = json.loads(members[name])
        places = list(_places(data))
    except (KeyError, ValueError, TypeError, RecursionError):
        # Other damage has been there before.
        return
    if not places:
        return
    path, other = places[_one(rng, len(places))], places[_one(rng, len(places))]
    holder, source = data, data
    for key in path[:-1]:
        holder = holder[key]
    for key in other[:-1]:
        source = source[key]
    kind = rng.random()
    if kind < 0.2:
        del holder[path[-1]]
    elif kind < 0.5:
        holder[path[-1]] = copy.deepcopy(source[other[-1]])
    else:
        holder[path[-1]] = _STRANGE[_one(rng, len(_STRANGE))]
    members[name] = json.dumps(data).encode()


def _changed_bytes(members: dict[str, bytes], rng: np.random.Generator) -> None:
    """Another byte in some member, mostly near its beginning, where headers are."""
    name = sorted(members)[_one(rng, len(members))]
    data = bytearray(members[name])
    if data:
        most = min(len(data), 128) if rng.random() < 0.7 else len(data)
        data[_one(rng, most)] = _one(rng, 256)
    members[name] = bytes(data)


def _changed_members(members: dict[str, bytes], rng: np.random.Generator) -> None:
    """A member that is missing, is another's, has another name, or is longer or shorter."""
    names = sorted(members)
    name, other = names[_one(rng, len(names))], names[_one(rng, len(names))]
    kind = _one(rng, 5)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[name] = members[other]
    elif kind == 2:
        named = ("../x", "kernel.py", "states/000099.npy", "constants/0.npy", "program.json/", "x")
        members[named[_one(rng, len(named))]] = members[name]
    elif kind == 3:
        members[name] += bytes(1 + _one(rng, 3000))
    else:
        members[name] = members[name][: _one(rng, len(members[name]))]


_OF_MEMBERS: tuple[Callable[[dict[str, bytes], np.random.Generator], None], ...] = (
    *(_changed_json, _changed_json, _changed_json),
    *(_changed_bytes, _changed_members),
)


def archive_of(members: dict[str, bytes], sign: bool) -> bytes:
    """An archive of these members; with `sign`, the manifest says what they are."""
    if sign and "manifest.json" in members:
        try:
            manifest = json.loads(members["manifest.json"])
            manifest["members"] = {
                name: [len(data), hashlib.sha256(data).hexdigest()]
                for name, data in members.items()
                if name != "manifest.json"
            }
            members["manifest.json"] = json.dumps(manifest).encode()
        except (ValueError, TypeError, RecursionError):
            pass
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def damaged_file(data: bytes, rng: np.random.Generator) -> bytes:
    """A saved program with damage: mostly such that sums and sizes still agree."""
    if rng.random() < 0.25:
        found = bytearray(data)
        for _ in range(1 + _one(rng, 3)):
            # The directory at the end says what is where.
            place = _one(rng, len(found)) if rng.random() < 0.5 else -1 - _one(rng, 400)
            found[max(place, -len(found))] = _one(rng, 256)
        return bytes(found[: _one(rng, len(found))] if rng.random() < 0.1 else found)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(1 + _one(rng, 2)):
        if members:
            _OF_MEMBERS[_one(rng, len(_OF_MEMBERS))](members, rng)
    return archive_of(members, sign=rng.random() < 0.9)


def check_damaged_file(data: bytes, path: Path, rng: np.random.Generator) -> str:
    """The kind of fault that is found in the damaged file `data`; empty where there is none."""
    path.write_bytes(damaged_file(data, rng))
    try:
        program = pg.load(path)
    except pg.LoadError as error:
        return _kind(error.message.removeprefix(repr(str(path))))
    verify(program.graph())
    str(program)
    check_file(program, path)
    return ""


def check_files(graph: Graph, rng: np.random.Generator) -> None:
    """All checks of this file, for a program of the equations of `graph`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pgz"
        check_file(program_of(graph, rng), path)
        check_damaged_file(path.read_bytes(), path, rng)
    check_damaged_text(graph, rng)
