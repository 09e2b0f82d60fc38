"""The docstring of a readable function: a summary, and the types of arguments and results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeAlias

from primgraph.codegen.ir.extents import extents_text
from primgraph.codegen.targets.text.layout import WIDTH
from primgraph.ir.frontend.result_names import Title
from primgraph.ir.types import TensorType

# A name and a type.
Told: TypeAlias = tuple[str, TensorType]

_SPOT = re.compile(r"[A-Za-z0-9_.,:\[\] <>-]{1,40}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.]{1,40}", re.ASCII)
# More names are counted instead of listed.
_MANY = 4
# Line width inside two levels of indentation.
_WIDTH = WIDTH - 8
# Longer lists are left out.
_LONGEST = 200


def docstring(
    inputs: Sequence[Told], outputs: Sequence[Told], titles: Sequence[Title]
) -> list[str]:
    """Return the lines of the docstring. Unnamed results have an empty name.

    Names are printable; parts of titles that are not are left out.
    """
    outputs = _without_positions(outputs)
    summary = f'"""{_summary(inputs, outputs, titles)}'
    if len(inputs) + len(outputs) > _LONGEST:
        return [f'{summary}"""']
    numbered = [(n or f"result {i}", t) for i, (n, t) in enumerate(outputs)]
    made = _list_types(numbered) if len(outputs) > 1 or outputs[:1] == numbered else []
    if len(outputs) == 1 and not made:
        made = [_type(outputs[0][1])]
    if len(outputs) > len(made) == 1 and not any(n for n, _ in outputs):
        made = [f"{_count_text(len(outputs))}: {_type(outputs[0][1])}"]
    returned = (
        [f"Returns {made[0]}"] if len(made) == 1 else ["Returns", *(f"    {m}" for m in made)]
    )
    return [summary, "", *_list_types(inputs), *(returned if made else []), '"""']


def _without_positions(outputs: Sequence[Told]) -> Sequence[Told]:
    """Return results without their positions in containers, if other parts of names tell them."""
    names = [".".join(x for x in n.split(".") if not x.isdigit()) or n for n, _ in outputs]
    if len(set(names)) < len(names):
        return outputs
    return [(name, t) for name, (_, t) in zip(names, outputs, strict=True)]


def _summary(inputs: Sequence[Told], outputs: Sequence[Told], titles: Sequence[Title]) -> str:
    """Return a one-line summary of all results."""
    counted = _count_text(len(outputs), "result")
    if inputs:
        counted += f" from {_join_names([n for n, _ in inputs])}"
    known = titles or (Title(),) * len(outputs)
    plain = [n for (n, _), t in zip(outputs, known, strict=True) if t.is_plain]
    states = [t.state for t in known if t.state]
    gradients = [t for t in known if t.by]
    parts = []
    if plain:
        parts.append(_join_names(plain))
    parts += _gradients(gradients, plain)
    if states:
        parts.append(f"new values of {_join_names(states, 'state')}")
    if len(plain) == len(outputs) and not all(plain):
        parts = [counted]
    text = ", and ".join(parts) or counted
    if not plain and len(parts) == 1 and gradients:
        sentence = text.removeprefix("the ")
        sentence = sentence[:1].upper() + sentence[1:] + "."
    else:
        sentence = f"Compute {text}."
    listed = [n for n, _ in outputs]
    are_named = bool(listed) and all(map(_NAME.fullmatch, listed))
    named = f"Compute {_listing(listed)}." if are_named else sentence
    plainly = len(plain) == len(outputs) and len(outputs) > _MANY
    for summary in (named, sentence) if plainly else (sentence, named):
        if len(summary) + len('    """') <= WIDTH:
            return summary
    return f"Compute {counted}."


def _count_text(count: int, kind: str = "array") -> str:
    return f"1 {kind}" if count == 1 else f"{count} {kind}s"


def _gradients(titles: Sequence[Title], plain: Sequence[str]) -> list[str]:
    """Return a phrase for the gradients of each target."""
    parts = []
    for (order, of, at), group in groupby(titles, lambda t: (t.order, t.of, t.at)):
        by = _join_names([t.by for t in group])
        target = f"`{of}`" if _NAME.fullmatch(of) else "what is computed"
        if _SPOT.fullmatch(at):
            target = f"{target} ({at})" if _NAME.fullmatch(of) else at
        what = "the gradient" if order == 1 else f"the gradient, taken {order} times,"
        parts.append(f"its gradient by {by}" if [of] == [*plain] else f"{what} of {target} by {by}")
    return parts


def _join_names(names: Sequence[str], kind: str = "array") -> str:
    if len(names) > _MANY or not all(map(_NAME.fullmatch, names)):
        return _count_text(len(names), kind)
    return _listing(names)


def _listing(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _list_types(told: Sequence[Told]) -> list[str]:
    """Return names with their types; names of one type share a line as far as they fit."""
    lines = []
    for type, group in groupby(told, lambda pair: pair[1]):
        waiting: list[str] = []
        for name, _ in group:
            if waiting and len(_line([*waiting, name], type)) > _WIDTH:
                lines.append(_line(waiting, type))
                waiting = []
            waiting.append(name)
        lines.append(_line(waiting, type))
    return lines


def _line(names: Sequence[str], type: TensorType) -> str:
    return f"{', '.join(names)}: {_type(type)}"


@lru_cache(maxsize=4096)
def _type(type: TensorType) -> str:
    return f"{type.dtype.name}, shape {extents_text(type.shape)}"
