"""Kernels with `target="auto"`: calls go to the kernel of NumPy or of C that a choice holds."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.codegen.ir.limits import Limits, Options
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.kernel import Kernel, direct, in_form, is_native, kernel_of
from primgraph.codegen.native import cached_key
from primgraph.codegen.recipe import Recipe
from primgraph.codegen.runtime.toolchain.code_cache import is_stored
from primgraph.codegen.runtime.toolchain.graph_keys import is_of_users
from primgraph.codegen.tiered import background
from primgraph.codegen.tiered.choice import Choice, Job, Stage, wait_for_c
from primgraph.codegen.tiered.prior import RUNS, Prior
from primgraph.codegen.tiered.times import Times, keep_times, recall_times
from primgraph.errors import CompileError
from primgraph.ir.frontend.containers import Form
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.graph import Graph

Array = np.ndarray[Any, Any]


# C that saves this fraction of its compile time in one call is compiled before the first call.
_EARLY = 0.1


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The kernels of a graph, and the key of its C in the cache."""

    planned: Recipe
    compiled: Recipe
    key: str
    prior: Prior

    @property
    def name(self) -> str:
        return f"kernel {self.planned.graph.name}"

    @property
    def equations(self) -> int:
        return len(self.planned.graph.body)

    @property
    def cost(self) -> int:
        return self.prior.cost

    def numpy(self) -> Kernel:
        return kernel_of(self.planned)

    def native(self) -> Kernel:
        return kernel_of(self.compiled)

    def compile(self) -> Job:
        graph, options, limits = self.compiled.native_job()
        job = _submit(graph, options, limits)
        if len(graph.outputs) == 1:
            # Kernels of other containers return the only result in a list, or without one: their C
            # is the same, but has an entry of its own.
            _submit(graph, replace(options, alone=not options.alone), limits)
        return job

    def compile_into(self) -> Job:
        """Begin to compile the C that writes all results into arrays of the caller."""
        outputs = range(len(self.compiled.graph.outputs))
        return _submit(*self.compiled.native_job(outputs))

    def is_ready(self) -> bool:
        return is_stored(self.key)

    def pays(self) -> bool:
        return self.prior.saving() * RUNS >= self.prior.cost

    def keep(self, times: Times) -> None:
        keep_times(self.key, times)


def _submit(graph: Graph, options: Options, limits: Limits) -> Job:
    """Compile C in the background. Raises `CompileError` for a graph that cannot be sent."""
    try:
        # Containers may be classes that only this process knows.
        job = pickle.dumps((graph.in_form(None), options, limits))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise CompileError(f"the graph cannot be sent to another process: {error}") from error
    return background.submit(job)


def tiered_kernel(planned: Recipe, compiled: Recipe, prior: Prior) -> Kernel | None:
    """Return a kernel that runs `planned`, and `compiled` as soon as that is there and faster.

    Return None if C cannot be compiled in the background: in debug mode, for graphs that have no
    place in the cache, as they have primitives of the user, and without a compiler.
    """
    # The background process does not know primitives of the user.
    is_possible = background.is_possible() and not is_of_users(compiled.graph)
    key = cached_key(*compiled.native_job()) if is_possible else None
    if key is None:
        return None
    source = _Source(planned, compiled, key, prior)
    return TieredKernel(_first_choice(source), planned.graph.form)


def _first_choice(source: _Source) -> Choice:
    """Return the choice for a graph, as it is before the first call."""
    prior, times = source.prior, recall_times(source.key)
    if times.are_known and not times.is_c_faster:
        return Choice(source, times, source.numpy())
    if source.is_ready():
        return _choice_of_c(source, times)
    if prior.rough * RUNS >= prior.cost:
        background.expect(is_certain=True)
    saving = prior.saving() if prior.rough >= _EARLY * prior.cost else 0.0
    if saving >= prior.cost:
        # One call decides.
        return _choice_of_c(source, times)
    choice = Choice(source, times, source.numpy())
    if saving >= _EARLY * prior.cost or times.is_c_faster:
        choice.start()
    return choice


def _choice_of_c(source: _Source, times: Times) -> Choice:
    """Return a choice that begins with C, which may have to be compiled."""
    try:
        kernel, fault = source.native(), "a warning has said why"
        if is_native(kernel):
            return Choice(source, times, kernel)
    except CompileError as error:
        fault = error.message
    choice = Choice(source, times, source.numpy())
    choice.stay(fault)
    return choice


# Attributes of the kernel that runs.
_SHARED = ("graph", "style", "donated", "once", "handed", "_recipe", "_runner", "_code")


