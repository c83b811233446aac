"""Proofs that account for rounding, fits that always end, inputs that cannot crash."""

from __future__ import annotations

import itertools
import math
import signal
import threading
import warnings
from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from owasvm import OWASVC, ConstantClassifierWarning, LinearOWASVC
from owasvm.certificate import objective_of_slack
from owasvm.kernels import Kernel
from owasvm.optimality import certificate
from owasvm.path import fit_path
from owasvm.problem import OWAProblem, RankCosts
from owasvm.rounding import (
    exact_dot,
    find_fingerprint,
    is_proven_definite,
    lacking_definiteness,
    partial_sums,
    product_without_loss,
    recall,
)
from owasvm.solution import Status, relative_gap
from owasvm.solvers import Solver, solve
from owasvm.solvers._interrupts import noted_interrupts
from owasvm.solvers.clock import Clock
from tests.oracles import psd_factor

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, np.where(X[:, 0] + rng.normal(size=40) > 0, 1, -1)


# Arithmetic


@settings(max_examples=100)
@given(seed=seeds)
def test_exact_dot_is_rounded_once(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 9)) * 10.0 ** rng.integers(-20, 20, size=(2, 9))
    start = float(-a[0] * b[0])
    exact = Fraction(start) + sum(
        Fraction(p) * Fraction(q) for p, q in zip(a.tolist(), b.tolist(), strict=True)
    )
    assert exact_dot(a, b, start) == float(exact)


@settings(max_examples=50)
@given(seed=seeds)
def test_product_without_loss(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(4, 11)) * 10.0 ** rng.integers(-6, 6, size=(4, 11))
    vector = rng.normal(size=11) * 10.0 ** rng.integers(-6, 6, size=11)
    product = product_without_loss(matrix, vector)
    for row, computed in zip(matrix, product, strict=True):
        terms = [Fraction(p) * Fraction(q) for p, q in zip(row, vector, strict=True)]
        bound = 2 * Fraction(1, 2**53) * abs(sum(terms)) + sum(map(abs, terms)) / 2**98
        assert abs(Fraction(float(computed)) - sum(terms)) <= bound


def test_partial_sums_of_many_numbers_are_off_by_a_rounding():
    values = np.exp(10.0 * np.random.default_rng(0).normal(size=20_000))
    sums = partial_sums(values)
    for last in range(0, values.size, 997):
        assert sums[last] == pytest.approx(math.fsum(values[: last + 1]), rel=2.0**-52)


def test_definiteness_up_to_rounding():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    gram = rows @ rows.T
    assert lacking_definiteness(gram) == 0.0
    assert lacking_definiteness(1e200 * np.ones((5, 5))) == 0.0
    assert lacking_definiteness(np.zeros((3, 3))) == 0.0
    # What careless arithmetic leaves is charged for, not refused.
    assert 0.0 < lacking_definiteness(gram - 1e-13 * np.eye(30)) < 1e-9
    assert lacking_definiteness(gram - 1e-9 * np.eye(30)) == np.inf
    assert lacking_definiteness(-np.eye(3)) == np.inf
    assert lacking_definiteness(np.array([[0.0, 1.0], [1.0, 0.0]])) == np.inf
    # However large another sample is.
    hidden = np.diag([1.0, 1.0, 1.0, 1e15])
    hidden[0, 1] = hidden[1, 0] = 2.0
    assert lacking_definiteness(hidden) == np.inf
    assert lacking_definiteness(np.abs(hidden) + np.diag([1.0, 1.0, 0.0, 0.0])) == 0.0
    # Known up to rounding, a singular matrix proves nothing.
    assert not is_proven_definite(gram, np.full(30, 1e-8))
    assert is_proven_definite(gram + np.eye(30), np.full(30, 1e-8))
    with pytest.raises(ValueError, match="finite"):
        lacking_definiteness(np.full((2, 2), np.nan))


def test_what_is_known_of_a_matrix_is_not_taken_for_another():
    """Whose sums are the same, as the last digit of one entry is lost in them."""
    rng = np.random.default_rng(1)
    gram = rng.normal(size=(40, 40))
    known = find_fingerprint(gram)
    assert find_fingerprint(gram.copy()) == known
    assert find_fingerprint(np.asfortranarray(gram)) == known
    for _ in range(200):
        other = gram.copy()
        i, j = rng.integers(40, size=2)
        other[i, j] = np.nextafter(other[i, j], np.inf)
        assert find_fingerprint(other) != known
    exchanged = gram[:, ::-1].copy()
    assert find_fingerprint(exchanged) != known
    assert find_fingerprint(gram[:20, :20]) != known
    seen = []

    def examine(matrix):
        seen.append(matrix)
        return float(matrix[0, 0])

    assert recall(gram, examine, known) == recall(gram.copy(), examine, known) == gram[0, 0]
    assert len(seen) == 1


