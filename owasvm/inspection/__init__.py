"""Looking into data and fitted classifiers: pictures, and labels that look wrong."""

from owasvm.inspection.convergence import ConvergenceDisplay
from owasvm.inspection.deviations import DeviationsDisplay
from owasvm.inspection.labels import label_issues, suspicion
from owasvm.inspection.path import PathDisplay
from owasvm.inspection.weights import WeightsDisplay

__all__ = [
    "ConvergenceDisplay",
    "DeviationsDisplay",
    "PathDisplay",
    "WeightsDisplay",
    "label_issues",
    "suspicion",
]