@final
@checked_methods("fill")
class TieredKernel(Kernel):
    """A kernel whose calls run NumPy or C, as a choice says.

    It is the kernel that runs in all but its calls, which are counted. Kernels of other forms share
    the choice.
    """

    __slots__ = ("_base", "_choice", "_form", "_into", "_kernel", "_run", "_target", "_told")

    # The kernel of the choice, the same in the form of this one, and its fast path.
    _base: Kernel | None
    _kernel: Kernel
    # What calls run.
    _target: Callable[..., Any]
    _run: Callable[..., Any]
    _choice: Choice
    _form: Form | None
    _told: list[Callable[[Kernel], None]]
    # The compilation of C that writes into arrays of the caller.
    _into: Job | None

    def __init__(self, choice: Choice, form: Form | None) -> None:
        for name in ("_base", "_into", "_flat"):
            object.__setattr__(self, name, None)
        for name, value in (("_choice", choice), ("_form", form), ("_told", [])):
            object.__setattr__(self, name, value)
        self.follow_choice()
        choice.listeners.add(self)

    def _run_direct(self, *arrays: Any) -> Any:
        return self._run(*arrays)

    def follow_choice(self) -> None:
        """Let calls run the kernel of the choice, and be timed or counted as it says."""
        choice = self._choice
        base, is_settled = choice.kernel, choice.stage is Stage.SETTLED
        kernel = self._kernel if base is self._base else in_form(base, self._form)
        run = direct(kernel) or _decline
        if not is_settled and run is not _decline:
            run = _timed(choice, run) if choice.is_timing else _counted(choice, run)
        fields: dict[str, Any] = {name: getattr(kernel, name) for name in _SHARED}
        call = kernel._call
        if not is_settled and call.direct is not None:
            call = call._replace(direct=self._run_direct)
        if is_native(kernel):
            kernel._runner.is_into_ready = self._is_into_ready
        target = kernel if is_settled else self._call_measured
        fields |= {"_call": call, "_base": base, "_run": run, "_kernel": kernel, "_target": target}
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        while is_settled and self._told:
            self._told.pop()(kernel)

    def _call_measured(self, *feeds: Any, **named: Any) -> Any:
        choice, kernel = self._choice, self._kernel
        if choice.is_timing or named:
            return choice.measured(kernel, *feeds, **named)
        found = kernel(*feeds)
        if next(choice.left):
            choice.tick(0, choice.epoch)
        return found

    def fill(
        self,
        arrays: Sequence[Array],
        handed: Sequence[Array],
        *,
        out: Sequence[Array | None] | None = None,
        borrow: bool = False,
    ) -> list[Array]:
        found: list[Array] = self._choice.measured(
            self._kernel.fill, arrays, handed, out=out, borrow=borrow
        )
        return found

    def _is_into_ready(self) -> bool:
        """Return whether the C is there that writes into arrays of the caller; begin to compile it.

        It is not that of other calls, and needed only by kernels that are called so.
        """
        if self._into is None:
            try:
                object.__setattr__(self, "_into", self._choice.source.compile_into())
            except (CompileError, OSError):
                return False
        assert self._into is not None
        return self._into.poll() == ""

    def wait(self, seconds: float | None = None) -> Self:
        wait_for_c(self._choice, seconds)
        return self

    @property
    def plan(self) -> Plan:
        return replace(self._kernel.plan, choice=self._choice.status)

    def _in_form(self, form: Form | None) -> Kernel:
        return TieredKernel(self._choice, form)

    def _when_settled(self, told: Callable[[Kernel], None]) -> None:
        if self._choice.stage is Stage.SETTLED:
            told(self._kernel)
        else:
            self._told.append(told)

    def __reduce__(self) -> tuple[Any, ...]:
        source: Any = self._choice.source
        recipes = source.planned, source.compiled
        return _rebuild, (*[r.in_form(self._form).parts for r in recipes], source.prior)


# Calls go to the target without a function of Python in between.
type.__setattr__(TieredKernel, "__call__", vars(TieredKernel)["_target"])


def _rebuild(planned: tuple[Any, ...], compiled: tuple[Any, ...], prior: Prior) -> Kernel:
    """Return the kernel that was pickled; it is NumPy's where no C can be compiled."""
    one, other = Recipe.from_parts(*planned), Recipe.from_parts(*compiled)
    return tiered_kernel(one, other, prior) or kernel_of(one)


def _timed(choice: Choice, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a fast path whose calls are timed."""
    clock, tick, epoch = choice.clock, choice.tick, choice.epoch

    def call_timed(*arrays: Any) -> Any:
        begun = clock()
        found = run(*arrays)
        if found is not None:
            tick(clock() - begun or 1, epoch)
        return found

    return call_timed


def _counted(choice: Choice, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a fast path whose calls are counted."""
    left, tick, epoch = choice.left, choice.tick, choice.epoch

    def call_counted(*arrays: Any) -> Any:
        found = run(*arrays)
        if found is not None and next(left):
            tick(0, epoch)
        return found

    return call_counted


def _decline(*arrays: Any) -> None:
    """Return None: there is no fast path."""
