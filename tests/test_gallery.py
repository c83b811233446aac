"""Every example of the gallery runs, and the tutorial's notebook does what its page does."""

import contextlib
import io
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
TUTORIAL = EXAMPLES / "tutorial" / "plot_tutorial.py"
SCRIPTS = sorted(set(EXAMPLES.glob("**/plot_*.py")) - {TUTORIAL})

pytestmark = pytest.mark.skipif(not SCRIPTS, reason="source distributions have no examples")


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draw without a display; leave no figure behind."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="the examples draw")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield plt
    plt.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs_and_draws(script: Path, pyplot: Any) -> None:
    if script.stem == "plot_onnx":
        pytest.importorskip("pandas", reason="the example has a data frame")
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(script))
    assert pyplot.get_fignums()
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()


def _notebook_cells(folder: Path) -> list[str]:
    """Code of the notebook that the page offers for download."""
    notebook = pytest.importorskip("sphinx_gallery.notebook", reason="it makes the notebook")
    copy = folder / TUTORIAL.name
    copy.write_bytes(TUTORIAL.read_bytes())
    notebook.python_to_jupyter_cli([str(copy)])
    cells = json.loads(copy.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.usefixtures("pyplot")
def test_notebook_of_the_tutorial_runs(tmp_path: Path) -> None:
    for package in ("pandas", "skops", "skl2onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"the tutorial needs {package}")
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in _notebook_cells(tmp_path):
            exec(cell, names)
    assert "optimal: 95.90" in printed.getvalue()
    assert "prediction,probability benign" in printed.getvalue()
    assert names["found"].best_params_["C"] == 0.5
    assert names["difference"] <= 1e-9
