"""The ``owasvm`` command.

Each subcommand is a module of this package with ``HELP`` (one line), ``configure(parser)`` and
``run(arguments)``. A module is imported when its command is asked for, or for the list of
commands; what is heavy is imported inside ``run``.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import owasvm
from owasvm.cli._errors import UsageError, complain, listing, one_line, show_warning
from owasvm.datasets import DatasetError
from owasvm.extras import MissingExtraError
from owasvm.persistence import ModelFileError

__all__ = ["COMMANDS", "main"]

#: The subcommands, in the order of the help text.
COMMANDS: tuple[str, ...] = (
    "fit",
    "evaluate",
    "predict",
    "inspect",
    "export",
    "datasets",
    "reproduce",
    "report",
    "solvers",
    "warmup",
)

_DESCRIPTION = "Support vector machines with an ordered weighted average of deviations."
_EPILOG = """\
'owasvm COMMAND --help' is the manual of a command.

Exit status: 0 on success; 2 on bad usage or bad input, with one line on
standard error; 130 after Ctrl-C.
"""
_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, those of a command with its own help."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            name = next((text for text in unknown if text.startswith("-")), None)
            if name is None:
                self.error(f"there is no use for {listing(unknown)}")
            name = name.partition("=")[0]
            near = get_close_matches(name, self._option_string_actions, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.error(f"there is no option {name}{hint}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        complain(f"{one_line(message)} (see '{self.prog} --help')")
        raise SystemExit(2)


def _module(command: str) -> ModuleType:
    return import_module(f"owasvm.cli.{command}")


def _parser(commands: Sequence[str]) -> argparse.ArgumentParser:
    """A parser that knows the given commands."""
    parser = _Parser(
        prog="owasvm",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"owasvm {owasvm.__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in commands:
        module = _module(command)
        subparser = subparsers.add_parser(
            command,
            help=module.HELP,
            description=module.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.configure(subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str or None, default=None
        Arguments, those of the process by default.

    Returns
    -------
    status : int
        0 on success, 2 on bad input with one line on standard error, 130 after Ctrl-C. Arguments
        that cannot be parsed end the process with 2 and one line on standard error.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("owasvm: interrupted\n")
        return _INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except (UsageError, DatasetError, ModelFileError, MissingExtraError, OSError) as error:
        complain(error)
        return 2
    except MemoryError as error:
        complain(f"not enough memory. {error}")
        return 2
    return status


def _run(given: list[str]) -> int:
    is_command = bool(given) and given[0] in COMMANDS
    arguments = _parser(given[:1] if is_command else COMMANDS).parse_args(given)
    return int(_module(arguments.command).run(arguments))


def _reader_left() -> int:
    """End quietly when the reader of our output has seen enough, as in ``owasvm ... | head``."""
    # Python would write what is left once more at its end, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
