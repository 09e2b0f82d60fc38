"""Execution of tasks: on the workers of a dask client, or in threads of this process."""

from __future__ import annotations

import itertools
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Never, TypeAlias, final

import numpy as np

from primgraph.base.user_lines import caller
from primgraph.codegen.runtime.threads import get_num_threads
from primgraph.distributed.parcels import MissingKernel, Named, Parcel, forget, keep
from primgraph.distributed.tasks import Given, add_up
from primgraph.errors import ArgumentError, OptionError, PrimgraphError, RunError

Array: TypeAlias = "np.ndarray[Any, Any]"
# Tasks by key, and the key of the final one.
_Layer: TypeAlias = "tuple[dict[Any, Any], Any]"

# Number of results that one task adds up.
FAN_IN = 8
# Smaller common arguments are always sent in the graph.
_SMALL = 1 << 16
# Maximum numbers of kernels and of large constants held by the workers of a client.
_KEPT = 64
# Number of attempts after a loss of workers with their data.
_TRIES = 4

_counter = itertools.count()
_process = uuid.uuid4().hex[:8]


def dask_module(name: str) -> Any:
    """Import a module of dask. Raises `OptionError` if dask is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise OptionError(
            f"pg.distributed needs {name.split('.')[0]}, which cannot be imported here: {error}",
            hint="install it with: pip install 'primgraph[dask]'",
        ) from None


def engine_of(client: Any) -> Engine:
    """Return the engine for `client`; by default for dask's default client, or else for threads in
    this process, as for "threads".

    Raises `ArgumentError` for objects that are not clients, and for a closed client.
    """
    dask_module("dask")
    if client is None:
        client = _default_client()
    if client is None or client == "threads":
        return Engine(None)
    if isinstance(client, str):
        raise ArgumentError(
            f"a client is needed, not the address {client!r:.60}",
            hint="from distributed import Client; client = Client(address)",
        )
    if not isinstance(client, dask_module("distributed").Client):
        raise ArgumentError(f"a client of dask's is needed, not {client!r:.60}")
    if client.asynchronous:
        raise ArgumentError("an asynchronous client is not waited for: give another one")
    found = Engine(client)
    found.require_open()
    return found


def _default_client() -> Any:
    """Return dask's default client, if one exists."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def new_name(what: str) -> str:
    """Return a unique name for tasks."""
    return f"primgraph-{what}-{_process}-{next(_counter)}"


@final
@dataclass
class _SentKernels:
    """Kernels and constants sent to a client's workers, newest last, and the measured bandwidth."""

    kernels: dict[str, None] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    speed: tuple[float, float] | None = None


def _sent_by(client: Any) -> _SentKernels:
    """Return the record of sent data, which is stored on `client` itself.

    Futures refer to their client: a table in this module, even with weak references, would keep it
    alive forever.
    """
    found: _SentKernels = vars(client).setdefault("_primgraph_sent", _SentKernels())
    return found


class _Lost(Exception):
    """Arguments of tasks were lost with the workers that held them."""


def _setup(plugin: Any, worker: Any) -> None:
    """Set up a kernel on a worker; called by dask as a plugin."""
    keep(plugin.parcel)


def _teardown(plugin: Any, worker: Any) -> None:
    forget(plugin.parcel.digest)


def _plugin_name(digest: str) -> str:
    return f"primgraph-kernel-{digest}"


