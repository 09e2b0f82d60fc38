"""Samples of the primitives of `primgraph.primitives.control`."""

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.text import parse
from samples.rows import DIFFERENCES, INSIDE, Call, Refused, Row

TWICE = parse("""graph twice(%x: f64[3], %y: f64[3]) {
  %0: f64[3] = add(%x, %x)
  %1: f64[3] = mul(%0, %y)
  return %1, %y
}""")
SINE = parse("""graph sine(%x: f64[3], %y: f64[3]) {
  %0: f64[3] = sin(%x)
  %1: f64[3] = full(dtype=f64, shape=(3,), value=2.0)
  return %0, %1
}""")
ROOT = parse("""graph root(%x: f64[3], %y: f64[3]) {
  %0: f64[3] = mul(%x, %x)
  %1: f64[3] = exp(%y)
  %2: f64[3] = add(%0, %1)
  %3: f64[3] = sqrt(%2)
  return %3, %x
}""")
STEP = parse("""graph step(%w: f64[2,2], %h: f64[1,2], %n: i64[], %x: f64[1,2]) {
  %0: f64[1,2] = matmul(%h, %w)
  %1: f64[1,2] = add(%0, %x)
  %2: f64[1,2] = tanh(%1)
  %3: i64[] = full(dtype=i64, shape=(), value=1)
  %4: i64[] = add(%n, %3)
  %5: f64[] = cast(%4, dtype=f64)
  %6: f64[1,2] = broadcast(%5, new_axes=(0, 1), shape=(1, 2))
  %7: f64[1,2] = mul(%h, %6)
  return %2, %4, %7
}""")
SQUARED = parse("""graph squared(%x: f64[2]) {
  %0: f64[2] = mul(%x, %x)
  return %0
}""")
NEARING = parse("""graph nearing(%a: f64[2], %x: f64[2]) {
  %0: f64[2] = sin(%x)
  %1: f64[2] = mul(%0, %a)
  %2: f64[2] = mul(%1, %a)
  %3: f64[2] = sub(%a, %2)
  return %3
}""")
CUBIC = parse("""graph cubic(%a: f64[], %x: f64[]) {
  %0: f64[] = mul(%x, %x)
  %1: f64[] = mul(%0, %x)
  %2: f64[] = add(%1, %x)
  %3: f64[] = sub(%2, %a)
  return %3
}""")
BY_NEWTON = parse("""graph by_newton(%a: f64[], %x: f64[]) {
  %0: f64[] = mul(%x, %x)
  %1: f64[] = mul(%0, %x)
  %2: f64[] = add(%1, %x)
  %3: f64[] = sub(%2, %a)
  %4: f64[] = add(%0, %0)
  %5: f64[] = add(%4, %0)
  %6: f64[] = full(dtype=f64, shape=(), value=1.0)
  %7: f64[] = add(%5, %6)
  %8: f64[] = div(%3, %7)
  %9: f64[] = sub(%x, %8)
  return %9
}""")
GROWING = parse("""graph growing(%a: f64[], %x: f64[], %n: i64[]) {
  %0: f64[] = mul(%x, %a)
  %1: f64[] = sin(%0)
  %2: f64[] = add(%0, %1)
  %3: i64[] = full(dtype=i64, shape=(), value=1)
  %4: i64[] = add(%n, %3)
  return %2, %4
}""")
KEEPING = parse("""graph keeping(%a: f64[], %x: f64[], %n: i64[]) {
  %0: f64[] = mul(%x, %a)
  %1: f64[] = sin(%0)
  %2: f64[] = add(%0, %1)
  %3: i64[] = full(dtype=i64, shape=(), value=1)
  %4: i64[] = add(%n, %3)
  return %2, %4, %1
}""")
BELOW_FOUR = parse("""graph below_four(%a: f64[], %x: f64[], %n: i64[]) {
  %0: i64[] = full(dtype=i64, shape=(), value=4)
  %1: bool[] = less(%n, %0)
  return %1
}""")
NEVER = parse("""graph never(%a: f64[], %x: f64[], %n: i64[]) {
  %0: bool[] = full(dtype=bool, shape=(), value=False)
  return %0
}""")

