"""Random tensors and generators, as in torch; the numbers are not torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np

from primgraph import operators as pg
from primgraph import random
from primgraph.compat import randomness as core
from primgraph.compat.torch.framework import checked_device, device, dtype_or_default
from primgraph.compat.torch.tensor import Tensor
from primgraph.eager.inplace.adoption import stand_in_class
from primgraph.eager.inplace.in_place import change
from primgraph.eager.node import array_node
from primgraph.eager.seeds import SeedStreams, seeded
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.ir.types import INT64, DType, as_dtype, as_shape
from primgraph.operators.handle import Handle
from primgraph.operators.variable import in_manner

T = TypeVar("T", bound=Tensor)


class Generator(core.Generator):
    """Source of random numbers with a state of its own.

    >>> g = torch.Generator().manual_seed(1)
    >>> a = torch.randn(4, generator=g)
    >>> torch.equal(a, torch.randn(4, generator=g.manual_seed(1)))
    True
    """

    _family: ClassVar[type[Tensor]] = Tensor

    def __init__(self, device: Any = None) -> None:
        checked_device(device)
        super().__init__()

    @property
    def device(self) -> device:
        """The processor."""
        return device()

    def get_state(self) -> Tensor:
        """Return the state as a tensor of bytes."""
        return self._family(array_node(self._streams.state()))


def require_options(layout: Any = None, **options: Any) -> None:
    """Raise `OptionError` for options that are not supported."""
    if layout is not None and "strided" not in str(layout):
        raise OptionError(f"layout={layout!r:.60} is not supported: tensors are strided")
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name}={value!r:.60} is not supported, leave it out")


@final
class RandomCreators(Generic[T]):
    """Functions that make tensors of random numbers, which follow from `manual_seed`.

    `generator` is the source of the numbers. Sizes are given one by one, as a sequence, or as
    `size=`.
    """

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind

    def _tensor(self, drawn: Any, requires_grad: bool = False) -> T:
        """Return drawn elements as a tensor of this class, or the variable that stands for it."""
        if isinstance(drawn, np.ndarray):
            return self._kind(array_node(drawn, requires_grad))
        if isinstance(drawn, _Tensor):
            return self._kind(drawn.node)
        found: T = in_manner(stand_in_class(self._kind), drawn)
        return found

    def _create(
        self,
        draw: Callable[..., Any],
        shape: Sequence[int],
        dtype: DType,
        options: dict[str, Any],
    ) -> T:
        """Return numbers that `draw` makes of a shape and dtype, with torch's options."""
        generator, out = options.pop("generator", None), options.pop("out", None)
        checked_device(options.pop("device", None))
        requires_grad = options.pop("requires_grad", False)
        require_options(options.pop("layout", None))
        for name in ("pin_memory", "memory_format"):
            options.pop(name, None)
        if options:
            raise ArgumentError(f"there is no argument {next(iter(options))!r}")
        drawn = self._tensor(draw(core.streams_of(generator), shape, dtype), requires_grad)
        return drawn if out is None else change(out, drawn)

    def rand(self, *sizes: Any, size: Any = None, dtype: Any = None, **options: Any) -> T:
        """Return uniform numbers from 0 up to but without 1.

        >>> torch.rand(2, 3).shape
        torch.Size([2, 3])
        """
        shape = sizes_of(sizes, size)
        return self._create(core.draw_uniform, shape, dtype_or_default(dtype), options)

    def randn(self, *sizes: Any, size: Any = None, dtype: Any = None, **options: Any) -> T:
        """Return normal numbers of mean 0 and variance 1.

        >>> torch.randn(2, 3).shape
        torch.Size([2, 3])
        """
        shape = sizes_of(sizes, size)
        return self._create(core.draw_normal, shape, dtype_or_default(dtype), options)

    def rand_like(self, input: Any, *, dtype: Any = None, **options: Any) -> T:
        """Return uniform numbers from 0 up to but without 1 of the shape of `input`.

        >>> torch.rand_like(torch.ones(2, 3)).shape
        torch.Size([2, 3])
        """
        wanted = as_dtype(dtype or input.dtype)
        return self._create(core.draw_uniform, input.type.shape, wanted, options)

    def randn_like(self, input: Any, *, dtype: Any = None, **options: Any) -> T:
        """Return normal numbers of the shape of `input`.

        >>> torch.randn_like(torch.ones(2, 3)).shape
        torch.Size([2, 3])
        """
        wanted = as_dtype(dtype or input.dtype)
        return self._create(core.draw_normal, input.type.shape, wanted, options)

    def randint(
        self,
        *bounds: Any,
        low: int = 0,
        high: int | None = None,
        size: Any = (),
        dtype: Any = np.int64,
        **options: Any,
    ) -> T:
        """Return integers from `low` up to but excluding `high`: `randint(high, size)` has `low` 0.

        Raises `ArgumentError` for an empty range.

        >>> x = torch.randint(3, (100,))
        >>> int(torch.max(x))
        2
        """
        given = list(bounds)
        if given and isinstance(given[-1], list | tuple):
            size = given.pop()
        if high is None:
            high = given.pop()
        first = given.pop() if given else low
        return self._integers(first, high, sizes_of([size]), dtype or INT64, options)

    def randint_like(
        self, input: Any, low: int, high: int | None = None, *, dtype: Any = None, **options: Any
    ) -> T:
        """Return integers below `high` of the shape of `input`; one bound is `high`.

        >>> torch.randint_like(torch.ones(2, 3), 5).shape
        torch.Size([2, 3])
        """
        first, last = (0, low) if high is None else (low, high)
        return self._integers(first, last, input.type.shape, dtype or input.dtype, options)

    def _integers(
        self, low: Any, high: Any, shape: Sequence[int], dtype: Any, options: dict[str, Any]
    ) -> T:
        def draw(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
            return core.draw_integers(streams, shape, int(low), int(high), dtype)

        return self._create(draw, shape, as_dtype(dtype), options)

    def randperm(self, n: int, *, dtype: Any = np.int64, **options: Any) -> T:
        """Return the integers below `n` in random order.

        >>> sorted(torch.randperm(4).tolist())
        [0, 1, 2, 3]
        """

        def draw(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
            if n < 0:
                raise ShapeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
            return core.draw_permutation(streams, int(n), dtype)

        return self._create(draw, (), as_dtype(dtype or INT64), options)

    def normal(
        self,
        mean: Any = 0.0,
        std: Any = 1.0,
        size: Any = None,
        *,
        dtype: Any = None,
        **options: Any,
    ) -> T:
        """Return normal numbers; `mean` and `std` are numbers or tensors.

        Raises `ArgumentError` for a negative number `std`.

        >>> torch.normal(2.0, 0.5, (4,)).shape
        torch.Size([4])
        """
        if not isinstance(std, Handle) and std < 0.0:
            raise ArgumentError(f"normal expects std >= 0.0, but found std {std}")
        tensors = [x.detach() for x in (mean, std) if isinstance(x, Handle)]
        mean, std = (x.detach() if isinstance(x, Handle) else x for x in (mean, std))
        if size is None and not tensors:
            raise ArgumentError("normal takes a tensor, or size= with numbers")
        shape = np.broadcast_shapes(*(t.type.shape for t in tensors)) if tensors else size
        wanted = as_dtype(tensors[0].dtype) if tensors else dtype_or_default(dtype)

        def draw(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
            drawn = core.draw_normal(streams, shape, dtype)
            return drawn * dtype.type(std) + dtype.type(mean) if not tensors else drawn * std + mean

        return self._create(draw, sizes_of([shape]), wanted, options)

    def bernoulli(self, input: Any, p: Any = None, **options: Any) -> T:
        """Return 1 with the probabilities in `input`, or `p`, and 0 elsewhere.

        Raises `ArgumentError` for probabilities outside 0 to 1.

        >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
        tensor([0., 1.])
        """
        chance = input if p is None else p
        _require_values(chance, lambda x: (x >= 0) & (x <= 1), "Expected p_in >= 0 && p_in <= 1")

        def draw(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
            drawn = core.draw_uniform(streams, shape, np.dtype("float64"))
            found = drawn < (chance.detach() if isinstance(chance, Handle) else chance)
            return found.astype(dtype)

        return self._create(draw, input.type.shape, input.type.dtype, options)

    def multinomial(
        self, input: Any, num_samples: int, replacement: bool = False, **options: Any
    ) -> T:
        """Return indices along the last axis, with probabilities in proportion to `input`.

        Raises `ArgumentError` for weights that cannot be drawn from.

        >>> torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1)
        tensor([1])
        """
        check_weights(input, num_samples, replacement)

        def draw(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
            return core.draw_categories(streams, input.detach(), num_samples, replacement)

        return self._create(draw, (), INT64, options)

    def poisson(self, input: Any, **options: Any) -> T:
        """Return numbers of Poisson distributions with the means in `input`.

        >>> torch.poisson(torch.zeros(2))
        tensor([0., 0.])
        """
        _require_values(input, lambda x: x >= 0, "invalid Poisson rate, expected all >= 0")

        def draw(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
            return pg.astype(random.poisson(streams.key_tensor(), input.detach()), dtype)

        return self._create(draw, (), input.type.dtype, options)

    def binomial(self, count: Any, prob: Any, **options: Any) -> T:
        """Return numbers of successes in `count` trials of probability `prob`.

        >>> torch.binomial(torch.tensor([3.0]), torch.tensor([1.0]))
        tensor([3.])
        """

        def draw(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
            trials = pg.astype(count.detach(), "int64")
            drawn = random.binomial(streams.key_tensor(), trials, prob.detach())
            return pg.astype(drawn, dtype)

        return self._create(draw, (), count.type.dtype, options)


def check_weights(weights: Any, count: int, replacement: bool) -> None:
    """Raise `ArgumentError` for weights of which `count` indices cannot be drawn."""
    if weights.ndim not in (1, 2) or weights.dtype.kind != "f":
        raise ArgumentError(f"multinomial takes floats with one or two axes, not {weights.type}")
    if count <= 0:
        raise ArgumentError(f"cannot sample n_sample = {count} <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise ArgumentError(
            f"cannot sample n_sample = {count} > {weights.shape[-1]} samples without replacement"
        )
    if isinstance(weights, _Tensor):
        known = np.asarray(weights)
        if not (np.isfinite(known).all() and (known >= 0).all()):
            raise ArgumentError("probability tensor contains either `inf`, `nan` or element < 0")
        if (np.count_nonzero(known, axis=-1) < (1 if replacement else count)).any():
            raise ArgumentError("invalid multinomial distribution: too few weights above zero")


def _require_values(x: Any, is_right: Callable[[Any], Any], message: str) -> None:
    """Raise `ArgumentError` if elements are known and wrong."""
    if isinstance(x, _Tensor):
        x = np.asarray(x)
    if not isinstance(x, Handle) and not np.all(is_right(x)):
        raise ArgumentError(message)


def sizes_of(sizes: Sequence[Any], size: Any = None) -> tuple[int, ...]:
    """Extents that are given one by one, as one sequence, or by name."""
    if size is not None:
        sizes = [size]
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = sizes[0]
    return as_shape([int(n) for n in sizes])


def manual_seed(seed: int) -> Generator:
    """Set the seed of all random numbers; return the generator that has it.

    >>> torch.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """Return the seed that was set last.

    >>> _ = torch.manual_seed(3)
    >>> torch.initial_seed()
    3
    """
    return default_generator.initial_seed()


def seed() -> int:
    """Set a seed from the operating system, and return it.

    >>> torch.seed() == torch.initial_seed()
    True
    """
    return default_generator.seed()


def get_rng_state() -> Tensor:
    """Return the state of the global generator as a tensor of bytes.

    >>> state = torch.get_rng_state()
    >>> a = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> torch.equal(a, torch.rand(2))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: _Tensor) -> None:
    """Go back to a state of the global generator.

    >>> torch.set_rng_state(torch.get_rng_state())
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **options: Any) -> Iterator[None]:
    """Restore the state of the global generator afterwards.

    >>> with torch.random.fork_rng():
    ...     _ = torch.rand(2)
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)


draw = RandomCreators(Tensor)

default_generator = Generator()
default_generator._streams = seeded
