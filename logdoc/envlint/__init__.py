"""Finds environment variables in logs and scripts, and judges them: unknown, misspelt, renamed, invalid, dangerous.

Knows the grammar of settings; which names and values exist is data (logdoc.catalog). Reads no real environment.
"""

from logdoc.envlint.harvest import read_job_script, variables_in
from logdoc.envlint.lint import lint

__all__ = ["lint", "read_job_script", "variables_in"]
