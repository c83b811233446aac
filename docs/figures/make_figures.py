"""Draw the figures of the README and of the documentation.

    python docs/figures/make_figures.py

writes PNG files beside this script. Colours are from the Okabe-Ito palette, which stays readable
for colour-blind readers; classes also differ by their markers. The background is opaque white, so
that the pictures read the same on light and dark pages.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray
from stamp import stamp

from owasvm import LinearOWASVC
from owasvm.loss import hinge_deviations, prox
from owasvm.weights import owa_weights

FloatArray = NDArray[np.float64]

FOLDER = Path(__file__).resolve().parent
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
INK, FAINT = "#222222", "#BBBBBB"
N_MAIN, N_GROUP = 60, 6
N_SHOWN = 36
C = 0.05

plt.rcParams.update(
    {
        "font.size": 11.5,
        "axes.titlesize": 13,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "savefig.dpi": 160,
    }
)


def save(figure: Figure, name: str) -> None:
    figure.savefig(FOLDER / f"{name}.png", metadata=stamp(__file__))
    plt.close(figure)


def two_classes_and_a_group() -> tuple[FloatArray, FloatArray]:
    """Two clouds, and a small group of the class +1 beyond the cloud of the other class."""
    rng = np.random.default_rng(3)
    negative = rng.normal([-1.7, -0.2], [0.6, 0.9], (N_MAIN, 2))
    positive = rng.normal([1.7, -0.2], [0.6, 0.9], (N_MAIN, 2))
    group = rng.normal([-1.6, 3.2], [0.28, 0.28], (N_GROUP, 2))
    labels = np.r_[-np.ones(N_MAIN), np.ones(N_MAIN + N_GROUP)]
    return np.vstack([negative, positive, group]), labels


def draw_plane(ax: Axes, model: LinearOWASVC, X: FloatArray, y: FloatArray) -> None:
    """Samples, decision line, margins, and a ring around the small group."""
    across, up = np.meshgrid(np.linspace(-3.7, 3.7, 300), np.linspace(-2.9, 4.2, 300))
    values = model.decision_function(np.c_[across.ravel(), up.ravel()]).reshape(across.shape)
    sides = [values.min(), 0.0, values.max()]
    ax.contourf(across, up, values, levels=sides, colors=[VERMILLION, BLUE], alpha=0.10)
    styles = {"linestyles": ["--", "-", "--"], "linewidths": [1.0, 2.2, 1.0]}
    ax.contour(across, up, values, levels=[-1, 0, 1], colors=INK, **styles)
    for label, colour, marker in ((-1, VERMILLION, "s"), (1, BLUE, "o")):
        ax.scatter(
            *X[y == label].T, s=26, c=colour, marker=marker, edgecolors="white", linewidths=0.5
        )
    ax.add_patch(Circle(X[-N_GROUP:].mean(axis=0), 0.75, fill=False, color=INK, linewidth=1.2))
    ax.set(xlim=(-3.7, 3.7), ylim=(-2.9, 4.2), xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)


def draw_weights(ax: Axes, weights: FloatArray) -> None:
    """Weight of each of the last ranks."""
    ranks = np.arange(weights.size - N_SHOWN, weights.size + 1) + 0.5
    ax.stairs(weights[-N_SHOWN:], ranks, fill=True, color=INK, alpha=0.75)
    ax.set(xlim=(ranks[0], ranks[-1]), ylim=(0, 5.5), yticks=[0, 5], xticks=[])


def draw_deviations(ax: Axes, deviations: FloatArray, weights: FloatArray) -> None:
    """The largest deviations; those that carry no weight are hollow."""
    n_samples = deviations.size
    ranks = np.arange(n_samples - N_SHOWN, n_samples) + 1
    heights, counted = np.sort(deviations)[-N_SHOWN:], weights[-N_SHOWN:] > 0
    ax.bar(ranks[counted], heights[counted], width=0.8, color=GREEN)
    hollow = {"facecolor": "white", "edgecolor": "#888888", "linewidth": 1.2}
    ax.bar(ranks[~counted], heights[~counted], width=0.65, **hollow)
    ax.annotate(
        f"{deviations.max():.2f}",
        (n_samples, deviations.max()),
        (3, 3),
        textcoords="offset points",
        ha="right",
    )
    ax.set(
        xlim=(ranks[0] - 0.5, n_samples + 0.5),
        ylim=(0, 2.6),
        xticks=[ranks[0], n_samples],
        yticks=[0, 1, 2],
    )
    ax.set_xlabel("rank of the sample", labelpad=-8)


def rank_weights() -> None:
    """What rank weights do: three models of the same samples."""
    X, y = two_classes_and_a_group()
    cases = (
        (
            "uniform: the classical SVM",
            "all deviations count the same",
            LinearOWASVC(C, weights="uniform"),
        ),
        (
            "superquantile: risk-averse",
            "only the worst 20% count",
            LinearOWASVC(C, weights="superquantile", alpha=0.2),
        ),
        (
            "trimmed: robust",
            "the worst 6% do not count",
            LinearOWASVC(C, weights="trimmed", alpha=0.06),
        ),
    )
    figure, axes = plt.subplots(
        3, 3, figsize=(10.4, 6.75), height_ratios=[3.3, 0.55, 1.3], layout="constrained"
    )
    for (plane, strip, bars), (title, rule, model) in zip(axes.T, cases, strict=True):
        model.fit(X, y)
        deviations = hinge_deviations(model.decision_function(X), y)
        weights = owa_weights(y.size, model.weights, model.alpha)
        draw_plane(plane, model, X, y)
        draw_weights(strip, weights)
        draw_deviations(bars, deviations, weights)
        wrong = int(np.sum(model.predict(X[-N_GROUP:]) < 0))
        plane.set_title(title, fontweight="bold")
        plane.set_xlabel(f"{wrong} of the {N_GROUP} ringed samples wrong")
        strip.set_title(rule, fontsize=11.5)
        print(
            f"{title}: {wrong} wrong, largest {deviations.max():.2f}, "
            f"{model.status_}, gap {model.gap_:.0e}"
        )
    axes[1, 0].set_ylabel("weight")
    axes[2, 0].set_ylabel("deviation")
    figure.align_ylabels(axes[1:, 0])
    save(figure, "rank_weights")


def weight_families() -> None:
    """The named families: weights by rank."""
    risk_averse = (
        ("basic", 0.6, BLUE, "-"),
        ("exponential", 2.0, VERMILLION, "--"),
        ("max-entropy", 0.7, GREEN, "-."),
        ("superquantile", 0.4, INK, ":"),
    )
    others = (
        ("trimmed", 0.2, BLUE, "-"),
        ("olympic", 0.6, VERMILLION, "--"),
        ("trigonometric", 0.9, GREEN, "-."),
        ("quadratic", 0.8, INK, ":"),
    )
    n_samples = 200
    shares = (np.arange(n_samples) + 0.5) / n_samples
    figure, axes = plt.subplots(1, 2, figsize=(10.4, 3.9), sharey=True, layout="constrained")
    for ax, cases, place in zip(
        axes, (risk_averse, others), ("upper left", "upper center"), strict=True
    ):
        for family, alpha, colour, style in cases:
            weights = owa_weights(n_samples, family, alpha)
            ax.plot(
                shares, weights, style, color=colour, linewidth=2.4, label=f"{family} {alpha:g}"
            )
        ax.axhline(1.0, color=FAINT, linewidth=1.2, zorder=0)
        ax.set(xlim=(0, 1), ylim=(0, 3.2), xlabel="share of samples with a smaller deviation")
        ax.legend(frameon=False, loc=place)
    axes[0].set_title("non-decreasing: convex, solved exactly", fontweight="bold")
    axes[1].set_title("falling somewhere: search with a bound", fontweight="bold")
    axes[0].set_ylabel("weight (mean 1)")
    save(figure, "weight_families")


def sort_and_pool() -> None:
    """The prox of the OWA hinge on eight numbers."""
    v = np.array([3.1, 2.9, 2.7, 1.9, 1.2, 0.4, 0.25, -0.4])
    weights = np.array([0.1, 0.45, 0.55, 0.6, 0.7, 0.9, 1.3, 1.8])
    lowered = v - np.where(v > 0, weights[::-1], 0.0)
    result = prox(v, weights)
    ranks = np.arange(1, v.size + 1)
    figure, ax = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
    ax.axhline(0.0, color=FAINT, linewidth=1.2, zorder=0)
    for rank, before, after in zip(ranks, v, lowered, strict=True):
        ax.plot([rank, rank], [before, after], color=FAINT, linewidth=1.5, zorder=0)
    ax.plot(ranks, v, "o", color=BLUE, markersize=8, label="v, sorted")
    ax.plot(ranks, lowered, "v", color=VERMILLION, markersize=8, label="v minus the weights")
    ax.step(
        ranks,
        result,
        where="mid",
        color=GREEN,
        linewidth=2.6,
        label="pooled and clipped: the prox",
    )
    ax.set(xticks=ranks, xlabel="position, largest first", ylim=(-0.8, 3.6))
    ax.legend(frameon=False)
    save(figure, "sort_and_pool")


if __name__ == "__main__":
    rank_weights()
    weight_families()
    sort_and_pool()
