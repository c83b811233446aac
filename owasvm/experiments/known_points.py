"""Where on the paper's grid its printed values are reached, as found by a run of the whole grid.

A run of a part of the grid can show a printed value only if it computes such a point. Other points
may reach the same value; one of them is enough here.
"""

from __future__ import annotations

from typing import NamedTuple

from owasvm.experiments.paper import DATASETS

__all__ = ["KNOWN_POINTS", "Point"]


class Point(NamedTuple):
    """A point of the grid, as the store writes it.

    Parameters
    ----------
    width : float
        Of the kernel; 0 for linear models.
    C : float
        Factor of the deviations.
    quantifier : str
        Empty for classical models.
    alpha : float
        0 for classical models.
    """

    width: float
    C: float
    quantifier: str
    alpha: float


# Exponents of C and sigma, quantifier and alpha for ACC, the same for AUC; a dash where no point
# of the grid reaches the printed value.
_TABLE = """
IONO l2-SVM         |  4 . . .               |  4 . . .
IONO app-OWA-SVM    |  3 . exponential 0.8   |  4 . trigonometric 0.6
IONO ex-OWA-SVM     |  5 . exponential 0.6   |  5 . exponential 0.6
IONO l2-SVM_K       |  5 2 . .               |  1 0 . .
IONO app-OWA-SVM_K  |  3 2 basic 0.8         |  2 0 quadratic 0.8
IONO ex-OWA-SVM_K   | -1 1 basic 0.6         |  0 0 quadratic 0.2
WBC  l2-SVM         |  0 . . .               |  0 . . .
WBC  app-OWA-SVM    |  0 . trigonometric 0.6 |  0 . trigonometric 0.6
WBC  ex-OWA-SVM     |  0 . trigonometric 0.6 |  0 . trigonometric 0.6
WBC  l2-SVM_K       |  2 1 . .               |  2 1 . .
WBC  app-OWA-SVM_K  |  0 1 quadratic 0.6     |  0 1 quadratic 0.6
WBC  ex-OWA-SVM_K   |  1 1 basic 0.6         |  1 1 basic 0.6
AUS  l2-SVM         | -7 . . .               | -7 . . .
AUS  app-OWA-SVM    |  6 . basic 0.6         |  6 . basic 0.6
AUS  ex-OWA-SVM     | -7 . basic 0.4         | -7 . basic 0.4
AUS  l2-SVM_K       |  3 1 . .               | -5 2 . .
AUS  app-OWA-SVM_K  |  2 1 quadratic 0.6     | -5 2 exponential 0.6
AUS  ex-OWA-SVM_K   | -5 2 basic 0.8         |  -
DIA  l2-SVM         | -3 . . .               |  1 . . .
DIA  app-OWA-SVM    | -3 . trigonometric 0.4 | -5 . basic 0.6
DIA  ex-OWA-SVM     | -3 . trigonometric 0.4 |  5 . exponential 0.4
DIA  l2-SVM_K       | -2 0 . .               |  6 3 . .
DIA  app-OWA-SVM_K  | -1 1 trigonometric 0.4 |  -
DIA  ex-OWA-SVM_K   | -1 1 trigonometric 0.4 | -2 0 basic 0.6
GC   l2-SVM         | -2 . . .               |  0 . . .
GC   app-OWA-SVM    | -3 . exponential 0.8   | -6 . basic 0.6
GC   ex-OWA-SVM     | -3 . basic 0.8         | -1 . trigonometric 0.6
GC   l2-SVM_K       |  2 2 . .               |  2 2 . .
GC   app-OWA-SVM_K  |  2 3 exponential 0.8   | -2 2 quadratic 0.2
GC   ex-OWA-SVM_K   |  5 4 exponential 0.8   |  3 2 quadratic 0.4
SPL  l2-SVM         | -5 . . .               | -5 . . .
SPL  app-OWA-SVM    |  2 . quadratic 0.8     |  2 . quadratic 0.8
SPL  ex-OWA-SVM     | -5 . basic 0.8         | -5 . basic 0.8
SPL  l2-SVM_K       |  1 2 . .               |  2 2 . .
SPL  app-OWA-SVM_K  |  3 3 quadratic 0.6     |  3 3 quadratic 0.6
SPL  ex-OWA-SVM_K   |  -                     |  -
"""


def _read_points() -> dict[tuple[str, str, str], Point]:
    names = {dataset.label: dataset.name for dataset in DATASETS.values()}
    points = {}
    for line in _TABLE.strip().splitlines():
        row, *columns = line.split("|")
        label, model = row.split()
        for metric, column in zip(("acc", "auc"), columns, strict=True):
            if column.strip() == "-":
                continue
            C, width, quantifier, alpha = column.split()
            points[metric, names[label], model] = Point(
                0.0 if width == "." else 2.0 ** int(width),
                2.0 ** int(C),
                quantifier.strip("."),
                0.0 if alpha == "." else float(alpha),
            )
    return points


#: By metric ("acc" or "auc"), dataset and model.
KNOWN_POINTS: dict[tuple[str, str, str], Point] = _read_points()
