"""Draw what wrong labels cost: ``python docs/figures/make_label_noise.py`` writes label_noise.png.

It reads ``benchmarks/results/label_noise.jsonl``, which ``benchmarks/label_noise.py`` writes.
Lines are mean differences to the tuned SVC, bars two standard errors; colours are from the
Okabe-Ito palette, and markers tell the methods apart without them.
"""

import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from stamp import stamp

FOLDER = Path(__file__).resolve().parent
RECORDS = FOLDER.parents[1] / "benchmarks" / "results" / "label_noise.jsonl"
INK, FAINT = "#222222", "#DDDDDD"
STYLES = {
    "exact trimmed": ("#0072B2", "o-"),
    "trimmed by class": ("#009E73", "^-"),
    "two-step trimmed": ("#D55E00", "s--"),
    "SVC, filtered": ("#CC79A7", "D:"),
}
NOISES = ("symmetric", "one-sided")
RATES = (0.0, 0.1, 0.2, 0.3)

plt.rcParams.update(
    {
        "font.size": 11.5,
        "axes.titlesize": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "savefig.dpi": 110,
    }
)


def read_accuracies() -> dict[tuple[str, str, float, str], dict[int, float]]:
    """Accuracy in percent by dataset, noise, rate and method: one per seed."""
    accuracies: dict[tuple[str, str, float, str], dict[int, float]] = defaultdict(dict)
    for line in RECORDS.read_text().splitlines():
        record = json.loads(line)
        key = (record["dataset"], record["noise"], record["rate"], record["method"])
        accuracies[key][record["seed"]] = 100.0 * record["accuracy"]
    return accuracies


def main() -> None:
    """A column for each dataset, symmetric noise above, one-sided below."""
    accuracies = read_accuracies()
    datasets = list(dict.fromkeys(key[0] for key in accuracies))
    figure, axes = plt.subplots(
        2, len(datasets), figsize=(13.2, 6.2), layout="constrained", sharex=True, sharey=True
    )
    for (row, noise), (column, dataset) in (
        (one, other) for one in enumerate(NOISES) for other in enumerate(datasets)
    ):
        ax = axes[row, column]
        ax.axhline(0.0, color=INK, linewidth=1)
        for shift, (method, (colour, style)) in enumerate(STYLES.items()):
            means, errors, rates = [], [], []
            for rate in RATES:
                what = (dataset, noise if rate else "none", rate)
                own, base = (accuracies[(*what, who)] for who in (method, "SVC"))
                pairs = [own[seed] - base[seed] for seed in own if seed in base]
                if len(pairs) > 1:
                    means.append(np.mean(pairs))
                    errors.append(2.0 * np.std(pairs, ddof=1) / np.sqrt(len(pairs)))
                    rates.append(rate + 0.008 * (shift - 1.5))
            ax.errorbar(
                rates, means, errors, fmt=style, color=colour, label=method, markersize=5, lw=1.6
            )
        ax.grid(color=FAINT, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.set_xticks(RATES, [f"{100 * rate:g}%" for rate in RATES])
        if row == 0:
            ax.set_title(dataset, fontweight="bold")
    for row, noise in enumerate(NOISES):
        axes[row, 0].set_ylabel(f"{noise}\npoints against SVC")
    axes[0, 0].set_ylim(-16, 9)
    figure.supxlabel("flipped labels: share of all (above), of one class (below)", fontsize=11.5)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(FOLDER / "label_noise.png", metadata=stamp(__file__, RECORDS))


if __name__ == "__main__":
    main()
