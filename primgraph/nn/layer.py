"""Layers: parts of a network that own parameters, nest, and are called like functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np

from primgraph.base.array_functions import REMARKS
from primgraph.eager.derivatives.accumulation import clear_grad
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.inplace.shared_storage import label_of
from primgraph.eager.tensor import Tensor
from primgraph.errors import (
    ArgumentError,
    BuildError,
    MissingMethodError,
    PrimgraphError,
    near_matches,
    unknown_name,
)
from primgraph.initializers import Assign, Initializer
from primgraph.ir.frontend.signature import call_user_function, checked_methods
from primgraph.ir.primitive import innermost
from primgraph.ir.types import TensorType, as_dtype
from primgraph.nn.parameter import Parameter, as_parameter, parameter_of
from primgraph.nn.parts import contents
from primgraph.nn.scopes import (
    EAGERLY,
    computes_eagerly,
    layer_scope,
    outermost,
    program_of_call,
    world,
)
from primgraph.nn.state_dicts import html_of, require_all, store_values, values_of
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable, handles
from primgraph.program.declarations import parameter_kind
from primgraph.program.program import Program, belongs_to_program, program_of
from primgraph.program.scope import Scope

L = TypeVar("L", bound="Layer")


@checked_methods("add_parameter", "add_sublayer")
class Layer:
    """Part of a network: its parameters, buffers and layers, and a `forward` that computes.

    A subclass calls `super().__init__()`, assigns parameters and layers to attributes, which
    registers them, and defines `forward`. Calling the layer calls `forward`.

        class Network(pg.nn.Layer):
            def __init__(self):
                super().__init__()
                self.body = pg.nn.Sequential(pg.nn.Linear(2, 20), pg.nn.Tanh())
                self.scale = self.create_parameter((20,))

            def forward(self, x):
                return self.body(x) * self.scale

    Layers in lists, tuples and dicts, also nested ones, count as parts too, under names such as
    `layers.0.weight`; so do states of a program. Put results of `create_parameter` into a
    `ParameterList`.

    Called on tensors, or on arrays outside of programs, a layer computes, and its parameters are
    tensors. Called on variables it becomes part of their program, and its parameters are states,
    whose names begin with the class of the outermost layer, as in `network.body.0.weight`. Both
    have the same elements: the next run sees what an optimizer changes in the tensors, and the
    tensors show what a run stores. Programs that use one layer share its parameters.

    Attributes read as what the call that is under way computes with. Elsewhere they are variables
    of the program that is entered. Where none is, they are tensors, unless the layer was used in
    one program and nowhere else: then they are variables of that one.

    >>> class Twice(pg.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = pg.nn.Linear(3, 3)
    ...     def forward(self, x):
    ...         return self.inner(self.inner(x))
    >>> [name for name, parameter in Twice().named_parameters()]
    ['inner.weight', 'inner.bias']
    """

    training: bool

    def __init__(self) -> None:
        self.__dict__["_states"] = {}
        self.__dict__["_sublayers"] = {}
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the layer; subclasses define it."""
        raise MissingMethodError(
            f"{type(self).__name__} does not define forward",
            hint=near_matches("forward", set(dir(self)) - set(dir(Layer))),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of `forward`.

        In a function that is traced, parameters are the constants that they are then; in one that
        `pg.jit` compiles they are what they are at each call. Raises `BuildError` where a function
        is traced, and the layer has parameters and was not used before.
        """
        adoption = adopting.get()
        if adoption is not None:
            adoption.note(self)
        if not kwargs and _are_tensors(args):
            return _forward_on_tensors(self, args, kwargs)
        found = handles((*args, *kwargs.values()))
        variables = [h for h in found if isinstance(h, Variable)]
        if not variables and (found or computes_eagerly()):
            return _forward_on_tensors(self, args, kwargs)
        if next(_named_states(self), None) is None:
            with _scope(self, None):
                return self.forward(*args, **kwargs)
        if variables and not belongs_to_program(variables[0]) and _has_elements(self):
            return _forward_on_tensors(self, args, kwargs)
        program = program_of(variables[0]) if variables else program_of_call()
        return _forward_in_program(self, program, args, kwargs)

    # Registration.

    def create_parameter(
        self,
        shape: Any,
        dtype: Any = None,
        initializer: Initializer | None = None,
        is_bias: bool = False,
    ) -> Any:
        """Create a parameter, to be assigned to an attribute.

        The default initializer is Xavier's rule, or zeros for a bias; `dtype` is the default dtype
        unless given. Raises as `pg.create_parameter`.
        """
        type, rule = parameter_kind(shape, dtype, initializer, is_bias)
        return Parameter(type, rule, trainable=True)

    def add_parameter(self, name: str, parameter: Any) -> Any:
        """Register what `create_parameter` gave, of the layer or of primgraph, by that name.

        Returns it. Raises `ArgumentError` for anything else, `BuildError` for a name that is
        taken or no attribute's.
        """
        _register(self, "_states", name, as_parameter(name, parameter))
        return parameter

    def register_buffer(self, name: str, value: Any) -> None:
        """Keep an array beside the parameters, `value` at first: no optimizer changes it.

        The attribute reads as a tensor, to which tensors can be assigned, or as a variable, and
        `program.update` lets runs change it.
        """
        array = np.array(array_of(value))
        type = TensorType(array.shape, as_dtype(array.dtype))
        _register(self, "_states", name, Parameter(type, Assign(array), trainable=False))

    def add_sublayer(self, name: str, layer: Layer) -> Layer:
        """Register `layer` by that name, and return it.

        Raises `ArgumentError` for anything but a layer, `BuildError` for a name that is taken.
        """
        given: Any = layer
        if not isinstance(given, Layer):
            is_list = isinstance(given, list | tuple)
            hint = "write pg.nn.Sequential(*layers) for a list of layers" if is_list else ""
            raise ArgumentError(f"sublayer {name!r} is a Layer, not {layer!r:.80}", hint=hint)
        if layer is self:
            raise BuildError("a layer cannot be within itself")
        _register(self, "_sublayers", name, layer)
        return layer

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Layer):
            self.__dict__.pop(name, None)
            self.add_sublayer(name, value)
        elif isinstance(value, Parameter) or parameter_of(value) is not None:
            self.__dict__.pop(name, None)
            self.add_parameter(name, value)
        elif isinstance(value, Tensor) and name in self._table("_states"):
            self._table("_states")[name].assign(name, value)
        elif name in self._table("_states") or name in self._table("_sublayers"):
            raise _assignment_error(self, name, value)
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        parameter = self.__dict__.get("_states", {}).get(name)
        if parameter is not None:
            return read_parameter(self, parameter)
        layer = self.__dict__.get("_sublayers", {}).get(name)
        if layer is None:
            raise _unknown_part(self, name)
        return layer

    def __delattr__(self, name: str) -> None:
        for table in ("_states", "_sublayers"):
            if self._table(table).pop(name, None) is not None:
                return
        super().__delattr__(name)

    def _table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] | None = self.__dict__.get(name)
        if table is None:
            raise BuildError(f"{type(self).__name__}.__init__ has to call super().__init__() first")
        return table

    # What is registered.

    def named_sublayers(self, include_self: bool = False) -> Iterator[tuple[str, Layer]]:
        """Dotted names and layers of all that is within, each layer once, outer ones first."""
        found = _tree(self)
        if not include_self:
            next(found)
        yield from found

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """All layers within, outer ones first."""
        return [layer for _, layer in self.named_sublayers(include_self)]

    def children(self) -> list[Layer]:
        """The layers directly within."""
        return [layer for _, layer in _inner(self)]

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Dotted names of the parameters of this layer and of all within, and what they are there:
        tensors, or variables of a program."""
        yield from _named_tensors(self, trainable=True)

    def parameters(self) -> list[Any]:
        """The parameters of this layer and of all within, each once."""
        return [item for _, item in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Dotted names of the buffers of this layer and of all within, and what they are there."""
        yield from _named_tensors(self, trainable=False)

    def buffers(self) -> list[Any]:
        """The buffers of this layer and of all within, each once."""
        return [item for _, item in self.named_buffers()]

    def zero_grad(self) -> None:
        """Let no parameter have a gradient."""
        clear_grad([t for _, p in _named_states(self) if (t := p.existing_tensor) is not None])

    def state_dict(self, scope: Scope | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of the values of parameters and buffers, by dotted name.

        With `scope` they are the values that a program has there; then `BuildError` is raised if
        the layer is part of no program.
        """
        return values_of(type(self).__name__, list(_named_states(self)), scope)

    def set_state_dict(self, values: Mapping[str, Any], scope: Scope | None = None) -> None:
        """Store copies of `values` by dotted name; what is not named keeps its value.

        With `scope` they are stored there, for a program. Raises `FeedError` for an unknown name, a
        wrong shape or a wrong kind of dtype; nothing is stored then. Raises `BuildError` where
        there is a scope, and the layer is part of no program.
        """
        store_values(type(self).__name__, list(_named_states(self)), values, scope)

    def load_state_dict(self, values: Mapping[str, Any], strict: bool = True) -> None:
        """`set_state_dict`, as torch calls it: what is not named is an error, if `strict`."""
        if strict:
            require_all(type(self).__name__, [name for name, _ in _named_states(self)], values)
        self.set_state_dict(values)

    def train(self: L) -> L:
        """Let calls from now on build the form for training; returns the layer."""
        return _set_training(self, True)

    def eval(self: L) -> L:
        """Let calls from now on build the form for evaluation; returns the layer.

        What is built already stays; `Program.clone(for_test=True)` converts that.
        """
        return _set_training(self, False)

    def apply(self: L, function: Callable[[Layer], Any]) -> L:
        """Call `function` on every layer within, inner ones first, and on this one."""
        for layer in reversed(self.sublayers(include_self=True)):
            call_user_function(function, layer)
        return self

    def __repr__(self) -> str:
        states = [f"{n} {p.type}" for n, p in self._table("_states").items()]
        inner = [f"{n} {type(s).__name__}" for n, s in _inner(self)]
        parts = ", ".join([*states, *inner])
        return f"<{type(self).__name__}{': ' if parts else ''}{parts}>"

    def _repr_html_(self) -> str:
        """The parameters and buffers of all that is within, by name."""
        return html_of(repr(self)[1:-1], list(_named_states(self)))


# Calls.


def _forward_on_tensors(layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of `forward` with tensors for parameters."""
    if world.get() is EAGERLY:
        return layer.forward(*args, **kwargs)
    before = world.get()
    try:
        world.set(EAGERLY)
        return layer.forward(*args, **kwargs)
    finally:
        world.set(before)


def _forward_in_program(
    layer: Layer, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the result of `forward` with states of a program for parameters."""
    _enter(layer, program)
    before = world.get()
    try:
        world.set(program)
        with _scope(layer, program):
            return layer.forward(*args, **kwargs)
    finally:
        world.set(before)


def _has_elements(layer: Layer) -> bool:
    """Return whether the parameters are known where a function is traced, or are its inputs."""
    return adopting.get() is not None or all(p.is_known for _, p in _named_states(layer))


def _scope(layer: Layer, program: Program | None) -> AbstractContextManager[None]:
    """Mark recorded lines with the path of a layer, the prefix of its parameters' names."""
    call, own = outermost(), type(layer).__name__.lower()
    if call is not None:
        return layer_scope(f"{call.path}.{call.names.get(id(layer), own)}")
    if program is not None:
        name, parameter = next(_named_states(layer))
        path = _variable(layer, parameter, program).name
        own = path.removesuffix(f".{name}") if path.endswith(f".{name}") else own
    return layer_scope(own, {id(inner): path for path, inner in _tree(layer)})


def _enter(layer: Layer, program: Program) -> None:
    """Create states in `program` for what has no state there yet."""
    waiting = [(n, p) for n, p in _named_states(layer) if p.state_in(program) is None]
    prefix = program.free_name(type(layer).__name__.lower()) if waiting else ""
    for name, parameter in waiting:
        parameter.enter(program, f"{prefix}.{name}")


def read_parameter(layer: Layer, parameter: Parameter) -> Tensor | Variable:
    """Return the tensor or variable that stands for a parameter in the current call."""
    current = world.get()
    if current is EAGERLY:
        return parameter.tensor
    if current is None and innermost.get() is None:
        home = parameter.home
        return parameter.tensor if home is None else home
    return _variable(layer, parameter, program_of_call())


def _variable(layer: Layer, parameter: Parameter, program: Program) -> Variable:
    """Return the state of a parameter in `program`, which the layer enters if it has to."""
    found = parameter.state_in(program)
    if found is None:
        _enter(layer, program)
        found = parameter.state_in(program)
    assert found is not None
    return found


def _is_traced(value: Any) -> bool:
    """Whether this is a variable of a function that is traced."""
    return isinstance(value, Variable) and not belongs_to_program(value)


def _are_tensors(args: tuple[Any, ...]) -> bool:
    """Whether a layer is called on tensors alone, as most often."""
    for argument in args:
        if not isinstance(argument, Tensor):
            return False
    return bool(args)


# Parts.


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _tree(whole: Layer) -> Iterator[tuple[str, Layer]]:
    """Yield dotted names and layers, `whole` first, by the name ''; each layer once."""
    seen: set[int] = set()
    waiting: list[tuple[str, Layer]] = [("", whole)]
    while waiting:
        path, layer = waiting.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        yield path, layer
        inner = [(_join_path(path, n), s) for n, s in _inner(layer)]
        waiting += reversed(inner)


def _inner(layer: Layer) -> list[tuple[str, Layer]]:
    """Return names and layers directly within, those in containers included."""
    held = [(name, item) for name, item in contents(layer, Layer) if isinstance(item, Layer)]
    return [*layer._table("_sublayers").items(), *held]


def _named_states(whole: Layer) -> Iterator[tuple[str, Parameter]]:
    """Yield dotted names and states of a layer and of all within, each state once."""
    seen: set[object] = set()
    for path, layer in _tree(whole):
        for name, parameter in _own_states(layer):
            key = parameter.identity
            if key not in seen:
                seen.add(key)
                yield _join_path(path, name), parameter


def _own_states(layer: Layer) -> list[tuple[str, Parameter]]:
    """Return names and states of a layer alone, those in containers included."""
    found = list(layer._table("_states").items())
    for name, item in contents(layer, Layer):
        state = parameter_of(item)
        if isinstance(item, Parameter):
            raise BuildError(
                f"{name!r} of this {type(layer).__name__} is a parameter in a plain container, "
                "which would not read as its variable",
                hint="put it in a pg.nn.ParameterList, or give it an attribute of its own",
            )
        if state is not None:
            found.append((name, state))
    return found


def _named_tensors(layer: Layer, trainable: bool) -> Iterator[tuple[str, Any]]:
    """Yield dotted names of parameters or buffers, and what they are in the current call."""
    own = type(layer).__name__.lower()
    for name, parameter in _named_states(layer):
        if parameter.trainable is trainable:
            item = read_parameter(layer, parameter)
            if isinstance(item, Tensor) and not label_of(item):
                item._label = f"{own}.{name}"
            yield name, item


def _set_training(whole: L, training: bool) -> L:
    for _, layer in _tree(whole):
        layer.training = training
    return whole


def _register(layer: Layer, table: str, name: str, item: Any) -> None:
    """Register a parameter or a layer by a name that is free."""
    if not isinstance(name, str) or not name or "." in name:
        raise BuildError(f"{name!r} cannot name a part of a layer: it is empty or has a dot")
    for other in ("_states", "_sublayers"):
        if other != table and name in layer._table(other):
            raise BuildError(f"{type(layer).__name__} has another part named {name!r}")
    if name in layer.__dict__ or hasattr(type(layer), name):
        raise BuildError(f"{type(layer).__name__} has an attribute {name!r} already")
    layer._table(table)[name] = item


# Errors.


def _assignment_error(layer: Layer, name: str, value: Any) -> PrimgraphError:
    """Return the error for a value that cannot take the place of a registered part."""
    if _is_traced(value) and name in layer._table("_states"):
        return BuildError(
            f"{type(layer).__name__} changes {name!r} when it is called, and a function that is "
            "traced or compiled changes nothing",
            hint="call layer.eval() before, or let a program train: minimize, and run it",
        )
    return ArgumentError(
        f"{name!r} is registered, and {value!r:.80} is no parameter or layer",
        hint="program.update changes what a parameter or buffer holds after a run",
    )


def _unknown_part(layer: Layer, name: str) -> AttributeError:
    """Return the error for a name that is no attribute."""
    tables = [layer.__dict__.get(table, ()) for table in ("_states", "_sublayers")]
    known = {*dir(type(layer)), *layer.__dict__}.union(*tables)
    instead = REMARKS["cuda"] if name in ("cuda", "cpu", "to") else ""
    return unknown_name(f"{type(layer).__name__!r}", name, known, instead)
