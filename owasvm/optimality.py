"""The names of :mod:`owasvm.certificate` where users have always found them."""

from owasvm.certificate import (
    Certificate,
    certificate,
    dual_value,
    feasible_dual,
    judge,
    objective,
)
from owasvm.intercept import best_intercept

__all__ = [
    "Certificate",
    "best_intercept",
    "certificate",
    "dual_value",
    "feasible_dual",
    "judge",
    "objective",
]
