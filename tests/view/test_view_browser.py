"""The HTML page in headless Chromium: it draws, folds, searches, compares, and stays readable."""

from __future__ import annotations

import html
import json
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import primgraph as pg
from primgraph.ir.graph import Value
from primgraph.transforms.lower import lower
from primgraph.view.formats.page import Step, page
from primgraph.view.grouping import Group
from primgraph.view.layers import SMALL
from primgraph.view.picture import Arrow, Box, Picture, picture_of
from primgraph.view.steps import single_step

pytestmark = pytest.mark.long

api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install 'primgraph[browser]'"
)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("needs chromium on the path", allow_module_level=True)

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = "</script><script>window.hit=1</script><img src=x onerror=window.hit=2>"
LIMIT = 300

Show = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Show]:
    """Opens the page of some steps; no console error and no request may come of it."""
    faults: list[str] = []
    requests: list[str] = []
    opened = []

    def opening(*steps: Step, scheme: str = "light", wait: str = ".box") -> Any:
        file = tmp_path / "page.html"
        file.write_text(page(steps), encoding="utf-8")
        view = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
        opened.append(view)
        view.on("console", lambda message: faults.append(message.text))
        view.on("pageerror", lambda error: faults.append(str(error)))
        view.on("request", lambda request: requests.append(request.url))
        view.goto(file.as_uri())
        view.wait_for_selector(wait, state="attached")
        return view

    yield opening
    for view in opened:
        view.close()
    assert faults == []
    assert requests == [(tmp_path / "page.html").as_uri()] * len(opened)


def boxes(view: Any) -> list[str]:
    """The labels that are shown."""
    return view.locator("#picture .label").all_text_contents()


def named(graph: pg.Graph, name: str = "built") -> Step:
    """A step of the text of `graph`, without the boxes of its lines."""
    lines = tuple(str(graph).splitlines())
    return Step(name, picture_of(graph), lines, (-1,) * len(lines))


def small() -> pg.Graph:
    with pg.Program() as program:
        x = pg.data("x", shape=(2, 3))
        w = pg.data("w", shape=(3, 3))
        loss = pg.mean(pg.softmax(pg.tanh(x @ w)))
        pg.grad(loss, w)
    return program.graph()


def chain(count: int, groups: tuple[Group, ...] = (), label: str = "mul") -> Picture:
    """`count` boxes in a row."""
    row = tuple(Box(i, f"{label} {i}", "f64[]", "forward") for i in range(count))
    arrows = tuple(Arrow(i, i + 1, "f64[]") for i in range(count - 1))
    return Picture("chain", row, arrows, {"line": groups})


