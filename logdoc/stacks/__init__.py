"""Stack dumps of processes to what they say together: who waits for whom, and whose main thread is elsewhere.

Judges no rule: its verdict goes on as Records of dialect `stacks`.
"""

from logdoc.stacks.model import Frame, ProcessStacks, Thread
from logdoc.stacks.parse import stacks_of
from logdoc.stacks.records import stack_verdict

__all__ = ["Frame", "ProcessStacks", "Thread", "stack_verdict", "stacks_of"]
