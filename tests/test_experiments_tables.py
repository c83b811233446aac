"""The printed tables, and the way from cells to ours."""

import csv
import io
import itertools
import json
import math
import sqlite3

import numpy as np
import pytest

from owasvm.experiments import paper, tables
from owasvm.experiments.known_points import KNOWN_POINTS
from owasvm.experiments.protocol import GRIDS
from owasvm.experiments.report import beyond, comparison
from owasvm.experiments.report.content import make_tables
from owasvm.experiments.report.formats import render_table
from owasvm.experiments.report.run import load_run
from owasvm.experiments.report.table import Cell, Column, Table, plain
from owasvm.experiments.store import Store
from tests.synthetic_run import SyntheticRun

pytest.importorskip("pandas")
pytest.importorskip("jinja2")


@pytest.fixture
def make_run(tmp_path):
    numbers = itertools.count()
    return lambda grid="paper": SyntheticRun(tmp_path / f"run{next(numbers)}", grid)


def winner(folder, metric, **key):
    """The only winner with this key, as a dict."""
    points = tables.summarise(tables.load_cells(folder))
    rows = tables.best_parameters(points, metric)
    for name, value in key.items():
        rows = rows[rows[name] == value]
    (row,) = rows.to_dict("records")
    return row


# -- the printed values ---------------------------------------------------------------------------


def test_printed_tables_are_complete():
    for table in (paper.ACC, paper.AUC):
        assert list(table) == list(paper.DATASETS)
        assert all(tuple(row) == paper.MODELS for row in table.values())
    assert all(len(paper.TIMES[name]["app-OWA-SVM_K"]) == 2 for name in paper.DATASETS)
    assert [paper.TABLES[key].number for key in ("order", "acc", "auc", "times")] == [2, 3, 4, 5]


def test_printed_columns_add_up():
    """Sums of the columns, added by hand from the printed tables."""
    sums = {
        "acc": [509.98, 512.28, 510.84, 523.10, 527.07, 526.90],
        "auc": [495.28, 499.24, 496.20, 508.27, 515.52, 514.36],
    }
    for metric, expected in sums.items():
        table = comparison.METRICS[metric]
        for model, total in zip(paper.MODELS, expected, strict=True):
            assert sum(row[model] for row in table.values()) == pytest.approx(total)
    assert sum(row["step_two"] for row in paper.ORDER.values()) == pytest.approx(4.70)
    assert sum(row["exact"] for row in paper.ORDER.values()) == pytest.approx(5.93)
    times = [
        sum(paper.TIMES[name][model][step] for name in paper.DATASETS)
        for model in paper.MODELS
        for step in range(len(paper.TIMES["wbc"][model]))
    ]
    expected_times = [0.105, 0.989, 2.664, 144.735, 0.117, 0.090, 58.341, 125.030]
    assert times == pytest.approx(expected_times)


def test_printed_values_say_what_the_text_of_the_paper_says():
    """The best ACC: exact for WBC and AUS, two-step for DIA and SPL, both for IONO and GC."""
    best = {
        name: {model for model in paper.MODELS if row[model] == max(row.values())}
        for name, row in paper.ACC.items()
    }
    assert best["wbc"] == best["australian"] == {"ex-OWA-SVM_K"}
    assert best["diabetes"] == best["splice"] == {"app-OWA-SVM_K"}
    assert best["ionosphere"] == {"app-OWA-SVM_K", "ex-OWA-SVM_K"}
    assert best["german"] == {"app-OWA-SVM", "app-OWA-SVM_K", "ex-OWA-SVM_K"}
    for name in ("ionosphere", "diabetes", "splice"):
        assert paper.AUC[name]["app-OWA-SVM_K"] == paper.AUC[name]["ex-OWA-SVM_K"]


def test_explanations_name_cells_of_the_paper():
    for metric, dataset, model in paper.EXPLANATIONS:
        assert metric in comparison.METRICS
        assert dataset in paper.DATASETS
        assert model in paper.MODELS


# -- reading --------------------------------------------------------------------------------------


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(tables.RunError, match="is not a folder"):
        tables.load_cells(tmp_path / "nowhere")
    with pytest.raises(tables.RunError, match=r"has no cells\.sqlite"):
        tables.load_cells(tmp_path)
    (tmp_path / "cells.sqlite").write_text("no database, but long enough to look like one" * 20)
    with pytest.raises(tables.RunError, match="is not the store of a run"):
        tables.load_cells(tmp_path)


