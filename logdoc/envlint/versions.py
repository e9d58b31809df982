"""Does the installed version read a variable or an option? The tables' `since` and `until` held against it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from packaging.version import Version  # imported where it is used: it takes long, and few logs need it


def is_before(installed: Version, since: str, owner: str) -> bool:
    """Whether it is older than the first version that reads the name. PyTorch's was read off inspected wheels and may
    be one minor release late, so allow for one."""
    from packaging.version import Version

    first = Version(since)
    if owner == "torch":
        return (installed.major, installed.minor + 1) < (first.major, first.minor)
    return installed < first


def is_beyond(installed: Version, until: str) -> bool:
    """Whether it is newer than the last version that reads the name: 2.3 means all of 2.3.x."""
    from packaging.version import Version

    comparable = installed.release[: until.count(".") + 1]
    return Version(".".join(map(str, comparable))) > Version(until)
