"""Functions and layers compiled by `pg.jit`, and saved for inference, as `paddle.jit` has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, final

from primgraph.api.jit import jit
from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.program import Program
from primgraph.compat.paddle.framework import static_mode
from primgraph.compat.paddle.nn.layer import Layer
from primgraph.compat.paddle.static.files import (
    load_inference_model,
    save_inference_model,
    save_training_model,
)
from primgraph.compat.paddle.static.programs import InputSpec, data, program_guard
from primgraph.compat.paddle.translated import TranslatedLayer
from primgraph.errors import ArgumentError, BuildError
from primgraph.operators.variable import Variable

__all__ = [
    "TranslatedLayer",
    "enable_to_static",
    "ignore_module",
    "load",
    "not_to_static",
    "save",
    "set_code_level",
    "set_verbosity",
    "to_static",
]

_enabled: list[bool] = [True]


@final
class StaticFunction:
    """A function that is compiled when it is called on tensors.

    Where it decides by the elements of tensors, or a layer changes its buffers, it is computed
    eagerly, as without compilation.
    """

    def __init__(self, function: Callable[..., Any], input_spec: Any = None) -> None:
        update_wrapper(self, function)
        self._function, self.input_spec = function, input_spec
        self._compiled = jit(function)
        self._is_traceable = True
        self._bound: dict[int, StaticFunction] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function."""
        if not (_enabled[0] and self._is_traceable) or _has_variables(args):
            return self._function(*args, **kwargs)
        try:
            return self._compiled(*args, **kwargs)
        except BuildError:
            self._is_traceable = False
            return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        found = instance.__dict__.get("_static_functions", {}).get(self.__name__)
        if found is None:
            found = StaticFunction(self._function.__get__(instance, owner), self.input_spec)
            instance.__dict__.setdefault("_static_functions", {})[self.__name__] = found
        return found

    __name__: str

    @property
    def dygraph_function(self) -> Callable[..., Any]:
        """The function itself."""
        return self._function

    def rollback(self) -> Callable[..., Any]:
        """Return the function itself."""
        return self._function


def _has_variables(args: Sequence[Any]) -> bool:
    return any(isinstance(a, Variable) for a in args)


def to_static(
    function: Any = None,
    input_spec: Any = None,
    build_strategy: Any = None,
    backend: Any = None,
    **kwargs: Any,
) -> Any:
    """Compile a function, or the `forward` of a layer, by `pg.jit`; also as a decorator.

    `input_spec` says for which inputs `paddle.jit.save` builds a program; the others have no
    effect.

    >>> @paddle.jit.to_static
    ... def double(x):
    ...     return x * 2.0
    >>> double(paddle.ones([2])).tolist()
    [2.0, 2.0]
    """
    if function is None:
        return lambda function: to_static(function, input_spec)
    if isinstance(function, Layer):
        function.__dict__["forward"] = StaticFunction(function.forward, input_spec)
        return function
    if isinstance(function, StaticFunction):
        return function
    if not callable(function):
        raise ArgumentError(f"to_static takes a function or a layer, not {function!r:.60}")
    return StaticFunction(function, input_spec)


def not_to_static(func: Any = None) -> Any:
    """Return the function, which is traced with those that call it.

    >>> paddle.jit.not_to_static(abs)(-1)
    1
    """
    return (lambda function: function) if func is None else func


def ignore_module(modules: Sequence[Any]) -> None:
    """Do nothing: functions of all modules are traced.

    >>> paddle.jit.ignore_module([])
    """


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Compile functions of `to_static`, or compute them eagerly from now on.

    >>> paddle.jit.enable_to_static(True)
    """
    if not isinstance(enable_to_static_bool, bool):
        raise ArgumentError(
            f"enable_to_static takes True or False, not {enable_to_static_bool!r:.60}"
        )
    _enabled[0] = enable_to_static_bool


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Do nothing: no code is rewritten.

    >>> paddle.jit.set_code_level(1)
    """


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Do nothing: no code is rewritten.

    >>> paddle.jit.set_verbosity(1)
    """


def save(layer: Any, path: str | os.PathLike[str], input_spec: Any = None, **configs: Any) -> None:
    """Write a layer or a function of `to_static` as a program for inference.

    `input_spec` has an `InputSpec`, or a tensor as an example, for each argument, unless
    `to_static` was given it. Of a layer that computes something else in training, such as dropout,
    there is a second file, `PATH.train.pdmodel`.

    >>> model = paddle.nn.Linear(2, 1)
    >>> paddle.jit.save(model, "linear", [paddle.static.InputSpec([None, 2], "float32")])
    >>> paddle.jit.load("linear")(paddle.ones([3, 2])).shape
    paddle.Size([3, 1])
    """
    function = layer.forward if isinstance(layer, Layer) else layer
    given = input_spec or getattr(function, "input_spec", None)
    if not given:
        raise ArgumentError(
            "jit.save takes input_spec=[paddle.static.InputSpec(shape, dtype)] for each argument"
        )
    call = layer if isinstance(layer, Layer) else function
    program, inputs, outputs = _build(call, given, is_training=False)
    save_inference_model(path, inputs, outputs, None)
    if isinstance(layer, Layer):
        training, inputs, outputs = _build(call, given, is_training=True)
        if str(training) != str(program):
            save_training_model(f"{os.fspath(path)}.train", training, inputs, outputs)


def _build(call: Any, given: Any, is_training: bool) -> tuple[Program, list[Any], list[Any]]:
    """Build a program of a layer in a mode, or of a function, with its inputs and results."""
    modes = [(s, s.training) for s in call.sublayers(True)] if isinstance(call, Layer) else []
    for layer, _ in modes:
        layer.training = is_training
    try:
        program = Program()
        with static_mode(True), program_guard(program, Program()):
            inputs = [_declare(number, spec) for number, spec in enumerate(given)]
            found = call(*inputs)
            outputs = list(found) if isinstance(found, list | tuple) else [found]
            return program, inputs, outputs
    finally:
        for layer, mode in modes:
            layer.training = mode


def _declare(number: int, spec: Any) -> Any:
    described = spec if isinstance(spec, InputSpec) else InputSpec.from_tensor(spec)
    name = described.name if isinstance(spec, InputSpec) else None
    return data(name or f"x{number}", list(described.shape), described.dtype)


def load(path: str | os.PathLike[str], **configs: Any) -> TranslatedLayer:
    """Return the layer that `save` wrote.

    >>> paddle.jit.save(paddle.nn.ReLU(), "relu", [paddle.ones([2])])
    >>> paddle.jit.load("relu")(paddle.to_tensor([-1.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    program, feeds, fetches = load_inference_model(path, None)
    training = f"{os.fspath(path)}.train"
    if not os.path.exists(f"{training}.pdmodel"):
        return TranslatedLayer(program, feeds, fetches)
    whole, _, results = load_inference_model(training, None)
    return TranslatedLayer(program, feeds, fetches, (whole, results))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
