"""Recording of jaxprs: each equation by the rule of its primitive."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.base.providers import late
from primgraph.base.user_lines import Source
from primgraph.control.bodies import active_builder
from primgraph.errors import UnsupportedError
from primgraph.interop.jax.customs import apply_foreign
from primgraph.interop.jax.rules import (
    RULES,
    TAKES_KEYS,
    Site,
    constant,
    index_of_platform,
    reshape,
)
from primgraph.interop.lacking import Lacking
from primgraph.ir.dims import Dim
from primgraph.ir.types import BOOL, NAME_OF_DTYPE, Shape, TensorType
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    import jax
    from jax import export
    from jax._src import core
    from jax._src import source_info_util as source_info
    from jax._src.interpreters import ad
else:
    jax = late("jax")
    export = late("jax.export")
    core = late("jax._src.core")
    source_info = late("jax._src.source_info_util")
    ad = late("jax._src.interpreters.ad")


@final
class Evaluation:
    """Recorder of jaxprs in the active builder.

    `sizes` are symbolic sizes by name, and `scope` is that of JAX.
    """

    def __init__(self, sizes: Mapping[str, Dim], scope: Any = None) -> None:
        self.sizes = sizes
        self.scope = scope
        # Solvers of linear equations, by the numbers of their jaxprs.
        self.solvers: dict[Any, Any] = {}
        # The custom functions whose rules are being recorded, by key.
        self._active: list[tuple[Any, Any]] = []
        # Whether equations are those of the user's program.
        self._has_lines = True

    def run(self, jaxpr: Any, operands: Sequence[Variable]) -> list[Variable]:
        """Record a jaxpr, closed or open, on operands."""
        if hasattr(jaxpr, "jaxpr"):
            return self.evaluate(jaxpr.jaxpr, jaxpr.consts, operands)
        return self.evaluate(jaxpr, (), operands)

    def evaluate(
        self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Variable]
    ) -> list[Variable]:
        """Record a jaxpr with the given constants, which are arrays of JAX or of NumPy."""
        found: dict[Any, Variable] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            found[var] = self._constant(const)
        found.update(zip(jaxpr.invars, operands, strict=True))
        builder = active_builder()
        before = builder.source
        try:
            for eqn in jaxpr.eqns:
                builder.source = (source_of(eqn) if self._has_lines else None) or before
                operands = [self._read(found, var) for var in eqn.invars]
                found.update(zip(eqn.outvars, self._apply(eqn, operands), strict=True))
        finally:
            builder.source = before
        return [self._read(found, var) for var in jaxpr.outvars]

    def expand(self, function: Callable[..., Any], *operands: Variable) -> list[Variable]:
        """Record a function of JAX on arrays."""
        avals = [jax.ShapeDtypeStruct(self._jax_shape(x), x.dtype) for x in operands]
        # Definitions of JAX's own promote dtypes, which a user may have forbidden.
        with jax.numpy_dtype_promotion("standard"):
            closed = jax.make_jaxpr(function)(*avals)
        require_supported(closed.jaxpr)
        before, self._has_lines = self._has_lines, False
        try:
            return self.run(closed, operands)
        finally:
            self._has_lines = before

    def run_elements(
        self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Variable]
    ) -> list[Variable]:
        """Record a jaxpr of scalars for all elements of arrays of one shape."""
        closed = jaxpr if hasattr(jaxpr, "jaxpr") else core.ClosedJaxpr(jaxpr, consts)
        shape, size = operands[0].shape, operands[0].type.size
        if not shape:
            return self.run(closed, operands)
        rows = [reshape(x, (size,)) for x in operands]
        found = self.expand(jax.vmap(core.jaxpr_as_fun(closed)), *rows)
        return [reshape(x, shape) for x in found]

    def cotangents(
        self,
        backward: Any,
        residuals: Sequence[Variable],
        cts: Sequence[Variable | None],
        results: Sequence[Any],
        arguments: Sequence[Any],
    ) -> list[Variable | None]:
        """Record the rule of a custom_vjp for cotangents: one for each argument."""
        given = [x for x in cts if x is not None]
        count = len(residuals)

        def function(*xs: Any) -> list[Any]:
            rest = iter(xs[count:])
            slopes = [
                ad.Zero(aval.to_tangent_aval()) if ct is None else next(rest)
                for ct, aval in zip(cts, results, strict=True)
            ]
            full = [ad.instantiate_zeros(s) if type(s) is ad.Zero else s for s in slopes]
            found = backward.call_wrapped(*xs[:count], *full)
            return [
                ad.instantiate_zeros(d)
                for d, a in zip(found, arguments, strict=True)
                if np.issubdtype(a.dtype, np.inexact)
            ]

        slopes = iter(self.expand(function, *residuals, *given))
        return [next(slopes) if np.issubdtype(a.dtype, np.inexact) else None for a in arguments]

    def active(self, key: Any) -> Any:
        """Return the custom function of that key whose rule is being recorded, or None."""
        return next((custom for k, custom in self._active if k == key), None)

    @contextmanager
    def entered(self, key: Any, custom: Any, deepest: int) -> Iterator[None]:
        """Record a rule of a custom function within the context."""
        if len(self._active) >= deepest:
            raise UnsupportedError("from_jax: rules within rules are recorded when they are used")
        self._active.append((key, custom))
        try:
            yield
        finally:
            self._active.pop()

    def type_of(self, aval: Any) -> TensorType:
        """Return the type of an abstract value; of keys, that of their words."""
        shape = self.shape_of(aval.shape)
        if is_key(aval):
            return TensorType((*shape, *aval.dtype._impl.key_shape), np.dtype("u4"))
        return TensorType(shape, dtype_of(aval))

    def shape_of(self, shape: Any) -> Shape:
        return tuple([self._converted(n) for n in shape])

    def _converted(self, value: Any) -> Any:
        """Return a parameter with the sizes of this package in place of JAX's symbolic ones."""
        if type(value) in (tuple, list):
            return type(value)([self._converted(v) for v in value])
        if hasattr(value, "_evaluate"):
            return value._evaluate(self.sizes)
        return value

    def _jax_shape(self, x: Variable) -> Any:
        if not x.type.names:
            return x.shape
        text = ", ".join(map(str, x.shape))
        return export.symbolic_shape(text + ",", scope=self.scope)

    def _read(self, found: Mapping[Any, Variable], var: Any) -> Variable:
        if hasattr(var, "val"):
            return constant(np.asarray(var.val).item(), dtype_of(var.aval), var.aval.shape)
        return found[var]

    def _constant(self, value: Any) -> Variable:
        if isinstance(value, Variable):
            return value
        if is_key(value):
            value = jax.random.key_data(value)
        return lift(np.asarray(value))

    def _apply(self, eqn: Any, operands: Sequence[Variable]) -> Sequence[Variable]:
        name = eqn.primitive.name
        avals = [var.aval for var in eqn.invars]
        if name not in TAKES_KEYS and any(map(is_key, avals)):
            return self._apply_on_words(eqn, avals, operands)
        params = eqn.params
        if self.sizes:
            params = {k: self._converted(v) for k, v in params.items()}
        types = tuple([self.type_of(var.aval) for var in eqn.outvars])
        apply, site = RULES.get(name), Site(eqn.primitive, params, avals, types, self)
        if apply is None:
            defined = definition_of(eqn)
            if defined is None:
                require_supported(core.Jaxpr([], eqn.invars, [], [eqn]))
            if eqn.primitive in ad.primitive_jvps:
                return apply_foreign(site, defined, operands)
            return self.run(defined, operands)
        found = apply(site, *operands)
        return [found] if isinstance(found, Variable) else found

    def _apply_on_words(
        self, eqn: Any, avals: Sequence[Any], operands: Sequence[Variable]
    ) -> list[Variable]:
        """Apply a primitive that moves keys to their words, along one more axis each."""
        placed = [-1 if is_key(aval) else None for aval in avals]
        ranks = [len(a.dtype._impl.key_shape) for a in avals if is_key(a)]

        def function(*xs: Any) -> Any:
            return eqn.primitive.bind(*xs, **eqn.params)

        for _ in range(ranks[0]):
            function = jax.vmap(function, in_axes=placed, out_axes=-1)
        return self.expand(function, *operands)


