"""Turns folders and patterns into file paths, in natural order; opens no file, follows no link to another folder."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator

from logdoc.kept.patterns import lazily
from logdoc.sources.limits import Limits
from logdoc.sources.names import SKIPPED_FOLDERS, natural_key, shown
from logdoc.sources.spool import reason
from logdoc.types.value import dataclass, field

# Views of the running kernel, in case somebody names `/`: what is in there are no files.
_KERNEL_FOLDERS = frozenset(("/proc", "/sys", "/dev"))
_MAGIC = lazily(r"[*?\[]")


@dataclass(slots=True)
class WalkNotes:
    """What a search left out. Decided: links to folders are not followed below what the user named (as grep -r), so no
    loop and no whole disk is read by accident; `outside_links` are those whose target the search does not cover."""

    limits: Limits
    entries: int = 0
    faults: dict[str, None] = field(default_factory=dict)  # a set that keeps its order
    outside_links: dict[str, None] = field(default_factory=dict)

    def full(self) -> bool:
        """Have as many directory entries been looked at as the limits allow?"""
        return self.entries >= self.limits.max_entries


def has_pattern(argument: str) -> bool:
    """Does the argument hold a wildcard?"""
    return _MAGIC.search(argument) is not None


def names_what_it_wants(pattern: str) -> bool:
    """`*.log` and `rank_?` do; `*` and `**` take whatever is there."""
    return re.search(r"\w", re.sub(r"\[[^\]]*\]", "", os.path.basename(pattern))) is not None


def files_under(root: str, notes: WalkNotes) -> Iterator[str]:
    """Every regular file (or link to one) below `root` whose path has no hidden part."""
    for entry in _entries_under(root, notes):
        if _is(entry.is_file, entry.path, notes):
            yield entry.path


def paths_matching(pattern: str, notes: WalkNotes) -> Iterator[str]:
    """What a shell with `**` would put in the pattern's place: files and folders, natural order, no hidden names."""
    drive, rest = os.path.splitdrive(pattern)
    parts = [part for part in re.split(r"[/\\]" if os.sep == "\\" else "/", rest) if part]
    while parts and parts[-1] == "**":  # `runs/**` is the folder runs, which is read to its depth anyway
        parts.pop()
    start = drive + (os.sep if rest.startswith(os.sep) else "")
    yield from _expanded(start, parts, notes)


def _expanded(base: str, parts: list[str], notes: WalkNotes) -> Iterator[str]:
    """The paths below `base` that fit `parts`; recursion is as deep as the pattern, not as the disk."""
    if not parts:
        if base:
            yield base
        return
    head, rest = parts[0], parts[1:]
    if head == "**":
        while rest[:1] == ["**"]:
            rest = rest[1:]
        yield from _expanded(base, rest, notes)
        for entry in _entries_under(base, notes):
            if _is(lambda entry=entry: entry.is_dir(follow_symlinks=False), entry.path, notes):  # type: ignore[misc]
                yield from _expanded(entry.path, rest, notes)
    elif has_pattern(head):
        fits = re.compile(fnmatch.translate(head)).match
        for entry in _listing(base, notes, hidden=head.startswith(".")):
            if fits(entry.name) and (not rest or _is(entry.is_dir, entry.path, notes)):
                yield from _expanded(entry.path, rest, notes)
    else:
        path = os.path.join(base, head)
        if os.path.lexists(path):
            yield from _expanded(path, rest, notes)


def _entries_under(root: str, notes: WalkNotes) -> Iterator[os.DirEntry[str]]:
    """All entries below `root`, each folder before what it holds; a stack, since hostile folders nest deeply."""
    real_root = os.path.realpath(root or os.curdir)
    pending = [iter(_listing(root, notes))]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
            continue
        yield entry
        if not _is(entry.is_dir, entry.path, notes):
            continue
        if entry.is_symlink():
            if os.path.commonpath([real_root, os.path.realpath(entry.path)]) != real_root:
                notes.outside_links[shown(entry.path)] = None
        elif entry.name not in SKIPPED_FOLDERS and os.path.abspath(entry.path) not in _KERNEL_FOLDERS:
            pending.append(iter(_listing(entry.path, notes)))


def _listing(folder: str, notes: WalkNotes, *, hidden: bool = False) -> list[os.DirEntry[str]]:
    """The entries of one folder in natural order; what cannot be listed is a fault in `notes`."""
    if notes.full():
        return []
    found: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder or os.curdir) as entries:
            for entry in entries:
                notes.entries += 1
                if hidden or not entry.name.startswith("."):
                    found.append(entry)
                if notes.full():
                    break
    except OSError as error:
        notes.faults[f"{shown(folder)}: {reason(error)}"] = None
    return sorted(found, key=lambda entry: natural_key(entry.name))


def _is(question: Callable[[], bool], path: str, notes: WalkNotes) -> bool:
    """Asks the disk; a link that points at itself cannot answer."""
    try:
        return question()
    except OSError as error:
        notes.faults[f"{shown(path)}: {reason(error)}"] = None
        return False
