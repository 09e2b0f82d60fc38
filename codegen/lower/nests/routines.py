"""Calls of C functions on whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.lower.nests import systems
from primgraph.codegen.ops.c.call_lines import Call, Lines
from primgraph.codegen.ops.c.spellings import c_type, literal, type_name
from primgraph.codegen.runtime.lapack import lapack
from primgraph.ir.dims import names_in, typical
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT64
from primgraph.primitives import constants, reductions, running, sorting
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.linear_algebra.systems import sparse_triangular_solve


def routine(step: Step, alone: bool = False) -> Lines | None:
    """Return the generator of calls for `step`, if a C function exists; `alone` excludes LAPACK."""
    found = ROUTINES.get(step.op) or systems.ROUTINES.get(step.op)
    far = systems.FAR.get(step.op) if found is None and not alone else None
    if far is not None and systems.has_lapack(step):
        found = far
    if found is None or any(c_type(t.dtype) is None for t in (*step.operands, *step.results)):
        return None
    kinds, lines = found
    if step.operands and step.operands[0].dtype.kind not in kinds:
        return None
    fits = FITS.get(step.op)
    return lines if fits is None or fits(step) else None


# Above this size NumPy sorts faster than the scalar C code.
_MOST_SORTED = 256


def pays(step: Step) -> bool:
    """Return whether C is at least as fast as a NumPy call."""
    rule = PAYS.get(step.op)
    return rule is None or rule(step)


def _few_rows(step: Step) -> bool:
    if lapack() is not None:
        return True
    return typical(max(step.operands[0].shape[-2:], key=typical)) <= systems.MOST_ROWS


def _few_sorted(step: Step) -> bool:
    return typical(step.operands[0].shape[step.params["axis"]]) <= _MOST_SORTED


def _axis(call: Call) -> str:
    """Return the sizes before, at and behind the axis of a step as arguments."""
    shape, axis = call.step.operands[0].shape, call.step.params["axis"]
    parts = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    return ", ".join(map(call.size, parts))


def _name(call: Call, name: str) -> str:
    return call.use(f"pg_{name}_{type_name(call.step.operands[0].dtype)}")


def _axis_function(name: str) -> Lines:
    """Return the generator for a cumulative function of one array along an axis."""

    def lines(call: Call) -> Iterator[str]:
        back = call.step.params.get("reverse")
        more = "" if back is None else f", {int(back)}"
        yield f"{_name(call, name)}({call.result()}, {call.operand(0)}, {_axis(call)}{more});"

    return lines


def _sort(call: Call) -> Iterator[str]:
    type, axis = call.step.operands[0], call.step.params["axis"]
    room = call.room(c_type(type.dtype) or "", 2 * type.shape[axis])
    yield f"{_name(call, 'sort')}({call.result()}, {call.operand(0)}, {room}, {_axis(call)});"


def _argsort(call: Call) -> Iterator[str]:
    type, axis = call.step.operands[0], call.step.params["axis"]
    room = call.room(c_type(type.dtype) or "", type.shape[axis])
    places = call.room("int64_t", 2 * type.shape[axis])
    args = f"{call.result()}, {call.operand(0)}, {room}, {places}, {_axis(call)}"
    yield f"{_name(call, 'argsort')}({args});"


def _reorder_back(call: Call) -> Iterator[str]:
    args = f"{call.result()}, {call.operand(0)}, {call.operand(1)}, {_axis(call)}"
    yield call.checked_call(f"{_name(call, 'reorder_back')}({args})")


def _searchsorted(call: Call) -> Iterator[str]:
    a, v = call.step.operands
    sizes = f"{call.size(a.size)}, {call.size(v.size)}, {int(call.step.params['right'])}"
    yield (
        f"{_name(call, 'searchsorted')}({call.result()}, {call.operand(0)}, {call.operand(1)}, "
        f"{sizes});"
    )


def _product(call: Call) -> Iterator[str]:
    """Yield matrix products of integers."""
    x, y = call.step.operands
    (m, k), n = x.shape[-2:], y.shape[-1]
    args = systems.arguments(call, ["z0", "x0", "x1", *map(call.size, (m, n, k))])
    yield from systems.each_matrix(call, f"{_name(call, 'product')}({args});")


def _root_of_squares(call: Call) -> Iterator[str]:
    """Yield roots of sums of squares, recomputed with scaling on overflow or underflow."""
    x, p = call.step.operands[0], call.step.params
    axes, divisor = p["axes"], p["divisor"]
    number = f"({c_type(x.dtype)}){call.size(divisor)}"
    if not names_in(divisor):
        number = literal(float(divisor), x.dtype)
    limits = [literal(v, x.dtype) for v in reductions.safe_squares(x.dtype)]
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = [[row[i] for i in (*kept, *axes)] or [1] for row in (x.shape, row_major(x.shape))]
    tables = [f"(long[]){{{', '.join(map(call.size, row))}}}" for row in rows]
    arrays = [call.result(), call.operand(0), call.operand(1)]
    args = [*arrays, number, *limits, *tables, str(len(kept)), str(x.ndim)]
    yield f"{_name(call, 'root_of_squares')}({', '.join(args)});"


def _random(call: Call) -> Iterator[str]:
    """Yield random numbers for each key, in the order of Philox's counter."""
    keys, result, p = call.step.operands[0], call.step.results[0], call.step.params
    n, k = call.size(prod(result.shape[keys.ndim :])), call.index
    name, more = "bernoulli", [literal(float(p["p"]), FLOAT64)] if "p" in p else []
    if "p" not in p:
        name, dtype = f"uniform_{type_name(result.dtype)}", result.dtype
        low, high = float(p["low"]), float(p["high"])
        top = np.nextafter(dtype.type(high), dtype.type(low))
        more = [literal(v, FLOAT64) for v in (low, high - low)] + [literal(top, dtype)]
    yield f"for (long {k} = 0; {k} < {call.size(keys.size)}; {k}++)"
    args = f"({call.result()}) + {k} * {n}, (uint64_t)({call.operand(0)})[{k}], {n}"
    yield f"    {call.use(f'pg_{name}')}({args}, {', '.join(more)});"


# Predicates for steps that a function supports, beyond the kind of its operand.
FITS: dict[Op, Callable[[Step], bool]] = {}

# Generators of calls, with the supported kinds of the first operand.
ROUTINES: dict[Op, tuple[str, Lines]] = {
    reductions.cumsum: ("iuf", _axis_function("cumsum")),
    running.cumprod: ("iuf", _axis_function("cumprod")),
    running.cummax: ("iuf", _axis_function("cummax")),
    running.cummin: ("iuf", _axis_function("cummin")),
    reductions.argmax: ("biuf", _axis_function("argmax")),
    reductions.argmin: ("biuf", _axis_function("argmin")),
    sorting.sort: ("biuf", _sort),
    sorting.argsort: ("biuf", _argsort),
    sorting.reorder_back: ("biuf", _reorder_back),
    sorting.searchsorted: ("biuf", _searchsorted),
    matmul: ("iu", _product),
    constants.random_uniform: ("iu", _random),
    constants.random_bernoulli: ("iu", _random),
    reductions.root_of_squares: ("f", _root_of_squares),
}

# Conditions under which C is at least as fast as NumPy; functions without one always are.
PAYS: dict[Op, Callable[[Step], bool]] = {
    sorting.sort: _few_sorted,
    sorting.argsort: _few_sorted,
    sorting.sort_by: _few_sorted,
    **dict.fromkeys(systems.ROUTINES.keys() - {sparse_triangular_solve}, _few_rows),
}