@final
class Engine:
    """Executor of tasks that also holds their common arguments on the workers."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def require_open(self) -> None:
        """Raise `ArgumentError` if the client is closed."""
        if self.client is not None and self.client.status not in ("running", "connecting"):
            raise ArgumentError(
                f"the client is {self.client.status}", hint="make a new one: Client(address)"
            )

    # Sending arguments.

    def parcel(self, parcel: Parcel) -> Parcel | Named:
        """Return a task argument for `parcel`, which is sent to each worker once, by content.

        The scheduler sends it to workers that join or restart before they run tasks.
        """
        if self.client is None:
            return parcel
        known = _sent_by(self.client).kernels
        if parcel.digest not in known:
            base = dask_module("distributed").WorkerPlugin
            kind = type("KernelGiven", (base,), {"setup": _setup, "teardown": _teardown})
            plugin = kind()
            plugin.parcel = parcel
            name = _plugin_name(parcel.digest)
            self._retry(lambda: self.client.register_plugin(plugin, name=name))
            while len(known) >= _KEPT:
                oldest = next(iter(known))
                del known[oldest]
                self.client.unregister_worker_plugin(_plugin_name(oldest))
        known[parcel.digest] = known.pop(parcel.digest, None)
        return Named(parcel.digest)

    def _retry(self, send: Callable[[], Any]) -> Any:
        """Return the result of `send`, retried if a worker is lost meanwhile."""
        for attempt in range(_TRIES):
            try:
                return send()
            except OSError as error:
                # The connection to a dead worker is closed; the scheduler will notice.
                ended = isinstance(error, TimeoutError) or self.client.status != "running"
                if ended or attempt == _TRIES - 1:
                    raise
                time.sleep(0.2 * (attempt + 1))
        raise AssertionError("the last attempt raises")

    def _scatter(self, item: Any) -> Any:
        """Scatter `item` to one worker, and return it as a task argument; others fetch it from
        there.

        Broadcasting to all workers may hang if one of them dies meanwhile.
        """
        return self._retry(lambda: self.client.scatter(item, hash=False))

    def large(self, parcel: Parcel, arrays: Sequence[Array]) -> list[Any]:
        """Return constants as task arguments, each scattered once."""
        if self.client is None:
            return list(arrays)
        return [self._scatter_constant(d, a) for d, a in zip(parcel.large, arrays, strict=True)]

    def _scatter_constant(self, digest: str, array: Array) -> Any:
        known = _sent_by(self.client).constants
        future = known.pop(digest, None)
        if future is None or future.status in ("cancelled", "lost", "error"):
            future = self._scatter(array)
        known[digest] = future
        while len(known) > _KEPT:
            del known[next(iter(known))]
        return future

    def prepare_arguments(self, given: Given) -> Any:
        """Return the common arguments of a step: inline in the graph, or scattered if that is
        faster.

        Inline arguments pass through the scheduler; scattering costs one more message exchange.
        """
        size = sum(a.nbytes for a in given.arrays)
        if self.client is None or size < _SMALL:
            return given
        latency, bandwidth = self.speed()
        if size / bandwidth < latency:
            return given
        return self._scatter(given)

    def speed(self) -> tuple[float, float]:
        """Return seconds for a minimal scatter, and bytes per second; measured once per client."""
        known = _sent_by(self.client)
        if known.speed is None:
            times = []
            for count in (1, 1, 1 << 19, 1 << 19):
                start = time.perf_counter()
                self._scatter(np.zeros(count))
                times.append(time.perf_counter() - start)
            latency = min(times[:2])
            known.speed = latency, (8 << 19) / max(min(times[2:]) - latency, 1e-6)
        return known.speed

    # Running tasks.

    def total(
        self, what: str, draft: Callable[[], Sequence[tuple[Any, ...]]], sources: Sequence[Any]
    ) -> list[Array]:
        """Return the sums of the tasks' results, lists of arrays, by a tree determined by their
        number.

        `draft` creates the tasks, and is called again if common arguments were lost with workers.
        """

        def draft_layer(name: str) -> _Layer:
            tasks = draft()
            layer: dict[Any, Any] = {(name, 0, i): task for i, task in enumerate(tasks)}
            keys, level = list(layer), 0
            while len(keys) > 1 or not level:
                level += 1
                groups = [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]
                keys = [(name, level, i) for i in range(len(groups))]
                layer.update((k, (add_up, g)) for k, g in zip(keys, groups, strict=True))
            return layer, keys[0]

        found: list[Array] = self._compute_graph(what, draft_layer, sources)
        return found

    def gather_results(
        self, what: str, draft: Callable[[], Sequence[tuple[Any, ...]]], sources: Sequence[Any]
    ) -> list[Any]:
        """Return the results of the tasks, in order; see `total`."""

        def draft_layer(name: str) -> _Layer:
            layer: dict[Any, Any] = {(name, 0, i): task for i, task in enumerate(draft())}
            layer[name, 1, 0] = (list, [*layer])
            return layer, (name, 1, 0)

        found: list[Any] = self._compute_graph(what, draft_layer, sources)
        return found

    def _compute_graph(
        self,
        what: str,
        drafted: Callable[[str], tuple[dict[Any, Any], Any]],
        sources: Sequence[Any],
    ) -> Any:
        self.require_open()
        graphs = dask_module("dask.highlevelgraph").HighLevelGraph
        delayed = dask_module("dask.delayed").Delayed
        for attempt in range(_TRIES):
            name = new_name(what)
            layer, end = drafted(name)
            graph = graphs.from_collections(name, layer, dependencies=sources)
            wanted = delayed(end, graph, layer=name)
            try:
                if self.client is None:
                    return wanted.compute(scheduler="threads", num_workers=get_num_threads())
                return self._wait_for_result(self.client.compute(wanted), attempt)
            except PrimgraphError as error:
                error.place = error.place or caller()
                raise
            except _Lost:
                continue
        raise AssertionError("the last attempt raises")

    def _wait_for_result(self, future: Any, attempt: int) -> Any:
        """Return the result of a future; raises `_Lost` if sending the arguments again may help."""
        try:
            return future.result()
        except BaseException as error:
            if self.client.status == "running":
                future.cancel(reason="nobody waits for it any more")
            self._answer(error, attempt)

    def _answer(self, error: BaseException, attempt: int) -> Never:
        """Raise the error that stopped a computation."""
        module = dask_module("distributed")
        if isinstance(error, module.scheduler.KilledWorker):
            raise RunError(
                f"workers died of a task, one after the other: {error}",
                hint="where memory is what they lack, smaller chunks help: see pg.distributed.plan",
            ) from error
        lost = isinstance(error, module.client.FutureCancelledError | MissingKernel)
        if lost and self.client.status != "running":
            raise RunError(
                f"the client is {self.client.status}, and what it waited for is gone",
                hint="make a new one: Client(address)",
            ) from error
        if isinstance(error, MissingKernel):
            _sent_by(self.client).kernels.clear()
        if lost and attempt < _TRIES - 1:
            raise _Lost from error
        raise error

    def workers(self) -> list[tuple[int, int]]:
        """Return threads and memory limit of each worker; 0 if it has none."""
        if self.client is None:
            return [(get_num_threads(), 0)]
        self.require_open()
        known = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return [(w["nthreads"], int(w["memory_limit"] or 0)) for w in known]
