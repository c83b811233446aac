"""Running the command in the tests, and what must hold when it succeeds or refuses."""

from __future__ import annotations

from pathlib import Path

from owasvm.cli import main


def run(capsys, *arguments):
    """Run a command that succeeds; its output."""
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert status == 0, err
    return out, err


def refused(capsys, *arguments, with_notes=False):
    """Run a command that is refused; its last line, after checking that nothing was written.

    It is the only one, but for notes where they are expected.
    """
    before = snapshot()
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        status = exit_.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert err.endswith("\n")
    *notes, line = err.splitlines()
    assert line.startswith("owasvm: error: ")
    assert not notes or with_notes
    assert all(note.startswith("owasvm: note: ") for note in notes)
    assert snapshot() == before
    return line


def snapshot():
    """The files of this folder and of those below it."""
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
