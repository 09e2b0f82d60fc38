"""Record the public names of the real torch or Paddle by module.

    python tests/recorded/names/record_names.py torch > tests/recorded/names/torch.txt

Run it with a Python that has the package. Each line is a module and its names: those of `__all__`,
or functions, classes and numbers that do not begin with "_". The lists of MegEngine and OneFlow
come from `__all__` of MegEngine's files and from the pages of OneFlow's documentation.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from types import ModuleType

MODULES = {
    "torch": (
        "torch torch.autograd torch.autograd.forward_ad torch.autograd.functional "
        "torch.autograd.graph torch.distributions torch.fft torch.func torch.linalg torch.nn "
        "torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.parametrizations "
        "torch.nn.utils.rnn torch.optim torch.optim.lr_scheduler torch.optim.swa_utils "
        "torch.random torch.special torch.utils.checkpoint torch.utils.data"
    ),
    "paddle": (
        "paddle paddle.autograd paddle.distribution paddle.fft paddle.incubate.autograd paddle.io "
        "paddle.jit paddle.linalg paddle.metric paddle.nn paddle.nn.functional "
        "paddle.nn.initializer paddle.nn.utils paddle.optimizer paddle.optimizer.lr "
        "paddle.regularizer paddle.static paddle.static.nn"
    ),
}
# Modules whose `__all__` lacks what users call.
PARTIAL = ("torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.optim")
# Modules whose names others import for their own use.
INTERNAL = ("torch._tensor", "torch.overrides", "torch._jit_internal", "torch._C._functorch")


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    named = None if module.__name__ in PARTIAL else getattr(module, "__all__", None)
    names = vars(module) if named is None else named
    return sorted({n for n in names if is_public(module, n)})


def is_public(module: ModuleType, name: str) -> bool:
    """Return whether users call a name: it has a docstring, and is no type of a compiler."""
    value = getattr(module, name, None)
    if name.startswith("_") or value is None or isinstance(value, ModuleType):
        return False
    if name.endswith("_notes") or getattr(value, "__module__", "") in INTERNAL:
        return False
    if isinstance(value, type) and value.__module__ in ("torch", "torch._C") and name[0].isupper():
        return name in ("Generator", "Size", "Tensor")
    library = module.__name__.partition(".")[0]
    home = str(getattr(value, "__module__", None) or library)
    return home.partition(".")[0] == library and bool(getattr(value, "__doc__", None))


def main(library: str) -> None:
    for path in MODULES[library].split():
        text = f"{path}: {' '.join(names_of(importlib.import_module(path)))}"
        print(*textwrap.wrap(text, 110, subsequent_indent="  "), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
