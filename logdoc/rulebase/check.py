"""Is a rule good? Lint of one rule and of a set, and its examples run through the whole engine (handed in)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import regex

from logdoc.kept.sentences import FILTERS, PLACEHOLDER
from logdoc.kept.yaml_source import locate
from logdoc.rulebase.benign import benign_line
from logdoc.rulebase.index import is_evidence_of_failure, signature_literals
from logdoc.rulebase.literals import Literals
from logdoc.rulebase.load import RuleSet
from logdoc.rulebase.near_miss import how_far
from logdoc.rulebase.skeleton import TO_FILL_IN
from logdoc.types.errors import RuleProblem
from logdoc.types.quantity import size_in_bytes
from logdoc.types.report import Diagnosis, Report
from logdoc.types.rule import OPERATORS, Condition, Expectation, MustMatch, Rule, Signature, Text
from logdoc.types.value import asdict

Explain = Callable[[str], Report]

ALWAYS_KNOWN = frozenset({"python", "rank", "local_rank", "host"})
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SLOWEST_SECONDS = 0.02
_HOSTILE = ("a" * 8000, "a." * 4000, " " * 8000, "1" * 8000, "ab " * 2700, "A_" * 4000, "x: " * 2700)


def lint(rules: RuleSet) -> list[RuleProblem]:
    """Every fault of every rule that can be seen without running it."""
    problems = []
    for rule in rules.rules.values():
        found = [*_unfinished(rule), *_signatures(rule), *_conditions(rule), *_texts(rule), *_shape(rule)]
        found += _relations(rule, rules)
        problems += [_at(rule, where, message) for where, message in found]
    return problems


Fault = tuple[tuple[str | int, ...], str]


def _at(rule: Rule, where: tuple[str | int, ...], message: str) -> RuleProblem:
    try:
        line, column = locate(Path(rule.path).read_text(encoding="utf-8"), where)
    except OSError:
        line, column = 1, 1
    return RuleProblem(rule.path, line, column, message)


def _unfinished(rule: Rule) -> Iterator[Fault]:
    """What `logdoc rules new` left to its author."""
    for where, text in _strings(asdict(rule), ()):
        if any(mark in text for mark in TO_FILL_IN):
            yield where, f"still to be filled in: {text[:60]}"


def _strings(value: object, where: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text in a rule, with its place in the file."""
    if isinstance(value, str) and where != ("path",):
        yield where, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*where, str(key).removesuffix("_")))
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _strings(item, (*where, index))


def _signatures(rule: Rule) -> Iterator[Fault]:
    for name, signature in rule.match.items():
        where = ("match", name)
        for pattern in (signature.regex, *signature.not_):
            try:
                compiled = regex.compile(pattern, regex.MULTILINE)
            except regex.error as error:
                yield where, f"the regex does not compile: {error}"
                continue
            if _slowest(compiled) > _SLOWEST_SECONDS:
                yield where, f"the regex is slow on hostile input (quadratic?): {pattern}"
        try:
            literals = signature_literals(signature)
        except (re.error, RecursionError):
            continue
        if literals is None:
            yield where, "the regex guarantees no literal of three characters; write `needs`"
        elif any("\x00" in text for text in literals.strings):
            yield where, "a literal must not hold NUL: the reader takes it out of every line"
        elif literals.caseless and not all(text.isascii() for text in literals.strings):
            yield where, "a caseless literal must be ASCII"
        elif is_evidence_of_failure(rule, signature):
            yield from ((where, message) for message in _frequent(literals))
        if literals is not None:
            yield from ((where, message) for message in _unfound(rule, signature, literals))


def _frequent(literals: Literals) -> Iterator[str]:
    """What healthy jobs print all the time must not make their logs worth reading: no more than one line in 10,000."""
    for text in sorted(literals.strings):
        line = benign_line(text, literals.caseless)
        if line is not None:
            yield f"the literal {text!r} is in lines that healthy jobs print all the time; give rarer `needs`: {line}"


def _unfound(rule: Rule, signature: Signature, literals: Literals) -> Iterator[str]:
    """Lines of the rule's own examples that match, though the literals would never have let the regex see them."""
    for example in rule.examples.must_match:
        for line in example.log.split("\n"):
            text = line.lower() if literals.caseless else line
            if not any(one in text for one in literals.strings) and re.search(signature.regex, line):
                yield f"no literal of it is in this example, so it would not be found: {line.strip()[:120]}"


