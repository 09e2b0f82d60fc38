"""Programs: what a user builds, and which of them is being built."""

from __future__ import annotations

import unicodedata
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from primgraph.base.atomic import Exit
from primgraph.base.user_lines import Source, caller
from primgraph.defaults import get_default_dtype
from primgraph.errors import (
    ArgumentError,
    BoundsError,
    BuildError,
    DTypeError,
    FeedError,
    ShapeError,
    near_matches,
)
from primgraph.initializers import Constant, Initializer, Uniform, Xavier, first_array
from primgraph.ir.builder import Builder, origins
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.frontend.gradient_names import titles_of
from primgraph.ir.frontend.signature import checked, checked_methods
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import active_recorder, record_by_default_into
from primgraph.ir.text import to_text
from primgraph.ir.types import INT64, TensorType, as_dtype, as_shape, declared_shape
from primgraph.operators.call import Operator
from primgraph.operators.variable import Variable, checked_name
from primgraph.program.block import Block
from primgraph.program.scope import Scope, copied


@dataclass(frozen=True, slots=True)
class State:
    """A value that is kept in a scope between runs: a parameter, or what goes with one.

    `trainable` tells what optimizers change unless they are told otherwise.
    """

    name: str
    type: TensorType
    initializer: Initializer
    trainable: bool


