"""The report of a run: its structure, its look in a browser, its command."""

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from owasvm.cli import main
from owasvm.experiments import paper
from owasvm.experiments.known_points import KNOWN_POINTS
from owasvm.experiments.protocol import GRIDS
from owasvm.experiments.report import RunError, write_report
from owasvm.experiments.report.formats import FORMATS
from tests.chromium import Chromium, find_chromium
from tests.synthetic_run import SyntheticRun

pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

COMMAND = "owasvm reproduce --dataset wbc '<b>&\"quoted\"</b>'"
VOID = {"meta", "link", "img", "source", "br", "hr", "input"}
SMALL = GRIDS["coarse"].narrow(Cs=[0.5, 4.0], widths=[0.5, 2.0])


class Page(HTMLParser):
    """What the tests want to know about a page; refuses tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: dict[str, list[dict[str, str]]] = {}
        self.headings: list[int] = []
        self.tables: list[dict] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.attributes.setdefault(tag, []).append(attributes)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "table":
            self.tables.append({"caption": "", "rows": [], "in_head": False})
        elif tag == "thead":
            self.tables[-1]["in_head"] = True
        elif tag == "tr":
            self.tables[-1]["rows"].append((self.tables[-1]["in_head"], []))
        elif tag in ("th", "td"):
            self.tables[-1]["rows"][-1][1].append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"
        if tag == "thead":
            self.tables[-1]["in_head"] = False

    def handle_data(self, data):
        if "caption" in self.open:
            self.tables[-1]["caption"] += data
        if "style" not in self.open:
            self.text += data


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two datasets, all models, nested folds; one model is not complete."""
    run = SyntheticRun(tmp_path_factory.mktemp("runs") / "run", "coarse")
    run.fill(["wbc"], SMALL, nested=True).add_orders(["wbc"])
    run.fill(["ionosphere"], SMALL, models=paper.MODELS[:5])
    run.store.execute("UPDATE meta SET value = ? WHERE key = 'command'", (COMMAND,))
    run.store.execute("INSERT INTO meta VALUES ('datasets', ?)", (json.dumps(["wbc", "x"]),))
    return run.close()


@pytest.fixture(scope="module")
def page_path(run_folder: Path) -> Path:
    return write_report(run_folder)


@pytest.fixture(scope="module")
def page(page_path: Path) -> Page:
    return Page(page_path.read_text(encoding="utf-8"))


# -- files ----------------------------------------------------------------------------------------


def test_page_and_tables_are_where_they_should_be(run_folder, page_path):
    assert page_path == run_folder / "report" / "index.html"
    files = sorted(path.name for path in (run_folder / "report" / "tables").iterdir())
    slugs = {name.partition(".")[0] for name in files}
    assert {"order", "acc-paper-folds", "acc-same-folds", "auc-paper-folds", "times"} <= slugs
    assert files == sorted(f"{slug}.{ending}" for slug in slugs for ending in FORMATS.values())


def test_two_reports_of_a_store_are_equal(run_folder, page_path, tmp_path):
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    shutil.copy(run_folder / "cells.sqlite", copy)
    again = write_report(copy, tmp_path / "made" / "here")
    assert again == tmp_path / "made" / "here" / "index.html"
    first, second = page_path.parent, again.parent
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert names == sorted(
        path.relative_to(second) for path in second.rglob("*") if path.is_file()
    )
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_nothing_is_written_when_something_fails(run_folder, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no figures today")

    monkeypatch.setattr("owasvm.experiments.report.illustrations.make_galleries", fail)
    with pytest.raises(RuntimeError, match="no figures today"):
        write_report(run_folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -- structure ------------------------------------------------------------------------------------


def test_page_has_what_every_page_needs(page):
    assert page.attributes["html"] == [{"lang": "en"}]
    metas = {meta.get("name"): meta.get("content") for meta in page.attributes["meta"]}
    assert metas["viewport"].startswith("width=device-width")
    assert metas["color-scheme"] == "light dark"
    assert page.attributes["main"][0]["id"] == "content"
    first_link = page.attributes["a"][0]
    assert first_link["href"] == "#content"


def test_page_needs_no_network_and_no_script(page):
    assert "script" not in page.attributes
    for tag in ("img", "source", "link"):
        for attributes in page.attributes.get(tag, []):
            for name in ("src", "srcset", "href"):
                assert attributes.get(name, "data:").startswith("data:")
    outside = [a["href"] for a in page.attributes["a"] if "://" in a["href"]]
    assert outside == [f"https://doi.org/{paper.DOI}"]


def test_headings_are_in_order(page):
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    for before, after in zip(page.headings, page.headings[1:], strict=False):
        assert after <= before + 1


def test_links_and_labels_lead_somewhere(page, page_path):
    assert len(page.ids) == len(set(page.ids))
    for link in page.attributes["a"]:
        if link["href"].startswith("#"):
            assert link["href"][1:] in page.ids
        elif "://" not in link["href"]:
            assert (page_path.parent / link["href"]).is_file()
    for elements in page.attributes.values():
        for attributes in elements:
            for label in attributes.get("aria-labelledby", "").split():
                assert label in page.ids


def test_tables_are_accessible(page):
    assert len(page.tables) >= 14
    for table in page.tables:
        assert len(table["caption"].strip()) > 20
        heads = [cells for is_head, cells in table["rows"] if is_head]
        bodies = [cells for is_head, cells in table["rows"] if not is_head]
        assert heads
        assert bodies
        for tag, attributes in (cell for cells in heads for cell in cells):
            assert tag == "th"
            assert attributes["scope"] in ("col", "colgroup")
        for cells in bodies:
            assert cells[0][0] == "th"
            assert all(a["scope"] == "row" for tag, a in cells if tag == "th")


def test_tables_have_as_many_cells_as_headers(page):
    for table in page.tables:
        widths = set()
        hanging = 0
        for _, cells in table["rows"]:
            widths.add(hanging + sum(int(a.get("colspan", 1)) for _, a in cells))
            hanging = sum(1 for _, a in cells if a.get("rowspan") == "2")
        assert len(widths) == 1


def test_figures_have_words(page):
    images = page.attributes["img"]
    assert len(images) >= 4
    assert len(page.attributes["figcaption"]) == len(images) == len(page.attributes["figure"])
    for image in images:
        assert len(image["alt"]) > 80
        assert int(image["width"]) > 0
        assert int(image["height"]) > 0
    assert "Median times: l2-SVM 0.00" in images[0]["alt"]


def test_each_figure_has_a_rendition_for_dark_pages(page):
    sources = page.attributes["source"]
    assert len(sources) == len(page.attributes["img"])
    for source, image in zip(sources, page.attributes["img"], strict=True):
        assert source["media"] == "(prefers-color-scheme: dark)"
        assert source["srcset"] != image["src"]


# -- content --------------------------------------------------------------------------------------


def test_summary_says_what_was_run(page):
    assert "The coarse grid was run on 2 of the paper's 6 datasets with 6 of its 6 models" in (
        page.text
    )
    assert "A part of the grid." in page.text
    n_nested = 5 * 10 * (2 * 2 * 6 * 2 + 2 * 6 * 2 + 2 * 2 + 2)
    assert f"{n_nested:,} of them on inner folds" in page.text
    assert "Done of the incomplete grids: IONO l2-SVM 33 %, IONO app-OWA-SVM 33 %," in (
        page.text.replace("\N{SCRIPT SMALL L}", "l").replace("\N{NO-BREAK SPACE}", " ")
    )


def test_foreign_text_is_escaped(page, page_path):
    assert COMMAND in page.text
    assert "<b>" not in page_path.read_text(encoding="utf-8")
    assert "wbc, x" in page.text


def test_versions_are_shown(page):
    for name in ("scikit-learn", "numba", "1.17.1"):
        assert name in page.text


def test_missing_results_are_named(run_folder, page):
    assert "not run" in page.text
    table = (run_folder / "report" / "tables" / "nested-acc.csv").read_text(encoding="utf-8")
    header, ionosphere, wbc = (line.split(",") for line in table.splitlines())
    assert "not run" in ionosphere
    assert "not run" not in wbc
    assert len(header) == 19


def test_without_data_files_the_other_figures_remain(run_folder, tmp_path, monkeypatch):
    from owasvm.datasets import DatasetError

    def refuse(name, **_):
        raise DatasetError(f"no {name}")

    monkeypatch.setattr("owasvm.datasets.load", refuse)
    text = write_report(run_folder, tmp_path).read_text(encoding="utf-8")
    assert "Not drawn, because the data files are not here: Ionosphere, Wisconsin" in text
    assert len(Page(text).attributes["img"]) == 3


def test_smallest_run(tmp_path):
    """One model, one point, no orders, nothing nested: the report still says so."""
    run = SyntheticRun(tmp_path / "run", "paper").add_point([40] * 10)
    page = Page(write_report(run.close()).read_text(encoding="utf-8"))
    assert "The orders were not computed in this run." in page.text
    assert "No pair of models has all ten folds." in page.text
    assert "No kernel model has all ten shuffled folds." in page.text
    # One size makes no figure of times against sizes.
    assert "Time against size" not in page.text


def test_a_run_without_a_complete_point(tmp_path):
    run = SyntheticRun(tmp_path / "run").add_point([40] * 3)
    page = Page(write_report(run.close()).read_text(encoding="utf-8"))
    assert "12 values of accuracy and AUC for WBC; this grid can show 0 of them." in page.text


def test_a_run_that_shows_all_printed_values(tmp_path):
    """Printed values at their known points; the exact linear model is better than printed."""
    run = SyntheticRun(tmp_path / "run", "coarse")
    for model in paper.MODELS:
        assert KNOWN_POINTS["acc", "wbc", model] == KNOWN_POINTS["auc", "wbc", model]
        correct = round(100 * paper.ACC["wbc"][model]) + 36 * (model == "ex-OWA-SVM")
        run.add_point(
            [correct] * 10,
            model=model,
            folds=paper.paper_folds(model),
            n_test=10_000,
            balanced_accuracy=paper.AUC["wbc"][model] / 100,
            **KNOWN_POINTS["acc", "wbc", model]._asdict(),
        )
    page = Page(write_report(run.close()).read_text(encoding="utf-8"))
    assert (
        "this grid can show all of them, and 12 come out: 11 to the last digit, 1 of" in page.text
    )
    assert "No accuracy or AUC differs that this grid can show." in page.text
    assert "†" not in page.text
    assert "°" not in page.text


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium found")
    with Chromium(executable) as chromium:
        yield chromium


OVERFLOWING = """
[...document.querySelectorAll("body *")].filter(element => {
  if (element.closest(".skip")) return false;
  for (let parent = element.parentElement; parent; parent = parent.parentElement)
    if (getComputedStyle(parent).overflowX === "auto") return false;
  const box = element.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  return box.width > 0 && (box.right > width + 0.5 || box.left < -0.5);
}).map(element => element.outerHTML.slice(0, 80))
"""

TROUBLE = """\
<img src="gone.png" alt="" style="min-width: 0; width: 9px"><script>null.x</script>
<p style="width: 500px">wide</p>
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_browser_has_nothing_to_complain_about(browser, page_path, width, scheme):
    browser.open(page_path, width, scheme=scheme)
    assert browser.problems == []
    loaded = [url for url in browser.requests if not url.startswith("data:")]
    assert loaded == [page_path.resolve().as_uri()]
    broken = "[...document.images].filter(i => !i.complete || i.naturalWidth === 0).length"
    assert browser.evaluate(broken) == 0


def test_the_browser_would_complain(browser, page_path, tmp_path):
    """These tests can fail: an error, a missing image and a wide paragraph are seen."""
    text = page_path.read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    broken = tmp_path / "broken.html"
    broken.write_text(
        text.replace("</main>", f"{TROUBLE}</main>"),
        encoding="utf-8",
    )
    browser.open(broken, 390)
    assert any("null" in problem for problem in browser.problems)
    assert any("gone.png" in url for url in browser.requests)
    assert browser.evaluate(OVERFLOWING) == ['<p style="width: 500px">wide</p>']


@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_nothing_is_wider_than_the_window(browser, page_path, width):
    browser.open(page_path, width)
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(OVERFLOWING) == []
    boxes = "[...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > b.clientWidth)"
    n_scrolling = browser.evaluate(f"{boxes}.length")
    # On a phone wide tables and figures scroll inside their own boxes; a desk has room for all.
    assert (n_scrolling > 5) == (width < 800)
    assert (n_scrolling == 0) == (width >= 1280)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible(browser, page_path, scheme):
    """Every colour of text has a contrast of at least 4.5 against what is behind it."""
    browser.open(page_path, 390, scheme=scheme)
    pairs = browser.evaluate(
        """[...new Set([...document.querySelectorAll("body, body *")].map(element => {
          let behind = element;
          const see = e => getComputedStyle(e).backgroundColor;
          while (behind && see(behind) === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
          return getComputedStyle(element).color + "|" + (behind ? see(behind) : "none");
        }))]"""
    )
    assert len(pairs) > 4
    for pair in pairs:
        colors = [
            [int(part) for part in re.findall(r"\d+", color)[:3]] for color in pair.split("|")
        ]
        darker, lighter = sorted(map(luminance, colors))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, pair
    behind = luminance([int(part) for part in re.findall(r"\d+", pairs[0].split("|")[1])])
    assert (behind < 0.1) == (scheme == "dark")


def luminance(color: list[int]) -> float:
    """Relative luminance of WCAG."""
    channels = [value / 255 for value in color]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# -- the command ----------------------------------------------------------------------------------


def test_command_writes_the_report_and_says_where(tmp_path, capsys):
    run = SyntheticRun(tmp_path / "run").add_point([40] * 10).close()
    assert main(["report", str(run), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert printed.out.strip() == str(tmp_path / "out" / "index.html")
    assert printed.err == ""
    assert (tmp_path / "out" / "index.html").is_file()


def _no_folder(tmp_path):
    return tmp_path / "nowhere"


def _no_store(tmp_path):
    return tmp_path


def _empty_store(tmp_path):
    return SyntheticRun(tmp_path / "run").close()


def _damaged_store(tmp_path):
    (tmp_path / "cells.sqlite").write_bytes(b"SQLite format 3\0" + b"rubbish" * 400)
    return tmp_path


def _a_file(tmp_path):
    (tmp_path / "file").write_text("text")
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (_no_folder, "is not a folder"),
        (_a_file, "is not a folder"),
        (_no_store, "has no cells.sqlite"),
        (_empty_store, "holds no finished cell"),
        (_damaged_store, "is not the store of a run"),
    ],
)
def test_bad_input_gives_one_line_and_status_2(tmp_path, capsys, prepare, message):
    folder = prepare(tmp_path)
    assert main(["report", str(folder), "--output", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("owasvm: error: ")
    assert message in line
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_a_folder(tmp_path, capsys):
    run = SyntheticRun(tmp_path / "run").add_point([40] * 10).close()
    target = _a_file(tmp_path)
    assert main(["report", str(run), "--output", str(target)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot write the report" in line


def test_errors_of_the_library_are_run_errors(tmp_path):
    with pytest.raises(RunError, match="is not a folder"):
        write_report(tmp_path / "nowhere")


def test_slopes_need_three_sizes(tmp_path):
    from owasvm.experiments.figures import time_laws, time_table
    from owasvm.experiments.tables import load_cells

    run = SyntheticRun(tmp_path / "run")
    for dataset in ("ionosphere", "wbc", "german"):
        seconds = 1e-6 * paper.DATASETS[dataset].n_samples ** 2
        run.add_point([40] * 10, dataset=dataset, fit_time=seconds)
        if dataset != "german":
            run.add_point([40] * 10, dataset=dataset, **{"model": "l2-SVM_K", "width": 1.0})
    laws = time_laws(time_table(load_cells(run.close())))
    assert set(laws) == {"l2-SVM"}
    assert laws["l2-SVM"].exponent == pytest.approx(2.0)
