"""Every check of scikit-learn for every classifier; none is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data as check_dense_weights,
)
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_sparse_data as check_sparse_weights,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from owasvm import OWASVC, OWASVCCV, LinearOWASVC, LinearOWASVCCV, TwoStepOWASVC

# Many starts take most of the time, and no check asks for them.
QUICK = {"solver_options": {"n_init": 1}}
# The checks bring labels without a pattern, which leave nothing better than w = 0.
pytestmark = pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")

ESTIMATORS = [
    OWASVC(),
    OWASVC(weights="max-entropy", warm_start=True),
    OWASVC(kernel="linear", weights="superquantile", alpha=0.5),
    OWASVC(kernel="poly", degree=2, coef0=1.0, weights="exponential", class_weight="balanced"),
    LinearOWASVC(),
    LinearOWASVC(weights="uniform", class_weight="balanced"),
    OWASVC(loss="squared_hinge"),
    LinearOWASVC(loss="squared_hinge"),
    OWASVC(ranks="class"),
    LinearOWASVC(ranks="class"),
    LinearOWASVC(loss="squared_hinge", ranks="class"),
    OWASVC(weights="trimmed", alpha=0.2),
    OWASVC(weights="trigonometric", alpha=0.5),
    OWASVC(weights="olympic", **QUICK),
    OWASVC(weights="trimmed", alpha=0.2, ranks="class", **QUICK),
    OWASVC(weights="quadratic", alpha=0.8, kernel="linear", class_weight="balanced", **QUICK),
    LinearOWASVC(weights="olympic", solver_options={"n_init": 2}),
    LinearOWASVC(weights="trimmed", alpha=0.2, **QUICK),
    LinearOWASVC(weights="trigonometric", alpha=0.8, **QUICK),
    LinearOWASVC(weights="quadratic", alpha=0.8, ranks="class", **QUICK),
    TwoStepOWASVC(ranks="class"),
    OWASVCCV(Cs=2, cv=2),
    LinearOWASVCCV(Cs=[0.1, 1.0], cv=2),
    TwoStepOWASVC(),
    TwoStepOWASVC(weights="trimmed", alpha=0.1, mix=0.5),
    *(TwoStepOWASVC(order=order) for order in ("lof", "knn", "parzen", "spread", "fuzzy-dbscan")),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", [check_dense_weights, check_sparse_weights])
@pytest.mark.parametrize(
    "estimator",
    [
        OWASVC(weights="olympic"),
        OWASVC(weights="trimmed", alpha=0.2, ranks="class"),
        LinearOWASVC(weights="olympic"),
        LinearOWASVC(weights="trimmed", alpha=0.2),
    ],
    ids=repr,
)
def test_weights_are_copies_for_searches_at_full_length(estimator, check):
    """The checks that compare where two searches end."""
    check(type(estimator).__name__, estimator)
