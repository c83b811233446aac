"""The adversary on every run: a share of its problems, and tests of the judge itself.

``benchmarks/adversary.py`` runs all of it; a violation names the kind and the seed that repeat it.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from owasvm import OWASVC, LinearOWASVC
from owasvm.loss import hinge_deviations
from owasvm.weights import owa_weights
from tests import adversary
from tests.adversary import (
    ExactProblem,
    HostileProblem,
    Rivals,
    Worker,
    exact_objective,
    fit,
    hostile_problem,
    ordinary_problem,
    shifted_problem,
    verdict,
)
from tests.extended import Wide, dot, inner_products, squared_distances

# Far more digits than doubles have, fewer than the wide numbers of any machine.
DIGITS = 1e-29


def _digits_lost(found: Fraction, expected: Fraction) -> float:
    return abs(float((found - expected) / (expected or 1)))


class TestWideNumbers:
    """Arithmetic against rationals and decimals."""

    @pytest.mark.parametrize("seed", range(5))
    def test_arithmetic(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b, c = (rng.normal(size=30) * 10.0 ** rng.uniform(-20, 20, 30) for _ in range(3))
        wide = (Wide(a) * b + c) * (Wide(a) - c) / (Wide(b) * b)
        for found, x, y, z in zip(
            wide.fractions(), map(Fraction, a), map(Fraction, b), map(Fraction, c), strict=True
        ):
            assert _digits_lost(found, (x * y + z) * (x - z) / (y * y)) < DIGITS

    def test_sums_keep_what_cancels(self) -> None:
        rng = np.random.default_rng(0)
        terms = rng.normal(size=37) * 10.0 ** rng.uniform(0, 12, 37)
        terms = np.concatenate((terms, [1e-9], -terms))
        assert float(Wide(terms).sum()) == 1e-9

    def test_products_of_matrices(self) -> None:
        rng = np.random.default_rng(1)
        X = rng.normal(size=(5, 3)) + 1e8
        v = rng.normal(size=3)
        rows = [[Fraction(entry) for entry in row] for row in X]
        inner = inner_products(X).fractions()
        distances = squared_distances(X).fractions()
        products = dot(X, v).fractions()
        for i, left in enumerate(rows):
            expected = sum(a * Fraction(b) for a, b in zip(left, v, strict=True))
            assert _digits_lost(products[i], expected) < DIGITS * 1e9  # cancellation of the sum
            for j, right in enumerate(rows):
                pairs = list(zip(left, right, strict=True))
                assert _digits_lost(inner[5 * i + j], sum(a * b for a, b in pairs)) < DIGITS
                apart = sum(((a - b) ** 2 for a, b in pairs), Fraction(0))
                assert _digits_lost(distances[5 * i + j], apart) < DIGITS

    def test_exponential_and_tangent(self) -> None:
        rng = np.random.default_rng(2)
        points = np.concatenate((-(10.0 ** rng.uniform(-12, 2.8, 40)), [0.0, -745.0, 3.5]))
        exponentials, tangents = Wide(points).exp().fractions(), Wide(points).tanh().fractions()
        with localcontext() as context:
            context.prec = 80
            for point, exponential, tangent in zip(points, exponentials, tangents, strict=True):
                expected = Decimal(float(point)).exp()
                assert _digits_lost(exponential, Fraction(expected)) < DIGITS
                squared = expected * expected
                ratio = Fraction((squared - 1) / (squared + 1))
                assert abs(float(tangent - ratio)) < DIGITS

    def test_powers_and_order(self) -> None:
        assert Wide(np.array([0.0, 3.0])).power(0).doubles().tolist() == [1.0, 1.0]
        assert Wide(np.array([0.1])).power(7).fractions()[0] == pytest.approx(Fraction(0.1) ** 7)
        close = Wide(np.array([1.0, 1.0, 1.0])) + Wide(np.array([3e-30, -1e-30, 1e-30]))
        assert close.argsort().tolist() == [1, 2, 0]


def _fraction_objective(
    X: np.ndarray, y: np.ndarray, costs: list[Fraction], w: np.ndarray, b: float
) -> Fraction:
    """The linear objective in rational arithmetic."""
    direction = [Fraction(entry) for entry in w]
    deviations = []
    for row, label in zip(X, y, strict=True):
        score = sum(Fraction(x) * c for x, c in zip(row, direction, strict=True)) + Fraction(b)
        deviations.append(max(Fraction(0), 1 - Fraction(label) * score))
    ordered = sum(c * d for c, d in zip(costs, sorted(deviations), strict=True))
    return sum(c * c for c in direction) / 2 + ordered


class TestExactObjective:
    """Values against rationals, formulas, and fits where these can be trusted."""

    @pytest.mark.parametrize("shift", [0.0, 1e4, 1e8])
    def test_linear_against_rationals(self, shift: float) -> None:
        problem = replace(
            shifted_problem(3), estimator="LinearOWASVC", parameters={"C": 1e5, "alpha": 0.6}
        )
        problem = replace(problem, X=np.random.default_rng(0).normal(size=(12, 3)) + shift)
        problem = replace(problem, y=np.tile([1.0, -1.0], 6))
        w, b = np.array([0.3, -1.1, 0.7]), 0.1 * shift
        costs = [Fraction(1e5) * Fraction(weight) for weight in owa_weights(12, "basic", 0.6)]
        expected = _fraction_objective(problem.X, problem.y, costs, w, b)
        assert exact_objective(problem, w, b) == pytest.approx(float(expected), rel=1e-15)

    @pytest.mark.parametrize(
        ("kernel", "options"),
        [
            ("rbf", {"gamma": 0.7}),
            ("poly", {"gamma": 0.3, "degree": 5, "coef0": -0.5}),
            ("poly", {"gamma": 0.3, "degree": 0}),
            ("sigmoid", {"gamma": 0.2, "coef0": 0.1}),
        ],
    )
    def test_kernels(self, kernel: str, options: dict[str, Any]) -> None:
        from sklearn.metrics.pairwise import pairwise_kernels

        problem = ordinary_problem(1)
        problem = replace(problem, parameters={"C": 1.0, "kernel": kernel, **options})
        exact = ExactProblem(problem)
        expected = pairwise_kernels(problem.X, metric=kernel, **options)
        np.testing.assert_allclose(exact.near_gram, expected, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("seed", range(12))
    def test_ordinary_fits(self, seed: int) -> None:
        problem = ordinary_problem(seed)
        outcome = fit(problem)
        assert outcome.error is None
        estimator = outcome.estimator
        exact = ExactProblem(problem, gamma=getattr(estimator, "gamma_", None))
        value = exact.value(*adversary.stored_classifier(problem, estimator, exact))
        assert value == pytest.approx(estimator.objective_, rel=1e-9)
        if problem.kernel == "linear" and estimator.status_ == "optimal":
            signed = np.zeros(problem.y.size)
            signed[estimator.support_] = estimator.dual_coef_[0]
            kernel_form = exact.value_of_kernel_form(signed, estimator.intercept_[0])
            assert kernel_form >= estimator.lower_bound_ - 1e-9 * value

    @pytest.mark.parametrize("family", ["basic", "trimmed"])
    def test_sample_weights_equal_copies(self, family: str) -> None:
        problem = ordinary_problem(2)
        counts = np.random.default_rng(0).integers(0, 3, problem.y.size)
        counts[:2] = 1
        parameters = {"C": 2.0, "weights": family, "alpha": 0.3, "kernel": "linear"}
        weighted = replace(problem, sample_weight=counts.astype(float), parameters=parameters)
        copied = replace(
            problem,
            X=np.repeat(problem.X, counts, axis=0),
            y=np.repeat(problem.y, counts),
            parameters=parameters,
        )
        w = np.random.default_rng(1).normal(size=problem.X.shape[1])
        assert exact_objective(weighted, w, 0.3) == pytest.approx(
            exact_objective(copied, w, 0.3), rel=1e-12
        )


class TestRivals:
    """Feasible values: never below a proven bound, and near the optimum without any help."""

    @pytest.mark.parametrize("seed", [seed for seed in range(60) if seed % 3 == 0])
    def test_are_sound_and_sharp(self, seed: int) -> None:
        problem = ordinary_problem(seed)
        outcome = fit(problem)
        estimator = outcome.estimator
        exact = ExactProblem(problem, gamma=getattr(estimator, "gamma_", None))
        alone = Rivals(exact).search()
        size = max(1.0, abs(alone))
        assert alone >= estimator.lower_bound_ - 1e-9 * size
        best = Rivals(exact).search(adversary.stored_classifier(problem, estimator, exact))
        assert best <= estimator.objective_ + 1e-9 * size
        if estimator.convex_ and problem.y.size <= 40:
            assert alone <= estimator.objective_ + 1e-5 * size

    def test_few_samples_in_every_order(self) -> None:
        from tests.oracles import enumerate_owa_svm

        rng = np.random.default_rng(5)
        X, y = rng.normal(size=(5, 2)), np.array([1.0, 1.0, -1.0, -1.0, 1.0])
        weights = np.array([2.0, 1.5, 1.0, 0.5, 0.0])
        problem = replace(
            ordinary_problem(0),
            X=X,
            y=y,
            estimator="LinearOWASVC",
            parameters={"C": 3.0, "weights": weights},
        )
        expected = enumerate_owa_svm(X, y, weights, 3.0).objective
        assert Rivals(ExactProblem(problem)).search() == pytest.approx(expected, rel=1e-6)


def _fitted(seed: int = 1) -> tuple[HostileProblem, Any]:
    """An ordinary convex problem and its sound fit."""
    problem = ordinary_problem(seed)
    outcome = fit(problem)
    assert outcome.estimator.status_ == "optimal"
    return problem, outcome.estimator


def _kinds(problem: HostileProblem, estimator: Any, **details: Any) -> set[str]:
    return {violation.kind for violation in verdict(problem, estimator, **details)}


def _warning(category: type[Warning]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("something", category, stacklevel=1)
    return list(caught)


class TestVerdict:
    """Every kind of violation is seen, and nothing else."""

    @pytest.mark.parametrize("seed", [1, 2, 4, 7, 13])
    def test_sound_fits_pass(self, seed: int) -> None:
        problem, estimator = _fitted(seed)
        estimator.lower_bound_ = min(estimator.lower_bound_, estimator.objective_)
        assert verdict(problem, estimator, [], 0.1) == []

    @pytest.mark.parametrize("seed", [1, 2, 4, 7, 13])
    @pytest.mark.parametrize("excess", [1e-8, 1e-3])
    def test_false_bound(self, seed: int, excess: float) -> None:
        problem, estimator = _fitted(seed)
        estimator.lower_bound_ += excess * max(1.0, estimator.objective_)
        kinds = _kinds(problem, estimator)
        assert "false bound" in kinds
        assert "bound above objective" in kinds

    def test_false_bound_of_a_poor_point(self) -> None:
        """The bound is below the objective of the classifier, but above the optimum."""
        problem, estimator = _fitted(1)
        optimum = estimator.objective_
        estimator.intercept_ = estimator.intercept_ + 0.5
        exact = ExactProblem(problem, gamma=getattr(estimator, "gamma_", None))
        value = exact.value(*adversary.stored_classifier(problem, estimator, exact))
        estimator.objective_ = value
        estimator.lower_bound_ = 0.5 * (optimum + value)
        estimator.gap_ = (value - estimator.lower_bound_) / max(1.0, value)
        estimator.status_ = "time_limit"
        problem = replace(problem, must_reach=False)
        assert _kinds(problem, estimator) - {"worse than nothing"} == {"false bound"}

    def test_finite_bound_of_an_indefinite_kernel(self) -> None:
        problem = replace(
            ordinary_problem(1),
            X=-np.eye(6),
            y=np.tile([1.0, -1.0], 3),
            parameters={"C": 1.0, "kernel": "precomputed"},
        )
        estimator = OWASVC(kernel="precomputed").fit(np.eye(6), problem.y)
        estimator.dual_coef_, estimator.objective_ = 0.0 * estimator.dual_coef_, 6.0
        estimator.intercept_, estimator.status_ = np.zeros(1), "iteration_limit"
        estimator.lower_bound_, estimator.gap_ = -np.inf, np.inf
        problem = replace(problem, must_reach=False)
        assert _kinds(problem, estimator) == set()
        estimator.lower_bound_, estimator.gap_ = -1e6, 1e5
        assert _kinds(problem, estimator) == {"bound of an indefinite kernel"}

    def test_finite_bound_of_an_asymmetric_matrix(self) -> None:
        problem, estimator = _fitted(1)
        gram = ExactProblem(problem, gamma=estimator.gamma_).near_gram
        gram[0, 1] += 1e-3
        problem = replace(problem, X=gram, parameters={"C": 1.0, "kernel": "precomputed"})
        assert "bound of an asymmetric kernel" in _kinds(problem, estimator)

    def test_claim_of_optimality(self) -> None:
        problem, estimator = _fitted(1)
        estimator.lower_bound_ = estimator.objective_ - 1e-5 * max(1.0, estimator.objective_)
        assert _kinds(problem, estimator) == {"not optimal"}

    def test_wrong_objective(self) -> None:
        problem, estimator = _fitted(1)
        estimator.objective_ *= 1.0 + 1e-6
        assert _kinds(problem, estimator) == {"objective"}

    @pytest.mark.parametrize("name", ["intercept_", "dual_coef_", "objective_", "lower_bound_"])
    def test_nan(self, name: str) -> None:
        problem, estimator = _fitted(1)
        setattr(estimator, name, np.nan * np.asarray(getattr(estimator, name)))
        assert _kinds(problem, estimator) == {"nan"}

    def test_worse_than_nothing(self) -> None:
        problem, estimator = _fitted(1)
        estimator.dual_coef_ = 50.0 * estimator.dual_coef_
        exact = ExactProblem(problem, gamma=estimator.gamma_)
        value = exact.value(*adversary.stored_classifier(problem, estimator, exact))
        estimator.objective_, estimator.status_ = value, "iteration_limit"
        estimator.gap_ = (value - estimator.lower_bound_) / value
        assert _kinds(problem, estimator) == {"worse than nothing", "missed"}

    def test_late(self) -> None:
        problem, estimator = _fitted(1)
        problem = replace(problem, parameters={**problem.parameters, "time_limit": 1.0})
        assert _kinds(problem, estimator, elapsed=2.9) == set()
        assert _kinds(problem, estimator, elapsed=3.1) == {"late"}

    def test_warnings(self) -> None:
        problem, estimator = _fitted(1)
        for category in (ConvergenceWarning, UserWarning):
            assert _kinds(problem, estimator, caught=_warning(category)) == set()
        for category in (RuntimeWarning, DeprecationWarning):
            assert _kinds(problem, estimator, caught=_warning(category)) == {"warning"}

    def test_exceptions(self) -> None:
        problem = ordinary_problem(1)
        for error in (np.linalg.LinAlgError("singular"), OverflowError(), NotImplementedError()):
            assert _kinds(problem, None, error=error) == {"exception"}
        # Raised by numpy, not by us: no remedy.
        leaked = _raised(lambda: np.zeros(3) + np.zeros(4))
        assert _kinds(problem, None, error=leaked) == {"exception"}
        # Raised by us, about something the user never passed.
        inner = _raised(lambda: hinge_deviations(np.array([np.nan]), np.ones(1)))
        assert _kinds(problem, None, error=inner) == {"exception"}
        refused = _raised(lambda: LinearOWASVC(weights=np.ones(3)).fit(problem.X, problem.y))
        assert _kinds(problem, None, error=refused) == {"refused"}
        assert _kinds(replace(problem, refusable=("why",)), None, error=refused) == set()


def _raised(call: Any) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def _sleeping_work(channel: Connection) -> None:
    channel.send("ready")
    channel.recv()
    time.sleep(60)


def _dying_work(channel: Connection) -> None:
    channel.send("ready")
    channel.recv()


class TestWorker:
    """A process that hangs or dies is counted and replaced."""

    def test_hang(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(adversary, "PATIENCE", 0.2)
        with Worker(_sleeping_work) as worker:
            for _ in range(2):
                record = worker.judge("ordinary", 1)
                assert record.outcome == "hang"
                assert [violation.kind for violation in record.violations] == ["hang"]

    def test_crash(self) -> None:
        with Worker(_dying_work) as worker:
            for _ in range(2):
                record = worker.judge("ordinary", 1)
                assert record.outcome == "crash"
                assert [violation.kind for violation in record.violations] == ["crash"]


class TestGenerators:
    """Problems repeat, and are as varied as they are meant to be."""

    @pytest.mark.parametrize("kind", sorted(adversary.GENERATORS))
    def test_repeat(self, kind: str) -> None:
        for seed in range(20):
            one, other = (adversary.GENERATORS[kind](seed) for _ in range(2))
            assert one.description == other.description
            assert np.all(one.y == other.y)
            assert abs(one.X - other.X).max() == 0.0

    def test_variety(self) -> None:
        problems = [hostile_problem(seed) for seed in range(1000)]
        kernels = {problem.kernel for problem in problems}
        assert kernels == {"linear", "rbf", "poly", "sigmoid", "precomputed"}
        assert {problem.estimator for problem in problems} == {"OWASVC", "LinearOWASVC"}
        notes = " ".join(note for problem in problems for note in problem.notes)
        for feature in (
            "shifted by",
            "columns scaled",
            "duplicates with opposite labels",
            "equal rows",
            "grid",
            "constant column",
            "one sample of a class",
            "reversed weights over 24",
            "indefinite matrix",
            "asymmetric matrix",
            "rank one matrix",
            "tiny matrix",
            "whole sample weights",
            "balanced",
            "sparse",
            "warm start",
        ):
            assert feature in notes, feature
        for problem in problems:
            assert set(np.unique(problem.y)) == {-1.0, 1.0}
            X = problem.X.data if hasattr(problem.X, "tocsr") else problem.X
            assert np.all(np.isfinite(X))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """One process for all problems, as long as it lives."""
    with Worker() as running:
        yield running


CHUNK = 15
# Problems that were each the first to show some fault.
ONCE_BROKEN = {
    "shifts and scales": (38, 62, 119, 185, 215, 473, 556, 797, 1030, 1132, 1344, 1469),
    "kernels without a bound": (16, 32, 43, 123, 223, 1150, 1869, 200009),
    "ends": (78, 81, 151, 172, 963, 1197, 1260, 1304),
    "overflow": (394, 661, 672, 749, 1200, 20086, 22982, 102940),
    "polynomials": (228, 20059, 20451, 21358, 22152, 22346, 101953, 300056, 300245),
    "given matrices": (2188, 2342, 20318, 21643, 22206),
    "general weights": (186, 296, 414, 1152, 100749, 101225, 102446, 103140, 201655),
    "worse than nothing": (52, 132, 161, 226, 283, 1525, 2266, 501071, 510851),
}


def _chunks(count: int) -> list[range]:
    return [range(start, start + CHUNK) for start in range(0, count, CHUNK)]


class TestShare:
    """No violation on any of these problems."""

    @pytest.mark.parametrize("seeds", _chunks(150), ids=str)
    def test_hostile(self, worker: Worker, seeds: range) -> None:
        self._check(worker, "hostile", seeds)

    @pytest.mark.parametrize("seeds", _chunks(30), ids=str)
    def test_ordinary(self, worker: Worker, seeds: range) -> None:
        self._check(worker, "ordinary", seeds)

    @pytest.mark.parametrize("seeds", _chunks(30), ids=str)
    def test_shifted(self, worker: Worker, seeds: range) -> None:
        self._check(worker, "shifted", seeds)

    @pytest.mark.parametrize("seeds", _chunks(30), ids=str)
    def test_grouped(self, worker: Worker, seeds: range) -> None:
        self._check(worker, "grouped", seeds)

    @pytest.mark.parametrize("fault", sorted(ONCE_BROKEN))
    def test_what_was_broken_once(self, worker: Worker, fault: str) -> None:
        self._check(worker, "hostile", ONCE_BROKEN[fault])

    def _check(self, worker: Worker, kind: str, seeds: Iterable[int]) -> None:
        violations = [v for seed in seeds for v in worker.judge(kind, seed).violations]
        assert not violations, "\n" + "\n".join(map(str, violations))
