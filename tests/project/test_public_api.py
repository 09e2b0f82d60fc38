"""The names that users write stay, and take what they took."""

import importlib
from difflib import unified_diff
from pathlib import Path

from public_api import MODULES, public_api
from stubs import STUBS, path, stub

KEPT = Path(__file__).parents[1] / "tools" / "public_api.txt"


def test_the_public_names_and_their_parameters_are_those_that_are_written_down():
    """Who changes one on purpose writes the file anew and tells it in CHANGELOG.md."""
    before, now = KEPT.read_text().splitlines(), public_api().splitlines()
    changes = "\n".join(unified_diff(before, now, "as written down", "now", lineterm="", n=0))
    assert not changes, f"{changes}\npython tests/tools/public_api.py > tests/tools/public_api.txt"


def test_stubs_have_the_names_of_rows() -> None:
    """Who adds a row runs `python tests/tools/stubs.py`."""
    for module in STUBS:
        assert path(module).read_text(encoding="utf-8") == stub(module), module


# Modules that users import beside those whose names are written down.
DOORS = [
    "autograd",
    "compat.autograd",
    "compat.megengine",
    "compat.megengine.autodiff",
    "compat.megengine.functional",
    "compat.megengine.module",
    "compat.megengine.optimizer",
    "compat.oneflow",
    "compat.oneflow.autograd",
    "compat.paddle.autograd",
    "compat.paddle.incubate",
    "compat.torch",
    "compat.torch.autograd",
    "compat.torch.autograd.functional",
    "compat.torch.func",
    "compat.torch.nn",
    "compat.torch.nn.functional",
    "compat.torch.optim",
    "eager",
    "scipy",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.signal",
    "scipy.special",
    "scipy.stats",
    "tree",
]


HELPERS = {"Any", "NoReturn", "TYPE_CHECKING", "annotations", "np", "unknown_name"}


def test_dir_of_a_public_module_tells_its_public_names_alone() -> None:
    for name in [*MODULES, *(f"primgraph.{door}" for door in DOORS)]:
        module = importlib.import_module(name)
        told = dir(module)
        assert set(told) == set(getattr(module, "__all__", told)), name
        assert all(hasattr(module, short) for short in told), name
        assert not {"Any", "NoReturn", "TYPE_CHECKING", "annotations", "np", "unknown_name"} & {
            *told
        }, name
    for name, known in (
        ("scipy", {"integrate", "linalg", "special", "stats"}),
        ("scipy.special", {"erf", "gammaln"}),
        ("special", {"erf", "gammainc", "logsumexp"}),
        ("fft", {"fft", "irfftn"}),
    ):
        assert known <= {*dir(importlib.import_module(f"primgraph.{name}"))}
