"""Synchronous training over chunks: distributed gradients, one update, checkpoints."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, final

import numpy as np

from primgraph.base.files import open_regular
from primgraph.distributed.chunks import split_feed
from primgraph.distributed.engine import Engine, engine_of
from primgraph.distributed.kernels import Kernels
from primgraph.distributed.plans import warn_early
from primgraph.distributed.summands import step_of_program, sums_of
from primgraph.distributed.tasks import write_atomically
from primgraph.errors import ArgumentError, BuildError, LoadError, OptionError, ShapeError
from primgraph.ir.frontend.signature import call_user_function
from primgraph.operators.variable import Variable
from primgraph.program.archives import DAMAGE, Members, pack_arrays, parse_json
from primgraph.program.compile import compile_kernel
from primgraph.program.program import Program
from primgraph.training.progress import progress as shown

Array: TypeAlias = "np.ndarray[Any, Any]"
T = TypeVar("T")

# Members of a checkpoint: metadata of the training, and states by name.
_STATE = "state "
_MEMBER = re.compile(rf"about\.npy|{_STATE}.+\.npy", re.DOTALL)


@final
@dataclass
class _Place:
    """Progress of training: finished epochs, steps of the current one, and losses."""

    steps: int = 0
    losses: list[float] = field(default_factory=list)
    history: list[float] = field(default_factory=list)


def fit(
    program: Program,
    loss: Any,
    data: Any,
    epochs: int,
    *,
    client: Any = None,
    callback: Callable[[int, float], bool | None] | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 1,
    chunks_per_step: int | None = None,
    shuffle: int | None = None,
) -> list[float]:
    """Train a program with a client; see `pg.fit`."""
    target = _loss_of(program, loss)
    for name, number in (("every", every), ("chunks_per_step", chunks_per_step)):
        if number is not None and (type(number) is not int or number < 1):
            raise ArgumentError(f"{name} is an integer from 1 on, not {number!r:.60}")
    if shuffle is not None and (type(shuffle) is not int or shuffle < 0):
        raise ArgumentError(f"shuffle is an integer from 0 on, not {shuffle!r:.60}")
    trainer = _Trainer(engine_of(client), program, target, data, chunks_per_step, shuffle)
    path = None if checkpoint is None else Path(checkpoint)
    place = _Place() if path is None else trainer.restore_progress(path)
    with shown(progress, epochs, program.name) as advance:
        for loss_before in place.history[:epochs]:
            advance(loss_before)
        while len(place.history) < epochs:
            trainer.finish_epoch(place, path, every)
            advance(place.history[-1])
            epoch = len(place.history) - 1
            if (
                callback is not None
                and call_user_function(callback, epoch, place.history[-1]) is True
            ):
                break
    return place.history


def _loss_of(program: Any, loss: Any) -> Variable:
    """Return the loss variable of a program with an optimizer."""
    if not isinstance(program, Program):
        raise ArgumentError(f"a client trains programs, not {type(program).__name__}")
    if not program.updates:
        raise BuildError(
            "the program updates nothing, so there is nothing to train",
            hint="call the minimize of an optimizer on its loss first",
        )
    target = program.variable(loss) if isinstance(loss, str) else loss
    if not isinstance(target, Variable):
        raise ArgumentError(f"the loss is a variable of the program, or its name, not {loss!r:.60}")
    if target.size != 1:
        raise ShapeError(f"a loss has one element, not {target.type}")
    return target


@final
class _Trainer:
    """Trainer that takes optimizer steps of a program over chunks."""

    def __init__(
        self,
        engine: Engine,
        program: Program,
        loss: Variable,
        data: Any,
        chunks_per_step: int | None,
        shuffle: int | None,
    ) -> None:
        self.program, self.engine = program, engine
        self.data, columns, feed = split_feed(program, data, engine)
        if not self.data.total:
            raise ShapeError("there are no rows in the data")
        summand, self.changed = step_of_program(program, loss, columns, feed)
        self.kernels = Kernels(summand, self.data, sums_of)
        self.used = self.data.nonempty_chunks()
        self.per_step = chunks_per_step or len(self.used)
        self.shuffle = shuffle
        self.count = 0
        self._order = [summand.names.index(name) for name in self.changed]
        rows = self.data.rows[self.used[0]]
        drawn = summand.graph_for_rows(rows)
        assert drawn.parts.rest is not None
        self._rest = compile_kernel(drawn.parts.rest)
        warn_early(self.kernels, engine)

    def steps(self, epoch: int) -> list[list[int]]:
        """Return the chunk numbers for each step of an epoch."""
        order = self.used
        if self.shuffle is not None:
            drawn = np.random.default_rng([self.shuffle, epoch]).permutation(len(order))
            order = [order[i] for i in drawn]
        return [order[i : i + self.per_step] for i in range(0, len(order), self.per_step)]

    def finish_epoch(self, place: _Place, path: Path | None, every: int) -> None:
        """Take the remaining steps of an epoch, and write checkpoints."""
        steps = self.steps(len(place.history))
        while place.steps < len(steps):
            place.losses.append(self.step(steps[place.steps]))
            place.steps += 1
            if path is not None and self.count % every == 0 and place.steps < len(steps):
                self.save(path, place)
        place.history.append(float(np.mean(place.losses)))
        place.losses, place.steps = [], 0
        if path is not None:
            self.save(path, place)

    def step(self, numbers: list[int]) -> float:
        """Take one optimizer step on these chunks; return the loss before it."""
        states = self.states()
        total = sum(self.data.rows[i] for i in numbers)
        given = self.kernels.common_arguments(states, total=total)
        sums = self.engine.total(
            "fit",
            lambda: self.kernels.tasks(self.engine, given, numbers),
            self.data.sources,
        )
        loss, *new = self._rest(*given.arrays, *sums)
        self.program.set_state_dict(dict(zip(self.changed, new, strict=True)))
        self.count += 1
        return float(loss.item())

    def states(self) -> list[Array]:
        """Return the current values of all states."""
        known = self.program.state_dict()
        return [known[name] for name in self.kernels.summand.names]

    @property
    def digest(self) -> str:
        """Identity of this training: the program, the chunks, and their order."""
        graph = self.kernels.graph(None)
        about = (str(graph), self.data.rows, self.per_step, self.shuffle, self.changed)
        return hashlib.sha256(repr(about).encode()).hexdigest()

    def save(self, path: Path, place: _Place) -> None:
        """Write a checkpoint atomically."""
        about = {
            "digest": self.digest,
            "count": self.count,
            "steps": place.steps,
            "losses": [x.hex() for x in place.losses],
            "history": [x.hex() for x in place.history],
        }
        arrays = {f"{_STATE}{name}": a for name, a in self.program.state_dict().items()}
        text = np.frombuffer(json.dumps(about).encode(), np.uint8)
        content = pack_arrays({"about": text, **arrays})
        write_atomically(path, lambda file: file.write(content))

    def restore_progress(self, path: Path) -> _Place:
        """Return the progress from the checkpoint, if it exists, and restore the states."""
        if not path.exists():
            if not path.parent.is_dir():
                raise OptionError(f"the folder of the checkpoint {path} does not exist")
            return _Place()
        try:
            with open_regular(path) as file, zipfile.ZipFile(file) as archive:
                members = Members(archive, _MEMBER, (zipfile.ZIP_STORED,))
                about = parse_json(members.raw("about.npy"))
                if _require_entry(about, "digest", str) == self.digest:
                    place = self._place(about)
                    self._restore(members)
                    return place
        except (OSError, *DAMAGE) as error:
            fault = getattr(error, "message", f"{type(error).__name__}: {error}")
            raise LoadError(f"{path} is no checkpoint of fit: {fault:.200}") from None
        raise OptionError(
            f"the checkpoint {path} is of another training: the program, the chunks or the "
            "steps differ",
            hint="name another file, or remove this one",
        )

    def _place(self, about: dict[str, Any]) -> _Place:
        """Return the validated progress from a checkpoint."""
        losses, history = (
            [float.fromhex(loss) for loss in _require_entry(about, name, list)]
            for name in ("losses", "history")
        )
        steps, most = _require_entry(about, "steps", int), len(self.steps(len(history)))
        if not 0 <= steps < most or len(losses) != steps:
            raise LoadError(f"there are {len(losses)} losses of {steps} steps of {most}")
        count = _require_entry(about, "count", int)
        if count != most * len(history) + steps:
            raise LoadError(f"it counts {count} steps, of {len(history)} epochs and {steps}")
        self.count = count
        return _Place(steps, losses, history)

    def _restore(self, members: Members) -> None:
        """Restore the states from a checkpoint, which must contain exactly all of them."""
        types = {f"{_STATE}{s.name}.npy": (s.name, s.type) for s in self.program.states.values()}
        if members.unread != types.keys():
            raise LoadError("it has not the states that the program has")
        found = {name: members.array(member, type) for member, (name, type) in types.items()}
        self.program.set_state_dict(found)


def _require_entry(about: dict[str, Any], name: str, kind: type[T]) -> T:
    """Return the entry of that name, which must have that type."""
    found = about.get(name)
    if type(found) is not kind:
        raise LoadError(f"{name} is {found!r:.60}, and no {kind.__name__}")
    return found
