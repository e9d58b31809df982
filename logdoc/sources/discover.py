"""Turns what the user typed into the sources to read: finds them, names them, leaves out what is no log and says so."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

from logdoc.sources.hints import dump_rank, path_hints, with_hosts
from logdoc.sources.limits import DEFAULT_LIMITS, Limits
from logdoc.sources.names import is_dump_name, is_url, may_be_log, shown
from logdoc.sources.origins import BytesOrigin, FileOrigin, Origin
from logdoc.sources.sniff import archive_advice, head_of, kind_of, looks_binary
from logdoc.sources.spool import Spool, reason, special_chunks, stream_chunks
from logdoc.sources.stream import Source
from logdoc.sources.walk import WalkNotes, files_under, has_pattern, names_what_it_wants, paths_matching
from logdoc.types.errors import InputError
from logdoc.types.value import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

STDIN_NAME = "<stdin>"
_LOOKED_FOR = (
    "looked for .log, .txt, .out, .err and error.json files, flight-recorder dumps and other text files, "
    "plain or compressed, not hidden"
)
_NAMES_TOLD = 3
_FAULTS_TOLD = 20


@dataclass(frozen=True, slots=True)
class Discovered:
    """What there is to read, in the order typed and naturally sorted within a folder; `warnings` are one line each."""

    sources: tuple[Source, ...]
    warnings: tuple[str, ...]

    def close(self) -> None:
        """Gives up the temporary copies of pipes; they end with the process otherwise."""
        for source in self.sources:
            if isinstance(source.origin, Spool):
                source.origin.close()


def discover(arguments: Sequence[str], stdin: BinaryIO | None = None, limits: Limits = DEFAULT_LIMITS) -> Discovered:
    """The sources behind files, folders, patterns, URLs and `-`; reads standard input to its end if asked to.

    `stdin` stands in for the process's own. Raises InputError, one line naming path and reason, if nothing at all can
    be read; what fails beside something that can be read becomes a warning.
    """
    if not arguments:
        raise InputError("nothing to read: name a file, a folder or a pattern, or - for standard input")
    search = _Search(limits, stdin)
    for argument in arguments:
        search.add(argument)
    return search.result()


def source_from_bytes(name: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> Source:
    """A source for bytes that are at hand already, such as a log pasted into a request; they may be compressed."""
    origin = BytesOrigin(data)
    kind = kind_of(os.path.basename(name), head_of(origin, limits).plain)
    return Source(shown(name), None, len(data), kind, path_hints(name), origin, limits)


class _NotingFaults:
    """What goes wrong with one thing is remembered, and the search goes on."""

    def __init__(self, name: str, faults: list[str]) -> None:
        self._name, self._faults = name, faults

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, InputError):
            self._faults.append(str(error))
        elif isinstance(error, OSError | ValueError):  # ValueError: a NUL in a name
            self._faults.append(f"{self._name}: {reason(error)}")
        return isinstance(error, InputError | OSError | ValueError)


class _Search:
    """The sources found so far, and everything that was left out."""

    def __init__(self, limits: Limits, stdin: BinaryIO | None) -> None:
        self._limits = limits
        self._stdin = stdin
        self._notes = WalkNotes(limits)
        self._sources: list[Source] = []
        self._seen: set[object] = set()
        self._faults: list[str] = []
        self._warnings: list[str] = []
        self._binaries: list[str] = []
        self._archives: list[str] = []
        self._repeats = 0
        self._surplus = 0

    def add(self, argument: str) -> None:
        """One thing the user typed."""
        with self._noting_faults(shown(argument)):
            if argument == "-":
                self._add_stdin()
            elif argument.lower().startswith("file://"):
                self._add_path(_path_of_url(argument))
            elif is_url(argument):
                self._add_url(argument)
            else:
                self._add_path(argument)

    def result(self) -> Discovered:
        """Everything found; InputError if that is nothing."""
        faults = [*self._notes.faults, *self._faults]
        if not self._sources:
            more = f" (and {len(faults) - _NAMES_TOLD} more)" if len(faults) > _NAMES_TOLD else ""
            raise InputError("; ".join(faults[:_NAMES_TOLD]) + more if faults else "nothing to read within the limits")
        located = [source for source in self._sources if source.location is not None]
        paths = [os.path.abspath(source.location) for source in located if source.location is not None]
        for source, hints in zip(located, with_hosts(paths, [source.hints for source in located]), strict=True):
            source.hints = hints
        if len(faults) > _FAULTS_TOLD:
            faults[_FAULTS_TOLD:] = [f"{len(faults) - _FAULTS_TOLD} more files or folders could not be read"]
        return Discovered(tuple(self._sources), (*faults, *self._warnings, *self._left_out()))

    def _noting_faults(self, name: str) -> _NotingFaults:
        return _NotingFaults(name, self._faults)

    def _left_out(self) -> list[str]:
        said = []
        if self._binaries:
            said.append(f"{_counted(self._binaries, 'binary file')} skipped")
        if len(self._archives) > 1:
            said.append(f"{len(self._archives) - 1} more archives skipped; unpack them first")
        if self._notes.outside_links:
            said.append(f"{_counted(list(self._notes.outside_links), 'link')} to folders elsewhere not followed")
        if self._surplus:
            said.append(f"{self._surplus} more files left out: at most {self._limits.max_files} are read")
        if self._notes.full():
            said.append(f"only the first {self._limits.max_entries} directory entries were looked at")
        return said

    def _add_path(self, argument: str) -> None:
        """A file, a folder, or a pattern; a file whose name only looks like a pattern comes first."""
        path = argument
        if not os.path.lexists(path):
            path = os.path.expanduser(path)  # a quoted ~ is ours to expand
            if has_pattern(path) and not os.path.lexists(path):
                self._add_pattern(path)
                return
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            self._add_folder(path)
        elif self._is_new(path, status):
            self._add_named(path, status)

    def _add_named(self, path: str, status: os.stat_result) -> None:
        """A file the user named is read whatever it is called and whatever it holds, short of an archive."""
        if stat.S_ISREG(status.st_mode):
            self._add_file(path, shown(path), status.st_size, chosen=True)
        elif stat.S_ISSOCK(status.st_mode):
            raise InputError(f"{shown(path)}: is a socket, which cannot be read as a file")
        else:
            spool = Spool(self._limits)
            spool.fill(special_chunks(path, self._limits), self._limits.max_special_bytes)
            if not spool.size and (spool.note or stat.S_ISFIFO(status.st_mode)):
                raise InputError(f"{shown(path)}: {spool.note or 'nobody writes into this named pipe'}")
            self._add_spool(spool, shown(path), path, None)

    def _add_stdin(self) -> None:
        stream = self._stdin if self._stdin is not None else getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise InputError(f"{STDIN_NAME}: standard input is closed")
        if STDIN_NAME in self._seen:
            return
        self._seen.add(STDIN_NAME)
        spool = Spool(self._limits)
        spool.fill(stream_chunks(stream), self._limits.max_bytes)
        if not spool.size and spool.note:
            raise InputError(f"{STDIN_NAME}: {spool.note}")
        self._add_spool(spool, STDIN_NAME, None, spool.size)

    def _add_spool(self, spool: Spool, name: str, path: str | None, size: int | None) -> None:
        if spool.note:
            self._warnings.append(f"{name}: {spool.note}")
        self._add_source(name, path, size, spool, chosen=True)

    def _add_url(self, url: str) -> None:
        from logdoc.sources.remote import remote_files  # few inputs are URLs

        files, more = remote_files(url, self._limits)
        for file in files:
            with self._noting_faults(file.name):
                self._add_source(file.name, None, file.size, file.origin, chosen=len(files) == 1)
        if more:
            self._warnings.append(f"{shown(url)}: more than {self._limits.max_files} files; the rest is left out")

    def _add_folder(self, folder: str) -> None:
        before, others = self._found(), 0
        for path in files_under(folder, self._notes):
            if may_be_log(os.path.basename(path)):
                self._add_found(path, folder)
            else:
                others += 1
        if self._found() == before:
            self._faults.append(f"{shown(folder)}: no log in this folder ({_LOOKED_FOR}; {others} other files)")

    def _add_pattern(self, pattern: str) -> None:
        before, matched = self._found(), 0
        for path in paths_matching(pattern, self._notes):
            matched += 1
            if os.path.isdir(path):
                self._add_folder(path)
            elif os.path.isfile(path) and (names_what_it_wants(pattern) or may_be_log(os.path.basename(path))):
                self._add_found(path, pattern)
        if self._found() == before:
            found = f"none of the {matched} matches is a log ({_LOOKED_FOR})" if matched else "no file matches this"
            self._faults.append(f"{shown(pattern)}: {found}")

    def _found(self) -> int:
        """How many logs have turned up so far, those read already or one too many included."""
        return len(self._sources) + self._repeats + self._surplus

    def _add_found(self, path: str, argument: str) -> None:
        """A file that turned up in a folder or behind a pattern."""
        with self._noting_faults(shown(path)):
            status = os.stat(path)
            if self._is_new(path, status):
                typed_dot = argument.startswith(f".{os.sep}") and len(argument) > 2
                name = path if typed_dot else path.removeprefix(f".{os.sep}")
                self._add_file(path, shown(name), status.st_size, chosen=False)

    def _is_new(self, path: str, status: os.stat_result) -> bool:
        """The same file by another path, link or pattern is read once."""
        key = (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)
        if key in self._seen:
            self._repeats += 1
            return False
        self._seen.add(key)
        return True

    def _add_file(self, path: str, name: str, size: int, *, chosen: bool) -> None:
        if size == 0 and is_dump_name(os.path.basename(path)):
            raise InputError(f"{name}: empty; a trainer stopped while writing its flight-recorder dump leaves this")
        origin = FileOrigin(os.path.join(os.getcwd(), path))  # whoever reads it later may have moved elsewhere
        self._add_source(name, path, size, origin, chosen=chosen)

    def _add_source(self, name: str, path: str | None, size: int | None, origin: Origin, *, chosen: bool) -> None:
        """Looks at the first bytes, and takes the source unless they rule it out. `chosen`: the user named it."""
        if len(self._sources) >= self._limits.max_files:
            self._surplus += 1
            return
        head = head_of(origin, self._limits)
        if head.fault:
            raise InputError(f"{name}: {head.fault}")
        base = os.path.basename(path or name)
        kind = kind_of(base, head.plain)
        advice = archive_advice(name, head.plain, is_file=path is not None)
        if advice:
            self._archives.append(name)
            if chosen or len(self._archives) == 1:
                raise InputError(f"{name}: {advice}")
        elif kind == "log" and not chosen and looks_binary(head.plain):
            self._binaries.append(name)
        else:
            if chosen and kind == "log" and (doubt := _doubt(base, head.plain)):
                self._warnings.append(f"{name}: {doubt}")
            hints = path_hints(os.path.abspath(path) if path else name)
            if kind == "flight-recorder" and hints.rank is None:
                hints = replace(hints, rank=dump_rank(base))
            self._sources.append(Source(name, path, size, kind, hints, origin, self._limits))


def _doubt(name: str, head: bytes) -> str | None:
    """What makes it doubtful that something the user named is a log."""
    if not head:
        return "empty"
    if is_dump_name(name):
        return "named as a flight-recorder dump is, but neither a pickle nor JSON with entries: read as a log"
    return "no plain text: only searched for what looks like it" if looks_binary(head) else None


def _path_of_url(url: str) -> str:
    from urllib.request import url2pathname  # brings the whole of http.client with it

    return url2pathname(url[len("file://") :])


def _counted(names: list[str], what: str) -> str:
    """`4 binary files (a, b, c, …)`."""
    listed = ", ".join(names[:_NAMES_TOLD]) + (", …" if len(names) > _NAMES_TOLD else "")
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({listed})"