def is_key(value: Any) -> bool:
    """Return whether the dtype is that of keys of random numbers."""
    return hasattr(getattr(value, "dtype", None), "_impl")


def dtype_of(aval: Any) -> Any:
    """Return the dtype of an abstract value; the one of zeros without derivative is boolean."""
    return BOOL if aval.dtype == jax.dtypes.float0 else np.dtype(aval.dtype)


def source_of(eqn: Any) -> Source | None:
    """Return the user's line of an equation of JAX."""
    frame = source_info.user_frame(eqn.source_info.traceback)
    if frame is None:
        return None
    text = linecache.getline(frame.file_name, frame.start_line).strip()
    return Source(frame.file_name, frame.start_line, text=text)


# Operators that are lacking.


def require_supported(jaxpr: Any) -> None:
    """Raise `UnsupportedError` for all primitives and dtypes of a jaxpr that are lacking."""
    lacking = Lacking("from_jax", "JAX")
    waiting = [jaxpr]
    while waiting:
        current = waiting.pop()
        for eqn in current.eqns:
            defined = None if eqn.primitive.name in RULES else definition_of(eqn)
            _note(lacking, eqn, is_known=defined is not None)
            platforms = eqn.params.get("branches_platforms")
            if platforms is None:
                waiting += core.jaxprs_in_params(eqn.params)
            else:
                # Branches for other platforms may have operators of these.
                waiting.append(eqn.params["branches"][index_of_platform(platforms)].jaxpr)
            waiting += [] if defined is None else [defined.jaxpr]
    lacking.require_none()


def definition_of(eqn: Any) -> Any:
    """Return what a primitive of another package is defined by, as a jaxpr; None without that."""

    def function(*xs: Any) -> Any:
        return eqn.primitive.impl(*xs, **eqn.params)

    try:
        found = jax.make_jaxpr(function)(*[var.aval for var in eqn.invars])
    except Exception:
        # Primitives of JAX itself compute on devices, and effects have no definition.
        return None
    waiting = [found.jaxpr]
    while waiting:
        current = waiting.pop()
        if any(inner.primitive is eqn.primitive for inner in current.eqns):
            return None
        for inner in current.eqns:
            waiting += core.jaxprs_in_params(inner.params)
    return found


def _note(lacking: Lacking, eqn: Any, *, is_known: bool) -> None:
    source = source_of(eqn)
    place = "" if source is None else str(source)
    if eqn.primitive.name not in RULES and not is_known:
        lacking.add(eqn.primitive.name, place)
    for var in (*eqn.invars, *eqn.outvars):
        name = lacking_dtype(var.aval)
        if name:
            lacking.add(name, place)


def lacking_dtype(aval: Any) -> str:
    """Return the dtype of an abstract value if it is lacking, and else an empty text."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None:
        return f"values of type {aval}"
    if is_key(aval) or dtype == jax.dtypes.float0:
        return ""
    known = isinstance(dtype, np.dtype) and dtype in NAME_OF_DTYPE
    return "" if known else f"dtype {dtype}"
