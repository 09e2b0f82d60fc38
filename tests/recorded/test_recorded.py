"""Snippets and programs of torch, Paddle, OneFlow and MegEngine give the recorded results.

The recordings are those of the real packages: see `record.py`. The import lines of the text are
changed to `primgraph.compat`, and nothing else. `known_differences.txt` lists what does not agree,
with reasons; what agrees must not be listed.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from judging import REASONS, compare, differences, read_table, records, sources_of
from record import FOLDER, SYSTEMS, change_imports, encode, run

KNOWN = read_table()
CASES = [(system, name) for system in SYSTEMS for name in sources_of(system)]


SNIPPETS = [pytest.param(*c, id=" ".join(c)) for c in CASES if not c[1].startswith("programs/")]
PROGRAMS = [pytest.param(*c, id=" ".join(c)) for c in CASES if c[1].startswith("programs/")]


def check_case(system: str, name: str) -> None:
    """Check that results agree, unless the table says that they do not."""
    found = differences(system, name)
    if (system, name) in KNOWN:
        assert found, "it agrees: take it out of known_differences.txt"
    else:
        assert not found


@pytest.mark.parametrize(("system", "name"), SNIPPETS)
def test_snippets_give_the_recorded_results(system: str, name: str) -> None:
    check_case(system, name)


@pytest.mark.parametrize(("system", "name"), PROGRAMS)
def test_programs_give_the_recorded_results(system: str, name: str) -> None:
    check_case(system, name)


def test_known_differences_are_of_snippets_and_have_reasons() -> None:
    assert set(KNOWN) <= set(CASES)
    assert [key for key, reason in KNOWN.items() if not reason.startswith(REASONS)] == []
    assert [key for key, reason in KNOWN.items() if len(reason) < 12] == []


def test_the_table_has_what_differs_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    agrees, differs = ("torch", "tensors/shape"), ("torch", "autograd/where_guard")
    monkeypatch.setitem(KNOWN, agrees, "wrong: nothing")
    monkeypatch.delitem(KNOWN, differs)
    with pytest.raises(AssertionError, match="take it out"):
        check_case(*agrees)
    with pytest.raises(AssertionError, match="value 0, not nan"):
        check_case(*differs)


def test_recordings_are_of_the_snippets_and_small() -> None:
    for system in SYSTEMS:
        if system != "megengine":
            assert set(records(system)) == set(sources_of(system)), f"run record.py {system}"
            assert (FOLDER / f"{system}.json").stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("text", "same", "other"),
    [
        ("1.0", 1.0, 1.0 + 2e-6),
        ("0.1", 0.1, 0.1 + 1e-12),
        ("1", 1, True),
        ("[1, (2.5,)]", [1, [2.5]], [1, [2.5, 2.5]]),
        ("{'b': 1, 'a': 2}", {"dict": [["b", 1], ["a", 2]]}, {"dict": [["a", 2], ["b", 1]]}),
        ("float('nan')", float("nan"), 1.0),
        ("np.float32([1])", {"array": "float32", "shape": [1], "values": [1.0]}, [1.0]),
        (
            "np.ones(2)",
            {"array": "float64", "shape": [2], "values": [1.0, 1.0]},
            {"array": "float64", "shape": [2], "values": [1.0, 1.0 + 1e-11]},
        ),
        (
            "np.ones(2)",
            {"array": "float64", "shape": [2], "values": [1.0, 1.0]},
            {"array": "float32", "shape": [2], "values": [1.0, 1.0]},
        ),
        (
            "np.array([np.nan, np.inf])",
            {"array": "float64", "shape": [2], "values": [float("nan"), float("inf")]},
            {"array": "float64", "shape": [2], "values": [0.0, float("inf")]},
        ),
        (
            "np.array([[1j]])",
            {"array": "complex128", "shape": [1, 1], "values": [[[0.0, 1.0]]]},
            {"array": "complex128", "shape": [1, 1], "values": [[[0.0, -1.0]]]},
        ),
        ("None", None, {"line": 1, "raises": "ValueError"}),
    ],
)
def test_the_comparison_finds_differences(text: str, same: Any, other: Any) -> None:
    value, error = run(f"import numpy as np\n{text}")
    assert error is None
    ours = json.loads(json.dumps(encode(value)))
    assert compare(ours, same) == []
    assert compare(ours, other) != []


def test_imports_are_changed_line_by_line() -> None:
    text = (
        "import torch\nimport torch.nn as nn\nfrom torch import optim\n"
        "import torch.nn.functional\nimport torchvision\n    from torch.nn import Linear, Module\n"
    )
    assert change_imports(text, "torch", "p.t") == (
        "import p.t as torch\nimport p.t.nn as nn\nfrom p.t import optim\n"
        "import p.t as torch, p.t.nn.functional\nimport torchvision\n"
        "    from p.t.nn import Linear, Module\n"
    )
