"""What `import primgraph` loads, and that what it does not load is there when it is asked for."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import primgraph as pg
from primgraph.base.providers import late

# A new process takes a third of a second: each of these is many questions.
ALONE = {
    "what is loaded": """
import sys
import primgraph as pg

ours = {name for name in sys.modules if name.startswith("primgraph.")}
rooms = {name.split(".")[1] for name in ours}
assert not rooms & {"codegen", "transforms", "eager", "functional", "control", "custom", "autodiff"}
assert len(ours) < 100, sorted(ours)
assert not {"jinja2", "networkx", "scipy"} & {*sys.modules}
# What traced functions mention is asked for such names.
assert not hasattr(pg, "__wrapped__")
assert ours == {name for name in sys.modules if name.startswith("primgraph.")}
""",
    "distributions without SciPy": """
import sys
import primgraph as pg
from primgraph.scipy import stats

assert "scipy" not in sys.modules
assert stats.tukeylambda.cdf(pg.tensor(0.0), 0.1).item() == 0.5
assert "scipy" not in sys.modules
""",
    "arrays, tensors and texts": """
import numpy as np
import primgraph as pg

graph = pg.parse("graph f(%x: f64[2,2]) {\\n  %0: f64[2,2] = expm(%x)\\n  return %0\\n}")
assert pg.interpret(graph, np.zeros((2, 2)))[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
found = pg.sum(np.ones(3))
assert type(found) is pg.Tensor
assert pg.grad(lambda x: pg.sum(x * x))(np.ones(2)).tolist() == [2.0, 2.0]
assert (np.sin(pg.tensor([0.0])) + 1.0).tolist() == [1.0]
x = pg.tensor([1.0, 2.0])
assert pg.jacobian(lambda x: x * x, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
""",
    "programs": """
import numpy as np
import primgraph as pg

with pg.Program() as program:
    x = pg.data("x", (3,))
    loss = pg.sum(np.sin(x) * x)
    slope = pg.grad(loss, x)
    whole = pg.Jacobian(slope, x)[:]
    stack = pg.fori_loop(0, 3, lambda i, c: c + x, pg.zeros(3))
first, second, third = pg.Executor().run(program, {"x": np.zeros(3)}, [slope, whole, stack])
assert first.tolist() == third.tolist() == [0.0, 0.0, 0.0]
assert second.tolist() == (2.0 * np.eye(3)).tolist()
assert "sin" in str(program)
""",
    "graphs of other processes": """
import pickle, sys

graph = pickle.loads(bytes.fromhex(sys.argv[1]))
import numpy as np
import primgraph as pg

assert pg.compile(graph)(np.ones(2)).tolist() == [3.0, 3.0]
""",
}


@pytest.mark.parametrize("name", ALONE)
def test_a_new_process_loads_what_it_uses(name: str) -> None:
    graph = pg.trace(lambda x: pg.fori_loop(0, 2, lambda i, c: c + x, x), pg.spec(2))
    given = [pickle.dumps(graph).hex()] if name.startswith("graphs") else []
    command = [sys.executable, "-W", "error", "-c", ALONE[name], *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_late_modules_wait_for_threads_that_import_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "gate", gate, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    text = "import threading\nthreading.gate[0].set()\nthreading.gate[1].wait(9)\nvalue = 5\n"
    (tmp_path / "half_imported.py").write_text(text, "utf-8")
    thread = threading.Thread(target=lambda: __import__("half_imported"))
    thread.start()
    assert gate[0].wait(9)
    module = late("half_imported")
    threading.Timer(0.05, gate[1].set).start()
    assert module.value == 5
    thread.join()
    assert late("half_imported") is sys.modules.pop("half_imported")
