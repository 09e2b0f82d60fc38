"""Layers: parts of a network that own parameters, nest, and are called like functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar, final

import numpy as np

from primgraph.errors import (
    ArgumentError,
    BuildError,
    FeedError,
    MissingMethodError,
    near_matches,
    unknown_name,
)
from primgraph.initializers import Assign, Initializer
from primgraph.ir.graph import Value
from primgraph.ir.sheet import Row, Sheet
from primgraph.ir.signature import applied, checked_methods
from primgraph.ir.types import TensorType, as_dtype
from primgraph.nn.scopes import calling, outermost
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable, handles
from primgraph.program.program import Program, current_program, parameter_kind, program_of
from primgraph.program.scope import Scope

L = TypeVar("L", bound="Layer")


@final
class Parameter:
    """A parameter or buffer of a layer: declared with the layer, made in a program later.

    `variable` is what stands for it there, None before; `program`, kept alive with it, owns it.
    """

    __slots__ = ("initializer", "program", "trainable", "type", "variable")

    def __init__(
        self,
        type: TensorType,
        initializer: Initializer,
        trainable: bool,
        variable: Variable | None = None,
    ) -> None:
        self.program = None if variable is None else program_of(variable)
        self.type = type
        self.initializer = initializer
        self.trainable = trainable
        self.variable = variable

    def __deepcopy__(self, memo: Any) -> Parameter:
        """The same declaration: a copied layer has parameters of its own."""
        return Parameter(self.type, self.initializer, self.trainable)


@checked_methods("add_parameter", "add_sublayer")
class Layer:
    """A part of a network: parameters, buffers and layers within, and how it computes.

    A class of its own calls `super().__init__()`, assigns parameters and layers to attributes,
    which registers them, and defines `forward`. Calling the layer calls `forward`.

        class Network(pg.nn.Layer):
            def __init__(self):
                super().__init__()
                self.body = pg.nn.Sequential(pg.nn.Linear(2, 20), pg.nn.Tanh())
                self.scale = self.create_parameter((20,))

            def forward(self, x):
                return self.body(x) * self.scale

    Layers in lists, tuples and dicts that are attributes, and in such within, count as parts too,
    under names such as `layers.0.weight`; so do states of a program. What `create_parameter` of a
    layer gave goes into a `ParameterList`.

    A layer may be made before a program or inside one. Its parameters are created when it is
    first called, or first asked for them: in the program of the variables that it is called on,
    or else in the one being built. They stay there; a layer that is called again uses the same
    ones. In the program their names begin with the class of the outermost layer, as in
    `network.body.0.weight`.
    """

    training: bool

    def __init__(self) -> None:
        self.__dict__["_states"] = {}
        self.__dict__["_sublayers"] = {}
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes; every class of its own defines it."""
        raise MissingMethodError(
            f"{type(self).__name__} does not define forward",
            hint=near_matches("forward", set(dir(self)) - set(dir(Layer))),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of `forward`.

        Raises `BuildError` if the parameters belong to another program than the arguments, or
        if the arguments belong to none: traced functions have no parameters.
        """
        states = [p for _, p in self._named_states()]
        if states:
            operands = handles((*args, *kwargs.values()))
            program = program_of(operands[0]) if operands else current_program()
            self._bind(program)
            for parameter in states:
                if parameter.program is not program:
                    raise BuildError(
                        f"a {type(self).__name__} with parameters in another program is called "
                        f"in {program.name!r}",
                        hint="make a layer for each program, or use program.clone(for_test=True)",
                    )
        with self._scope():
            return self.forward(*args, **kwargs)

    def _scope(self) -> AbstractContextManager[None]:
        """Where lines are marked as those of this layer, whose path begins as its parameters do."""
        call, own = outermost(), type(self).__name__.lower()
        if call is not None:
            return calling(f"{call.path}.{call.names.get(id(self), own)}")
        first = next(self._named_states(), None)
        if first is not None and first[1].variable is not None:
            name, path = first[0], first[1].variable.name
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
        """A new parameter, to be assigned to an attribute, which then reads as its variable.

        The initializer is Xavier's rule, or zeros for a bias, unless given; the dtype is the
        default one unless given. Raises what `pg.create_parameter` does.
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

        The attribute reads as its variable; `program.update` lets runs change it.
        """
        array = np.array(array_of(value))
        type = TensorType(array.shape, as_dtype(array.dtype))
        self._register("_states", name, Parameter(type, Assign(array), trainable=False))

    def add_sublayer(self, name: str, layer: Layer) -> Layer:
        """Register `layer` by that name, and return it.

        Raises `ArgumentError` for anything but a layer, `BuildError` for a name that is taken.
        """
        if not isinstance(layer, Layer):
            raise ArgumentError(f"sublayer {name!r} is a Layer, not {layer!r:.80}")
        if layer is self:
            raise BuildError("a layer cannot be within itself")
        self._register("_sublayers", name, layer)
        return layer

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Layer):
            self.__dict__.pop(name, None)
            self.add_sublayer(name, value)
        elif isinstance(value, Parameter) or _state_of(value) is not None:
            self.__dict__.pop(name, None)
            self.add_parameter(name, value)
        elif name in self._table("_states") or name in self._table("_sublayers"):
            raise ArgumentError(
                f"{name!r} is registered, and {value!r:.80} is no parameter or layer",
                hint="program.update changes what a parameter or buffer holds after a run",
            )
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        parameter = self.__dict__.get("_states", {}).get(name)
        if parameter is not None:
            return self._variable(parameter)
        layer = self.__dict__.get("_sublayers", {}).get(name)
        if layer is None:
            known = {*dir(type(self)), *self.__dict__.get("_states", ())}
            known.update(self.__dict__.get("_sublayers", ()), self.__dict__)
            raise unknown_name(f"{type(self).__name__!r}", name, known)
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

    def named_parameters(self) -> Iterator[tuple[str, Variable]]:
        """Dotted names and variables of the parameters of this layer and of all within."""
        for name, parameter in self._named_states():
            if parameter.trainable:
                yield name, self._variable(parameter)

    def parameters(self) -> list[Variable]:
        """The parameters of this layer and of all within, each once."""
        return [variable for _, variable in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Variable]]:
        """Dotted names and variables of the buffers of this layer and of all within."""
        for name, parameter in self._named_states():
            if not parameter.trainable:
                yield name, self._variable(parameter)

    def buffers(self) -> list[Variable]:
        """The buffers of this layer and of all within, each once."""
        return [variable for _, variable in self.named_buffers()]

    def state_dict(self, scope: Scope | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the values of parameters and buffers, by dotted name.

        They come from `scope`, or else from that of the program. Raises `BuildError` before the
        layer is used in a program.
        """
        names = self._names_in_program()
        if not names:
            return {}
        program, known = names
        values = program.state_dict(scope)
        return {name: values[inner] for name, inner in known.items()}

    def set_state_dict(self, values: Mapping[str, Any], scope: Scope | None = None) -> None:
        """Store copies of `values` by dotted name; what is not named keeps its value.

        Raises `FeedError` for an unknown name, a wrong shape or a wrong kind of dtype; nothing
        is stored then. Raises `BuildError` before the layer is used in a program.
        """
        names = self._names_in_program()
        known = names[1] if names else {}
        unknown = [n for n in values if n not in known]
        if unknown:
            listed = ", ".join(map(repr, unknown))
            raise FeedError(f"{type(self).__name__} has no parameters or buffers named {listed}")
        if names:
            names[0].set_state_dict({known[n]: v for n, v in values.items()}, scope)

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
            inner = [(_joined(path, n), s) for n, s in layer._inner()]
            waiting += reversed(inner)

    def _inner(self) -> list[tuple[str, Layer]]:
        """Names and layers directly within, those in containers included."""
        held = [(name, item) for name, item in self._contents() if isinstance(item, Layer)]
        return [*self._table("_sublayers").items(), *held]

    def _own_states(self) -> list[tuple[str, Parameter]]:
        """Names and states of this layer alone, those in containers included."""
        found = list(self._table("_states").items())
        for name, item in self._contents():
            state = _state_of(item)
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
        seen: set[Parameter | Value] = set()
        for path, layer in self._tree():
            for name, parameter in layer._own_states():
                variable = parameter.variable
                key = parameter if variable is None else variable.value
                if key not in seen:
                    seen.add(key)
                    yield _joined(path, name), parameter

    def _bind(self, program: Program) -> None:
        """Create in `program` what has no variable yet."""
        waiting = [(n, p) for n, p in self._named_states() if p.variable is None]
        prefix = program.free_name(type(self).__name__.lower()) if waiting else ""
        for name, p in waiting:
            p.variable = program.state(f"{prefix}.{name}", p.type, p.initializer, p.trainable)
            p.program = program

    def _variable(self, parameter: Parameter) -> Variable:
        if parameter.variable is None:
            self._bind(current_program())
        assert parameter.variable is not None
        return parameter.variable

    def _names_in_program(self) -> tuple[Program, dict[str, str]] | None:
        """The program of the states, and their names there by dotted name; None without any."""
        program, names = None, {}
        for name, parameter in self._named_states():
            if parameter.variable is None:
                raise BuildError(
                    f"the parameters of this {type(self).__name__} have no values yet",
                    hint="call it in a program first",
                )
            program, names[name] = parameter.program, parameter.variable.name
        return None if program is None else (program, names)


# What is looked into for layers.
_CONTAINERS = (list, tuple, dict, set, frozenset)


def as_parameter(name: str, given: Any) -> Parameter:
    """What is registered for `given`, a parameter of a layer or of a program."""
    found = given if isinstance(given, Parameter) else _state_of(given)
    if found is None:
        raise ArgumentError(f"parameter {name!r} is made by create_parameter, not {given!r:.80}")
    return found


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _state_of(value: Any) -> Parameter | None:
    """What a layer registers for a state of a program; None for what is no such variable."""
    if not isinstance(value, Variable):
        return None
    try:
        state = program_of(value).states.get(value.value)
    except BuildError:
        return None
    if state is None:
        return None
    return Parameter(state.type, state.initializer, state.trainable, value)
