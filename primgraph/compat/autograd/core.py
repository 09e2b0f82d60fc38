"""Products with Jacobians of functions of one argument; functions with rules of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce, update_wrapper
from itertools import count
from types import MethodType
from typing import Any, final

import numpy as np

from primgraph import tree
from primgraph.compat.autograd.boxes import (
    Box,
    add_cotangent,
    is_element,
    new_box,
    new_token,
    take_cotangent,
)
from primgraph.compat.autograd.evaluation import Evaluated
from primgraph.compat.autograd.spaces import VSpace, vspace
from primgraph.compat.autograd.wrap_util import name_of, subvals
from primgraph.custom.called import call_custom
from primgraph.custom.declared import Declared
from primgraph.custom.definition import Call, Definition
from primgraph.eager.tensor import Tensor, tensor
from primgraph.errors import ArgumentError, MissingRuleError
from primgraph.numpy.rebound import rebound
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable, handles

__all__ = [
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "make_jvp",
    "make_vjp",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "vspace",
]


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return the function that multiplies the Jacobian of `fun` at `x` from the left, and `fun(x)`.

    >>> from primgraph.compat.autograd import make_vjp
    >>> product, value = make_vjp(lambda x: x**2)(np.array([1.0, 2.0]))
    >>> product(np.ones(2))
    array([2., 4.])
    """
    evaluated = Evaluated(fun, x)
    evaluated.tell_of_independence()
    return evaluated.vjp, evaluated.value()


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Return the function that computes `fun(x)` and the product of its Jacobian with a vector.

    >>> from primgraph.compat.autograd import make_jvp
    >>> make_jvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.ones(2))
    (array([1., 4.]), array([2., 4.]))
    """

    def jvp(v: Any) -> tuple[Any, Any]:
        evaluated = Evaluated(fun, x)
        evaluated.tell_of_independence()
        return evaluated.value(), evaluated.jvp(v)

    return jvp


# The rules of functions: of all cotangents, and of all tangents, at some places.
primitive_vjps: dict[Any, Callable[..., Any]] = {}
primitive_jvps: dict[Any, Callable[..., Any]] = {}


class _OfPrimitive(Definition):
    """A function of arrays that is called on their elements, with the rules that it is given.

    What it is called with is a row of the leaves of its arguments.
    """

    def __init__(self, primitive: Primitive, structure: tree.Structure) -> None:
        self.name = name_of(primitive)
        self._primitive = primitive
        self._structure = structure

    @property
    def pushes(self) -> Callable[..., Any] | None:  # type: ignore[override]
        own = primitive_jvps.get(self._primitive)
        return (
            self._raise_undefined if own is None and self._primitive not in primitive_vjps else own
        )

    @property
    def pulls(self) -> Callable[..., Any] | None:  # type: ignore[override]
        own = primitive_vjps.get(self._primitive)
        return (
            self._raise_undefined if own is None and self._primitive not in primitive_jvps else own
        )

    def begin(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        function = self._primitive.fun
        if any(isinstance(a, Variable) for a in args):
            found = rebound(function)(*self._arguments(args), **kwargs)
        else:
            arrays = [a.numpy()[()] if isinstance(a, Tensor) else a for a in args]
            leaves, structure = tree.flatten(
                function(*self._arguments(arrays), **kwargs), is_element if Box.types else None
            )
            found = tree.unflatten(structure, [*map(self._hold_result, leaves)])
        return found, tree.map(_keep_result, found)

    def push(self, call: Call, tangents: Sequence[Any]) -> Sequence[Any]:
        args = self._arguments(call.args)
        along = self._arguments([
            call.zeros(a.type) if t is None and _is_float(a) else t
            for a, t in zip(call.args, tangents, strict=True)
        ])  # fmt: skip
        places = [i for i, a in enumerate(args) if any(map(_is_float, tree.leaves(a)))]
        rule = self.pushes
        assert rule is not None
        found = rule(places, [along[i] for i in places], self._value(call), args, call.kwargs)
        return call.flatten_result(found, rule)

    def pull(self, call: Call, cotangents: Sequence[Any]) -> Sequence[Any]:
        reached = tree.unflatten(self._structure, [*map(_is_reached, call.args)])
        places = [i for i, leaves in enumerate(reached) if any(tree.leaves(leaves))]
        rule = self.pulls
        assert rule is not None
        pull = rule(tuple(places), self._value(call), self._arguments(call.args), call.kwargs)
        found = dict(zip(places, pull(call.unflatten_results(cotangents)), strict=True))
        row: list[Any] = []
        for i, structure in enumerate(self._structure.parts):
            part = found.get(i)
            is_one = structure == tree.LEAF
            row += [part] if is_one else tree.broadcast_prefix(part, structure, "the cotangent")
        return [self._receive(*item) for item in zip(count(), row, call.args)]

    def _hold_result(self, leaf: Any) -> Any:
        return tensor(leaf)

    def _receive(self, place: int, part: Any, argument: Any) -> Any:
        """Return the cotangent of the leaf at `place` of the arguments."""
        return _cast_cotangent(part, argument)

    def _arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(tree.unflatten(self._structure, leaves))

    def _value(self, call: Call) -> Any:
        """Return the function's value, with the derivative that the rules define."""
        return tree.map(lambda kept: call.saved_array(kept.held), call.state)

    def _raise_undefined(self, places: Sequence[int], *_: Any) -> Any:
        raise MissingRuleError(
            f"the derivative of {self.name} by its arguments {tuple(places)} is not defined",
            hint=f"defvjp({self.name}, rule) gives a rule for reverse mode, defjvp for forward",
        )


