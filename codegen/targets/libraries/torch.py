"""Words of torch where its expression of a primitive differs from NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.codegen.ir.extents import ADD, ATOM, MUL, UNARY, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.reductions import accumulating
from primgraph.codegen.ops.spelling.literals import dtype_text, shape_text
from primgraph.codegen.ops.spelling.notation import Amend, Read, reading
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.libraries.torch_phrases import (
    LIBRARY,
    PHRASES,
    PLACING,
    write_statements,
)
from primgraph.codegen.targets.libraries.words import (
    DRAWS,
    first_order,
    incomplete,
    read_in_single,
    read_power,
)
from primgraph.codegen.targets.readable.dialect import Dialect, Word
from primgraph.ir.primitive import Op
from primgraph.ir.types import BOOL, INT64, TensorType, broadcast_shapes
from primgraph.primitives import (
    bits,
    indexing,
    logic,
    parts,
    reductions,
    running,
    shapes,
    sorting,
)
from primgraph.primitives import elementwise as e
from primgraph.primitives import windows as w
from primgraph.primitives.linear_algebra import (
    assumptions,
    cholesky,
    matrix_functions,
    spectra,
    systems,
    ties,
)
from primgraph.primitives.special_functions import by_parameters, gamma, scipy_calls, special

_SOLVE = "lambda a, b, **_: torch.linalg.solve_triangular(a, b, upper=False)"


def _word(template: str, helper: str = "") -> Word:
    return Word(reading(template), helper)


def _with_tensors(read: Read) -> Read:
    """Return the expression of a function that takes no numbers."""

    def read_tensors(args: Sequence[Text], step: Step) -> Text:
        return read(list(map(_tensor, args, step.operands)), step)

    return read_tensors


def _tensor(x: Text, type: TensorType) -> Text:
    return x if x.scalar is None else Text(PHRASES.number(x.code, type.dtype))


def _of_tensors(template: str) -> Word:
    return Word(_with_tensors(reading(template)))


def _special(template: str, rank: int = ATOM, helper: str = "") -> Word:
    """Return the word of a function of `torch.special`, which lacks numbers of 16 bits."""
    return Word(_with_tensors(read_in_single(reading(template, rank))), helper)


def _whole(infix: str) -> Word:
    """Return the word of a division of integers, which is 0 by 0 in NumPy and an error in torch."""

    def read(args: Sequence[Text], step: Step) -> Text:
        (x, y), divisor = args, args[1].scalar
        code = f"{x.operand_code(MUL)} {infix} "
        if step.results[0].is_float or (type(divisor) is int and divisor):
            return Text(f"{code}{y.operand_code(UNARY)}", MUL)
        by = _tensor(y, step.operands[1]).operand_code(ATOM)
        return Text(f"torch.where({by} == 0, 0, {code}torch.where({by} == 0, 1, {by}))")

    return Word(read)


def _clamped(name: str, bound: str) -> Word:
    """Return the word of an extremum of two arrays, or of an array and a number."""

    def read(args: Sequence[Text], step: Step) -> Text:
        for k, other in ((0, 1), (1, 0)):
            if args[k].scalar is not None and args[other].scalar is None:
                return Text(f"torch.clamp({args[other].code}, {bound}={args[k].code})")
        return call_both(args, step)

    call_both = _of_tensors(f"torch.{name}({{args}})").read
    return Word(read)


# Positions.


def _indices(args: Sequence[Text], step: Step) -> list[str]:
    """Return the indices of a step; torch reads small integers as masks."""
    kinds = step.operands[len(step.operands) - len(args) :]
    return [
        a.code if t.dtype == INT64 else f"{a.operand_code(ATOM)}.to(torch.int64)"
        for a, t in zip(args, kinds, strict=True)
    ]


def _read_gather(args: Sequence[Text], step: Step) -> Text:
    at = ", ".join([*[":"] * step.params["axis"], *_indices(args[1:], step)])
    return Text(f"{args[0].operand_code(ATOM)}[{at}]")


def _read_scatter(args: Sequence[Text], step: Step) -> Text:
    x, y, *rest = args
    if step.operands[1].size == 0:
        return Text(f"{x.operand_code(ATOM)}.clone()")
    at, axis = ", ".join(_indices(rest, step)), step.params["axis"]
    at = f"({at},)" if len(rest) == 1 else f"({at})"
    if not axis:
        return Text(f"{x.operand_code(ATOM)}.index_put({at}, {y.code}, accumulate=True)")
    rank = len(broadcast_shapes(*(t.shape for t in step.operands[2:])))
    first, ahead = tuple(range(len(rest))), tuple(range(axis, axis + len(rest)))
    into, along = tuple(range(rank)), tuple(range(axis, axis + rank))
    target, added = (
        f"torch.movedim({x.code}, {ahead}, {first})",
        f"torch.movedim({y.code}, {along}, {into})",
    )
    made = f"{target}.index_put({at}, {added}, accumulate=True)"
    return Text(f"torch.movedim({made}, {first}, {ahead})")


def _assign(name: str, args: Sequence[Text], step: Step) -> str:
    """Return the statement that sets a slice, whose steps are positive in torch."""
    p, y, turned, places = step.params, step.operands[1], [], []
    for axis, (start, n, by) in enumerate(zip(p["starts"], y.shape, p["steps"], strict=True)):
        first, by, last = start, by, start + (n - 1) * by
        if type(by) is int and by < 0:
            turned.append(axis)
            first, by, last = last, -by, start
        whole = (first, n, by) == (0, step.results[0].shape[axis], 1)
        places.append(":" if whole else _range(first, last + 1, by))
    value = args[1].code
    if turned and y.size != 1 and args[1].scalar is None:
        value = f"torch.flip({value}, {tuple(turned)})"
    return f"{name}[{', '.join(places) or '...'}] = {value}"


def _range(first: Any, end: Any, by: Any) -> str:
    texts = [shape_text((n,)).strip("(),") for n in (first, end, by)]
    return ":".join(texts if by != 1 else texts[:2])


def _amended(template: str, amend: Amend) -> Word:
    return Word(reading(template), amend=amend)


def _read_placed(args: Sequence[Text], step: Step) -> Text:
    p, listed = step.params, ", ".join([a.code for a in args])
    lead = step.operands[0].ndim - len(p["strides"][0])
    shape = shape_text(p["shape"])
    return Text(f"placed_in([{listed}], {shape}, {lead}, {p['starts']}, {p['strides']})")


def _read_windows(args: Sequence[Text], step: Step) -> Text:
    p = step.params
    rest = f"{p['axis']}, {p['sizes']}, {p['steps']}, {p['dilations']}"
    return Text(f"windows_over({args[0].code}, {rest})")


def _read_overlap(args: Sequence[Text], step: Step) -> Text:
    p = step.params
    rest = f"{p['axis']}, {shape_text(p['extents'])}, {p['steps']}, {p['dilations']}"
    return Text(f"add_windows({args[0].code}, {rest})")


def _read_pad(args: Sequence[Text], step: Step) -> Text:
    low, high = step.params["low"], step.params["high"]
    if not low:
        return Text(f"{args[0].operand_code(ATOM)}.clone()")
    ends = [n for pair in zip(reversed(low), reversed(high), strict=True) for n in pair]
    return Text(f"torch.nn.functional.pad({args[0].code}, {shape_text(tuple(ends))})")


# Reductions.


def _reduced(op: Op) -> tuple[Op, Word]:
    """Return the word of a reduction; over no axes, torch reduces all."""
    read = CARDS[op].read

    def read_over_axes(args: Sequence[Text], step: Step) -> Text:
        return read(args, step) if step.params["axes"] else Text(LIBRARY.copy(args[0]))

    return op, Word(read_over_axes)


def _position(name: str) -> Word:
    """Return the word of the place of an extremum, which torch does not find among booleans."""

    def read(args: Sequence[Text], step: Step) -> Text:
        x = args[0].code
        if step.operands[0].dtype == BOOL:
            x = f"{args[0].operand_code(ATOM)}.to(torch.uint8)"
        return Text(f"torch.{name}({x}, dim={step.params['axis']})")

    return Word(read)


def _read_sign(args: Sequence[Text], step: Step) -> Text:
    x = args[0].code
    if not step.results[0].is_float:
        return Text(f"torch.sign({x})")
    return Text(f"torch.where(torch.isnan({x}), {x}, torch.sign({x}))")


def _read_prod(args: Sequence[Text], step: Step) -> Text:
    axes = step.params["axes"]
    if len(axes) == 1:
        dtype = dtype_text(step.results[0].dtype)
        return Text(f"torch.prod({args[0].code}, dim={axes[0]}, dtype={dtype})")
    return Text(f"prod_over({args[0].code}, {axes})")


def _read_cumprod(args: Sequence[Text], step: Step) -> Text:
    axis = step.params["axis"]
    return Text(accumulating("cumprod", "multiply", step, args[0].code, axis=axis))


def _read_triangular(args: Sequence[Text], step: Step) -> Text:
    p, a = step.params, args[0].operand_code(ATOM)
    upper = p["lower"] == p["transposed"]
    a = f"{a}.mT" if p["transposed"] else a
    unit = ", unitriangular=True" if p["unit"] else ""
    return Text(f"torch.linalg.solve_triangular({a}, {args[1].code}, upper={upper}{unit})")


def _read_eig(args: Sequence[Text], step: Step) -> Text:
    real = not step.operands[0].is_complex
    return Text(f"real_or_nan(torch.linalg.eig({args[0].code}), {real})")


def _first(names: Sequence[str], template: str) -> Word:
    return Word(_with_tensors(first_order("torch", names, read_in_single(reading(template)))))


_read_incomplete: Read = incomplete(
    "torch",
    ["k"],
    read_in_single(reading("torch.special.gammainc({args})")),
    read_in_single(reading("torch.special.gammaincc({args})")),
)

WORDS: dict[Op, Word] = {
    **DRAWS,
    bits.bitcast: _word("{0}.view({dtype}).clone()"),
    bits.gcd: _of_tensors("torch.gcd({args})"),
    bits.nextafter: _of_tensors("torch.nextafter({args})"),
    e.remainder: _whole("%"),
    e.floor_divide: _whole("//"),
    e.maximum: _clamped("maximum", "min"),
    e.minimum: _clamped("minimum", "max"),
    e.power: Word(read_power),
    e.rsqrt: _word("torch.rsqrt({0})"),
    e.stop_gradient: _word("{0}.detach()"),
    e.sigmoid: _word("torch.sigmoid({0})"),
    e.sign: Word(_with_tensors(_read_sign)),
    e.logaddexp: _of_tensors("torch.logaddexp({args})"),
    e.arctan2: _of_tensors("torch.arctan2({args})"),
    e.erf: _word("torch.erf({0})"),
    e.erfc: _word("torch.erfc({0})"),
    logic.unless_nan: _of_tensors("torch.where(torch.isnan({1}), {1}, {0})"),
    parts.real: _word("torch.real({0})"),
    parts.imag: _word("torch.imag({0})"),
    parts.conj: _word("torch.conj_physical({0})"),
    parts.complex_: _of_tensors("torch.complex({args})"),
    **dict(map(_reduced, (reductions.reduce_sum, reductions.reduce_max, reductions.reduce_min))),
    reductions.argmax: _position("argmax"),
    reductions.argmin: _position("argmin"),
    reductions.reduce_prod: Word(_read_prod, "prod_over"),
    reductions.root_of_squares: _word(
        "scaled_root_of_squares(torch.detach, {args}, {axes}, {divisor})", "scaled_root_of_squares"
    ),
    running.cumprod: Word(_read_cumprod),
    running.cummax: _word("torch.cummax({0}, dim={axis}).values"),
    running.cummin: _word("torch.cummin({0}, dim={axis}).values"),
    indexing.gather: Word(_read_gather),
    indexing.placed: Word(_read_placed, "placed_in"),
    indexing.scatter_add: Word(_read_scatter),
    shapes.slice_assign: _amended("{0}.clone()", _assign),
    shapes.pad: Word(_read_pad),
    sorting.sort: _word("torch.sort({0}, dim={axis}, stable=True).values"),
    sorting.sort_by: _word("torch.sort({0}, dim={axis}, stable=True).values"),
    sorting.argsort: _word("torch.argsort({0}, dim={axis}, stable=True)"),
    sorting.reorder_back: _word("torch.zeros_like({0}).scatter({axis}, {1}, {0})"),
    w.windows: Word(_read_windows, "windows_over"),
    w.overlap_add: Word(_read_overlap, "add_windows"),
    assumptions.assumed: _word("{0}.clone()"),
    cholesky.cholesky: _word("torch.linalg.cholesky({0})"),
    cholesky.cholesky_tangent: _word(
        f"tangent_of_cholesky({_SOLVE}, {{args}})", "tangent_of_cholesky"
    ),
    cholesky.cholesky_slope: _word("slope_of_cholesky({args})", "slope_of_cholesky"),
    matrix_functions.expm: _word("torch.linalg.matrix_exp({0})"),
    matrix_functions.expm_slope: _word("along_exponential({args})", "along_exponential"),
    matrix_functions.eig: Word(_read_eig, "real_or_nan"),
    matrix_functions.lu: _word("rows_of_factors(torch.linalg.lu({0}))", "rows_of_factors"),
    spectra.svdvals: _word("torch.linalg.svdvals({0})"),
    spectra.pinv: _word("torch.linalg.pinv({0}, rtol={rcond})"),
    systems.triangular_solve: Word(_read_triangular),
    systems.sparse_triangular_solve: _word(
        "solve_row_by_row({args}, {reverse})", "solve_row_by_row"
    ),
    systems.cofactors: _word("derivative_of_determinant({0})", "derivative_of_determinant"),
    ties.unless_any: _word("torch.where(torch.any({1}), torch.nan, {0})"),
    gamma.gammaln: _special("torch.lgamma({0})"),
    gamma.gamma_function: _word("signed_gamma({0})", "signed_gamma"),
    gamma.polygamma: _special("torch.polygamma({n}, {0})"),
    gamma.betaln: _special("torch.lgamma({0}) + torch.lgamma({1}) - torch.lgamma({0} + {1})", ADD),
    gamma.poch: _special("rising_factorial({args})", helper="rising_factorial"),
    special.erfinv: _special("torch.erfinv({0})"),
    special.erfcinv: _special("torch.special.ndtri(0.5 * {0}) * -0.7071067811865476", MUL),
    special.log_ndtr: _special("torch.special.log_ndtr({0})"),
    special.xlogy: _special("torch.xlogy({args})"),
    special.xlog1py: _special("torch.special.xlog1py({args})"),
    special.logit: _special("torch.logit({0})"),
    special.gammainc: Word(_with_tensors(_read_incomplete)),
    special.erfcx: _first(["n"], "torch.special.erfcx({0})"),
}

LACKING = frozenset(
    {
        gamma.beta,
        matrix_functions.sqrtm,
        matrix_functions.sqrtm_slope,
        matrix_functions.logm,
        matrix_functions.logm_slope,
        special.betainc,
        by_parameters.bessel_by_order,
        by_parameters.gauss_by_parameters,
        by_parameters.kummer_by_parameters,
        by_parameters.zeta_by_exponent,
        special.random_variate,
        scipy_calls.by_scipy,
    }
)

TORCH = Dialect(
    "torch",
    ("import torch",),
    WORDS,
    LACKING,
    control=write_statements,
    phrases=PHRASES,
    library=LIBRARY,
    lacking_dtypes=frozenset({"uint16", "uint32", "uint64"}),
    placing=PLACING,
)
