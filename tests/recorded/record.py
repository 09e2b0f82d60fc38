"""Record the results of snippets and programs with the real torch or Paddle.

    python tests/recorded/record.py torch
    python tests/recorded/record.py paddle
    python tests/recorded/record.py oneflow

Run it with a Python that has the package (`oneflow`: torch, whose functions OneFlow's are). It
writes `tests/recorded/SYSTEM.json`: the version of the package, and the result of each snippet and
program by name. `python tests/recorded/record.py torch TOPIC` prints the results of one topic
instead, as does a name such as `tensors/shape`.

Snippets stand in files `TOPIC.txt` below `snippets/SYSTEM`. Text before the first line `== NAME`
precedes every snippet of the file. The last expression of a snippet is its result. Programs stand
in `programs/SYSTEM/NAME.py`; the result is that of `main()`.

Snippets of `static_old` are recorded with Paddle's first representation of static programs
(`FLAGS_enable_pir_api=0`): the second one, which is the default since 3.0, has no names of
gradients such as `w@GRAD`, and no `clone(for_test=True)`.

Numbers are the shortest decimals that read back to the same number: up to 17 digits for float64, 9
for float32. Exceptions are recorded as the nearest class of Python's own, and the line that raises.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import linecache
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
SYSTEMS = ("torch", "paddle", "megengine", "oneflow")


def sources(system: str) -> dict[str, str]:
    """Return the text of each snippet and program of `system` by name, `TOPIC/NAME`."""
    found: dict[str, str] = {}
    for file in sorted((FOLDER / "snippets" / system).rglob("*.txt")):
        preamble, *parts = re.split(r"^== ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for part in parts:
            name, _, text = part.partition("\n")
            name = f"{file.stem}/{name.strip()}"
            assert name not in found, f"two snippets are named {name}"
            found[name] = preamble + text
    for file in sorted((FOLDER / "programs" / system).glob("*.py")):
        found[f"programs/{file.stem}"] = file.read_text(encoding="utf-8") + "\nmain()\n"
    return found


def change_imports(text: str, library: str, package: str) -> str:
    """Replace imports of `library` by those of `package`, under the same names and lines.

    >>> change_imports("import torch", "torch", "primgraph.compat.torch")
    'import primgraph.compat.torch as torch'
    >>> change_imports("from torch.nn import Linear", "torch", "primgraph.compat.torch")
    'from primgraph.compat.torch.nn import Linear'
    """
    start = rf"^(\s*)(import|from) {library}((?:\.\w+)*)"

    def changed(match: re.Match[str]) -> str:
        space, word, path, rest = match.groups()
        if word == "from" or rest.startswith(" as "):
            return f"{space}{word} {package}{path}{rest}"
        also = f", {package}{path}" if path else ""
        return f"{space}import {package} as {library}{also}{rest}"

    return re.sub(start + r"(?![\w.])(.*)$", changed, text, flags=re.MULTILINE)


def run(text: str) -> tuple[Any, BaseException | None]:
    """Execute `text` in an empty folder; return the value of its last expression, or its error."""
    tree = ast.parse(text, "<snippet>")
    # `paddle.jit.to_static` reads the text of functions.
    linecache.cache["<snippet>"] = (len(text), None, text.splitlines(keepends=True), "<snippet>")
    namespace: dict[str, Any] = {"__name__": "snippet"}
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            exec(compile(tree, "<snippet>", "exec"), namespace)
            if last is None:
                return None, None
            expression = ast.Expression(last.value)
            return eval(compile(expression, "<snippet>", "eval"), namespace), None
        except Exception as error:
            return None, error
        finally:
            os.chdir(here)


def line_of(error: BaseException) -> int:
    """Return the line of the statement of the snippet during which `error` was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in frames if f.filename == "<snippet>"), 0)


def encode(value: Any) -> Any:
    """Return `value` as JSON has it: tensors with dtype, shape and values."""
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if isinstance(value, np.dtype) or type(value).__name__ in ("dtype", "DataType", "LibraryDType"):
        return {"dtype": dtype_name(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.ndarray | np.generic):
        return array("array", str(value.dtype), np.asarray(value))
    if hasattr(value, "stop_gradient") or hasattr(value, "requires_grad"):
        return tensor(value)
    if isinstance(value, Mapping):
        return {"dict": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, list | tuple) or type(value).__name__ == "Size":
        return [encode(v) for v in value]
    return {"object": type(value).__name__}


def dtype_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def tensor(value: Any) -> Any:
    name = dtype_name(value.dtype)
    value = value.detach()
    if name == "bfloat16":
        value = value.astype("float32") if hasattr(value, "stop_gradient") else value.float()
    for step in ("resolve_conj", "resolve_neg"):
        value = getattr(value, step, lambda value=value: value)()
    return array("tensor", name, np.asarray(value.numpy()))


def array(kind: str, dtype: str, values: np.ndarray[Any, Any]) -> Any:
    shape = list(values.shape)
    if values.dtype.kind == "c":
        values = np.stack([values.real, values.imag], axis=-1)
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        values = values.astype(np.float32).astype("U32").astype(np.float64)
    return {kind: dtype, "shape": shape, "values": values.tolist()}


def outcome(text: str) -> Any:
    """Return what running `text` gives, as JSON: a result, or a class of errors and a line."""
    value, error = run(text)
    if error is None:
        return encode(value)
    known = [c.__name__ for c in type(error).__mro__ if hasattr(builtins, c.__name__)]
    return {"line": line_of(error), "raises": known[0]}


@contextmanager
def fresh_state(library: Any) -> Iterator[None]:
    """Number parameters from zero, and restore the modes of `library` afterwards."""
    names = getattr(getattr(library, "utils", None), "unique_name", None)
    try:
        with names.guard() if hasattr(names, "guard") else nullcontext():
            yield
    finally:
        if hasattr(library, "disable_static"):
            library.disable_static()
        if hasattr(library, "set_default_dtype"):
            library.set_default_dtype("float32" if names else library.float32)
        if hasattr(library, "set_grad_enabled"):
            library.set_grad_enabled(True)


def main(arguments: list[str]) -> int:
    system, only = arguments[0], arguments[1:]
    package = "torch" if system == "oneflow" else system
    library = importlib.import_module(package)
    results, errors = {}, 0
    for name, text in sources(system).items():
        if only and not any(name == o or name.split("/")[0] == o for o in only):
            continue
        text = change_imports(text, "oneflow", "torch") if system == "oneflow" else text
        old = name.startswith("static_old/")
        with fresh_state(library), library.pir_utils.OldIrGuard() if old else nullcontext():
            results[name] = outcome(text)
        if only:
            print(f"{name}: {json.dumps(results[name])[:300]}")
        if isinstance(results[name], dict) and "raises" in results[name] and "error" not in name:
            errors += 1
            print(f"{name} raises {run(text)[1]!r:.300}", file=sys.stderr)
    print(f"{len(results)} results, {errors} unexpected errors", file=sys.stderr)
    if not only:
        rows = [
            f" {json.dumps(k)}: {json.dumps(results[k], sort_keys=True)}" for k in sorted(results)
        ]
        head = f'{{\n"package": {json.dumps(f"{package} {library.__version__}")},\n"results": {{\n'
        text = head + ",\n".join(rows) + "\n}\n}\n"
        (FOLDER / f"{system}.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
