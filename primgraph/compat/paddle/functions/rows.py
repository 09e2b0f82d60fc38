"""Functions of Paddle from rows of text: parameters, what they compute, and an example."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from primgraph.compat.paddle.framework import paddles
from primgraph.errors import ArgumentError
from primgraph.operators.handle import Handle
from primgraph.operators.names import define

_WORLD = "compat.paddle"

# Functions whose second argument is a tensor, too; operators take numbers.
_OF_TWO = frozenset((
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "less_than",
    "less_equal", "greater_than", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "matmul", "atan2", "logaddexp", "hypot",
    "copysign", "heaviside", "kron", "inner", "outer", "dot",
))  # fmt: skip

# Torch's names of parameters.
_ALIASES = {"dim": "axis", "input": "x", "other": "y", "tensors": "x"}

# Functions without the parameter `name`, which others have after those by position.
_UNNAMED = (
    "cast", "diag_embed", "index_sample", "msort", "nanquantile", "narrow", "nonzero", "permute",
    "put_along_axis", "rank", "ravel", "renorm", "scatter_add", "shape", "slice", "softmax",
    "take_along_axis|take_along_dim", "unbind", "unstack", "argwhere", "view_as_complex",
    "view_as_real", "true_divide", "scatter_reduce",
)  # fmt: skip
# The same in `paddle.nn.functional`.
_UNNAMED_OF_NETWORKS = (
    "cosine_similarity", "ctc_loss", "dropout1d", "npair_loss", "softmax_with_cross_entropy",
    "square_error_cost", "temporal_shift",
)  # fmt: skip


def define_functions(own: dict[str, Any], text: str, module: str = "paddle") -> list[str]:
    """Define the functions of rows, which are two lines each, in `own`; return their names.

    The first line is that of `define`. The second is the docstring, `|` and the arguments of an
    example, where lists stand for tensors, and its result: `->` of a tensor, `~` of one whose
    elements are rounded, `=>` of several, `=` of another object.
    """
    lines = [line for line in text.strip().split("\n") if line]
    blocks = [_block(*pair, module) for pair in zip(lines[::2], lines[1::2], strict=True)]
    world = module.replace("paddle", _WORLD, 1)
    return define(world, own, "\n\n".join(blocks), takes_tensors, ("name",))


def _block(head: str, more: str, module: str) -> str:
    doc, _, example = more.partition(" | ")
    names = head.partition("(")[0]
    name = names.partition("|")[0]
    if names not in (_UNNAMED_OF_NETWORKS if module.startswith("paddle.nn") else _UNNAMED):
        head = _with_name(head)
    for sign, form in _FORMS.items():
        given, found, result = example.rpartition(sign)
        if found:
            call = f"{module}.{name}({with_tensors(given)})"
            return f"{head}\n{doc}\n>>> {form.format(call)}\n{result}"
    raise AssertionError(f"the row of {name} has no example")


def _with_name(head: str) -> str:
    """Return the head of a row with `name=None` after the parameters by position."""
    for end in (") = ", "): "):
        call, found, rest = head.partition(end)
        if found:
            first, star, last = call.partition(", *, ")
            return f"{first}, name=None{star}{last}{found}{rest}"
    raise AssertionError(f"{head} does not say what is computed")


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
    """Let `function` refuse arrays of NumPy, lists of numbers and numbers as first argument.

    It takes torch's names of parameters as well, as Paddle's functions do.
    """
    checked = paddles(function)
    is_of_two = function.__name__ in _OF_TWO
    known = inspect.signature(function).parameters
    aliases = {a: name for a, name in _ALIASES.items() if name in known and a not in known}

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not aliases.keys().isdisjoint(kwargs):
            kwargs = {aliases.get(name, name): value for name, value in kwargs.items()}
        if args and not isinstance(args[0], Handle):
            _require_tensors(function.__name__, args[0])
        if is_of_two and len(args) > 1 and not isinstance(args[1], Handle):
            _require_tensors(function.__name__, args[1], "y")
        return checked(*args, **kwargs)

    return call


def _require_tensors(name: str, given: Any, parameter: str = "x") -> None:
    first = given[0] if isinstance(given, Sequence) and given else given
    if isinstance(first, np.ndarray | np.generic | float | int | None):
        raise ArgumentError(
            f"(InvalidArgument) {name}(): argument {parameter!r} must be Tensor, but got "
            f"{type(given).__name__}",
            hint="paddle.to_tensor makes a tensor of it",
        )
