"""How densely the tests sample what there is too much of.

The suite takes every path, and random programs by the dozen. `PRIMGRAPH_DENSE_TESTS=1` goes the
same paths again and again: what is marked `dense` runs as well, and all is taken of what is
otherwise drawn by lot.
"""

import os
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pytest

# Tests that try one thing in many cases, and take longest together: one case in so many runs.
# Found by adding up `--durations=0` of a whole run by test function; not here are those of which
# each case is the only test of some function.
THINNED: dict[str, int] = {
    "test_blocks::test_a_training_step_runs_in_one_loop_of_any_size": 6,
    "test_blocks::test_random_programs_in_small_blocks": 2,
    "test_checkpoints::test_derivatives_of_orders_one_and_two_are_those_of_the_function": 7,
    "test_checkpoints::test_loops_of_segments_are_the_loops": 3,
    "test_checkpoints::test_loops_of_segments_have_derivatives_of_order_two": 2,
    "test_checkpoints::test_prefixes_are_those_of_a_loop": 6,
    "test_cost::test_what_numpy_allocates_by_itself_is_a_few_operands": 9,
    "test_diff::test_differences_account_for_every_equation": 2,
    "test_extend::test_primitives_of_primgraph_pass_the_same_checks": 5,
    "test_generic_code::test_functions_and_derivatives_at_each_size": 3,
    "test_generic_code::test_two_sizes_and_loops_at_each_pair": 2,
    "test_grad_options::test_derivatives_past_the_degree_of_a_polynomial_are_zeros": 3,
    "test_guarded_bodies::test_gradients_of_gradients_are_those_without_bodies": 4,
    "test_guarded_bodies::test_rows_of_a_loop_matter_to_the_trips_before_them_alone": 3,
    "test_guarded_bodies::test_what_is_not_chosen_of_a_body_matters_to_no_derivative": 8,
    "test_guarded_programs::test_derivatives_do_not_see_what_nothing_chooses": 2,
    "test_guards::test_a_step_between_a_function_and_the_choice": 6,
    "test_guards::test_every_function_of_what_is_not_chosen": 7,
    "test_guards::test_modes_agree_to_third_order": 2,
    "test_identity::test_a_derivative_by_one_of_two_equal_variables_does_not_count_the_other": 2,
    "test_identity::test_derivatives_of_derivatives_tell_equal_variables_apart": 5,
    "test_jacobian::test_gradients_of_elements_of_a_jacobian_are_second_derivatives": 8,
    "test_loops::test_a_batch_is_a_loop_over_samples": 3,
    "test_loops::test_derivatives_of_order_three_are_those_of_unrolled_code": 2,
    "test_loops::test_derivatives_of_orders_one_and_two_are_those_of_unrolled_code": 10,
    "test_loops::test_what_is_masked_in_a_body_spoils_no_derivative_of_any_order": 4,
    "test_native_sizes::test_random_programs_of_sizes": 6,
    "test_open_loops::test_derivatives_of_higher_order_are_those_of_the_trips_one_by_one": 2,
    "test_open_loops::test_gradients_are_those_of_the_trips_one_by_one": 2,
    "test_own_slopes::test_the_derivatives_of_softmax_are_those_of_what_it_is_made_of": 2,
    "test_partials::test_along_axes_and_along_directions_partials_are_the_same": 3,
    "test_partials::test_partials_are_those_of_nested_forward_mode": 4,
    "test_primitives::test_batch_is_a_loop": 8,
    "test_primitives::test_batch_of_a_gradient_and_gradient_of_a_batch": 6,
    "test_primitives::test_gradients_of_tensors_are_those_of_the_transpose": 2,
    "test_primitives::test_second_order_agrees_in_all_modes": 7,
    "test_random_programs::test_flags_that_are_set_after_use_are_those_of_an_equation": 4,
    "test_random_programs::test_promises_hold_for_random_programs": 2,
    "test_readable::test_what_is_multiplied_or_reduced_is_written_in_the_shape_it_needs": 7,
    "test_recorded::test_programs_give_the_recorded_results": 2,
    "test_singular_ties::test_even_functions_have_second_derivatives_at_ties_and_zeros": 2,
    "test_singular_ties::test_second_derivatives_of_norms_are_differences_of_the_gradient": 2,
    "test_sized_programs::test_programs_at_thresholds_compute_what_the_interpreter_does": 8,
    "test_sizes::test_it_is_the_program_with_the_number": 3,
    "test_solutions::test_a_batch_solves_each_sample_for_itself": 4,
    "test_solutions::test_a_solution_is_where_the_iteration_goes": 3,
    "test_solutions::test_derivatives_are_those_of_many_trips": 8,
    "test_solutions::test_derivatives_of_higher_orders_are_those_of_many_trips": 5,
    "test_solutions::test_equations_made_at_random_have_the_slopes_of_complex_steps": 6,
    "test_symmetric::test_derivatives_at_once_are_those_one_by_one": 3,
    "test_symmetric::test_gradients_of_gradients_do_not_double": 8,
    "test_taylor::test_derivatives_of_order_10_and_20_are_those_of_mpmath": 3,
    "test_taylor::test_equations_grow_as_the_square_of_the_order": 6,
    "test_taylor::test_jets_of_every_primitive_are_those_of_nested_forward_mode": 2,
    "test_threads::test_a_training_step_has_the_same_bits_in_any_number_of_threads": 4,
    "test_threads::test_random_programs_have_the_same_bits_in_any_number_of_threads": 2,
    "test_ties::test_all_ways_to_second_derivatives_agree_at_ties": 3,
    "test_ties::test_random_symmetric_functions_of_spectra": 4,
    "test_ties::test_second_derivatives_at_ties_in_float32": 3,
    "test_ties::test_second_derivatives_at_ties_of_hermitian_matrices": 3,
    "test_ties::test_second_derivatives_of_batches_with_and_without_ties": 3,
    "test_ties::test_symmetric_functions_have_second_derivatives_at_ties": 5,
    "test_training_programs::test_runs_of_random_training_programs_do_what_the_interpreter_says": 2,
    "test_two_worlds::test_a_layer_and_its_optimizer_are_copied_together": 2,
    "test_two_worlds::test_a_layer_computes_what_it_computes_in_a_program": 6,
    "test_two_worlds::test_an_optimizer_takes_the_steps_that_it_takes_in_a_program": 5,
    "test_two_worlds::test_training_goes_on_in_the_other_world_from_a_state_dict": 2,
    "test_view::test_folding_leaves_about_the_limit_and_every_arrow_between_groups": 2,
    "test_view_formats::test_dot_reads_back_to_the_same_boxes_and_arrows": 2,
    "test_view_writes::test_gradients_go_through_writes_to_views": 10,
    "test_view_writes::test_writes_through_views_are_numpys": 5,
}

