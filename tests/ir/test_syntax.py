"""Syntax trees of users' code, also while other threads build some."""

import ast
import threading

import pytest

from primgraph.ir.frontend.syntax import parse


def test_parsing_is_repeated_when_another_thread_has_disturbed_it(monkeypatch):
    tried, real = [], ast.parse

    def disturbed(text):
        tried.append(text)
        if len(tried) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=42, after=34)")
        return real(text)

    monkeypatch.setattr(ast, "parse", disturbed)
    (statement,) = parse("a = b + c").body
    assert isinstance(statement, ast.Assign)
    assert len(tried) == 3
    with pytest.raises(SyntaxError):
        parse("a =")


def test_several_threads_parse_at_once():
    text = "\n".join(f"x{k} = f(x{k - 1}, [{k}, (y, z)])" for k in range(1, 300))
    found = []
    threads = [threading.Thread(target=lambda: found.append(parse(text))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(tree.body) for tree in found] == [299] * 6
