"""The command ``owasvm`` as a whole, and ``owasvm solvers``."""

import pytest

import owasvm
from owasvm.cli import COMMANDS, main
from owasvm.models import available


def test_solvers_lists_every_backend(capsys):
    assert main(["solvers"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0].split()[:3] == ["back-end", "kind", "installed"]
    assert [line.split()[0] for line in lines[1:]] == [row.name for row in available()]


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["solvers", "extra"]])
def test_bad_usage_ends_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("owasvm: error: ") and err.count("\n") == 1


def test_help(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert set(COMMANDS) <= set(listed)


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"owasvm {owasvm.__version__}\n"


def test_solvers_says_that_cvxpy_is_missing(monkeypatch, capsys):
    monkeypatch.setattr("owasvm.cli.solvers.find_spec", lambda _: None)
    assert main(["solvers"]) == 0
    assert "cvxpy, which is not installed: pip install" in capsys.readouterr().err
