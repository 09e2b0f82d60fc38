"""Programs, executors and derivatives by the names that they have in `paddle.static`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.methods import Variable
from primgraph.compat.paddle.core.parameter_attributes import ParamAttr, WeightNormParamAttr
from primgraph.compat.paddle.core.parameters import create_parameter
from primgraph.compat.paddle.core.program import Program
from primgraph.compat.paddle.static import nn
from primgraph.compat.paddle.static.backward import append_backward, gradients
from primgraph.compat.paddle.static.backward import variables_named as variables_named
from primgraph.compat.paddle.static.executor import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    Executor,
)
from primgraph.compat.paddle.static.files import (
    deserialize_persistables,
    deserialize_program,
    load,
    load_from_file,
    load_inference_model,
    load_program_state,
    normalize_program,
    save,
    save_inference_model,
    save_to_file,
    serialize_persistables,
    serialize_program,
    set_program_state,
)
from primgraph.compat.paddle.static.measures import accuracy, auc
from primgraph.compat.paddle.static.programs import (
    InputSpec,
    cpu_places,
    cuda_places,
    data,
    default_main_program,
    device_guard,
    name_scope,
    program_guard,
)
from primgraph.compat.paddle.static.scopes import Scope, global_scope, scope_guard
from primgraph.compat.paddle.static.values import (
    ExponentialMovingAverage,
    Print,
    create_global_var,
    py_func,
)
from primgraph.program.program import default_startup_program

__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "ExponentialMovingAverage",
    "InputSpec",
    "ParamAttr",
    "Print",
    "Program",
    "Scope",
    "Variable",
    "WeightNormParamAttr",
    "accuracy",
    "append_backward",
    "auc",
    "cpu_places",
    "create_global_var",
    "create_parameter",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "deserialize_persistables",
    "deserialize_program",
    "device_guard",
    "global_scope",
    "gradients",
    "load",
    "load_from_file",
    "load_inference_model",
    "load_program_state",
    "name_scope",
    "nn",
    "normalize_program",
    "program_guard",
    "py_func",
    "save",
    "save_inference_model",
    "save_to_file",
    "scope_guard",
    "serialize_persistables",
    "serialize_program",
    "set_program_state",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
