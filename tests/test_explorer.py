"""The explorer: its solutions are current and right, and the page does what it says."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from owasvm import OWASVC
from owasvm.weights import is_convex
from tests.chromium import Chromium, find_chromium

WHY = "source distributions have no docs"
build = pytest.importorskip("docs.explorer.build", reason=WHY)
solve = pytest.importorskip("docs.explorer.solve", reason=WHY)
datasets = pytest.importorskip("docs.explorer.datasets", reason=WHY)
sphinx_page = pytest.importorskip("docs.explorer.sphinx_page", reason=WHY)

DATASETS = {dataset.key: dataset for dataset in (make() for make in datasets.MAKERS)}
SMALL = solve.Grid(
    families=(
        solve.Family("uniform", "Uniform", (1.0,)),
        solve.Family("superquantile", "Superquantile", (0.2, 0.4)),
        solve.Family("trimmed", "Trimmed", (0.04, 0.1)),
    ),
    Cs=(0.1, 1.0),
)


def find_fits(contents) -> list[tuple[str, str, float, float]]:
    """Kernel, family, alpha and C of every fit of a file."""
    header = contents.header
    return [
        (kernel, family["key"], alpha, C)
        for kernel in header["kernels"]
        for family in header["families"]
        for alpha in family["alphas"]
        for C in header["Cs"]
    ]


# -- solutions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", build.ORDER)
def test_solutions_belong_to_the_grid_of_today(key):
    header = solve.unpack((solve.FOLDER / f"{key}.bin").read_bytes()).header
    expected = json.loads(json.dumps(solve.describe(DATASETS[key], solve.Grid())))
    del header["statuses"]
    changed = [name for name in expected if header.get(name) != expected[name]]
    # Weights may differ in the last digit between machines.
    for stored, computed in zip(header["families"], expected["families"], strict=True):
        np.testing.assert_allclose(stored.pop("weights"), computed.pop("weights"), atol=1e-12)
    np.testing.assert_allclose(header.pop("X"), expected.pop("X"), atol=2e-6)
    assert header == expected, f"{changed}: run python -m docs.explorer.solve {key}"


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize("key", build.ORDER)
def test_solutions_are_those_of_a_fit(key):
    contents = solve.unpack((solve.FOLDER / f"{key}.bin").read_bytes())
    header, dataset = contents.header, DATASETS[key]
    assert np.all(contents.figures[:, 2] <= contents.figures[:, 1] * (1 + 1e-12))
    fits = find_fits(contents)
    convex = [row for row, fit in enumerate(fits) if fit[1] in ("basic", "superquantile")]
    rng = np.random.default_rng(0)
    for row in rng.choice(convex, 8, replace=False):
        kernel, family, alpha, C = fits[row]
        model = OWASVC(
            C, weights=family, alpha=alpha, kernel=kernel, gamma=dataset.gamma, tol=1e-9
        ).fit(header["X"], header["y"])
        assert contents.figures[row, 1] == pytest.approx(model.objective_, rel=1e-7)
        assert header["statuses"][int(contents.figures[row, 3])] == "optimal"


def test_proofs_of_falling_weights_are_kept():
    contents = solve.unpack((solve.FOLDER / "labels.bin").read_bytes())
    row = find_fits(contents).index(("linear", "trimmed", 0.1, 1.0))
    _, objective, bound, status = contents.figures[row]
    assert contents.header["statuses"][int(status)] == "optimal"
    assert objective - bound <= 1e-4 * max(1.0, objective)
    dataset = datasets.make_wrong_labels()
    model = OWASVC(1.0, weights="trimmed", alpha=0.1, kernel="linear").fit(dataset.X, dataset.y)
    assert set(model.outliers_) == set(dataset.marked)


def test_page_of_the_documentation_counts_right():
    proven, all_fits = Counter(), Counter()
    for packed in build.read_solutions():
        contents = solve.unpack(packed)
        statuses = contents.header["statuses"]
        weights = {
            (family["key"], alpha): row
            for family in contents.header["families"]
            for alpha, row in zip(family["alphas"], family["weights"], strict=True)
        }
        for fit, figures in zip(find_fits(contents), contents.figures, strict=True):
            kind = "convex" if is_convex(weights[fit[1:3]]) else fit[1]
            all_fits[kind] += 1
            proven[kind] += statuses[int(figures[3])] == "optimal"
    text = (Path(build.__file__).parents[1] / "explorer.md").read_text(encoding="utf-8")
    assert proven["convex"] == all_fits["convex"]
    assert f"{sum(all_fits.values()):,} fits" in text
    assert f"all {all_fits['convex']:,} such fits" in text
    for kind in ("trimmed", "quadratic", "max-entropy"):
        assert f"{proven[kind]} of {all_fits[kind]} {kind}" in text


def test_unknown_dataset_is_named(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["solve", "mars"])
    with pytest.raises(SystemExit):
        solve.main()
    assert "no dataset mars: there are group" in capsys.readouterr().err


# -- the page -------------------------------------------------------------------------------------


def test_page_is_one_small_file(tmp_path):
    class App:
        outdir = tmp_path

        class builder:
            format = "html"

    sphinx_page.write_page(App, None)
    page = tmp_path / "_static" / sphinx_page.NAME
    assert page.stat().st_size <= 8e6
    text = page.read_text(encoding="utf-8")
    code = re.sub(r"<script type=.*?</script>", "", text, flags=re.DOTALL)
    assert "://" not in code
    assert not re.findall(r"<(?:img|link|iframe)[^>]*(?:src|href)=\"(?!data:)", code)


@pytest.fixture(scope="module")
def page_path(tmp_path_factory):
    files = [
        solve.pack(dataset, SMALL, list(solve.solve_all(dataset, SMALL)))
        for dataset in (datasets.make_small_group(), datasets.make_wrong_labels())
    ]
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(build.assemble(files), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium():
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium on the path")
    with Chromium(executable) as browser:
        yield browser


STILL = """new Promise(done => {
  const look = () => window.explorer?.isStill() ? done(true) : setTimeout(look, 20);
  setTimeout(look, 20);
})"""
# All numbers that a reader sees, and both pictures.
WORDS = (
    "['notice', 'tiles', 'status', 'bound', 'objective', 'gap', 'parts', 'meaning']"
    ".map(id => document.getElementById(id).textContent).join('|')"
)
PICTURES = "['plane', 'bars'].map(id => document.getElementById(id).toDataURL())"


@pytest.fixture
def page(chromium, page_path):
    chromium.open(page_path)
    chromium.evaluate(STILL)
    yield chromium
    assert chromium.problems == []
    assert [
        url for url in chromium.requests if not url.startswith(("file:", "data:", "blob:"))
    ] == []
    assert sum(url.startswith("file:") for url in chromium.requests) <= 1


def look(page):
    page.evaluate(STILL)
    return page.evaluate(WORDS), *page.evaluate(PICTURES)


def set_slider(page, name, value):
    page.evaluate(
        f"(() => {{ const slider = document.getElementById('{name}'); slider.value = {value};"
        " slider.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def click(page, selector):
    page.evaluate(f"document.querySelector('{selector}').click()")


def press(page, key):
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def test_first_picture_comes_by_itself(page):
    assert page.evaluate("performance.getEntriesByName('first-picture').length") == 1
    words, plane, bars = look(page)
    assert "Proven optimal" in words
    assert len(plane) > 5000
    assert len(bars) > 1000


def test_objective_is_what_coefficients_give(page):
    for key in ("group", "labels"):
        assert page.evaluate(f"explorer.compareObjectives('{key}')") < 1e-6


def test_stored_objectives_are_what_coefficients_give(chromium, tmp_path):
    path = tmp_path / "explorer.html"
    path.write_text(build.assemble(build.read_solutions()), encoding="utf-8")
    chromium.open(path)
    chromium.evaluate(STILL)
    # Coefficients of the Gaussian kernel have 24 bits.
    for key in build.ORDER:
        assert chromium.evaluate(f"explorer.compareObjectives('{key}')") < 5e-5
    assert chromium.problems == []


@pytest.mark.parametrize(
    "control",
    ["alpha", "C", 'input[value="trimmed"]', 'input[value="rbf"]', 'input[value="labels"]'],
)
def test_every_control_changes_pictures_and_numbers(page, control):
    before = look(page)
    if control in ("alpha", "C"):
        set_slider(page, control, "slider.value === '0' ? 1 : 0")
    else:
        click(page, control)
    after = look(page)
    assert all(new != old for new, old in zip(after, before, strict=True))


def test_classical_svm_can_be_left_out(page):
    before = look(page)
    click(page, "#ghost")
    after = look(page)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_keys_move_sliders(page):
    before = look(page)
    page.evaluate("document.getElementById('alpha').focus()")
    press(page, "ArrowRight")
    after = look(page)
    assert all(new != old for new, old in zip(after, before, strict=True))
    assert page.evaluate("explorer.state.alpha") == 0.4


def test_points_tell_their_rank(page):
    silent = look(page)
    set_slider(page, "rank", 50)
    text = page.evaluate("document.getElementById('point').textContent")
    assert re.match(
        r"Rank 50 of 50, (blue|orange), .*: deviation \d\.\d+, weight 5\.00; pays", text
    )
    assert page.evaluate("document.getElementById('rank').getAttribute('aria-valuetext')") == text
    assert look(page)[1:] != silent[1:]
    x, y = page.evaluate(
        "(() => { const box = document.getElementById('plane').getBoundingClientRect();"
        " const [x, y] = explorer.point(3); return [x + box.left, y + box.top]; })()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert page.evaluate("explorer.selected()") == 3


def test_address_keeps_the_view(page):
    click(page, 'input[value="labels"]')
    click(page, 'input[value="trimmed"]')
    set_slider(page, "C", 1)
    page.evaluate(STILL)
    hash_ = page.evaluate("location.hash")
    assert hash_ == "#data=labels&weights=trimmed&alpha=0.1&C=1&kernel=linear"
    words = look(page)[0]
    assert "5 of 5 wrong labels are among the 5 ignored points" in words
    page.evaluate("location.hash = '#data=group&weights=uniform&alpha=1&C=0.1&kernel=rbf'")
    page.evaluate("new Promise(done => setTimeout(done, 100))")
    assert look(page)[0] != words
    assert page.evaluate("document.querySelector('input[value=uniform]').checked")
    assert page.evaluate("document.getElementById('alpha').disabled")


def test_numbers_are_said_in_words(page):
    set_slider(page, "C", 1)
    page.evaluate("new Promise(done => setTimeout(done, 500))")
    summary = page.evaluate("document.getElementById('summary').textContent")
    assert "Superquantile weights, alpha 0.2, C 1, linear kernel" in summary
    assert "Objective" in summary
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input')].filter("
        "input => !input.labels.length && !input.getAttribute('aria-label')).length"
    )
    assert unnamed == 0


@pytest.mark.parametrize("width", [390, 900, 1280])
def test_nothing_is_cut(chromium, page_path, width):
    chromium.open(page_path, width=width)
    chromium.evaluate(STILL)
    assert chromium.evaluate("document.documentElement.scrollWidth") == width
    assert chromium.problems == []


def test_dark_follows_the_reader_and_the_page_around(chromium, page_path):
    paint = "getComputedStyle(document.body).backgroundColor"
    chromium.open(page_path, scheme="dark")
    chromium.evaluate(STILL)
    dark = chromium.evaluate(paint)
    picture = look(chromium)[1]
    chromium.evaluate("window.postMessage({owasvmTheme: 'light'}, '*')")
    chromium.evaluate("new Promise(done => setTimeout(done, 100))")
    assert chromium.evaluate(paint) == "rgb(255, 255, 255)" != dark
    assert look(chromium)[1] != picture


def test_documentation_embeds_the_page(chromium, page_path, tmp_path):
    source = Path(build.__file__).parents[1] / "explorer.md"
    (raw,) = re.findall(r"```{raw} html\n(.*?)```", source.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / sphinx_page.NAME).write_bytes(page_path.read_bytes())
    around = tmp_path / "around.html"
    around.write_text(f'<!doctype html><html lang="en" data-theme="dark"><body>{raw}')
    chromium.open(around)
    height = chromium.evaluate(
        "new Promise(done => { const frame = document.querySelector('iframe');"
        " const look = () => frame.style.height ? done(frame.style.height) : setTimeout(look, 20);"
        " look(); })"
    )
    assert 700 < float(height.removesuffix("px")) < 1300
    assert chromium.evaluate("location.hash").startswith("#data=group&weights=superquantile")
    (frame,) = chromium.call("Page.getFrameTree")["frameTree"]["childFrames"]
    assert frame["frame"]["url"].endswith(sphinx_page.NAME)
    assert chromium.problems == []


def test_old_browsers_are_told(chromium, page_path, tmp_path):
    text = page_path.read_text(encoding="utf-8")
    old = tmp_path / "old.html"
    old.write_text(text.replace("<script>", "<script>delete window.DecompressionStream;", 1))
    chromium.open(old)
    assert "cannot unpack" in chromium.evaluate("document.getElementById('problem').textContent")
    assert chromium.problems == []
