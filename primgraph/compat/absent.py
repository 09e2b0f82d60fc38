"""Names of another library that `primgraph.compat` does not have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from primgraph.base.array_functions import replacement_hint
from primgraph.errors import UnknownNameError, near_matches

_PACKAGE = "primgraph.compat."
_CPU = "all arrays are in the memory of the CPU: leave it out"
_INSTEAD = {
    **dict.fromkeys(("cuda", "placement", "cpu"), _CPU),
    **dict.fromkeys(("jit", "compile", "to_static", "trace"), "pg.jit compiles a function"),
    "onnx": "kernel.save writes a file of NumPy or C code",
    "linalg": "pg.linalg has these functions, and takes tensors",
    "fft": "pg.fft has these functions, and takes tensors",
    "special": "pg.special has these functions, and takes tensors",
    "distributed": "pg.distributed trains on the workers of a dask client",
    "lr_scheduler": "optimizers of pg.optimizer take schedule=, such as pg.optimizer.step_decay",
    "tensorboard": "it shows logs of other packages: write numbers to a file",
    "cpp_extension": "kernels of other languages are not loaded: pg.custom_vjp takes functions",
    "bottleneck": "pg.profile measures each equation",
    "Graph": "pg.jit compiles a function, and pg.Program builds a graph",
    "summary": "print(layer) lists its sublayers and parameters",
    "flops": "pg.cost counts operations and bytes",
    "bfloat16": "the float dtypes are float16, float32 and float64",
}


def absent(module: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module of `primgraph.compat`: an error for unknown names.

    It says that the name is not part of the package, and what to use instead, if that is known.
    """
    library = module.removeprefix(_PACKAGE)

    def explain(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        known = getattr(sys.modules[module], "__all__", ())
        hint = _INSTEAD.get(name, "") or near_matches(name, known) or replacement_hint(name)
        package = _PACKAGE + library.partition(".")[0]
        raise UnknownNameError(f"{library}.{name} is not part of {package}", hint=hint)

    return explain