# Kernels


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("n_features", [2, 150])
def test_gaussian_values_do_not_depend_on_a_shift(shift, n_features):
    rng = np.random.default_rng(1)
    # Whole numbers: moving them loses nothing.
    X = rng.integers(-4, 5, size=(12, n_features)).astype(float)
    gamma = 1.0 / n_features
    expected = np.exp(-gamma * ((X[:, np.newaxis] - X) ** 2).sum(axis=2))
    kernel = Kernel("rbf", gamma=gamma)
    moved = X + shift
    np.testing.assert_allclose(kernel.gram(moved), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.between(moved[:5], moved), expected[:5], rtol=1e-13)
    off = np.abs(kernel.gram(moved) - expected).max()
    assert off <= kernel.matrix(moved).rounding[0] ** 2 + 1e-15
    sparse = kernel.gram(sp.csr_matrix(moved))
    np.testing.assert_allclose(sparse, expected, rtol=1e-13)


def exact_polynomial(x, z, gamma, coef0, degree):
    product = sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), z.tolist(), strict=True))
    return (Fraction(gamma) * product + Fraction(coef0)) ** degree


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("shift", [0.0, 1e2, 1e5])
def test_polynomials_seen_from_the_mean(degree, shift):
    rng = np.random.default_rng(degree)
    X = rng.normal(size=(6, 3)) + shift
    kernel = Kernel("poly", gamma=0.5, degree=degree, coef0=1.0)
    anchored = kernel.matrix(X)
    mean = X.mean(axis=0)

    def exact(x, z):
        return exact_polynomial(x, z, 0.5, 1.0, degree)

    at_mean = exact(mean, mean)
    bound = np.outer(anchored.rounding, anchored.rounding)
    for i, x in enumerate(X):
        shifted = exact(x, mean) - at_mean
        assert abs(anchored.shifts.values[i] - float(shifted)) <= 4e-16 * abs(float(shifted))
        for j, z in enumerate(X):
            value = exact(x, z) - exact(x, mean) - exact(mean, z) + at_mean
            assert abs(float(Fraction(float(anchored.values[i, j])) - value)) <= bound[i, j]
    # Scores of new samples: the terms are huge, their sum is not.
    coef = rng.normal(size=(1, 6))
    coef -= coef.mean()
    new = rng.normal(size=(4, 3)) + shift
    scores = kernel.scores(new, X, coef)
    for x, score in zip(new, scores[:, 0], strict=True):
        expected = float(sum(Fraction(c) * exact(x, z) for c, z in zip(coef[0], X, strict=True)))
        assert score == pytest.approx(expected, rel=1e-9, abs=1e-13)


# What was claimed and false


def test_shifted_gaussian_has_the_same_optimum(data):
    X, y = data
    model = OWASVC(C=1e5, gamma=1.0).fit(X + 1e5, y)
    assert model.lower_bound_ <= model.objective_ <= 37055.34
    # The shift rounds the data themselves.
    assert model.objective_ == pytest.approx(OWASVC(C=1e5, gamma=1.0).fit(X, y).objective_, 1e-4)


@pytest.mark.parametrize("shift", [1e3, 1e6])
@pytest.mark.parametrize("estimator", [OWASVC(kernel="linear"), LinearOWASVC(), OWASVC()])
def test_shifted_data_reach_their_gap(data, estimator, shift):
    X, y = data
    model = estimator.fit(X + shift, y)
    assert model.status_ == "optimal"
    assert 0.0 <= model.gap_ <= 1e-6


def test_copies_with_opposite_labels():
    rows = np.random.default_rng(0).normal(size=(10, 200)) * 1e5
    model = OWASVC(C=1e3, gamma=1.0)
    with pytest.warns(ConstantClassifierWarning):
        model.fit(np.vstack([rows, rows]), [1] * 10 + [-1] * 10)
    assert model.objective_ == pytest.approx(20000.0)
    assert model.lower_bound_ <= 20000.0


@pytest.mark.parametrize("estimator", [OWASVC(kernel="linear"), LinearOWASVC()])
def test_large_costs_and_scales(data, estimator):
    X, y = data
    far = estimator.set_params(C=1e5).fit(X + 1e5, y)
    assert far.objective_ <= 4e6
    assert far.status_ == "optimal"
    wide = estimator.set_params(C=1.0).fit(X * 1e5, y)
    assert wide.status_ == "optimal"


