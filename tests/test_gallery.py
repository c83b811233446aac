"""The tutorial's notebook does what its page does.

The other examples run when the documentation is built; test_site.py looks at what came out.
"""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

TUTORIAL = Path(__file__).parents[1] / "examples" / "tutorial" / "plot_tutorial.py"

pytestmark = pytest.mark.skipif(
    not TUTORIAL.exists(), reason="source distributions have no examples"
)


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draw without a display; leave no figure behind."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="the examples draw")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield plt
    plt.close("all")


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
