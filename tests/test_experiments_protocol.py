"""Folds, grids, figures of merit, and the plan of an experiment."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from owasvm.experiments import paper
from owasvm.experiments.plan import ORDER, FitOptions, make_plan
from owasvm.experiments.protocol import GRIDS, Data, evaluate, fold_numbers, load_data, split
from tests.experiment_tools import CONVEX, made_up, small_plan


@pytest.mark.parametrize(
    ("folds", "splitter"),
    [
        ("shuffled", StratifiedKFold(10, shuffle=True, random_state=2)),
        ("unshuffled", StratifiedKFold(10)),
    ],
)
def test_folds_are_those_of_the_paper(folds, splitter):
    y = made_up(n_samples=137).y
    expected = list(splitter.split(np.zeros((137, 1)), y))
    for fold in fold_numbers(folds):
        for ours, theirs in zip(split(y, folds, fold), expected[fold], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_inner_folds_divide_the_training_part_of_their_outer_fold():
    y = made_up(n_samples=137).y
    assert len(fold_numbers("nested")) == 50
    for outer in range(10):
        train, test = split(y, "shuffled", outer)
        parts = [split(y, "nested", 100 * outer + inner) for inner in range(5)]
        np.testing.assert_array_equal(np.sort(np.concatenate([part[1] for part in parts])), train)
        for inner_train, inner_test in parts:
            assert not np.intersect1d(inner_train, inner_test).size
            assert not np.intersect1d(np.concatenate([inner_train, inner_test]), test).size
        theirs = StratifiedKFold(5, shuffle=True, random_state=2).split(train, y[train])
        for ours, (rows, _) in zip(parts, theirs, strict=True):
            np.testing.assert_array_equal(ours[0], train[rows])


def test_unknown_folds_are_refused():
    with pytest.raises(ValueError, match="folds='random' is unknown; use one of shuffled"):
        split(made_up().y, "random", 0)


def test_figures_agree_with_scikit_learn_and_zero_is_an_error():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(80) < 0.3, 1.0, -1.0)
    values = y * rng.normal(0.5, 1.0, size=80)
    figures = evaluate(y, values)
    predicted = np.sign(values)
    assert figures["correct"] / 80 == accuracy_score(y, predicted)
    assert figures["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert figures["true_positive"] + figures["true_negative"] == figures["correct"]
    assert figures["n_test_positive"] == np.sum(y > 0)
    values[np.flatnonzero(y * values > 0)[0]] = 0.0
    assert evaluate(y, values)["correct"] == figures["correct"] - 1


def test_paper_grid():
    grid = GRIDS["paper"]
    assert grid.Cs == grid.widths == tuple(2.0**k for k in range(-7, 8))
    assert len(grid.weights) == 16


def test_coarse_grid_is_part_of_the_paper_grid():
    coarse, full = GRIDS["coarse"], GRIDS["paper"]
    assert set(coarse.Cs) < set(full.Cs)
    assert set(coarse.widths) < set(full.widths)
    assert set(coarse.weights) < set(full.weights)
    assert {quantifier for quantifier, _ in coarse.weights} == set(paper.QUANTIFIERS)


def test_narrowed_grids_keep_order_and_refuse_strangers():
    grid = GRIDS["paper"]
    small = grid.narrow(Cs=[4.0, 0.5], quantifiers=["exponential", "basic"], alphas=[0.8, 0.2])
    assert small.Cs == (0.5, 4.0)
    assert small.widths == grid.widths
    assert small.weights == tuple((q, a) for q in ("basic", "exponential") for a in (0.2, 0.8))
    with pytest.raises(ValueError, match=r"C=3 is not in the paper grid, which has 2\^-7, 2\^-6"):
        grid.narrow(Cs=[3.0])
    with pytest.raises(ValueError, match="quantifier=cubic is not in the paper grid"):
        grid.narrow(quantifiers=["cubic"])
    with pytest.raises(ValueError, match="no pair of these quantifiers and alphas"):
        GRIDS["coarse"].narrow(quantifiers=["trigonometric"], alphas=[0.2])


def test_data_are_equal_when_their_contents_are():
    data, same = made_up(), made_up()
    assert data == same
    assert hash(data) == hash(pickle.loads(pickle.dumps(data)))
    assert data != Data("toy", data.X + 1.0, data.y)
    assert data != Data("toy", data.X, -data.y)


def test_load_data_gives_signs():
    data = load_data("wbc")
    assert data.y.dtype == np.float64
    assert set(data.y) == {-1.0, 1.0}


def test_plan_covers_every_cell_once():
    plan = make_plan({"toy": made_up()}, GRIDS["paper"])
    cells = [
        chain.cell(position)
        for chain in plan.chains
        if chain.model != ORDER
        for position in range(len(chain))
    ]
    assert len(cells) == len(set(cells)) == plan.n_cells
    # Per fold and C: a classical fit, 16 two-step and 16 exact ones, linear and at 15 widths, and
    # l2-SVM_K on the unshuffled folds as well.
    assert plan.n_cells == 10 * 15 * ((1 + 16 + 16) * 16 + 15)
    assert {cell.folds for cell in cells if cell.model == "l2-SVM_K"} == {"shuffled", "unshuffled"}
    assert {cell.folds for cell in cells if cell.model == "l2-SVM"} == {"shuffled"}
    assert len({chain.name for chain in plan.chains}) == len(plan.chains)
    assert sum(chain.model == ORDER for chain in plan.chains) == 10


@pytest.mark.parametrize(
    ("choice", "kinds"),
    [
        ({"folds": "shuffled"}, {"shuffled"}),
        ({"folds": "unshuffled"}, {"unshuffled"}),
        ({"folds": "both"}, {"shuffled", "unshuffled"}),
        ({"folds": "shuffled", "nested": True}, {"shuffled", "nested"}),
    ],
)
def test_choice_of_folds(choice, kinds):
    plan = small_plan(models=["l2-SVM"], **choice)
    assert {chain.folds for chain in plan.chains} == kinds


def test_weights_that_fall_can_be_skipped():
    data = made_up()
    grid = GRIDS["paper"].narrow(Cs=[1.0])
    skipped = make_plan(
        {"toy": data}, grid, models=["ex-OWA-SVM"], options=FitOptions(general="skip")
    )
    assert {chain.weights[0] for chain in skipped.chains} == {
        *((q, a) for q in ("basic", "exponential") for a in paper.ALPHAS),
        ("quadratic", 0.2),
    }
    full = make_plan({"toy": data}, grid, models=["ex-OWA-SVM"])
    assert full.n_cells == 160


def test_linear_models_alone_need_no_orders():
    plan = small_plan(models=["l2-SVM", "ex-OWA-SVM"])
    assert all(chain.model != ORDER and chain.width == 0.0 for chain in plan.chains)
    assert {chain.weights[0] for chain in plan.chains if chain.model == "ex-OWA-SVM"} == {*CONVEX}


def test_facts_ignore_what_can_be_added_later():
    one = small_plan(models=["l2-SVM"]).facts()
    other = small_plan(models=["app-OWA-SVM_K"], folds="both", nested=True).facts()
    assert one == other
    dca = small_plan(options=FitOptions()).facts()
    assert dca["general"] == "dca"
    assert {key: dca[key] for key in one} == one
