"""Convolution of images with masks, pooling, and products of what comes out (the CIFAR recipe of section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pomona.errors import OptionError
from pomona.leastsquares import streams
from pomona.leastsquares.arrays import Array, Place, to_numpy
from pomona.leastsquares.generators.base import Features, SeededGenerator, View

MASKS = ("random", "kmeans")
#: Images and patches from which means, whitening and k-means are learnt.
SAMPLE_IMAGES = 2000
SAMPLE_PATCHES = 40_000
KMEANS_STEPS = 10
#: Added to the variances of patches, as a share of their mean: weak directions are noise.
WHITENING = 0.1
#: Responses below this many standard deviations do not count.
THRESHOLD = 0.5
#: Bytes of the patches of some images.
PATCH_BYTES = 1 << 25


@dataclass
class Convolution(SeededGenerator):
    """Pooled responses of masks, and products of pairs of them.

    Patches are centred and whitened, which is part of the masks; a response below a threshold counts as none.

    Parameters
    ----------
    shape : height, width and channels of the images, which are rows of that many numbers.
    masks : "random" (Gaussian) or "kmeans" (centres of patches; Coates et al., 2011, without contrast normalisation).
    patch : side of a mask.
    pool : responses are averaged over a grid of pool × pool regions.
    products : whether half of the features are products of two pooled responses.
    """

    shape: Sequence[int] = (32, 32, 3)
    masks: str = "random"
    patch: int = 6
    pool: int = 2
    products: bool = True
    kind: ClassVar[str] = "convolution"

    def __post_init__(self) -> None:
        if len(self.shape) != 3 or min(self.shape) < 1:
            raise OptionError(f"the shape of images is height, width, channels; got {self.shape}")
        if self.masks not in MASKS:
            raise OptionError(f"masks must be one of {', '.join(MASKS)}; got {self.masks!r}")
        if not 1 <= self.patch <= min(self.shape[:2]) - self.pool + 1 or self.pool < 1:
            raise OptionError(
                f"a patch of {self.patch} and a pool of {self.pool} do not fit images of"
                f" {self.shape[0]} × {self.shape[1]}: give smaller ones"
            )

    def n_masks(self, size: int) -> int:
        """Masks that make at most ``size`` features."""
        return max(1, size // (self.pool**2 * (2 if self.products else 1)))

    def generate(self, stage: int, size: int, view: View) -> Features:
        if view.d != int(np.prod(self.shape)):
            raise OptionError(
                f"images of {' × '.join(map(str, self.shape))} have {int(np.prod(self.shape))} numbers; got rows of"
                f" {view.d}: give the shape"
            )
        place, count = view.place, self.n_masks(size)
        masks, bias = self._masks(stage, count, view)
        M, b = place.put(masks), place.put(bias[None, :])
        pooled = count * self.pool**2
        pairs = None
        if self.products:
            draw = streams.uniform((2, pooled), self.seed, stage, "pairs")
            pairs = [place.integers((row * pooled).astype(np.int64)) for row in draw]

        def features(X: Array) -> Array:
            X = place.put(X.toarray()) if sparse.issparse(X) else X
            Z = self._pooled(X, M, b, place)
            if pairs is None:
                return Z
            products = place.xp.take(Z, pairs[0], axis=1) * place.xp.take(Z, pairs[1], axis=1)
            return place.xp.concat([Z, products], axis=1)

        return features

    # ---- responses ----
    def _patches(self, images: Array, place: Place) -> Array:
        """All patches as rows, image by image."""
        h, w = (side - self.patch + 1 for side in self.shape[:2])
        steps = [(y, x) for y in range(self.patch) for x in range(self.patch)]
        parts = [images[:, y : y + h, x : x + w, :] for y, x in steps]
        return place.xp.reshape(place.xp.concat(parts, axis=3), (-1, self.patch**2 * self.shape[2]))

    def _pooled(self, X: Array, M: Array, b: Array, place: Place) -> Array:
        xp = place.xp
        h, w = (side - self.patch + 1 for side in self.shape[:2])
        each = h * w * max(int(M.shape[0]), int(M.shape[1])) * 4
        step = max(1, (PATCH_BYTES if place.on_cpu else 32 * PATCH_BYTES) // each)
        rows = [np.linspace(0, side, self.pool + 1).astype(int).tolist() for side in (h, w)]
        parts = []
        n = int(X.shape[0])
        for start in range(0, n, step):
            images = xp.reshape(X[start : min(start + step, n), :], (-1, *self.shape))
            R = xp.clip(self._patches(images, place) @ M + b, min=0.0)
            R = xp.reshape(R, (int(images.shape[0]), h, w, -1))
            regions = [
                xp.mean(R[:, top:bottom, left:right, :], axis=(1, 2))
                for top, bottom in zip(rows[0], rows[0][1:], strict=False)
                for left, right in zip(rows[1], rows[1][1:], strict=False)
            ]
            parts.append(xp.concat(regions, axis=1))
        return xp.concat(parts, axis=0)

    # ---- masks ----
    def _masks(self, stage: int, count: int, view: View) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Masks that work on raw patches, and what is added to their responses."""
        if "whitening" not in self.learnt:
            self._learn_patches(view)
        whitening = self.learnt["whitening"]
        width = len(whitening)
        if self.masks == "kmeans":
            name = f"masks_{stage}"
            if name not in self.learnt:
                patches = self._sample_patches(view, stage)
                start = view.place.put(streams.normal((width, count), self.seed, stage, "masks"))
                centred = view.place.put((patches - self.learnt["mean"]) @ whitening)
                self.learnt[name] = to_numpy(spherical_kmeans(centred, start, view.place)).astype(np.float32)
            masks = self.learnt[name].astype(np.float64)
        else:
            masks = streams.normal((width, count), self.seed, stage, "masks").astype(np.float64)
        masks = whitening @ (masks / np.maximum(np.linalg.norm(masks, axis=0), 1e-12))
        bias = -self.learnt["mean"] @ masks - THRESHOLD
        return masks.astype(np.float32), bias.astype(np.float32)

    def _sample_patches(self, view: View, stage: int) -> NDArray[np.float64]:
        sampled, _ = view.sample(SAMPLE_IMAGES)
        images = (sampled.toarray() if sparse.issparse(sampled) else to_numpy(sampled)).reshape(-1, *self.shape)
        sides = [len(images), *(side - self.patch + 1 for side in self.shape[:2])]
        draw = streams.uniform((3, SAMPLE_PATCHES), self.seed, stage, "patches")
        i, y, x = ((row * side).astype(np.int64)[:, None, None] for row, side in zip(draw, sides, strict=True))
        steps = np.arange(self.patch)
        patches = images[i, y + steps[None, :, None], x + steps[None, None, :]]
        return np.asarray(patches.reshape(SAMPLE_PATCHES, -1), np.float64)

    def _learn_patches(self, view: View) -> None:
        """The mean patch, and the symmetric matrix that brings patches to variance 1 in all strong directions."""
        patches = self._sample_patches(view, 0)
        mean = patches.mean(axis=0)
        # Each patch without its own mean: brightness is left out.
        width = patches.shape[1]
        centre = np.eye(width) - 1.0 / width
        covariance = centre @ np.cov(patches - mean, rowvar=False, bias=True).reshape(width, width) @ centre
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, 0.0)
        scales = 1.0 / np.sqrt(values + WHITENING * max(float(values.mean()), 1e-12))
        self.learnt["mean"] = mean
        self.learnt["whitening"] = centre @ (vectors * scales) @ vectors.T


def spherical_kmeans(points: Array, centres: Array, place: Place) -> Array:
    """Centres of length 1, one a column, that the points' projections agree with (Coates and Ng, 2012)."""
    xp = place.xp

    def unit(C: Array) -> Array:
        return C / xp.clip(xp.sqrt(xp.sum(C * C, axis=0, keepdims=True)), min=1e-12)

    for _ in range(KMEANS_STEPS):
        centres = unit(centres)
        projections = points @ centres
        strength = xp.abs(projections)
        # Each point counts for the centre that it agrees with most, as much as it agrees.
        shares = xp.where(strength == xp.max(strength, axis=1, keepdims=True), projections, xp.zeros_like(projections))
        # A little of the old centre keeps those that no point chose.
        centres = points.T @ shares + centres
    return unit(centres)