def test_a_database_of_something_else_is_refused(tmp_path):
    sqlite3.connect(tmp_path / "cells.sqlite").close()
    with pytest.raises(tables.RunError, match=r"not the store of a run \(.*no such table"):
        tables.load_cells(tmp_path)
    with pytest.raises(tables.RunError, match=r"no such table: meta"):
        tables.load_meta(tmp_path)


def test_a_run_without_cells_is_refused(make_run):
    folder = make_run().close()
    with pytest.raises(tables.RunError, match="holds no finished cell"):
        tables.load_cells(folder)


def test_reading_changes_nothing(make_run):
    folder = make_run().add_point([40] * 10).close()
    before = (folder / "cells.sqlite").read_bytes()
    load_run(folder)
    assert (folder / "cells.sqlite").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["cells.sqlite"]


def test_what_the_engine_stores_can_be_read(tmp_path):
    cell = {"dataset": "wbc", "folds": "shuffled", "model": "l2-SVM", "width": 0.0, "C": 1.0}
    cell |= {"quantifier": "", "alpha": 0.0, "n_test": 50, "correct": 40}
    with Store(tmp_path) as store:
        store.set_meta(grid="paper", command="owasvm reproduce")
        for fold in range(10):
            store.add({**cell, "fold": fold, "versions": '{"numpy": "2.0"}'})
        store.add_order({"dataset": "wbc", "fold": 0, "step_two": 1.0, "exact": 2.0})
    run = load_run(tmp_path)
    assert run.compared["acc", "paper"].set_index("model")["ours"]["l2-SVM"] == pytest.approx(80.0)
    assert run.versions == {1: {"numpy": "2.0"}}
    assert run.meta == {"command": "owasvm reproduce", "grid": "paper"}
    assert len(run.orders) == 1


# -- best of the grid -----------------------------------------------------------------------------


def test_a_cell_is_the_best_mean_over_the_folds(make_run):
    run = make_run()
    # One brilliant fold does not help: the mean decides.
    run.add_point([50] + [30] * 9, C=1.0)
    run.add_point([41] * 10, C=2.0)
    row = winner(run.close(), "acc")
    assert row["C"] == 2.0
    assert row["acc"] == pytest.approx(100 * 41 / 50)


def test_the_mean_is_that_of_the_folds_not_of_the_samples(make_run):
    run = make_run()
    for fold in range(10):
        n_test = 10 if fold else 100
        run.add(fold=fold, n_test=n_test, correct=n_test if fold else 0)
    assert winner(run.close(), "acc")["acc"] == pytest.approx(90.0)


def test_accuracy_and_auc_have_their_own_parameters(make_run):
    run = make_run()
    run.add_point([45] * 10, C=1.0, balanced_accuracy=0.7)
    run.add_point([40] * 10, C=4.0, balanced_accuracy=0.8)
    folder = run.close()
    assert winner(folder, "acc")["C"] == 1.0
    assert winner(folder, "auc")["C"] == 4.0
    assert winner(folder, "auc")["auc"] == pytest.approx(80.0)


def test_points_without_all_folds_take_no_part(make_run):
    run = make_run()
    run.add_point([50] * 9, C=1.0)
    run.add_point([30] * 10, C=2.0)
    assert winner(run.close(), "acc")["C"] == 2.0


OWA = {"model": "ex-OWA-SVM_K", "width": 1.0, "quantifier": "basic", "alpha": 0.4, "convex": 1}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"C": 8.0}, {"convex": 0, "C": 1.0, "quantifier": "trigonometric"}),
        ({"C": 1.0, "width": 1.0}, {"C": 2.0, "width": 8.0}),
        ({"width": 4.0, "quantifier": "exponential"}, {"width": 2.0}),
        ({"quantifier": "basic", "alpha": 0.8}, {"quantifier": "quadratic", "alpha": 0.2}),
        ({"quantifier": "quadratic", "alpha": 0.2}, {"quantifier": "exponential"}),
        ({"alpha": 0.2}, {"alpha": 0.6}),
    ],
    ids=["convex", "C", "width", "basic", "quadratic", "alpha"],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_ties_are_broken_by_a_rule(make_run, better, worse, swapped):
    run = make_run()
    points = [{**OWA, **better}, {**OWA, **worse}]
    # The same mean from other folds: the order of a sum must not decide.
    corrects = [[41, 42, 43, 44, 45, 46, 47, 48, 49, 50], [50, 49, 48, 47, 46, 45, 44, 43, 42, 41]]
    for point, counts in zip(points[::-1] if swapped else points, corrects, strict=True):
        run.add_point(counts, n_test=57, **point)
    row = winner(run.close(), "acc")
    assert {name: row[name] for name in better} == better
    assert row["n_ties"] == 2


