"""What tests of the command line share: a crash to explain, and a run in this process."""

from __future__ import annotations

from click.testing import CliRunner

from logdoc.cli.commands import commands

CRASH = '[rank1]: Traceback (most recent call last):\n[rank1]:   File "t.py", line 3\n[rank1]: ValueError: bad lr\n'


def run(*arguments: str, stdin: str | bytes | None = None) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of `logdoc` with these arguments."""
    result = CliRunner().invoke(commands, list(arguments), input=stdin, env={"LANG": "C.UTF-8", "LC_ALL": ""})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr
