"""Containers in readable code: access to arrays in arguments, and construction of results."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, final

from primgraph.codegen.targets.text.names import Names
from primgraph.ir.frontend.containers import Branch, Form, Key, Leaf, Tree

_PLAIN = re.compile(r"[ !#-\[\]-~]*", re.ASCII)
_TOLD = re.compile(r"[A-Za-z0-9_]+([. ][A-Za-z0-9_]+)*", re.ASCII)
_DISPLAYS: dict[type[Any], tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
}


def key_text(key: Key) -> str:
    """Return a dict key as a literal of printable ASCII."""
    if isinstance(key, str) and _PLAIN.fullmatch(key):
        return f'"{key}"'
    return ascii(key)


def printable_name(name: str, otherwise: str) -> str:
    """Return `name` if it is printable anywhere, else the other text."""
    return name if _TOLD.fullmatch(name) else otherwise


def is_row(tree: Tree) -> bool:
    """Return whether results are one array or a tuple of arrays, which needs no container code."""
    if isinstance(tree, Leaf):
        return True
    leaves = all(isinstance(part, Leaf) for part in tree.parts)
    return tree.kind is tuple and len(tree.parts) != 1 and leaves


def is_nested(form: Form | None) -> bool:
    """Return whether the readable code of such a function handles containers."""
    return form is not None and not (form.is_plain and is_row(form.results))


@final
@dataclass(slots=True)
class Classes:
    """Names for the classes of named tuples and dataclasses in results.

    A standalone file defines similar classes with the same fields, by `imports` and `lines`.
    Otherwise `table` has the classes themselves.
    """

    names: dict[Any, str] = field(default_factory=dict)
    imports: dict[str, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    table: dict[str, type[Any]] = field(default_factory=dict)

    def name(self, tree: Branch, taken: Names) -> str:
        """Return the name of the class of `tree`."""
        fields = tuple(map(str, tree.keys))
        key = (tree.kind, fields)
        if key not in self.names:
            hint = tree.kind.__name__
            self.names[key] = name = taken.name_from_hint(hint, "Result")
            maker = "namedtuple" if issubclass(tree.kind, tuple) else "make_dataclass"
            source = "collections" if issubclass(tree.kind, tuple) else "dataclasses"
            self.imports[f"from {source} import {maker}"] = None
            listed = ", ".join(map(key_text, fields))
            self.lines.append(
                f"{name} = {maker}({key_text(printable_name(hint, name))}, [{listed}])"
            )
            self.table[name] = tree.kind
        return self.names[key]


def accesses(tree: Tree, root: str) -> Iterator[str]:
    """Yield an expression for each leaf of the value of expression `root`."""
    if isinstance(tree, Leaf):
        yield root
        return
    for key, part in zip(tree.keys, tree.parts, strict=True):
        yield from accesses(part, _part_text(tree, key, root))


def lengths(tree: Tree, root: str, name: str) -> Iterator[tuple[str, int, str]]:
    """Yield the expression, length and name of each list, tuple and dict in `root`."""
    if isinstance(tree, Leaf):
        return
    if tree.kind in (list, tuple, dict):
        yield root, len(tree.keys), name
    for key, part in zip(tree.keys, tree.parts, strict=True):
        yield from lengths(part, _part_text(tree, key, root), f"{name}.{key}")


def _part_text(tree: Branch, key: Key, root: str) -> str:
    if tree.kind is dict:
        return f"{root}[{key_text(key)}]"
    if tree.kind in (list, tuple):
        return f"{root}[{key}]"
    name = str(key)
    return f"{root}.{name}" if _is_word(name) else f"getattr({root}, {name!a})"


def _is_word(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def result_lines(
    tree: Tree, texts: Iterable[str], classes: Classes, taken: Names, width: int
) -> list[str]:
    """Return the lines of an expression for results in the containers of `tree`.

    `texts` are the expressions of the leaves. A container that exceeds `width` is broken into
    lines; a tuple on one line has no parentheses.
    """
    lines = _laid_out(tree, iter(texts), classes, taken, width + len("()"))
    bare = not isinstance(tree, Leaf) and tree.kind is tuple and len(tree.parts) > 1
    return [lines[0][1:-1]] if bare and len(lines) == 1 else lines


def _laid_out(
    tree: Tree, texts: Iterator[str], classes: Classes, taken: Names, width: int
) -> list[str]:
    if isinstance(tree, Leaf):
        return [next(texts)]
    if tree.kind is NoneType:
        return ["None"]
    opening, closing = _brackets(tree, classes, taken)
    parts = [
        _prefix_label(_label(tree, key), _laid_out(part, texts, classes, taken, width - 4))
        for key, part in zip(tree.keys, tree.parts, strict=True)
    ]
    comma = "," if tree.kind is tuple and len(parts) == 1 else ""
    if all(len(lines) == 1 for lines in parts):
        line = f"{opening}{', '.join(lines[0] for lines in parts)}{comma}{closing}"
        if len(line) <= width:
            return [line]
    rows = [opening]
    for *most, last in parts:
        rows += [f"    {line}" for line in (*most, f"{last},")]
    return [*rows, closing]


def _brackets(tree: Branch, classes: Classes, taken: Names) -> tuple[str, str]:
    if tree.kind in _DISPLAYS:
        return _DISPLAYS[tree.kind]
    name = classes.name(tree, taken)
    return (f"{name}(", ")") if all(map(_is_word, map(str, tree.keys))) else (f"{name}(**{{", "})")


def _label(tree: Branch, key: Key) -> str:
    if tree.kind is dict:
        return f"{key_text(key)}: "
    if tree.kind in (list, tuple):
        return ""
    words = all(map(_is_word, map(str, tree.keys)))
    return f"{key}=" if words else f"{str(key)!a}: "


def _prefix_label(label: str, lines: list[str]) -> list[str]:
    return [label + lines[0], *lines[1:]]
