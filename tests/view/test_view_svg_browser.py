"""SVG in headless Chromium: text fits its boxes, and colours follow the viewer."""

from __future__ import annotations

import shutil

import pytest
from view_graphs import hostile, net

import primgraph as pg

pytestmark = pytest.mark.long

api = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install 'primgraph[browser]'"
)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("needs chromium on the path", allow_module_level=True)

# Text and the shape around it, as drawn, in pixels.
MEASURE = """() => [...document.querySelectorAll("g[class]")].flatMap(group => {
    const shapes = [...group.querySelectorAll(".shape")];
    if (!group.querySelector("text")) return [];
    if (!shapes.length) return [];
    const box = shapes[shapes.length - 1].getBBox();
    return [...group.querySelectorAll("text")].filter(text => text.textContent.trim()).map(text => {
        const { x, y, width, height } = text.getBBox();
        return [text.textContent, x - box.x, box.x + box.width - x - width,
                y - box.y, box.y + box.height - y - height];
    });
})"""
LAST = """() => {
    const { x, y, width, height } = document.documentElement.viewBox.baseVal;
    return [...document.querySelectorAll("text")].filter(text => {
        const box = text.getBBox();
        return box.x < x || box.y < y || box.x + box.width > width || box.y + box.height > height;
    }).map(text => text.textContent);
}"""


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens an SVG file as a document of its own."""
    pages = []

    def opening(text, scheme="light"):
        (tmp_path / "picture.svg").write_text(text, encoding="utf-8")
        pages.append(browser.new_page(color_scheme=scheme))
        pages[-1].goto((tmp_path / "picture.svg").as_uri())
        return pages[-1]

    yield opening
    for page in pages:
        page.close()


PICTURES = {
    "small": net(2).to_svg(),
    "folded": net(40).to_svg(),
    "hostile": hostile().to_svg(limit=1000),
}


@pytest.mark.parametrize("name", PICTURES)
def test_text_lies_inside_its_box(name, show):
    page = show(PICTURES[name])
    measured = page.evaluate(MEASURE)
    assert len(measured) > 16
    assert [m for m in measured if min(m[1:3]) < 5 or min(m[3:]) < 0] == []
    assert page.evaluate(LAST) == []


def test_text_of_plots_lies_inside_the_picture(show):
    for text in (
        pg.growth(pg.tanh, pg.spec(3), orders=4).to_svg(),
        pg.growth(lambda x: pg.exp(x), pg.spec(3), orders=0).to_svg(),
        pg.spy([[1, 0], [0, 1]]).to_svg(),
        pg.spy([[1] * 400]).to_svg(),
    ):
        assert show(text).evaluate(LAST) == []


def test_colours_change_with_the_scheme(show):
    text = net(1).to_svg()
    fill = "() => getComputedStyle(document.querySelector('.paper')).fill"
    assert show(text, "light").evaluate(fill) == "rgb(255, 255, 255)"
    assert show(text, "dark").evaluate(fill) == "rgb(15, 19, 24)"


def test_a_hostile_picture_runs_nothing(browser, tmp_path):
    (tmp_path / "picture.svg").write_text(hostile().to_svg(), encoding="utf-8")
    page = browser.new_page()
    told = []
    page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: told.append(message.text))
    page.on("request", lambda request: told.append(request.url))
    page.goto((tmp_path / "picture.svg").as_uri())
    assert page.evaluate("document.querySelectorAll('script, b').length") == 0
    assert told == [(tmp_path / "picture.svg").as_uri()]
    page.close()
