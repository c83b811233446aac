"""Draw who gains: ``python docs/figures/make_rare_group.py`` writes rare_group.png.

Even against odd handwritten digits (scikit-learn's), linear models. One digit is rare in the
training set, 5 samples against 60 of each other, and no model is told which; the test set has all
ten digits equally. Every digit is the rare one in turn, over 20 random splits. The classical SVM
and basic weights with alpha 0.5 are compared over all values of C. Bars are two standard errors
over the splits.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from stamp import stamp

from owasvm import LinearOWASVC

FloatArray = NDArray[np.float64]

FOLDER = Path(__file__).resolve().parent
BLUE, VERMILLION, INK, FAINT = "#0072B2", "#D55E00", "#222222", "#DDDDDD"
CS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
N_SPLITS, N_RARE, N_OTHERS = 20, 5, 60
# Name, alpha, colour and marker; basic weights with alpha 1 are those of the classical SVM.
MODELS = (
    ("classical SVM", 1.0, VERMILLION, "s"),
    ("basic weights, alpha 0.5", 0.5, BLUE, "o"),
)

images, digits = load_digits(return_X_y=True)
images, is_odd = images / 16, digits % 2


def accuracy_by_digit(C: float, alpha: float, rare: int, seed: int) -> list[float]:
    """Test accuracy on each of the ten digits when one of them is rare in training."""
    pool, test = train_test_split(
        np.arange(digits.size), test_size=0.5, stratify=digits, random_state=seed
    )
    rng = np.random.default_rng(seed)
    train = np.concatenate(
        [
            rng.choice(pool[digits[pool] == k], N_RARE if k == rare else N_OTHERS, False)
            for k in range(10)
        ]
    )
    model = LinearOWASVC(C=C, weights="basic", alpha=alpha, tol=1e-4)
    right = model.fit(images[train], is_odd[train]).predict(images[test]) == is_odd[test]
    return [float(right[digits[test] == k].mean()) for k in range(10)]


def measure(alpha: float) -> FloatArray:
    """Accuracy in percent: C, split, rare digit, digit."""
    return 100 * np.array(
        [
            [
                [accuracy_by_digit(C, alpha, rare, seed) for rare in range(10)]
                for seed in range(N_SPLITS)
            ]
            for C in CS
        ]
    )


def two_errors(values: FloatArray) -> FloatArray:
    """Two standard errors over the splits, the first axis."""
    return np.asarray(2 * values.std(axis=0, ddof=1) / np.sqrt(N_SPLITS))


def main() -> None:
    plt.rcParams.update({"font.size": 11.5, "axes.spines.top": False, "axes.spines.right": False})
    figure, (by_digit, by_C) = plt.subplots(
        1, 2, figsize=(10.4, 4.2), width_ratios=[1.25, 1], layout="constrained"
    )
    best_rare = []
    for shift, (name, alpha, colour, marker) in zip((-0.14, 0.14), MODELS, strict=True):
        accuracy = measure(alpha)
        rare = np.diagonal(accuracy, axis1=2, axis2=3)
        everywhere = accuracy.mean(axis=(2, 3))
        best = int(everywhere.mean(axis=1).argmax())
        by_digit.errorbar(
            np.arange(10) + shift,
            rare[best].mean(axis=0),
            two_errors(rare[best]),
            fmt=marker,
            color=colour,
            capsize=2,
            label=f"{name}, C = {CS[best]:g}",
        )
        over_digits = rare.mean(axis=2)
        by_C.errorbar(
            everywhere.mean(axis=1),
            over_digits.mean(axis=1),
            two_errors(over_digits.T),
            fmt=f"{marker}-",
            color=colour,
            capsize=2,
        )
        for k in (0, best, len(CS) - 1):
            is_last = k == len(CS) - 1
            by_C.annotate(
                f"C = {CS[k]:g}",
                (everywhere[k].mean(), over_digits[k].mean()),
                xytext=(-7, 4) if is_last else (7, -13),
                ha="right" if is_last else "left",
                textcoords="offset points",
                fontsize=9.5,
                color=colour,
            )
        best_rare.append(over_digits[best])
        for C, overall, group in zip(CS, everywhere, over_digits, strict=True):
            print(
                f"{name}, C = {C:g}: all digits "
                f"{overall.mean():.1f} +- {two_errors(overall):.1f}, the rare one "
                f"{group.mean():.1f} +- {two_errors(group):.1f}"
            )
        print(f"lowest digit at C = {CS[best]:g}: {rare[best].mean(axis=0).min():.1f}")
    gain = best_rare[1] - best_rare[0]
    print(f"gain at the best C of each: {gain.mean():.1f} +- {two_errors(gain):.1f} points")
    by_digit.set(xlabel="the rare digit", ylabel="test accuracy on it (%)", ylim=(0, 103))
    by_digit.set_xticks(range(10))
    by_digit.legend(loc="lower right", frameon=False)
    by_digit.grid(axis="y", color=FAINT)
    by_digit.set_title("each digit, when it is the rare one", fontsize=12)
    by_C.set(xlabel="test accuracy on all digits (%)", ylabel="on the rare digit (%), mean of ten")
    by_C.grid(color=FAINT)
    by_C.set_title("for every C: up and right is better", fontsize=12)
    figure.savefig(FOLDER / "rare_group.png", dpi=130, metadata=stamp(__file__))


if __name__ == "__main__":
    main()