@pytest.mark.parametrize("C", [1.0, 2e6])
@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_objective_is_that_of_the_stored_classifier(data, offset, C):
    X, y = data
    X = X + offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearOWASVC(C=C).fit(X, y)
    w, b = [Fraction(value) for value in model.coef_[0].tolist()], Fraction(model.intercept_[0])
    deviations = []
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        score = sum(p * Fraction(q) for p, q in zip(w, row, strict=True)) + b
        deviations.append(max(Fraction(0), 1 - label * score))
    costs = [Fraction(cost) for cost in (C * model.owa_weights_).tolist()]
    exact = float(
        sum(p * p for p in w) / 2
        + sum(c * d for c, d in zip(costs, sorted(deviations), strict=True))
    )
    assert model.objective_ == pytest.approx(exact, rel=1e-9)
    assert exact - model.lower_bound_ <= (model.gap_ + 1e-15) * max(1.0, exact)
    proof = certificate(
        X,
        y,
        "basic",
        C,
        np.zeros(40),
        model.intercept_[0],
        coef=model.coef_[0],
    )
    assert proof.objective == pytest.approx(exact, rel=1e-9)


def test_rounding_that_forbids_the_gap_is_said(data):
    X, y = data
    # Nine digits of every number are spent on the offset, and C asks for the rest.
    with pytest.warns(ConvergenceWarning, match="rounding_limit.*centre"):
        model = OWASVC(C=1e9, kernel="poly", degree=5, gamma=1.0, coef0=1.0).fit(X + 1e4, y)
    assert model.status_ == "rounding_limit"
    assert model.gap_ > 1e-6
    assert model.objective_ <= 40e9 * (1 + 1e-9)


def test_contradictions_are_never_optimal(monkeypatch, data):
    X, y = data
    problem = OWAProblem(y.astype(float), RankCosts(40, "basic", 0.6), features=X)
    monkeypatch.setattr("owasvm.certificate._prove_bound", lambda *_: (1e6, 0.0))
    solution = solve(problem, max_iter=60)
    assert solution.lower_bound == -np.inf
    assert solution.gap == np.inf
    assert solution.status is not Status.OPTIMAL


# Large C and samples that can be separated


@pytest.fixture
def separable():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    return X + 0.1 * y[:, np.newaxis], y


def solve_hard_margin(rows, y):
    """The least ``1/2 |w|^2`` with no deviation at all."""
    w, b = cp.Variable(rows.shape[1]), cp.Variable()
    programme = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2), [cp.multiply(y, rows @ w + b) >= 1])
    programme.solve(solver=cp.CLARABEL)
    return float(programme.value)


@pytest.mark.parametrize("C", [1e7, 1e10])
@pytest.mark.parametrize("weights", ["uniform", "superquantile"])
def test_hard_margins_are_proven(separable, weights, C):
    """Beyond some C the hard margin is the optimum, and rounding is not in the way."""
    X, y = separable
    gram = (X @ X.T + 1.0) ** 3
    for model, samples, rows in (
        (LinearOWASVC(), X, X),
        (OWASVC(gamma=0.5), X, psd_factor(Kernel("rbf", gamma=0.5).gram(X))),
        (OWASVC(kernel="poly", gamma=1.0, coef0=1.0), X, psd_factor(gram)),
        (OWASVC(kernel="precomputed"), gram, psd_factor(gram)),
    ):
        model.set_params(C=C, weights=weights, alpha=0.5).fit(samples, y)
        assert model.status_ == "optimal" and model.gap_ <= 1e-6
        assert model.objective_ == pytest.approx(solve_hard_margin(rows, y), rel=2e-6)
        if model.get_params().get("kernel") in ("rbf", "precomputed"):
            dual = np.zeros(y.size)
            dual[model.support_] = model.dual_coef_[0]
            kernel = gram if samples is gram else Kernel("rbf", gamma=0.5).gram(X)
            again = certificate(
                None, y, weights, C, dual, model.intercept_[0], gram=kernel, alpha=0.5
            )
            assert again.gap <= 1e-6


@pytest.mark.parametrize("C", [1e7, 1e12])
def test_hard_margins_leave_no_deviation_in_exact_arithmetic(separable, C):
    X, y = separable
    model = LinearOWASVC(C).fit(X, y)
    w, b = [Fraction(entry) for entry in model.coef_[0].tolist()], Fraction(model.intercept_[0])
    for row, sign in zip(X.tolist(), y.tolist(), strict=True):
        score = sum(p * Fraction(q) for p, q in zip(w, row, strict=True))
        assert sign * (score + b) >= 1


