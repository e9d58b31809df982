"""The gate before any speed: on every line of a log, the engine finds what each regex by itself finds. Knows no clock.

python benchmarks/sameness.py LOG
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path

import regex

from logdoc.matcher import Matcher, Prefilter
from logdoc.matcher.triggers import triggers_of
from logdoc.reader import ReadState, read
from logdoc.reader.lines import utf8_lines
from logdoc.reader.peel import peel
from logdoc.rulebase import RuleSet, build_index, ready_rules, rule_roots
from logdoc.rulebase.index import is_evidence_of_failure
from logdoc.scanner import hits
from logdoc.scanner.ranges import Orders, processes, ranges_of, scan_all
from logdoc.scanner.windows import Edges
from logdoc.sources.origins import FileOrigin

SALT = 250
CHUNK = 2000  # different lines that one task tries all regexes on

Found = set[tuple[int, str, str]]  # offset of the line, id of the rule, name of the signature


def on_every_line(path: Path, workers: int = 2) -> str:
    """The scan of raw bytes with all it needs (literals, blocks, ranges, the reading of a line) against every regex on
    every line. Raises SystemExit where they differ."""
    salted(path)
    text = path.read_bytes()
    found, brute = by_engine(path, text, workers), by_brute_force(text, workers)
    _must_be_same(found, brute)
    rules = {rule_id for _, rule_id, _ in brute}
    return (
        f"{len(brute)} (offset, signature) pairs of {len(rules)} rules on all {len(text.splitlines())} lines of "
        f"{len(text) / 1e6:.0f} MB, the same by the engine's scan and by each of "
        f"{len(_signatures())} regexes on every line"
    )


def salted(path: Path) -> None:
    """One line in SALT is followed by one of the rules' examples, so that all rules have something to find."""
    examples = [example.log for rule in _rules().active() for example in rule.examples.must_match]
    salt = cycle([line.encode() for log in examples for line in log.splitlines()])
    lines = path.read_bytes().split(b"\n")
    for at in range(0, len(lines), SALT):
        lines[at] += b"\n" + next(salt)
    path.write_bytes(b"\n".join(lines))


def by_engine(path: Path, text: bytes, workers: int) -> Found:
    """Lines by their triggers, nothing given up for being frequent, then the regexes that the prefilter names."""
    for name in ("LEAST_CUT", "MOST_HITS", "MOST_WINDOWS"):
        setattr(hits, name, 1 << 60)
    index = build_index(_rules().active())
    prefilter = Prefilter(index)
    wanted = {(rule_id, name): pattern for rule_id, name, pattern in _signatures()}
    orders = Orders(triggers_of(index, ()), Edges(0, 0), ())
    found: Found = set()
    done = -1
    for scanned in scan_all(ranges_of(FileOrigin(str(path)), 0, len(text)), orders, processes(workers)):
        for at, _, _ in scanned.hits:
            start = text.rfind(b"\n", 0, at) + 1
            if start <= done:
                continue
            done = start
            end = text.find(b"\n", at)
            for body in _bodies(text[start : len(text) if end < 0 else end]):
                for entry, _ in prefilter.hits(body.encode("utf-8", "surrogatepass")):
                    pattern = wanted.get((entry.rule_id, entry.name))
                    if pattern is not None and pattern.search(body):
                        found.add((start, entry.rule_id, entry.name))
    return found


def by_brute_force(text: bytes, workers: int) -> Found:
    """Every regex on every line. Lines that are equal byte by byte are tried once."""
    lines = text.split(b"\n")
    different = list(dict.fromkeys(lines))
    chunks = [different[at : at + CHUNK] for at in range(0, len(different), CHUNK)]
    with ProcessPoolExecutor(workers, get_context("fork" if sys.platform == "linux" else "spawn")) as pool:
        told = dict(zip(different, (one for chunk in pool.map(_tried, chunks) for one in chunk), strict=True))
    found: Found = set()
    at = 0
    for line in lines:
        found |= {(at, *one) for one in told[line]}
        at += len(line) + 1
    return found


def on_records(path: Path) -> str:
    """The matcher on whole records (tracebacks joined) against every regex on each of them. Raises SystemExit."""
    rules = _rules()
    matcher = Matcher(Prefilter(build_index(rules.active())))
    compiled = [
        (rule.id, name, signature, regex.compile(signature.regex, regex.MULTILINE))
        for rule in rules.active()
        for name, signature in rule.match.items()
        if not signature.not_ and not signature.from_ and not rule.fallback and signature.strength != "weak"
    ]
    listed = {(rule_id, name) for rule_id, name, _, _ in compiled}
    found: Found = set()
    brute: Found = set()
    with path.open("rb") as file:
        for batch in read("slice", [file.read()], ReadState()):
            found |= {(match.record.seq, match.rule.id, match.name) for match in matcher.find(batch)}
            for record in batch:
                for rule_id, name, signature, pattern in compiled:
                    texts = record.body.split("\n") if signature.scope == "line" else [record.body]
                    if any(pattern.search(text) for text in texts):
                        brute.add((record.seq, rule_id, name))
    counted = set(matcher.dropped)
    _must_be_same({one for one in found if one[1:] in listed}, {one for one in brute if one[1:] not in counted})
    return f"{len(brute)} (record, signature) pairs on {path.stat().st_size / 1e6:.1f} MB of records likewise"


def _must_be_same(found: Found, brute: Found) -> None:
    lost, extra = brute - found, found - brute
    if lost or extra:
        raise SystemExit(f"not the same: {len(lost)} lost {sorted(lost)[:3]}, {len(extra)} extra {sorted(extra)[:3]}")


@cache
def _rules() -> RuleSet:
    return ready_rules(rule_roots()[:1])


@cache
def _signatures() -> Sequence[tuple[str, str, regex.Pattern[str]]]:
    """All evidence of failures, as regexes without their literals."""
    return [
        (rule.id, name, regex.compile(signature.regex, regex.MULTILINE))
        for rule in _rules().active()
        for name, signature in rule.match.items()
        if is_evidence_of_failure(rule, signature)
    ]


def _tried(lines: Iterable[bytes]) -> list[list[tuple[str, str]]]:
    return [
        [(rule_id, name) for rule_id, name, pattern in _signatures() if any(pattern.search(body) for body in bodies)]
        for bodies in (list(_bodies(line)) for line in lines)
    ]


def _bodies(line: bytes) -> Iterator[str]:
    """What the reader makes of a line: its text without prefixes; several, where a terminal overwrote it."""
    for number, text in utf8_lines([line], 1):
        yield peel(number, text).text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        log = shutil.copy(sys.argv[1], folder)
        sys.stdout.write(on_every_line(Path(log)) + "\n")
