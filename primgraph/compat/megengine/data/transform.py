"""Transforms of images, arrays of height, width and channels, as in MegEngine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.compat.randomness import seeded
from primgraph.errors import OptionError


class Transform:
    """Function of samples: a subclass defines `apply`.

    >>> megengine.data.transform.PseudoTransform().apply(3)
    3
    """

    def apply(self, input: Any) -> Any:
        """Transform a sample."""
        return input

    def apply_batch(self, inputs: Sequence[Any]) -> Any:
        """Transform the samples of a batch."""
        return tuple(self.apply(sample) for sample in inputs)


PseudoTransform = Transform


class VisionTransform(Transform):
    """Function of the images in samples; `order` names the fields, of which "image" is changed.

    >>> megengine.data.transform.VisionTransform(["image"]).order
    ('image',)
    """

    def __init__(self, order: Sequence[str] | None = None) -> None:
        self.order = tuple(order or ("image",))
        if unknown := set(self.order) - {"image", "boxes", "coords", "mask", "image_category"}:
            raise OptionError(f"order: there is no field {unknown.pop()!r}")

    def apply(self, input: Any) -> Any:
        """Transform a sample: an array, or a tuple of fields."""
        if not isinstance(input, tuple):
            return self._apply_image(input)
        named = zip(self.order, input, strict=False)
        fields = [self._apply_image(x) if name == "image" else x for name, x in named]
        return (*fields, *input[len(fields) :])

    def _apply_image(self, image: Any) -> Any:
        return image


class Compose(VisionTransform):
    """Transforms one after another.

    >>> t = megengine.data.transform
    >>> t.Compose([t.Normalize(1.0, 2.0), t.ToMode()]).apply(np.ones((4, 5, 3))).shape
    (3, 4, 5)
    """

    def __init__(
        self,
        transforms: Sequence[Transform] = (),
        shuffle_indices: Any = None,
        batch_compose: bool = False,
        *,
        order: Sequence[str] | None = None,
    ) -> None:
        super().__init__(order)
        if shuffle_indices is not None:
            raise OptionError("Compose: shuffle_indices is not supported, leave it out")
        self.transforms, self.batch_compose = transforms, batch_compose
        for transform in transforms:
            if isinstance(transform, VisionTransform) and order is not None:
                transform.order = self.order

    def apply(self, input: Any) -> Any:
        """Apply all transforms to a sample."""
        for transform in self.transforms:
            input = transform.apply(input)
        return input

    def apply_batch(self, inputs: Sequence[Any]) -> Any:
        """Apply all transforms to the samples of a batch, one transform at a time."""
        for transform in self.transforms:
            inputs = transform.apply_batch(inputs)
        return inputs


class Normalize(VisionTransform):
    """Images less a mean, divided by a deviation.

    >>> float(megengine.data.transform.Normalize(1.0, 2.0).apply(np.full((1, 1, 1), 5.0))[0, 0, 0])
    2.0
    """

    def __init__(
        self, mean: Any = 0.0, std: Any = 1.0, *, order: Sequence[str] | None = None
    ) -> None:
        super().__init__(order)
        self.mean, self.std = np.array(mean, np.float32), np.array(std, np.float32)

    def _apply_image(self, image: Any) -> Any:
        return (image - self.mean) / self.std


class ToMode(VisionTransform):
    """Images with the channels first.

    >>> megengine.data.transform.ToMode("CHW").apply(np.zeros((4, 5, 3))).shape
    (3, 4, 5)
    """

    def __init__(self, mode: str = "CHW", *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        if mode != "CHW":
            raise OptionError(f"ToMode: mode {mode!r:.60} is not supported, 'CHW' is")
        self.mode = mode

    def _apply_image(self, image: Any) -> Any:
        return np.ascontiguousarray(np.rollaxis(image, 2))


class Pad(VisionTransform):
    """Images with a border: a width, or those of height and width, or of all four sides.

    >>> megengine.data.transform.Pad(2).apply(np.zeros((4, 5, 3))).shape
    (8, 9, 3)
    """

    def __init__(
        self, size: Any = 0, value: Any = 0, *, order: Sequence[str] | None = None
    ) -> None:
        super().__init__(order)
        sides = (size,) * 4 if isinstance(size, int) else tuple(size)
        if len(sides) == 2:
            sides = (sides[0], sides[0], sides[1], sides[1])
        self.size, self.value = sides, value

    def _apply_image(self, image: Any) -> Any:
        top, bottom, left, right = self.size
        return np.pad(image, ((top, bottom), (left, right), (0, 0)), constant_values=self.value)


class CenterCrop(VisionTransform):
    """Middle parts of images.

    >>> megengine.data.transform.CenterCrop(2).apply(np.zeros((4, 5, 3))).shape
    (2, 2, 3)
    """

    def __init__(self, output_size: Any, *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        self.output_size = (output_size,) * 2 if isinstance(output_size, int) else output_size

    def _apply_image(self, image: Any) -> Any:
        height, width = self.output_size
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        return image[top : top + height, left : left + width]


class RandomCrop(VisionTransform):
    """Random parts of images.

    >>> megengine.data.transform.RandomCrop(2).apply(np.zeros((4, 5, 3))).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        output_size: Any,
        padding_size: Any = 0,
        padding_value: Any = 0,
        padding_maskvalue: int = 0,
        *,
        order: Sequence[str] | None = None,
    ) -> None:
        super().__init__(order)
        self.output_size = (output_size,) * 2 if isinstance(output_size, int) else output_size
        self._pad = Pad(padding_size, padding_value)

    def _apply_image(self, image: Any) -> Any:
        image = self._pad.apply(image)
        (height, width), draw = self.output_size, seeded.generator.integers
        top = int(draw(image.shape[0] - height + 1))
        left = int(draw(image.shape[1] - width + 1))
        return image[top : top + height, left : left + width]


class _RandomFlip(VisionTransform):
    """Images that are mirrored with some probability."""

    _axis = 0

    def __init__(self, prob: float = 0.5, *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        self.prob = prob

    def _apply_image(self, image: Any) -> Any:
        is_flipped = seeded.generator.random() < self.prob
        return np.ascontiguousarray(np.flip(image, self._axis)) if is_flipped else image


class RandomHorizontalFlip(_RandomFlip):
    """Images, mirrored left to right with some probability.

    >>> t = megengine.data.transform.RandomHorizontalFlip(prob=1.0)
    >>> t.apply(np.arange(2).reshape(1, 2, 1)).ravel().tolist()
    [1, 0]
    """

    _axis = 1


class RandomVerticalFlip(_RandomFlip):
    """Images, turned upside down with some probability.

    >>> t = megengine.data.transform.RandomVerticalFlip(prob=1.0)
    >>> t.apply(np.arange(2).reshape(2, 1, 1)).ravel().tolist()
    [1, 0]
    """