def settled(view: Any, condition: str) -> None:
    """Wait until `condition` holds; the page's policy lets no script of the browser's wait."""
    end = time.monotonic() + 10
    while not view.evaluate(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def test_a_graph_is_drawn_whole(show: Show) -> None:
    step = named(small())
    view = show(step)
    view.select_option("#kind", "none")
    view.click("#unfold-all")
    assert sorted(boxes(view)) == sorted(box.label for box in step.picture.boxes)
    assert view.title() == step.picture.title
    pairs = {(a.tail, a.head) for a in step.picture.arrows}
    assert view.locator(".arrow").count() == len(pairs)


def test_the_page_unpacks_the_picture_that_was_packed(show: Show) -> None:
    graph = small()
    picture = picture_of(graph, times=[0.25] * len(graph))
    lines = ("graph {", "  %0 = a(%x)", "    return %0", "")
    view = show(Step("one", picture, lines, (-1, 3, -1, -1)), Step("two", picture, ("a",), (2,)))
    found = view.evaluate("step(0).picture")
    wanted = json.loads(json.dumps(picture.data()))
    for box in (*wanted["boxes"], *found["boxes"]):
        box["heat"] = box["heat"] and pytest.approx(box["heat"], abs=1e-6)
    assert found["title"] == wanted["title"]
    assert found["boxes"] == wanted["boxes"]
    for kind, groups in found["scenes"].items():
        seen = sorted(n for group in groups for n in group["children"])
        inner = list(range(1 - len(groups), 0))
        assert seen == [n - 1 for n in inner] + list(range(len(picture.boxes))), kind
    assert view.evaluate("step(0).lines") == [
        list(p) for p in zip(lines, (-1, 3, -1, -1), strict=True)
    ]
    assert view.evaluate("step(1).picture === step(0).picture")


def training(layers: int = 2) -> pg.Program:
    """A step of Adam on a network of linear layers with tanh between them."""
    with pg.Program("training step") as program:
        x, t = pg.data("x", (32, 10)), pg.data("t", (32, 10))
        inner: list[Any] = [pg.nn.Linear(10, 10)]
        for _ in range(layers - 1):
            inner += [pg.nn.Tanh(), pg.nn.Linear(10, 10)]
        loss = pg.mean((pg.nn.Sequential(*inner)(x) - t) ** 2)
        pg.optimizer.Adam(1e-3).minimize(loss)
    return program


OUTSIDE = """() => {
  const stage = document.getElementById("stage").getBoundingClientRect();
  return [...document.querySelectorAll("#picture text")].filter((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    return left < stage.left || right > stage.right || top < stage.top || bottom > stage.bottom;
  }).map((text) => text.textContent);
}"""

RECTS = """() => ["boxes", "frames"].flatMap((kind) => places[kind].map(
  ({ node, x, y, width, height }) =>
    [kind, x, y, x + width, y + height, ancestors(node).length]))"""


def apart(view: Any) -> None:
    """No two boxes overlap, and frames only with what they hold."""
    rects = view.evaluate(RECTS)
    for i, (kind, a, b, c, d, deep) in enumerate(rects):
        for other, e, f, g, h, depth in rects[:i]:
            overlap = min(c, g) - max(a, e) > 0.5 and min(d, h) - max(b, f) > 0.5
            holds = "frames" in (kind, other) and deep != depth
            assert not overlap or holds


def test_a_training_step_opens_folded_with_every_label_in_the_window(show: Show) -> None:
    for layers in (2, 3, 12):
        view = show(single_step(training(layers)))
        assert view.evaluate(OUTSIDE) == []
        assert 6 <= len(boxes(view)) <= 60
        assert view.evaluate("camera.k") > 0.5
        headings = view.locator(".heading").all_text_contents()
        assert headings == ["forward", "reverse", "update"]
        apart(view)
    names = boxes(show(single_step(training())))
    assert {"x", "t", "loss", "sequential.0 (3)", "sequential.2 (3)"} <= set(names)
    assert "output" not in " ".join(names)


def test_what_is_folded_and_unfolded_is_fitted_again_and_lies_apart(show: Show) -> None:
    view = show(single_step(training(3)))
    start = boxes(view)
    for name in ("sequential.0 (3)", "sequential.2", "adam"):
        view.locator(".folded", has_text=name).first.click()
        assert view.evaluate(OUTSIDE) == []
        apart(view)
    assert view.locator(".frame").count() == 3
    view.click("#unfold-all")
    assert view.evaluate(OUTSIDE) == []
    apart(view)
    while view.locator(".frame .fold").count():
        view.locator(".frame .fold").last.dispatch_event("click")
    assert sorted(boxes(view)) == sorted(start)
    assert view.evaluate(OUTSIDE) == []
    apart(view)


def test_arrows_end_at_what_they_join_however_much_is_unfolded(show: Show) -> None:
    view = show(single_step(training(3)))
    ends = """() => {
      const { root, open } = tree();
      const insides = [placed(root, open)];
      for (const inside of insides) {
        insides.push(...inside.rects.map((rect) => rect.inner).filter((inner) => inner));
      }
      const beside = ({ x, y, width, height }, [px, py]) => {
        const sides = [x - px, px - x - width, y - py, py - y - height];
        return Math.abs(Math.max(...sides)) < 0.5;
      };
      return insides.flatMap(({ arrows }) => arrows).filter(({ tail, head, route }) =>
        !beside(tail, route[0]) || !beside(head, route.at(-1))).length;
    }"""
    for button in ("#fit", "#unfold-all"):
        view.click(button)
        assert view.evaluate(ends) == 0


LABELS = """() => [...document.querySelectorAll("#picture .box")].map(box => {
    const { e, f } = box.transform.baseVal.consolidate().matrix;
    const label = box.querySelector(".label");
    return [label.textContent, e + Number(label.getAttribute("x")), f + 18];
})"""
SVG_LABEL = re.compile(r'<text class="label" x="([0-9.]+)" y="([0-9.]+)">([^<]*)</text>')
# Pages round to whole pixels, and move the names of groups aside for a button.
ROUNDED, ASIDE = 2.0, 12.0


def test_a_page_has_everything_where_the_svg_has_it(show: Show) -> None:
    program = training(3)
    drawn = SVG_LABEL.findall(program.to_svg(limit=SMALL))
    expected = sorted((html.unescape(name), float(x), float(y)) for x, y, name in drawn)
    found = sorted(map(tuple, show(single_step(program)).evaluate(LABELS)))
    assert len(expected) > 5
    assert [name for name, _, _ in found] == [name for name, _, _ in expected]
    for (_, x, y), (_, left, top) in zip(found, expected, strict=True):
        assert abs(x - left) <= ASIDE
        assert abs(y - top) <= ROUNDED


def test_the_legend_covers_nothing(show: Show) -> None:
    view = show(single_step(training()))
    stage, legend = (view.locator(name).bounding_box() for name in ("#stage", "#legend"))
    assert legend["y"] >= stage["y"] + stage["height"] - 0.5
    told = view.locator("#legend li").all_text_contents()
    assert told == ["input", "forward", "reverse", "update", "output"]


def test_two_fingers_zoom_and_what_lies_between_them_stays(show: Show) -> None:
    view = show(single_step(training()))
    before = view.evaluate("[camera.x, camera.y, camera.k]")
    view.evaluate(
        """() => {
      const send = (type, id, x, y) => picture.dispatchEvent(new PointerEvent(type,
        { pointerId: id, clientX: x, clientY: y, button: 0, bubbles: true, pointerType: "touch" }));
      send("pointerdown", 1, 500, 400);
      send("pointerdown", 2, 700, 400);
      for (let i = 1; i <= 10; i++) {
        send("pointermove", 1, 500 - 10 * i, 400);
        send("pointermove", 2, 700 + 10 * i, 400);
      }
      send("pointerup", 1, 400, 400);
      send("pointerup", 2, 800, 400);
    }"""
    )
    x, y, k = view.evaluate("[camera.x, camera.y, camera.k]")
    assert k == pytest.approx(2 * before[2], rel=1e-6)
    top = view.locator("#stage").bounding_box()["y"]
    for place, now, then in ((600, x, before[0]), (400 - top, y, before[1])):
        assert (place - now) / k == pytest.approx((place - then) / before[2], abs=1)
    assert view.locator(".selected, .frame").count() == 0


def test_a_port_leads_to_what_it_stands_for(show: Show) -> None:
    view = show(single_step(training()))
    view.locator(".folded.part-cotangent", has_text="sequential.2").click()
    view.locator(".port.source", has_text="tanh").click()
    shown = view.locator(".box", has_text="tanh").bounding_box()
    stage = view.locator("#stage").bounding_box()
    assert shown["x"] + shown["width"] / 2 == pytest.approx(stage["x"] + stage["width"] / 2, abs=4)


def test_a_click_unfolds_a_group_and_its_button_folds_it(show: Show) -> None:
    view = show(Step("s", chain(6, (Group(0, "user.py:7", "line", (1, 2, 4)),))))
    assert sorted(boxes(view)) == [f"mul {i}" for i in range(6)]
    view.locator(".frame .fold").first.click()
    assert boxes(view) == ["mul 0", "user.py:7 (3)", "mul 3", "mul 5"]
    view.click(".folded")
    assert len(boxes(view)) == 6
    assert view.locator(".frame .title").text_content() == "user.py:7 (3)"
    view.locator(".frame .title").click(force=True)
    assert len(boxes(view)) == 4
    view.click("#unfold-all")
    view.click("#fold-all")
    assert len(boxes(view)) == 4
    view.select_option("#kind", "none")
    assert len(boxes(view)) == 6


def test_a_fold_leaves_what_was_clicked_where_it_was(show: Show) -> None:
    view = show(Step("s", chain(40, (Group(0, "user.py:7", "line", tuple(range(3, 30))),))))
    view.click("#fold-all")
    view.click("#zoom-in")
    before = view.locator(".folded").bounding_box()
    view.click(".folded")
    after = view.locator(".frame").bounding_box()
    middles = [(b["x"] + b["width"] / 2, b["y"]) for b in (before, after)]
    assert middles[0] == pytest.approx(middles[1], abs=8)


@pytest.mark.parametrize("cut", [1, 40, 5000])
def test_never_more_than_the_limit_is_shown(show: Show, cut: int) -> None:
    size = 5000 // cut
    starts = range(0, 5000, size)
    groups = tuple(
        Group(k, f"line {k}", "line", tuple(range(i, i + size))) for k, i in enumerate(starts)
    )
    view = show(Step("s", chain(5000, groups if size > 1 else ())))
    assert 1 <= len(boxes(view)) <= LIMIT
    for _ in range(6):
        folded = view.locator(".folded")
        if folded.count():
            folded.nth(folded.count() // 2).dispatch_event("click")
            assert len(boxes(view)) <= LIMIT
    view.click("#unfold-all")
    assert len(boxes(view)) <= LIMIT
    assert "At most 300 boxes" in view.inner_text("#message")
    view.fill("#search", "mul 4321")
    view.wait_for_selector(".current")
    assert "mul 4321" in boxes(view)
    assert len(boxes(view)) <= LIMIT


def test_search_unfolds_and_centres_what_it_finds(show: Show) -> None:
    view = show(named(small()))
    view.click("#fold-all")
    view.keyboard.press("/")
    view.keyboard.type("tanh")
    view.wait_for_selector(".current")
    assert view.inner_text("#matches") == "1 of 1"
    current = view.locator(".box.current")
    assert current.locator(".label").text_content() == "tanh"
    box, stage = current.bounding_box(), view.locator("#stage").bounding_box()
    assert box["x"] + box["width"] / 2 == pytest.approx(stage["x"] + stage["width"] / 2, abs=4)
    assert box["y"] + box["height"] / 2 == pytest.approx(stage["y"] + stage["height"] / 2, abs=4)
    view.fill("#search", "mul")
    view.press("#search", "Enter")
    first = view.inner_text("#matches")
    assert first.startswith("1 of ")
    assert first != "1 of 1"
    view.press("#search", "Enter")
    assert view.inner_text("#matches") == first.replace("1 of", "2 of")
    view.press("#search", "Shift+Enter")
    assert view.inner_text("#matches") == first
    view.fill("#search", "no such thing")
    view.press("#search", "Enter")
    assert view.inner_text("#matches") == "none"
    view.keyboard.press("Escape")
    assert view.input_value("#search") == ""
    assert view.locator(".match").count() == 0


def test_the_card_tells_type_equation_line_range_and_time(show: Show) -> None:
    graph = small()
    count = len(graph.body)
    times, ranges = [1e-6] * count, [(-0.5, 2.5)] * count
    view = show(Step("s", picture_of(graph, times=times, ranges=ranges)))
    view.click("#unfold-all")
    view.locator(".box", has_text="tanh").first.hover()
    card = view.inner_text("#card")
    for text in ("f64[2,3]", "= tanh(", "test_view_browser.py:", "softmax(", "-0.5", "2.5", "µs"):
        assert text in card


def test_heat_colours_boxes_by_their_share_of_the_time(show: Show) -> None:
    graph = small()
    times = [0.0] * len(graph.body)
    hot = next(i for i, eqn in enumerate(graph.body) if eqn.op.name == "tanh")
    times[hot] = 1.0
    view = show(Step("s", picture_of(graph, times=times)))
    view.click("#unfold-all")
    assert view.input_value("#colouring") == "heat"
    warm = [b for b in view.locator("#picture .box").all() if b.locator(".warmth").count()]
    shade = "e => Number(e.querySelector('.warmth').getAttribute('fill-opacity'))"
    shades = {b.locator(".label").text_content(): b.evaluate(shade) for b in warm}
    assert shades.pop("tanh") > 0.5
    assert set(shades.values()) == {0.0}


def test_names_of_users_are_shown_as_text(show: Show) -> None:
    row = tuple(
        Box(i, f"{HOSTILE}{i}", HOSTILE, "forward", ((HOSTILE, HOSTILE),)) for i in range(3)
    )
    groups = {"line": (Group(0, HOSTILE, "line", (0, 1)),)}
    picture = Picture(HOSTILE, row, (Arrow(0, 1, HOSTILE), Arrow(1, 2, HOSTILE)), groups)
    steps = [Step(f"{HOSTILE}{n}", picture, (HOSTILE,), (0,), HOSTILE) for n in "ab"]
    view = show(*steps)
    elements = view.locator("script").count()
    view.locator(".box").first.hover()
    assert view.inner_text("#card h2") == f"{HOSTILE}0"
    view.click("#fold-all")
    assert view.locator(".folded").get_attribute("aria-label").startswith(HOSTILE)
    view.locator("[role=tab]").nth(1).click()
    view.click("#text-toggle")
    assert HOSTILE in view.inner_text("#rows")
    view.fill("#search", "<img")
    view.wait_for_selector(".match")
    assert view.title() == HOSTILE
    assert view.evaluate("window.hit") is None
    assert view.locator("img").count() == 0
    assert view.locator("script").count() == elements


def test_a_script_that_is_not_of_the_page_does_not_run(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    text = page([named(small())])
    file.write_text(text.replace("</body>", "<script>window.hit = 1</script></body>"), "utf-8")
    view = browser.new_page()
    view.goto(file.as_uri())
    view.wait_for_selector(".box")
    assert view.evaluate("window.hit") is None
    view.close()


def test_steps_stand_side_by_side_with_what_changed(show: Show) -> None:
    with pg.Program() as program:
        pg.softmax(pg.tanh(pg.data("x", shape=(2, 3))))
    graph = program.graph()
    view = show(named(graph), named(lower(graph), "lowered"))
    view.get_by_role("tab", name="lowered").click()
    view.keyboard.press("t")
    gone = view.locator(".line.removed code").all_text_contents()
    come = view.locator(".line.added code").all_text_contents()
    assert any("softmax" in line for line in gone)
    assert any("exp" in line for line in come)
    assert not any("tanh" in line for line in gone + come)
    assert "softmax −1" in view.inner_text("#changes")
    view.uncheck("#only-changes")
    assert len(view.evaluate("offered")) >= len(str(graph).splitlines())
    view.select_option("#against", "")
    assert view.locator(".removed, .added").count() == 0


def test_boxes_of_added_lines_are_marked(show: Show) -> None:
    before, after = chain(3), chain(5)
    texts = [tuple(f"%{i} = mul{i}(%{i})" for i in range(n)) for n in (3, 5)]
    steps = [
        Step(name, picture, text, tuple(range(len(text))))
        for name, picture, text in zip("ab", (before, after), texts, strict=True)
    ]
    view = show(*steps)
    view.get_by_role("tab", name="b").click()
    view.keyboard.press("t")
    assert view.locator(".box.new .label").all_text_contents() == ["mul 3", "mul 4"]
    assert view.inner_text("#changes").startswith("2 lines added, marked + in the picture, 0 rem")
    view.keyboard.press("t")
    assert view.locator(".box.new").count() == 0


def test_texts_about_the_same_boxes_are_laid_side_by_side(show: Show) -> None:
    picture = chain(3)
    graph = Step("graph", picture, ("%0", "%1", "%2"), (0, 1, 2))
    code = Step("code", picture, ("import", "a()", "b()", "b2()", "c()"), (-1, 0, 1, 1, 2))
    view = show(graph, code)
    view.get_by_role("tab", name="code").click()
    view.keyboard.press("t")
    rows = [row.locator("code").all_text_contents() for row in view.locator(".row").all()]
    assert rows == [["", "import"], ["%0", "a()"], ["%1", "b()"], ["", "b2()"], ["%2", "c()"]]
    assert view.locator(".added, .removed").count() == 0


def test_a_picture_of_nothing_opens(show: Show) -> None:
    view = show(Step("s", Picture("empty", (), (), {})), wait="#legend")
    for button in ("#unfold-all", "#fold-all", "#fit"):
        view.click(button)
    view.keyboard.press("Enter")
    assert boxes(view) == []


def test_a_line_finds_its_box_and_a_box_its_line(show: Show) -> None:
    lines = tuple(f"line {i}" for i in range(400))
    group = Group(0, "far", "line", tuple(range(100, 200)))
    view = show(Step("s", chain(400, (group,)), lines, tuple(range(400))))
    view.click("#text-toggle")
    view.locator("#rows").evaluate("e => { e.scrollTop = 150 * 20 }")
    view.locator(".line", has_text="line 155").click()
    selected = view.locator(".box.selected .label")
    assert selected.text_content() == "mul 155"
    view.locator(".box", has_text="mul 157").first.click()
    assert view.locator(".row.selected code").text_content() == "line 157"


def test_what_is_compared_is_complete_and_in_order(show: Show) -> None:
    view = show(named(small()))
    draw = random.Random(3)
    for count in (0, 1, 8, 60, 3000):
        left = [f"%{i}: f64[] = {draw.choice('abc')}(%{i // 2})" for i in range(count)]
        right = [line for line in left if draw.random() > 0.2]
        for _ in range(count // 5):
            right.insert(draw.randrange(len(right) + 1), f"%9 = {draw.choice('ax')}(%1)")
        rows = view.evaluate("([a, b]) => alignment(a, b)", [left, right])
        assert [i for i, _, _ in rows if i >= 0] == list(range(len(left)))
        assert [j for _, j, _ in rows if j >= 0] == list(range(len(right)))
        for i, j, _ in rows:
            if i >= 0 and j >= 0:
                assert left[i].split(" = ")[1][0] == right[j].split(" = ")[1][0]
        same = view.evaluate("([a, b]) => alignment(a, b)", [left, left])
        assert [row[:2] for row in same] == [[i, i] for i in range(count)]


def test_lines_that_only_stand_elsewhere_are_moved(show: Show) -> None:
    view = show(named(small()))
    left = ["%0 = a(%x)", "%1 = b(%0)", "%2 = c(%0)", "%3 = d(%1)"]
    right = ["%0 = a(%x)", "%1 = c(%0)", "%2 = b(%0)", "%3 = d(%2)"]
    rows = view.evaluate("([a, b]) => alignment(a, b)", [left, right])
    alone = [row for row in rows if min(row[:2]) < 0]
    assert len(alone) == 2
    assert all(row[2] >= 0 for row in alone)


def test_the_keyboard_pans_zooms_and_walks(show: Show) -> None:
    view = show(Step("s", chain(6, (Group(0, "user.py:7", "line", (1, 2)),))))
    where = "document.querySelector('#picture > g').getAttribute('transform')"
    seen = [view.evaluate(where)]
    view.focus("#picture")
    for key in ("ArrowDown", "+", "-", "0"):
        view.keyboard.press(key)
        seen.append(view.evaluate(where))
    start, panned, nearer, back, whole = seen
    assert len({start, panned, nearer}) == 3
    assert (back, whole) == (panned, start)
    view.keyboard.press("Enter")
    focused = "document.activeElement.querySelector('.label').textContent"
    assert view.evaluate(focused) == "mul 0"
    view.keyboard.press("ArrowDown")
    assert view.evaluate(focused) == "mul 1"
    assert "mul 1" in view.inner_text("#card")
    view.keyboard.press(" ")
    assert view.evaluate(focused) == "user.py:7 (2)"
    view.keyboard.press("Enter")
    assert len(boxes(view)) == 6


def test_wheel_zooms_where_the_pointer_is_and_dragging_pans(show: Show) -> None:
    view = show(Step("s", chain(4)))
    box = view.locator(".box").nth(1)
    before = box.bounding_box()
    view.mouse.move(before["x"], before["y"])
    view.mouse.wheel(0, -200)
    settled(view, "camera.k > 1.3")
    after = box.bounding_box()
    assert after["width"] > before["width"]
    assert (after["x"], after["y"]) == pytest.approx((before["x"], before["y"]), abs=4)
    view.mouse.move(after["x"] + 20, after["y"] + 20)
    view.mouse.down()
    view.mouse.move(after["x"] + 70, after["y"] + 50, steps=4)
    view.mouse.up()
    moved = box.bounding_box()
    assert moved["x"] - after["x"] == pytest.approx(50, abs=8)
    assert view.locator(".selected").count() == 0


PARTS = ("input", "constant", "forward", "tangent", "cotangent", "update", "output")

CONTRAST = """
(scheme) => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  return [...document.querySelectorAll("#picture .box")].map((box) => {
    const style = (name) => getComputedStyle(box.querySelector(name));
    const fill = light(style(".shape").fill);
    const paper = light(getComputedStyle(document.body).backgroundColor);
    return [ratio(light(style(".label").fill), fill), ratio(light(style(".note").fill), fill),
      ratio(light(style(".shape").stroke), paper)];
  });
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_outlines_stand_out(show: Show, scheme: str) -> None:
    row = tuple(Box(i, part, "f64[3]", part) for i, part in enumerate(PARTS))
    view = show(Step("s", Picture("p", row, (), {})), scheme=scheme)
    for label, note, edge in view.evaluate(CONTRAST):
        assert label >= 7
        assert note >= 4.5
        assert edge >= 3
    shape = "e => [e.getAttribute('d'), getComputedStyle(e).strokeDasharray, e.style.strokeWidth]"
    forms = [s.evaluate(shape) for s in view.locator("#picture .box > .shape").all()]
    outlines = {
        tuple(f) for part, f in zip(PARTS, forms, strict=True) if part not in ("input", "output")
    }
    assert len(outlines) == 5


def test_text_fits_its_box(show: Show) -> None:
    long = "a_name_that_goes_on_and_on_" * 3
    labels = ["x", "sub(·, 0.03125)", long, "漢字" * 30, "🙂" * 40, "WWWWWWWWWWWWWWWW"]
    row = tuple(Box(i, text, text[::-1], PARTS[i]) for i, text in enumerate(labels))
    groups = {"line": (Group(0, long, "line", (0, 1)), Group(1, "b", "line", (2, 3)))}
    view = show(Step("s", Picture("p", row, (), groups)))
    for button in ("#unfold-all", "#fold-all"):
        view.click(button)
        for box in view.locator("#picture .box").all():
            texts = [t.evaluate("e => e.getBBox().width") for t in box.locator("text").all()]
            assert max(texts) <= box.evaluate("e => e.querySelector('.shape').getBBox().width") - 8


def test_arrow_keys_walk_through_the_lines_and_find_their_boxes(show: Show) -> None:
    lines = tuple(f"line {i}" for i in range(60))
    view = show(Step("s", chain(60), lines, tuple(range(60))))
    view.keyboard.press("t")
    view.focus("#rows")
    for wanted in ("line 0", "line 1"):
        view.keyboard.press("ArrowDown")
        assert view.locator(".row.selected code").text_content() == wanted
    for _ in range(40):
        view.keyboard.press("ArrowDown")
    assert view.locator(".box.selected .label").text_content() == "mul 41"
    assert view.locator(".row.selected code").is_visible()
    view.keyboard.press("ArrowUp")
    assert view.locator(".box.selected .label").text_content() == "mul 40"


def test_ends_and_constants_of_a_group_are_of_its_part(show: Show) -> None:
    parts = ("input", "constant", "cotangent", "cotangent", "forward", "input", "input")
    row = tuple(Box(i, f"mul {i}", "f64[]", part) for i, part in enumerate(parts))
    groups = [(0, 1, 2, 3), (5, 6)]
    made = tuple(Group(k, f"g{k}", "line", members) for k, members in enumerate(groups))
    view = show(Step("s", Picture("p", row, (), {"line": made})))
    view.click("#fold-all")
    shown = [box.get_attribute("class") for box in view.locator(".folded").all()]
    assert shown == ["box part-cotangent folded", "box part-input folded"]
    assert view.locator(".folded .note").first.text_content() == "mul ×3"


def test_a_name_without_end_leaves_the_card_on_the_page(show: Show) -> None:
    value = Value(pg.spec(3), "x" * 10_000)
    view = show(named(pg.Graph([value], [], [value], "f")))
    view.locator(".box").first.hover()
    card, stage = (view.locator(name).bounding_box() for name in ("#card", "#stage"))
    assert card["height"] < stage["height"] / 2
    assert view.locator(".box").first.get_attribute("aria-describedby") == "card"


def test_the_picture_stays_in_sight_when_the_window_changes(show: Show) -> None:
    view = show(Step("s", chain(3)))
    view.set_viewport_size({"width": 400, "height": 800})
    settled(view, "camera.width === 400")
    box = view.locator(".box").first.bounding_box()
    assert box["x"] + box["width"] / 2 == pytest.approx(200, abs=2)
