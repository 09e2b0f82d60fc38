"""The section about ONNX on the page about interoperability."""

import contextlib
import io
from itertools import pairwise

import onnx_table
import pytest
from pages import BLOCK


def test_the_tables_are_those_of_the_package():
    assert onnx_table.shown() == onnx_table.table(), "run python tests/tools/onnx_table.py"


def test_examples_print_what_the_page_shows(tmp_path, monkeypatch):
    pytest.importorskip("onnx", reason="the examples write and read models of ONNX")
    monkeypatch.chdir(tmp_path)
    section = onnx_table.PAGE.read_text(encoding="utf-8").partition("\n## ONNX\n")[2]
    blocks = BLOCK.findall(section.partition("\n## ")[0])
    examples = [(code, shown) for (kind, code), (_, shown) in pairwise(blocks) if kind == "py"]
    namespace = {}
    for code, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(tmp_path / "page.py"), "exec"), namespace)
        assert printed.getvalue() == shown
    assert len(examples) == 3
