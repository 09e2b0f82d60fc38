"""What random programs have found, each in the smallest program that showed it."""

import numpy as np
import pytest
from program_tolerance import same_bits

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.derivatives.grad import grad
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators.elementwise.elementary import sin
from primgraph.operators.variable import Variable
from primgraph.primitives.elementwise import maximum, minimum
from primgraph.transforms import linearize, simplify, transpose
from primgraph.transforms.optimize.clean_up import clean_up

STYLES = ("planned", "readable")


def assert_kernels_agree(graph: Graph, *feeds: np.ndarray) -> None:
    """Both styles give the bits that the interpreter gives, in arrays that share nothing."""
    expected = interpret(graph, *feeds)
    for style in STYLES:
        results = compile_graph(graph, style=style)(*feeds)
        for i, (found, wanted) in enumerate(zip(results, expected, strict=True)):
            assert found.shape == wanted.shape, style
            assert np.all(same_bits(found, wanted)), style
            assert not any(np.shares_memory(found, other) for other in results[:i]), style


def gradient(graph: Graph, *feeds: np.ndarray) -> list[np.ndarray]:
    """The gradient of the sum of all outputs by the first input."""
    jvp = linearize(graph, [0])
    linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
    vjp = transpose(linear, [len(graph.inputs)])
    return interpret(vjp, *feeds, *(np.ones(v.shape) for v in graph.outputs))


def test_a_condition_may_be_computed_after_what_it_guards() -> None:
    """Linearize looked for the condition of the select before it had been copied."""
    graph = parse("""
        graph f(%x: f64[2], %zero: f64[2]) {
          %0: f64[2] = log(%x)
          %1: bool[2] = greater(%x, %zero)
          %2: f64[2] = select(%1, %0, %zero)
          return %2
        }""")
    (slope,) = gradient(graph, np.array([0.0, 2.0]), np.zeros(2))
    assert np.array_equal(slope, [0.0, 0.5])


def test_a_guard_holds_if_only_a_later_part_of_a_split_is_used() -> None:
    """Guards were not followed through a split whose first part is not used."""
    graph = parse("""
        graph f(%x: f64[4], %zero: f64[4]) {
          %0: bool[4] = greater(%x, %zero)
          %1: f64[4] = log(%x)
          %2: f64[4] = select(%0, %1, %zero)
          %3: f64[2], %4: f64[2] = split(%2, sizes=(2, 2), axis=0)
          return %4
        }""")
    (slope,) = gradient(graph, np.array([0.0, 2.0, 0.0, 4.0]), np.zeros(4))
    assert np.array_equal(slope, [0.0, 0.0, 0.0, 0.25])


def test_two_values_that_are_one_array_are_two_results() -> None:
    """The readable style gave the same array twice where a view leaves everything in place."""
    graph = parse("""
        graph f(%x: f64[2,3]) {
          %0: f64[2,3] = sin(%x)
          %1: f64[2,3] = permute(%0, axes=(0, 1))
          return %0, %1
        }""")
    assert_kernels_agree(graph, np.ones((2, 3)))


@pytest.mark.parametrize(
    "equation",
    [
        "%1: f64[1,3,1] = neg(%0)",
        "%1: f64[3] = reduce_sum(%0, axes=(0, 2))",
        "%1: i64[1,1] = argmax(%0, axis=1)",
        "%1: f64[1,5,1] = pad(%0, low=(0, 1, 0), high=(0, 1, 0))",
        "%1: f64[1,2,1] = slice(%0, starts=(0, 0, 0), sizes=(1, 2, 1), steps=(1, 1, 1))",
        "%1: f64[1,3,1], %2: f64[1,0,1] = split(%0, sizes=(3, 0), axis=1)",
    ],
)
def test_new_axes_of_extent_one_before_and_behind_are_both_there(equation: str) -> None:
    """The planned style left the leading ones to broadcasting where nothing was broadcast."""
    graph = parse(f"""
        graph f(%x: f64[3]) {{
          %0: f64[1,3,1] = broadcast(%x, new_axes=(0, 2), shape=(1, 3, 1))
          {equation}
          return %0, %1
        }}""")
    assert_kernels_agree(graph, np.arange(3.0))


def test_what_is_added_at_positions_is_repeated_first() -> None:
    """NumPy's `add.at` reads beyond an operand that has fewer axes than the positions."""
    graph = parse("""
        graph f(%x: f64[2], %y: f64[4], %i: i64[5,4]) {
          %0: f64[5,4] = broadcast(%y, new_axes=(0,), shape=(5, 4))
          %1: f64[2] = scatter_add(%x, %0, %i, axis=0)
          return %1
        }""")
    positions = np.arange(20).reshape(5, 4) % 2
    assert_kernels_agree(graph, np.zeros(2), np.arange(4.0), positions)


