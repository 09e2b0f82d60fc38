"""The node tests of ONNX's package, imported by `pg.interop.from_onnx`.

They need the package `onnx`. An input that a shape depends on is given as `known`. Cases about
strings, sequences, images and quantised types, and of other domains than the default one, are no
part of the promise. What does not pass is in `onnx_exceptions.txt`, with reasons.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primgraph as pg

HERE = Path(__file__).resolve().parents[1]

# How many of the cases that are part of the promise pass at least.
LEAST = 0.95
# Every how many cases the ordinary run takes one.
SAMPLED = 61

# Types of elements up to bool, without strings; complex numbers; bfloat16.
_KINDS = {*range(1, 8), *range(9, 17)}
_QUANTISED = ("QLinear", "QuantizeLinear", "DequantizeLinear", "DynamicQuantize", "Integer")


def exceptions() -> dict[str, str]:
    """The cases that do not pass, with the reason of each."""
    text = (HERE / "tools" / "onnx_exceptions.txt").read_text(encoding="utf-8")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line[:1] not in ("", "#")]
    return {line[0]: line[1] for line in lines}


def cases() -> list[Any]:
    """The cases that are part of the promise."""
    pytest.importorskip("onnx", reason="the package onnx has the cases")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = sys.modules.get("onnx.backend.test.case.node") or __import__(
            "onnx.backend.test.case.node", fromlist=["collect_testcases"]
        )
        return [case for case in loader.collect_testcases(None) if is_promised(case.model)]


def is_promised(model: Any) -> bool:
    """Whether a model is of the default domain, and about arrays of numbers that are no images."""
    kinds = [node.op_type for node in model.graph.node]
    if any(node.domain not in ("", "ai.onnx") for node in model.graph.node):
        return False
    if any(word in kind for kind in kinds for word in (*_QUANTISED, "ImageDecoder")):
        return False
    declared = [*model.graph.input, *model.graph.output]
    return all(
        x.type.WhichOneof("value") == "tensor_type" and x.type.tensor_type.elem_type in _KINDS
        for x in declared
    )


def as_array(x: Any) -> Any:
    return (
        x
        if isinstance(x, np.ndarray | np.generic)
        else sys.modules["onnx"].numpy_helper.to_array(x)
    )


def imported(model: Any, given: dict[str, Any]) -> tuple[Any, set[str]]:
    """The function of a model, and the inputs whose elements it needs."""
    known: dict[str, Any] = {}
    while True:
        try:
            return pg.interop.from_onnx(model, known=known), set(known)
        except pg.UnknownValueError as error:
            new = [n for n in given if n not in known and repr(n) in str(error)]
            if not new:
                raise
            known.update({name: given[name] for name in new})


def run(case: Any) -> None:
    """Raise if a case does not pass."""
    names = [x.name for x in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        given = dict(zip(names, map(as_array, inputs), strict=True))
        function, known = imported(case.model, given)
        found = function(*[given[name] for name in names if name not in known])
        results = found if isinstance(found, tuple) else (found,)
        for x, y in zip(map(np.asarray, results), map(as_array, outputs), strict=True):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            np.testing.assert_allclose(x, y, rtol=case.rtol, atol=case.atol)


def failures(chosen: list[Any]) -> Iterator[tuple[str, str]]:
    for case in chosen:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                run(case)
            except Exception as error:
                yield case.name, f"{type(error).__name__}: {str(error).splitlines()[0]:.150}"


def test_a_sample_of_node_cases_passes() -> None:
    known = exceptions()
    chosen = [case for case in cases()[::SAMPLED] if case.name not in known]
    assert not dict(failures(chosen))


@pytest.mark.dense
def test_node_cases_pass() -> None:
    chosen, known = cases(), exceptions()
    failed = dict(failures(chosen))
    assert set(failed) <= set(known), {n: failed[n] for n in failed if n not in known}
    assert set(known) <= set(failed), "cases that pass are no exceptions"
    assert len(chosen) - len(failed) >= LEAST * len(chosen)


def test_exceptions_have_reasons() -> None:
    assert all(len(reason) > 10 for reason in exceptions().values())


if __name__ == "__main__":
    every = cases()
    found = dict(failures(every))
    for name, reason in found.items():
        print(name, reason)
    print(f"{len(every) - len(found)} of {len(every)} pass")
    print(Counter(reason.partition(":")[0] for reason in found.values()))
