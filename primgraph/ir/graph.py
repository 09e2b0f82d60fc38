"""Graph: an immutable closed function in static single assignment form."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, final

import numpy as np

from primgraph.base.interpreter_limits import require_nesting
from primgraph.base.records import Fixed
from primgraph.base.user_lines import Source
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.dims import names_in
from primgraph.ir.frontend.containers import Form, bind_arguments, leaves_of
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.frontend.result_names import Title
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.index_maps import Dependence, Index, IndexMap, Opaque
from primgraph.ir.params import Nested, Params, bits
from primgraph.ir.primitive import Fact, Op, Primitive, lookup
from primgraph.ir.types import TensorType
from primgraph.ir.value import Value as Value
from primgraph.ir.value import record

# Parameters that hold the result of a literal: the number that all elements equal, the symbolic
# size that they equal, the array, and the axis along which they count; "" for other ops.
NUMBER: Fact[str] = Fact("number", "")
SIZE: Fact[str] = Fact("size", "")
ARRAY: Fact[str] = Fact("array", "")
COUNTED: Fact[str] = Fact("counted", "")


@final
@record
class Equation:
    """`outputs = op(*inputs, **params)`, and the line of the user's code it comes from.

    >>> equation = pg.trace(lambda x: pg.sum(x), pg.spec(3)).body[0]
    >>> equation.op.name, equation.params
    ('reduce_sum', (('axes', (0,)),))
    """

    op: Op
    inputs: tuple[Value, ...]
    params: Params
    outputs: tuple[Value, ...]
    source: Source | None = None

    @property
    def kwargs(self) -> dict[str, Any]:
        return dict(self.params)

    @property
    def is_derived(self) -> bool:
        """Whether a derivative has added the equation, and not the user's line itself."""
        return self.source is not None and self.source.is_derived

    @property
    def output(self) -> Value:
        """Single output, for an op with one."""
        return self.outputs[0]

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """Graphs among its parameters, in order: bodies of a loop or branch."""
        return tuple(_graphs_in(self.params)) if self.op.has_bodies else ()

    def applies_as(self, other: Equation) -> bool:
        """Return whether both apply the same op with the same parameters, bit by bit."""
        return self.op is other.op and bits(self.params) == bits(other.params)

    def dependence(self, k: int, i: int) -> Dependence:
        """Return what of operand `i` the elements of result `k` depend on; all for an operator."""
        if not isinstance(self.op, Primitive):
            return Opaque("it is an operator")
        operands, results = (tuple([v.type for v in vs]) for vs in (self.inputs, self.outputs))
        return self.op.dependence(k, i, operands, results, self.kwargs)

    @property
    def repeated_axes(self) -> tuple[int, ...]:
        """Axes of the result along which the operand is repeated, if nothing else is computed."""
        if not self.op.is_view or self.op.multiple:
            return ()
        rank, (x,) = len(self.outputs[0].shape), self.inputs
        if len(x.shape) >= rank:
            return ()
        found = self.dependence(0, 0)
        if not isinstance(found, IndexMap):
            return ()
        kept = [place.variable for place in found.operand if isinstance(place, Index)]
        return tuple([axis for axis in range(rank) if axis not in kept])

    @property
    def number(self) -> Any:
        """Number that all elements of the result equal, if a parameter holds it; else None."""
        return self.held(NUMBER)

    @property
    def size(self) -> Any:
        """Symbolic size that all elements of the result equal, or None."""
        return self.held(SIZE)

    @property
    def array(self) -> np.ndarray[Any, Any] | None:
        """Array that is the result, if a parameter holds it; else None."""
        found = self.held(ARRAY)
        return None if found is None else found.data

    @property
    def is_known(self) -> bool:
        """Whether a parameter holds the result, as a number or an array."""
        return self.number is not None or self.array is not None

    def has_fact(self, fact: Fact[Any]) -> bool:
        """Return whether the op, or one in the bodies, has a fact of that kind."""
        if self.op.fact(fact):
            return True
        return any(op.fact(fact) for body in self.bodies for op in body.ops)

    def held(self, fact: Fact[str]) -> Any:
        """Return the parameter that a fact of the op names, or None."""
        name = self.op.fact(fact)
        if name:
            for key, value in self.params:
                if key == name:
                    return value
        return None

    def __repr__(self) -> str:
        types = ", ".join(str(v.type) for v in self.inputs)
        return f"<equation {self.op.name}({types})>"


def _graphs_in(value: Any) -> Iterator[Graph]:
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from _graphs_in(inner)


def map_bodies(eqn: Equation, change: Callable[[Graph], Graph]) -> Equation:
    """Apply `change` to each body of an equation; return the equation itself if none changes."""
    if not eqn.op.has_bodies:
        return eqn
    params: Params = _map_graphs(eqn.params, change)
    if params is eqn.params:
        return eqn
    return Equation(eqn.op, eqn.inputs, params, eqn.outputs, eqn.source)