# -- completeness ---------------------------------------------------------------------------------


def test_shares_of_the_grid(make_run):
    run = make_run("coarse").fill(["wbc"], GRIDS["coarse"])
    folder = run.close()
    progress = tables.completeness(tables.load_cells(folder), GRIDS["coarse"])
    assert (progress["share"] == 1.0).all()
    kernel = progress[progress["model"] == "ex-OWA-SVM_K"].iloc[0]
    # The coarse grid has 6 x 4 x 6 points, the paper's 15 x 15 x 16.
    assert kernel["done"] == kernel["expected"] == 1440
    assert kernel["paper_share"] == pytest.approx(1440 / 36000)


def test_a_grid_that_was_cut_short(make_run):
    run = make_run("coarse").fill(["wbc"], GRIDS["coarse"].narrow(Cs=[4.0]))
    progress = tables.completeness(tables.load_cells(run.close()), GRIDS["coarse"])
    np.testing.assert_allclose(progress["share"], 1 / 6)


def test_cells_outside_the_grid_do_not_count(make_run):
    run = make_run("paper").add_point([40] * 10, C=3.0).add_point([40] * 10, C=4.0)
    progress = tables.completeness(tables.load_cells(run.close()), GRIDS["paper"])
    assert progress["done"].tolist() == [10]


def test_the_grid_is_the_one_the_run_was_asked_for():
    assert tables.grid_of_run({"grid": "coarse"}) is GRIDS["coarse"]
    assert tables.grid_of_run({"grid": "mine"}) is None
    narrowed = GRIDS["coarse"].narrow(Cs=[4.0], quantifiers=["basic"])
    meta = {
        "grid": "coarse",
        "Cs": json.dumps(narrowed.Cs),
        "widths": json.dumps(narrowed.widths),
        "weights": json.dumps(narrowed.weights),
    }
    assert tables.grid_of_run(meta) == narrowed


def test_an_unknown_grid_is_what_occurs(make_run):
    run = make_run("mine").add_point([40] * 10, C=3.0).add_point([40] * 5, C=5.0)
    progress = tables.completeness(tables.load_cells(run.close()), None)
    assert progress["share"].tolist() == [0.75]


# -- beside the paper -----------------------------------------------------------------------------


def test_the_paper_has_l2_svm_k_on_other_folds(make_run):
    run = make_run()
    run.add_point([45] * 10, model="l2-SVM_K", width=1.0, folds="shuffled")
    run.add_point([47] * 10, model="l2-SVM_K", width=1.0, folds="unshuffled")
    compared = load_run(run.close()).compared
    ours = {
        protocol: frame.set_index("model")["ours"]["l2-SVM_K"]
        for (metric, protocol), frame in compared.items()
        if metric == "acc"
    }
    assert ours == pytest.approx({"paper": 94.0, "same": 90.0})


@pytest.mark.parametrize(
    ("model", "difference", "expected"),
    [
        ("l2-SVM", 0.05, True),
        ("l2-SVM", -0.05, True),
        ("app-OWA-SVM_K", 0.0501, False),
        ("app-OWA-SVM", -0.06, False),
        ("ex-OWA-SVM", 3.0, True),
        ("ex-OWA-SVM_K", -0.05, True),
        ("ex-OWA-SVM_K", -0.0501, False),
    ],
)
def test_which_differences_agree(model, difference, expected):
    assert comparison.agrees(model, difference) is expected


def test_comparison_with_the_printed_values(make_run):
    run = make_run().add_point([49] * 10, n_test=50).close()
    frame = load_run(run).compared["acc", "paper"].set_index("model")
    classical = frame.loc["l2-SVM"]
    assert classical["ours"] == pytest.approx(98.0)
    assert classical["difference"] == pytest.approx(98.0 - 98.07)
    assert classical["agrees"] is False
    missing = frame.loc["ex-OWA-SVM_K"]
    assert math.isnan(missing["ours"])
    assert missing["agrees"] is None
    assert missing["share"] == 0.0


