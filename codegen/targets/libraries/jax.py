"""Words of JAX where its expression of a primitive differs from NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from primgraph.codegen.ir.extents import ADD, ATOM, MUL, UNARY, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import view_text
from primgraph.codegen.ops.shapes import assigned_slice
from primgraph.codegen.ops.spelling.literals import dtype_text
from primgraph.codegen.ops.spelling.notation import Read, reading
from primgraph.codegen.targets.libraries.functions import write_functions
from primgraph.codegen.targets.libraries.words import (
    DRAWS,
    incomplete,
    read_in_single,
    read_power,
)
from primgraph.codegen.targets.readable.dialect import Dialect, Word
from primgraph.errors import CompileError
from primgraph.ir.primitive import Op
from primgraph.primitives import elementwise as e
from primgraph.primitives import indexing, parts, reductions, running, shapes, sorting
from primgraph.primitives import windows as w
from primgraph.primitives.linear_algebra import (
    assumptions,
    cholesky,
    matrix_functions,
    systems,
    ties,
)
from primgraph.primitives.special_functions import by_parameters, gamma, scipy_calls, special

_SPECIAL = "jax.scipy.special."
_LOG_GAMMA = f"{_SPECIAL}gammaln"
_WIDE = """if not jax.config.jax_enable_x64:
    raise ValueError("numbers of 64 bits: call jax.config.update('jax_enable_x64', True) first")"""


def _word(template: str, helper: str = "", rank: int = ATOM) -> Word:
    return Word(reading(template, rank), helper)


def _function(template: str, rank: int = ATOM) -> Word:
    """Return the word of a function of `jax.scipy.special`, which lacks numbers of 16 bits."""
    return _in_single(reading(_SPECIAL + template, rank))


def _in_single(plain: Read, helper: str = "") -> Word:
    return Word(read_in_single(plain), helper)


def _indexed(method: str) -> Read:
    """Return the expression of an array that is changed at the positions that `gather` reads."""

    def read(args: Sequence[Text], step: Step) -> Text:
        x, y, *indices = args
        at = ", ".join([*[":"] * step.params["axis"], *[i.code for i in indices]])
        return Text(f"{x.operand_code(ATOM)}.at[{at}].{method}({y.code})")

    return read


def _assign(args: Sequence[Text], step: Step) -> Text:
    x, y = args
    how = assigned_slice(step)
    at = f"{x.operand_code(ATOM)}.at"
    target = f"{at}[...]" if how is None else view_text(how, at)
    return Text(f"{target}.set({y.code})")


def _searchsorted(args: Sequence[Text], step: Step) -> Text:
    # JAX counts in 32 bits.
    side = ', side="right"' if step.params["right"] else ""
    return Text(f"np.searchsorted({args[0].code}, {args[1].code}{side}).astype(np.int64)")


def _reorder_back(args: Sequence[Text], step: Step) -> Text:
    x, index = args
    axis = step.params["axis"]
    return Text(
        f"np.put_along_axis(np.zeros_like({x.code}), {index.code}, {x.code}, axis={axis}, "
        "inplace=False)"
    )


def _placed(args: Sequence[Text], step: Step) -> Text:
    p, listed = step.params, ", ".join([a.code for a in args])
    lead = step.operands[0].ndim - len(p["strides"][0])
    return Text(f"placed_at([{listed}], {p['shape']}, {lead}, {p['starts']}, {p['strides']})")


def _windows(args: Sequence[Text], step: Step) -> Text:
    p = step.params
    shape, axis, number = step.results[0].shape, p["axis"], len(p["sizes"])
    sizes, counts = shape[axis : axis + number], shape[axis + number : axis + 2 * number]
    return Text(
        f"windows_of({args[0].code}, {axis}, {sizes}, {counts}, {p['steps']}, {p['dilations']})"
    )


def _or_zero(sign: str) -> Word:
    """Return the word of a division with remainder; of integers by zero, it gives zero."""

    def read(args: Sequence[Text], step: Step) -> Text:
        x, y = args
        code = f"{x.operand_code(MUL)} {sign} {y.operand_code(UNARY)}"
        known = type(y.scalar) is int and y.scalar != 0
        if step.results[0].is_float or known:
            return Text(code, MUL)
        return Text(f"np.where({y.operand_code(ADD)} == 0, 0, {code})")

    return Word(read)


def _incomplete(orders: Sequence[str], lower: str, upper: str) -> Word:
    below, above = (_function(template).read for template in (lower, upper))
    return Word(incomplete("JAX", orders, below, above))


def _gammainc(args: Sequence[Text], step: Step) -> Text:
    if step.params["k"] > 1:
        raise CompileError("JAX lacks derivatives of gammainc by its parameter twice")
    function = _SPECIAL + ("gammaincc" if step.params["upper"] else "gammainc")
    return reading(f"gammainc_of_all({function}, {{args}}, {{k}}, {{upper}})")(args, step)


def _erfcx(args: Sequence[Text], step: Step) -> Text:
    if not step.params["n"]:
        return reading(_SPECIAL + "erfcx({0})")(args, step)
    (x,) = args
    flat = f"erfcx_derivative({x.operand_code(ATOM)}.ravel(), {step.params['n']})"
    dtype = dtype_text(step.results[0].dtype)
    return Text(f"{flat}.reshape({x.operand_code(ATOM)}.shape).astype({dtype})")


WORDS: dict[Op, Word] = {
    **DRAWS,
    e.power: Word(read_power),
    e.stop_gradient: _word("jax.lax.stop_gradient({0})"),
    e.floor_divide: _or_zero("//"),
    e.remainder: _or_zero("%"),
    e.sigmoid: _word("jax.nn.sigmoid({0})"),
    e.erf: _function("erf({args})"),
    e.erfc: _function("erfc({args})"),
    parts.complex_: _word("jax.lax.complex({args})"),
    reductions.root_of_squares: _word(
        "scaled_root_of_squares(jax.lax.stop_gradient, {args}, {axes}, {divisor})",
        "scaled_root_of_squares",
    ),
    running.cummax: _word("jax.lax.cummax({0}, axis={axis})"),
    running.cummin: _word("jax.lax.cummin({0}, axis={axis})"),
    indexing.placed: Word(_placed, "placed_at"),
    indexing.scatter_add: Word(_indexed("add")),
    shapes.slice_assign: Word(_assign),
    sorting.argsort: _word("np.argsort({0}, axis={axis}, stable=True)"),
    sorting.searchsorted: Word(_searchsorted),
    sorting.reorder_back: Word(_reorder_back),
    w.windows: Word(_windows, "windows_of"),
    w.overlap_add: _word(
        "sums_of_windows({0}, {axis}, {extents}, {steps}, {dilations})", "sums_of_windows"
    ),
    assumptions.assumed: _word("np.array({0})"),
    cholesky.cholesky: _word("jax.lax.linalg.cholesky({0}, symmetrize_input=False)"),
    cholesky.cholesky_tangent: _word(
        "tangent_of_cholesky(jax.lax.linalg.triangular_solve, {args})", "tangent_of_cholesky"
    ),
    cholesky.cholesky_slope: _word("slope_of_cholesky({args})", "slope_of_cholesky"),
    matrix_functions.expm: _word("jax.scipy.linalg.expm({0})"),
    matrix_functions.expm_slope: _word(
        "slope_of_exponential(jax.scipy.linalg.expm, {args})", "slope_of_exponential"
    ),
    matrix_functions.eig: _word("eig_or_nan(np.linalg.eig, {0})", "eig_or_nan"),
    matrix_functions.lu: _word("lu_in_order(jax.lax.linalg.lu, {0})", "lu_in_order"),
    systems.triangular_solve: _word(
        "jax.lax.linalg.triangular_solve({args}, left_side=True, lower={lower}, "
        "transpose_a={transposed}, unit_diagonal={unit})"
    ),
    systems.sparse_triangular_solve: _word(
        "solution_by_entries(jax.lax.fori_loop, {args}, {reverse})", "solution_by_entries"
    ),
    systems.cofactors: _word("derivative_of_determinant({0})", "derivative_of_determinant"),
    ties.unless_any: _word("np.where(np.any({1}), np.nan, {0})"),
    gamma.gammaln: _function("gammaln({args})"),
    gamma.gamma_function: _function("gamma({args})"),
    gamma.polygamma: _in_single(
        reading(f"polygamma_of_all({_SPECIAL}polygamma, {{n}}, {{0}})"), "polygamma_of_all"
    ),
    gamma.betaln: _in_single(reading(f"beta_logarithm({_LOG_GAMMA}, {{args}})"), "beta_logarithm"),
    gamma.beta: _in_single(
        reading(f"beta_by_logarithm({_LOG_GAMMA}, {_SPECIAL}gammasgn, {{args}})"),
        "beta_by_logarithm",
    ),
    gamma.poch: _in_single(
        reading(f"ratio_of_gammas({_SPECIAL}gamma, {_LOG_GAMMA}, {{args}})"), "ratio_of_gammas"
    ),
    special.erfinv: _function("erfinv({args})"),
    special.log_ndtr: _function("log_ndtr({args})"),
    special.xlogy: _function("xlogy({args})"),
    special.xlog1py: _function("xlog1py({args})"),
    special.logit: _function("logit({args})"),
    special.erfcinv: _function("ndtri(0.5 * {0}) * -0.7071067811865476", MUL),
    special.gammainc: _in_single(_gammainc, "gammainc_of_all"),
    special.betainc: _incomplete(["j", "k"], "betainc({args})", "betainc({1}, {0}, 1.0 - {2})"),
    special.erfcx: _in_single(_erfcx, "erfcx_derivative"),
}

LACKING = frozenset(
    {
        matrix_functions.sqrtm,
        matrix_functions.sqrtm_slope,
        matrix_functions.logm,
        matrix_functions.logm_slope,
        special.random_variate,
        scipy_calls.by_scipy,
        by_parameters.bessel_by_order,
        by_parameters.gauss_by_parameters,
        by_parameters.kummer_by_parameters,
        by_parameters.zeta_by_exponent,
    }
)

JAX = Dialect(
    "JAX",
    ("import jax", "import jax.numpy as np"),
    WORDS,
    LACKING,
    head=tuple(_WIDE.splitlines()),
    control=write_functions,
    compiler=lambda function: import_module("jax").jit(function),
)
