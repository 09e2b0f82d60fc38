"""Every Python block of the README and of docs/ runs, and prints what the text below it says."""

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from exported import STRICT, compiled, compiler
from helpers import restored_tables
from pages import blocks_of, pictures_of, printed_by

import primgraph as pg
from primgraph import extend
from primgraph.operators.names import names_of

RNG = np.random.default_rng(0)
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
# Pages that need what is not always there.
NEEDS = {
    "tutorial/distributed": "dask",
    "recipes/equations-of-motion": "sympy",
    "reference/jax": "jax",
    "reference/torch": "torch",
    "reference/onnx": "onnx",
    "reference/stablehlo": "jax",
}
FENCE = re.compile(r"^```(.*)$", re.MULTILINE)
C_BLOCK = re.compile(r"^```c\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)

in_checkout = pytest.mark.skipif(
    not PAGES[0].exists(), reason="the tests run without the checkout around them"
)
each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda p: p.relative_to(ROOT).with_suffix("").as_posix()
)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Forget the primitives that a page declares."""
    with restored_tables():
        yield


@in_checkout
@each_page
def test_code_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    needed = NEEDS.get(page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/"))
    if needed is not None:
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    shown = 0
    for printed, expected in printed_by(page, tmp_path):
        if expected is not None:
            assert printed.rstrip() == expected.rstrip()
            shown += 1
    for picture, made in pictures_of(page, tmp_path):
        assert picture.read_bytes() == made.read_bytes(), picture
    assert shown or "```text" not in page.read_text(encoding="utf-8")


@in_checkout
@pytest.mark.skipif(not compiler(), reason="there is no C compiler")
def test_c_on_pages_compiles_beside_the_files_that_they_write(tmp_path, monkeypatch):
    with_c = [page for page in PAGES if "\n```c\n" in page.read_text(encoding="utf-8")]
    assert with_c
    for page in with_c:
        monkeypatch.chdir(tmp_path)
        list(printed_by(page, tmp_path))
        for k, text in enumerate(C_BLOCK.findall(page.read_text(encoding="utf-8"))):
            (tmp_path / f"block{k}.c").write_text(text)
            compiled([*STRICT, "-fsyntax-only", "-I", tmp_path, tmp_path / f"block{k}.c"])


@in_checkout
@each_page
def test_a_page_has_no_code_that_is_not_run(page):
    text = page.read_text(encoding="utf-8")
    fences = FENCE.findall(text)
    assert len(fences) % 2 == 0
    # C is compiled, by a test below.
    allowed = {"python", "text", "sh", "c", "", "{toctree}", "{eval-rst}"}
    kinds = [f for f in fences[::2] if not f.startswith("{include} ")]
    assert set(kinds) <= allowed
    above = {before for before, kind in pairwise(["", *kinds]) if kind == "text"}
    assert above <= {"python", "sh"}, "a text block stands right below the code that prints it"


# Code that pages show has numbers in full; what is computed is printed with fewer digits.
SHOWING_CODE = {"docs/tutorial/source.md"}


@in_checkout
@each_page
def test_pages_print_rounded_numbers(page):
    """NumPy promises no last digits: they depend on the processor."""
    if page.relative_to(ROOT).as_posix() in SHOWING_CODE:
        return
    texts = [text for kind, text in blocks_of(page) if kind == "text"]
    assert not [n for text in texts for n in re.findall(r"\d+\.\d+", text) if len(n) > 15]


@in_checkout
@each_page
def test_links_lead_to_files(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@in_checkout
def test_every_page_is_in_the_navigation_once():
    listed = []
    for page in PAGES[1:]:
        for tree in TREE.findall(page.read_text(encoding="utf-8")):
            # The gallery's pages are generated.
            skipped = (":", "gallery/")
            names = [n for n in tree.split("\n") if n.strip() and not n.startswith(skipped)]
            listed += [(page.parent / f"{n.strip()}.md").resolve() for n in names]
    assert sorted(listed) == sorted(p.resolve() for p in PAGES[1:] if p != DOCS / "index.md")


@in_checkout
def test_the_reference_has_every_public_name_once():
    text = "".join(p.read_text(encoding="utf-8") for p in sorted(DOCS.glob("reference/*.md")))
    named = re.findall(r"^\.\. auto\w+:: primgraph\.(\w+)$", text, re.MULTILINE)
    for words in re.findall(r"^\.\. autonames:: (.+(?:\n {3}.+)*)$", text, re.MULTILINE):
        for word in words.split():
            named += names_of(word) if "." in word else [word]
    assert sorted(named) == sorted(pg.__all__)
    extensions = re.findall(r"^\.\. auto\w+:: primgraph\.extend\.(\w+)$", text, re.MULTILINE)
    shared = [name for name in extend.__all__ if getattr(extend, name) is getattr(pg, name, None)]
    missing = sorted({*extend.__all__} - {*extensions, *shared})
    assert not missing, f"add {missing} to docs/reference/compiler.md"
    assert len(extensions) == len({*extensions} & {*extend.__all__})


@in_checkout
def test_the_readme_has_one_command_for_the_example_and_one_for_the_tests():
    commands = [code.strip() for kind, code in blocks_of(PAGES[0]) if kind == "sh"]
    assert len(commands) == 2
    assert all("\n" not in c and "pip install" in c for c in commands)
    assert "examples/burgers.py" in commands[0]
    assert "pytest -n auto" in commands[1]


def test_derivatives_grow_as_the_pages_say():
    for mode in ("reverse", "forward"):
        assert pg.growth(pg.tanh, pg.spec(3), orders=10, mode=mode).equations[-1] == 79
    weights = [RNG.standard_normal(shape) for shape in ((2, 8), (8, 8), (8, 1))]

    def network(x):
        for w in weights[:-1]:
            x = pg.tanh(x @ w)
        return x @ weights[-1]

    reverse, forward = (
        pg.growth(network, pg.spec((4, 2)), orders=5, mode=mode).equations[-2:]
        for mode in ("reverse", "forward")
    )
    assert reverse[1] / reverse[0] < 1.6
    assert forward[1] / forward[0] < 1.6