def test_times_are_those_of_the_best_auc_with_both_steps(make_run):
    run = make_run()
    point = {"model": "app-OWA-SVM", "quantifier": "basic", "alpha": 0.2}
    run.add_point([40] * 10, C=1.0, fit_time=9.0, first_time=9.0, **point)
    run.add_point([45] * 10, C=2.0, fit_time=0.2, first_time=0.1, **point)
    times = comparison.compare_times(load_run(run.close()).compared["auc", "paper"])
    row = times.set_index("model").loc["app-OWA-SVM"]
    assert row["ours"] == pytest.approx(0.3)
    assert row["paper"] == pytest.approx(0.003 + 0.494)
    assert row["ratio"] == pytest.approx(0.497 / 0.3)
    assert math.isnan(times.set_index("model").loc["l2-SVM"]["ratio"])


def test_orders_are_means_over_the_folds(make_run):
    run = make_run().add_point([40] * 10)
    rows = [("wbc", 0, 1.0, 0.5), ("wbc", 1, 2.0, 0.0), ("german", 0, 0.4, 0.36)]
    run.store.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
    frame = comparison.compare_orders(tables.load_orders(run.close())).set_index("dataset")
    assert frame.loc["wbc", "step_two"] == pytest.approx(1.5)
    assert frame.loc["wbc", "exact_difference"] == pytest.approx(0.25 - 0.18)
    assert frame.loc["german", "step_two_difference"] == pytest.approx(0.0)


def test_a_printed_value_is_in_reach_with_a_point_that_is_known_to_reach_it(make_run):
    point = KNOWN_POINTS["acc", "wbc", "ex-OWA-SVM_K"]
    run = make_run()
    run.add_point([40] * 10, model="ex-OWA-SVM_K", **point._asdict())
    run.add_point([40] * 10, C=2.0)
    run.add_point([40] * 10, model="l2-SVM_K", width=1.0)
    loaded = load_run(run.close())
    frame = loaded.compared["acc", "paper"].set_index("model")
    assert frame["in_reach"].to_dict() == {
        "ex-OWA-SVM_K": True,
        "l2-SVM": False,
        **dict.fromkeys(["app-OWA-SVM", "ex-OWA-SVM", "l2-SVM_K", "app-OWA-SVM_K"]),
    }
    cells = {row[0].value: row[1] for row in make_tables(loaded)["acc-paper-folds"].cells}
    assert cells["ex-OWA-SVM_K"].marks[0] == "differs"
    assert cells["l2-SVM"].marks[0] == "outside"
    # Printed for other folds: no verdict.
    same = loaded.compared["acc", "same"].set_index("model").loc["l2-SVM_K"]
    assert same["ours"] == pytest.approx(80.0)
    assert same["agrees"] is same["in_reach"] is None


def test_known_points_leave_out_the_explained_cells_and_cover_the_coarse_grid():
    for metric in ("acc", "auc"):
        for dataset in paper.DATASETS:
            for model in paper.MODELS:
                key = (metric, dataset, model)
                assert (key in KNOWN_POINTS) == (key not in paper.EXPLANATIONS)
    grid = GRIDS["coarse"]
    for (_, dataset, _), point in KNOWN_POINTS.items():
        assert {point.C} <= set(paper.C_GRID)
        if dataset == "wbc":
            assert point.C in grid.Cs
            assert point.width in (0.0, *grid.widths)
            assert (point.quantifier, point.alpha) in (("", 0.0), *grid.weights)


# -- beyond the paper -----------------------------------------------------------------------------


def test_gaps_of_general_weights(make_run):
    run = make_run()
    point = {"model": "ex-OWA-SVM", "quantifier": "trigonometric", "alpha": 0.6, "convex": 0}
    for fold, gap in enumerate([0.0, 0.0005, 0.005, 0.05]):
        status = "optimal" if gap == 0 else "time_limit"
        run.add(fold=fold, gap=gap, status=status, **point)
    run.add_point([40] * 10, model="ex-OWA-SVM", quantifier="basic", alpha=0.2, gap=0.9)
    run.add_point([40] * 10, model="app-OWA-SVM", quantifier="quadratic", alpha=0.6, convex=0)
    (row,) = beyond.gap_distribution(tables.load_cells(run.close())).to_dict("records")
    assert (row["model"], row["quantifier"], row["cells"]) == ("ex-OWA-SVM", "trigonometric", 4)
    shares = [row[key] for key in ("optimal", "below_0.1%", "below_1%")]
    assert shares == [0.25, 0.5, 0.75]
    assert row["worst"] == 0.05


