"""Python's numbers that a loop begins with: they take the dtype of what they meet in its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from primgraph import tree
from primgraph.base.frames import is_interruption
from primgraph.control.bodies import Body, takes
from primgraph.defaults import get_default_dtype
from primgraph.errors import DTypeError
from primgraph.ir.primitive import recording
from primgraph.ir.types import BOOL, COMPLEX64, FLOAT16, INT64, DType, complex_dtype
from primgraph.operators.promotion import convert_dtype
from primgraph.operators.variable import Variable

Trace = Callable[[Sequence[Any]], Body]

# The narrowest dtype of each kind that has derivatives.
_NARROWEST = {"f": FLOAT16, "c": COMPLEX64}


def promote_weak_numbers(
    operator: str,
    trace: Trace,
    leaves: Sequence[Any],
    state: list[Variable],
    weak: Sequence[bool],
    structure: tree.Structure,
) -> tuple[list[Variable], Body]:
    """`state`, with `weak` numbers in the dtypes of the arrays that they meet; and the body for it.

    A body with no narrower dtype than theirs can give them no other one. For others the body is
    called on the numbers themselves, and takes the dtypes of its results; numbers that code uses as
    arrays, such as `pg.sin(c)`, begin as the narrowest floats, and become as wide as the body
    makes them. What meets no array keeps its own dtype.
    """
    try:
        body = trace(state)
    except DTypeError:
        # Branches of two dtypes are no error where the number takes one of them.
        begun = _state_from_numbers(trace, leaves, state, weak, structure) if any(weak) else None
        if begun is None or all(v is None for v, w in zip(begun, weak, strict=True) if w):
            raise
        found = _fill_missing(begun, state)
        return found, trace(found)
    if not any(weak) or not _has_narrower(body) or not _carries(body, structure):
        return state, body
    begun = _state_from_numbers(trace, leaves, state, weak, structure)
    found = _widen_state(trace, leaves, state, begun, weak, structure, _dtypes(body))
    same = all(v.dtype == w.dtype for v, w in zip(found, state, strict=True))
    return (state, body) if same else (found, trace(found))


def _count_missing(begun: Sequence[Variable | None]) -> int:
    return sum(v is None for v in begun)


def _fill_missing(begun: Sequence[Variable | None], state: Sequence[Variable]) -> list[Variable]:
    return [s if v is None else v for v, s in zip(begun, state, strict=True)]


def _dtypes(body: Body) -> set[DType]:
    """The dtypes of all that a body takes, computes and gives."""
    values = [v for e in body.builder.body for v in (*e.inputs, *e.outputs)]
    values += [*body.inputs, *body.found, *body.builder.captured.values()]
    return {v.dtype for v in values} | body.builder.given


def _has_narrower(body: Body) -> bool:
    """Whether there is a dtype that is lost beside a number in its own dtype."""
    default = get_default_dtype()
    own = {BOOL, INT64, default, complex_dtype(default)}
    return any(d not in own and (d.kind in "iu" or d.itemsize < 16) for d in _dtypes(body))


def _carries(body: Body, structure: tree.Structure) -> bool:
    """Whether a body gives what is carried in the containers that it takes."""
    found = body.structure
    return found.kind in (tuple, list) and len(found.parts) == 2 and found.parts[0] == structure


def _try_trace(trace: Trace, given: Sequence[Any], structure: tree.Structure) -> Body | None:
    """The body for what is given; None where it does not take that."""
    try:
        body = trace(given)
    except Exception as error:
        if is_interruption(error):
            raise
        return None
    return body if _carries(body, structure) else None


def _state_from_numbers(
    trace: Trace,
    leaves: Sequence[Any],
    state: Sequence[Variable],
    weak: Sequence[bool],
    structure: tree.Structure,
) -> list[Variable | None] | None:
    """The state after a body that is called on numbers, None for those that meet no array.

    None for all if the body takes no numbers.
    """
    begun: list[Variable | None] = [None if w else v for v, w in zip(state, weak, strict=True)]
    for _ in range(sum(weak)):
        given = [x if v is None else v for x, v in zip(leaves, begun, strict=True)]
        body = _try_trace(trace, given, structure)
        if body is None:
            return None
        missing = _count_missing(begun)
        for k, (type, is_number) in enumerate(zip(body.types, body.weak, strict=True)):
            if k >= len(begun) or begun[k] is not None or is_number or type.shape:
                continue
            if takes(type.dtype, state[k].dtype, leaves[k]):
                begun[k] = convert_dtype(state[k], type.dtype)
        if missing == _count_missing(begun):
            break
    return begun


def _widen_state(
    trace: Trace,
    leaves: Sequence[Any],
    state: Sequence[Variable],
    begun: Sequence[Variable | None] | None,
    weak: Sequence[bool],
    structure: tree.Structure,
    present: set[DType],
) -> list[Variable]:
    """The state, in which numbers whose dtype calls on numbers do not tell begin narrow."""
    known = list(state) if begun is None else _fill_missing(begun, state)
    default = get_default_dtype()
    wide = (default, complex_dtype(default))
    narrow = {
        k: _NARROWEST[v.dtype.kind]
        for k, v in enumerate(known)
        if weak[k] and v.dtype in wide and (begun is None or begun[k] is not None)
    }
    if not narrow:
        return known
    trial = [convert_dtype(state[k], narrow[k]) if k in narrow else v for k, v in enumerate(known)]
    for _ in range(4 * len(narrow)):
        body = _try_trace(trace, trial, structure)
        if body is None:
            return known
        wanted = [
            type.dtype
            if k in narrow and not type.shape and takes(type.dtype, v.dtype, leaves[k])
            else v.dtype
            for k, (v, type) in enumerate(zip(trial, body.types, strict=False))
        ]
        if all(v.dtype == dtype for v, dtype in zip(trial, wanted, strict=True)):
            break
        trial = [convert_dtype(v, dtype) for v, dtype in zip(trial, wanted, strict=True)]
    # One that stays narrow has met nothing, unless there is something of that dtype.
    return [
        known[k] if k in narrow and v.dtype == narrow[k] and narrow[k] not in present else v
        for k, v in enumerate(trial)
    ]


def with_numbers(body: Body, state: Sequence[Variable]) -> Body:
    """`body`, in which numbers of Python that it gives for floats of `state` are such floats."""
    found = list(body.found)
    for k, v in enumerate(state):
        value = found[k]
        if body.weak[k] and v.dtype.kind in "fc" and takes(v.dtype, value.dtype, None):
            with recording(body.builder):
                found[k] = convert_dtype(Variable(body.builder, value), v.dtype).value
    return replace(body, found=tuple(found))
