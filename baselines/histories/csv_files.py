"""CSV that other programs wrote: rows by the names of the header, errors with file, line and column.

Bytes that are no UTF-8 survive reading and writing, so that a name comes out as it came in.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from baselines.errors import BaselineError


@contextmanager
def open_csv(path: Path) -> Iterator[TextIO]:
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield file
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read: {error.strerror}; check the name") from error


class Rows:
    """The rows of a CSV file, each as a list; columns are looked up once."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self._reader = csv.reader(file)
        self._path = path
        self.header = self._next_row() or []
        if not self.header:
            raise BaselineError(f"{path}: empty; expected a first line with the names of the columns")
        for name in self.header:
            if name and self.header.count(name) > 1:
                raise BaselineError(f"{path}:1: column {name!r} stands twice; rename one of them")

    def column(self, *names: str) -> int | None:
        """The place of the first of these columns that there is."""
        return next((self.header.index(name) for name in names if name in self.header), None)

    def required(self, name: str, hint: str = "") -> int:
        place = self.column(name)
        if place is None:
            found = ", ".join(self.header[:20])
            raise BaselineError(f"{self._path}:1: no column {name!r} among {found}; {hint or 'name it in the header'}")
        return place

    def __iter__(self) -> Iterator[list[str]]:
        width = len(self.header)
        while (row := self._next_row()) is not None:
            if len(row) == width:
                yield row
            elif row:
                raise self.error("row", f"{len(row)} fields where the header has {width}; quote fields with commas")

    def error(self, key: str, what: str) -> BaselineError:
        return BaselineError(f"{self._path}:{self._reader.line_num}: {key}: {what}")

    def _next_row(self) -> list[str] | None:
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise self.error("row", f"{error}; the file is damaged or no CSV") from error


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Whole or not at all. Fields come back from `csv.reader` as they are given."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            plain = csv.writer(file, lineterminator="\n")
            # Some versions of csv leave a lone carriage return unquoted, which ends a line for every reader.
            quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
            plain.writerow(header)
            for row in ([_encodable(cell) for cell in row] for row in rows):
                (quoted if any("\r" in cell for cell in row) else plain).writerow(row)
        partial.replace(path)
    except OSError as error:
        raise BaselineError(f"{path}: cannot be written: {error.strerror}; name another file") from error
    finally:
        partial.unlink(missing_ok=True)


def _encodable(cell: str) -> str:
    """JSON can hold half a character, a file of text cannot."""
    try:
        cell.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return cell.encode(errors="backslashreplace").decode()
    return cell
