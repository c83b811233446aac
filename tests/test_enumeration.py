"""Trimmed weights of few samples: all assignments, against subsets trained one by one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from owasvm import LinearOWASVC
from owasvm.problem import OWAProblem, RankCosts
from owasvm.solvers import Settings, solve
from owasvm.solvers.branch_and_bound import Options
from owasvm.solvers.general.enumeration import Enumeration, can_enumerate
from owasvm.solvers.general.search import Search


def noisy(n_samples, n_features, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    scores = X[:, 0] + 0.7 * rng.normal(size=n_samples)
    # As many of either class, so that none can be trimmed away.
    return X, np.where(np.argsort(np.argsort(scores)) < n_samples // 2, -1.0, 1.0)


def best_of_subsets(gram, y, n_trimmed, cost):
    """The smallest objective of the classical SVMs that leave so many samples out."""
    best = np.inf
    for trimmed in combinations(range(y.size), n_trimmed):
        kept = np.setdiff1d(np.arange(y.size), trimmed)
        if np.unique(y[kept]).size < 2:
            best = min(best, 0.0)
            continue
        part = np.ascontiguousarray(gram[np.ix_(kept, kept)])
        svc = SVC(C=cost, kernel="precomputed", tol=1e-5).fit(part, y[kept])
        coef = np.zeros(kept.size)
        coef[svc.support_] = svc.dual_coef_[0]
        scores = part @ coef
        slack = np.maximum(1.0 - y[kept] * (scores + svc.intercept_[0]), 0.0)
        best = min(best, 0.5 * coef @ scores + cost * slack.sum())
    return best


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(2))
def test_best_of_all_subsets(kernel, C, seed):
    X, y = noisy(12, 2, seed)
    gram = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.7)
    costs = RankCosts(12, "trimmed", 0.25, C)
    found = solve(OWAProblem(y, costs, gram=gram), "branch-and-bound", mip_gap=1e-6)
    assert found.status == "optimal"
    best = best_of_subsets(gram, y, 3, float(costs.ascending[0]))
    assert 0.0 < found.objective == pytest.approx(best, rel=1e-4)
    assert found.lower_bound <= best


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_samples=st.integers(2, 14),
    alpha=st.floats(0.05, 0.6),
    scale=st.sampled_from([1e-6, 1e-2, 1.0, 1e3, 1e6]),
    C=st.sampled_from([1e-4, 0.1, 1.0, 1e3]),
    ties=st.booleans(),
    shift=st.sampled_from([0.0, 1e5]),
)
def test_bounds_hold_on_any_data(seed, n_samples, alpha, scale, C, ties, shift):
    X, y = noisy(n_samples, 2, seed)
    if ties:
        X = np.round(X)
    problem = OWAProblem(y, RankCosts(n_samples, "trimmed", alpha, C), features=scale * X + shift)
    if problem.costs.convex:
        return
    search = Search(problem, Settings(options=Options()))
    assert can_enumerate(search)
    Enumeration(search).grow(1000)
    # Descents from many places never find anything below what is proven.
    best = solve(problem, "dca", options={"n_init": 5})
    least = min(best.objective, search.incumbent.objective)
    assert search.floor <= least + 1e-9 * max(1.0, abs(least))


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_thirty_samples_are_proven(n_features, C):
    X, y = noisy(30, n_features, 5)
    clf = LinearOWASVC(C=C, weights="trimmed", alpha=0.15, solver="branch-and-bound").fit(X, y)
    assert clf.status_ == "optimal" and clf.gap_ <= 1e-4
    assert clf.n_iter_ >= 1


def test_auto_proves_trimmed_weights_of_few_samples():
    X, y = noisy(40, 2, 3)
    clf = LinearOWASVC(C=1.0, weights="trimmed", alpha=0.1).fit(X, y)
    assert clf.status_ == "optimal"


@pytest.mark.parametrize("weighted", [False, True])
def test_auto_tries_no_proof_that_takes_long(weighted):
    X, y = noisy(40, 2, 3)
    mass = 1.0 + np.arange(40) % 3 if weighted else None
    families = [("olympic", 0.6)] + ([("trimmed", 0.1)] if weighted else [])
    for weights, alpha in families:
        problem = OWAProblem(y, RankCosts(40, weights, alpha, 10.0, mass), features=X)
        assert solve(problem).solver == "dca"


def test_whoever_watches_may_stop_it():
    X, y = noisy(60, 2, 0)
    problem = OWAProblem(y, RankCosts(60, "trimmed", 0.3, 0.01), features=X)
    calls = []

    def stop(info):
        calls.append(info)
        return len(calls) < 3

    found = solve(problem, "branch-and-bound", callback=stop)
    assert found.status == "interrupted"
    assert 0.0 <= found.lower_bound <= found.objective


def test_costs_that_rise_are_left_to_others():
    X, y = noisy(20, 2, 0)
    for weights, alpha in (("olympic", 0.5), ("quadratic", 0.8)):
        problem = OWAProblem(y, RankCosts(20, weights, alpha, 1.0), features=X)
        assert not can_enumerate(Search(problem, Settings(options=Options())))
