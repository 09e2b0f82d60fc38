"""The examples of Paddle's functions give the same in programs as on tensors."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import primgraph.compat.paddle as paddle
from primgraph.errors import PrimgraphError

EXAMPLE = re.compile(r">>> (?:print\(|\[found\.tolist\(\) for found in )?(paddle\.[\w.]+\(.*\))")
MODULES = (paddle.functions, paddle.linalg, paddle.fft)


def examples() -> dict[str, str]:
    """Return the call of a function of tensors by name."""
    found = {}
    for module in MODULES:
        for name in module.__all__:
            match = EXAMPLE.search(getattr(module, name).__doc__ or "")
            if match is None or "to_tensor" not in match[1]:
                continue
            call = re.sub(r"(\.tolist\(\)|\.numpy\(\)\.round\(3\)\)|\]|\.item\(\))$", "", match[1])
            found[f"{module.__name__.rpartition('.')[2]}.{name}"] = call
    return found


# The shape of the result depends on elements, or elements are looked at.
OF_ELEMENTS = {
    "functions.argwhere", "functions.bincount", "functions.histogramdd", "functions.increment",
    "functions.is_complex", "functions.is_floating_point", "functions.is_integer",
    "functions.masked_select", "functions.nonzero", "functions.tolist", "functions.unique",
    "functions.unique_consecutive", "linalg.lu_solve",
}  # fmt: skip
EXAMPLES = examples()


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - OF_ELEMENTS))
def test_a_function_of_variables_gives_what_that_of_tensors_gives(name: str) -> None:
    call = EXAMPLES[name]
    expected = eval(call, {"paddle": paddle, "np": np})
    feed: dict[str, Any] = {}

    def declare(data: Any) -> Any:
        array = paddle.to_tensor(data).numpy()
        feed[f"x{len(feed)}"] = array
        return paddle.static.data(f"x{len(feed) - 1}", array.shape, array.dtype)

    known = {n: getattr(paddle, n) for n in dir(paddle)}
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        built = SimpleNamespace(**{**known, "to_tensor": declare})
        found = eval(call, {"paddle": built, "np": np})
        several = isinstance(found, list | tuple)
        fetches = list(found) if several else [found]
        values = paddle.static.Executor().run(program, feed, fetches)
    wanted = list(expected) if several else [expected]
    for value, tensor in zip(values, wanted, strict=True):
        assert value.dtype == tensor.numpy().dtype
        np.testing.assert_allclose(value, tensor.numpy(), rtol=1e-5, atol=1e-6)


def test_arrays_and_numbers_are_refused_where_tensors_are_expected() -> None:
    for wrong in (np.ones(2), [1.0, 2.0], 3.0):
        with pytest.raises(ValueError, match="must be Tensor"):
            paddle.exp(wrong)
    with pytest.raises(ValueError, match="argument 'y' must be Tensor"):
        paddle.add(paddle.ones([2]), 2.0)
    with pytest.raises(PrimgraphError):
        paddle.exp(1.0)
    assert paddle.sum(input=paddle.ones([2, 3]), dim=1).tolist() == [3.0, 3.0]
