"""Functions of Paddle from rows of text: parameters, what they compute, and an example."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from primgraph.compat.paddle.framework import paddles
from primgraph.errors import ArgumentError
from primgraph.operators.handle import Handle
from primgraph.operators.names import define

_WORLD = "compat.paddle"


def define_functions(own: dict[str, Any], text: str, module: str = "paddle") -> list[str]:
    """Define the functions of rows, which are two lines each, in `own`; return their names.

    The first line is that of `define`. The second is the docstring, `|` and the arguments of an
    example, where lists stand for tensors, and its result: `->` of a tensor, `~` of one whose
    elements are rounded, `=>` of several, `=` of another object.
    """
    lines = [line for line in text.strip().split("\n") if line]
    blocks = [_block(*pair, module) for pair in zip(lines[::2], lines[1::2], strict=True)]
    world = module.replace("paddle", _WORLD, 1)
    return define(world, own, "\n\n".join(blocks), takes_tensors, "name=None")


def _block(head: str, more: str, module: str) -> str:
    doc, _, example = more.partition(" | ")
    name = head.partition("(")[0].partition("|")[0]
    for sign, form in _FORMS.items():
        given, found, result = example.rpartition(sign)
        if found:
            call = f"{module}.{name}({with_tensors(given)})"
            return f"{head}\n{doc}\n>>> {form.format(call)}\n{result}"
    raise AssertionError(f"the row of {name} has no example")


_FORMS = {
    " ~ ": "print({}.numpy().round(3))",
    " => ": "[found.tolist() for found in {}]",
    " -> ": "{}.tolist()",
    " = ": "{}",
}


def with_tensors(arguments: str) -> str:
    """Return arguments as text, with `paddle.to_tensor([...])` for lists, in tuples too."""
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    given = [_argument(a) for a in call.args]
    return ", ".join([*given, *(f"{k.arg}={_argument(k.value)}" for k in call.keywords)])


def _argument(value: ast.expr) -> str:
    if isinstance(value, ast.List):
        return f"paddle.to_tensor({ast.unparse(value)})"
    if isinstance(value, ast.Tuple) and any(isinstance(e, ast.List) for e in value.elts):
        return f"[{', '.join(map(_argument, value.elts))}]"
    return ast.unparse(value)


def takes_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `function` refuse arrays of NumPy, lists of numbers and numbers as first argument."""
    checked = paddles(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], Handle):
            _require_tensors(function.__name__, args[0])
        return checked(*args, **kwargs)

    return call


def _require_tensors(name: str, given: Any) -> None:
    first = given[0] if isinstance(given, Sequence) and given else given
    if isinstance(first, np.ndarray | np.generic | float | int | None):
        raise ArgumentError(
            f"(InvalidArgument) {name}(): argument 'x' (position 0) must be Tensor, but got "
            f"{type(given).__name__}",
            hint="paddle.to_tensor makes a tensor of it",
        )
