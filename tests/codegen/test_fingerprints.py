"""Fingerprints of user primitives: every change of what their functions are is seen."""

import os
import subprocess
import sys
import types

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen.runtime.toolchain import graph_keys
from primgraph.codegen.runtime.toolchain.cache import UnknownError
from primgraph.codegen.runtime.toolchain.fingerprint import fingerprint
from primgraph.ir.facts import ops as registry
from primgraph.ir.primitive import registered
from primgraph.transforms import lower

SOURCE = """
import math
import numpy as np
from functools import partial
from primgraph.extend import elementwise, primitive, with_batch_axis

SCALE = 2.0
TABLE = {"a": np.arange(3.0), "b": (1, [2, {3}])}

def third(x, power=3):
    return np.sin(x) ** power

def helper(x):
    return third(x) + math.pi

def made(bound):
    def inner(x):
        return min(x, bound)
    return inner

first = made(4.0)

def impl(x, *, k=1):
    parts = [helper(v * SCALE) for v in (x, x)]
    return parts[0] + first(0.5) + TABLE["a"][0] * k

op = elementwise("fingerprinted", impl)
"""


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registry", registered())


def primitive_of(source):
    """The primitive that a module of this source declares."""
    module = types.ModuleType("users_module")
    exec(compile(source, "users_module.py", "exec"), module.__dict__)
    # The next one has the same name.
    del registry._registry["fingerprinted"]
    return module.op


CHANGES = [
    ("SCALE = 2.0", "SCALE = 2"),
    ("SCALE = 2.0", "SCALE = -0.0"),
    ("np.arange(3.0)", "np.arange(3.0) + 1"),
    ("np.arange(3.0)", "np.arange(3)"),
    ("{3}", "{4}"),
    ("power=3", "power=2"),
    ("np.sin(x)", "np.cos(x)"),
    ("np.sin(x)", "np.linalg.norm(x)"),
    ("math.pi", "math.e"),
    ("third(x) +", "third(x) -"),
    ("third(x) +", "third(x, 1) +"),
    ("made(4.0)", "made(5.0)"),
    ("min(x, bound)", "max(x, bound)"),
    ("k=1", "k=2"),
    ("(x, x)]", "(x, x, x)]"),
    ('"fingerprinted", impl', '"fingerprinted", partial(impl, k=3)'),
    ('"fingerprinted", impl', '"fingerprinted", impl, commutative=True, operands=2'),
    ('"fingerprinted", impl', '"fingerprinted", impl, kinds="fc"'),
    ('"fingerprinted", impl', '"fingerprinted", impl, flops=9'),
    ("import math", "import cmath as math"),
]


def test_each_change_of_a_function_that_is_called_changes_the_fingerprint():
    found = {fingerprint(primitive_of(SOURCE))}
    assert found == {
        fingerprint(primitive_of(SOURCE.replace("\ndef third", "\n\n# Here.\ndef third")))
    }
    for old, new in CHANGES:
        changed = SOURCE.replace(old, new)
        assert changed != SOURCE
        found.add(fingerprint(primitive_of(changed)))
    assert len(found) == len(CHANGES) + 1


def test_another_process_has_the_same_fingerprint():
    code = SOURCE + (
        "\nfrom primgraph.codegen.runtime.toolchain.fingerprint import fingerprint\n"
        "print(fingerprint(op), end='')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PRIMGRAPH_DEBUG": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert not done.stderr
    assert done.stdout == fingerprint(primitive_of(SOURCE))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("SCALE = 2.0", "SCALE = type('T', (), {})()", "T objects"),
        ("SCALE = 2.0", "SCALE = object()", "object objects"),
        ("SCALE = 2.0", "SCALE = np.ones(1 << 16)", "an array is too large"),
        ("SCALE = 2.0", "SCALE = np.array([{}])", "has objects in it"),
        ("SCALE = 2.0", "SCALE = open", ""),
        ("math.pi", "eval('SCALE')", r"helper calls eval\(\)"),
        ("math.pi", "globals()['SCALE']", r"helper calls globals\(\)"),
        ("import math", "import pytest as math", "module objects"),
        ("    return third(x)", "    import pytest\n    return third(x)", "helper imports pytest"),
        ('"fingerprinted", impl', '"fingerprinted", np.vectorize(impl)', "vectorize objects"),
    ],
)
def test_what_another_process_may_not_have_has_no_fingerprint(old, new, why):
    op = primitive_of(SOURCE.replace(old, new))
    if not why:
        assert fingerprint(op)
        return
    with pytest.raises(UnknownError, match=why):
        fingerprint(op)


def test_the_explanation_tells_why_code_is_not_kept():
    op = primitive_of(SOURCE.replace("SCALE = 2.0", "SCALE = object()"))
    registry._registry[op.name] = op
    graph = lower(pg.trace(lambda x: pg.extend.emit(op, x) + 1.0, np.ones(3)))
    told = "primitive fingerprinted: object objects are unknown to other processes"
    assert graph_keys.reason_unknown(graph) == told
    kernel = pg.compile(graph)
    assert kernel.explanation.endswith(f"not kept on disk: {told}")
    known = pg.compile(pg.trace(lambda x: pg.sin(x), np.ones(3)))
    assert "not kept" not in known.explanation


_PROGRAM = """
import sys
import numpy as np, primgraph as pg
from primgraph.extend import elementwise, emit, primitive

def helper(x):
    return {text}

def impl(x):
    return helper(x) * 2.0

own = elementwise("own", impl)
@primitive(impl=lambda: np.full(3, helper(1.0)), literal=True)
def filled():
    return pg.extend.TensorType((3,), np.dtype("f8"))

f = lambda x: pg.tanh(emit(own, x) + emit(filled)) @ np.ones((3, 40000)) + 1.0
for target in ("numpy", "c"):
    found = pg.compile(pg.trace(f, np.ones(3)), target=target)(np.arange(3.0))
    want = np.tanh(impl(np.arange(3.0)) + helper(1.0)) @ np.ones((3, 40000)) + 1.0
    assert np.allclose(found, want, rtol=1e-12, atol=0), (target, found, want)
late = "planned", "targets.c.driver"
print([f"primgraph.codegen.{name}" in sys.modules for name in late])
"""


def test_a_changed_helper_is_another_program_on_disk(tmp_path):
    environment = {
        **os.environ, "PRIMGRAPH_CACHE": str(tmp_path / "cache"), "PRIMGRAPH_DEBUG": "0",
    }  # fmt: skip
    script = tmp_path / "program.py"

    def runs(text):
        script.write_text(_PROGRAM.replace("{text}", text))
        done = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, env=environment
        )
        assert not done.stderr
        return done.stdout.strip()

    texts = "x + 1.0", "x + 1.0", "x + 2.0", "x + 1.0"
    assert [*map(runs, texts)] == [f"[{new}, {new}]" for new in (True, False, True, False)]
