"""What robust weights buy when labels are wrong: accuracy, and finding the wrong labels.

Seven datasets, 150 training rows each (stratified), the others (or 1,000 new ones) for the test.
Labels of the training rows are flipped: a share of all rows, drawn at random ("symmetric"), or a
share of one class ("one-sided"). Shares 0, 0.1, 0.2 and 0.3.

Every method sees the noisy labels only: C, and alpha where there is one, are chosen by 3-fold
cross-validation of the accuracy on the NOISY labels, then it is trained on all training rows and
tested on CLEAN labels. Gaussian kernel, gamma "scale", standardised features.

SVC               sklearn.svm.SVC
two-step trimmed  TwoStepOWASVC(weights="trimmed")
exact trimmed     OWASVC(weights="trimmed"), the default solver, with the parameters that
                  cross-validation chose for the two-step method: its fits are ten times faster
trimmed by class  the same with ranks="class", in both
exact, own CV     OWASVC(weights="trimmed") with parameters from its own cross-validation; slow,
                  run when named in --methods only
exact basic       OWASVC(weights="basic"), which never ignores anybody
SVC, filtered     SVC without the rows to which label_issues gives a positive score
SVC, cleanlab     SVC without the rows that cleanlab's filter finds (skipped where it is missing)

How well the flipped labels are found: precision and recall of what a method ignores
(``outliers_``, filtered rows), and the average precision of its ranking: deviations of the
training rows, the score of label_issues, cleanlab's label quality. "SVC C=1" ranks by the
deviations of an SVC with its default parameters.

Every finished case is stored at once in ``results/label_noise.jsonl``, and a rerun skips what is
there; ``results/label_noise.md`` is written at the end.

    OWASVM_DATA=... python benchmarks/label_noise.py [--seeds 20] [--methods NAME ...]
    python benchmarks/label_noise.py --table
"""

from common import (  # first: it limits the threads
    add_result_options,
    append_record,
    load,
    machine,
    markdown_table,
    parse_result_options,
    read_records,
    solver_sources,
)

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.dummy import DummyClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from owasvm import OWASVC, TwoStepOWASVC
from owasvm.inspection import label_issues

DATASETS = (
    "cancer",
    "digits 3/8",
    "ionosphere",
    "diabetes",
    "splice",
    "moons",
    "checkerboard",
)
RATES = (0.0, 0.1, 0.2, 0.3)
CONDITIONS = (
    ("none", 0.0),
    *product(("symmetric", "one-sided"), RATES[1:]),
)
N_TRAIN, N_TEST, N_FOLDS = 150, 1000, 3
CS = (0.3, 3.0, 30.0)
ALPHAS = {"trimmed": (0.1, 0.2, 0.3), "basic": (0.3, 0.6, 0.9)}
KEY = ("dataset", "noise", "rate", "seed", "method")

Record = dict[str, Any]
Data = dict[str, Any]


@cache
def rows_of(name: str) -> tuple[Any, Any]:
    """All rows of a dataset of fixed size, labels 0 and 1."""
    if name == "cancer":
        return load_breast_cancer(return_X_y=True)
    if name == "digits 3/8":
        X, y = load_digits(return_X_y=True)
        pair = np.isin(y, (3, 8))
        return X[pair], (y[pair] == 8).astype(int)
    X, y = load(name)
    return X, (y > 0).astype(int)


