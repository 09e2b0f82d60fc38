"""Layers: parts of a network that own parameters, nest, and are called like functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from primgraph.base.array_functions import REMARKS
from primgraph.base.atomic import Call
from primgraph.eager.derivatives.accumulation import clear_grad
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.inplace.shared_storage import label_of
from primgraph.eager.tensor import Tensor
from primgraph.errors import (
    ArgumentError,
    BuildError,
    FeedError,
    MissingMethodError,
    ShapeError,
    near_matches,
    unknown_name,
)
from primgraph.initializers import Assign, Initializer
from primgraph.ir.frontend.html_tables import Row, Sheet
from primgraph.ir.frontend.signature import applied, checked_methods
from primgraph.ir.primitive import innermost
from primgraph.ir.types import TensorType, as_dtype
from primgraph.nn.parameter import Parameter, parameter_of
from primgraph.nn.scopes import calling, outermost
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable, handles
from primgraph.program.program import (
    Program,
    belongs_to_program,
    current_program,
    parameter_kind,
    program_of,
)
from primgraph.program.scope import Scope, copied, put_all

L = TypeVar("L", bound="Layer")


# What calls of layers that are under way compute with: variables of a program, or tensors.
_EAGERLY = object()
_world: ContextVar[object] = ContextVar("world", default=None)


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
            return self._forward_on_tensors(args, kwargs)
        found = handles((*args, *kwargs.values()))
        variables = [h for h in found if isinstance(h, Variable)]
        if not variables and (found or _computes()):
            return self._forward_on_tensors(args, kwargs)
        if next(self._named_states(), None) is None:
            with self._scope(None):
                return self.forward(*args, **kwargs)
        if variables and not belongs_to_program(variables[0]) and self._has_elements():
            return self._forward_on_tensors(args, kwargs)
        program = program_of(variables[0]) if variables else _program_of_call()
        self._enter(program)
        before = _world.get()
        try:
            _world.set(program)
            with self._scope(program):
                return self.forward(*args, **kwargs)
        finally:
            _world.set(before)

    def _has_elements(self) -> bool:
        """Whether the parameters are known where a function is traced, or are its inputs."""
        return adopting.get() is not None or all(p.is_known for _, p in self._named_states())

    def _forward_on_tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of `forward` with tensors for parameters."""
        if _world.get() is _EAGERLY:
            return self.forward(*args, **kwargs)
        before = _world.get()
        try:
            _world.set(_EAGERLY)
            return self.forward(*args, **kwargs)
        finally:
            _world.set(before)

    def _scope(self, program: Program | None) -> AbstractContextManager[None]:
        """Mark recorded lines with the path of this layer, the prefix of its parameters' names."""
        call, own = outermost(), type(self).__name__.lower()
        if call is not None:
            return calling(f"{call.path}.{call.names.get(id(self), own)}")
        if program is not None:
            name, parameter = next(self._named_states())
            path = self._variable(parameter, program).name
            own = path.removesuffix(f".{name}") if path.endswith(f".{name}") else own
        return calling(own, {id(layer): path for path, layer in self._tree()})

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
        self._register("_states", name, as_parameter(name, parameter))
        return parameter

    def register_buffer(self, name: str, value: Any) -> None:
        """Keep an array beside the parameters, `value` at first: no optimizer changes it.

        The attribute reads as a tensor, to which tensors can be assigned, or as a variable, and
        `program.update` lets runs change it.
        """
        array = np.array(array_of(value))
        type = TensorType(array.shape, as_dtype(array.dtype))
        self._register("_states", name, Parameter(type, Assign(array), trainable=False))

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
        self._register("_sublayers", name, layer)
        return layer

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Layer):
            self.__dict__.pop(name, None)
            self.add_sublayer(name, value)
        elif isinstance(value, Parameter) or parameter_of(value) is not None:
            self.__dict__.pop(name, None)
            self.add_parameter(name, value)
        elif isinstance(value, Tensor) and name in self._state_table():
            self._change(name, self._state_table()[name], value)
        elif _is_traced(value) and name in self._state_table():
            raise BuildError(
                f"{type(self).__name__} changes {name!r} when it is called, and a function that is "
                "traced or compiled changes nothing",
                hint="call layer.eval() before, or let a program train: minimize, and run it",
            )
        elif name in self._state_table() or name in self._table("_sublayers"):
            raise ArgumentError(
                f"{name!r} is registered, and {value!r:.80} is no parameter or layer",
                hint="program.update changes what a parameter or buffer holds after a run",
            )
        else:
            super().__setattr__(name, value)

    def _change(self, name: str, buffer: Parameter, value: Tensor) -> None:
        """Let a buffer hold what is computed, once somebody looks."""
        if buffer.trainable:
            raise ArgumentError(
                f"{name!r} is a parameter, and {value.type} is computed or a constant",
                hint="assign a leaf that requires grad, or use "
                "`with pg.no_grad(): layer.weight.copy_(x)`",
            )
        if value.type != buffer.type:
            raise ShapeError(f"{name!r} is {buffer.type} and cannot become {value.type}")
        buffer.become(value.detach())

    def __getattr__(self, name: str) -> Any:
        parameter = self.__dict__.get("_states", {}).get(name)
        if parameter is not None:
            return self._read_parameter(parameter)
        layer = self.__dict__.get("_sublayers", {}).get(name)
        if layer is None:
            known = {*dir(type(self)), *self.__dict__.get("_states", ())}
            known.update(self.__dict__.get("_sublayers", ()), self.__dict__)
            instead = REMARKS["cuda"] if name in ("cuda", "cpu", "to") else ""
            raise unknown_name(f"{type(self).__name__!r}", name, known, instead)
        return layer

    def __delattr__(self, name: str) -> None:
        for table in ("_states", "_sublayers"):
            if self._table(table).pop(name, None) is not None:
                return
        super().__delattr__(name)

    def _state_table(self) -> dict[str, Parameter]:
        return self._table("_states")

    def _table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] | None = self.__dict__.get(name)
        if table is None:
            raise BuildError(f"{type(self).__name__}.__init__ has to call super().__init__() first")
        return table

    def _register(self, table: str, name: str, item: Any) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise BuildError(f"{name!r} cannot name a part of a layer: it is empty or has a dot")
        for other in ("_states", "_sublayers"):
            if other != table and name in self._table(other):
                raise BuildError(f"{type(self).__name__} has another part named {name!r}")
        if name in self.__dict__ or hasattr(type(self), name):
            raise BuildError(f"{type(self).__name__} has an attribute {name!r} already")
        self._table(table)[name] = item

    # What is registered.

    def named_sublayers(self, include_self: bool = False) -> Iterator[tuple[str, Layer]]:
        """Dotted names and layers of all that is within, each layer once, outer ones first."""
        found = self._tree()
        if not include_self:
            next(found)
        yield from found

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """All layers within, outer ones first."""
        return [layer for _, layer in self.named_sublayers(include_self)]

    def children(self) -> list[Layer]:
        """The layers directly within."""
        return [layer for _, layer in self._inner()]

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Dotted names of the parameters of this layer and of all within, and what they are there:
        tensors, or variables of a program."""
        yield from self._named_tensors(trainable=True)

    def parameters(self) -> list[Any]:
        """The parameters of this layer and of all within, each once."""
        return [item for _, item in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Dotted names of the buffers of this layer and of all within, and what they are there."""
        yield from self._named_tensors(trainable=False)

    def buffers(self) -> list[Any]:
        """The buffers of this layer and of all within, each once."""
        return [item for _, item in self.named_buffers()]

    def _named_tensors(self, trainable: bool) -> Iterator[tuple[str, Any]]:
        own = type(self).__name__.lower()
        for name, parameter in self._named_states():
            if parameter.trainable is trainable:
                item = self._read_parameter(parameter)
                if isinstance(item, Tensor) and not label_of(item):
                    item._label = f"{own}.{name}"
                yield name, item

    def zero_grad(self) -> None:
        """Let no parameter have a gradient."""
        clear_grad([p.made for _, p in self._named_states() if p.made is not None])

    def state_dict(self, scope: Scope | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of the values of parameters and buffers, by dotted name.

        With `scope` they are the values that a program has there; then `BuildError` is raised if
        the layer is part of no program.
        """
        listed = list(self._named_states())
        if scope is not None and listed:
            program, names = self._names_in_program(listed)
            found = program.state_dict(scope)
            return {name: found[inner] for name, inner in names.items()}
        programs: dict[Program, dict[str, np.ndarray[Any, Any]]] = {}
        values = {}
        for name, parameter in listed:
            home = parameter.home
            if home is None:
                values[name] = parameter.tensor.numpy()
            else:
                program = program_of(home)
                if program not in programs:
                    programs[program] = program.state_dict()
                values[name] = programs[program][home.name]
        return values

    def set_state_dict(self, values: Mapping[str, Any], scope: Scope | None = None) -> None:
        """Store copies of `values` by dotted name; what is not named keeps its value.

        With `scope` they are stored there, for a program. Raises `FeedError` for an unknown name, a
        wrong shape or a wrong kind of dtype; nothing is stored then. Raises `BuildError` where
        there is a scope, and the layer is part of no program.
        """
        listed = list(self._named_states())
        known = dict(listed)
        unknown = [n for n in values if n not in known]
        if unknown:
            names = ", ".join(map(repr, unknown))
            raise FeedError(
                f"{type(self).__name__} has no parameters or buffers named {names}",
                hint=near_matches(unknown[0], known),
            )
        if scope is not None:
            if values:
                program, inner = self._names_in_program(listed)
                program.set_state_dict({inner[n]: v for n, v in values.items()}, scope)
            return
        arrays = {n: copied(n, value, known[n].type) for n, value in values.items()}
        homes: dict[Scope, dict[str, np.ndarray[Any, Any]]] = {}
        calls: list[Call] = []
        # A parameter that has several names is changed once.
        changed = {known[n].identity: (known[n], array) for n, array in arrays.items()}
        for parameter, array in changed.values():
            home = parameter.home
            if home is None:
                calls += parameter.holding(array)
            else:
                homes.setdefault(program_of(home).scope, {})[home.name] = array
        put_all(homes, calls)

    def load_state_dict(self, values: Mapping[str, Any], strict: bool = True) -> None:
        """`set_state_dict`, as torch calls it: what is not named is an error, if `strict`."""
        known = [name for name, _ in self._named_states()]
        missing = [name for name in known if name not in values]
        if strict and missing and set(values) <= set(known):
            raise FeedError(
                f"there is nothing for {', '.join(map(repr, missing))} of {type(self).__name__}",
                hint="with strict=False what is not named keeps its value",
            )
        self.set_state_dict(values)

    def train(self: L) -> L:
        """Let calls from now on build the form for training; returns the layer."""
        return self._set_training(True)

    def eval(self: L) -> L:
        """Let calls from now on build the form for evaluation; returns the layer.

        What is built already stays; `Program.clone(for_test=True)` converts that.
        """
        return self._set_training(False)

    def apply(self: L, function: Callable[[Layer], Any]) -> L:
        """Call `function` on every layer within, inner ones first, and on this one."""
        for layer in reversed(self.sublayers(include_self=True)):
            applied(function, layer)
        return self

    def __repr__(self) -> str:
        states = [f"{n} {p.type}" for n, p in self._table("_states").items()]
        inner = [f"{n} {type(s).__name__}" for n, s in self._inner()]
        parts = ", ".join([*states, *inner])
        return f"<{type(self).__name__}{': ' if parts else ''}{parts}>"

    def _repr_html_(self) -> str:
        """The parameters and buffers of all that is within, by name."""
        states = list(self._named_states())
        rows = [Row((name, str(p.type), "" if p.trainable else "buffer")) for name, p in states]
        count = sum(p.type.size for _, p in states if p.trainable)
        note = f"{count:,} trainable numbers"
        head = ("name", "type", "")
        return Sheet(repr(self)[1:-1], "cct", head, rows, len(rows), (note,)).html()

    def _set_training(self: L, training: bool) -> L:
        for _, layer in self._tree():
            layer.training = training
        return self

    def _tree(self) -> Iterator[tuple[str, Layer]]:
        """Dotted names and layers, this one first, by the name ''; each layer once."""
        seen: set[int] = set()
        waiting: list[tuple[str, Layer]] = [("", self)]
        while waiting:
            path, layer = waiting.pop()
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            yield path, layer
            inner = [(_join_path(path, n), s) for n, s in layer._inner()]
            waiting += reversed(inner)

    def _inner(self) -> list[tuple[str, Layer]]:
        """Names and layers directly within, those in containers included."""
        held = [(name, item) for name, item in self._contents() if isinstance(item, Layer)]
        return [*self._table("_sublayers").items(), *held]

    def _own_states(self) -> list[tuple[str, Parameter]]:
        """Names and states of this layer alone, those in containers included."""
        found = list(self._table("_states").items())
        for name, item in self._contents():
            state = parameter_of(item)
            if isinstance(item, Parameter):
                raise BuildError(
                    f"{name!r} of this {type(self).__name__} is a parameter in a plain container, "
                    "which would not read as its variable",
                    hint="put it in a pg.nn.ParameterList, or give it an attribute of its own",
                )
            if state is not None:
                found.append((name, state))
        return found

    def _contents(self) -> Iterator[tuple[str, Any]]:
        """Dotted names and items of the containers that are attributes, and of those within."""
        seen: set[int] = set()
        waiting = [(n, v) for n, v in vars(self).items() if n not in ("_states", "_sublayers")]
        waiting = [(n, v) for n, v in waiting if isinstance(v, _CONTAINERS)]
        waiting.reverse()
        while waiting:
            path, item = waiting.pop()
            if isinstance(item, set | frozenset):
                if any(isinstance(inner, Layer) for inner in item):
                    raise BuildError(
                        f"{path!r} of this {type(self).__name__} has layers in a set, which has "
                        "no order",
                        hint="put them in a list or a pg.nn.LayerList",
                    )
            elif not isinstance(item, _CONTAINERS):
                yield path, item
            elif id(item) not in seen:
                seen.add(id(item))
                pairs = item.items() if isinstance(item, dict) else enumerate(item)
                inner = [(f"{path}.{key}", value) for key, value in pairs]
                waiting += reversed(inner)

    def _named_states(self) -> Iterator[tuple[str, Parameter]]:
        """Dotted names and states of this layer and of all within, each state once."""
        seen: set[object] = set()
        for path, layer in self._tree():
            for name, parameter in layer._own_states():
                key = parameter.identity
                if key not in seen:
                    seen.add(key)
                    yield _join_path(path, name), parameter

    def _enter(self, program: Program) -> None:
        """Create in `program` what has no state there yet."""
        waiting = [(n, p) for n, p in self._named_states() if p.state_in(program) is None]
        prefix = program.free_name(type(self).__name__.lower()) if waiting else ""
        for name, parameter in waiting:
            parameter.enter(program, f"{prefix}.{name}")

    def _read_parameter(self, parameter: Parameter) -> Tensor | Variable:
        """Return the tensor or variable that stands for a parameter in the current call."""
        world = _world.get()
        if world is _EAGERLY:
            return parameter.tensor
        if world is None and innermost.get() is None:
            home = parameter.home
            return parameter.tensor if home is None else home
        return self._variable(parameter, _program_of_call())

    def _variable(self, parameter: Parameter, program: Program) -> Variable:
        found = parameter.state_in(program)
        if found is None:
            self._enter(program)
            found = parameter.state_in(program)
        assert found is not None
        return found

    def _names_in_program(
        self, listed: list[tuple[str, Parameter]]
    ) -> tuple[Program, dict[str, str]]:
        """A program of which this is part, and the names of the states there by dotted name."""
        program = listed[0][1].latest
        names: dict[str, str] = {}
        for name, parameter in listed:
            state = None if program is None else parameter.state_in(program)
            if state is not None:
                names[name] = state.name
        if program is None or len(names) < len(listed):
            raise BuildError(
                f"the parameters of this {type(self).__name__} are in no program",
                hint="call it in a program first, or leave out the scope",
            )
        return program, names


def _is_traced(value: Any) -> bool:
    """Whether this is a variable of a function that is traced."""
    return isinstance(value, Variable) and not belongs_to_program(value)


def _are_tensors(args: tuple[Any, ...]) -> bool:
    """Whether a layer is called on tensors alone, as most often."""
    for argument in args:
        if not isinstance(argument, Tensor):
            return False
    return bool(args)


def _computes() -> bool:
    """Whether a layer that is called on no variables computes eagerly."""
    world = _world.get()
    return world is _EAGERLY or (world is None and innermost.get() is None)


def _program_of_call() -> Program:
    """The program that calls under way are part of, or else the one being built."""
    world = _world.get()
    return world if isinstance(world, Program) else current_program()


# What is looked into for layers.
_CONTAINERS = (list, tuple, dict, set, frozenset)


def as_parameter(name: str, given: Any) -> Parameter:
    """Return the registered parameter of `given`, a parameter of a layer or of a program."""
    found = given if isinstance(given, Parameter) else parameter_of(given)
    if found is None:
        raise ArgumentError(f"parameter {name!r} is made by create_parameter, not {given!r:.80}")
    return found


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