def _slowest(compiled: regex.Pattern[str]) -> float:
    """Seconds for the worst hostile text; of three tries the best counts, so that a busy machine accuses nobody."""
    return max(min(_seconds(compiled, text) for _ in range(3)) for text in _HOSTILE)


def _seconds(compiled: regex.Pattern[str], text: str) -> float:
    started = time.perf_counter()
    try:
        compiled.search(text, timeout=1.0)
    except TimeoutError:
        return 1.0
    return time.perf_counter() - started


def _conditions(rule: Rule) -> Iterator[Fault]:
    if rule.when is None:
        return
    for node, where in rule.when.nodes(("when",)):
        if not any(getattr(node, name) is not None for name in OPERATORS):
            yield where, f"a condition needs one of {', '.join(OPERATORS)}"
        for named in _signatures_of(node):
            if named not in rule.match:
                yield where, f"no signature is called {named!r}"
    if _wants_a_name(rule.when):
        named_here = {name for node, _ in rule.when.nodes() for name in _signatures_of(node)}
        for name, signature in rule.match.items():
            if signature.role == "evidence" and name not in named_here:
                yield ("match", name), "`when` never names this signature, so it can never make the rule hold"


def _signatures_of(node: Condition) -> tuple[str, ...]:
    single = (node.seen, node.count, node.ranks, node.silent_after, node.after)
    return (*(name for name in single if name is not None), *(node.sequence or ()))


def _wants_a_name(node: Condition) -> bool:
    """Whether the condition holds only where some signature that it names was seen."""
    if node.any is not None:
        return all(map(_wants_a_name, node.any))
    if node.all is not None:
        return any(map(_wants_a_name, node.all))
    return any(value is not None for value in (node.seen, node.count, node.ranks, node.sequence))


def _texts(rule: Rule) -> Iterator[Fault]:
    known = _names(rule)
    for where, text in _all_texts(rule):
        if set(PLACEHOLDER.findall(text.en)) != set(PLACEHOLDER.findall(text.zh)):
            yield where, "en and zh name different placeholders"
        if not _CHINESE.search(text.zh):
            yield where, "zh is not Chinese"
        if _CHINESE.search(text.en):
            yield where, "en contains Chinese"
        for name, _, default in PLACEHOLDER.findall(text.en):
            if "." not in name and name not in known and not default:
                yield where, f"{{{name}}} is declared nowhere"
        yield from ((where, message) for message in _filters(text.en))
    for index, fix in enumerate(rule.fixes):
        for command in (line for lines in fix.run.values() for line in lines):
            if _CHINESE.search(command.split("#")[0]):
                yield ("fixes", index, "run"), "a command is the same in both languages"
            yield from ((("fixes", index, "run"), message) for message in _filters(command))


def _filters(template: str) -> Iterator[str]:
    for _, named, _ in PLACEHOLDER.findall(template):
        if named and named not in FILTERS:
            yield f"no filter is called {named!r}; there are {', '.join(FILTERS)}"


def _names(rule: Rule) -> set[str]:
    captures = {
        name
        for signature in rule.match.values()
        for name in re.findall(r"\(\?P<(\w+)>", signature.regex)
    }  # fmt: skip
    return captures | set(rule.facts) | set(rule.derive) | ALWAYS_KNOWN


def _all_texts(rule: Rule) -> Iterator[tuple[tuple[str | int, ...], Text]]:
    yield ("title",), rule.title
    yield ("summary",), rule.summary
    for index, fix in enumerate(rule.fixes):
        yield ("fixes", index, "title"), fix.title
        if fix.why is not None:
            yield ("fixes", index, "why"), fix.why
        if fix.verify.see is not None:
            yield ("fixes", index, "verify", "see"), fix.verify.see