def nested_run(make_run, n_outer=10):
    """C = 1 wins the inner folds, C = 2 would win on the outer ones."""
    run = make_run()
    for C, inner, outer in ((1.0, 48, 40), (2.0, 30, 49)):
        run.add_point([outer] * 10, C=C)
        for fold in range(n_outer):
            for inner_fold in range(5):
                run.add(folds="nested", fold=100 * fold + inner_fold, C=C, correct=inner)
    return run.close()


def test_nested_scores_are_chosen_by_the_inner_folds(make_run):
    folder = nested_run(make_run)
    cells, inner = tables.load_cells(folder), tables.load_nested(folder)
    scores = beyond.nested_fold_scores(cells, inner, "acc")
    assert scores["score"].tolist() == pytest.approx([80.0] * 10)
    assert scores["fold"].tolist() == list(range(10))
    best = beyond.best_fold_scores(cells, tables.summarise(cells), "acc")
    assert best["score"].tolist() == pytest.approx([98.0] * 10)


def test_inner_folds_are_no_cells_of_the_tables(make_run):
    cells = tables.load_cells(nested_run(make_run))
    assert set(cells["folds"]) == {"shuffled"}


def test_incomplete_inner_folds_do_not_choose(make_run):
    folder = nested_run(make_run)
    with sqlite3.connect(folder / "cells.sqlite") as store:
        store.execute("DELETE FROM cells WHERE folds = 'nested' AND C = 1 AND fold = 304")
    store.close()
    scores = beyond.nested_fold_scores(
        tables.load_cells(folder), tables.load_nested(folder), "acc"
    )
    assert scores["score"].tolist() == pytest.approx([80.0] * 3 + [98.0] + [80.0] * 6)


def test_nested_columns(make_run):
    table = make_tables(load_run(nested_run(make_run, n_outer=4)))["nested-acc"]
    first, second = table.cells[:2]
    assert [cell.value for cell in first[1:]] == pytest.approx([98.0, 80.0, -18.0])
    assert first[2].marks == ("partial",)
    assert second[2].value == "not run"


def test_paired_comparisons(make_run):
    run = make_run()
    run.add_point([40, 41, 42, 43, 44, 45, 46, 47, 48, 49])
    run.add_point([41, 42, 43, 44, 45, 46, 47, 48, 49, 50], **{**OWA, "model": "ex-OWA-SVM"})
    run.add_point([44] * 9, **{**OWA, "model": "app-OWA-SVM"})
    folder = run.close()
    cells = tables.load_cells(folder)
    scores = beyond.best_fold_scores(cells, tables.summarise(cells), "acc")
    (row,) = beyond.paired_comparisons(scores).to_dict("records")
    assert (row["first"], row["second"]) == ("ex-OWA-SVM", "l2-SVM")
    assert (row["wins"], row["draws"], row["losses"]) == (10, 0, 0)
    assert row["mean_difference"] == pytest.approx(2.0)
    assert row["wilcoxon_holm"] == pytest.approx(2 / 2**10)


def test_holm_is_over_all_rows(make_run):
    run = make_run("coarse").fill(["wbc", "ionosphere"], GRIDS["coarse"])
    cells = tables.load_cells(run.close())
    scores = beyond.best_fold_scores(cells, tables.summarise(cells), "acc")
    frame = beyond.paired_comparisons(scores)
    assert len(frame) == 8
    smallest = frame["t_p_value"].idxmin()
    expected = min(1.0, 8 * frame.loc[smallest, "t_p_value"])
    assert frame.loc[smallest, "t_holm"] == pytest.approx(expected)


# -- writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (90.604, "percent", "90.60"),
        (-0.004, "points", "0.00"),
        (0.126, "points", "+0.13"),
        (-0.126, "points", "\N{MINUS SIGN}0.13"),
        (0.0123, "seconds", "0.0123"),
        (1e-6, "seconds", "< 0.0001"),
        (12345.0, "ratio", "12,300 \N{MULTIPLICATION SIGN}"),
        (0.5, "ratio", "0.50 \N{MULTIPLICATION SIGN}"),
        (2.0**-7, "power", "2⁻⁷"),
        (3.0, "power", "3"),
        (0.9999, "share", "> 99 %"),
        (0.0001, "share", "< 1 %"),
        (1.0, "share", "100 %"),
        (0.004, "gap", "0.400 %"),
        (0.0, "gap", "< 0.001 %"),
        (0.0004, "p", "< 0.001"),
        (None, "percent", "\N{EN DASH}"),
        (math.nan, "percent", "\N{EN DASH}"),
        ("not run", "percent", "not run"),
    ],
)
def test_values_are_written_as_people_read_them(value, kind, expected):
    assert plain(value, kind) == expected


