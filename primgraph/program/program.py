"""Programs, and the stack of programs being built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from primgraph.base.atomic import Exit
from primgraph.base.locks import cached_property
from primgraph.base.providers import late
from primgraph.base.user_lines import Source, caller
from primgraph.errors import ArgumentError, BoundsError, BuildError, PrimgraphError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.frontend.gradient_names import titles_of
from primgraph.ir.frontend.signature import check_arguments, checked_methods
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import active_recorder, record_by_default_into, recording
from primgraph.ir.text import to_text
from primgraph.ir.types import INT64, TensorType
from primgraph.operators.call import evaluation_params
from primgraph.operators.variable import Variable, checked_name, refuse_twin
from primgraph.program.block import Block

if TYPE_CHECKING:
    from primgraph import initializers
    from primgraph.program import scope as scopes
else:
    initializers = late("primgraph.initializers")
    scopes = late("primgraph.program.scope")


def _new_scope(program: Program) -> scopes.Scope:
    """Return the arrays of the states, in runs without a scope of their own."""
    return scopes.Scope()


@checked_methods()
class Program(Drawn):
    """Program under construction: named inputs, and all values computed from them.

    Within `with program:`, `pg.data` and the operators add to it. Programs can be nested. A program
    only grows: variables that were built or fetched stay valid.

    Parameters are inputs whose values live in `scope`; `random_seed` decides what they hold at
    first, the same in every process.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (2,))
    ...     y = x * x
    >>> pg.Executor().run(program, {"x": [1.0, 3.0]}, [y])
    [array([1., 9.])]
    """

    scope = cached_property(_new_scope)

    def __init__(self, name: str = "program") -> None:
        self.builder = Builder(checked_name(name))
        self.builder.owner = "program"
        self.builder.written = True
        self.states: dict[Value, scopes.State] = {}
        self.builder.kept = self.states
        self.updates: dict[Value, Value] = {}
        self.updated_at: dict[Value, Source] = {}
        self.kernels: dict[Any, Any] = {}
        self.starts: MutableMapping[Program, list[scopes.State]] = {}
        self.keys_taken = 0
        self._seed = 0
        _programs[id(self.builder)] = self

    def __enter__(self) -> Program:
        self.builder.__enter__()
        return self

    __exit__ = Exit(lambda self: self.builder.__exit__(), lambda self: self.builder.undoing())

    @property
    def name(self) -> str:
        return self.builder.name

    @property
    def inputs(self) -> dict[str, Variable]:
        """Inputs to be fed, by name, in the order of declaration."""
        inputs = self.builder.inputs
        return {v.hint: Variable(self.builder, v) for v in inputs if v not in self.states}

    @property
    def random_seed(self) -> int:
        """The seed of initial values and dropout masks; 0 by default."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        self._seed = _checked_seed(seed)

    def variable(self, name: str) -> Variable | None:
        """Return the input, parameter or variable named `name`, or None."""
        value = self.builder.named(name)
        return None if value is None else _claimed(self.builder, value)

    def variables(self) -> list[Variable]:
        """Return all variables, in the order of their definition."""
        values = [*self.builder.inputs, *(v for e in self.builder.body for v in e.outputs)]
        return [_claimed(self.builder, v) for v in values]

    def operators(self) -> tuple[Equation, ...]:
        """Return all equations, in order."""
        return tuple(self.builder.body)

    def parameters(self) -> list[Variable]:
        """Return the trainable parameters, in the order of their creation."""
        return [Variable(self.builder, v) for v, s in self.states.items() if s.trainable]

    # Paddle's names, with a single block.

    all_parameters = parameters

    def list_vars(self) -> Iterator[Variable]:
        """Iterate over `variables()`; Paddle's name."""
        return iter(self.variables())

    @property
    def num_blocks(self) -> int:
        """Always 1: loops and branches are equations that contain graphs."""
        return 1

    def global_block(self) -> Block[Program]:
        """Return the only block, with `ops`, `vars` and `var(name)`; Paddle's name."""
        return Block(self)

    current_block = global_block

    def block(self, index: int) -> Block[Program]:
        """Return the block at `index`, which must be 0. Raises `BoundsError` otherwise."""
        if index != 0:
            raise BoundsError(f"a program has one block, and none at {index}")
        return Block(self)

    @property
    def blocks(self) -> list[Block[Program]]:
        """The single block, in a list."""
        return [Block(self)]

    def graph(self, outputs: Sequence[Variable] | None = None) -> Graph:
        """Return the graph of the program, with all its inputs and parameters.

        By default the outputs are the values that nothing else is computed from. Where some results
        of an equation, such as a loop, are used, the others are no outputs; of derivatives, those
        that were asked for are, and so is every value with a name.
        """
        if outputs is not None:
            _require_list(outputs)
            values = [self.own(v).value for v in outputs]
            return self.builder.part(self.builder.inputs, values, self.name)
        used = {v for eqn in self.builder.body for v in eqn.inputs}
        ends = [v for eqn in self.builder.body for v in _ends(self.builder, eqn, used)]
        return self.builder.graph(ends, self.name).titled(titles_of(self.builder, ends))

    def own(self, variable: Any) -> Variable:
        """Return `variable` if it belongs to this program.

        Raises `ArgumentError` for other objects, `BuildError` for another program's variable.
        """
        if not isinstance(variable, Variable) or variable.recorder is not self.builder:
            raise _ownership_error(variable, self.builder)
        return variable

    def state(
        self, name: str, type: TensorType, initializer: initializers.Initializer,
        trainable: bool = False,
    ) -> Variable:  # fmt: skip
        """Create a state: a value that is kept between runs, under a unique name."""
        refuse_twin(self.builder, checked_name(name))
        _require_state(name, type, initializer)
        value = self.builder.input(type, name)
        state = self.states[value] = scopes.State(name, type, initializer, trainable)
        _start_by_default(self, state)
        return Variable(self.builder, value)

    def free_name(self, stem: str) -> str:
        """Return the first of `stem`, `stem_1`, ... that is no name, nor one up to a dot."""
        return scopes.first_free_name(self.builder.names, stem)

    def update(self, state: Variable, new: Variable) -> None:
        """Store `new` as the value of `state` at the end of each run.

        All updates of a run read the values before it. A later update of the same state replaces
        the earlier one. Raises `BuildError` if it is no state of this program, `ShapeError` for
        another type.
        """
        _require_update(self, state, new)
        self.updates[state.value] = new.value
        self.updated_at[state.value] = caller()

    def next_value(self, state: Variable) -> Variable:
        """Return the value of `state` after a run: its update, or itself if it has none."""
        value = self.own(state).value
        return Variable(self.builder, self.updates.get(value, value))

    def next_key(self) -> Variable:
        """Return an integer key for random operators: another one at each call and each run.

        Keys count from a state, in branches and loops too, whose initial value is drawn from
        `random_seed`, so the seed may be set until the first run.
        """
        self.keys_taken += 1
        with recording(self.builder):
            counter = self.variable("random_counter")
            return (_new_counter(self) if counter is None else counter) + self.keys_taken

    def initialize(self, scope: scopes.Scope | None = None) -> None:
        """Reset every state of `scope`, by default the program's own, to its initial value."""
        chosen = self.scope if scope is None else scope
        chosen.put({s.name: self.first_value(s) for s in self.states.values()})

    def start(self, scope: scopes.Scope | None = None) -> None:
        """Reset the states that were created under this startup program to their initial values.

        They are stored in `scope`, by default in the scope of each state's program.
        """
        for program, states in list(self.starts.items()):
            chosen = program.scope if scope is None else scope
            chosen.put({s.name: program.first_value(s) for s in states})

    def first_value(self, state: scopes.State) -> np.ndarray[Any, Any]:
        """Return the initial value of `state`, a function of seed, name, shape and dtype.

        Raises `ArgumentError` if its initializer returns another shape or another kind of dtype.
        """
        try:
            return scopes.initial_value(state, self._seed)
        except ArgumentError as error:
            raise error.located(_declaration(self.builder, state)) from None

    def state_dict(self, scope: scopes.Scope | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of the values of all states, by name; initial values before the first run.

        They are from one moment, even while other threads train.
        """
        chosen = self.scope if scope is None else scope
        reading = chosen.read()
        held = reading.version.arrays
        return {
            s.name: held[s.name].copy() if s.name in held else self.first_value(s)
            for s in self.states.values()
        }

    def set_state_dict(self, values: Mapping[str, Any], scope: scopes.Scope | None = None) -> None:
        """Store `values` by name; other states keep their values.

        Raises `FeedError` for a name that is no state, a wrong shape or a wrong kind of dtype; then
        nothing is stored.
        """
        chosen = self.scope if scope is None else scope
        known = {s.name: s.type for s in self.states.values()}
        scopes.require_known(values, known, "the program has no states named")
        chosen.put({n: scopes.copy_for_scope(n, value, known[n]) for n, value in values.items()})

    def clone(self, for_test: bool = False) -> Program:
        """Return a copy of the program with the same variables and the same scope.

        With `for_test`, dropout passes everything, normalization uses its running statistics, and
        runs update nothing. Derivatives that were taken before stay those of training.
        """
        return _cloned(self, for_test)

    def __copy__(self) -> Program:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> Program:
        """Clone the program with a new scope."""
        other = self.clone()
        other.scope = scopes.Scope()
        other.scope.put(self.scope.snapshot())
        return other

    def __reduce__(self) -> str:
        raise BuildError(
            "a Program cannot be pickled", hint="write it to a file with pg.save(program, path)"
        )

    def __str__(self) -> str:
        return to_text(self.graph())

    def __repr__(self) -> str:
        names = ", ".join(f"{n}: {v.type}" for n, v in self.inputs.items())
        return f"<Program {self.name!r} ({names}), {len(self.builder)} equations>"


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ArgumentError(f"a seed is an integer, not {seed!r:.80}")
    return int(seed)


def _claimed(builder: Builder, value: Value) -> Variable:
    """Return a variable for `value`, which a user holds from now on."""
    builder.claim(value)
    return Variable(builder, value)


def _require_list(outputs: Any) -> None:
    """Raise for a variable in the place of a list of variables."""
    if isinstance(outputs, Variable):
        hint = "write program.graph([y]) for one output y"
        raise ArgumentError("graph: outputs is a list of variables, not a variable", hint=hint)


def _require_update(program: Program, state: Variable, new: Variable) -> None:
    """Raise for a variable that is no state, and for a new value of another type."""
    if program.own(state).value not in program.states:
        raise BuildError(f"{state!r} is not a parameter of this program")
    if program.own(new).type != state.type:
        raise ShapeError(f"{state.name!r} is {state.type} and cannot become {new.type}")


def _new_counter(program: Program) -> Variable:
    """Return a new state from which random keys count."""
    counter = program.state(
        "random_counter", TensorType((), INT64), initializers.Uniform(0.0, 2.0**62)
    )
    program.update(counter, counter + _KEYS_OF_A_RUN)
    return counter


def _ends(builder: Builder, eqn: Equation, used: set[Value]) -> list[Value]:
    """Return the results of `eqn` that are outputs of the whole program."""
    unused = [v for v in eqn.outputs if v not in used]
    is_part = len(unused) < len(eqn.outputs)
    if is_part and not eqn.is_derived:
        return [v for v in unused if v.hint]
    # The derivative of a loop has results that were asked for, and some that nobody has.
    held = [v for v in unused if builder.is_held(v)]
    return held if held or is_part else unused


def _cloned(program: Program, for_test: bool) -> Program:
    """Return a copy of `program` with the same scope; see `Program.clone`."""
    other = type(program)(program.name)
    other.scope, other._seed = program.scope, program._seed
    moved: dict[Value, Value] = {}
    for value in program.builder.inputs:
        other.builder.source = program.builder.declared_at[value]
        moved[value] = other.builder.input(value.type, value.hint)
        other.builder.source = None
        if value in program.states:
            other.states[moved[value]] = program.states[value]
    for eqn in program.builder.body:
        operands = tuple(moved[v] for v in eqn.inputs)
        params = evaluation_params(eqn.op, eqn.kwargs) if for_test else None
        if params is not None:
            other.builder.source = eqn.source
            results = other.builder.emit(eqn.op, operands, params, distinct=True)
            other.builder.source = None
        else:
            results = other.builder.copy_distinct(eqn, operands)
        moved.update(zip(eqn.outputs, results, strict=True))
    for name, value in program.builder.names.items():
        other.builder.names.setdefault(name, moved[value])
        moved[value].hint = moved[value].hint or name
    if not for_test:
        other.updates = {moved[s]: moved[n] for s, n in program.updates.items()}
        other.updated_at = {moved[s]: place for s, place in program.updated_at.items()}
    other.builder.stopped.update(moved[v] for v in program.builder.stopped)
    other.keys_taken = program.keys_taken
    return other


def _declaration(builder: Builder, state: scopes.State) -> list[str]:
    """Return the line for an error: where `state` was declared."""
    value = builder.names.get(state.name)
    place = None if value is None else builder.declared_at.get(value)
    return [] if place is None else [f"{state.name!r} is declared at {place}   {place.text}"]


def _ownership_error(variable: Any, builder: Builder) -> PrimgraphError:
    """Return the error for a variable of another program, or for another object."""
    if not isinstance(variable, Variable):
        return ArgumentError(f"a variable is needed, not {variable!r:.80}")
    title = getattr(variable.recorder, "title", "a graph")
    return BuildError(f"{variable!r} belongs to another program, {title}, not to {builder.title}")


def _require_state(name: str, type: TensorType, initializer: Any) -> None:
    """Raise for an initializer that is no function, and for unknown extents."""
    if not callable(initializer):
        raise ArgumentError(f"an initializer is a function, not {initializer!r:.80}")
    if type.names:
        raise ShapeError(
            f"{name!r} is {type}: what is kept between runs has extents that are known",
            hint="sizes are those of arrays that are fed",
        )


# Distance between the keys of successive runs: no program draws that many.
_KEYS_OF_A_RUN = 2**20


_programs: WeakValueDictionary[int, Program] = WeakValueDictionary()
_main: list[Program] = [Program("main")]
record_by_default_into(lambda: _main[0].builder)
_startup: ContextVar[Program] = ContextVar("startup", default=Program("startup"))  # noqa: B039


def is_default_main(recorder: object) -> bool:
    """Return whether `recorder` is that of the global default program."""
    return recorder is _main[0].builder


def default_main_program() -> Program:
    """Return the program that is being built: the innermost one that is entered.

    Outside of all, it is a global default program.

    >>> with pg.Program() as program:
    ...     pg.default_main_program() is program
    True
    """
    return _programs.get(id(active_recorder())) or _main[0]


def default_startup_program() -> Program:
    """Return the program whose run initializes parameters and states created from now on.

    Running it is not needed: a state that has no value yet gets its first one when it is used.

    >>> startup = pg.Program()
    >>> with pg.program_guard(pg.Program(), startup):
    ...     pg.default_startup_program() is startup
    True
    """
    return _startup.get()


def _start_by_default(program: Program, state: scopes.State) -> None:
    """Let the default startup program, until then with a plain dict, reset a state of `program`."""
    startup = default_startup_program()
    startup.starts = startup.starts or WeakKeyDictionary()
    startup.starts.setdefault(program, []).append(state)


def current_program() -> Program:
    """Return the program being built.

    Raises `BuildError` while a function is traced or a bare builder is entered, as these have
    neither parameters nor state.
    """
    program = _programs.get(id(active_recorder()))
    if program is None:
        raise BuildError(
            "parameters belong to a program, and none is being built here",
            hint="enter one: `with pg.Program() as program:`",
        )
    return program


def belongs_to_program(variable: Variable) -> bool:
    """Return whether a variable belongs to a program, not to a traced function."""
    return id(variable.recorder) in _programs


def program_recorded_by(recorder: object) -> Program | None:
    """Return the program that `recorder` records, or None."""
    return _programs.get(id(recorder))


def program_of(variable: Variable) -> Program:
    """Return the program of `variable`. Raises `BuildError` if it belongs to none."""
    program = program_recorded_by(variable.recorder)
    if program is None:
        raise BuildError(f"{variable!r} belongs to a traced function, not to a program")
    return program


@check_arguments
@contextmanager
def program_guard(program: Program, startup: Program | None = None) -> Iterator[Program]:
    """Build into `program` within this context.

    Each run of `startup` resets the parameters and other states made in it to their initial values;
    by default, of the current startup program. Raises `ArgumentError` for anything but a `Program`.

    >>> program = pg.Program("square")
    >>> with pg.program_guard(program):
    ...     y = pg.data("x", (2,)) ** 2
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [y])
    [array([1., 4.])]
    """
    before = _startup.get()
    try:
        _startup.set(_startup.get() if startup is None else startup)
        with program:
            yield program
    finally:
        _startup.set(before)
