"""Compiles C by hand, by the compiler that native kernels have, and calls it with arrays."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import Array

from primgraph.codegen.runtime.toolchain import compile_c as native

Function = Callable[..., list[Array]]
Built = tuple[Function, list[Array]]

FLAGS = {
    "strict": ["-O3", "-march=native"],
    "fast": ["-O3", "-march=native", "-ffast-math", "-mprefer-vector-width=512"],
}
_FOLDER = tempfile.TemporaryDirectory()


def compiled(text: str, variant: str) -> ctypes.CDLL:
    """A library of what `text` says, compiled as `variant` is."""
    compiler = native.compiler()
    if compiler is None:
        raise NotImplementedError("there is no C compiler")
    source = Path(tempfile.mkdtemp(dir=_FOLDER.name), "hand.c")
    source.write_text("#include <math.h>\n#include <string.h>\n" + text)
    made = source.with_suffix(".so")
    flags = [*FLAGS[variant], "-fPIC", "-shared"]
    command = [*compiler.command, *flags, "-o", str(made), str(source), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(made))


def pointers(*arrays: Array) -> list[Any]:
    """Where arrays begin, as C takes them."""
    return [ctypes.c_void_p(a.ctypes.data) for a in arrays]


def one_function(text: str, variant: str, inputs: list[Array], outputs: Sequence[Array]) -> Built:
    """`double f(inputs, outputs)`, whose result is the first one if `text` says `return`."""
    function = compiled(text, variant).f
    function.restype = ctypes.c_double if "return" in text else None
    bound, kept = pointers(*inputs, *outputs), [*inputs, *outputs]

    def run(*_: Array) -> list[Any]:
        value = function(*bound)
        return [*outputs] if value is None else [value, *outputs]

    run.keeps = kept  # type: ignore[attr-defined]
    return run, inputs


def fresh(text: str, variant: str, inputs: list[Array], shape: tuple[int, ...]) -> Built:
    """`void f(inputs, output)` on zeros, a new array each time."""
    function = compiled(text, variant).f
    function.restype = None
    bound = pointers(*inputs)

    def run(*_: Array) -> list[Array]:
        out = np.zeros(shape)
        function(*bound, ctypes.c_void_p(out.ctypes.data))
        return [out]

    return run, inputs
