"""The parts of tools/check_dist.py that need neither a network nor minutes."""

import runpy
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "check_dist.py"))


def write_wheel(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_oldest_dependencies_are_pinned(tmp_path):
    metadata = "Name: owasvm\nRequires-Dist: numpy>=1.24\nRequires-Dist: scikit-learn>=1.6\n"
    metadata += 'Requires-Dist: matplotlib; extra == "plot"\n'
    wheel = write_wheel(tmp_path / "x.whl", {"owasvm-1.dist-info/METADATA": metadata})
    assert TOOL["oldest_dependencies"](wheel) == ["numpy==1.24", "scikit-learn==1.6"]


def test_files_that_a_wheel_lacks_are_named(tmp_path):
    wheel = write_wheel(tmp_path / "x.whl", {"owasvm/__init__.py": "", "owasvm/odd.txt": ""})
    with pytest.raises(TOOL["Failure"], match=r"owasvm/py\.typed.*too many \['owasvm/odd.txt'\]"):
        TOOL["check_wheel"](wheel)


def test_interpreters_that_are_not_there_are_skipped(tmp_path, capsys):
    absent = TOOL["Environment"]("python3.99", oldest=True)
    check = TOOL["check_installed"]
    assert TOOL["report"](absent.name, lambda: check(absent, tmp_path, tmp_path))
    expected = "python3.99, oldest dependencies: skipped: no python3.99\n"
    assert capsys.readouterr().out == expected


def test_messages_are_not_output_but_tell_of_failures():
    script = "import sys; print('said'); print('noted', file=sys.stderr); sys.exit({})"
    assert TOOL["run"](sys.executable, "-c", script.format(0)) == "said\n"
    with pytest.raises(TOOL["Failure"], match="said\nnoted"):
        TOOL["run"](sys.executable, "-c", script.format(1))


def test_failures_are_told(capsys):
    def fail():
        raise TOOL["Failure"]("reason")

    assert not TOOL["report"]("check", fail)
    assert capsys.readouterr().out == "check: FAILED: reason\n"


def test_the_readme_has_an_example():
    if not (ROOT / "README.md").exists():
        pytest.skip("no README")
    assert TOOL["EXAMPLE"].search((ROOT / "README.md").read_text(encoding="utf-8"))
