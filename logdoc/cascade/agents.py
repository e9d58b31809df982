"""Whom a launcher's agent speaks of: it names local ranks and process ids, and other lines tell which node is its own.

Says nothing where the lines do not agree; knows no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from logdoc.types.finding import Match
from logdoc.types.record import Record
from logdoc.types.value import dataclass, field

Process = tuple[str | None, int]  # host and process id


@dataclass(slots=True)
class Agent:
    """One agent's words: the processes it named, and which of them it called by a local rank."""

    host: str | None = None
    pids: set[int] = field(default_factory=set)
    local_rank_of: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Nodes:
    """What ranks' own lines tell of their nodes: by host, each rank and its local rank or device there."""

    places: dict[str, set[tuple[int, int]]] = field(default_factory=dict)

    def see(self, record: Record) -> None:
        who = record.who
        local = who.local_rank if who.local_rank is not None else who.device
        if who.host is not None and who.rank is not None and local is not None and who.rank >= local:
            self.places.setdefault(who.host, set()).add((who.rank, local))

    def first_rank(self, host: str) -> int | None:
        """The global rank of the host's local rank 0, if its ranks agree on it.

        Device 0 alone tells nothing: each process may see but one GPU.
        """
        places = self.places.get(host, set())
        bases = {rank - local for rank, local in places}
        return bases.pop() if len(bases) == 1 and any(local for _, local in places) else None


def ranks_named_by_agents(
    matches: Iterable[Match], nodes: Nodes, processes: Mapping[Process, Set[int]], ranks: Set[int]
) -> dict[Process, int]:
    """The global rank of each process that an agent calls by its local rank.

    An agent's node is that of the processes it signals; if it signals as many as there are ranks, there is only one.
    """
    named: dict[Process, int] = {}
    for agent in _agents(matches):
        hosts = {host for (host, pid) in processes if pid in agent.pids and host is not None}
        host = agent.host or (hosts.pop() if len(hosts) == 1 else None)
        first = nodes.first_rank(host) if host is not None else None
        if first is None and ranks == set(range(len(agent.pids))):
            first = 0
        if first is not None:
            named |= {(host, pid): first + local for pid, local in agent.local_rank_of.items()}
    return named


def _agents(matches: Iterable[Match]) -> Iterable[Agent]:
    """By source and thread: several nodes' agents may share a log."""
    agents: dict[tuple[str, int], Agent] = {}
    for match in matches:
        said, who = match.captures, match.record.who
        pid = said.get("pid", "")
        if who.thread is None or who.rank is not None or not is_short_number(pid):
            continue
        agent = agents.setdefault((match.record.source, who.thread), Agent())
        agent.host = agent.host or who.host
        agent.pids.add(int(pid))
        if is_short_number(said.get("local_rank", "")):
            agent.local_rank_of[int(pid)] = int(said["local_rank"])
    return agents.values()


def is_short_number(text: str) -> bool:
    """Whether it can be a process id, a task or a rank: Python refuses to read a number of thousands of digits."""
    return text.isdecimal() and len(text) < 12
