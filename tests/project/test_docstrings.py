"""Examples in the docstrings of public functions run, and print what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_origin

import numpy as np
import pytest
from helpers import restored_tables
from public_api import MODULES, _public

import primgraph as pg
import primgraph.array_api as xp
import primgraph.compat.megengine as megengine
import primgraph.compat.megengine.functional
import primgraph.compat.oneflow as flow
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.operators.elementwise import scipy_calls
from primgraph.program import program as programs

# Names that examples use without importing them.
NAMES = {
    "np": np, "pg": pg, "xp": xp, "paddle": paddle, "torch": torch, "megengine": megengine,
    "flow": flow
}  # fmt: skip

# Modules with functions of other libraries' names, beside those of `public_api.MODULES`. Of these
# modules count the functions that primgraph defines: others have the docstrings of NumPy and SciPy.
COUNTERPARTS = [
    "primgraph.codegen",
    "primgraph.compat.autograd",
    "primgraph.compat.autograd.differential_operators",
    "primgraph.compat.autograd.numpy",
    "primgraph.compat.megengine",
    "primgraph.compat.megengine.autodiff",
    "primgraph.compat.megengine.data",
    "primgraph.compat.megengine.data.dataset",
    "primgraph.compat.megengine.data.transform",
    "primgraph.compat.megengine.device",
    "primgraph.compat.megengine.distributed",
    "primgraph.compat.megengine.functional",
    "primgraph.compat.megengine.functional.metric",
    "primgraph.compat.megengine.functional.vision",
    "primgraph.compat.megengine.jit",
    "primgraph.compat.megengine.logger",
    "primgraph.compat.megengine.module",
    "primgraph.compat.megengine.module.init",
    "primgraph.compat.megengine.random",
    "primgraph.compat.megengine.serialization",
    "primgraph.compat.oneflow.env",
    "primgraph.compat.oneflow.extras",
    "primgraph.compat.oneflow.global_tensors",
    "primgraph.compat.oneflow.nn.extras",
    "primgraph.compat.oneflow.sbp",
    "primgraph.compat.paddle.amp",
    "primgraph.compat.paddle.distributed",
    "primgraph.compat.paddle.distributed.fleet.utils",
    "primgraph.compat.paddle.distribution",
    "primgraph.compat.paddle.environment",
    "primgraph.compat.paddle.files",
    "primgraph.compat.paddle.io",
    "primgraph.compat.paddle.optimizer",
    "primgraph.compat.paddle.optimizer.lr",
    "primgraph.compat.paddle.randomness",
    "primgraph.compat.paddle.regularizer",
    "primgraph.compat.paddle.utils",
    "primgraph.compat.torch",
    "primgraph.compat.torch.amp",
    "primgraph.compat.torch.autograd",
    "primgraph.compat.torch.autograd.functional",
    "primgraph.compat.torch.cuda",
    "primgraph.compat.torch.distributions",
    "primgraph.compat.torch.distributions.transforms",
    "primgraph.compat.torch.func",
    "primgraph.compat.torch.nn",
    "primgraph.compat.torch.nn.functional",
    "primgraph.compat.torch.nn.init",
    "primgraph.compat.torch.nn.modules.module",
    "primgraph.compat.torch.nn.utils",
    "primgraph.compat.torch.nn.utils.parametrizations",
    "primgraph.compat.torch.nn.utils.parametrize",
    "primgraph.compat.torch.nn.utils.rnn",
    "primgraph.compat.torch.optim",
    "primgraph.compat.torch.optim.lr_scheduler",
    "primgraph.compat.torch.optim.swa_utils",
    "primgraph.compat.torch.random",
    "primgraph.compat.torch.serialization",
    "primgraph.compat.torch.utils.checkpoint",
    "primgraph.compat.torch.utils.data",
    "primgraph.distributed",
    "primgraph.numpy",
    "primgraph.scipy.integrate",
    "primgraph.scipy.optimize",
    "primgraph.scipy.signal",
    "primgraph.scipy.stats",
]

# Modules whose functions have no example here, and where they are shown instead.
WITHOUT = {
    "primgraph.compat.paddle.nn": "layers of functions of nn.functional, which have examples",
    "primgraph.distributed": "needs dask and its workers: docs/tutorial/distributed.md",
    "primgraph.extend": "parts of declarations, which pages of docs/guide show whole",
}

# Further classes whose docstrings have no example; errors have none, either.
PLAIN = {
    "primgraph.compat.autograd.numpy.ndarray",  # for isinstance
    "primgraph.compat.paddle.Size",  # a list
    "primgraph.compat.paddle.static.Variable",  # for isinstance
    "primgraph.compat.paddle.static.load",  # of files that `save` writes, which has an example
    "primgraph.compat.paddle.static.load_inference_model",
    "primgraph.compat.paddle.static.load_program_state",
    "primgraph.compat.paddle.static.set_program_state",
    "primgraph.compat.torch.Size",  # a tuple
    "primgraph.compat.torch.broadcast_shapes",  # NumPy's
    "primgraph.compat.torch.optim.SparseAdam",  # an error
    "primgraph.compat.torch.nn.utils.clip_grad_norm",  # deprecated, and warns
    "primgraph.special.SiciResult",  # result of `sici`, which has one
}


# First words of docstrings that are no verb, of functions, and no noun, of classes.
NO_VERB = re.compile(r"`|-?\d|\w+'s\b|(The|An?|Of|For|From|If|As|Decorator|Numbers|Ones|Zeros)\b")
NO_NOUN = re.compile(r"(What|Where|Which|Whose|Why|Who|Whether|How|That|Those)\b")


def documented() -> dict[str, Any]:
    """Each public function, method and class, once, by its longest name."""
    found: dict[int, tuple[str, Any]] = {}
    for module_name in [*MODULES, *COUNTERPARTS]:
        module = importlib.import_module(module_name)
        for name in sorted(_public(module)):
            item = getattr(module, name)
            if callable(item) and get_origin(item) is None and _is_ours(item, name):
                found.setdefault(id(item), (f"{module_name}.{name}", item))
    return dict(found.values())


def _is_ours(item: Any, name: str) -> bool:
    """Whether primgraph wrote the docstring, which may be NumPy's or SciPy's."""
    if inspect.getdoc(item) == inspect.getdoc(getattr(np, name, None)):
        return False
    owner = inspect.unwrap(item)
    return str(getattr(owner, "__module__", type(owner).__module__)).startswith("primgraph")


DOCUMENTED = documented()
EXAMPLES = {
    name: item for name, item in DOCUMENTED.items() if ">>>" in (inspect.getdoc(item) or "")
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in a folder for files, and restore what examples set."""
    monkeypatch.chdir(tmp_path)
    threads, main = pg.get_num_threads(), programs._main[0]
    programs._main[0] = pg.Program("main")
    with restored_tables():
        yield
    programs._main[0] = main
    pg.set_num_threads(threads)
    pg.set_default_dtype("float64")
    pg.seed(0)
    paddle.disable_static()
    paddle.set_default_dtype("float32")
    torch.set_default_dtype(torch.float32)
    paddle.incubate.autograd.disable_prim()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_prints_what_it_shows(name: str) -> None:
    if _needs_scipy(EXAMPLES[name]):
        pytest.importorskip("scipy")
    text = inspect.getdoc(EXAMPLES[name]) or ""
    for library in re.findall(r">>> import (jax|onnx|sympy|torch)\b", text, re.MULTILINE):
        pytest.importorskip(library)
    test = doctest.DocTestParser().get_doctest(text, dict(NAMES), name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


def _needs_scipy(item: Callable[..., Any]) -> bool:
    """Whether the function calls SciPy, which may not be installed."""
    plain = inspect.unwrap(item)
    calls = (scipy_calls.__name__, "primgraph.scipy.optimize")
    return plain.__module__ in calls or getattr(plain, "__name__", "") in ("solve_bvp", "solve_ivp")


def test_functions_and_classes_have_examples() -> None:
    shown = {n for n, x in DOCUMENTED.items() if not _is_error(x)}
    # Variants in place, `paddle.tanh_`, are as the functions are.
    in_place = {f"{n}_" for n in EXAMPLES if n.startswith("primgraph.compat.paddle.")}
    lacking = shown - EXAMPLES.keys() - in_place
    assert {n for n in lacking if n.rpartition(".")[0] not in WITHOUT} == PLAIN
    assert {n.rpartition(".")[0] for n in lacking - PLAIN} == WITHOUT.keys()


def _is_error(item: Any) -> bool:
    return inspect.isclass(item) and issubclass(item, BaseException)


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    def is_wrong(item: Any) -> bool:
        text = inspect.getdoc(item) or ""
        is_function = inspect.isroutine(item)
        return bool(NO_NOUN.match(text) or (is_function and NO_VERB.match(text)))

    assert {name for name, item in DOCUMENTED.items() if is_wrong(item)} == set()
