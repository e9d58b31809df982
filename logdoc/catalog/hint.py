"""A cheap look at a line, before anything of weight is imported: may it name an environment variable? No more."""

from __future__ import annotations

from logdoc.kept.patterns import lazily

# In every name that the tables have; few healthy lines hold it.
_PART_OF_A_NAME = lazily(r"_[A-Z]|RANK")


def may_name_variable(text: str) -> bool:
    """Whether it is worth looking for the name of a variable in `text`."""
    return _PART_OF_A_NAME.search(text) is not None
