"""Figures of the documentation are those that their scripts draw."""

import importlib.util
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
RECORDS = FOLDER.parents[1] / "benchmarks" / "results"
DRAWN = {
    "explorer.png",
    "growth.png",
    "label_noise.png",
    "rank_weights.png",
    "rare_group.png",
    "rooms.svg",
    "sort_and_pool.png",
    "weight_families.png",
}

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="source distributions have no docs")


def find_stamps() -> dict[str, str]:
    """What the stamp of each figure says, where there is one."""
    image = pytest.importorskip("PIL.Image")
    stamps = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix == ".png":
            with image.open(path) as picture:
                stamps[path.name] = picture.info.get("Source", "")
        elif path.suffix == ".svg":
            found = re.search(r"<!-- Source: (.*) -->", path.read_text(encoding="utf-8"))
            stamps[path.name] = found[1] if found else ""
    return {name: text for name, text in stamps.items() if text}


def test_figures_are_as_new_as_their_scripts():
    spec = importlib.util.spec_from_file_location("stamp", FOLDER / "stamp.py")
    stamp = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stamp)
    stamps = find_stamps()
    assert set(stamps) >= DRAWN
    for name, text in stamps.items():
        script, _, *inputs = text.split()
        now = stamp.source(FOLDER / script, *(RECORDS / file for file in inputs))
        assert text == now, f"draw {name} again: python docs/figures/{script}"
