"""Tells whether logs are still as they were when they were read, by size and time alone; opens none of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

from logdoc.sources import Source, discover
from logdoc.sources.origins import FileOrigin
from logdoc.types.errors import InputError

MOST_FOLDERS = 1000  # that are watched for new files

Change = Literal["", "grown", "new", "changed"]
Stamp = tuple[int, int]  # bytes, and when they were last written in ns


class Freshness:
    """The files of some sources as they are now, and the folders typed, to be compared with later.

    `arguments` are paths as the user typed them: files, folders, patterns.
    """

    def __init__(self, sources: Sequence[Source], arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._files = dict(_stamps(_paths(sources)))
        self._folders = self._seen_folders()
        self._new = False

    def change(self) -> Change:
        """What has become of the files since; of several things the one that matters most.

        `new`: there are files that were not there. `changed`: rewritten, shortened or gone. Costs one look at each
        file and folder; the files behind `arguments` are searched for again only when a folder has changed.
        """
        now = dict(_stamps(self._files))
        if any(path not in now or _rewritten(before, now[path]) for path, before in self._files.items()):
            return "changed"
        if self._has_new_files():
            return "new"
        return "grown" if now != self._files else ""

    def _has_new_files(self) -> bool:
        folders = self._seen_folders() if dict(_stamps(self._folders)) != self._folders else self._folders
        if folders != self._folders:
            self._folders = folders
            try:
                self._new = any(path not in self._files for path in _paths(discover(self._arguments).sources))
            except InputError:  # nothing left
                self._new = False
        return self._new

    def _seen_folders(self) -> dict[str, Stamp]:
        """Folders typed with those inside, and those that hold what a pattern found, with their stamps."""
        inside = islice(_folders_in(self._arguments), MOST_FOLDERS)
        beside = (os.path.dirname(path) for path in self._files) if not all(map(_is_there, self._arguments)) else ()
        return dict(_stamps([*inside, *beside]))


def _paths(sources: Iterable[Source]) -> list[str]:
    return [source.origin.path for source in sources if isinstance(source.origin, FileOrigin)]


def _stamps(paths: Iterable[str]) -> Iterator[tuple[str, Stamp]]:
    """The stamps of those that are there."""
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        yield path, (status.st_size, status.st_mtime_ns)


def _rewritten(before: Stamp, now: Stamp) -> bool:
    return now[0] < before[0] or (now[0] == before[0] and now[1] != before[1])


def _is_there(argument: str) -> bool:
    return os.path.exists(os.path.expanduser(argument))


def _folders_in(arguments: Iterable[str]) -> Iterator[str]:
    """Every folder typed and all that are not hidden below it."""
    for argument in arguments:
        for folder, inner, _ in os.walk(os.path.expanduser(argument)):
            inner[:] = [name for name in inner if not name.startswith(".")]
            yield folder