@final
@checked_methods()
class Program(Drawn):
    """A program under construction: named inputs, and everything computed from them.

    As a context it is what `pg.data` and the operators build into. Programs nest and stand side
    by side; each grows only, so what was built or fetched once stays as it is.

        with pg.Program() as program:
            x = pg.data("x", shape=(3,))
            y = pg.tanh(x)

    Parameters are inputs whose values live in `scope`; `random_seed` decides what they hold at
    first, the same in every process.
    """

    def __init__(self, name: str = "program") -> None:
        self.builder = Builder(checked_name(name))
        self.builder.owner = "program"
        self.builder.written = True
        self.scope = Scope()
        self.states: dict[Value, State] = {}
        self.builder.kept = self.states
        self.updates: dict[Value, Value] = {}
        self.updated_at: dict[Value, Source] = {}
        self.kernels: dict[Any, Any] = {}
        self.starts: WeakKeyDictionary[Program, list[State]] = WeakKeyDictionary()
        self.keys_taken = 0
        self._seed = 0
        _programs[id(self.builder)] = self

    def __enter__(self) -> Program:
        self.builder.__enter__()
        return self

    def _leave(self) -> None:
        self.builder.__exit__()

    def _undoing(self) -> Callable[[], None]:
        return self.builder.undoing()

    __exit__ = Exit(_leave, _undoing)

    @property
    def name(self) -> str:
        return self.builder.name

    @property
    def inputs(self) -> dict[str, Variable]:
        """The inputs to be fed, by name, in the order of their declaration."""
        inputs = self.builder.inputs
        return {v.hint: Variable(self.builder, v) for v in inputs if v not in self.states}

    @property
    def random_seed(self) -> int:
        """What first values and dropout masks are drawn from; 0 unless set."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise ArgumentError(f"a seed is an integer, not {seed!r:.80}")
        self._seed = int(seed)

    def variable(self, name: str) -> Variable | None:
        """The input, parameter or named variable of that name, if there is one."""
        value = self.builder.named(name)
        if value is None:
            return None
        self.builder.claim(value)
        return Variable(self.builder, value)

    def variables(self) -> list[Variable]:
        """Handles on all values, in the order of their definition."""
        values = [*self.builder.inputs, *(v for e in self.builder.body for v in e.outputs)]
        for value in values:
            self.builder.claim(value)
        return [Variable(self.builder, v) for v in values]

    def operators(self) -> tuple[Equation, ...]:
        """All equations, in order."""
        return tuple(self.builder.body)

    def parameters(self) -> list[Variable]:
        """The trainable parameters, in the order of their creation."""
        return [Variable(self.builder, v) for v, s in self.states.items() if s.trainable]

    # The same by the names that Paddle's programs have for it, and one block for all.

    def all_parameters(self) -> list[Variable]:
        """`parameters`, as Paddle calls it."""
        return self.parameters()

    def list_vars(self) -> Iterator[Variable]:
        """`variables`, one after the other, as Paddle calls it."""
        return iter(self.variables())

    @property
    def num_blocks(self) -> int:
        """1: loops and branches are unrolled or chosen by `pg.where`."""
        return 1

    def global_block(self) -> Block[Program]:
        """The one block of the program, with `ops`, `vars` and `var(name)`."""
        return Block(self)

    def current_block(self) -> Block[Program]:
        """The one block of the program."""
        return Block(self)

    def block(self, index: int) -> Block[Program]:
        """The block of that index, which is 0. Raises `BoundsError` for another one."""
        if index != 0:
            raise BoundsError(f"a program has one block, and none at {index}")
        return Block(self)

    @property
    def blocks(self) -> list[Block[Program]]:
        """The one block, in a list."""
        return [Block(self)]

    def graph(self, outputs: Sequence[Variable] | None = None) -> Graph:
        """What the program computes, as a graph, with all its inputs and parameters.

        By default the outputs are the values that nothing else is computed from. Of an equation
        with several results, such as a loop, only those that somebody has been given count.
        """
        given: Any = outputs
        if isinstance(given, Variable):
            hint = "write program.graph([y]) for one output y"
            raise ArgumentError("graph: outputs is a list of variables, not a variable", hint=hint)
        if outputs is not None:
            values = [self.own(v).value for v in outputs]
            return self.builder.part(self.builder.inputs, values, self.name)
        used = {v for eqn in self.builder.body for v in eqn.inputs}
        ends = [v for eqn in self.builder.body for v in self._ends(eqn, used)]
        return self.builder.graph(ends, self.name).titled(titles_of(self.builder, ends))

    def _ends(self, eqn: Equation, used: set[Value]) -> list[Value]:
        """Return the results of `eqn` that are outputs of the whole program."""
        unused = [v for v in eqn.outputs if v not in used]
        held = [v for v in unused if self.builder.is_held(v)]
        return held if held or len(unused) < len(eqn.outputs) else unused

    def own(self, variable: Any) -> Variable:
        """`variable`, if it is one of this program.

        Raises `ArgumentError` for what is no variable, `BuildError` for another program's.
        """
        if not isinstance(variable, Variable):
            raise ArgumentError(f"a variable is needed, not {variable!r:.80}")
        if variable.recorder is not self.builder:
            title = getattr(variable.recorder, "title", "a graph")
            raise BuildError(
                f"{variable!r} belongs to another program, {title}, not to {self.builder.title}"
            )
        return variable

    # State.

    def state(
        self, name: str, type: TensorType, initializer: Initializer, trainable: bool = False
    ) -> Variable:
        """A new value that is kept between runs, by a name that no other value has."""
        _refuse_twin(self.builder, checked_name(name))
        if not callable(initializer):
            raise ArgumentError(f"an initializer is a function, not {initializer!r:.80}")
        if type.names:
            raise ShapeError(
                f"{name!r} is {type}: what is kept between runs has extents that are known",
                hint="sizes are those of arrays that are fed",
            )
        value = self.builder.input(type, name)
        state = self.states[value] = State(name, type, initializer, trainable)
        default_startup_program().starts.setdefault(self, []).append(state)
        return Variable(self.builder, value)

    def free_name(self, stem: str) -> str:
        """`stem`, or `stem_1` and so on: the first that is no name, nor one up to a dot."""
        taken = {part for n in self.builder.names for part in (n, n.partition(".")[0])}
        name, count = stem, 0
        while name in taken:
            count += 1
            name = f"{stem}_{count}"
        return name

    def update(self, state: Variable, new: Variable) -> None:
        """Let every run end by storing `new` as the value of `state`.

        All updates of a run see the values from before it. A later update of the same state
        takes the place of the earlier one. Raises `BuildError` for what is no state of this
        program, `ShapeError` for another type.
        """
        if self.own(state).value not in self.states:
            raise BuildError(f"{state!r} is not a parameter of this program")
        if self.own(new).type != state.type:
            raise ShapeError(f"{state.name!r} is {state.type} and cannot become {new.type}")
        self.updates[state.value] = new.value
        self.updated_at[state.value] = caller()

    def next_value(self, state: Variable) -> Variable:
        """What `state` holds after a run: its update so far, or itself if it has none."""
        value = self.own(state).value
        return Variable(self.builder, self.updates.get(value, value))

    def next_key(self) -> Variable:
        """An integer for random operators: another one at each call, and at each run.

        Keys follow one another from a state whose first value is drawn from `random_seed`, which
        may thus be set until the first run.
        """
        counter = self.variable("random_counter")
        if counter is None:
            first = Uniform(0.0, 2.0**62)
            counter = self.state("random_counter", TensorType((), INT64), first)
            self.update(counter, counter + _KEYS_OF_A_RUN)
        self.keys_taken += 1
        return counter + self.keys_taken

    def initialize(self, scope: Scope | None = None) -> None:
        """Give every state of `scope`, by default the program's own, its first value again."""
        chosen = self.scope if scope is None else scope
        chosen.put({s.name: self.first_value(s) for s in self.states.values()})

    def start(self, scope: Scope | None = None) -> None:
        """Give the states that were created under this startup program their first values again.

        They go into `scope`, by default that of the program of each.
        """
        for program, states in list(self.starts.items()):
            chosen = program.scope if scope is None else scope
            chosen.put({s.name: program.first_value(s) for s in states})

    def first_value(self, state: State) -> np.ndarray[Any, Any]:
        """What `state` holds before any run: a function of seed, name, shape and dtype.

        Raises `ArgumentError` if its initializer gives another shape or another kind of dtype.
        """
        key = (self._seed % 2**64, zlib.crc32(state.name.encode()))
        rng = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64)))
        try:
            return first_array(state.initializer, state.type.shape, state.type.dtype, rng)
        except ArgumentError as error:
            raise ArgumentError(
                f"the initializer of {state.name!r} does not fit {state.type}: {error.message}",
                origin=self._declaration(state),
                hint=error.hint,
            ) from None

    def _declaration(self, state: State) -> list[str]:
        """The line for an error that tells where `state` was made."""
        value = self.builder.names.get(state.name)
        place = None if value is None else self.builder.declared_at.get(value)
        return [] if place is None else [f"{state.name!r} is declared at {place}   {place.text}"]

    def state_dict(self, scope: Scope | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of the values of all states, by name; first values where nothing ran yet.

        They are those of one moment, also while other threads train.
        """
        chosen = self.scope if scope is None else scope
        reading = chosen.read()
        held = reading.version.arrays
        return {
            s.name: held[s.name].copy() if s.name in held else self.first_value(s)
            for s in self.states.values()
        }

    def set_state_dict(self, values: Mapping[str, Any], scope: Scope | None = None) -> None:
        """Store `values` by name; states that are not named keep theirs.

        Raises `FeedError` for a name that is no state, a wrong shape or a wrong kind of dtype;
        nothing is stored then.
        """
        chosen = self.scope if scope is None else scope
        known = {s.name: s.type for s in self.states.values()}
        unknown = [n for n in values if n not in known]
        if unknown:
            raise FeedError(
                f"the program has no states named {', '.join(map(repr, unknown))}",
                hint=near_matches(unknown[0], known),
            )
        chosen.put({name: copied(name, value, known[name]) for name, value in values.items()})

    def clone(self, for_test: bool = False) -> Program:
        """A program of its own with the same variables, in the same scope.

        With `for_test`, dropout passes everything, normalisation uses its running statistics,
        and runs update nothing. Derivatives that were taken before stay those of training.
        """
        other = Program(self.name)
        other.scope, other._seed = self.scope, self._seed
        moved: dict[Value, Value] = {}
        for value in self.builder.inputs:
            other.builder.source = self.builder.declared_at[value]
            moved[value] = other.builder.input(value.type, value.hint)
            other.builder.source = None
            if value in self.states:
                other.states[moved[value]] = self.states[value]
        for eqn in self.builder.body:
            operands = tuple(moved[v] for v in eqn.inputs)
            if for_test and isinstance(eqn.op, Operator) and "training" in eqn.kwargs:
                params = {**eqn.kwargs, "training": False}
                other.builder.source = eqn.source
                results = other.builder.emit(eqn.op, operands, params, distinct=True)
                other.builder.source = None
            else:
                results = other.builder.copy_distinct(eqn, operands)
            moved.update(zip(eqn.outputs, results, strict=True))
        for name, value in self.builder.names.items():
            other.builder.names.setdefault(name, moved[value])
            moved[value].hint = moved[value].hint or name
        if not for_test:
            other.updates = {moved[s]: moved[n] for s, n in self.updates.items()}
            other.updated_at = {moved[s]: place for s, place in self.updated_at.items()}
        other.builder.stopped.update(moved[v] for v in self.builder.stopped)
        other.keys_taken = self.keys_taken
        return other

    def __copy__(self) -> Program:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> Program:
        """A clone with a scope of its own."""
        other = self.clone()
        other.scope = Scope()
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


# How far apart the keys of one run and of the next are: no program draws from so many.
_KEYS_OF_A_RUN = 2**20


class HiddenProgramWarning(UserWarning):
    """Something is built into the program that is there from the start, where none is entered."""


_told: list[bool] = []


def _tell_of_hidden_program() -> None:
    """Say once in a process that there is a program which nobody has made."""
    if not _told:
        _told.append(True)
        place = caller()
        warnings.warn_explicit(
            "no program is entered: pg.data builds into pg.default_main_program(), which goes on "
            "growing, and in a notebook knows the names of all former runs of a cell; write "
            "`with pg.Program() as program:` around it",
            HiddenProgramWarning,
            place.file,
            place.line,
        )


_programs: WeakValueDictionary[int, Program] = WeakValueDictionary()
_main: list[Program] = [Program("main")]
record_by_default_into(lambda: _main[0].builder)
_startup: ContextVar[Program] = ContextVar("startup", default=Program("startup"))  # noqa: B039


def default_main_program() -> Program:
    """The program that is being built: the innermost one that is entered.

    Where none is, it is one that is there from the start.

    >>> with pg.Program() as program:
    ...     pg.default_main_program() is program
    True
    """
    return _programs.get(id(active_recorder())) or _main[0]


def default_startup_program() -> Program:
    """The program whose run gives what is created now, in any program, its first values.

    Running it is not needed: a state that has no value yet gets its first one when it is used.
    """
    return _startup.get()


def current_program() -> Program:
    """The program that is being built.

    Raises `BuildError` where a function is traced or a bare builder is entered: those have
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
    """Whether a variable is of a program, rather than of a traced function."""
    return id(variable.recorder) in _programs


def program_of(variable: Variable) -> Program:
    """The program that `variable` belongs to. Raises `BuildError` if it belongs to none."""
    program = _programs.get(id(variable.recorder))
    if program is None:
        raise BuildError(f"{variable!r} belongs to a traced function, not to a program")
    return program


@checked
@contextmanager
def program_guard(program: Program, startup: Program | None = None) -> Iterator[Program]:
    """Build into `program` inside this context.

    Parameters and other states made in it get their first values again by each run of `startup`;
    without it, of the startup program that counted before. Raises `ArgumentError` for anything
    but a `Program`.

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


@checked
def data(name: str, shape: Any, dtype: Any = None) -> Variable:
    """Declare an input of the program being built, to be fed by `name` at each run.

    `shape` is an integer or a sequence of integers, `dtype` the default dtype unless given. An
    extent that is known only when arrays are fed has a name, as in `("N", 3)`, or is an expression
    in such, as `"2*N+1"`; the same name is the same extent everywhere. None and -1 stand for one
    that has a name of its own.
    Raises `BuildError` for a name that is taken, looks like one that is, or cannot be seen;
    `ShapeError` for a negative extent; `DTypeError` for an unsupported dtype.

    >>> with pg.Program() as program:
    ...     y = 2.0 * pg.data("x", (2,))
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [y])
    [array([2., 4.])]
    """
    if active_recorder() is _main[0].builder:
        _tell_of_hidden_program()
    return declared(name, shape, dtype)


def declared(name: str, shape: Any, dtype: Any = None) -> Variable:
    """`data`, which says nothing where no program has been entered."""
    builder = active_recorder()
    if not isinstance(builder, Builder):
        raise BuildError("inputs are declared in a program, not in an operator's decomposition")
    _refuse_twin(builder, checked_name(name))
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    taken = frozenset().union(*(v.type.names for v in builder.inputs))
    extents = declared_shape(shape, name, taken)
    return Variable(builder, builder.input(TensorType(extents, chosen), name))


@checked
def create_parameter(
    shape: Any,
    dtype: Any = None,
    name: str | None = None,
    initializer: Initializer | Callable[..., Any] | None = None,
    is_bias: bool = False,
) -> Variable:
    """A new trainable parameter of the program being built.

    Its value lives in the program's scope and is made at first use by `initializer`: Xavier's
    rule, or zeros for a bias, unless given. Raises `BuildError` for a name that is taken,
    `DTypeError` for other dtypes than floats, `ArgumentError` for what is no initializer.

    >>> with pg.Program() as program:
    ...     w = pg.create_parameter((2,), "float64", "w", pg.initializers.Constant(1.0))
    >>> pg.Executor().run(program, {}, [2.0 * w])
    [array([2., 2.])]
    """
    program = current_program()
    type, rule = parameter_kind(shape, dtype, initializer, is_bias)
    stem = "bias" if is_bias else "weight"
    chosen = program.free_name(stem) if name is None else name
    return program.state(chosen, type, rule, trainable=True)


def parameter_kind(
    shape: Any, dtype: Any, initializer: Initializer | Callable[..., Any] | None, is_bias: bool
) -> tuple[TensorType, Initializer]:
    """The type and the initializer of a parameter: Xavier's rule, or zeros for a bias, if None."""
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    if chosen.kind != "f":
        raise DTypeError(
            f"a parameter is of a float dtype, not {chosen}",
            hint="optimizers change parameters; Program.state makes values that they leave alone",
        )
    if initializer is not None and not callable(initializer):
        raise ArgumentError(
            f"an initializer is a function of shape, dtype and generator, not {initializer!r:.80}",
            hint=f"write pg.initializers.{_initializer_of(initializer)}(...) of it",
        )
    rule = initializer or (Constant(0.0) if is_bias else Xavier())
    return TensorType(as_shape(shape), chosen), rule


def _initializer_of(given: Any) -> str:
    return "Constant" if isinstance(given, int | float) else "Assign"


def _refuse_twin(builder: Builder, name: str) -> None:
    """Refuse a name that is taken, or that only a computer could tell from one that is."""
    folded = unicodedata.normalize("NFKC", name)
    for other in builder.names:
        if other == name:
            raise BuildError(
                f"the program has an input or variable named {name!r} already",
                origin=origins([(builder, builder.names[name])]),
                hint=f"reuse that variable, or choose another name than {name!r}",
            )
        if unicodedata.normalize("NFKC", other) == folded:
            raise BuildError(f"the name {name!r} looks like {other!r}, which is taken")
