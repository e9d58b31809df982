"""The errors a user can cause; the front doors (cli, tui, mcp) turn them into one line and an exit code."""

from __future__ import annotations

from logdoc.types.value import dataclass


class LogdocError(Exception):
    """A problem whose message is complete and fit for a user to read."""


class InputError(LogdocError):
    """The input cannot be read at all (missing, unreadable, not understood): exit code 2."""


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """One fault of a rule file. `line` and `column` count from 1, as editors do."""

    path: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.path}:{self.line}:{self.column}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class RulesError(LogdocError):
    """logdoc's own rules, or a rule pack, are invalid: exit code 3. Carries every fault found, not only the first."""

    def __init__(self, problems: list[RuleProblem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))
