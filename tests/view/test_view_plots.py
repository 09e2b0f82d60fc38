"""Steps of the compiler, pictures of sparsity, and plots of growth."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from view_graphs import HOSTILE, chain, net

import primgraph as pg
from primgraph.errors import ArgumentError, CompileError, FeedError, OptionError, ShapeError
from primgraph.view.growth import Growth

SPACE = "{http://www.w3.org/2000/svg}"


def dots(text, tag="rect"):
    root = ElementTree.fromstring(text)
    return [e for e in root.findall(f"{SPACE}{tag}") if e.get("class") == "dot"]


# Steps.


def test_steps_show_the_way_from_operators_to_code():
    graph = pg.trace(lambda x: pg.mean(pg.softmax(x) ** 2), pg.spec(5))
    found = pg.steps(graph)
    names = ["as built", "lowered", "linearized", "transposed", "cleaned up", "planned"]
    assert [s.name for s in found] == names
    assert found["as built"].graph is graph
    assert found["lowered"].graph == pg.transforms.lower(graph)
    assert found["linearized"].graph == pg.transforms.linearize(found["lowered"].graph)
    assert found["cleaned up"].graph == found["planned"].graph
    x, ct = np.arange(5.0), np.array(2.0)
    wanted = (
        2.0 * pg.interpret(pg.trace(lambda x: pg.grad(pg.mean(pg.softmax(x) ** 2), x), x), x)[0]
    )
    for name in ("transposed", "cleaned up"):
        np.testing.assert_allclose(pg.interpret(found[name].graph, x, ct)[0], wanted, rtol=1e-13)
    assert str(found).splitlines()[1].split()[:3] == ["as", "built", "3"]
    assert repr(found).startswith("<Steps as built: 3, lowered: ")
    with pytest.raises(ArgumentError, match="no step 'optimized'"):
        found["optimized"]


def test_lines_of_steps_belong_to_their_equations():
    for stage in pg.steps(net(2), derivative=True):
        assert len(stage.lines) == len(stage.equations)
        drawn = stage.step()
        assert len(drawn.boxes) == len(drawn.lines) == len(stage.lines)
        if stage.name == "planned":
            found = [i for i in stage.equations if i >= 0]
            assert len(set(found)) > 20
            continue
        assert [i for i in stage.equations if i >= 0] == list(range(len(stage.graph)))
        for line, i, box in zip(stage.lines, stage.equations, drawn.boxes, strict=True):
            if box >= 0:
                assert f" = {stage.graph.body[i].op.name}(" in line
                name, shown = stage.graph.body[i].op.name, drawn.picture.boxes[box]
                # An operator of which derivatives use the inside is drawn as what it consists of.
                inside = ("operator", name) in shown.details
                # So is what has the slope of one, as the operator itself.
                own = name == f"as_{shown.label}_of"
                assert name in shown.label or inside or own or shown.part == "constant"


def test_lines_of_a_kernel_are_those_of_its_source():
    kernel = pg.compile(net(1))
    for style in ("planned", "readable"):
        lines = kernel.lines(style)
        source = kernel.planned_source if style == "planned" else kernel.source
        assert [text for text, _ in lines] == source.splitlines()
        shown = {kernel.graph.body[i].op.name: text for text, i in lines if i >= 0}
        assert "tanh(" in shown["tanh"]
    with pytest.raises(CompileError, match="no style 'fast'"):
        kernel.lines("fast")


def test_the_derivative_is_shown_only_of_what_has_none():
    plain = ["as built", "lowered", "cleaned up", "planned"]
    assert [s.name for s in pg.steps(net(1))] == plain
    whole = pg.trace(lambda x: x + 1, pg.spec(3, "int64"))
    assert [s.name for s in pg.steps(whole)] == plain
    assert [s.name for s in pg.steps(chain(2), derivative=False)] == plain
    assert len(pg.steps(net(1), derivative=True)) == 6


def test_steps_become_a_page(tmp_path):
    found = pg.steps(chain(3))
    found.save(tmp_path / "steps.html")
    text = (tmp_path / "steps.html").read_text(encoding="utf-8")
    assert text == found.to_html()
    assert all(f'"{stage.name}"' in text for stage in found)
    with pytest.raises(ArgumentError, match=r"saved as \.html"):
        found.save(tmp_path / "steps.svg")


# Sparsity.


def test_a_matrix_is_drawn_with_a_sign_for_each_element():
    found = pg.spy(np.array([[1.0, 0.0, np.nan], [0.0, -2.0, -0.0]]))
    assert str(found) == "2 x 3, 3 nonzeros (50 %)\n█·█\n·█·"
    assert found.count == 3
    squares = dots(found.to_svg())
    assert len(squares) == 3
    places = {(float(s.get("x")), float(s.get("y"))) for s in squares}
    assert len({x for x, _ in places}) == 3
    assert len({y for _, y in places}) == 2
    assert found._repr_svg_() == found.to_svg()


def test_a_large_matrix_is_drawn_in_cells_that_miss_nothing():
    mask = np.zeros((1000, 700), bool)
    mask[[0, 999, 500], [0, 699, 3]] = True
    text = str(pg.spy(mask)).splitlines()
    assert text[0] == "1000 x 700, 3 nonzeros (0.000429 %)"
    picture = text[1:-1]
    assert len(picture) <= 36
    assert all(len(row) <= 72 for row in picture)
    assert sum(c != "·" for row in picture for c in row) == 3
    assert picture[0][0] != "·" != picture[-1][-1]
    assert "stands for up to 28 x 10 elements" in text[-1]
    assert len(dots(pg.spy(mask).to_svg())) == 3


def test_the_fullest_cell_is_black_and_others_are_in_proportion():
    mask = np.eye(144, dtype=bool)
    mask[:4, :2] = True
    letters = {c for row in str(pg.spy(mask)).splitlines()[1:-1] for c in row}
    assert {"·", "█"} <= letters
    assert letters & set("░▒▓")


def test_spy_has_axes_a_title_and_by_request_the_colours_of_the_products():
    matrix = pg.sparse_jacobian(lambda x: x[1:] ** 2 * x[:-1], np.ones(12))
    plain, found = pg.spy(matrix), pg.spy(matrix, coloring=True)
    root = ElementTree.fromstring(found.to_svg())
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:3] == ["11 x 12, 22 nonzeros (16.7 %), 2 colours", "column", "row"]
    assert texts[3:9] == ["0", "2", "4", "6", "8", "11"]
    assert texts[-1] == "10"
    fills = {(s.get("x"), s.get("y")): s.get("style") for s in dots(found.to_svg())}
    assert len(set(fills.values())) == 2
    for (x, _), fill in fills.items():
        assert {f for (other, _), f in fills.items() if other == x} == {fill}
    assert all(s.get("style") is None for s in dots(plain.to_svg()))
    assert pg.spy(matrix, coloring=pg.coloring(matrix.pattern)).coloring is not None
    with pytest.raises(ShapeError, match=r"the coloring is of a matrix of shape \(11, 12\)"):
        pg.spy(np.eye(3), coloring=pg.coloring(matrix.pattern))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_a_matrix_may_be_empty(shape):
    found = pg.spy(np.ones(shape))
    assert str(found).startswith(f"{shape[0]} x {shape[1]}, {shape[0] * shape[1]} nonzeros")
    assert len(dots(found.to_svg())) == shape[0] * shape[1]


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((2, 2, 2)), np.array([["a"]]), 3])
def test_only_matrices_are_drawn(wrong):
    with pytest.raises(ShapeError, match="spy takes a matrix of numbers"):
        pg.spy(wrong)


def test_a_variable_has_no_elements_to_draw():
    with pg.Program() as program:
        x = pg.data("x", (2, 2))
        with pytest.raises(ArgumentError, match=r"(?s)not <Variable 'x'.*Executor"):
            pg.spy(x)
    assert program.operators() == ()


def test_the_structure_of_jacobians_and_hessians():
    with pg.Program():
        x = pg.data("x", (6,))
        jacobian = pg.Jacobian(lambda x: x[1:] * x[:-1], x)
        hessian = pg.Hessian(lambda x: pg.sum(x[1:] ** 2 * x[:-1]) + pg.sum(pg.log(x)), x)
        lower = pg.Jacobian(lambda x: pg.cumsum(x), x, flat=False)
        assert np.array_equal(pg.spy(jacobian).mask, np.eye(5, 6) + np.eye(5, 6, 1) > 0)
        band = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) < 2
        assert np.array_equal(pg.spy(hessian).mask, band)
        assert np.array_equal(pg.spy(lower).mask, np.tri(6, dtype=bool))
        at_zero = pg.spy(jacobian, feed={"x": np.zeros(6)})
        assert at_zero.count == 0


def test_kinks_and_undefined_slopes_hide_nothing_and_add_nothing():
    diagonal, band = np.eye(6, dtype=bool), (np.eye(5, 6) + np.eye(5, 6, 1)) > 0
    with pg.Program():
        x = pg.data("x", (6,))
        for function, wanted in (
            (lambda x: pg.relu(x - 2.0), diagonal),
            (lambda x: pg.minimum(x, 0.0), diagonal),
            (lambda x: pg.sqrt(x[1:] - x[:-1]), band),
            (lambda x: pg.log(x) * pg.sqrt(-x), diagonal),
            (lambda x: pg.where(x > 1e9, 0.0, pg.floor(x)) + x**3, diagonal),
        ):
            assert np.array_equal(pg.spy(pg.Jacobian(function, x)).mask, wanted)


def test_blocks_and_samples_of_a_jacobian_are_one_matrix():
    with pg.Program():
        x, y = pg.data("x", (2,)), pg.data("y", (3,))
        blocks = pg.Jacobian(lambda x, y: [x * 2.0, pg.sum(y)], [x, y], blocks=True)
        wanted = np.zeros((3, 5), bool)
        wanted[[0, 1], [0, 1]] = True
        wanted[2, 2:] = True
        assert np.array_equal(pg.spy(blocks).mask, wanted)
        z = pg.data("z", (4, 3))
        samples = pg.Jacobian(lambda z: z[:, ::-1] * 1.0, z, is_batched=True)
        assert np.array_equal(pg.spy(samples).mask, np.eye(3, dtype=bool)[::-1])


def test_spy_leaves_states_alone_and_takes_their_values():
    with pg.Program() as program:
        x = pg.data("x", (2,))
        w = pg.create_parameter((2,), name="w", initializer=pg.initializers.Constant(0.0))
        program.update(w, w + 1.0)
        jacobian = pg.Jacobian(lambda x: x * w, x)
        ones = {"x": np.ones(2)}
        assert pg.spy(jacobian).count == 2, "the parameter may be any"
        assert pg.spy(jacobian, ones).count == 0, "the parameter is zero at first"
        assert pg.spy(jacobian, ones).count == 0, "and looking at it has not updated it"
        assert pg.spy(jacobian, feed={"x": np.ones(2), "w": np.ones(2)}).count == 2


def test_without_a_feed_both_branches_count():
    with pg.Program():
        x, i = pg.data("x", (3,)), pg.data("i", (), "int64")
        jacobian = pg.Jacobian(lambda x: pg.where(i > 0, x, x[::-1]), x)
        assert np.array_equal(pg.spy(jacobian).mask, np.eye(3) + np.eye(3)[::-1] > 0)
        assert np.array_equal(pg.spy(jacobian, {"i": np.array(1)}).mask, np.eye(3, dtype=bool))
        with pytest.raises(FeedError, match="spy needs values for 'i' too"):
            pg.spy(jacobian, {"x": np.ones(3)})


def test_a_large_pattern_is_drawn_without_its_mask():
    with pg.Program():
        x = pg.data("x", (200_000,))
        found = pg.spy(pg.Hessian(lambda x: pg.sum(x[1:] ** 2 * x[:-1]), x))
    assert found.count == 599_997
    rows = str(found).splitlines()[1:-1]
    assert [row.find("█") for row in rows] == sorted(row.find("█") for row in rows)
    with pytest.raises(ArgumentError, match="of variables, not of tensors"):
        pg.spy(pg.Jacobian(lambda x: x * x, pg.tensor(np.ones(2), requires_grad=True)))


def test_spy_pictures_are_saved(tmp_path):
    found = pg.spy(np.eye(3))
    found.save(tmp_path / "eye.svg")
    found.save(tmp_path / "eye.txt")
    assert (tmp_path / "eye.svg").read_text(encoding="utf-8") == found.to_svg()
    assert (tmp_path / "eye.txt").read_text(encoding="utf-8") == str(found)
    with pytest.raises(ArgumentError, match=r"saved as \.svg or \.txt"):
        found.save(tmp_path / "eye.png")


def test_a_large_matrix_keeps_its_shape_in_a_picture():
    for shape in ((280, 500), (900, 450), (8, 3000)):
        places = np.linspace(0, shape[0] - 1, 40).astype(int)
        pattern = pg.Pattern.from_coo(places, places * shape[1] // shape[0], shape)
        text = pg.spy(pattern).to_svg()
        frame = re.search(r'class="frame" .* width="([\d.]+)" height="([\d.]+)"', text)
        width, height = map(float, frame.groups())
        seen, true = height / width, shape[0] / shape[1]
        # Of eight rows nothing would be seen.
        assert abs(seen / true - 1) < 0.02 if min(shape) > 8 else seen > 2 * true


# Growth.


def test_the_tenth_derivative_of_tanh_has_79_equations():
    found = pg.growth(pg.tanh, pg.spec(3), orders=10)
    assert found.equations == (1, 4, 7, 11, 17, 28, 36, 46, 53, 67, 79)
    lines = str(found).splitlines()
    assert lines[:2] == ["equations of the derivatives of tanh, reverse mode", "order  equations"]
    assert lines[-1] == f"   10         79  {'█' * 40}"
    assert len(dots(found.to_svg(), "circle")) == 11


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_growth_counts_what_would_be_compiled(mode):
    def second(x):
        derive = pg.grad if mode == "reverse" else pg.forward_grad
        return derive(derive(pg.sin(x) * pg.exp(x), x), x)

    found = pg.growth(lambda x: pg.sin(x) * pg.exp(x), pg.spec(4), orders=2, mode=mode)
    assert found.equations[0] == 3
    assert found.equations[2] == len(pg.compile(pg.trace(second, pg.spec(4))).graph)


def test_growth_of_a_graph_and_of_what_ends():
    graph = pg.trace(lambda x, y: x * x * y, pg.spec(3), pg.spec(3))
    for mode in ("reverse", "forward"):
        found = pg.growth(graph, orders=4, mode=mode)
        assert found.name == graph.name
        assert found.equations[3:] == (1, 1), "zeros are one constant"


def test_growth_refuses_what_it_cannot_count():
    with pytest.raises(OptionError, match="'reverse' or 'forward', not 'taylor'"):
        pg.growth(pg.tanh, pg.spec(3), mode="taylor")
    with pytest.raises(OptionError, match="not negative, not -1"):
        pg.growth(pg.tanh, pg.spec(3), orders=-1)
    with pytest.raises(pg.NotDifferentiable):
        pg.growth(lambda i: i + 1, pg.spec(3, "int64"))


@pytest.mark.parametrize("name", HOSTILE)
def test_plots_of_hostile_names_are_xml(name):
    found = Growth(name, "reverse", (0, 0, 3))
    root = ElementTree.fromstring(found.to_svg())
    known = {"svg", "title", "style", "rect", "text", "polyline", "circle"}
    assert {e.tag.removeprefix(SPACE) for e in root.iter()} <= known


def test_growth_is_saved(tmp_path):
    found = Growth("f", "forward", (5,))
    found.save(tmp_path / "f.svg")
    found.save(tmp_path / "f.txt")
    assert (tmp_path / "f.svg").read_text(encoding="utf-8") == found.to_svg()
    assert (tmp_path / "f.txt").read_text(encoding="utf-8") == str(found)
    with pytest.raises(ArgumentError, match=r"saved as \.svg or \.txt"):
        found.save(tmp_path / "f.html")
