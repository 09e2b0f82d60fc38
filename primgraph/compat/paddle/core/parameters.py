"""Parameters of Paddle's API: tensors in dynamic mode, states of a program in static mode."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.core.methods import Variable
from primgraph.compat.paddle.core.parameter_attributes import (
    Declaration,
    FirstNorms,
    ParamAttr,
    WeightNormParamAttr,
    as_attribute,
)
from primgraph.compat.paddle.core.program import building_program
from primgraph.compat.paddle.dynamic import Tensor, as_tensor
from primgraph.compat.paddle.framework import builds_program, paddles
from primgraph.compat.paddle.initializers import chosen_initializer
from primgraph.compat.paddle.utils import unique_name
from primgraph.eager.node import Node, array_node
from primgraph.eager.seeds import reserve_generator
from primgraph.errors import ArgumentError, BuildError, ShapeError
from primgraph.initializers import first_array
from primgraph.ir.types import TensorType, as_shape
from primgraph.operators.variable import in_manner
from primgraph.program.declarations import parameter_kind
from primgraph.program.program import default_startup_program


class EagerParamBase(Tensor):
    """A tensor that is trained: the parameter of a layer, or of `paddle.create_parameter`.

    >>> w = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr(learning_rate=0.5))
    >>> w.stop_gradient, w.optimize_attr
    (False, {'learning_rate': 0.5})
    """

    __slots__ = (
        "do_model_average",
        "is_distributed",
        "name",
        "need_clip",
        "optimize_attr",
        "persistable",
        "regularizer",
    )
    family = Tensor

    name: str
    optimize_attr: dict[str, float]
    regularizer: Any
    do_model_average: bool
    need_clip: bool
    is_distributed: bool
    persistable: bool

    def __init__(self, data: Any, name: str = "", attr: ParamAttr | None = None) -> None:
        if not isinstance(data, Node):
            data = array_node(np.array(as_tensor(data)), True)
        super().__init__(data)
        given = attr or ParamAttr()
        self.name = name or unique_name.generate("eager_tmp")
        self.optimize_attr = {"learning_rate": given.learning_rate}
        self.regularizer = given.regularizer
        self.do_model_average = given.do_model_average
        self.need_clip = given.need_clip
        self.is_distributed = False
        self.persistable = True

    @property
    def trainable(self) -> bool:
        """Whether gradients are computed for it."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        if not isinstance(trainable, bool):
            raise ArgumentError(f"trainable is True or False, not {trainable!r:.60}")
        self.stop_gradient = not trainable

    def initialize(self) -> None:
        """Do nothing: the parameter has values, in `paddle.LazyGuard` too."""

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __deepcopy__(self, memo: Any) -> EagerParamBase:
        found = _rebuild_parameter(self._contents(), unique_name.generate(f"{self.name}_deepcopy"))
        memo[id(self)] = found
        return found

    def __copy__(self) -> EagerParamBase:
        return _rebuild_parameter(self._contents(), self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_parameter, (self._contents(), self.name)

    def _contents(self) -> tuple[Any, ...]:
        attr = ParamAttr(
            learning_rate=self.optimize_attr["learning_rate"],
            regularizer=self.regularizer,
            trainable=self.trainable,
            need_clip=self.need_clip,
        )
        return self._array().copy(), attr


def _rebuild_parameter(contents: tuple[Any, ...], name: str) -> EagerParamBase:
    array, attr = contents
    return EagerParamBase(array_node(array, attr.trainable), name, attr)


@paddles
def create_parameter(
    shape: Any,
    dtype: Any,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Any:
    """Create a parameter: a tensor, or in static mode a state of the program that is being built.

    `attr` is a `paddle.ParamAttr`, a name or an initializer; None is returned if it is False. The
    default initializer is `XavierUniform`, or zeros for a bias.

    >>> paddle.create_parameter([2], "float32", is_bias=True).numpy()
    array([0., 0.], dtype=float32)
    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     w = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr(name="w"))
    >>> w.name
    'w'
    """
    given = as_attribute(attr)
    if given is None:
        return None
    chosen = name or given.name
    owner = "" if chosen else unique_name.generate("create_parameter")
    return new_parameter(
        shape, dtype_or_default(dtype), given, is_bias, default_initializer, owner, chosen
    )


def new_parameter(
    shape: Any,
    dtype: Any,
    attr: ParamAttr,
    is_bias: bool = False,
    default: Any = None,
    owner: str = "",
    name: str | None = None,
) -> Any:
    """Create a parameter of a layer or function named `owner`, which names it unless `name` does.

    The first weight of `linear_0` is `linear_0.w_0`, and its bias `linear_0.b_0`.
    """
    rule = chosen_initializer(attr.initializer, default, is_bias)
    type, rule = parameter_kind(_listed(shape), dtype, rule, is_bias)
    chosen = name or attr.name or unique_name.generate(f"{owner}.{'b' if is_bias else 'w'}")
    if isinstance(attr, WeightNormParamAttr):
        return _normalized(type, rule, attr, chosen)
    if builds_program():
        return _in_program(type, rule, attr, chosen)
    array = first_array(rule, type.shape, type.dtype, reserve_generator()())
    return EagerParamBase(array_node(array, attr.trainable), chosen, attr)


def _listed(shape: Any) -> Any:
    """Return the sizes of a parameter, which are numbers that are known."""
    if isinstance(shape, int):
        raise ArgumentError(f"the shape of a parameter is a list of sizes, not {shape}")
    return as_shape([int(n) for n in shape])


def _in_program(type: TensorType, rule: Any, attr: ParamAttr, name: str) -> Any:
    """Return the state of that name of the current program, which is created if it is not there."""
    program = building_program()
    found = program.variable(name)
    if found is None:
        share_started_scope(name, type)
        made = program.state(name, type, Declaration(rule, attr), attr.trainable)
        if not attr.trainable:
            made.stop_gradient = True
        return cast("Variable", in_manner(Variable, made))
    if found.value not in program.states:
        raise BuildError(f"{name!r} is the name of a variable that is no parameter")
    if found.type != type:
        raise ShapeError(f"parameter {name!r} is {found.type} and cannot become {type} as well")
    return in_manner(Variable, found)


def _normalized(type: TensorType, rule: Any, attr: WeightNormParamAttr, name: str) -> Any:
    """Return a weight computed of two parameters of a program: its direction and its norms."""
    if not builds_program():
        raise BuildError(
            "WeightNormParamAttr is for static programs",
            hint="paddle.nn.utils.weight_norm(layer) is for layers of dynamic mode",
        )
    direction = _in_program(type, rule, attr, f"{name}_v")
    axes = attr.axes(type.shape)
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(type.shape))
    program = building_program()
    first = FirstNorms(program, program.states[direction.value], axes)
    norms = _in_program(TensorType(shape, type.dtype), first, attr, f"{name}_g")
    lengths = pg.sqrt(pg.sum(pg.square(direction), axes, keepdims=True))
    return pg.multiply(direction, pg.divide(norms, lengths))


def share_started_scope(name: str, type: TensorType) -> None:
    """Let a new program use the scope of an earlier one of the same startup program and names.

    So a program for training and one for tests, of parameters of the same names, share these.
    """
    program, startup = building_program(), default_startup_program()
    if program.states:
        return
    for other, states in startup.starts.items():
        if other is not program and any(s.name == name and s.type == type for s in states):
            program.scope = other.scope
