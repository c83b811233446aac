"""Classifiers with scikit-learn's interface."""

from owasvm.estimators._constant import ConstantClassifierWarning
from owasvm.estimators.linear_owa_svc import LinearOWASVC
from owasvm.estimators.owa_svc import OWASVC
from owasvm.estimators.owa_svc_cv import OWASVCCV, LinearOWASVCCV
from owasvm.estimators.two_step import TwoStepOWASVC

__all__ = [
    "OWASVC",
    "OWASVCCV",
    "ConstantClassifierWarning",
    "LinearOWASVC",
    "LinearOWASVCCV",
    "TwoStepOWASVC",
]