# Kernels that are not positive semi-definite


@pytest.mark.parametrize("weights", ["basic", "trimmed"])
def test_indefinite_kernels_have_no_bound(data, weights):
    X, y = data
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model = OWASVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, weights=weights, alpha=0.4).fit(
            X, y
        )
    assert model.lower_bound_ == -np.inf
    assert model.gap_ == np.inf
    assert model.status_ == "indefinite"
    assert model.objective_ <= 40.0 + 1e-9
    assert np.all(np.isfinite(model.decision_function(X)))


def test_indefinite_and_asymmetric_matrices(data):
    X, y = data
    gram = X @ X.T
    assert OWASVC(kernel="precomputed").fit(gram, y).status_ == "optimal"
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model = OWASVC(kernel="precomputed").fit(gram - 0.1 * np.eye(40), y)
    assert model.lower_bound_ == -np.inf
    crooked = gram.copy()
    crooked[0, 1] += 0.1
    with pytest.raises(ValueError, match="not symmetric"):
        OWASVC(kernel="precomputed").fit(crooked, y)
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        model = OWASVC(kernel="poly", coef0=-1.0).fit(X, y)
    assert model.lower_bound_ == -np.inf


def test_paths_of_indefinite_matrices_have_no_bound(data):
    X, y = data
    path = fit_path(X @ X.T - 0.1 * np.eye(40), y, [1.0, 2.0], kernel="precomputed")
    assert np.all(path.lower_bounds == -np.inf)


# Every fit ends


@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (OWASVC(kernel="poly", time_limit=1), np.full((20, 2), 1e4), [1] * 7 + [-1] * 13),
        (OWASVC(kernel="precomputed", time_limit=1), -np.eye(30), [1, -1] * 15),
        (OWASVC(kernel="precomputed", time_limit=1), np.zeros((30, 30)), [1, -1] * 15),
        (LinearOWASVC(time_limit=1), np.zeros((6, 2)), [1, -1] * 3),
    ],
)
def test_degenerate_fits_end(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.solution_.solve_time < 3.0
    assert model.lower_bound_ <= model.objective_


def test_near_identity_gram_with_falling_weights():
    rng = np.random.default_rng(21)
    X = rng.normal(size=(30, 3))
    weights = np.sort(rng.random(30))[::-1]
    y = np.where(X[:, 0] > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = OWASVC(C=6.0, gamma=300.0, weights=weights, max_iter=50).fit(X, y)
    assert model.lower_bound_ <= model.objective_


# Nothing crashes the process


@pytest.mark.parametrize(
    ("model", "scale", "match"),
    [
        (OWASVC(kernel="poly", degree=40, gamma=1.0), 1e4, "overflow.*[Ss]cale"),
        (OWASVC(), 1e155, "overflows.*Scale"),
        (OWASVC(), 1e200, "overflows.*Scale"),
        (OWASVC(), 1e-155, "underflows.*Scale"),
        (OWASVC(), 1e-200, "underflows.*Scale"),
        (OWASVC(kernel="poly", gamma=1.0), 1e154, "overflow.*Scale"),
        (OWASVC(kernel="linear", gamma=1.0), 1e200, "too large.*Scale"),
        (LinearOWASVC(), 1e155, "too large.*Scale"),
    ],
)
def test_overflow_and_underflow_are_clear_errors(data, model, scale, match):
    X, y = data
    with pytest.raises(ValueError, match=match):
        model.fit(X * scale, y)


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e100])
@pytest.mark.parametrize("model", [OWASVC(gamma=1.0), LinearOWASVC(), OWASVC(weights="trimmed")])
def test_extreme_scales_leak_no_warnings(data, model, scale):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ConstantClassifierWarning)
        model.set_params(max_iter=50).fit(X * scale, y)
    assert model.lower_bound_ <= model.objective_


@pytest.mark.parametrize(
    ("model", "scale"),
    [
        (OWASVC(1e-100, kernel="poly", gamma=1.0, degree=2, loss="squared_hinge"), 1e60),
        (OWASVC(1e140, kernel="linear", weights="uniform", ranks="class"), 1e60),
        (LinearOWASVC(1e140, loss="squared_hinge"), 1e100),
        (LinearOWASVC(1e-299), 1e-149),
    ],
)
def test_extreme_costs_leave_numbers(data, model, scale):
    """A classifier whose norm or slacks overflow is worse than w = 0, and not kept."""
    X, y = data
    X, y = scale * X[:12], y[:12]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.set_params(max_iter=30).fit(X, y, 10.0 ** np.linspace(-8.0, 8.0, y.size))
    assert np.isfinite(model.objective_) and not np.isnan(model.gap_)
    assert model.lower_bound_ <= model.objective_
    assert np.all(np.isfinite(model.decision_function(X)))
    assert np.all(np.isfinite(model.deviations_)) and np.all(np.isfinite(model.sample_costs_))


