"""The four recipes of CONTRIBUTING.md: a toy of each, in one place, made known by one line.

Every toy is then used through the ordinary estimators: nothing else in the package changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from owasvm import OWASVC, LinearOWASVC, TwoStepOWASVC
from owasvm.certificate import certificate, judge
from owasvm.costs import Costs
from owasvm.losses import LOSSES, ProxPoint, RankedHinge
from owasvm.path import fit_path
from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples import KINDS
from owasvm.solution import Solution, Status
from owasvm.solvers import REGISTRY as SOLVERS
from owasvm.solvers import Settings, Solver, solve
from owasvm.weights import REGISTRY as FAMILIES
from owasvm.weights import Family, Slices, is_convex, owa_weights, share_function
from tests.block_kernel import BlockKernel
from tests.oracles import cvxpy_owa_svm, psd_factor

FloatArray = NDArray[np.float64]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
SIGNS = np.where(X[:, 0] + X[:, 1] + RNG.normal(size=50) > 0, 1.0, -1.0)


# A weight family: G(t) = (1 + alpha) t - alpha t^2, the weights of Gini's index


def gini_share(t: FloatArray, alpha: float) -> FloatArray:
    return t * (1.0 + alpha * (1.0 - t))


def gini_weights(slices: Slices, alpha: float) -> FloatArray:
    return slices.amount * (1.0 + alpha * (1.0 - slices.after - slices.before))


def is_share(alpha: float) -> bool:
    return 0.0 <= alpha <= 1.0


@pytest.fixture
def gini(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family("0 <= alpha <= 1", is_share, gini_share, gini_weights)
    monkeypatch.setitem(FAMILIES, "gini", family)


@pytest.mark.usefixtures("gini")
class TestWeightFamily:
    def test_weights(self) -> None:
        np.testing.assert_allclose(owa_weights(4, "gini", 1.0), [0.25, 0.75, 1.25, 1.75])
        np.testing.assert_allclose(owa_weights(4, "gini", 0.0), 1.0)
        assert is_convex(owa_weights(50, "gini", 0.7))
        np.testing.assert_allclose(share_function("gini", 0.5)([0.0, 0.5, 1.0]), [0.0, 0.625, 1.0])

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_estimators(self, loss: str) -> None:
        weights = owa_weights(50, "gini", 0.7)
        oracle = cvxpy_owa_svm(X, SIGNS, weights, 2.0, power=2 if loss == "squared_hinge" else 1)
        for clf in (
            LinearOWASVC(2.0, weights="gini", alpha=0.7, loss=loss),
            OWASVC(2.0, weights="gini", alpha=0.7, loss=loss, kernel="linear"),
        ):
            clf.fit(X, SIGNS)
            assert clf.status_ == "optimal" and clf.convex_
            assert clf.objective_ == pytest.approx(oracle.objective, rel=1e-6)
            np.testing.assert_allclose(clf.owa_weights_, weights)
        two_step = TwoStepOWASVC(weights="gini", alpha=0.7).fit(X, SIGNS)
        assert two_step.score(X, SIGNS) > 0.7

    def test_whole_number_weights_are_copies(self) -> None:
        counts = np.arange(50) % 3 + 1
        clf = LinearOWASVC(weights="gini", alpha=0.7)
        weighted = clone(clf).fit(X, SIGNS, sample_weight=counts)
        copied = clone(clf).fit(np.repeat(X, counts, axis=0), np.repeat(SIGNS, counts))
        assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-6)

    def test_searches_and_paths(self) -> None:
        search = GridSearchCV(OWASVC(), {"weights": ["basic", "gini"], "alpha": [0.3]}, cv=2)
        assert search.fit(X, SIGNS).best_score_ > 0.6
        path = fit_path(X, SIGNS, [0.1, 1.0], weights="gini", alphas=[0.2, 0.9])
        assert path.gaps.max() <= 1e-6

    def test_alpha_is_checked(self) -> None:
        message = r"alpha=2.0 is out of range: family 'gini' needs a number with 0 <= alpha <= 1"
        with pytest.raises(ValueError, match=message):
            OWASVC(weights="gini", alpha=2.0).fit(X, SIGNS)


def test_unknown_families_are_named() -> None:
    with pytest.raises(ValueError, match=r"weights.*'uniform'.*Got 'gini'"):
        OWASVC(weights="gini").fit(X, SIGNS)
    with pytest.raises(ValueError, match="Unknown weight family 'gini'; use one of uniform"):
        owa_weights(3, "gini", 0.5)


# A loss: deviations below a tolerance cost nothing

TOLERANCE = 0.5


class ToleratingHinge:
    """``Phi(u) = sum_k c_k max(u - 0.5, 0)_(k)``, the ranked hinge of shifted slacks."""

    is_curved: ClassVar[bool] = False

    def __init__(self, costs: Costs) -> None:
        self._hinge = RankedHinge(costs)
        self.mass = self._hinge.mass
        self.mean_cost = self._hinge.mean_cost

    def value(self, slack: FloatArray) -> float:
        return self._hinge.value(slack - TOLERANCE)

    def prox(self, v: FloatArray, penalty: float, out: ProxPoint) -> None:
        self._hinge.prox(v - TOLERANCE, penalty, out)
        out.prox += TOLERANCE

    def project(self, v: FloatArray, out: ProxPoint) -> None:
        self._hinge.project(v, out)

    def conjugate_at(self, point: ProxPoint) -> float:
        return self.conjugate(point.dual)

    def conjugate(self, dual: FloatArray) -> float:
        return TOLERANCE * float(dual.sum())

    def excess(self, dual: FloatArray) -> float:
        return self._hinge.excess(dual)

    def subgradient(self, slack: FloatArray) -> FloatArray:
        return self._hinge.subgradient(slack - TOLERANCE)

    def slopes(
        self, scores: FloatArray, y: FloatArray, intercept: float, resolution: float
    ) -> tuple[float, float, float]:
        # 1 - y (s + b) - TOLERANCE, the deviations of other scores.
        return self._hinge.slopes(scores + TOLERANCE * y, y, intercept, resolution)

    def rounding(self, slack: FloatArray, error: FloatArray, value: float) -> float:
        off = error + np.finfo(float).eps * np.abs(slack)
        return self._hinge.rounding(slack - TOLERANCE, off, value)

    def constant_intercepts(self, y: FloatArray) -> tuple[float, ...]:
        return tuple((1.0 - TOLERANCE) * b for b in self._hinge.constant_intercepts(y))


@pytest.fixture
def tolerating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, "tolerating", ToleratingHinge)


def tolerating_optimum(rows: FloatArray, weights: FloatArray, C: float) -> float:
    w, b = cp.Variable(rows.shape[1]), cp.Variable()
    deviations = cp.pos(1.0 - TOLERANCE - cp.multiply(SIGNS, rows @ w + b))
    objective = cp.sum_squares(w) / 2 + C * cp.dotsort(deviations, weights)
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    return float(cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL, **tight))


@pytest.mark.usefixtures("tolerating")
class TestLoss:
    @pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
    @pytest.mark.parametrize(("family", "alpha"), [("basic", 0.5), ("superquantile", 0.8)])
    def test_certified_against_cvxpy(self, C: float, family: str, alpha: float) -> None:
        weights = owa_weights(50, family, alpha)
        expected = tolerating_optimum(X, weights, C)
        for clf in (
            LinearOWASVC(C, weights=family, alpha=alpha, loss="tolerating"),
            OWASVC(C, weights=family, alpha=alpha, loss="tolerating", kernel="linear"),
        ):
            clf.fit(X, SIGNS)
            assert clf.status_ == "optimal" and clf.gap_ <= 1e-6
            assert clf.objective_ == pytest.approx(expected, rel=2e-6, abs=1e-6)
            assert clf.lower_bound_ <= expected + 1e-7 * max(1.0, expected)
            dual = np.zeros(50)
            dual[clf.support_] = clf.dual_coef_[0]
            proof = certificate(
                X,
                SIGNS,
                family,
                C,
                dual,
                clf.intercept_[0],
                alpha=alpha,
                coef=clf.coef_[0],
                loss="tolerating",
            )
            assert proof.gap <= 1e-6
            assert proof.objective == pytest.approx(clf.objective_, rel=1e-9)

    def test_kernels_weights_and_paths(self) -> None:
        clf = OWASVC(2.0, gamma=0.5, loss="tolerating")
        counts = np.arange(50) % 2 + 1
        weighted = clone(clf).fit(X, SIGNS, sample_weight=counts)
        copied = clone(clf).fit(np.repeat(X, counts, axis=0), np.repeat(SIGNS, counts))
        assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-6)
        gram = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
        expected = tolerating_optimum(psd_factor(gram), owa_weights(50, "basic", 0.6), 2.0)
        path = fit_path(X, SIGNS, [0.5, 2.0], gamma=0.5, loss="tolerating")
        assert path.objectives[0, 1] == pytest.approx(expected, rel=1e-6)
        assert path.objectives[0, 1] == pytest.approx(clf.fit(X, SIGNS).objective_, rel=1e-6)

    def test_general_weights_are_refused(self) -> None:
        message = "loss='tolerating' needs weights that never fall"
        with pytest.raises(ValueError, match=message):
            OWASVC(weights="trimmed", alpha=0.2, loss="tolerating").fit(X, SIGNS)


def test_unknown_losses_are_named() -> None:
    with pytest.raises(ValueError, match=r"loss.*'hinge', 'squared_hinge'.*Got 'tolerating'"):
        OWASVC(loss="tolerating").fit(X, SIGNS)


# A kind of samples: tests/block_kernel.py, and tests/test_samples.py for all that it goes through


@pytest.fixture
def blocks() -> Iterator[None]:
    KINDS.insert(0, BlockKernel.make)
    yield
    KINDS.remove(BlockKernel.make)


def test_a_kind_of_samples(blocks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del blocks
    asked: list[int] = []
    rows = BlockKernel.rows

    def count(self: BlockKernel, index: NDArray[np.int64]) -> FloatArray:
        asked.append(index.size)
        return rows(self, index)

    monkeypatch.setattr(BlockKernel, "rows", count)
    clf = OWASVC(C=3.0, weights="superquantile", alpha=0.3).fit(X, SIGNS)
    assert asked and clf.status_ == "optimal"
    KINDS.remove(BlockKernel.make)
    n_asked = len(asked)
    ordinary = clone(clf).fit(X, SIGNS)
    KINDS.insert(0, BlockKernel.make)
    assert len(asked) == n_asked
    assert clf.objective_ == pytest.approx(ordinary.objective_, rel=1e-6)


# A solver: this module, with the name SOLVER


@dataclass(frozen=True)
class Options:
    """Options of the toy.

    Parameters
    ----------
    step : float, default=1.0
        Length of the first step, as a share of the costs.
    """

    step: float = 1.0


CALLS: list[OWAProblem] = []


def project_balanced(problem: OWAProblem, v: FloatArray) -> FloatArray:
    """The nearest point of the dual set with balanced classes, by bisection."""
    loss, point = problem.ranked_loss(), ProxPoint(v.size)
    high = 1.0 + float(np.abs(v).max())
    low = -high
    for _ in range(60):
        middle = 0.5 * (low + high)
        loss.project(v - middle * problem.y, point)
        low, high = (middle, high) if problem.y @ point.dual > 0.0 else (low, middle)
    return point.dual


def climb(problem: OWAProblem, settings: Settings) -> Solution:
    """Projected gradients of the dual problem: slow, and honest about it."""
    CALLS.append(problem)
    gram = problem.samples.gram_matrix() * np.outer(problem.y, problem.y)
    length = settings.options.step / float(np.linalg.norm(gram, 2))
    dual = np.zeros(problem.n_samples)
    best = judge(problem, dual)
    status, n_iter = Status.ITERATION_LIMIT, 0
    while n_iter < settings.max_iter and status is Status.ITERATION_LIMIT:
        n_iter += 1
        dual = project_balanced(problem, dual + length * (1.0 - gram @ dual))
        best = min(best, judge(problem, dual), key=lambda certificate: certificate.gap)
        info = {"n_iter": n_iter, "objective": best.objective, "gap": best.gap}
        if best.worst_gap <= settings.tol:
            status = Status.OPTIMAL
        elif settings.callback is not None and settings.callback(info) is False:
            status = Status.INTERRUPTED
    return best.as_solution(status, "climb", n_iter=n_iter)


SOLVER = Solver(climb, Options, needs_convex=True, takes_sample_weight=False)


@pytest.fixture
def climbing(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    monkeypatch.setitem(SOLVERS, "climb", __name__)


@pytest.mark.usefixtures("climbing")
class TestSolver:
    @pytest.mark.parametrize("estimator", [OWASVC(gamma=0.5), LinearOWASVC()])
    def test_through_the_estimators(self, estimator: Any) -> None:
        clf = clone(estimator).set_params(
            C=0.05, solver="climb", solver_options={"step": 0.9}, tol=1e-3, max_iter=1000
        )
        clf.fit(X, SIGNS)
        assert len(CALLS) == 1
        assert clf.solution_.solver == "climb"
        assert clf.status_ == "optimal" and clf.gap_ <= 1e-3
        exact = clone(estimator).set_params(C=0.05).fit(X, SIGNS)
        assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-3)
        assert clf.lower_bound_ <= exact.objective_ * (1 + 1e-12)

    def test_it_says_where_it_stopped(self) -> None:
        clf = OWASVC(gamma=0.5, solver="climb", max_iter=20)
        with pytest.warns(ConvergenceWarning, match="iteration_limit"):
            clf.fit(X, SIGNS)
        assert clf.n_iter_ == 20
        assert clf.lower_bound_ <= OWASVC(gamma=0.5).fit(X, SIGNS).objective_
        problem = OWAProblem(SIGNS, RankCosts(50), features=X)
        assert solve(problem, "climb", callback=lambda _: False).status is Status.INTERRUPTED

    @pytest.mark.parametrize(
        ("parameters", "mass", "message"),
        [
            (
                {"solver_options": {"stepp": 1.0}},
                None,
                r"solver='climb' has no option 'stepp'\. It takes step\.",
            ),
            (
                {"weights": "trimmed", "alpha": 0.2},
                None,
                r"solver='climb' needs non-decreasing weights.*use 'branch-and-bound'",
            ),
            ({}, np.full(50, 2.0), r"solver='climb' takes no sample_weight or class_weight"),
            (
                {"loss": "squared_hinge"},
                None,
                r"solver='climb' takes loss='hinge', not 'squared_hinge'",
            ),
        ],
    )
    def test_refused_before_the_first_iteration(
        self, parameters: dict[str, Any], mass: FloatArray | None, message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            OWASVC(solver="climb", **parameters).fit(X, SIGNS, sample_weight=mass)
        assert not CALLS

    @pytest.mark.parametrize("solver", ["newton", "dca", "assignment"])
    def test_ours_refuse_as_it_does(self, solver: str) -> None:
        with pytest.raises(ValueError, match=f"solver='{solver}' has no option 'step'"):
            OWASVC(solver=solver, solver_options={"step": 1.0}).fit(X, SIGNS)


def test_unknown_solvers_are_named() -> None:
    with pytest.raises(ValueError, match=r"solver must be one of auto, newton.*got 'climb'"):
        OWASVC(solver="climb").fit(X, SIGNS)
