"""Every Python block of the README and of docs/ runs, and prints what the text below it says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not PAGES[0].exists(), reason="the tests run without the checkout around them")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    namespace: dict[str, object] = {"__name__": "__main__"}
    shown = 0
    for (kind, code), (following, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        path = tmp_path / f"{page.stem}.py"
        path.write_text(code, encoding="utf-8")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(path), "exec"), namespace)
        if following == "text":
            assert printed.getvalue().rstrip() == expected.rstrip()
            shown += 1
    assert shown or "```text" not in page.read_text(encoding="utf-8")


@pytest.mark.skipif(not PAGES[0].exists(), reason="the tests run without the checkout around them")
def test_the_readme_has_one_command_for_the_example_and_one_for_the_tests():
    commands = [code.strip() for kind, code in BLOCK.findall(PAGES[0].read_text()) if kind == "sh"]
    assert len(commands) == 2
    assert all("\n" not in c and "pip install" in c for c in commands)
    assert "examples/burgers.py" in commands[0]
    assert "pytest" in commands[1]
