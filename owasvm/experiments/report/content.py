"""All tables of the report."""

from __future__ import annotations

from owasvm.experiments.report import beyond, beyond_tables, comparison, paper_tables
from owasvm.experiments.report.run import Run
from owasvm.experiments.report.table import Table

__all__ = ["make_tables"]


def make_tables(run: Run) -> dict[str, Table]:
    """Make all tables of the report, by slug."""
    made = [paper_tables.order_table(run)]
    made += [
        paper_tables.metric_table(run, metric, protocol)
        for metric in comparison.METRICS
        for protocol in comparison.PROTOCOLS
    ]
    made += [
        paper_tables.times_table(run),
        paper_tables.differences_table(run),
        paper_tables.parameters_table(run),
    ]
    made += [beyond_tables.general_table(run), beyond_tables.gaps_table(run)]
    scores = {
        metric: (
            beyond.best_fold_scores(run.cells, run.points, metric),
            beyond.nested_fold_scores(run.cells, run.inner, metric),
        )
        for metric in comparison.METRICS
    }
    made += [
        beyond_tables.nested_table(run, metric, nested) for metric, (_, nested) in scores.items()
    ]
    made += [beyond_tables.paired_table(metric, both) for metric, both in scores.items()]
    made += [beyond_tables.progress_table(run), beyond_tables.versions_table(run)]
    return {table.slug: table for table in made}
