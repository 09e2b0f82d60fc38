"""Layer: a part of a network as Paddle has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from primgraph.compat.dtypes import LibraryDType
from primgraph.compat.modules.hooks import RemovableHandle
from primgraph.compat.modules.module import Module
from primgraph.compat.modules.states import require_name
from primgraph.compat.modules.walks import walk_modules
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.core.methods import Variable
from primgraph.compat.paddle.core.parameter_attributes import as_attribute
from primgraph.compat.paddle.core.parameters import EagerParamBase, new_parameter
from primgraph.compat.paddle.dynamic import Tensor
from primgraph.compat.paddle.framework import checked_place
from primgraph.compat.paddle.nn.layer.state_dicts import StateDicts
from primgraph.compat.paddle.utils import unique_name
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import (
    ArgumentError,
    CheckError,
    MissingMethodError,
    OptionError,
    UnknownKeyError,
)
from primgraph.ir.types import as_dtype
from primgraph.operators.variable import Variable as _Variable
from primgraph.program.program import program_of

_TABLES = ("_parameters", "_buffers", "_modules")


class Layer(StateDicts):
    """Part of a network, with parameters, buffers and sublayers in the order of assignment.

    `name_scope` begins the unique name of the layer, with which names of its parameters begin;
    `dtype` is that of parameters that are created without one: the default one for float32.

    >>> class Scale(paddle.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = self.create_parameter([1])
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    ...
    >>> [list(p.shape) for p in Scale().parameters()]
    [[1]]
    """

    _parameter: ClassVar[Any] = (EagerParamBase, _Variable)
    _tensor = Tensor
    _library = "paddle"

    def __init__(self, name_scope: str | None = None, dtype: Any = "float32") -> None:
        super().__init__()
        own = self.__dict__
        own["_dtype"] = None if dtype == "float32" else dtype
        given = _given_names.pop() if _given_names else None
        own["_full_name"] = given or unique_name.generate(
            name_scope or snake_case(type(self).__name__)
        )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the layer; subclasses define it."""
        raise MissingMethodError(f"{type(self).__name__} does not define forward")

    @property
    def _sub_layers(self) -> dict[str, Any]:
        """The sublayers by name."""
        found: dict[str, Any] = self.__dict__["_modules"]
        return found

    def full_name(self) -> str:
        """Return the unique name of the layer, with which the names of its parameters begin."""
        name: str = self.__dict__["_full_name"]
        return name

    # Creation and registration.

    def create_parameter(  # type: ignore[override]
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
        device: Any = None,
    ) -> Any:
        """Return a new parameter, to be assigned to an attribute; None with `attr` False."""
        checked_place("create_parameter", device)
        given = as_attribute(attr)
        if given is None:
            return None
        chosen = dtype_or_default(self._dtype if dtype is None else dtype)
        return new_parameter(shape, chosen, given, is_bias, default_initializer, self.full_name())

    def create_tensor(
        self, name: str | None = None, persistable: Any = None, dtype: Any = None
    ) -> Any:
        """Return a new tensor of no elements."""
        made = Tensor(np.zeros((0,), dtype_or_default(dtype)))
        made.name = name or unique_name.generate(f"{self.full_name()}._generated_var")
        return made

    create_variable = create_tensor

    def add_parameter(self, name: str, parameter: Any) -> Any:
        """Register a parameter, or None, by a name that is free; return it."""
        if not isinstance(name, str):
            raise ArgumentError(
                f"The name of parameter should be a string, but received {type(name).__name__}."
            )
        if name in self.__dict__ or (name not in self._parameters and hasattr(self, name)):
            raise UnknownKeyError(f"The parameter '{name}' already exists.")
        if parameter is not None and not isinstance(parameter, self._parameter):
            raise ArgumentError(
                "The parameter to be added should be a Parameter, but received "
                f"{type(parameter).__name__}."
            )
        require_name(self, "parameter", name)
        self._parameters[name] = parameter
        return parameter

    register_parameter = add_parameter  # type: ignore[assignment]

    def register_buffer(self, name: str, tensor: Any, persistable: bool = True) -> None:
        """Keep a tensor, or None, beside the parameters; state dicts have it if `persistable`."""
        if isinstance(name, str) and "." in name:
            raise UnknownKeyError("The name of buffer can not contain `.`")
        super().register_buffer(name, tensor, persistable)

    def add_sublayer(self, name: str, sublayer: Any) -> Any:
        """Register a layer, or None, by name; return it."""
        if not isinstance(sublayer, Layer | None):
            raise CheckError(f"a sublayer is a Layer, not {sublayer!r:.60}")
        self._modules[name] = sublayer
        return sublayer

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        table = _table_of(value)
        if table and table not in own:
            raise ArgumentError("super().__init__() should be called first")
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        elif table:
            for other in {"_parameters", "_modules", "_buffers"} - {table}:
                own[other].pop(name, None)
            own.pop(name, None)
            if table == "_buffers" and name not in own[table]:
                self._non_persistent_buffers_set.add(name)
            own[table][name] = value
        elif not _set_known(self, name, value):
            object.__setattr__(self, name, value)

    # What is registered.

    def parameters(self, include_sublayers: bool = True) -> list[Any]:
        """Return the parameters, of all layers within by default, each once."""
        return [p for _, p in self.named_parameters(include_sublayers=include_sublayers)]

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield dotted names and parameters."""
        return super().named_parameters(prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers: bool = True) -> list[Any]:
        """Return the buffers, of all layers within by default, each once."""
        return [b for _, b in self.named_buffers(include_sublayers=include_sublayers)]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield dotted names and buffers."""
        return super().named_buffers(prefix, include_sublayers, remove_duplicate)

    def named_sublayers(  # type: ignore[override]
        self,
        prefix: str = "",
        include_self: bool = False,
        layers_set: Any = None,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Yield dotted names and layers within, outer ones first."""
        for path, layer in walk_modules(self, prefix, remove_duplicate, layers_set):
            if include_self or layer is not self:
                yield path, layer

    def sublayers(self, include_self: bool = False) -> list[Any]:
        """Return all layers within, outer ones first."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    # Changes.

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn` on every layer within, inner ones first, and on this one."""
        return super().apply(fn)

    def to(
        self,
        device: Any = None,
        dtype: Any = None,
        blocking: bool | None = None,
        non_blocking: bool | None = None,
    ) -> Self:
        """Convert parameters and buffers of floats to a dtype; the device is the CPU."""
        checked_place("to", device)
        return self if dtype is None else self.astype(dtype)

    def astype(self, dtype: Any = None) -> Self:
        """Convert parameters and buffers of floats to a dtype."""
        try:
            wanted = as_dtype(dtype)
        except TypeError:
            raise ArgumentError(f"dtype value error: {dtype!r:.60} is no dtype") from None
        for layer in self.sublayers(include_self=True):
            layer.__dict__["_dtype"] = wanted
        return self._apply(lambda x: x.astype(wanted) if x.type.is_inexact else x)

    def float(self, excluded_layers: Any = None) -> Self:
        """Convert floats to float32."""
        found: Self = _convert(self, "float32", excluded_layers)
        return found

    def float16(self, excluded_layers: Any = None) -> Self:
        """Convert floats to float16."""
        found: Self = _convert(self, "float16", excluded_layers)
        return found

    def double(self) -> Self:
        """Convert floats to float64."""
        return self.astype("float64")

    def bfloat16(self, excluded_layers: Any = None) -> Self:
        """Raise `OptionError`: float dtypes are float16, float32 and float64."""
        raise OptionError("bfloat16 is not supported: float dtypes are float16, float32, float64")

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Set the gradients of trainable parameters to zero, or drop them."""
        for parameter in self.parameters():
            if parameter.trainable:
                parameter.clear_gradient(set_to_zero)

    # Hooks and text.

    def register_forward_post_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(layer, inputs, output)` after `forward`; its result replaces the output."""
        return self.register_forward_hook(
            hook, prepend=prepend, with_kwargs=with_kwargs, always_call=always_call
        )

    def __repr__(self) -> str:
        lines = self.extra_repr().split("\n")
        text = lines[0] if len(lines) == 1 else "\n  " + "\n  ".join(lines) + "\n"
        inner = [f"({n}): " + repr(m).replace("\n", "\n  ") for n, m in self._modules.items()]
        parts = "\n  " + "\n  ".join(inner) + "\n" if inner else ""
        return f"{type(self).__name__}({text}{parts})"


# Full names for layers that are made next.
_given_names: list[str] = []


@contextmanager
def named_layer(name: str | None) -> Iterator[None]:
    """Let the layer that is made in this context have that full name, if one is given."""
    _given_names[:] = [] if name is None else [name]
    try:
        yield
    finally:
        _given_names.clear()


def snake_case(name: str) -> str:
    """Return the name of a class as Paddle names its instances: `conv2d` for Conv2D."""
    parts = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", parts).lower()


def _table_of(value: Any) -> str:
    """Return the table in which a value belongs that is assigned to an attribute; "" for none."""
    if isinstance(value, EagerParamBase):
        return "_parameters"
    if isinstance(value, Module):
        return "_modules"
    if isinstance(value, _Tensor):
        return "_buffers"
    return "_parameters" if isinstance(value, Variable) and value.persistable else ""


def _set_known(layer: Layer, name: str, value: Any) -> bool:
    """Set an entry to None, or a buffer to a variable; return whether there is an entry."""
    own = layer.__dict__
    for table, wanted in zip(_TABLES, ("Parameter", "Tensor", "Layer"), strict=True):
        if name in own.get(table, ()):
            if value is None:
                own[table][name] = None
                return True
            if table == "_buffers" and isinstance(value, _Variable):
                program_of(value).update(getattr(layer, name), value)
                return True
            raise ArgumentError(
                f"assignment to {name!r} should be of type {wanted} or None, but got "
                f"{type(value).__name__!r}"
            )
    return False


def _convert(layer: Layer, dtype: str, excluded: Any) -> Any:
    if excluded is None:
        return layer.astype(dtype)
    kinds = tuple(excluded) if isinstance(excluded, list | tuple) else (excluded,)
    for inner in layer.sublayers(include_self=True):
        if not isinstance(inner, kinds):
            for name, item in {**inner._parameters, **inner._buffers}.items():
                if item is not None and item.type.is_inexact and name in inner._parameters:
                    with no_grad():
                        item.data = item.data.astype(dtype)
    return layer


def shown_dtype(layer: Layer) -> str:
    """Return the dtype of a layer's parameters as its text has it."""
    chosen = layer.__dict__["_dtype"]
    return str(dtype_or_default(None) if chosen is None else LibraryDType("paddle", chosen).dtype)
