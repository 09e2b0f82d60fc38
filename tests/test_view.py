"""Pictures as data: boxes, parts, groups, patterns, folding, and the layout."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from random_programs import random_program
from view_graphs import chain, hostile, net

import primgraph as pg
from primgraph.errors import ArgumentError
from primgraph.view.folding import LIMIT, folded, shut_groups
from primgraph.view.layout import layout
from primgraph.view.patterns import repeats
from primgraph.view.picture import numbered, picture_of
from primgraph.view.placing import BOX_GAP

SEEDS = range(12)


def parts(graph):
    counted = Counter(b.part for b in picture_of(graph).boxes)
    return {p: counted[p] for p in ("forward", "tangent", "cotangent")}


# Where an equation comes from.


def test_forward_tangent_and_cotangent_are_told_apart_at_any_order():
    with pg.Program() as program:
        x, w = pg.data("x", (3,)), pg.data("w", (3, 3))
        y = pg.sum(pg.tanh(w @ x))
        first = pg.grad(y, x)
        second = pg.grad(pg.sum(first * first), x)
        along = pg.forward_grad(pg.tanh(w @ (x * x)), x)
        mixed = pg.grad(pg.sum(along), w)
    assert parts(program.graph([y])) == {"forward": 5, "tangent": 0, "cotangent": 0}
    once = parts(program.graph([y, first]))
    assert once["forward"] == 5
    assert once["tangent"] == 0 < once["cotangent"]
    twice = parts(program.graph([y, first, second]))
    assert twice["forward"] == 5
    assert twice["tangent"] == 0
    assert twice["cotangent"] > once["cotangent"]
    assert (
        parts(program.graph([along]))["cotangent"] == 0 < parts(program.graph([along]))["tangent"]
    )
    both = parts(program.graph([mixed]))
    assert 0 not in both.values()


def test_the_marks_of_a_source_change_neither_text_nor_printed_form_and_are_kept(tmp_path):
    graph = net(2)
    lowered = pg.transforms.lower(graph)
    operators = {e.source.operator for e in lowered.body} - {""}
    assert operators == {"softmax", "mean"}
    for eqn in lowered.body:
        assert str(eqn.source.place) == str(eqn.source)
        assert eqn.source.operator not in str(eqn.source) or not eqn.source.operator
    assert [e.source for e in pickle.loads(pickle.dumps(lowered)).body] == [
        e.source for e in lowered.body
    ]
    derived = lowered.body[-1].source.derived("tangent")
    assert str(derived).startswith("in the gradient of ")
    assert derived.operator == lowered.body[-1].source.operator
    with pg.Program() as program:
        x = pg.data("x", (3,))
        pg.grad(pg.sum(pg.softmax(x) ** 2), x)
    pg.save(program, tmp_path / "p.pgz")
    back = pg.load(tmp_path / "p.pgz")
    kept = [(e.source.role, e.source.operator) for e in program.builder.body]
    assert [(e.source.role, e.source.operator) for e in back.builder.body] == kept
    assert {"cotangent", ""} <= {role for role, _ in kept}
    assert {"softmax", ""} <= {operator for _, operator in kept}


def test_marks_do_not_disturb_the_readable_source():
    source = pg.compile(net(2)).source
    comments = [line.strip() for line in source.splitlines() if line.strip().startswith("#")]
    assert all(a != b for a, b in pairwise(comments))
    assert not any("cotangent" in c for c in comments)


# Boxes.


def test_a_picture_has_a_box_for_each_value_and_an_arrow_for_each_operand():
    graph = pg.trace(lambda x, y: (1.0 - x * x, y * 2.0, x), pg.spec(3), pg.spec(()))
    picture = picture_of(graph)
    assert [(b.label, b.note, b.part) for b in picture.boxes] == [
        ("x", "f64[3]", "input"),
        ("y", "f64[]", "input"),
        ("mul", "f64[3]", "forward"),
        ("sub(1.0, ·)", "f64[3]", "forward"),
        ("mul 2.0", "f64[]", "forward"),
        ("output 0", "f64[3]", "output"),
        ("output 1", "f64[]", "output"),
        ("output 2", "f64[3]", "output"),
    ]
    assert [(a.tail, a.head, a.label) for a in picture.arrows] == [
        (0, 2, "f64[3]"), (0, 2, "f64[3]"), (2, 3, "f64[3]"), (1, 4, "f64[]"),
        (3, 5, "f64[3]"), (4, 6, "f64[]"), (0, 7, "f64[3]"),
    ]  # fmt: skip
    details = dict(picture.boxes[3].details)
    assert details["equation"] == "%2: f64[3] = sub(1.0, %0)"
    assert details["source"].startswith("test_view.py:")
    assert "1.0 - x * x" in details["line"]


def test_what_is_given_out_is_never_written_into_a_box():
    graph = pg.trace(lambda x: (pg.full((2,), 3.0), pg.full((2,), 3.0) * x), pg.spec(2))
    picture = picture_of(graph)
    assert Counter(b.part for b in picture.boxes)["constant"] == 1
    assert [b.label for b in picture.boxes if b.part == "constant"] == ["const 3.0"]


def test_large_constants_are_not_spelled_out():
    graph = pg.trace(lambda x: x + np.arange(1000.0), pg.spec(1000))
    text = repr(picture_of(graph).data())
    assert "f64[1000]{…}" in text
    assert len(text) < 4000


@pytest.mark.parametrize("seed", SEEDS)
def test_pictures_of_random_programs_are_whole(seed):
    graph = random_program(seed).graph
    picture, box_of = numbered(graph)
    assert [b.id for b in picture.boxes] == list(range(len(picture.boxes)))
    assert all(a.tail < a.head for a in picture.arrows)
    inlined = [i for i, b in enumerate(box_of) if b < 0]
    assert len(picture.boxes) == (
        len(graph.inputs) + len(graph.body) - len(inlined) + len(graph.outputs)
    )
    assert all(graph.body[i].op.name == "full" for i in inlined)
    hidden = {v for i in inlined for v in graph.body[i].outputs}
    operands = sum(v not in hidden for e in graph.body for v in e.inputs)
    assert len(picture.arrows) == operands + len(graph.outputs)
    for i, box in enumerate(box_of):
        if box >= 0:
            assert graph.body[i].op.name in dict(picture.boxes[box].details)["equation"]


def test_times_become_shares_and_ranges_details():
    graph = pg.trace(lambda x: pg.tanh(x) * x, pg.spec(3))
    picture = picture_of(graph, times=[3e-6, 1e-6], ranges=[(0.0, 0.5), (-1.0, 1.0)])
    assert [b.heat for b in picture.boxes] == [None, 0.75, 0.25, None]
    assert dict(picture.boxes[1].details)["time"] == "3 µs"
    assert dict(picture.boxes[2].details)["range"] == "from -1 to 1"
    nan = float("nan")
    picture = picture_of(graph, ranges=[(0.0, 1.0 / 3, 2), (nan, nan, 3)])
    told = [dict(box.details)["range"] for box in picture.boxes[1:3]]
    assert told == ["from 0 to 0.333333, 2 NaN", "no number, 3 NaN"]
    assert [b.heat for b in picture_of(graph, times=[0.0, 0.0]).boxes][1:3] == [0.0, 0.0]
    with pytest.raises(ArgumentError, match="times has 1 entries for 2 equations"):
        picture_of(graph, times=[1.0])


def test_only_graphs_programs_and_kernels_are_drawn():
    with pytest.raises(ArgumentError, match="can be drawn, not int"):
        picture_of(3)


# Groups.


@pytest.mark.parametrize(
    "graph", [net(3), net(40), chain(1000), hostile(), random_program(3).graph], ids=lambda g: "g"
)
def test_every_box_is_in_at_most_one_group_of_a_kind(graph):
    picture = picture_of(graph)
    assert list(picture.groupings) == ["pattern", "operator", "line", "stretch"]
    for kind, groups in picture.groupings.items():
        assert [g.id for g in groups] == list(range(len(groups)))
        assert {g.kind for g in groups} <= {kind}
        members = [b for g in groups for b in g.members]
        assert len(members) == len(set(members))
        assert set(members) <= set(range(len(picture.boxes)))
        for group in groups:
            assert len(group.members) > 1
            assert list(group.members) == sorted(group.members)


def test_layers_are_found_as_a_pattern():
    picture = picture_of(net(12))
    found = Counter(g.label.partition(",")[0] for g in picture.groupings["pattern"])
    assert found["pattern 1"] == 12
    ops = [
        {picture.boxes[b].label for b in g.members if picture.boxes[b].part == "forward"}
        for g in picture.groupings["pattern"]
        if g.label.startswith("pattern 1,")
    ]
    assert all(o == {"matmul", "broadcast", "add", "tanh"} for o in ops)


def test_operators_and_lines_are_groups():
    graph = pg.transforms.lower(net(2))
    picture = picture_of(graph)
    labels = {g.label for g in picture.groupings["operator"]}
    assert {"softmax", "mean"} <= labels
    lines = [g.label for g in picture.groupings["line"]]
    assert any(label.endswith(" cotangent") for label in lines)
    assert len(lines) == len(set(lines))
    for group in picture.groupings["line"]:
        told = {dict(picture.boxes[b].details).get("source") for b in group.members}
        assert len(told - {None}) <= 1


def test_repeats_prefer_the_shortest_run_that_covers_most():
    assert repeats([1, 2, 3] * 10, 100) == [[(3 * i, 3) for i in range(10)]]
    assert repeats([9, 1, 2, 3, 8, 7, 1, 2, 3, 6], 100) == [[(1, 3), (6, 3)]]
    assert repeats([1, 2, 3, 4, 5], 100) == []
    assert repeats([], 100) == []
    assert repeats([5] * 50, 100) == [], "a run of equal equations has no period to be cut at"
    nested = ([1, 1, 2] + [3, 4] * 3) * 4
    assert repeats(nested, 100) == [[(9 * i, 9) for i in range(4)]]
    assert all(length <= 4 for places in repeats(nested, 4) for _, length in places)


@pytest.mark.parametrize("seed", SEEDS)
def test_repeats_are_equal_and_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 3, 400).tolist() + rng.integers(0, 50, 60).tolist() * 3
    found = repeats(tokens, 40)
    for places in found:
        assert len(places) > 1
        assert len({tuple(tokens[s : s + n]) for s, n in places}) == 1
    taken = sorted(p for places in found for p in places)
    assert all(s + n <= t for (s, n), (t, _) in pairwise(taken))


# Folding.


@pytest.mark.parametrize(
    "graph",
    [net(3), net(30), net(200), chain(299), chain(20_000), pg.trace(
        lambda *xs: sum(xs[1:], xs[0]), *[pg.spec(2)] * 700)],
    ids=["net3", "net30", "net200", "chain299", "chain20000", "inputs"],
)  # fmt: skip
def test_folding_leaves_about_the_limit_and_every_arrow_between_groups(graph):
    picture = picture_of(graph)
    shut = shut_groups(picture)
    shown = folded(picture, shut)
    assert len(shown.boxes) <= LIMIT
    if len(picture.boxes) <= LIMIT:
        assert shown is picture
        return
    owner = {b: g.id for g in shut for b in g.members}
    outer = {
        (owner.get(a.tail, -1 - a.tail), owner.get(a.head, -1 - a.head)) for a in picture.arrows
    }
    assert len(shown.arrows) == len({(t, h) for t, h in outer if t != h})
    equations = sum(
        int(dict(b.details)["boxes"]) if b.details and b.details[0][0] == "group" else 1
        for b in shown.boxes
    )
    assert equations == len(picture.boxes)


def test_a_folded_box_has_the_part_and_the_heat_of_its_members():
    graph = net(30)
    times = [1.0] * len(graph.body)
    picture = picture_of(graph, times=times)
    shown = folded(picture, shut_groups(picture))
    heats = [b.heat for b in shown.boxes if b.heat is not None]
    drawn = len([b for b in picture.boxes if b.heat is not None])
    assert sum(heats) == pytest.approx(drawn / len(graph.body))
    assert {"forward", "cotangent"} <= {b.part for b in shown.boxes}


# The layout.


def sizes_of(count, seed=0):
    widths = np.random.default_rng(seed).integers(40, 200, count)
    return [(float(w), 42.0) for w in widths]


def boxes_of(sizes, plan):
    return [(x, y, x + w, y + h) for (x, y), (w, h) in zip(plan.corners, sizes, strict=True)]


def overlapping(boxes, gap=0.0):
    return [
        (i, j)
        for i, (a, b, c, d) in enumerate(boxes)
        for j, (e, f, g, h) in enumerate(boxes[:i])
        if a < g + gap and e < c + gap and b < h and f < d
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_do_not_overlap_and_edges_run_down_from_box_to_box(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    pairs = rng.integers(0, count, (int(rng.integers(0, 120)), 2)).tolist()
    edges = [(min(p), max(p)) for p in pairs]
    sizes = sizes_of(count, seed)
    plan = layout(sizes, edges)
    boxes = boxes_of(sizes, plan)
    assert overlapping(boxes, BOX_GAP - 1e-6) == []
    assert all(min(a, b) >= 0 and c <= plan.width and d <= plan.height for a, b, c, d in boxes)
    for (tail, head), route in zip(edges, plan.routes, strict=True):
        if tail == head:
            assert route == ()
            continue
        assert boxes[tail][0] < route[0][0] < boxes[tail][2]
        assert route[0][1] == pytest.approx(boxes[tail][3])
        assert boxes[head][0] < route[-1][0] < boxes[head][2]
        assert route[-1][1] == pytest.approx(boxes[head][1])
        assert len(route) % 2 == 0
        assert all(q[1] >= p[1] for p, q in pairwise(route))
        assert all(0 <= x <= plan.width for x, _ in route)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_edges_pass_beside_the_boxes(seed):
    rng = np.random.default_rng(seed)
    count = 40
    edges = [tuple(sorted(p)) for p in rng.integers(0, count, (60, 2)).tolist()]
    sizes = sizes_of(count, seed)
    plan = layout(sizes, edges)
    boxes = boxes_of(sizes, plan)
    for (tail, head), route in zip(edges, plan.routes, strict=True):
        for (x, y), (_, below) in zip(route[1:-1:2], route[2:-1:2], strict=True):
            crossed = [
                i
                for i, (a, b, c, d) in enumerate(boxes)
                if i not in (tail, head) and a < x < c and b < below and y < d
            ]
            assert crossed == []


def test_cycles_are_drawn_with_one_edge_against_the_flow():
    sizes = sizes_of(3)
    plan = layout(sizes, [(0, 1), (1, 2), (2, 0), (1, 1)])
    boxes = boxes_of(sizes, plan)
    assert [r[0][1] < r[-1][1] for r in plan.routes[:3]] == [True, True, False]
    assert plan.routes[2][0][1] == pytest.approx(boxes[2][1])
    assert plan.routes[2][-1][1] == pytest.approx(boxes[0][3])
    assert plan.routes[3] == ()


def test_a_graph_without_cycles_is_never_turned_whatever_the_order_of_its_boxes():
    edges = [(4, 3), (3, 2), (2, 1), (1, 0), (4, 0)]
    plan = layout(sizes_of(5), edges)
    assert all(r[0][1] < r[-1][1] for r in plan.routes)


def test_a_chain_is_a_straight_line():
    plan = layout([(80.0, 42.0)] * 6, [(i, i + 1) for i in range(5)])
    assert {x for x, _ in plan.corners} == {plan.corners[0][0]}
    assert {p[0] for r in plan.routes for p in r} == {plan.corners[0][0] + 40}


def test_a_tree_is_drawn_without_crossings():
    # The leaves come in an order that would cross.
    edges = [(0, 1), (0, 2), (1, 6), (2, 3), (1, 4), (2, 5)]
    plan = layout([(60.0, 42.0)] * 7, edges)
    left = sorted([6, 4], key=lambda v: plan.corners[v][0])
    right = sorted([3, 5], key=lambda v: plan.corners[v][0])
    ends = [plan.corners[v][0] for v in ([*left, *right], [*right, *left])[
        plan.corners[1][0] > plan.corners[2][0]]]  # fmt: skip
    assert ends == sorted(ends)


def test_nothing_can_be_laid_out():
    plan = layout([], [])
    assert plan.corners == plan.routes == ()


def test_a_wide_and_a_deep_graph_are_laid_out():
    wide = layout([(50.0, 42.0)] * 2001, [(0, i) for i in range(1, 2001)])
    assert len({y for _, y in wide.corners}) == 2
    deep = layout([(50.0, 42.0)] * 5000, [(i, i + 1) for i in range(4999)])
    assert len({y for _, y in deep.corners}) == 5000