_MEANING = {
    "twice": lambda x, y: (2 * x * y, y),
    "sine": lambda x, y: (np.sin(x), np.full(3, 2.0)),
    "root": lambda x, y: (np.sqrt(x * x + np.exp(y)), x),
    "step": lambda w, h, n, x: (np.tanh(h @ w + x), n + 1, h * float(n + 1)),
    "squared": lambda x: (x * x,),
}


def cond_by_hand(index, *operands, branches):
    chosen = branches[max(0, min(len(branches) - 1, int(index)))]
    return _MEANING[chosen.name](*operands)


def checkpoint_by_hand(*operands, body):
    return _MEANING[body.name](*operands)


def scan_by_hand(*given, body, consts, carries, length, reverse, counted):
    trips = min(int(given[0]), length) if counted else length
    given = given[1:] if counted else given
    fixed, state = given[:consts], given[consts : consts + carries]
    xs = given[consts + carries :]
    rows = [None] * length
    for k in list(range(trips))[:: -1 if reverse else 1]:
        found = _MEANING[body.name](*fixed, *state, *(x[k] for x in xs))
        state, rows[k] = found[:carries], found[carries:]
    ys = []
    for number, type in enumerate(body.output_types[carries:]):
        zero = np.zeros(type.shape, type.dtype)
        column = [zero if row is None else row[number] for row in rows]
        ys.append(np.array(column, type.dtype).reshape(length, *type.shape))
    return (*state, *ys)


def while_by_hand(a, x, n, *, test, body, consts, limit):
    trips, kept = 0, []
    while test.name == "below_four" and n < 4 and (limit is None or trips < limit):
        kept.append(np.sin(x * a))
        x, n, trips = x * a + np.sin(x * a), n + 1, trips + 1
    if body.name != "keeping":
        return x, n, trips
    return x, n, trips, np.array([*kept, *[0.0] * (limit - trips)])


def solution_by_hand(a, x, *, body, method, tolerance, limit, strict, **params):
    trips, goes_on = 0, True
    while goes_on and trips < limit:
        if method == "repeat":
            new = a - np.sin(x) * a * a
        else:
            new = x - (x**3 + x - a) / (3 * x**2 + 1)
        goes_on = np.max(np.abs(new - x)) > tolerance * max(np.max(np.abs(new)), 1.0)
        x, trips = new, trips + 1
    return x + (np.nan if strict and goes_on else 0.0), np.array(not goes_on), np.array(trips)


STEPPING = {
    "body": STEP, "consts": 1, "carries": 2, "length": 3, "reverse": False, "counted": False,
}  # fmt: skip

REPEATED = {
    "body": NEARING, "step": None, "consts": 1, "linear": 0, "lead": 0, "method": "repeat",
    "tolerance": 1e-15, "damping": 1.0, "limit": 200, "strict": True,
}  # fmt: skip
NEWTON = {**REPEATED, "body": CUBIC, "method": "newton"}


