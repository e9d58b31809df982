"""Objects behind URLs, through fsspec (extra `logdoc[remote]`), which is not imported before a URL is read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from logdoc.sources.limits import Limits
from logdoc.sources.names import may_be_log, natural_key, shown
from logdoc.types.errors import InputError
from logdoc.types.value import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, BinaryIO

_WEB = ("http", "https")


@dataclass(frozen=True, slots=True)
class RemoteOrigin:
    """One object of a remote file system; fetched anew by each reading, never kept."""

    filesystem: Any
    path: str

    is_near = False

    def raw_blocks(self, size: int) -> Iterator[bytes]:
        """See Origin."""
        with self.open() as file:
            while block := file.read(size):
                yield block

    def open(self) -> AbstractContextManager[BinaryIO]:
        """The object itself, for reading at any offset."""
        from contextlib import contextmanager

        return contextmanager(self._opened)()

    def _opened(self) -> Iterator[BinaryIO]:
        try:
            with self.filesystem.open(self.path, "rb") as file:
                yield file
        except OSError:
            raise
        except Exception as error:  # each file system brings its own exceptions
            raise OSError(_one_line(error)) from error


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """An object found: the name to show (no credentials, no signature), its bytes, its stored size if known."""

    name: str
    origin: RemoteOrigin
    size: int | None


def remote_files(url: str, limits: Limits) -> tuple[list[RemoteFile], bool]:
    """The object at `url`, or those that a pattern or a folder of an object store holds, in natural order; and whether
    there are more than `limits.max_files`. InputError if there is nothing, or a package is missing."""
    name = shown_url(url)
    filesystem, root = _filesystem(url, name)
    is_web = _scheme(url) in _WEB
    try:
        paths = sorted(islice(_paths(filesystem, root, url), limits.max_files + 1), key=natural_key)
        wanted = paths[: limits.max_files]
        files = [_remote_file(filesystem, path, name if path == root else "", is_web) for path in wanted]
    except Exception as error:  # see RemoteOrigin
        raise InputError(f"{name}: {_without(url, name, _one_line(error))}") from error
    if not files:
        raise InputError(f"{name}: no log found there")
    return files, len(paths) > limits.max_files


def shown_url(url: str) -> str:
    """The URL without user, password, query and fragment: a presigned one is a key."""
    from urllib.parse import urlsplit  # few inputs are URLs

    parts = urlsplit(url)
    return shown(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _filesystem(url: str, name: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise InputError(f'{name}: reading URLs needs an extra: pip install "logdoc[remote]"') from error
    try:
        filesystem, root = fsspec.core.url_to_fs(url)
    except ImportError as error:  # fsspec is there, the file system's own package is not; its message names it
        raise InputError(f"{name}: {_one_line(error)}") from error
    except Exception as error:
        raise InputError(f"{name}: {_without(url, name, _one_line(error))}") from error
    return filesystem, str(root)


def _paths(filesystem: Any, root: str, url: str) -> Iterator[str]:
    """A web address is always one object: asking whether it is a folder would fetch it to look for links."""
    if _scheme(url) in _WEB:
        yield root
    elif "*" in root:
        yield from (str(path) for path in filesystem.glob(root) if filesystem.isfile(path))
    elif filesystem.isdir(root):
        yield from (str(path) for path in filesystem.find(root) if may_be_log(str(path).rsplit("/", 1)[-1]))
    else:
        filesystem.info(root)  # raises FileNotFoundError, which says more than an empty list
        yield root


def _remote_file(filesystem: Any, path: str, name: str, is_web: bool) -> RemoteFile:
    """Of a web address the size would cost a request, and parts of it may not be had."""
    size = None if is_web else filesystem.info(path).get("size")
    shown_name = name or shown_url(str(filesystem.unstrip_protocol(path)))
    return RemoteFile(shown_name, RemoteOrigin(filesystem, path), size if isinstance(size, int) else None)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    is_mere_path = isinstance(error, FileNotFoundError) and " " not in text  # all that some file systems say
    return "nothing there" if is_mere_path else text or type(error).__name__


def _without(url: str, name: str, text: str) -> str:
    return text.replace(url, name)
