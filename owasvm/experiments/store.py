"""Results on disk: an SQLite database that processes share and that survives being killed.

Its tables are those of :mod:`owasvm.experiments.schema`.

A cell, the state behind it and the start of the next cell are one transaction. The log goes to the
operating system with every transaction, so nothing is lost when processes are killed.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.experiments.schema import COLUMNS, FILE_NAME, HISTORY, KEY, REALS, SCHEMA, Cell
from owasvm.extras import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "FILE_NAME", "HISTORY", "KEY", "Cell", "Store", "TakenOverError"]

# Seconds to wait for another process that is writing.
_PATIENCE = 120.0


class TakenOverError(RuntimeError):
    """Another run has taken over the store; this one must not write any more."""


class Store:
    """The results of a run.

    Parameters
    ----------
    path : path-like
        The database, or the folder of a run that holds it as :data:`FILE_NAME`; created if
        missing.
    session : str or None, default=None
        What :meth:`claim` returned, for the methods that work on chains.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from owasvm.experiments.store import Store
    >>> key = ("wbc", "shuffled", "l2-SVM", 0.0, 1.0, "", 0.0, 0)
    >>> row = dict(zip(KEY, key), n_test=57, correct=55, gap=1e-4, attempts=1)
    >>> with TemporaryDirectory() as folder, Store(folder) as store:
    ...     store.add(row)
    ...     store.has(key), store.has((*key[:-1], 1)), store.n_cells()
    (True, False, 1)
    """

    def __init__(self, path: Path | str, *, session: str | None = None) -> None:
        file = Path(path)
        self.path = file / FILE_NAME if file.is_dir() else file
        self._session = session
        self._version_ids: dict[str, int] = {}
        # Transactions are begun explicitly: the locks must be taken at their beginning.
        self._database = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        if session is None:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(SCHEMA)
        # The log is handed to the operating system, not forced to the disk: killed processes lose
        # nothing, and a power failure at most the last cells, together with their states.
        self._database.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, and nobody else writes meanwhile."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            if self._session is not None:
                self._check_session()
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _check_session(self) -> None:
        (token,) = self._database.execute("SELECT token FROM session").fetchone() or (None,)
        if token != self._session:
            raise TakenOverError(f"Another run works on {self.path} now; this one stops.")

    # -- one row at a time --------------------------------------------------------------------

    def add(self, row: Mapping[str, Any]) -> None:
        """Store a cell, on disk when the call returns.

        Parameters
        ----------
        row : mapping
            Values by column; columns that are left out are empty. ``versions`` is a number, or
            the JSON text itself.

        Raises
        ------
        ValueError
            A column is unknown, a part of the key is missing, or the cell is stored already.
        """
        with self._transaction():
            self._insert(row)

    def _insert(self, row: Mapping[str, Any]) -> None:
        unknown = sorted(set(row) - set(COLUMNS))
        missing = [name for name in KEY if name not in row]
        if unknown or missing:
            wrong = f"unknown column {unknown[0]!r}" if unknown else f"no {missing[0]!r}"
            raise ValueError(f"A cell has {wrong}; the columns are {', '.join(COLUMNS)}.")
        values = dict(row)
        if isinstance(values.get("versions"), str):
            values["versions"] = self._version_id(values["versions"])
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        try:
            self._database.execute(
                f"INSERT INTO cells ({names}) VALUES ({marks})", tuple(values.values())
            )
        except sqlite3.IntegrityError as error:
            raise ValueError(
                f"The cell {tuple(row[name] for name in KEY)} is stored already."
            ) from error

    def _version_id(self, text: str) -> int:
        """Number of a description of the software, a new one if need be."""
        if text not in self._version_ids:
            self._database.execute("INSERT OR IGNORE INTO versions (text) VALUES (?)", (text,))
            row = self._database.execute("SELECT id FROM versions WHERE text = ?", (text,))
            self._version_ids[text] = int(row.fetchone()[0])
        return self._version_ids[text]

    def add_order(self, row: Mapping[str, Any]) -> None:
        """Store a row of ``orders``: ``dataset``, ``fold``, ``step_two``, ``exact``."""
        with self._transaction():
            self._insert_order(row)

    def _insert_order(self, row: Mapping[str, Any]) -> None:
        self._database.execute(
            "INSERT INTO orders (dataset, fold, step_two, exact) "
            "VALUES (:dataset, :fold, :step_two, :exact)",
            dict(row),
        )

    def set_meta(self, **values: str) -> None:
        """Store facts about the run."""
        with self._transaction():
            self._database.executemany(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", values.items()
            )

    # -- reading ------------------------------------------------------------------------------

    def has(self, key: Mapping[str, Any] | tuple[Any, ...]) -> bool:
        """Tell whether a cell is stored.

        Parameters
        ----------
        key : tuple or mapping
            The values of :data:`KEY`.

        Returns
        -------
        stored : bool
        """
        values = tuple(key[name] for name in KEY) if isinstance(key, Mapping) else tuple(key)
        where = " AND ".join(f"{name} = ?" for name in KEY)
        found = self._database.execute(f"SELECT 1 FROM cells WHERE {where}", values)
        return found.fetchone() is not None

    def cells(self) -> set[Cell]:
        """Return the keys of all stored cells."""
        rows = self._database.execute(f"SELECT {', '.join(KEY)} FROM cells")
        return {Cell(*row) for row in rows}

    def order_keys(self) -> set[tuple[str, int]]:
        """Return dataset and fold of the stored rows of ``orders``."""
        return set(self._database.execute("SELECT dataset, fold FROM orders"))

    def n_cells(self) -> int:
        """Return the number of stored cells."""
        # Rows are never removed, so the last row number is their count.
        (last,) = self._database.execute("SELECT MAX(rowid) FROM cells").fetchone()
        return int(last or 0)

    def meta(self) -> dict[str, str]:
        """Return the facts about the run."""
        return dict(self._database.execute("SELECT key, value FROM meta ORDER BY key"))

    def frame(
        self, dataset: str | None = None, model: str | None = None, folds: str | None = None
    ) -> pd.DataFrame:
        """Return cells as a table, sorted by their keys.

        Parameters
        ----------
        dataset, model, folds : str or None, default=None
            Only the cells with these values.

        Returns
        -------
        frame : DataFrame
            Columns :data:`COLUMNS`.
        """
        wanted = {"dataset": dataset, "model": model, "folds": folds}
        given = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = :{name}" for name in given) or "1"
        pandas = require("pandas", "A table of the results")
        table: pd.DataFrame = pandas.read_sql_query(
            f"SELECT {', '.join(COLUMNS)} FROM cells WHERE {where} ORDER BY {', '.join(KEY)}",
            self._database,
            params=given,
        )
        return table.astype(dict.fromkeys(REALS, "float64"))

    # -- chains -------------------------------------------------------------------------------

    def claim(self) -> str:
        """Make this the only run that may write to the chains.

        Returns
        -------
        session : str
            For the stores of the worker processes.
        """
        token = secrets.token_hex(16)
        self._session = None
        with self._transaction():
            self._database.execute("INSERT OR REPLACE INTO session VALUES (1, ?)", (token,))
        self._session = token
        return token

    def begin(self, chain: str, cell: Cell | None = None) -> dict[str, bytes]:
        """Start, or start again, the next cell of a chain.

        Parameters
        ----------
        chain : str
            Name of the chain.
        cell : Cell or None, default=None
            The cell that is about to be computed; refused if it is stored.

        Returns
        -------
        states : dict of str to bytes
            What the chain left behind its last stored cell; empty for a new chain.
        """
        with self._transaction():
            if cell is not None and self.has(cell):
                raise ValueError(f"The cell {tuple(cell)} is stored already.")
            self._database.execute(
                "INSERT INTO chains (chain, attempts) VALUES (?, 1) "
                "ON CONFLICT (chain) DO UPDATE SET attempts = attempts + 1",
                (chain,),
            )
            rows = self._database.execute(
                "SELECT part, state FROM states WHERE chain = ?", (chain,)
            )
            return dict(rows)

    def finish(
        self,
        chain: str,
        row: Mapping[str, Any],
        states: Mapping[str, bytes],
        *,
        is_last: bool,
    ) -> None:
        """Store a cell of a chain with the state behind it, and start the next cell.

        Parameters
        ----------
        chain : str
            Name of the chain, begun before.
        row : mapping
            The cell as in :meth:`add`, or a row of ``orders``.
        states : mapping of str to bytes
            The parts of the state that changed.
        is_last : bool
            Whether this was the last cell of the chain, so that the state can go.
        """
        with self._transaction():
            if "step_two" in row:
                self._insert_order(row)
            else:
                (attempts,) = self._database.execute(
                    "SELECT attempts FROM chains WHERE chain = ?", (chain,)
                ).fetchone()
                self._insert({**row, "attempts": attempts})
            if is_last:
                self._database.execute("DELETE FROM states WHERE chain = ?", (chain,))
                self._database.execute("DELETE FROM chains WHERE chain = ?", (chain,))
            else:
                self._database.executemany(
                    "INSERT OR REPLACE INTO states (chain, part, state) VALUES (?, ?, ?)",
                    [(chain, part, state) for part, state in states.items()],
                )
                self._database.execute("UPDATE chains SET attempts = 1 WHERE chain = ?", (chain,))

    def settle(self) -> None:
        """Fold the log into the database, so that the file can be read anywhere by itself."""
        try:
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            # Somebody reads at this moment: the log stays, which harms nobody.
            return
