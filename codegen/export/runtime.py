"""The parts of files of C, by the names that they define: what a file needs is copied into it.

`portable.c` is written for these files. What it does not have comes from the runtime of native
code, in which macros stand for functions of several types: of these the one that is needed is
written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

_HERE = Path(__file__).parent
_FILES = (_HERE / "portable.c", _HERE.parent / "native" / "runtime.c")

_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINE = re.compile(r"#define (\w+)(\([^)]*\))? ?(.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\);?", re.DOTALL)
_NAMED = re.compile(r"\b(\w+)\s*\(")
# What no other compiler than GCC, and those like it, takes; and what threads would share.
_FOREIGN = re.compile(r"__attribute__|__builtin|__asm|#pragma|\b__[a-z]|_Thread_local")


@final
@dataclass(frozen=True, slots=True)
class Part:
    """A definition with its comment; `order` is its place among all."""

    name: str
    text: str
    order: int
    is_portable: bool

    @property
    def words(self) -> set[str]:
        return set(_WORD.findall(re.sub(r"/\*.*?\*/", "", self.text, flags=re.DOTALL)))


def required(names: Iterable[str]) -> list[str] | None:
    """The texts of the parts that define `names`, and of what these need, each behind what it reads.

    None if one of them is nowhere, or is not for any compiler.
    """
    known = _parts()
    found: dict[str, Part] = {}
    waiting = list(names)
    if not all(name in known for name in waiting):
        return None
    while waiting:
        name = waiting.pop()
        if name in found or name not in known:
            continue
        part = found[name] = known[name]
        if not part.is_portable:
            return None
        waiting += sorted(part.words - {name})
    texts = dict.fromkeys(p.text for p in sorted(found.values(), key=lambda p: p.order))
    return list(texts)


@cache
def _parts() -> dict[str, Part]:
    found: dict[str, Part] = {}
    for path in _FILES:
        # What comes first counts.
        for name, text in _Reader(path.read_text()).parts():
            portable = _FOREIGN.search(text) is None
            found.setdefault(name, Part(name, text, len(found), portable))
    return found


@final
class _Reader:
    """Reads the definitions of a file, which begin in the first column and end with a `}` there."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.macros: dict[str, tuple[list[str], str]] = {}

    def parts(self) -> Iterator[tuple[str, str]]:
        at, remark = 0, ""
        while at < len(self.lines):
            begin = at
            at = self._end(at)
            text = "\n".join(self.lines[begin:at])
            if not text.strip():
                remark = ""
            elif text.startswith("/*"):
                remark = f"{text}\n"
            else:
                yield from self._defined(text, remark)
                # A remark is that of the first of what stands together.
                remark = "" if not text.startswith("#") else remark

    def _end(self, at: int) -> int:
        """The line behind the definition, comment or directive that begins at one."""
        line = self.lines[at]
        if line.startswith("/*"):
            while "*/" not in self.lines[at]:
                at += 1
        elif line.startswith("#if"):
            depth = 0
            while True:
                depth += self.lines[at].startswith("#if")
                depth -= self.lines[at].startswith("#endif")
                if not depth:
                    break
                at += 1
        elif line.startswith("#"):
            while self.lines[at].endswith("\\"):
                at += 1
        elif line.rstrip().endswith("{") or (line and not line.rstrip().endswith((";", ")", "}"))):
            while not self.lines[at].startswith("}") and not self.lines[at].rstrip().endswith(";"):
                at += 1
                if self.lines[at].startswith((" ", "\t")):
                    while not self.lines[at].startswith("}"):
                        at += 1
                    break
        return at + 1

    def _defined(self, text: str, remark: str) -> Iterator[tuple[str, str]]:
        macro = _DEFINE.match(text)
        if macro is not None:
            name, parameters, body = macro.groups()
            body = re.sub(r"\s*\\\n", "\n", body)
            if parameters is not None:
                self.macros[name] = ([p.strip() for p in parameters[1:-1].split(",")], body)
            yield name, remark + re.sub(r" +\\\n", " \\\n", text)
            return
        if text.startswith("#"):
            # What is only there under a condition is not for all compilers.
            for name in _NAMED.findall(text) if text.startswith("#if") else ():
                yield name, f"#pragma\n{text}"
            return
        call = _CALL.fullmatch(text.strip())
        if call is not None and call[1] in self.macros:
            yield from self._expanded(call[1], call[2], remark)
            return
        name = self._name(text)
        if name:
            yield name, remark + _static(text)

    def _expanded(self, name: str, given: str, remark: str) -> Iterator[tuple[str, str]]:
        parameters, body = self.macros[name]
        values = [v.strip() for v in given.split(",")]
        if len(values) != len(parameters):
            return
        known = dict(zip(parameters, values, strict=True))
        text = _WORD.sub(lambda w: known.get(w[0], w[0]), body)
        text = re.sub(r"\s*##\s*", "", text)
        rows = text.strip("\n").split("\n")
        margin = min((len(r) - len(r.lstrip()) for r in rows if r.strip()), default=0)
        inner = _Reader("\n".join([r[margin:].rstrip() for r in rows]))
        inner.macros = self.macros
        for defined, part in inner.parts():
            yield defined, remark + part

    def _name(self, text: str) -> str:
        """What a definition defines: a type, or a function."""
        if text.startswith("typedef"):
            words = _WORD.findall(re.sub(r"__attribute__\s*\(\(.*\)\)", "", text))
            return words[-1] if words else ""
        if "{" not in text:
            return ""
        found = _NAMED.search(text)
        return "" if found is None else found[1]


def _static(text: str) -> str:
    """A function that is no other file's."""
    if text.startswith("typedef"):
        return text
    return text if text.startswith("static") else f"static {text}"