def test_slacks_that_are_not_numbers_are_not_met(data):
    X, y = data
    problem = OWAProblem(y.astype(float), RankCosts(40), features=X)
    slack = np.where(np.arange(40) < 39, -1.0, np.nan)
    assert objective_of_slack(problem, 0.0, slack) == np.inf
    assert relative_gap(np.inf, -np.inf) == np.inf


def test_products_that_overflow_on_the_way():
    """Partial sums do, and math.fsum would raise; what is left is not finite, and seen later."""
    large = np.full(4, 1e154)
    assert exact_dot(large, large) == np.inf


# Interruptions


def press_at_look(monkeypatch, number):
    """Press Ctrl-C when the solver looks at its clock for the n-th time."""
    looks = itertools.count(1)
    look = Clock.expired.fget

    def expired(clock):
        if next(looks) == number:
            signal.raise_signal(signal.SIGINT)
        return look(clock)

    monkeypatch.setattr(Clock, "expired", property(expired))


@pytest.mark.parametrize(
    "model",
    [
        OWASVC(C=100.0, weights="basic", alpha=0.1, tol=1e-15, max_iter=10**8),
        OWASVC(C=10.0, weights="trimmed", alpha=0.2, mip_gap=0.0, max_iter=10**8),
        LinearOWASVC(C=10.0, weights="trigonometric", alpha=0.8, mip_gap=0.0, max_iter=10**8),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_ctrl_c_stops_the_script_and_keeps_the_point(model, n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=300), [0.0] if n_classes == 2 else [-0.5, 0.5])
    handler = signal.getsignal(signal.SIGINT)
    press_at_look(monkeypatch, 4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert "interrupted" in np.atleast_1d(model.status_)
    assert np.all(np.atleast_1d(model.lower_bound_) <= np.atleast_1d(model.objective_))
    assert model.predict(X).shape == (300,)
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_stops_a_search(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)
    model = OWASVC(weights="trimmed", alpha=0.2, mip_gap=0.0, max_iter=10**8)
    search = GridSearchCV(model, {"C": [1.0, 10.0, 100.0]}, cv=3, refit=False)
    press_at_look(monkeypatch, 10)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)


def test_interrupts_from_compiled_code_are_interrupts(monkeypatch, data):
    X, y = data

    def broken(*_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr("owasvm.solvers.newton.Series.is_at_hand", lambda: False)
    monkeypatch.setattr("owasvm.solvers.newton.core.Inner.find_direction", broken)
    with pytest.raises(KeyboardInterrupt) as stop:
        OWASVC().fit(X, y)
    assert stop.value.solution.status is Status.INTERRUPTED


def test_other_system_errors_are_not_swallowed(monkeypatch, data):
    X, y = data

    def broken(*_):
        raise SystemError("something else")

    monkeypatch.setattr("owasvm.solvers.newton.Series.is_at_hand", lambda: False)
    monkeypatch.setattr("owasvm.solvers.newton.core.Inner.find_direction", broken)
    with pytest.raises(SystemError, match="something else"):
        OWASVC().fit(X, y)


def test_fits_in_other_threads_take_no_notice(data):
    X, y = data
    results = []

    def fit():
        results.append(OWASVC().fit(X, y).status_)

    with noted_interrupts() as notes:
        notes.wanted = True
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()
    assert results == ["optimal"]


def test_an_interrupt_does_not_outlive_its_fit(data, monkeypatch):
    X, y = data
    model = OWASVC(C=100.0, weights="trimmed", alpha=0.2, mip_gap=0.0, max_iter=10**8)
    press_at_look(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.vstack([X] * 8), np.tile(y, 8))
    assert OWASVC().fit(X, y).status_ == "optimal"


def test_interrupts_that_an_outside_solver_caught_stop_the_script(monkeypatch, data):
    X, y = data
    model = OWASVC(solver="assignment-dual")
    problem = OWAProblem(y.astype(float), RankCosts(40, "basic", 0.6), features=X)
    caught = replace(solve(problem, max_iter=3), status=Status.INTERRUPTED)
    caught_by = Solver(lambda *_: caught)
    monkeypatch.setattr("owasvm.models.c_owa_svm_dual.SOLVER", caught_by)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
