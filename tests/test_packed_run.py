"""A packed run tells what the whole run tells."""

import importlib.util
import lzma
from pathlib import Path

import pytest

from owasvm.experiments.protocol import GRIDS
from owasvm.experiments.report.content import make_tables
from owasvm.experiments.report.formats import render_table
from owasvm.experiments.report.run import load_run
from tests.synthetic_run import SyntheticRun

pytest.importorskip("pandas")
SCRIPT = Path(__file__).parents[1] / "docs" / "results" / "packed_run.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="source distributions have no docs")
def test_tables_of_a_packed_run_are_those_of_the_run(tmp_path):
    spec = importlib.util.spec_from_file_location("packed_run", SCRIPT)
    packed_run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packed_run)
    grid = GRIDS["coarse"].narrow(Cs=[0.5, 4.0], widths=[0.5, 2.0])
    run = SyntheticRun(tmp_path / "run", "coarse").fill(["wbc", "ionosphere"], grid, nested=True)
    folder = run.add_orders(["wbc"]).close()
    packed_run.pack(folder, tmp_path / "run.sqlite.xz")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    (unpacked / "cells.sqlite").write_bytes(
        lzma.decompress((tmp_path / "run.sqlite.xz").read_bytes())
    )
    before, after = load_run(folder), load_run(unpacked)
    assert after.n_fits == before.n_fits
    assert len(after.inner) < len(before.inner)
    tables = [make_tables(run) for run in (before, after)]
    # Gaps and times are rounded.
    for slug in set(tables[0]) - {"times", "gaps", "general-weights"}:
        texts = [render_table(each[slug], "csv") for each in tables]
        assert texts[0] == texts[1], slug
