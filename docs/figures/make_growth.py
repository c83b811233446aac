"""Draw how time and memory grow: ``python docs/figures/make_growth.py`` writes growth.png.

It reads ``benchmarks/results/growth.jsonl``, which ``benchmarks/growth.py`` writes. Colours are
from the Okabe-Ito palette; ours are solid lines with discs, rivals dashed ones with squares or
triangles. The numbers beside the names are exponents.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator
from stamp import stamp

FOLDER = Path(__file__).resolve().parent
RECORDS = FOLDER.parents[1] / "benchmarks" / "results" / "growth.jsonl"
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
INK, FAINT = "#222222", "#DDDDDD"
# Title and ticks.
PARTS = {
    "linear": ("linear models", (10_000, 100_000, 1_000_000)),
    "memory": ("kernel, in memory", (100, 1_000, 10_000)),
    "demand": ("kernel, on demand", (6_000, 15_000, 50_000)),
    "path": ("path, 8 values of C", (500, 2_000, 8_000)),
}
STYLES = {
    "ours": (BLUE, "o-"),
    "SVC": (VERMILLION, "s--"),
    "LinearSVC": (VERMILLION, "s--"),
    "n^2 dual": (GREEN, "^--"),
}
NAMES = {"ours": "owasvm", "n^2 dual": "n² dual"}
# Smaller amounts of memory are those of the interpreter.
LEAST = {"seconds": 0.0, "MiB": 2.0}

plt.rcParams.update(
    {
        "font.size": 12,
        "axes.titlesize": 12.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "savefig.dpi": 120,
    }
)


def draw(ax: Axes, records: list[dict[str, Any]], what: str) -> None:
    """One line for each who, its exponent beside the name."""
    for who in dict.fromkeys(record["who"] for record in records):
        points = [(r["n"], r[what]) for r in records if r["who"] == who and r[what] > LEAST[what]]
        if not points:
            continue
        sizes, values = np.array(sorted(points)).T
        label = NAMES.get(who, who)
        if sizes.size >= 3:
            label += f"  {np.polyfit(np.log(sizes), np.log(values), 1)[0]:.2f}"
        colour, style = STYLES[who]
        ax.loglog(sizes, values, style, color=colour, linewidth=2.2, markersize=6, label=label)
    # Room for the legend.
    lowest, highest = ax.get_ylim()
    ax.set_ylim(lowest, highest * (highest / lowest) ** 0.55)
    ax.yaxis.set_major_locator(LogLocator(numticks=6))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, loc="upper left", handlelength=2.0, borderpad=0.0)


def show_size(size: float, _: int) -> str:
    """As 12k or 1M."""
    if size >= 1e6:
        return f"{size / 1e6:g}M"
    return f"{size / 1e3:g}k" if size >= 1e3 else f"{size:g}"


def main() -> None:
    """Time above, memory below, a column for each part."""
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    figure, axes = plt.subplots(2, 4, figsize=(11.6, 6.6), layout="constrained", sharex="col")
    for column, (part, (title, ticks)) in enumerate(PARTS.items()):
        own = [record for record in records if record["part"] == part]
        for row, what in enumerate(("seconds", "MiB")):
            draw(axes[row, column], own, what)
        axes[0, column].set_title(title, fontweight="bold")
        axes[1, column].set_xlabel("samples")
        axes[1, column].set_xticks(ticks)
        axes[1, column].xaxis.set_major_formatter(FuncFormatter(show_size))
        for ax in axes[:, column]:
            ax.minorticks_off()
    axes[0, 0].set_ylabel("seconds of one core")
    axes[1, 0].set_ylabel("MiB beyond the data")
    figure.savefig(FOLDER / "growth.png", metadata=stamp(__file__, RECORDS))


if __name__ == "__main__":
    main()
