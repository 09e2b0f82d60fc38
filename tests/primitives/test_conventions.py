"""What is promised about values where systems differ: special values, dtypes, empty arrays."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import DTYPES, evaluate, evaluate_one, same, sample, traced
from plan_checks import NEVER, SMALL
from program_tolerance import same_bits

import primgraph.operators as ops
from primgraph.codegen import compile_graph
from primgraph.codegen.targets.readable.standalone import standalone_source
from primgraph.defaults import set_default_dtype
from primgraph.errors import PrimgraphError
from primgraph.ir.interpret import interpret
from primgraph.transforms import lower

SPECIAL = np.array([-np.inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan])


# Values at the edges.


def test_zero_to_the_power_zero_is_one() -> None:
    zeros = np.zeros(2)
    for function in (lambda x: x**0, lambda x: x**0.0, lambda x: x**x, lambda x: 0.0**x):
        same(evaluate_one(function, zeros), np.ones(2))
    same(evaluate_one(lambda x: x**0, np.array([np.nan, np.inf])), np.ones(2))


def test_powers_of_negative_numbers_are_nan_unless_the_exponent_is_whole() -> None:
    x = np.array([-2.0, -0.5])
    same(evaluate_one(lambda v: v**0.5, x), np.full(2, np.nan))
    same(evaluate_one(lambda v: v**3, x), x**3)
    same(evaluate_one(lambda v: v**-1.0, x), 1 / x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("exponent", [0.5, np.float64(0.5), np.array(0.5)])
def test_a_power_by_the_number_one_half_is_a_square_root(exponent: Any, dtype: Any) -> None:
    for x in (SPECIAL.astype(dtype), dtype(-np.inf), dtype(-0.0)):
        graph = traced(lambda v: v ** dtype(exponent), x)
        with np.errstate(all="ignore"):
            check_everywhere(graph, [np.asarray(x)], [np.sqrt(x)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 2, 10, 64, 65])
def test_powers_by_one_half_in_an_array_are_powers(size: int, dtype: Any) -> None:
    x = np.resize(SPECIAL, size).astype(dtype)
    halves = np.full(size, 0.5, dtype)
    with np.errstate(all="ignore"):
        expected = [x**halves]
    assert np.signbit(expected[0][np.isneginf(x)]).sum() == 0
    check_everywhere(traced(lambda v: v**halves, x), [x], expected)
    check_everywhere(traced(lambda v, y: v**y, x, halves), [x, halves], expected)
    repeated = traced(lambda v, y: v ** ops.broadcast_to(y, (size,)), x, dtype(0.5))
    check_everywhere(repeated, [x, np.asarray(dtype(0.5))], expected)
    columns = traced(lambda v, y: v[:, None] ** y[:, None], x, halves)
    check_everywhere(columns, [x, halves], [expected[0][:, None]])
    wide = traced(lambda v, y: ops.broadcast_to(v[:, None], (size, 3)) ** y[:, None], x, halves)
    check_everywhere(wide, [x, halves], [np.tile(expected[0][:, None], (1, 3))])


def test_a_power_of_two_single_numbers_is_one() -> None:
    x, half = np.asarray(-np.inf), np.asarray(0.5)
    check_everywhere(traced(lambda v, y: v**y, x, half), [x, half], [np.asarray(np.inf)])
    x = np.asarray(-0.0)
    check_everywhere(traced(lambda v, y: v**y, x, half), [x, half], [np.asarray(0.0)])


def check_everywhere(graph: Any, arrays: list[Any], expected: list[Any]) -> None:
    """Interpreter and kernels of every kind give exactly these bits."""
    lowered = lower(graph)
    kernels = [
        compile_graph(lowered, style="readable"),
        compile_graph(lowered, limits=NEVER),
        compile_graph(lowered, limits=SMALL),
    ]
    alone: dict[str, Any] = {}
    exec(standalone_source([lowered]), alone)
    results = [interpret(graph, *arrays), *(kernel(*arrays) for kernel in kernels)]
    with np.errstate(all="ignore"):
        results.append([alone[lowered.name](*arrays)])
    for found in results:
        assert np.all(same_bits(found[0], np.asarray(expected[0]))), found[0]


@pytest.mark.parametrize("name", ["sqrt", "log", "arccos", "arcsin", "arctanh", "log1p"])
def test_the_edge_of_the_domain_is_what_the_mathematics_says(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(SPECIAL)
    same(evaluate_one(getattr(ops, name), SPECIAL), expected)


@pytest.mark.parametrize(
    "name", ["maximum", "minimum", "add", "multiply", "divide", "arctan2", "power", "logaddexp"]
)
def test_special_values_of_pairs_are_numpys(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(SPECIAL[:, None], SPECIAL)
    same(evaluate_one(getattr(ops, name), SPECIAL[:, None], SPECIAL), expected)


def test_nan_goes_through_every_function_that_could_hide_it() -> None:
    x = np.array([np.nan, 1.0])
    functions = [
        ops.relu, ops.abs, ops.sign, ops.floor, ops.round, ops.norm, ops.max, ops.min, ops.sum,
        ops.mean, ops.std, ops.softplus, ops.sigmoid, ops.gelu, ops.silu, ops.logsumexp,
        ops.softmax, lambda v: ops.clip(v, -1, 1), lambda v: ops.clip(v, None, 1),
    ]  # fmt: skip
    for function in functions:
        assert np.isnan(evaluate_one(function, x).reshape(-1)[0])


def test_signed_zeros_and_infinities_of_constants_survive() -> None:
    constant = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    found = evaluate_one(lambda x: ops.array(constant) + x * 0, np.array(-1.0))
    same(np.signbit(found[:2]), np.array([False, True]))
    same(evaluate_one(lambda x: ops.array(constant), np.array(1.0)), constant)
    kept = evaluate_one(lambda x: ops.stack([-0.0 * ops.ones(()), x]), np.array(-0.0))
    assert np.signbit(kept).all()


def test_the_branch_not_chosen_leaves_no_trace_in_the_value() -> None:
    x = np.array([-1.0, 0.0, 1.0])
    same(evaluate_one(lambda v: ops.where(v > 0, ops.log(v), 0), x), np.zeros(3))
    same(evaluate_one(lambda v: ops.where(v > 0, ops.sqrt(v), 0), x), np.maximum(x, 0))


def test_comparisons_and_positions_have_numpys_dtypes() -> None:
    results = evaluate(lambda x: [x > 0, ops.argmax(x), ops.sign(x), ops.floor(x)], SPECIAL)
    assert [r.dtype.name for r in results] == ["bool", "int64", "float64", "float64"]


# Dtypes.


def test_the_dtype_of_every_value_is_fixed_when_it_is_built() -> None:
    for first in DTYPES:
        for second in DTYPES:
            x, y = np.ones(2, first), np.ones(2, second)
            (type_,) = traced(ops.add, x, y).output_types
            assert type_.dtype == np.result_type(first, second)
            same(evaluate_one(ops.multiply, x, y), x * y)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "b"])
@pytest.mark.parametrize("scalar", [True, 1, 2.0])
def test_python_scalars_are_weak(dtype: Any, scalar: Any) -> None:
    x = np.ones(2, dtype)
    for function in (
        lambda v: v * scalar, lambda v: scalar + v, lambda v: v / scalar, lambda v: v**scalar,
        lambda v: scalar - v,
    ):  # fmt: skip
        same(evaluate_one(function, x), function(x))


def test_operators_keep_python_scalars_weak_too() -> None:
    x = sample((2, 3), np.float32)
    for function in (
        lambda v: ops.clip(v, -1, 1.0), lambda v: ops.scale(v, 2.0, 1), ops.relu, ops.gelu,
        lambda v: ops.mse_loss(v, 0.5), lambda v: ops.dropout(v, 1), ops.softplus, ops.layer_norm,
        lambda v: ops.where(v > 0, v, 1.5),
    ):  # fmt: skip
        graph = traced(function, x)
        assert graph.output_types[0].dtype == np.float32
        assert "f64" not in str(lower(graph)), str(lower(graph))


def test_numpy_scalars_are_not_weak() -> None:
    x = np.ones(2, np.float32)
    same(evaluate_one(lambda v: v * np.float64(2), x), x * np.float64(2))
    same(evaluate_one(lambda v: np.int64(2) + v, x), np.int64(2) + x)


def test_the_default_dtype_is_float64_and_is_never_a_silent_downcast() -> None:
    x = np.ones(2, np.float32)
    for made in (ops.zeros, ops.ones, lambda n: ops.full(n, 1.5), ops.eye, ops.array):
        (type_,) = traced(lambda v, m=made: m(2.0 if m is ops.array else 2), x).output_types
        assert type_.dtype == np.float64
    set_default_dtype(np.float32)
    try:
        assert traced(lambda v: ops.zeros(2), x).output_types[0].dtype == np.float32
        assert traced(lambda v: ops.array([1.5]), x).output_types[0].dtype == np.float32
        assert traced(lambda v: v * 1.5, np.ones(2)).output_types[0].dtype == np.float64
        assert traced(lambda v: v + np.ones(2), x).output_types[0].dtype == np.float64
    finally:
        set_default_dtype(np.float64)


def test_float16_accumulates_in_float32() -> None:
    ones = np.ones(4096, np.float16)
    same(evaluate_one(ops.sum, ones), np.float16(4096))
    same(evaluate_one(lambda v: ops.cumsum(v)[-1], ones), np.float16(4096))
    same(evaluate_one(lambda v: v @ v, ones), np.float16(4096))
    same(evaluate_one(lambda v: ops.einsum("i,i", v, v), ones), np.float16(4096))
    large = np.array([300, 300, 1 / 512, 1 / 512], np.float16)
    same(evaluate_one(ops.prod, large), np.float16(300 * 300 / 512 / 512))


# Shapes.


def test_0d_values_are_0d_arrays() -> None:
    x = np.array(2.0)
    results = evaluate(lambda v: [v, v + 1, ops.sum(v), v**2, ops.sin(v), v[None][0], v.T], x)
    for result in results:
        assert type(result) is np.ndarray
        assert result.shape == ()


def test_empty_reductions_are_those_of_numpy() -> None:
    x = np.zeros((0, 3))
    same(evaluate_one(ops.sum, x), np.float64(0))
    same(evaluate_one(ops.prod, x), np.float64(1))
    same(evaluate_one(lambda v: ops.sum(v, 0), x), np.zeros(3))
    same(evaluate_one(lambda v: ops.max(v, 1), x), np.zeros(0))
    same(evaluate_one(ops.mean, x), np.float64(np.nan))
    same(evaluate_one(ops.all, x), np.bool_(True))
    same(evaluate_one(ops.any, x), np.bool_(False))
    for function in (ops.max, ops.min, ops.argmax, ops.argmin):
        with pytest.raises(PrimgraphError, match="no elements"):
            traced(function, x)


@pytest.mark.parametrize(
    "name",
    [
        "softmax", "log_softmax", "logsumexp", "layer_norm", "mean", "var", "std", "norm", "gelu",
        "silu", "softplus", "relu", "clip", "scale", "tril", "flip", "ravel", "square", "cumsum",
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_empty_arrays_go_through_every_operator(name: str, shape: Any) -> None:
    evaluate(getattr(ops, name), np.zeros(shape))


def test_equal_results_from_run_to_run() -> None:
    x = sample((50, 50), np.float32)
    graphs = [lambda v: ops.softmax(v @ v.T), lambda v: ops.layer_norm(ops.sin(v)), ops.logsumexp]
    for function in graphs:
        first, second = evaluate_one(function, x), evaluate_one(function, x)
        assert first.tobytes() == second.tobytes()


def test_norm_is_zero_at_zero() -> None:
    same(evaluate_one(ops.norm, np.zeros(3)), np.float64(0))
    same(evaluate_one(lambda v: ops.norm(v, axis=1), np.zeros((2, 3))), np.zeros(2))
    same(evaluate_one(ops.norm, np.array([3.0, -4.0])), np.float64(5))
    same(evaluate_one(ops.norm, np.array([np.inf, 1.0])), np.float64(math.inf))


# Tests of each row of the tables of derivatives, by the beginning of the row.
ROWS = {
    "`maximum`, `minimum`, `max`, `min` at a tie": (
        "edges", "maximum_and_minimum_split_a_tie_evenly", "extrema_split_a_tie_evenly",
        "maximum_and_minimum_with_zero_add_up_to_the_identity", "infinite_extrema_are_ties_too",
    ),
    "`clip`": ("edge_slopes", "relu_is_flat_at_zero_and_clip_is_not_at_its_bounds"),
    "`relu` at 0": ("edge_slopes", "relu_is_flat_at_zero_and_clip_is_not_at_its_bounds"),
    "`abs` at 0": ("edges", "abs"),
    "`sign`, `floor`": (
        "edges", "steps_are_flat", "a_step_has_a_symbolic_zero",
        "results_that_are_no_floats_have_no_tangent",
    ),
    "`sort`, `median`": ("sorting", "slopes_at_ties_are_those_of_elements_in_their_order"),
    "`cummax`, `cummin`": ("sorting", "slopes_at_ties_are_those_of_elements_in_their_order"),
    "pools at a tie": ("convolutions", "what_is_tied_in_a_window_shares_the_slope_and_nan_stays"),
    "`maximum`, `minimum`, `max`, `min` of a NaN": (
        "edge_slopes", "extrema_of_nan_have_slopes_of_nan",
        "one_nan_takes_the_slopes_of_its_extremum_alone",
    ),
    "`relu`, `clip` of a NaN": ("edge_slopes", "relu_and_clip_of_nan_have_slope_nan"),
    "`logsumexp`": ("edge_slopes", "logsumexp_of_infinite_elements"),
    "attention where a mask": ("network_layers", "attention_is_a_mean_of_values"),
    "`x ** n`": ("edges", "small_integer_powers", "negative_integer_powers_at_zero"),
    "`x ** y`": (
        "edges", "a_power_by_its_exponent", "a_power_by_its_base_at_zero",
        "mixed_derivatives_of_a_power",
    ),
    "`cumprod` with zeros": ("sorting", "slopes_of_a_running_product_with_zeros"),
    "`sqrt`, `log`": (
        "edges", "the_edge_of_the_domain_is_not_hidden",
        "a_symbolic_zero_times_an_infinite_slope_stays_zero",
    ),
    "densities and distribution functions": (
        "scipy_stats", "slopes_at_the_edge_of_the_support_by_a_shared_parameter",
        "slopes_of_densities_at_the_edge_by_the_variable",
    ),
    "`cdf`, `sf` and their": (
        "scipy_stats", "slopes_at_the_edge_of_the_support_by_a_shared_parameter",
    ),
    "`xlogy`, `entr`": ("special", "slopes_at_edges"),
    "`log_ndtr`": ("special", "slopes_at_edges"),
    "`beta`, `betaln`": (
        "gamma_poles", "poch_is_a_polynomial_of_its_first_operand",
        "beta_is_smooth_where_its_denominator_has_a_pole",
        "beta_and_its_logarithm_where_poles_cancel", "binom_is_smooth_where_it_is_zero",
    ),
    "two poles that cancel": ("gamma_poles", "there_is_no_slope_across_poles"),
    "poles where the value is": (
        "gamma_poles", "values_at_poles_are_those_of_scipy", "there_is_no_slope_across_poles",
    ),
    "`where(c, f(x), g(x))`": (
        "guards", "every_function_of_what_is_not_chosen",
        "a_step_between_a_function_and_the_choice", "modes_agree_to_third_order",
        "a_sample_that_is_not_selected_does_not_poison_what_is_shared",
    ),
    "unused elements": (
        "guards", "what_an_extremum_leaves_out", "every_function_of_what_is_not_chosen",
    ),
    "constants joined to differentiated values": ("guards", "a_slope_where_there_is_no_tangent"),
    "`norm` (2-norm) at zero": ("edge_slopes", "a_root_of_squares_that_are_zero_has_slope_zero"),
    "`norm` (2-norm) where squares": ("edge_slopes", "a_root_of_squares_that_over_or_underflow"),
    "`norm` of order p": (
        "linalg", "singular_values_of_rank_deficient_matrices_have_slopes",
    ),
    "far tails: `arcsinh`": (
        "edge_slopes", "the_slope_of_arcsinh_does_not_vanish",
        "tails_of_the_error_function_and_of_gelu_are_flat",
        "the_approximate_gelu_is_right_in_its_tails", "far_tails_are_not_nan",
    ),
    "far tails of `sigmoid`": ("edge_slopes", "slopes_of_sigmoid_do_not_vanish_in_either_tail"),
    "far tails of `tanh`": (
        "edge_slopes", "the_slope_of_tanh_is_right_to_a_unit_in_the_last_place_of_one",
        "slopes_of_sigmoid_do_not_vanish_in_either_tail",
    ),
    "a Cholesky factor": (
        "linalg", "the_gradient_of_a_cholesky_factor_is_symmetric_though_a_triangle_is_read",
    ),
    "the determinant of a singular": (
        "linalg", "the_gradient_of_a_determinant_is_there_for_singular_matrices",
    ),
    "repeated eigenvalues, in functions": (
        "ties", "symmetric_functions_have_second_derivatives_at_ties",
    ),
    "repeated eigenvalues, in other functions": (
        "ties", "other_functions_have_no_second_derivative_at_ties",
    ),
    "repeated eigenvalues, in orders": (
        "ties", "forward_mode_first_is_refused_where_equal_values_part",
        "third_derivatives_at_ties_are_refused", "second_derivatives_at_ties_within_bodies",
    ),
    "eigenvectors and singular vectors": (
        "linalg", "functions_of_repeated_values_have_slopes",
        "vectors_of_repeated_values_do_not_turn_towards_each_other",
    ),
    "repeated or zero singular values": (
        "singular_ties", "even_functions_have_second_derivatives_at_ties_and_zeros",
    ),
    "zero singular values": (
        "singular_ties", "other_functions_have_no_second_derivative_at_ties",
        "functions_that_are_not_even_have_no_second_derivative_at_zeros",
    ),
    "repeated singular values, in orders": (
        "singular_ties", "forward_mode_first_is_refused_where_equal_values_part",
        "sums_have_second_derivatives_at_ties_in_forward_mode",
        "third_derivatives_at_ties_and_zeros_are_refused", "second_derivatives_within_bodies",
    ),
    "a singular value that is 0": (
        "singular_ties", "the_nuclear_norm_has_a_kink_at_zero",
    ),
    "`pinv`, `lstsq`": ("linalg", "slopes_of_linear_algebra_in_both_modes_to_order_two"),
    "an integer or boolean input": ("derivatives", "none_zero_and_error_are_told_apart"),
    "an input that no output": ("grad_options", "an_unused_input_is_none_zero_or_an_error"),
    "outputs of which none": ("grad_options", "an_independent_output_is_an_error_or_zero"),
    "an output that no input": (
        "grad_options", "outputs_that_no_input_reaches_among_others_are_no_error",
    ),
    "a derivative that is zero everywhere": (
        "grad_options", "derivatives_past_the_degree_of_a_polynomial_are_zeros",
    ),
    "a path whose factor is zero": (
        "grad_options", "a_path_with_a_zero_factor_gives_zeros_and_not_none",
    ),
    "cast of floats": ("edges", "casts_to_integers_and_back_are_flat"),
    "a value from outside that a custom": (
        "custom_functions", "values_of_the_program_around_have_no_derivative_by_the_rules",
    ),
    "samples that may mix": (
        "jacobian", "samples_that_mix_are_found", "every_batched_form_refuses_samples_that_mix",
    ),
    "a structural zero": ("entries", "a_structural_zero_is_zero_beside_infinite_slopes"),
    "an element of a Jacobian": (
        "jacobian", "rows_columns_and_gradients_agree_where_a_slope_is_infinite",
        "gradients_of_elements_of_a_jacobian_are_second_derivatives",
        "traces_of_second_derivatives_where_one_is_infinite",
    ),
    "zeros that a derivative joins": (
        "unit_vectors", "tangents_of_joined_columns_multiply_their_own_rows",
    ),
    "an element that a sparse": (
        "sparse_derivatives", "a_structural_zero_is_zero_beside_infinite_slopes",
    ),
    "an intermediate variable": (
        "tensor_features", "an_intermediate_and_what_it_comes_from_get_full_gradients",
    ),
    "equal variables": (
        "identity", "a_derivative_by_one_of_two_equal_variables_does_not_count_the_other",
        "derivatives_of_derivatives_tell_equal_variables_apart",
        "equal_constants_are_different_variables",
        "the_same_gradient_asked_for_twice_is_computed_once",
    ),
    "a derivative of a derivative, by an": (
        "derivatives", "a_derivative_is_a_function_of_the_values_between",
        "a_derivative_is_a_function_of_what_operators_give",
    ),
    "derivatives of high order": (
        "taylor", "at_the_edges_of_domains_jets_are_as_nested_forward_mode",
        "jets_of_every_primitive_are_those_of_nested_forward_mode",
        "powers_at_zero_and_elsewhere",
    ),
}  # fmt: skip


HERE = Path(__file__).parents[1]
CONVENTIONS = HERE.parent / "docs" / "conventions.md"


def code_of(module: str) -> str:
    """The text of a file of tests, in whichever folder it stands."""
    (path,) = HERE.rglob(f"{module}.py")
    return path.read_text(encoding="utf-8")


def cases_of(title: str) -> list[str]:
    """First cells of the rows of all tables in a section of the page."""
    text = CONVENTIONS.read_text(encoding="utf-8")
    section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \| ", section, re.MULTILINE)
    return [cell for cell in cells if cell != "case"]


@pytest.mark.skipif(not CONVENTIONS.exists(), reason="the documentation is not beside the tests")
def test_every_row_of_the_table_of_derivatives_has_a_test() -> None:
    cases = cases_of("Derivatives at kinks and edges")
    tested = [max((r for r in ROWS if case.startswith(r)), key=len, default=case) for case in cases]
    assert tested == list(ROWS)
    for module, *names in ROWS.values():
        code = code_of(f"test_{module}")
        for name in names:
            assert f"\ndef test_{name}(" in code, f"test_{module}.py has no test_{name}"


# Tests of each row of the tables on tensors, by the beginning of the row.
PROMISES = {
    "shape, dtype and errors": (
        ("tensors", "errors_say_where_operands_come_from"),
        ("tensors", "numbers_and_truth_are_there_for_python"),
        ("tensors", "a_position_that_is_not_there_is_told_when_it_is_looked_at"),
    ),
    "numbers": (
        ("tensors", "whenever_tensors_are_looked_at_they_and_their_gradients_are_the_same"),
    ),
    "differences between torch and programs": (
        ("tensor_values", "slopes_of_a_maximum_are_split_where_both_are_largest"),
        ("tensor_values", "slopes_of_a_choice"),
        ("tensor_values", "slopes_of_a_rectifier"),
        ("tensor_features", "more_than_one_element_wants_a_seed"),
        ("tensor_features", "an_unused_input_is_none_or_zeros_or_an_error"),
        ("tensor_features", "gradients_can_be_differentiated_if_the_graph_is_created"),
    ),
    "`pg.tensor`, `numpy()`": (
        ("tensors", "a_tensor_has_elements_of_its_own"),
        ("tensors", "tensors_hold_what_numpy_would"),
        ("tensors", "tensors_are_of_the_default_dtype_where_python_has_floats"),
    ),
    "functions of NumPy": (
        ("tensors", "numpy_functions_give_tensors"),
        ("tensors", "numpy_compares_and_prints_tensors_and_is_refused_what_would_end_derivatives"),
    ),
    "operators on plain arrays": (
        ("tensors", "functions_of_plain_arrays_compute_where_no_program_is_entered"),
    ),
    "a tensor in a program": (
        ("tensors", "a_tensor_in_a_program_is_a_constant_and_a_leaf_a_parameter"),
        ("tensors", "what_was_computed_from_a_leaf_is_computed_in_the_program_too"),
        ("tensors", "a_tensor_in_a_trace_is_a_constant"),
        (
            "function_transforms",
            "tensors_that_a_compiled_function_finds_are_those_of_each_call",
        ),
        ("tensors", "a_variable_does_not_get_into_tensors"),
    ),
    "all errors of primgraph": (
        ("compat_errors", "an_error_is_of_torchs_class"),
        ("compat_errors", "an_error_is_of_megengines_class"),
    ),
    "an operation in place": (
        ("tensors", "what_was_computed_before_a_change_in_place_keeps_what_it_had"),
        ("tensors", "operations_in_place_change_the_handle"),
        ("tensors", "what_does_not_fit_is_not_put_in_place"),
        ("tensors", "a_leaf_changed_within_no_grad_stays_a_leaf"),
    ),
    "views of tensors": (
        ("tensors", "a_change_of_a_view_changes_its_base"),
        ("view_writes", "writes_through_views_are_numpys"),
        ("view_writes", "chains_of_views_of_a_copy"),
        ("view_writes", "views_that_numpy_makes_read_only_are_refused"),
        ("tensors", "a_change_of_a_view_of_megengine_warns_with_both_lines"),
    ),
    "`reshape`, `ravel`": (
        ("view_writes", "unknown_layouts_are_an_error_where_they_matter"),
        ("view_writes", "layouts_of_new_arrays_are_known"),
    ),
    "views in `compat.torch`": (
        ("compat_views", "writes_through_data_are_kept"),
        ("compat_views", "random_changes_of_views"),
        ("compat_views", "changes_without_a_record_leave_derivatives_as_they_are"),
        ("compat_views", "paddles_views_write_through"),
    ),
    "writes that cannot go through": (
        ("compat_views", "writes_that_cannot_be_done_are_errors"),
        ("compat_meanings", "arrays_of_torch_cannot_be_written_to"),
    ),
    "an integer with a float": (
        ("compat_meanings", "integers_take_the_dtype_of_floats_in_torch"),
        ("compat_meanings", "integers_take_the_dtype_of_floats_in_paddle_and_megengine"),
    ),
    "data without a dtype in `compat.megengine`": (
        ("compat_megengine", "data_without_a_dtype_is_of_float32_or_int32"),
    ),
    "`jit.trace` of `compat.megengine`": (
        ("compat_megengine_jit", "a_traced_training_step_trains"),
        ("compat_megengine_jit", "a_traced_function_is_dumped_as_a_program"),
    ),
    "`RNN` and `LSTM` of `compat.megengine`": (
        ("compat_megengine_modules", "stacked_recurrent_layers_compute_as_torchs"),
    ),
    "`to_global` of `compat.oneflow`": (
        ("compat_oneflow", "a_global_tensor_is_the_tensor_with_a_placement"),
        ("compat_oneflow", "modules_are_placed_as_a_whole"),
        ("compat_oneflow", "there_is_one_rank_of_the_cpu"),
    ),
    "loaders with `num_workers`": (
        ("compat_data", "workers_load_the_batches_of_the_process"),
    ),
    "`save`, `load` of these packages": (
        ("compat_data", "tensors_that_share_elements_do_so_after_loading"),
        ("compat_data", "plain_objects_are_the_same_after_loading"),
        ("compat_data", "other_objects_and_files_are_errors"),
        ("compat_data", "safetensors"),
    ),
    "random numbers after `manual_seed(0)`": (
        ("compat_data", "states_of_generators"),
        ("compat_data", "numbers_of_compiled_functions_are_new_at_each_call"),
    ),
    "`checkpoint`, `recompute`": (
        ("compat_data", "checkpoints_have_the_values_and_derivatives_of_their_functions"),
    ),
    "devices other than the processor": (
        ("compat_data", "the_processor_is_the_only_device"),
    ),
    "samples of distributions": (
        ("compat_distributions", "samples_have_derivatives_of_their_mean"),
    ),
    "parameters and values of distributions": (
        ("compat_distributions", "values_and_parameters_are_checked"),
    ),
    "`backward`, `grad`": (
        ("tensor_features", "what_was_recorded_is_dropped_unless_it_is_retained"),
        ("tensors", "what_backward_has_used_up_needs_no_memory"),
        ("tensor_features", "backward_adds_to_the_gradient_in_place"),
        ("tensor_features", "backward_puts_gradients_into_leaves_alone"),
        ("tensor_features", "intermediates_retain_their_gradient_if_asked"),
    ),
    "hooks": (
        ("tensor_features", "hooks_change_gradients_in_the_order_in_which_they_were_registered"),
        ("tensor_features", "hooks_run_for_grad_too_and_may_only_look"),
        ("tensor_features", "a_hook_sees_the_whole_gradient_once"),
        ("tensor_features", "a_hook_that_gives_another_shape_is_refused_with_its_line"),
    ),
    "`no_grad`, `enable_grad`": (
        ("tensors", "no_grad_is_a_context_a_decorator_and_of_its_own_thread"),
        ("tensors", "no_grad_of_one_task_is_not_that_of_another"),
        ("tensors", "debug_of_one_thread_is_not_that_of_another"),
        ("tensors", "threads_share_tensors_and_structures"),
    ),
    "pending changes in place": (
        ("tensors", "what_is_changed_in_place_and_gradients_come_along_with_the_next_look"),
        ("tensors", "a_loop_of_steps_keeps_its_memory"),
    ),
    "unreferenced results": (
        ("tensors", "what_nobody_holds_is_not_kept_while_the_rest_is_computed"),
        ("tensors", "long_chains_are_built_run_and_freed"),
        ("tensors", "a_million_equations_are_built_run_and_freed"),
    ),
    "a structure": (
        ("tensors", "a_structure_is_compiled_when_it_comes_a_second_time"),
        ("tensors", "a_step_is_compiled_once_with_what_it_changes"),
        ("tensors", "numbers_and_positions_are_data"),
        ("tensors", "a_mask_of_another_count_is_another_structure_and_of_the_same_is_not"),
    ),
    "`pg.eager.log`": (
        ("tensors", "the_log_says_what_was_new"),
        ("tensors", "tables_of_structures_are_bounded"),
        ("tensors", "what_was_seen_is_remembered_within_bounds"),
    ),
}  # fmt: skip


@pytest.mark.skipif(not CONVENTIONS.exists(), reason="the documentation is not beside the tests")
def test_every_row_on_tensors_has_a_test() -> None:
    cases = cases_of("Tensors")
    assert [next((p for p in PROMISES if case.startswith(p)), case) for case in cases] == [
        *PROMISES
    ]
    for tests in PROMISES.values():
        for module, name in tests:
            code = code_of(f"test_{module}")
            assert f"\ndef test_{name}(" in code, f"test_{module}.py has no test_{name}"
