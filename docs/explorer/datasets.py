"""The datasets of the explorer: fifty points each, in two dimensions, with a story.

Fifty, because that many falling weights are proven to be optimal within a fraction of a second.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.preprocessing import StandardScaler

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points, labels, and the points that the story is about.

    Parameters
    ----------
    key, title, story : str
        Name in links; name on the page; what to know about it, one sentence.
    X : ndarray of shape (n_samples, 2)
        Points.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    axes : tuple of str
        What the two coordinates are.
    marked : tuple of int, default=()
        Rows the story is about.
    marked_name : str, default=""
        What these are, one and many: ``"wrong label|wrong labels"``.
    gamma : float, default=0.5
        Of the Gaussian kernel.
    """

    key: str
    title: str
    story: str
    X: FloatArray
    y: FloatArray
    axes: tuple[str, str] = ("x₁", "x₂")
    marked: tuple[int, ...] = ()
    marked_name: str = ""
    gamma: float = 0.5


def make_small_group() -> Dataset:
    rng = np.random.default_rng(5)
    negative = rng.normal([-1.5, -0.4], [0.5, 0.8], (23, 2))
    positive = rng.normal([1.5, -0.4], [0.5, 0.8], (23, 2))
    group = rng.normal([-2.0, 2.6], 0.25, (4, 2))
    return Dataset(
        "group",
        "A small group",
        "Four blue points live far from the other blue ones, beyond the orange cloud.",
        np.vstack([negative, positive, group]),
        np.r_[-np.ones(23), np.ones(27)],
        marked=tuple(range(46, 50)),
        marked_name="point of the small group|points of the small group",
    )


def make_wrong_labels() -> Dataset:
    rng = np.random.default_rng(8)
    left = rng.normal([-1.2, 0.0], [0.6, 0.9], (25, 2))
    right = rng.normal([1.2, 0.0], [0.6, 0.9], (25, 2))
    X = np.vstack([left, right])
    y = np.repeat([-1.0, 1.0], 25)
    # One corner of the right cloud was labelled by somebody else.
    corner = 25 + np.argsort(-(right[:, 0] + right[:, 1]))[:5]
    y[corner] = -1.0
    return Dataset(
        "labels",
        "Wrong labels",
        "Two clean clouds, but five points in a corner carry the label of the other class.",
        X,
        y,
        marked=tuple(sorted(int(row) for row in corner)),
        marked_name="wrong label|wrong labels",
    )


def make_two_moons() -> Dataset:
    X, label = make_moons(50, noise=0.2, random_state=4)
    return Dataset(
        "moons",
        "Two moons",
        "Two bent classes that no straight line separates.",
        StandardScaler().fit_transform(X) * 1.15,
        2.0 * label - 1.0,
        gamma=1.0,
    )


def make_heavy_overlap() -> Dataset:
    rng = np.random.default_rng(11)
    X = np.vstack([rng.normal([-0.6, 0.0], 1.0, (25, 2)), rng.normal([0.6, 0.0], 1.0, (25, 2))])
    return Dataset(
        "overlap",
        "Heavy overlap",
        "Two clouds so close that many points must end up on the wrong side.",
        X,
        np.repeat([-1.0, 1.0], 25),
    )


def make_unequal_classes() -> Dataset:
    rng = np.random.default_rng(5)
    X = np.vstack([rng.normal([-0.4, -0.2], 0.95, (42, 2)), rng.normal([1.3, 1.2], 0.5, (8, 2))])
    return Dataset(
        "unequal",
        "Unequal classes",
        "42 orange points against 8 blue ones that overlap with them.",
        X,
        np.r_[-np.ones(42), np.ones(8)],
        marked=tuple(range(42, 50)),
        marked_name="point of the small class|points of the small class",
    )


def make_tumours() -> Dataset:
    cancer = load_breast_cancer()
    rows = np.random.default_rng(2).choice(len(cancer.target), 50, replace=False)
    y = np.where(cancer.target[rows] == 0, 1.0, -1.0)
    return Dataset(
        "tumours",
        "Tumours",
        "Real data: 50 tumours of the Wisconsin breast cancer data; blue is malignant.",
        StandardScaler().fit_transform(cancer.data[rows][:, [0, 1]]),
        y,
        axes=("mean radius, standardised", "mean texture, standardised"),
        marked=tuple(int(row) for row in np.flatnonzero(y > 0)),
        marked_name="malignant tumour|malignant tumours",
    )


MAKERS = (
    make_small_group,
    make_wrong_labels,
    make_two_moons,
    make_heavy_overlap,
    make_unequal_classes,
    make_tumours,
)