def _map_graphs(value: Any, change: Callable[[Graph], Graph]) -> Any:
    if isinstance(value, Graph):
        return change(value)
    if isinstance(value, tuple):
        parts = [_map_graphs(inner, change) for inner in value]
        same = all(a is b for a, b in zip(parts, value, strict=True))
        return value if same else tuple(parts)
    return value


@final
class Graph(Fixed, Drawn, Nested):
    """Immutable closed function: `inputs`, an ordered `body` of equations, `outputs`.

    `form` has the containers around the arguments and results of a traced function; None stands for
    lists. `titles` describe the outputs, one each, or are empty. Transforms drop both.

    Two graphs are equal if they compute the same thing in the same way: names, hints, titles,
    source lines and form do not count, ops, parameters (bit by bit), types and wiring do.

    >>> graph = pg.trace(lambda x: pg.sin(x) * x, pg.spec(3))
    >>> len(graph.body), [v.hint for v in graph.inputs]
    (2, ['x'])
    """

    __slots__ = (
        "_hash", "_nesting", "_notes", "_verified",
        "body", "form", "inputs", "name", "outputs", "titles",
    )  # fmt: skip

    inputs: tuple[Value, ...]
    body: tuple[Equation, ...]
    outputs: tuple[Value, ...]
    name: str
    form: Form | None
    titles: tuple[Title, ...]
    # Whether `verify_once` has checked it.
    _verified: bool
    # Cached results of analyses, by key.
    _notes: dict[Hashable, Any] | None
    _hash: int | None
    _nesting: int | None

    def __init__(
        self,
        inputs: Iterable[Value],
        body: Iterable[Equation],
        outputs: Iterable[Value],
        name: str = "f",
        form: Form | None = None,
        titles: tuple[Title, ...] = (),
    ) -> None:
        set_once = object.__setattr__
        set_once(self, "inputs", _in_a_row(inputs))
        set_once(self, "body", _in_a_row(body))
        set_once(self, "outputs", _in_a_row(outputs))
        set_once(self, "name", name)
        set_once(self, "form", form)
        set_once(self, "titles", titles)
        set_once(self, "_verified", False)
        set_once(self, "_notes", None)
        set_once(self, "_hash", None)
        set_once(self, "_nesting", None)

    def noted(self, key: Hashable) -> Any:
        """Return the note of a pass under `key`, or None.

        A pass over nested bodies that caches its results does not repeat them at each enclosing
        level.
        """
        return None if self._notes is None else self._notes.get(key)

    def note(self, key: Hashable, found: Any) -> None:
        """Cache the result of an analysis."""
        if self._notes is None:
            object.__setattr__(self, "_notes", {})
        assert self._notes is not None
        self._notes[key] = found

    def __len__(self) -> int:
        """Number of equations in the body."""
        return len(self.body)

    def __bool__(self) -> bool:
        return True

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.inputs)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.outputs)

    @property
    def has_bodies(self) -> bool:
        """Return whether an equation has bodies: a branch or loop."""
        return any(op.has_bodies for op in {eqn.op for eqn in self.body})

    @property
    def ops(self) -> frozenset[Op]:
        """Ops of its equations, bodies included."""
        found: frozenset[Op] | None = self.noted("ops")
        if found is None:
            own = {eqn.op for eqn in self.body}
            bodies = [b for e in self.body for b in e.bodies] if self.has_bodies else []
            found = frozenset(own.union(*[body.ops for body in bodies]))
            self.note("ops", found)
        return found

    @property
    def nesting(self) -> int:
        """Nesting depth of loops and branches."""
        if self._nesting is None:
            bodies = [body for eqn in self.body for body in eqn.bodies]
            found = max([body.nesting + 1 for body in bodies], default=0)
            object.__setattr__(self, "_nesting", found)
        assert self._nesting is not None
        return self._nesting

    @property
    def sizes(self) -> tuple[str, ...]:
        """Symbolic sizes in types and parameters, in order of first appearance."""
        noted: tuple[str, ...] | None = self.noted("sizes")
        if noted is None:
            noted = self._find_sizes()
            self.note("sizes", noted)
        return noted

    def _find_sizes(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        seen: set[TensorType] = set()
        for value in (*self.inputs, *(v for e in self.body for v in e.outputs)):
            if value.type not in seen:
                seen.add(value.type)
                found.update(dict.fromkeys(sorted(value.type.names)))
        for eqn in self.body:
            # For equations with operands, the types contain all sizes.
            if not eqn.inputs:
                found.update(dict.fromkeys(sorted(names_in(tuple(v for _, v in eqn.params)))))
        return tuple(found)

    @check_arguments
    def with_outputs(self, outputs: Iterable[Value]) -> Graph:
        """Return the graph with other outputs, which must be values of this graph."""
        kept = tuple(outputs)
        known = set(self.inputs).union(*(e.outputs for e in self.body))
        if not known.issuperset(kept):
            raise ShapeError("an output is not a value of the graph")
        return Graph(self.inputs, self.body, kept, self.name)

    def in_form(self, form: Form | None) -> Graph:
        """Return the graph with its inputs and outputs in the containers of `form`."""
        if form is self.form:
            return self
        return Graph(self.inputs, self.body, self.outputs, self.name, form, self.titles)

    def titled(self, titles: tuple[Title, ...]) -> Graph:
        """Return the graph with these titles of its outputs."""
        if titles == self.titles:
            return self
        return Graph(self.inputs, self.body, self.outputs, self.name, self.form, titles)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of arguments: the parameters of a traced function, else the inputs."""
        if self.form is not None:
            return self.form.parameters
        return tuple([v.hint or str(i) for i, v in enumerate(self.inputs)])

    def in_order(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the arguments of the inputs, from positional and keyword arguments.

        Raises `FeedError` for a missing, unknown or repeated parameter, and for containers that
        differ from those of the form.
        """
        found = bind_arguments(self.name, self.parameters, given, named)
        if self.form is None:
            return found
        pairs = zip(self.form.arguments, found, strict=True)
        return [leaf for (name, tree), item in pairs for leaf in leaves_of(tree, item, name)]

    def numbering(self) -> dict[Value, int]:
        """Number all values in order of definition: inputs first, then outputs of equations."""
        number: dict[Value, int] = {}
        for value in self.inputs:
            number[value] = len(number)
        for eqn in self.body:
            for value in eqn.outputs:
                number[value] = len(number)
        return number

    def _shape_of_computation(self) -> Iterator[Any]:
        number = self.numbering()
        yield self.input_types
        for eqn in self.body:
            inputs = tuple(number[v] for v in eqn.inputs)
            yield eqn.op.name, inputs, bits(eqn.params), tuple(v.type for v in eqn.outputs)
        yield tuple(number[v] for v in self.outputs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        if self is other:
            return True
        if len(self) != len(other):
            return False
        # The same objects, as after a pass that found nothing to do.
        ends = self.inputs == other.inputs and self.outputs == other.outputs
        if ends and all(map(operator.is_, self.body, other.body)):
            return True
        if hash(self) != hash(other):
            return False
        pairs = zip(self._shape_of_computation(), other._shape_of_computation(), strict=True)
        return all(mine == theirs for mine, theirs in pairs)

    def __hash__(self) -> int:
        """Hash of ops, parameters and types without the wiring, which is slow to hash and rarely
        differs alone."""
        if self._hash is None:
            steps = [
                (e.op.name, bits(e.params) if e.params else (), e.outputs[0].type)
                for e in self.body
            ]
            total = hash((self.input_types, self.output_types, tuple(steps)))
            object.__setattr__(self, "_hash", total)
        assert self._hash is not None
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        number = self.numbering()
        types = {t: i for i, t in enumerate(dict.fromkeys(v.type for v in number))}
        values = [(types[v.type], v.hint) for v in number]
        body = [
            (e.op.name, [number[v] for v in e.inputs], e.params, len(e.outputs), e.source)
            for e in self.body
        ]
        outputs = [number[v] for v in self.outputs]
        count = len(self.inputs)
        form, titles = self.form, self.titles
        return _restore, (self.name, list(types), values, count, body, outputs, form, titles)

    @property
    def constants(self) -> dict[str, np.ndarray[Any, Any]]:
        """Long constants, by the hashes that stand for them in the text of the graph.

        `primgraph.parse(str(graph), graph.constants)` returns an equal graph.
        """
        return beside[0](self)

    def __str__(self) -> str:
        return printer[0](self)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.input_types))
        outputs = ", ".join(map(str, self.output_types))
        return f"<graph {self.name}: ({inputs}) -> ({outputs}), {len(self)} equations>"