def test_zero_times_infinity_is_nan_in_a_product_with_a_single_element() -> None:
    """NumPy's `dot` scales by a matrix of one element, and scaling by zero skips everything."""
    graph = parse("""
        graph f(%x: f64[1,1], %y: f64[1,3]) {
          %0: f64[1,3] = matmul(%x, %y)
          return %0
        }""")
    assert_kernels_agree(graph, np.zeros((1, 1)), np.array([[-1.0, np.inf, np.nan]]))


@pytest.mark.parametrize(
    ("equations", "left"),
    [
        (
            """%0: bool[2] = full(value=False, shape=(2,), dtype=bool)
               %1: bool[2] = logical_not(%0)
               %2: f64[2] = select(%1, %x, %y)""",
            0,
        ),
        (
            """%0: f64[] = constant(value=f64[]{-1.0})
               %1: f64[2] = broadcast(%0, shape=(2,), new_axes=(0,))
               %3: f64[2] = mul(%x, %1)
               %2: f64[2] = add(%3, %y)""",
            1,
        ),
    ],
)
def test_folding_finds_what_simplifying_needs(equations: str, left: int) -> None:
    """Constants were folded after the rules had been applied, and nothing came after that."""
    graph = parse(f"""
        graph f(%x: f64[2], %y: f64[2]) {{
          {equations}
          return %2
        }}""")
    cleaned = clean_up(graph)
    assert len(cleaned) == left
    assert clean_up(cleaned) == cleaned


def test_a_product_of_two_negatives_has_no_sign_left() -> None:
    """What a rule of simplify had recorded was not simplified in its turn."""
    graph = parse("""
        graph f(%x: f64[2], %y: f64[2]) {
          %0: f64[2] = neg(%x)
          %1: f64[2] = neg(%y)
          %2: f64[2] = mul(%0, %1)
          return %2
        }""")
    assert [e.op.name for e in simplify(graph).body] == ["mul"]


def test_an_input_that_does_not_matter_has_no_gradient_beside_one_that_does() -> None:
    """Every input got the gradient of the only one that an elementwise output depends on."""
    builder = Builder("f")
    x, y = (Variable(builder, builder.input(TensorType((3,), FLOAT64))) for _ in range(2))
    by_x, by_y = grad(sin(y), [x, y])
    assert by_x is None
    assert by_y is not None


def test_a_branch_may_be_guarded_by_a_condition_and_by_its_negation() -> None:
    """A use where `not c` is false and one where `c` is true were taken for different guards."""
    graph = parse("""
        graph f(%x: f64[2], %zero: f64[2]) {
          %0: bool[2] = greater(%x, %zero)
          %1: bool[2] = logical_not(%0)
          %2: f64[2] = log(%x)
          %3: f64[2] = select(%1, %zero, %2)
          %4: f64[2] = mul(%2, %2)
          %5: f64[2] = select(%0, %4, %3)
          return %5
        }""")
    (slope,) = gradient(graph, np.array([0.0, 1.0]), np.zeros(2))
    assert np.array_equal(slope, [0.0, 0.0])


def test_the_larger_of_two_zeros_depends_on_their_order() -> None:
    """Both orders were one equation, although NumPy takes the second of two equal operands."""
    builder = Builder("f")
    x, y = (builder.input(TensorType((), FLOAT64)) for _ in range(2))
    with builder:
        outputs = [maximum(x, y), maximum(y, x), minimum(x, y), minimum(y, x)]
    feeds = np.array(0.0), np.array(-0.0)
    expected = [np.maximum(*feeds), np.maximum(*feeds[::-1])]
    expected += [np.minimum(*feeds), np.minimum(*feeds[::-1])]
    results = interpret(builder.graph(outputs), *feeds)
    assert [np.signbit(r) for r in results] == [np.signbit(e) for e in expected]


def test_a_nan_that_arithmetic_makes_is_folded_as_well() -> None:
    """The NaN of 0 / 0 has a sign bit, which a uniform constant has no text for."""
    graph = parse("""
        graph f(%x: f64[2]) {
          %0: f64[2] = full(value=0.0, shape=(2,), dtype=f64)
          %1: f64[2] = div(%0, %0)
          %2: f64[2] = mul(%1, %x)
          return %2
        }""")
    assert [e.op.name for e in clean_up(graph).body] == ["full", "mul"]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,)])
