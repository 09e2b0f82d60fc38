"""Packages that have the code of another one, with classes of their own.

OneFlow's API is torch's. Each module of `primgraph.compat.torch` also exists in
`primgraph.compat.oneflow`: the same code, executed a second time under OneFlow's name, with the
word "oneflow" for "torch" in names and texts. So imports of torch's modules find OneFlow's,
`oneflow.nn.Linear` has parameters of OneFlow's tensor class, and `oneflow.set_default_dtype` leaves
torch's default alone.

A file in the folder of the copy comes first. It may begin with `mirror(globals())`, which defines
what torch's module of that name defines, and then replace some of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from operator import is_
from pathlib import PurePath
from types import CodeType, ModuleType
from typing import Any, final

_PARENT = "primgraph.compat"
# The package whose code a package has.
ORIGINALS = {f"{_PARENT}.oneflow": f"{_PARENT}.torch"}
# Modules of the original that the library of the copy does not have.
LACKING = (f"{_PARENT}.oneflow.optim.swa_utils",)


def mirror(own: dict[str, Any], without: Sequence[str] = ()) -> None:
    """Define in a module what its original defines, but not the names `without`.

    `own` has the globals of the module, which keeps its docstring.
    """
    name: str = own["__name__"]
    source = find_source(original_name(name))
    assert source is not None, f"{original_name(name)} does not exist"
    assert isinstance(source.loader, InspectLoader)
    code = source.loader.get_code(source.name)
    assert code is not None
    copy = _copy_of(name)
    words = [package.rpartition(".")[2] for package in (ORIGINALS[copy], copy)]
    doc = own.get("__doc__")
    exec(_translate(code, *words), own)
    own["__doc__"] = doc or own["__doc__"]
    for unwanted in without:
        del own[unwanted]
        own["__all__"].remove(unwanted)


def _translate(code: CodeType, word: str, other: str) -> CodeType:
    """Return the code with `other` for `word` in its names, texts, and those of functions within.

    Modules to import are names of the code.
    """
    pattern = re.compile(rf"\b{word}\b")

    def change(value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return pattern.sub(other, value) if word in value else value
        if kind is tuple or kind is frozenset:
            items = [*map(change, value)]
            return value if all(map(is_, items, value)) else kind(items)
        if kind is CodeType:
            names, constants = change(value.co_names), change(value.co_consts)
            if names is value.co_names and constants is value.co_consts:
                return value
            return value.replace(co_names=names, co_consts=constants)
        return value

    found: CodeType = change(code)
    return found


def original_name(name: str) -> str:
    """Return the name of the module whose code module `name` has."""
    copy = _copy_of(name)
    return ORIGINALS[copy] + name.removeprefix(copy)


@cache
def find_source(name: str) -> ModuleSpec | None:
    """Find a module below `primgraph.compat` without importing it or its package."""
    package = name.rpartition(".")[0]
    path: Sequence[str] | None
    if package == _PARENT:
        path = sys.modules[_PARENT].__path__
    else:
        around = find_source(package)
        path = None if around is None else around.submodule_search_locations
    spec = PathFinder.find_spec(name, path) if path else None
    return spec if spec is not None and spec.loader is not None else None


def _copy_of(name: str) -> str:
    """The package of `ORIGINALS` in which a module is; empty if it is in none."""
    copy = ".".join(name.split(".")[:3])
    return copy if copy in ORIGINALS else ""


@final
class _Loader(Loader):
    """Loader of modules that have no file of their own."""

    def __init__(self, source: ModuleSpec) -> None:
        self.source = source

    def exec_module(self, module: ModuleType) -> None:
        mirror(vars(module))

    def get_source(self, name: str) -> str | None:
        """Return the text of the original, for tracebacks and `inspect`."""
        loader = self.source.loader
        return loader.get_source(self.source.name) if isinstance(loader, InspectLoader) else None


@final
class _Finder(MetaPathFinder):
    """Finder of the modules of `ORIGINALS`' packages."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(f"{_PARENT}.") or not _copy_of(name) or name in ORIGINALS:
            return None
        own = PathFinder.find_spec(name, path)
        if own is not None and own.loader is not None:
            return own
        if name in LACKING:
            short = name.removeprefix(f"{_PARENT}.")
            package = _copy_of(name)
            raise ModuleNotFoundError(f"{short} is not part of {package}", name=name)
        source = find_source(original_name(name))
        if source is None:
            return None
        is_package = source.submodule_search_locations is not None
        found = ModuleSpec(name, _Loader(source), origin=source.origin, is_package=is_package)
        found.has_location = True
        if is_package:
            # Files of the copy are found in its folder, if there is one.
            folders = [str(PurePath(f, name.rpartition(".")[2])) for f in path or ()]
            found.submodule_search_locations = folders
        return found


# Before Python's own, which would take a folder without __init__.py for a package.
sys.meta_path.insert(0, _Finder())