@pytest.fixture
def sample_table():
    return Table(
        slug="sample",
        title="Sample",
        caption="10 % of l2-SVM_K & more_of it | at C = 2^7.",
        columns=[
            Column("Data"),
            Column("ours", "percent", "ex-OWA-SVM_K"),
            Column("C", "power", "ex-OWA-SVM_K"),
            Column("ratio", "ratio"),
        ],
        rows=[
            ["GC", Cell(71.234567891234, ("differs", "partial"), bold=True), 0.5, 3.0],
            ["a|b_c", None, math.nan, None],
        ],
    )


def test_markdown(sample_table):
    text = render_table(sample_table, "markdown")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines[0] == "| Data | ex-OWA-SVM_K: ours | ex-OWA-SVM_K: C | ratio |"
    assert lines[1] == "| :-- | --: | --: | --: |"
    assert lines[2] == f"| GC | **71.23†\\*** | 2⁻¹ | {plain(3.0, 'ratio')} |"
    assert lines[3].startswith("| a\\|b_c |")
    assert "† differs" in text


def test_latex(sample_table):
    text = render_table(sample_table, "latex")
    body = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert all(line.count("&") - line.count(r"\&") == 3 for line in body[1:])
    assert r"\multicolumn{2}{c}{ex-OWA-SVM$_K$}" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert r"10 \% of $\ell_2$-SVM$_K$ \& more\_of it | at C = $2^{7}$." in text
    assert r"\textbf{71.23$^{\dagger}$$^{*}$} & $2^{-1}$ & 3.0 $\times$ \\" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}", r"\end{table}"):
        assert text.count(rule) == 1


def test_csv(sample_table):
    header, first, second = csv.reader(io.StringIO(render_table(sample_table, "csv")))
    assert header == ["Data", "ex-OWA-SVM_K ours", "ex-OWA-SVM_K C", "ratio"]
    assert first == ["GC", "71.23456789", "0.5", "3"]
    assert second == ["a|b_c", "", "", ""]


def test_an_empty_table_says_so():
    table = Table("t", "T", "C.", [Column("x")], [], empty="Nothing here.")
    assert "Nothing here." in render_table(table, "markdown")
    assert "Nothing here." in render_table(table, "latex")
    assert render_table(table, "csv") == "x\n"


def test_tables_do_not_depend_on_the_order_of_the_rows(make_run):
    """Runs that finish their cells in another order give the same files."""
    first = make_run("coarse").fill(["wbc"], GRIDS["coarse"], nested=True).close()
    second = make_run("coarse")
    with sqlite3.connect(first / "cells.sqlite") as store:
        rows = list(store.execute("SELECT * FROM cells"))
    store.close()
    np.random.default_rng(0).shuffle(rows)
    second.store.executemany(f"INSERT INTO cells VALUES ({', '.join('?' * len(rows[0]))})", rows)
    texts = [
        {slug: render_table(table, "csv") for slug, table in make_tables(load_run(folder)).items()}
        for folder in (first, second.close())
    ]
    assert texts[0] == texts[1]


def test_differences_are_listed_with_their_reason(make_run, monkeypatch):
    run = make_run()
    # A complete paper grid of the linear classical model, far from the printed value.
    for C in paper.C_GRID:
        run.add_point([40] * 10, C=C)
    run.add_point([40] * 10, **{**OWA, "model": "ex-OWA-SVM"})
    folder = run.close()
    rows = [[cell.value for cell in row] for row in _differences(folder)]
    acc = {row[1]: row[-1] for row in rows if row[2] == "ACC"}
    # The exact model has one point, which is not known to reach the printed value.
    assert acc == {"l2-SVM": "not explained"}
    monkeypatch.setitem(paper.EXPLANATIONS, ("acc", "wbc", "l2-SVM"), "because")
    rows = [[cell.value for cell in row] for row in _differences(folder)]
    assert rows[0][-1] == "because"


def _differences(folder):
    return make_tables(load_run(folder))["differences"].cells