ROWS: dict[str, Row] = {
    "cond": Row(
        [
            Call(np.array(True), "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Call(np.array(False), "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Call(np.array(1), "f64[3]", "f64[3]", branches=(TWICE, SINE, ROOT)),
            Call(np.array(7), "f64[3]", "f64[3]", branches=(TWICE, SINE, ROOT)),
            Call(np.array(-1), "f64[3]", "f64[3]", branches=(TWICE,)),
        ],
        [
            Refused(DTypeError, "f64[]", "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Refused(DTypeError, "bool[1]", "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Refused(ShapeError, "bool[]", "f64[3]", "f64[3]", branches=(SINE, TWICE, ROOT)),
            Refused(ShapeError, "i64[]", "f64[3]", "f64[3]", branches=()),
            Refused(ShapeError, "i64[]", "f64[3]", "f64[2]", branches=(SINE, TWICE)),
            Refused(ShapeError, "i64[]", "f64[2]", branches=(SQUARED, SINE)),
        ],
        dtypes=("f64",),
        reference=cond_by_hand,
        analytic=DIFFERENCES,
    ),
    "scan": Row(
        [
            *[
                Call(
                    "f64[2,2]",
                    "f64[1,2]",
                    np.array(2),
                    f"f64[{length},1,2]",
                    **{**STEPPING, "length": length, "reverse": reverse},
                )
                for length, reverse in ((4, False), (3, True), (1, False), (0, False))
            ],
            Call(
                np.array(2),
                "f64[2,2]",
                "f64[1,2]",
                np.array(0),
                "f64[3,1,2]",
                **{**STEPPING, "counted": True},
            ),
            Call("f64[3,2]", **{**STEPPING, "body": SQUARED, "consts": 0, "carries": 0}),
        ],
        [
            Refused(ShapeError, "f64[2,2]", "f64[1,2]", "i64[]", "f64[2,1,2]", **STEPPING),
            Refused(ShapeError, "f64[2,2]", "f64[1,2]", "i64[]", "f64[]", **STEPPING),
            Refused(ShapeError, "f64[2,2]", "f64[1,2]", "f64[]", "f64[3,1,2]", **STEPPING),
            Refused(ShapeError, "f64[2,2]", **STEPPING),
            Refused(ShapeError, "f64[2]", **{**STEPPING, "body": SQUARED, "length": -1}),
        ],
        dtypes=("f64",),
        reference=scan_by_hand,
        analytic=DIFFERENCES,
    ),
    "checkpoint": Row(
        [Call("f64[3]", "f64[3]", body=body) for body in (TWICE, SINE, ROOT)],
        [
            Refused(ShapeError, "f64[3]", body=TWICE),
            Refused(ShapeError, "f64[3]", "f64[2]", body=TWICE),
        ],
        dtypes=("f64",),
        reference=checkpoint_by_hand,
        analytic=DIFFERENCES,
    ),
    "while_loop": Row(
        [
            Call("f64[]", "f64[]", np.array(1), test=test, body=body, consts=1, limit=limit)
            for test, body, limit in (
                (BELOW_FOUR, GROWING, 9),
                (BELOW_FOUR, GROWING, 2),
                (NEVER, GROWING, 3),
                (BELOW_FOUR, KEEPING, 6),
            )
        ],
        [
            Refused(ShapeError, *operands, test=test, body=body, consts=consts, limit=limit)
            for operands, test, body, consts, limit in (
                (("f64[]", "f64[]", "f64[]"), BELOW_FOUR, GROWING, 1, 9),
                (("f64[]", "f64[]", "i64[]"), GROWING, GROWING, 1, 9),
                (("f64[]", "f64[]", "i64[]"), BELOW_FOUR, GROWING, 0, 9),
                (("f64[]", "f64[]", "i64[]"), BELOW_FOUR, GROWING, 1, -1),
            )
        ],
        dtypes=("f64",),
        domain=[INSIDE],
        reference=while_by_hand,
        analytic=DIFFERENCES,
    ),
    "solution": Row(
        [
            Call("f64[2]", "f64[2]", **REPEATED),
            Call("f64[2]", "f64[2]", **{**REPEATED, "strict": False}),
            Call("f64[]", "f64[]", **NEWTON),
            Call("f64[]", "f64[]", **{**NEWTON, "method": "given", "step": BY_NEWTON}),
        ],
        [
            Refused(ArgumentError, "f64[2]", "f64[2]", **{**REPEATED, "method": "chance"}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "consts": 2}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "linear": 2}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "limit": 0}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "lead": 2}),
            Refused(ShapeError, "f64[2]", "f64[2]", **NEWTON),
            Refused(DTypeError, "f64[2]", "i64[2]", **REPEATED),
        ],
        dtypes=("f64",),
        domain=[((-0.7, 0.7),)],
        reference=solution_by_hand,
        analytic=DIFFERENCES,
    ),
}