def _shape(rule: Rule) -> Iterator[Fault]:
    if not rule.examples.must_match and rule.status != "retired":
        yield ("examples",), "must_match is empty"
    if not rule.examples.must_not_match and rule.status != "retired":
        yield ("examples",), "must_not_match is empty: show the nearest line this rule must leave alone"
    if rule.kind != "noise" and not rule.fixes:
        yield ("id",), "a cause or symptom needs at least one fix"
    if rule.kind == "symptom" and not rule.explained_by:
        yield ("kind",), "a symptom names the causes that may explain it (explained_by)"
    if rule.kind != "symptom" and rule.explained_by:
        yield ("explained_by",), "only symptoms are explained; a cause masks"
    for index, fix in enumerate(rule.fixes):
        verify = fix.verify
        if verify.probe is None and verify.run is None and verify.see is None:
            yield ("fixes", index, "verify"), "say how to see that the fix worked"


def _relations(rule: Rule, rules: RuleSet) -> Iterator[Fault]:
    explaining = tuple(one.rule for one in rule.explanations)
    for name, patterns in (("masks", rule.masks), ("explained_by", explaining)):
        for index, pattern in enumerate(patterns):
            if not any(fnmatchcase(other, pattern) for other in rules.rules):
                yield (name, index), f"no rule is called {pattern!r}"
    if rule.replaced_by is not None and rule.replaced_by not in rules.rules:
        yield ("replaced_by",), f"no rule is called {rule.replaced_by!r}"
    if rule.replaced_by is not None and rule.status != "retired":
        yield ("replaced_by",), "only a retired rule is replaced"


def run_examples(rules: Iterable[Rule], explain: Explain) -> list[RuleProblem]:
    """Every example of these rules through the whole engine: what must match does, as expected, and nothing else."""
    problems = []
    for rule in rules:
        for index, example in enumerate(rule.examples.must_match):
            faults = _must_match(rule, example, explain(example.log))
            problems += [_at(rule, ("examples", "must_match", index), fault) for fault in faults]
        for index, near_miss in enumerate(rule.examples.must_not_match):
            if rule.id in fired(explain(near_miss.log)):
                problems.append(_at(rule, ("examples", "must_not_match", index), "matches, but must not"))
    return problems


def fired(report: Report) -> set[str]:
    """The ids of all rules that hold for a log, however unlikely ranking found them."""
    return {entry.rule for entry in report.timeline} | set(report.noise)


def _must_match(rule: Rule, example: MustMatch, report: Report) -> Iterator[str]:
    if rule.id not in fired(report):
        yield f"does not match{how_far(rule, example.log, example.expect.signature)}"
        return
    expect = example.expect
    causes = {entry.rule for entry in report.timeline if entry.kind == "cause"} - {rule.id, *expect.also}
    strangers = {other for other in causes if not any(fnmatchcase(other, pattern) for pattern in rule.masks)}
    if strangers:
        yield f"also fires {', '.join(sorted(strangers))}; separate them, or name them under expect.also"
    if expect.top and (not report.diagnoses or report.diagnoses[0].rule != rule.id):
        yield f"is not the top answer, but {report.diagnoses[0].rule if report.diagnoses else 'nothing'}"
    diagnosis = next((one for one in report.diagnoses if one.rule == rule.id), None)
    if diagnosis is not None:
        yield from _as_expected(expect, diagnosis)


def _as_expected(expect: Expectation, diagnosis: Diagnosis) -> Iterator[str]:
    seen = [line for line in diagnosis.evidence if expect.signature in (None, line.signature)]
    if not seen:
        yield f"matches by {sorted({line.signature for line in diagnosis.evidence})}, not by {expect.signature}"
    if expect.line is not None and expect.line not in {line.line for line in seen}:
        yield f"matches at line {sorted({line.line for line in seen})}, not at {expect.line}"
    if expect.rank is not None and expect.rank not in {line.rank for line in seen}:
        yield f"blames rank {sorted(str(line.rank) for line in seen)}, not {expect.rank}"
    for name, wanted in expect.facts.items():
        value = diagnosis.values.get(name)
        if not _close(value, wanted):
            yield f"{name} is {value!r}, not {wanted!r}"


def _close(value: object, wanted: object) -> bool:
    """Equal, or equal as a size to one part in a thousand (`3.50GiB` stands for 3758096384 bytes)."""
    left, right = size_in_bytes(value), size_in_bytes(wanted)
    if left is None or right is None:
        return str(value) == str(wanted)
    return abs(left - right) <= 1e-3 * max(abs(left), abs(right), 1)