@final
class _OfBoxes(_OfPrimitive):
    """A call with boxes among the leaves of its arguments or results, for reverse mode.

    Their tokens are passed on; the function and its rules are called with the objects, and with
    numbers.
    """

    def __init__(
        self, primitive: Primitive, structure: tree.Structure, boxes: Mapping[int, Box]
    ) -> None:
        super().__init__(primitive, structure)
        self._boxes = boxes
        self._elements: dict[int, Any] = {}
        self._made: dict[int, Box] = {}
        self._count = 0

    def run(self, leaves: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call the function; objects in its result are boxes."""
        given = [self._boxes[i]._token if i in self._boxes else a for i, a in enumerate(leaves)]
        found, structure = tree.flatten(call_custom(Declared(self.name, self), given, kwargs))
        self._made = {i: new_box(value, found[i]) for i, value in self._elements.items()}
        return tree.unflatten(structure, [self._made.get(i, a) for i, a in enumerate(found)])

    def push(self, call: Call, tangents: Sequence[Any]) -> Sequence[Any]:
        raise MissingRuleError(f"{self.name} takes or gives objects: reverse mode alone is there")

    def pull(self, call: Call, cotangents: Sequence[Any]) -> Sequence[Any]:
        given = [
            take_cotangent(self._made[i]) if i in self._made else _number_of(ct)
            for i, ct in enumerate(cotangents)
        ]
        return super().pull(call, given)

    def _hold_result(self, leaf: Any) -> Any:
        place, self._count = self._count, self._count + 1
        if not is_element(leaf):
            return tensor(leaf)
        self._elements[place] = leaf
        return new_token()

    def _receive(self, place: int, part: Any, argument: Any) -> Any:
        if place not in self._boxes:
            return super()._receive(place, part, argument)
        add_cotangent(self._boxes[place], part)
        return np.zeros(())

    def _arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        boxes = self._boxes
        values = [boxes[i]._value if i in boxes else a for i, a in enumerate(leaves)]
        return super()._arguments([*map(_number_of, values)])

    def _value(self, call: Call) -> Any:
        leaves, structure = tree.flatten(super()._value(call))
        values = [self._elements.get(i, _number_of(a)) for i, a in enumerate(leaves)]
        return tree.unflatten(structure, values)


def _number_of(leaf: Any) -> Any:
    """The elements of a tensor that no derivative goes through; all else as it is."""
    is_constant = isinstance(leaf, Tensor) and not leaf.requires_grad
    return leaf.numpy()[()] if is_constant else leaf


@final
class _Kept:
    """A result of a call, as the rules ask for it."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


def _keep_result(result: Any) -> _Kept:
    return _Kept(result.node if isinstance(result, Tensor) else result)


def _is_float(argument: Any) -> bool:
    return isinstance(argument, Handle) and argument.type.is_inexact


def _is_reached(argument: Any) -> bool:
    return _is_float(argument) and (not isinstance(argument, Tensor) or argument.requires_grad)


def _cast_cotangent(part: Any, argument: Any) -> Any:
    """A cotangent in the dtype of its argument; None for what has none."""
    if part is None or not _is_float(argument):
        return None
    if isinstance(part, Handle):
        return part if part.dtype == argument.dtype else part.astype(argument.dtype)
    return np.asarray(part, argument.dtype)


@final
class Primitive:
    """A function that is called on arrays alone; `defvjp` and `defjvp` give it derivatives.

    What it does is hidden from derivatives, so that it may be of any kind. Those of higher order
    are taken of its rules.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.fun = function
        # One for each way in which arguments were containers.
        self._declared: dict[tree.Structure, Declared] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten(args, is_element if Box.types else None)
        boxes = {i: a for i, a in enumerate(leaves) if isinstance(a, Box)}
        if boxes:
            return _OfBoxes(self, structure, boxes).run(leaves, kwargs)
        if not handles((*leaves, *kwargs.values())):
            return self.fun(*args, **kwargs)
        known = self._declared.get(structure)
        if known is None:
            known = Declared(name_of(self), _OfPrimitive(self, structure))
            self._declared[structure] = known
        return call_custom(known, leaves, kwargs)

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """Bind it as a method, as a function."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<primitive {name_of(self.fun)}>"

    # As it was written before `defvjp` was a function.

    def defgrad(self, gradmaker: Callable[..., Any], argnum: int = 0) -> None:
        """Deprecated: `defvjp(fun, gradmaker, argnums=(argnum,))`."""
        _tell("defgrad")
        _add_rule(self, argnum, gradmaker)

    def defvjp(self, vjpmaker: Callable[..., Any], argnum: int = 0) -> None:
        """Deprecated: a rule of the cotangent, the value, their spaces and all arguments."""
        _tell("defvjp")

        def maker(ans: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
            return lambda g: vjpmaker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        _add_rule(self, argnum, maker)

    def defvjp_is_zero(self, argnums: Iterable[int] = (0,)) -> None:
        """Deprecated: there is no derivative by these arguments."""
        _tell("defvjp_is_zero")
        for argnum in argnums:
            _add_rule(self, argnum, None)


def primitive(function: Callable[..., Any]) -> Primitive:
    """Decorate a function of arrays to make it a primitive, whose derivatives are given by rules.

    >>> from primgraph.compat.autograd import grad
    >>> from primgraph.compat.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def logsumexp(x):
    ...     return np.log(np.sum(np.exp(x)))
    >>> defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    >>> grad(logsumexp)(np.zeros(2))
    array([0.5, 0.5])
    """
    return Primitive(function)


def _tell(name: str) -> None:
    warnings.warn(f"the method {name} is deprecated: use autograd.extend.defvjp", stacklevel=3)


# Rules that were given one by one.
_one_by_one: dict[Primitive, dict[int, Any]] = {}


def _add_rule(fun: Primitive, argnum: int, maker: Callable[..., Any] | None) -> None:
    known = _one_by_one.setdefault(fun, {})
    known[argnum] = maker
    defvjp(fun, *known.values(), argnums=tuple(known))


def defvjp_argnums(fun: Primitive, vjpmaker: Callable[..., Any]) -> None:
    """Let `vjpmaker(argnums, ans, args, kwargs)` give a function of the cotangent: one for each."""
    primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun: Primitive, vjpmaker: Callable[..., Any]) -> None:
    """Let `vjpmaker(argnum, ans, args, kwargs)` give a function of the cotangent."""

    def pull_several(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Any:
        rules = [vjpmaker(i, ans, args, kwargs) for i in argnums]
        return lambda g: [rule(g) for rule in rules]

    defvjp_argnums(fun, pull_several)


def defvjp(
    fun: Primitive, *vjpmakers: Callable[..., Any] | None, argnums: Iterable[int] | None = None
) -> None:
    """Let `vjpmaker(ans, *args, **kwargs)` give a function of the cotangent, one an argument.

    None says that there is no derivative by an argument. `argnums` are those that the rules are
    for, the first ones by default.
    """
    by_place = _rules_by_place(fun, vjpmakers, argnums)

    def pull_one(argnum: int, ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        if argnum not in by_place:
            raise MissingRuleError(f"VJP of {name_of(fun)} wrt argnum {argnum} not defined")
        maker = by_place[argnum]
        if maker is None:
            return lambda g: vspace(args[argnum]).zeros()
        rule: Callable[[Any], Any] = maker(ans, *args, **kwargs)
        return rule

    defvjp_argnum(fun, pull_one)


def defjvp_argnums(fun: Primitive, jvpmaker: Callable[..., Any]) -> None:
    """Let `jvpmaker(argnums, tangents, ans, args, kwargs)` give the tangent of the value."""
    primitive_jvps[fun] = jvpmaker


def defjvp_argnum(fun: Primitive, jvpmaker: Callable[..., Any]) -> None:
    """Let `jvpmaker(argnum, tangent, ans, args, kwargs)` give what an argument contributes."""

    def push_several(argnums: Any, tangents: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        pairs = zip(argnums, tangents, strict=True)
        return reduce(vspace(ans).add, [jvpmaker(i, g, ans, args, kwargs) for i, g in pairs])

    defjvp_argnums(fun, push_several)


def defjvp(
    fun: Primitive,
    *jvpfuns: Callable[..., Any] | str | None,
    argnums: Iterable[int] | None = None,
) -> None:
    """Let `jvpfun(tangent, ans, *args, **kwargs)` give what an argument contributes.

    None says that it contributes nothing, and "same" that the function is linear in it.
    """
    by_place = _rules_by_place(fun, jvpfuns, argnums)

    def push_one(argnum: int, tangent: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        if argnum not in by_place:
            raise MissingRuleError(f"JVP of {name_of(fun)} wrt argnum {argnum} not defined")
        rule = by_place[argnum]
        if rule is None:
            return vspace(ans).zeros()
        if rule == "same":
            return fun(*subvals(args, [(argnum, tangent)]), **kwargs)
        return rule(tangent, ans, *args, **kwargs)

    defjvp_argnum(fun, push_one)


def def_linear(fun: Primitive) -> None:
    """Say that a function is linear in each of its arguments."""

    def push_one(argnum: int, tangent: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        return fun(*subvals(args, [(argnum, tangent)]), **kwargs)

    defjvp_argnum(fun, push_one)


def _rules_by_place(
    fun: Primitive, rules: Sequence[Any], argnums: Iterable[int] | None
) -> dict[int, Any]:
    for rule in rules:
        if not (rule is None or rule == "same" or callable(rule)):
            raise ArgumentError(f"a rule of {name_of(fun)} is a function, not {rule!r:.60}")
    return dict(zip(count() if argnums is None else argnums, rules, strict=False))
