"""Private names stay inside their package.

``_name``, be it a module, a function or an attribute, may be used by the modules of the package
that contains it, by those of its subpackages, and by nobody else. Clients of the library use
public names only: to them even what is private to the whole package is closed.

    python tools/check_private_names.py owasvm

Writes one line per violation; the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CLIENTS = ("owasvm.cli", "owasvm.experiments")


class Violation(NamedTuple):
    """A private name and where it is used."""

    path: Path
    line: int
    name: str
    owner: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name} is private to {self.owner}"


def find_violations(folder: Path, clients: tuple[str, ...] = CLIENTS) -> list[Violation]:
    """Private names that are used outside of their package.

    Parameters
    ----------
    folder : Path
        The package, in its folder.
    clients : tuple of str, default=CLIENTS
        Packages inside it that use public names only.

    Returns
    -------
    violations : list of Violation
    """
    paths = {_module_name(folder, path): path for path in sorted(folder.rglob("*.py"))}
    packages = {name for name, path in paths.items() if path.name == "__init__.py"}
    found = []
    for module, path in paths.items():
        client = next((one for one in clients if _is_inside(module, one)), None)
        for line, name in _used_names(ast.parse(path.read_text(encoding="utf-8")), folder.name):
            owner = _owner(name, packages)
            if owner is not None and not _may_use(module, owner, client):
                found.append(Violation(path, line, name, owner))
    return found


def _may_use(module: str, owner: str, client: str | None) -> bool:
    if client is not None and not _is_inside(owner, client):
        return False
    return _is_inside(module, owner)


def _module_name(folder: Path, path: Path) -> str:
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_inside(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def _owner(name: str, packages: set[str]) -> str | None:
    """The innermost package around the first private part of a name; None if all is public."""
    parts = name.split(".")
    for position, part in enumerate(parts):
        if part.startswith("_") and not part.endswith("__"):
            around = (".".join(parts[:end]) for end in range(position, 0, -1))
            return next(package for package in around if package in packages)
    return None


def _used_names(tree: ast.Module, root: str) -> Iterator[tuple[int, str]]:
    """Full names of what a module imports from the package or reaches through its imports."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_inside(alias.name, root):
                    known[alias.asname or root] = alias.name if alias.asname else root
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and _is_inside(node.module or "", root):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                known[alias.asname or alias.name] = full
                yield node.lineno, full
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = _full_name(node, known)
            if name is not None and node.attr.startswith("_"):
                yield node.lineno, name


def _full_name(node: ast.expr, known: dict[str, str]) -> str | None:
    """``a.b.c`` with what the import of a stands for; None for what is no name of an import."""
    if isinstance(node, ast.Attribute):
        base = _full_name(node.value, known)
        return None if base is None else f"{base}.{node.attr}"
    return known.get(node.id) if isinstance(node, ast.Name) else None


def main() -> int:
    """Check the package named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    violations = find_violations(parser.parse_args().folder)
    for violation in violations:
        sys.stdout.write(f"{violation}\n")
    return 1 if violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
