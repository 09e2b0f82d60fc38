"""Names for packages that add their own primitives, operators or passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.table import give_card, spell, spelled
from primgraph.codegen.targets.c.user_c import spell_c
from primgraph.errors import CheckError, unknown_name
from primgraph.inspect.check import check_grads
from primgraph.ir.builder import Builder
from primgraph.ir.facts.ranges import DOMAIN, FINITE_SLOPE, RANGE, Range
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Fact, Linear, Primitive, lookup, primitive, registered
from primgraph.ir.rebuild import copy, keep, rebuild
from primgraph.ir.text import parse, to_text
from primgraph.ir.types import TensorType, as_dtype
from primgraph.operators.call import operator, public
from primgraph.operators.numpy_overrides import implements
from primgraph.operators.promotion import lift
from primgraph.operators.variable import emit
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.elementwise import elementwise
from primgraph.primitives.shapes import with_batch_axis
from primgraph.program.compile import compile
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.dataflow.contract import (
    every_equation_is_used,
    primitives_only,
    transform,
)
from primgraph.transforms.pipeline import add_pass, pass_names
from primgraph.transforms.rewrite.rule import Family, Seen

__all__ = [
    "DOMAIN",
    "FINITE_SLOPE",
    "RANGE",
    "Builder",
    "Card",
    "Equation",
    "Fact",
    "Family",
    "Graph",
    "Linear",
    "Primitive",
    "Range",
    "Seen",
    "TensorType",
    "Value",
    "add_pass",
    "check_primitive",
    "copy",
    "elementwise",
    "emit",
    "every_equation_is_used",
    "give_card",
    "implements",
    "keep",
    "lift",
    "lookup",
    "operator",
    "pass_names",
    "primitive",
    "primitives_only",
    "public",
    "rebuild",
    "registered",
    "spell",
    "spell_c",
    "spelled",
    "transform",
    "with_batch_axis",
    "zeros_like",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.extend", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)


Array = np.ndarray[Any, Any]

# How far apart two results may be, in units of the last place of the largest element.
_ROUNDING = 64
_SAMPLES = 3


@check_arguments
def check_primitive(op: Primitive[Any], *operands: Any, **params: Any) -> None:
    """Check everything that `op` declares against its `impl`, on these operands.

    The type rule, against the arrays that `impl` gives; the text, against itself read back; the
    kernels of both styles and the batching rule, for each set of batched operands, against
    `impl`; and where there are floats, derivatives to order two in all modes, as `check_grads`
    does: those of complex numbers by real and by imaginary parts, so that a transpose that
    conjugates what it should not is found. Further samples of a batch are made of floats by scaling
    them down.

    Raises `CheckError`, an AssertionError, where something differs, and `MissingRuleError` where
    a rule is missing.

    >>> from primgraph.extend import check_primitive, lookup
    >>> check_primitive(lookup("sin"), np.array([0.5, 2.0]))
    """
    arrays = [np.asarray(a) for a in operands]
    builder = Builder(op.name)
    types = [TensorType(a.shape, as_dtype(a.dtype)) for a in arrays]
    inputs = [builder.input(t, f"x{i}") for i, t in enumerate(types)]
    graph = builder.graph(builder.emit(op, inputs, params))
    expected = _plain(op, graph, arrays)
    if parse(to_text(graph)) != graph:
        raise CheckError(f"{op.name} does not read back from its text:\n{graph}")
    for style in ("planned", "readable"):
        _compare(f"the {style} kernel of {op.name}", compile(graph, style=style)(*arrays), expected)
    for flags in _choices(len(arrays)):
        _check_batch(op, graph, arrays, flags)
    floats = any(v.type.is_inexact for v in graph.inputs)
    if floats and any(v.type.is_inexact for v in graph.outputs):
        check_grads(graph, arrays, order=2)


def _plain(op: Primitive[Any], graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Return the results of `impl`, checked against the declared types."""
    with np.errstate(all="ignore"):
        results = [np.asarray(r) for r in op.evaluate(arrays, graph.body[0].kwargs)]
    found = [f"{r.dtype} of shape {r.shape}" for r in results]
    declared = [f"{t.dtype} of shape {t.shape}" for t in graph.output_types]
    if found != declared:
        raise CheckError(f"the type rule of {op.name} declares {declared}, its impl gives {found}")
    return results


def _choices(count: int) -> list[tuple[bool, ...]]:
    """All operands, and each by itself."""
    each = [tuple(i == k for i in range(count)) for k in range(count)]
    return list(dict.fromkeys([(True,) * count, *each])) if count else []


def _check_batch(
    op: Primitive[Any], graph: Graph, arrays: Sequence[Array], flags: tuple[bool, ...]
) -> None:
    """The batching rule against a loop over samples."""
    together = batch(graph, _SAMPLES, [0 if flag else None for flag in flags])
    samples = [
        [_sample(a, i) if flag else a for a, flag in zip(arrays, flags, strict=True)]
        for i in range(_SAMPLES)
    ]
    feeds = [
        np.stack([s[k] for s in samples]) if flag else arrays[k] for k, flag in enumerate(flags)
    ]
    singly = [interpret(graph, *sample) for sample in samples]
    expected = [np.stack(parts) for parts in zip(*singly, strict=True)]
    batched = " and ".join(f"operand {k}" for k, flag in enumerate(flags) if flag)
    _compare(f"{op.name} with {batched} batched", interpret(together, *feeds), expected)


def _sample(array: Array, number: int) -> Array:
    return array * array.dtype.type(1 - number / 8) if array.dtype.kind in "fc" else array


def _compare(what: str, found: Sequence[Array], expected: Sequence[Array]) -> None:
    for mine, known in zip(found, expected, strict=True):
        limit = 0.0
        if known.dtype.kind in "fc":
            largest = np.max(np.abs(known), initial=0.0, where=np.isfinite(known))
            limit = _ROUNDING * float(np.finfo(known.dtype).eps) * float(largest)
        same = np.isclose(mine, known, rtol=0.0, atol=limit, equal_nan=True)
        if not same.all():
            place = tuple(int(i) for i in np.argwhere(~same)[0])
            raise CheckError(f"{what}: at {place} it gives {mine[place]!r}, not {known[place]!r}")