def _in_a_row(items: Iterable[Any]) -> tuple[Any, ...]:
    """Return `items` as a tuple. Raises `ArgumentError` for mappings, sets and text, without
    order."""
    if items.__class__ not in (tuple, list) and isinstance(items, Mapping | Set | str):
        raise ArgumentError(f"a graph is made of lists of values, not of {items!r:.60}")
    return tuple(items)


# The printer of graphs and its constants: the text module registers its functions here, as it
# imports this one.
printer: list[Callable[[Graph], str]] = [repr]
beside: list[Callable[[Graph], dict[str, np.ndarray[Any, Any]]]] = [lambda graph: {}]


def _restore(
    name: str,
    types: list[TensorType],
    values: list[tuple[int, str]],
    count: int,
    body: list[tuple[str, list[int], Params, int, Source | None]],
    outputs: list[int],
    form: Form | None = None,
    titles: tuple[Title, ...] = (),
) -> Graph:
    """Rebuild a graph from the flat form of `Graph.__reduce__`."""
    made = [Value(types[t], hint) for t, hint in values]
    equations = []
    defined = count
    for op, inputs, params, width, source in body:
        results = tuple(made[defined : defined + width])
        operands = tuple(made[i] for i in inputs)
        equations.append(Equation(lookup(op), operands, params, results, source))
        if equations[-1].bodies:
            # Only now is the recursion limit high enough for passes over it.
            require_nesting(1 + max(body.nesting for body in equations[-1].bodies))
        defined += width
    return Graph(made[:count], equations, (made[i] for i in outputs), name, form, titles)
