"""Passes as text: what fusion, placement, copy elision, threads and derivatives make of a graph."""

import pytest
from pass_cases import PASSES, cases, result

from primgraph.ir.text import to_text

CASES = {f"{path.stem}: {case.title}": case for path, found in cases() for case in found}


def test_each_pass_has_cases_and_each_case_has_a_title_of_its_own():
    assert {case.call.split()[0] for case in CASES.values()} == PASSES.keys()
    assert len(CASES) == sum(len(found) for _, found in cases()) >= 28


@pytest.mark.parametrize("name", CASES)
def test_a_graph_becomes_what_is_written_down(name):
    """`python tests/tools/pass_cases.py` writes down what comes out now."""
    case = CASES[name]
    assert to_text(case.graph()) == case.before, "the graph is not written as it prints"
    assert result(case) == case.after