@pytest.mark.parametrize("exponent", [0.5, 2.0, -1.0])
def test_powers_are_those_of_arrays_whatever_buffer_they_are_written_to(shape, exponent):
    """In place NumPy took the root of -inf, which is NaN, where the power is infinite."""
    graph = pg.trace(lambda x, y: (x * 3.0) ** y - y, pg.spec(shape), pg.spec(shape))
    for base in (-np.inf, -0.0, 3.0, np.nan):
        feeds = np.full(shape, base), np.full(shape, exponent)
        expected = interpret(graph, *feeds)[0]
        for style in ("planned", "readable"):
            found = pg.compile(graph, style=style)(*feeds)
            assert found.tobytes() == expected.tobytes(), (style, base)


def test_a_body_in_a_body_is_cleaned_until_nothing_is_left_to_do() -> None:
    graph = parse("""
        graph f(%x1: f64[1,1], %0: f64[1,1]) {
          %1: f64[1,1] = scan(%x1, %x1, %x1, body=graph b(%0: f64[1,1], %x1: f64[1], %1: f64[1]) {
            %2: bool[1] = full(dtype=bool, shape=(1,), value=True)
            %3: bool[1] = logical_not(%2)
            %4: f64[1] = full(dtype=f64, shape=(1,), value=-2.25)
            %5: f64[1] = select(%3, %1, %4)
            return %5
          }, carries=0, consts=1, counted=False, length=1, reverse=False)
          %2: f64[1,1,1] = scan(%1, %0, body=graph body(%0: f64[1,1], %1: f64[1,1]) {
            %3: f64[] = reduce_sum(%0, axes=(0, 1))
            %4: i64[] = cast(%3, dtype=i64)
            %5: f64[1,1], %6: f64[1,1] = cond(%4, %1, branches=(graph body(%0: f64[1,1]) {
              %1: f64[1,1] = mul(%0, %0)
              %2: f64[1,1] = full(dtype=f64, shape=(1, 1), value=0.5)
              %3: f64[1,1] = add(%1, %2)
              %4: f64[1,1] = rsqrt(%3)
              return %4, %4
            },))
            return %6
          }, carries=0, consts=2, counted=False, length=1, reverse=False)
          return %2
        }""")
    once = clean_up(graph)
    assert clean_up(once) == once


def test_rows_of_no_elements_that_are_counted_while_a_loop_runs_are_not_looked_into() -> None:
    graph = parse("""
        graph f(%x: f64[0,1], %count: i64[]) {
          %start: i64[] = full(dtype=i64, shape=(), value=0)
          %y: f64[0,1], %n: i64[], %trips: i64[] = while_loop(%count, %x, %start, body=graph trip(%0: i64[], %1: f64[0,1], %2: i64[]) {
            %3: f64[0,1] = mul(%1, %1)
            %4: f64[0] = reduce_sum(%3, axes=(1,))
            %5: f64[0] = stop_gradient(%4)
            %6: f64[0] = root_of_squares(%1, %5, axes=(1,), divisor=3.0)
            %7: f64[0] = full(dtype=f64, shape=(0,), value=0.0)
            %8: bool[0] = equal(%6, %7)
            %9: f64[0] = full(dtype=f64, shape=(0,), value=inf)
            %10: f64[0] = select(%8, %9, %6)
            %11: f64[0,1] = broadcast(%10, new_axes=(1,), shape=(0, 1))
            %12: f64[0,1] = div(%1, %11)
            %13: i64[] = full(dtype=i64, shape=(), value=1)
            %14: i64[] = add(%2, %13)
            return %12, %14
          }, consts=1, limit=None, test=graph goes_on(%0: i64[], %1: f64[0,1], %2: i64[]) {
            %3: bool[] = less(%2, %0)
            return %3
          })
          return %y
        }""")  # noqa: E501
    x, count = np.zeros((0, 1)), np.array(3)
    jvp = linearize(graph, [0])
    linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
    vjp = linearize(transpose(linear, [2]), [0])
    assert interpret(vjp, x, count, x, x)[0].shape == (0, 1)


@pytest.mark.parametrize("axis", [0, 1])
def test_numbers_that_have_an_axis_of_one_are_joined(axis: int) -> None:
    """Readable code concatenated numbers without axes."""
    shape, joined = [(1,), "f64[3]"] if not axis else [(2, 1), "f64[2,3]"]
    type, given = ("f64[]", "()") if not axis else ("f64[2]", "(2,)")
    whole = joined.replace("3", "1")
    graph = parse(f"""
        graph f() {{
          %0: {type} = full(dtype=f64, shape={given}, value=0.5)
          %1: {whole} = reshape(%0, shape={shape})
          %2: {joined} = concat(%1, %1, %1, axis={axis})
          return %2
        }}""")
    assert_kernels_agree(graph)