def draw(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Training rows and test rows, standardised by the former."""
    rng = np.random.RandomState(seed)
    if name == "moons":
        X, y = make_moons(N_TRAIN + N_TEST, noise=0.25, random_state=rng)
    elif name == "checkerboard":
        X = rng.uniform(0.0, 3.0, (N_TRAIN + N_TEST, 2))
        y = np.floor(X).astype(int).sum(axis=1) % 2
    else:
        X, y = rows_of(name)
    train, test, y_train, y_test = train_test_split(
        X, y, train_size=N_TRAIN, stratify=y, random_state=rng
    )
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), y_train, scaler.transform(test), y_test


def make_case(name: str, noise: str, rate: float, seed: int) -> Data:
    """Training rows with noisy labels, test rows with clean ones."""
    X, truth, X_test, y_test = draw(name, seed)
    rng = np.random.default_rng(seed)
    pool = np.flatnonzero(truth == seed % 2) if noise == "one-sided" else np.arange(truth.size)
    flipped = np.zeros(truth.size, dtype=bool)
    flipped[rng.choice(pool, round(rate * pool.size), replace=False)] = True
    y = np.where(flipped, 1 - truth, truth)
    return {"X": X, "y": y, "flipped": flipped, "X_test": X_test, "y_test": y_test}


def tune(model: Any, grid: dict[str, Sequence[float]], data: Data) -> dict[str, float]:
    """Parameters of the best accuracy on the noisy labels."""
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    # Trimming can leave one class only, which the two-step method refuses.
    search = GridSearchCV(model, grid, cv=folds, refit=False, error_score=0.0)
    return dict(search.fit(data["X"], data["y"]).best_params_)


def deviations(model: Any, data: Data) -> Any:
    """``1 - y f(x)`` of the training rows, not clipped at 0: a ranking of all of them."""
    return 1.0 - np.where(data["y"] == 1, 1.0, -1.0) * model.decision_function(data["X"])


def judge(model: Any, data: Data, ranking: Any, ignored: Any, parameters: Any) -> Record:
    """The figures of a trained classifier."""
    flipped = data["flipped"]
    record: Record = {"parameters": parameters}
    if model is not None:
        record["accuracy"] = float(model.score(data["X_test"], data["y_test"]))
    if flipped.any():
        record["average_precision"] = float(average_precision_score(flipped, ranking))
    if ignored is not None:
        hits = int(flipped[ignored].sum())
        n_ignored = int(flipped[ignored].size)
        record["n_ignored"] = n_ignored
        record["precision"] = hits / n_ignored if n_ignored else None
        record["recall"] = hits / int(flipped.sum()) if flipped.any() else None
    return record


def run_svc(data: Data) -> Record:
    chosen = tune(SVC(), {"C": CS}, data)
    model = SVC(**chosen).fit(data["X"], data["y"])
    return judge(model, data, deviations(model, data), None, chosen)


def run_default_svc(data: Data) -> Record:
    model = SVC().fit(data["X"], data["y"])
    return judge(model, data, deviations(model, data), None, {})


def tune_two_step(data: Data, ranks: str = "all") -> tuple[Any, dict[str, float]]:
    """The two-step method, and the parameters that are best for it."""
    # Ranks do not need the tightest tolerance.
    model = TwoStepOWASVC(weights="trimmed", ranks=ranks, tol=1e-6)
    return model, tune(model, {"C": CS, "alpha": ALPHAS["trimmed"]}, data)


def run_two_step(data: Data) -> Record:
    model, chosen = tune_two_step(data)
    try:
        model.set_params(**chosen).fit(data["X"], data["y"])
    except ValueError as error:
        return {"parameters": chosen, "failure": str(error), "accuracy": 0.5}
    return judge(model, data, deviations(model, data), model.outliers_, chosen)


def run_trimmed(data: Data, ranks: str) -> Record:
    _, chosen = tune_two_step(data, ranks)
    model = OWASVC(weights="trimmed", ranks=ranks, **chosen).fit(data["X"], data["y"])
    return judge(model, data, deviations(model, data), model.outliers_, chosen)


def run_exact(data: Data, family: str) -> Record:
    model = OWASVC(weights=family)
    chosen = tune(model, {"C": CS, "alpha": ALPHAS[family]}, data)
    model.set_params(**chosen).fit(data["X"], data["y"])
    ignored = model.outliers_ if family == "trimmed" else None
    return judge(model, data, deviations(model, data), ignored, chosen)


def run_filter(data: Data) -> Record:
    issues = label_issues(None, data["X"], data["y"])
    score = np.empty(data["y"].size)
    score[issues["row"]] = issues["score"]
    return fit_without(score > 0.0, score, data)


def run_cleanlab(data: Data) -> Record:
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.calibration import CalibratedClassifierCV

    chosen = tune(SVC(), {"C": CS}, data)
    calibrated = CalibratedClassifierCV(SVC(**chosen), cv=3, ensemble=False)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    shares = cross_val_predict(calibrated, data["X"], data["y"], cv=folds, method="predict_proba")
    found = find_label_issues(data["y"], shares, n_jobs=1)
    return fit_without(found, -get_label_quality_scores(data["y"], shares), data)


def fit_without(filtered: Any, ranking: Any, data: Data) -> Record:
    """An SVC tuned and trained on the rows that a filter leaves."""
    kept = ~filtered
    rest = data | {"X": data["X"][kept], "y": data["y"][kept]}
    if np.bincount(rest["y"], minlength=2).min() < N_FOLDS:
        # A filter that leaves one class has learnt nothing: the constant classifier.
        constant = DummyClassifier(strategy="most_frequent").fit(rest["X"], rest["y"])
        record = judge(constant, data, ranking, np.flatnonzero(filtered), {})
        return record | {"failure": "a class is gone"}
    chosen = tune(SVC(), {"C": CS}, rest)
    model = SVC(**chosen).fit(rest["X"], rest["y"])
    return judge(model, data, ranking, np.flatnonzero(filtered), chosen)


METHODS: dict[str, Callable[[Data], Record]] = {
    "SVC": run_svc,
    "SVC C=1": run_default_svc,
    "two-step trimmed": run_two_step,
    "exact trimmed": lambda data: run_trimmed(data, "all"),
    "trimmed by class": lambda data: run_trimmed(data, "class"),
    "exact, own CV": lambda data: run_exact(data, "trimmed"),
    "exact basic": lambda data: run_exact(data, "basic"),
    "SVC, filtered": run_filter,
    "SVC, cleanlab": run_cleanlab,
}


DEFAULT = [name for name in METHODS if name != "exact, own CV"]


def find_missing() -> dict[str, str]:
    """Methods that cannot run here, and why."""
    missing = {}
    if find_spec("cleanlab") is None:
        missing["SVC, cleanlab"] = "cleanlab is not installed"
    return missing


def run(arguments: argparse.Namespace) -> None:
    """Measure what has not been measured yet, all datasets and shares of a seed in turn."""
    missing = find_missing()
    for method, reason in missing.items():
        print(f"skipped: {method} ({reason})")
    done = {tuple(record[key] for key in KEY) for record in read_records(arguments.results)}
    cases = [
        (name, noise, rate, seed)
        for seed in range(arguments.seeds)
        for name in DATASETS
        for noise, rate in CONDITIONS
    ][arguments.share :: arguments.of][: arguments.limit]
    where = {"machine": machine(), "sources": solver_sources()}
    begun = time.perf_counter()
    for count, case in enumerate(cases):
        todo = [
            method
            for method in arguments.methods
            if method not in missing and (*case, method) not in done
        ]
        if not todo:
            continue
        data = make_case(*case)
        for method in todo:
            started = time.process_time()
            with warnings.catch_warnings():
                # Folds may lose a class, and proofs are not asked for.
                warnings.simplefilter("ignore")
                record = METHODS[method](data)
            record["seconds"] = time.process_time() - started
            append_record(
                arguments.results, dict(zip(KEY, (*case, method), strict=True)) | record | where
            )
        print(
            f"{count + 1} of {len(cases)}: {case}, {time.perf_counter() - begun:.0f} s", flush=True
        )


def collect(records: Sequence[Record], figure: str) -> dict[tuple[str, str, float, str], Any]:
    """A figure of every dataset, noise, rate and method: one value per seed."""
    cells: dict[tuple[str, str, float, str], dict[int, float]] = {}
    for record in records:
        if record.get(figure) is not None:
            key = (record["dataset"], record["noise"], record["rate"], record["method"])
            cells.setdefault(key, {})[record["seed"]] = record[figure]
    return cells


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error."""
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return mean, error


def table_of(records: Sequence[Record], figure: str, scale: float, form: str) -> str:
    """Rows: dataset and noise; columns: methods; mean and standard error over the seeds."""
    cells = collect(records, figure)
    methods = [name for name in METHODS if any(key[3] == name for key in cells)]
    rows = []
    for name, (noise, rate) in product(DATASETS, CONDITIONS):
        texts = []
        for method in methods:
            values = list(cells.get((name, noise, rate, method), {}).values())
            mean, error = spread(values) if values else (np.nan, 0.0)
            texts.append(f"{scale * mean:{form}} ± {scale * error:{form}}" if values else "")
        if any(texts):
            rows.append([f"{name}, {noise} {rate:g}" if rate else f"{name}, none", *texts])
    return markdown_table(["data, noise", *methods], rows)


def differences(records: Sequence[Record]) -> str:
    """Against the tuned SVC: paired differences of the accuracy, over all datasets."""
    cells = collect(records, "accuracy")
    methods = [name for name in METHODS if name != "SVC" and any(key[3] == name for key in cells)]
    rows = []
    for noise, rate in CONDITIONS:
        texts = []
        for method in methods:
            means, better, worse = [], 0, 0
            for name in DATASETS:
                own = cells.get((name, noise, rate, method), {})
                base = cells.get((name, noise, rate, "SVC"), {})
                pairs = [own[seed] - base[seed] for seed in own if seed in base]
                if pairs:
                    mean, error = spread(pairs)
                    means.append(mean)
                    better += mean > 2.0 * error
                    worse += mean < -2.0 * error
            texts.append(f"{100 * np.mean(means):+.1f} ({better}/{worse})" if means else "")
        rows.append([f"{noise} {rate:g}", *texts])
    return markdown_table(["noise", *methods], rows)


def finding(records: Sequence[Record]) -> str:
    """The score of label_issues against the deviations of classical SVMs."""
    cells = collect(records, "average_precision")
    lines = []
    for (noise, rate), rival in product(CONDITIONS[1:], ("SVC C=1", "SVC")):
        gaps = []
        for name in DATASETS:
            own = cells.get((name, noise, rate, "SVC, filtered"), {})
            base = cells.get((name, noise, rate, rival), {})
            pairs = [own[seed] - base[seed] for seed in own if seed in base]
            if pairs:
                gaps.append(float(np.mean(pairs)))
        if gaps:
            above = sum(gap > 0 for gap in gaps)
            row = [f"{noise} {rate:g}", rival, f"{above} of {len(gaps)}"]
            lines.append([*row, f"{np.mean(gaps):+.3f}", f"{min(gaps):+.3f}"])
    return markdown_table(["noise", "against", "better on", "mean", "worst"], lines)


def finding_by_set(records: Sequence[Record]) -> str:
    """Average precision of each dataset over all noise of 10 and 20 %."""
    cells = collect(records, "average_precision")
    names = {"SVC, filtered": "label_issues", "SVC C=1": "SVC C=1", "SVC": "SVC, tuned"}
    rows = []
    for dataset in DATASETS:
        texts = []
        for method in names:
            values = [
                np.mean(list(cells[key].values()))
                for key in cells
                if key[0] == dataset and key[2] in (0.1, 0.2) and key[3] == method
            ]
            texts.append(f"{np.mean(values):.3f}" if values else "")
        rows.append([dataset, *texts])
    return markdown_table(["data", *names.values()], rows)


def report(records: Sequence[Record]) -> str:
    """The whole page."""
    counts = {method: set[int]() for method in METHODS}
    for (*_, method), by_seed in collect(records, "seconds").items():
        counts[method].add(len(by_seed))
    n_seeds = {
        method: " to ".join(map(str, sorted({min(found), max(found)})))
        for method, found in counts.items()
        if found
    }
    parts = ["# Wrong labels", *sorted({record["machine"] for record in records})]
    parts.append(
        f"{N_TRAIN} training rows; C in {CS}, alpha of trimmed weights in "
        f"{ALPHAS['trimmed']}, of basic ones in {ALPHAS['basic']}; see the script for the rest. "
        f"States of the source files: {len({record['sources'] for record in records})}. Seeds: "
        + ", ".join(f"{method} {count}" for method, count in n_seeds.items())
        + "."
    )
    parts += [
        "## Accuracy on clean labels against the tuned SVC",
        "Mean difference in points over the datasets; in brackets on how many of them it is "
        "better / worse by more than two standard errors.",
        differences(records),
        "## Finding flipped labels: label_issues against the deviations of classical SVMs",
        "Average precision, `label_issues(None, X, y)`.",
        finding(records),
        "The mean over noise of 10 and 20 %, symmetric and one-sided:",
        finding_by_set(records),
        "## Accuracy on clean labels, %",
        table_of(records, "accuracy", 100.0, ".1f"),
        "## Average precision of finding flipped labels",
        table_of(records, "average_precision", 1.0, ".2f"),
        "## Precision of what is ignored",
        table_of(records, "precision", 1.0, ".2f"),
        "## Recall of what is ignored",
        table_of(records, "recall", 1.0, ".2f"),
        "## Seconds of a case",
        table_of(records, "seconds", 1.0, ".2f"),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Robust weights and wrong labels.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT)
    add_result_options(parser, "label_noise")
    arguments = parse_result_options(parser)
    if not arguments.table:
        run(arguments)
    records = read_records(arguments.results)
    page = report(records)
    arguments.results.with_suffix(".md").write_text(page)
    print(page.split("## Accuracy on clean labels, %")[0])


if __name__ == "__main__":
    main()
