"""The HTML page as a file: what it holds, what it admits, and that names stay text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

import primgraph as pg
from primgraph.base.plain_text import plain
from primgraph.errors import ArgumentError
from primgraph.view.formats.page import Step, page
from primgraph.view.grouping import Group
from primgraph.view.picture import Arrow, Box, Picture, picture_of

pytestmark = pytest.mark.long

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&lt;\u2028\u2029\"'`${x}"


class Reader(HTMLParser):
    """Collects the elements of a page with their attributes, and the text inside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements:
            self.inside.append((self.elements[-1][0], data))

    def texts(self, tag: str) -> list[str]:
        return [text for name, text in self.inside if name == tag and text.strip()]


def picture(name: str) -> Picture:
    """A chain of three boxes where `name` stands everywhere."""
    boxes = tuple(Box(i, f"{name} {i}", name, "forward", ((name, name),)) for i in range(3))
    arrows = (Arrow(0, 1, name), Arrow(1, 2, name))
    return Picture(name, boxes, arrows, {"line": (Group(0, name, "line", (0, 1)),)})


def step(name: str) -> Step:
    return Step(name, picture(name), (name, f"{name} again"), (0, -1), name)


def test_a_step_without_one_box_for_each_line_is_refused():
    with pytest.raises(ArgumentError, match="'a' has 1 lines and 2 boxes"):
        page([Step("a", picture("a"), ("one",), (0, 1))])
    with pytest.raises(ArgumentError, match="at least one step"):
        page([])


def test_the_same_steps_give_the_same_bytes():
    with pg.Program() as program:
        x = pg.data("x", shape=(3,))
        pg.tanh(x)
    texts = [page([Step("built", picture_of(program.graph()))]) for _ in range(2)]
    assert texts[0] == texts[1]


def test_the_policy_admits_the_own_script_and_style_and_nothing_else():
    reader = Reader(page([step("a")]))
    [policy] = [
        a["content"] for _, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy"
    ]

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": digest(reader.texts("script")[-1]),
        "style-src": digest(reader.texts("style")[0]),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_page_refers_to_nothing_outside():
    text = page([step("a")])
    attributes = [name for _, found in Reader(text).elements for name in found]
    assert not {"src", "href", "style", "srcset", "action"}.intersection(attributes)
    assert not [name for name in attributes if name.startswith("on")]
    assert re.findall(r"https?://[^\"'\s]*", text) == ["http://www.w3.org/2000/svg"]
    assert "@import" not in text
    assert "innerHTML" not in text


def test_names_of_users_make_no_elements_and_come_back_as_text_that_prints():
    harmless, hostile = Reader(page([step("a")])), Reader(page([step(HOSTILE)]))
    assert hostile.elements == harmless.elements
    names, data = map(json.loads, hostile.texts("script")[:2])
    shown = plain(HOSTILE)
    assert names == [shown]
    numbered = [f"{shown} {i}" for i in range(3)]
    assert data["texts"][:5] == [numbered[0], shown, "forward", *numbered[1:]]
    assert set(data["texts"]) >= {shown, f"{shown} again"}
    assert all(text.isprintable() for text in data["texts"])
    assert data["picture"]["boxes"] == [[i, 1, 2, 0, 1, 1] for i in (0, 3, 4)]
    assert [data["texts"][n] for n in data["lines"][1::2]] == [shown, f"{shown} again"]
    assert hostile.texts("title") == [shown]


def test_a_picture_of_several_steps_is_there_once():
    one, other = step("one"), step("other")
    blocks = Reader(page([one, other, one])).texts("script")[1:-1]
    assert [type(json.loads(text)["picture"]) for text in blocks] == [dict, dict, int]
    assert json.loads(blocks[2])["picture"] == 0


def test_data_has_no_letter_that_html_or_old_scripts_read_otherwise():
    for block in Reader(page([step(HOSTILE)])).texts("script")[:-1]:
        assert block.isascii()
        assert not set("<>&").intersection(block)


def test_half_a_character_can_be_written_to_a_file():
    assert page([step("\ud800")]).encode()
