"""Looking into data and fitted classifiers."""

from owasvm.inspection.labels import label_issues, suspicion

__all__ = ["label_issues", "suspicion"]