VARIABLE = "PRIMGRAPH_DENSE_TESTS"
DENSE = os.environ.get(VARIABLE, "0") not in ("", "0")


def leave_out(items: Sequence[pytest.Item]) -> None:
    """Mark as dense what `THINNED` leaves out: all but the first case and those drawn by lot.

    Of the tests of primitives, the first case of each primitive is kept: its name begins the id.
    """
    seen: set[tuple[str, str]] = set()
    for item in items:
        name = f"{item.path.stem}::{getattr(item, 'originalname', item.name)}"
        if name in THINNED:
            of_primitives = item.path.stem == "test_primitives"
            key = name, item.name.partition(" ")[0] if of_primitives else ""
            if key in seen and not drawn(item.name, THINNED[name]):
                item.add_marker(pytest.mark.dense)
            seen.add(key)


def drawn(text: str, one_in: int) -> bool:
    """Whether the lot falls on `text`: always on the same, on one text in that many."""
    return DENSE or crc32(text.encode()) % one_in == 0


def starts(first: int, count: int, size: int, *, dense: int, long: int | None = None) -> list[Any]:
    """Where chunks of that many of the `count` seeds from `first` on start.

    After `long` seeds they are marked as long, after `dense` as dense.
    """
    return [
        pytest.param(
            first + i,
            marks=[pytest.mark.long] * (long is not None and i >= long)
            + [pytest.mark.dense] * (i >= dense),
        )
        for i in range(0, count, size)
    ]


def thinned(cases: Sequence[Any], one_in: int) -> list[Any]:
    """`cases`, which are `pytest.param` with an id: all but one in so many are dense.

    The first word of an id is a kind; the first case of each kind is not dense either.
    """
    found, kinds = [], set()
    for case in cases:
        kind = str(case.id).partition(" ")[0]
        dense = kind in kinds and not drawn(str(case.id), one_in)
        kinds.add(kind)
        marks = [*case.marks, *[pytest.mark.dense] * dense]
        found.append(pytest.param(*case.values, id=case.id, marks=marks))
    return found
