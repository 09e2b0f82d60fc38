"""Columns and groups of pictures: loops, orders of derivatives, operators, graphs with sizes."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from random_programs import random_program

import primgraph as pg
from primgraph.view import shades
from primgraph.view.folding import nested_groups, op_of, open_groups, tree_of
from primgraph.view.layers import part_title
from primgraph.view.loop_bodies import Span, enclosing_spans, with_whole_bodies
from primgraph.view.picture import picture_of

LOOPS = ["scan", "while_loop", "fori_loop"]


def looped(kind, outputs=None):
    """The program of a loss after a loop, and its gradient by the weights."""
    with pg.Program(kind) as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3, 3))
        if kind == "scan":
            last, _ = pg.scan(lambda h, a: (pg.tanh(w @ h + a),) * 2, x, pg.data("a", (5, 3)))
        elif kind == "while_loop":
            last = pg.while_loop(
                lambda v: pg.sum(v * v) < 9.0, lambda v: pg.tanh(w @ v) + v, x, max_trips=9
            )
        else:
            last = pg.fori_loop(0, 5, lambda i, v: pg.tanh(w @ v), x)
        loss = pg.sum(last**2)
        gradient = pg.grad(loss, w)
    return program, loss, gradient


def loops_in(picture):
    """The label, the part and the lane of each loop, from the outermost groups."""
    root = tree_of(picture, "layer")
    return [(n.label.split()[0], n.part, n.lane) for n in root.children if n.kind == "body"]


@pytest.mark.parametrize("kind", LOOPS)
def test_the_forward_loop_stands_once_and_in_the_forward_column(kind):
    program, loss, gradient = looped(kind)
    for drawn in (program, program.graph([loss, gradient]), program.graph([gradient])):
        picture = picture_of(drawn)
        (forward, reverse) = loops_in(picture)
        assert forward[1:] == ("forward", ("forward", 0))
        assert reverse[1:] == ("cotangent", ("cotangent", 1))
        root = tree_of(picture, "layer")
        weights = next(n for n in root.children if n.label == "w")
        assert weights.lane == ("forward", 0)
    assert len(loops_in(picture_of(pg.compile(program.graph())))) == 2


@pytest.mark.parametrize("kind", LOOPS)
def test_the_graph_of_a_loop_with_its_gradient_has_two_outputs(kind):
    program, loss, gradient = looped(kind)
    graph = program.graph()
    assert list(graph.outputs) == [loss.value, gradient.value]


def test_unused_results_are_outputs_only_where_they_have_a_name():
    with pg.Program() as program:
        x, w = pg.data("x", (5,)), pg.data("w", ())
        last, rows = pg.scan(lambda h, a: (pg.tanh(w * h + a),) * 2, 0.0, x)
        loss = pg.sum(rows**2)
        pg.grad(loss, [w, x])
    assert len(program.graph().outputs) == 3
    last.name = "last"
    assert last.value in program.graph().outputs


def test_equal_loops_compute_the_same_when_they_are_one():
    program, loss, gradient = looped("scan")
    kernel = pg.compile(program.graph([loss, gradient]))
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal(v.type.shape) for v in program.inputs.values()]
    found = kernel(*feeds)
    wanted = pg.interpret(pg.transforms.lower(program.graph([loss, gradient])), *feeds)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    source = kernel.source
    assert source.count("in the gradient of") < source.count("# ")


@pytest.mark.parametrize("loops", [True, False])
def test_bodies_of_loops_are_drawn_by_option(loops):
    program, _, _ = looped("scan")
    text = program.to_svg(limit=10 if loops else 1000, loops=loops)
    frames = re.findall(r'<g class="\w+ open">', text)
    assert len(frames) == (2 if loops else 0)
    assert ("tanh" in re.sub("<title>.*?</title>", "", text, flags=re.DOTALL)) == loops


@pytest.mark.parametrize("kind", ["layer", "line", "pattern", "none"])
def test_a_loop_is_a_group_in_each_kind_of_grouping(kind):
    program, _, _ = looped("while_loop")
    picture = picture_of(program)
    root = tree_of(picture, kind)
    bodies = [n for n in nested_groups(root) if n.kind == "body"]
    assert len(bodies) == 4
    labels = {n.label.split()[0] for n in bodies}
    assert labels == {"while_loop", "test", "body", "scan"}
    assert sorted(root.boxes) == list(range(len(picture.boxes)))


def test_layers_have_loops_as_a_whole():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.create_parameter((3, 3), name="cell.weight")
        y = pg.fori_loop(0, 5, lambda i, v: pg.tanh(w @ v) + v, x)
        pg.optimizer.SGD(0.1).minimize(pg.sum(y**2))
    picture = picture_of(program)
    groups = [set(g.members) for g in picture.groupings["layer"]]
    for one in groups:
        assert all(one <= other or other <= one or not one & other for other in groups)
    root = tree_of(picture, "layer")
    cells = {n.part for n in root.children if n.label == "cell"}
    assert cells == {"forward", "cotangent", "update"}
    assert not any(n.kind == "body" for n in root.children)


@pytest.mark.parametrize("seed", range(30))
def test_groups_of_random_programs_nest(seed):
    program = random_program(seed)
    for graph in (program.graph, pg.transforms.linearize(pg.transforms.lower(program.graph))):
        picture = picture_of(graph)
        for kind in ("layer", "line", "pattern", "none"):
            root = tree_of(picture, kind)
            assert sorted(root.boxes) == list(range(len(picture.boxes)))
            bodies = [n.boxes for n in nested_groups(root) if n.kind == "body"]
            assert all(b == list(range(b[0], b[-1] + 1)) for b in bodies)


def test_groups_have_bodies_as_a_whole_or_are_within_them():
    inner, body = Span("scan", 4, 7, True), Span("body", 2, 8, False)
    around = enclosing_spans([inner, body, Span("while", 2, 10, True)])
    for given, expected in {
        (9,): (2, 3, 4, 5, 6, 7, 8, 9),
        (1, 3): (1,),
        (4, 5): (4, 5),
        (3, 6): (3, 4, 5, 6),
        (3, 5): (3,),
        (0, 1): (0, 1),
        (): (),
    }.items():
        assert with_whole_bodies(given, around) == expected


def test_the_results_of_bodies_come_from_their_own_boxes():
    """Also where the test and the body of one loop have the same inputs, as joined loops do."""
    program, _, _ = looped("while_loop")
    picture = picture_of(program)
    titled = {g.label.split()[0]: g for g in picture.groupings["layer"] if g.kind == "body"}
    loop = titled["while_loop"].members[-1]
    test = set(titled["test"].members)
    ends = [a.tail for a in picture.arrows if a.head == loop and a.tail in test]
    assert [op_of(picture.boxes[i]) for i in ends] == ["less"]


# Orders of derivatives.


def derived(orders, take=pg.grad):
    with pg.Program() as program:
        x = pg.data("x", (3,))
        values = [x * pg.tanh(x)]
        for _ in range(orders):
            values.append(take(values[-1], x))
    return program, values


def columns(svg):
    return re.findall(r'<text class="heading"[^>]*>([^<]*)<', svg)


@pytest.mark.parametrize("take", [pg.grad, pg.forward_grad], ids=["grad", "forward_grad"])
def test_each_order_has_a_column_and_a_shade(take):
    program, _ = derived(3, take)
    svg = program.to_svg()
    titles = ["forward mode", "forward mode, order 2", "forward mode, order 3"]
    assert columns(svg) == ["forward", *titles]
    for order, title in enumerate(titles[1:], 2):
        assert f'<g class="tangent o{order} column">' in svg
        assert f">{title}</text>" in svg
        assert f".tangent.o{order} .shape{{" in svg
    counted = Counter((b.part, b.order) for b in picture_of(program).boxes)
    assert all(counted["tangent", order] >= 3 for order in (1, 2, 3))
    page = program.to_html()
    assert all(f".order-{order}" in page for order in (2, 3, 4))
    for text in (program.to_dot(), program.to_mermaid()):
        found = {shades.paint("tangent", n, shades.LIGHT).fill for n in (1, 2, 3)}
        assert len(found) == 3
        assert all(fill in text for fill in found)


def test_outputs_are_numbered_by_the_order_of_the_derivative():
    program, _ = derived(3)
    labels = [b.label for b in picture_of(program).boxes if b.part == "output"]
    told = ["gradient by x", "gradient by x, order 2", "gradient by x, order 3"]
    assert [label for label in labels if "gradient" in label] == told


def test_reverse_mode_is_called_reverse():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3, 3))
        first = pg.grad(pg.sum(pg.tanh(w @ x) ** 2), w)
        pg.grad(pg.sum(first * first), x)
    assert columns(program.to_svg()) == ["forward", "reverse", "reverse, order 2"]
    assert part_title("cotangent", 1) == "reverse"
    assert '"reverse"' in program.to_html()


def test_one_pass_is_one_column():
    """Reverse mode through a second derivative goes through lines of all orders."""
    with pg.Program() as program:
        x, w = pg.data("x", (4,)), pg.data("w", (4,))
        u = pg.tanh(w * x) * pg.sin(x)
        second = pg.forward_grad(pg.forward_grad(u, x), x)
        pg.grad(pg.mean((second + u) ** 2), w)
    found = {(b.part, b.order) for b in picture_of(program).boxes if b.order}
    assert found == {("tangent", 1), ("tangent", 2), ("cotangent", 3)}


def test_second_derivatives_have_their_column_where_the_first_is_not_fetched():
    program, values = derived(2)
    found = {b.order for b in picture_of(program.graph([values[2]])).boxes if b.part == "tangent"}
    assert 2 in found


def test_no_derivative_takes_part_of_a_higher_one():
    inner = pg.grad(lambda y: np.sum(np.tanh(y) ** 3 * y[0]))
    function = pg.jit(pg.grad(lambda x: np.sum(inner(x) ** 2)))
    picture = picture_of(function.kernel(np.ones(3)))
    orders = [b.order for b in picture.boxes]
    assert set(orders) == {0, 1, 2}
    pairs = [(orders[a.tail], orders[a.head]) for a in picture.arrows]
    assert all(tail <= head for tail, head in pairs if head)


def test_shades_differ_and_text_stands_out():
    def luminance(colour):
        linear = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in linear]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        light, dark = sorted((luminance(a), luminance(b)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    for colours in (shades.LIGHT, shades.DARK):
        for part in ("tangent", "cotangent"):
            paints = [shades.paint(part, n, colours) for n in range(1, 5)]
            assert len({p.fill for p in paints}) == len({p.stroke for p in paints}) == 4
            assert shades.paint(part, 9, colours) == paints[-1]
            for paint in paints:
                assert contrast(colours["ink"], paint.fill) >= 4.5
                assert contrast(paint.stroke, paint.lane) >= 3


# Operators.


def classifying(form, labels="int64"):
    """A program with a cross entropy, drawn in one of the forms that it takes."""
    with pg.Program() as program:
        x, w = pg.data("x", (8, 5)), pg.data("w", (5, 3))
        t = pg.data("t", (8,) if labels == "int64" else (8, 3), labels)
        if form == "layers":
            net = pg.nn.Sequential(pg.nn.Linear(5, 16), pg.nn.Tanh(), pg.nn.Linear(16, 3))
            loss = pg.cross_entropy(net(x), t)
            pg.optimizer.Adam(0.1).minimize(loss)
            return program
        loss = pg.cross_entropy(x @ w, t)
        gradient = pg.grad(loss, w)
    graph = program.graph([loss, gradient])
    return {
        "program": lambda: program,
        "graph": lambda: graph,
        "kernel": lambda: pg.compile(graph),
        "lowered": lambda: pg.transforms.lower(graph),
    }[form]()


@pytest.mark.parametrize("labels", ["int64", "float64"])
@pytest.mark.parametrize("form", ["program", "graph", "kernel", "lowered", "layers"])
def test_what_cross_entropy_became_stands_in_its_box(form, labels):
    drawn = classifying(form, labels)
    picture = picture_of(drawn)
    root = tree_of(picture, "layer")
    groups = [n for n in nested_groups(root) if n.label == "cross_entropy"]
    inside = {i for n in groups for i in n.boxes}
    own = {b.id for b in picture.boxes if dict(b.details).get("operator") == "cross_entropy"}
    assert own <= inside
    assert {n.part for n in groups} == {"forward", "cotangent"}
    assert open_groups(root, 60).isdisjoint(groups)
    folded = re.sub("<title>.*?</title>", "", drawn.to_svg(), flags=re.DOTALL)
    assert folded.count(">cross_entropy (") == 2
    assert "gather" not in re.sub(r'<text class="note[^>]*>[^<]*', "", folded)
    assert ">gather<" in drawn.to_svg(limit=1000, operators=True) or labels == "float64"


# Graphs with sizes.


def sized_programs():
    with pg.Program("plain") as plain:
        x, w = pg.data("x", (None, 3)), pg.data("w", (3, 2))
        pg.grad(pg.sum(pg.tanh(x @ w)), w)
    with pg.Program("training") as training:
        x, t = pg.data("x", ("N", 5)), pg.data("t", ("N",), "int64")
        pg.optimizer.SGD(0.1).minimize(pg.cross_entropy(pg.nn.Linear(5, 3)(x), t))
    with pg.Program("loop") as loop:
        w = pg.data("w", (3,))
        last, _ = pg.scan(lambda h, a: (pg.tanh(w * h + a), None), w, pg.data("a", ("T", 3)))
        pg.grad(pg.sum(last), w)
    return [plain, training, loop]


@pytest.mark.parametrize("place", range(3))
def test_programs_with_sizes_have_steps_source_and_pictures(place):
    program = sized_programs()[place]
    graph = program.graph()
    (size,) = graph.sizes
    steps = pg.steps(program)
    assert [s.name for s in steps] == ["as built", "lowered", "cleaned up", "planned"]
    assert any("return" in line for line in steps["planned"].lines)
    assert size in str(steps)
    assert "<svg" in steps.to_html()
    executor = pg.Executor()
    kernel = executor.kernel(program, list(program.variables())[-1:])
    compiled = pg.compile(graph)
    for found in (kernel, compiled):
        assert f"def {program.name}(" in found.source
        assert [s.name for s in pg.steps(found)][-1] == "planned"
        assert "<svg" in found.to_svg()
        assert found.to_dot().startswith("digraph")
        assert "<svg" in found._repr_html_() or "<table" in found._repr_html_()
    assert executor.kernel(program, list(program.variables())[-1:], sizes={size: 4}).plan


def test_functions_with_sizes_have_steps_and_source():
    function = pg.jit(pg.grad(lambda x: np.sum(np.tanh(x) ** 2)), sizes={"x": ("N",)})
    kernel = function.kernel(np.ones(4))
    assert "np.tanh" in kernel.source
    assert next(iter(pg.steps(kernel))).name == "as built"
    assert len(pg.steps(pg.trace(lambda x: pg.sum(x**2), pg.spec("N")))) == 6
    assert "reverse" in kernel.to_svg() or "forward mode" in kernel.to_svg()


def test_the_kernel_of_all_sizes_computes_what_runs_do():
    program = sized_programs()[0]
    ends = program.graph().outputs
    kernel = pg.Executor().kernel(program, [v for v in program.variables() if v.value in ends])
    rng = np.random.default_rng(0)
    for rows in (2, 7):
        feeds = rng.standard_normal((rows, 3)), rng.standard_normal((3, 2))
        for one, other in zip(kernel(*feeds), pg.compile(program.graph())(*feeds), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
