"""Support vector machines with an ordered weighted average of hinge deviations."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from owasvm.estimators import (
        OWASVC,
        OWASVCCV,
        ConstantClassifierWarning,
        LinearOWASVC,
        LinearOWASVCCV,
        TwoStepOWASVC,
    )

__version__ = "0.1.0"

__all__ = [
    "OWASVC",
    "OWASVCCV",
    "ConstantClassifierWarning",
    "LinearOWASVC",
    "LinearOWASVCCV",
    "TwoStepOWASVC",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # scikit-learn and numba take about two seconds to import; whoever needs the weights alone,
    # or the help text of the command line, does not wait for them.
    if name in __all__:
        from owasvm import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
