"""Pages whose code runs from top to bottom print what they say."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# Code, and what it prints where the page shows it.
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", re.DOTALL)


# Pages, and packages of an extra that their code needs.
PAGES = {
    "README.md": [],
    "docs/index.md": [],
    "docs/user-guide.md": [],
    "docs/robust.md": [],
    "docs/onnx.md": ["skl2onnx", "onnxruntime"],
}


@pytest.mark.parametrize("page", PAGES)
def test_code_prints_what_the_page_says(page: str) -> None:
    if not (ROOT / page).exists():
        pytest.skip("source distributions have no docs")
    for package in PAGES[page]:
        pytest.importorskip(package, reason=f"the code of {page} needs {package}")
    names: dict[str, Any] = {}
    for code, expected in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if 'device="cuda"' in code:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if expected:
            assert printed.getvalue() == expected, code
