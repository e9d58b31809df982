"""`when` trees: matches related by rank, counted, in sequence; facts compared as sizes, versions, words; unknown stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdoc.conditions import Scene, applies, compare, holds
from logdoc.facts import FactSet, read_value
from logdoc.matcher import Matcher, Prefilter
from logdoc.reader import ReadState, read
from logdoc.rulebase import RuleSet, build_index
from logdoc.types.finding import Fact, Match
from logdoc.types.rule import Condition, FactReference, FactValue
from tests.rulekit import engine_of, rules_of

KNOWN: dict[str, FactValue] = {
    "free": 3 * 2**30, "tried": "4.17 GiB", "count": 0, "cpu": True, "torch": "2.10.0", "name": "NVIDIA H100",
    "cuda": "12.10", "cuda.minor": "12.9", "built": "2.6.0a0+ecf3bae40a", "cpus": "0-7", "address": "10.0.0.7", "share": 0.15,
}  # fmt: skip


def found_in(rules: RuleSet, text: str) -> list[Match]:
    matcher = Matcher(Prefilter(build_index(rules.active())))
    return [match for batch in read("log", [text.encode()], ReadState()) for match in matcher.find(batch)]


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        (Condition(fact="free", lt=FactReference(fact="tried")), True),
        (Condition(fact="free", gt="2GiB", lt="3.5GiB"), True),
        (Condition(fact="count", eq=0), True),
        (Condition(fact="count", gte=1), False),
        (Condition(fact="cpu", eq=True), True),
        (Condition(fact="cpu", eq=False), False),
        (Condition(fact="torch", gte="2.9.1"), True),
        (Condition(fact="torch", lt="2.9"), False),
        (Condition(fact="cuda", lt="12.4"), False),
        (Condition(fact="cuda", gt=FactReference(fact="cuda.minor")), True),
        (Condition(fact="cuda", gte="13"), False),
        (Condition(fact="built", gte="2.6"), True),
        (Condition(fact="built", eq="2.6.0"), True),
        (Condition(fact="cpus", eq="0-3"), False),
        (Condition(fact="address", ne="10.0.0.17"), True),
        (Condition(fact="share", gt=0.9), False),
        (Condition(fact="tried", lt="4.2 GiB"), True),
        (Condition(fact="name", matches="H[12]00"), True),
        (Condition(fact="name", in_=("a", "b")), False),
        (Condition(fact="name", gt=3), None),
        (Condition(fact="nobody.knows", eq=1), None),
        (Condition(fact="nobody.knows", known=False), True),
        (Condition(fact="free", gt=FactReference(fact="nobody.knows")), None),
    ],
)
def test_comparisons(condition: Condition, answer: bool | None) -> None:
    assert compare(condition, KNOWN.get) is answer


def test_unknown_facts_neither_hold_nor_refute() -> None:
    unknown, true, false = Condition(fact="x", eq=1), Condition(fact="count", eq=0), Condition(fact="count", eq=1)
    scene = Scene({}, KNOWN.get)
    assert holds(Condition(all=(true, unknown)), scene) is None
    assert holds(Condition(all=(false, unknown)), scene) is False
    assert holds(Condition(any=(true, unknown)), scene) is True
    assert holds(Condition(none=(unknown,)), scene) is None
    assert holds(Condition(any=(false,), none=(false,)), scene) is False


@pytest.mark.parametrize(
    ("log", "fires"),
    [
        ("[rank1]: Fire here\n[rank2]: Water here\n", True),
        ("[rank1]: Fire here\n[rank1]: Water here\n", False),
        ("Fire here\nWater here\n", False),
    ],
)
def test_none_on_the_same_rank(tmp_path: Path, log: str, fires: bool) -> None:
    body = """
    match: {fire: {regex: 'Fire here'}, water: {regex: 'Water here', role: context}}
    when: {all: [{seen: fire}], none: [{seen: water, where: same-rank}]}
    """
    report = engine_of(tmp_path, a__b=body).explain_text(log)
    assert bool(report.timeline) is fires


@pytest.mark.parametrize(("times", "fires"), [((0, 10, 20), True), ((0, 100, 200), False)])
def test_counts_within_a_time(tmp_path: Path, times: tuple[int, ...], fires: bool) -> None:
    body = "match: {fire: {regex: 'Fire here'}}\nwhen: {count: fire, gte: 3, within: 30}"
    log = "".join(f"2024-01-01 00:{at // 60:02}:{at % 60:02} ERROR Fire here\n" for at in times)
    assert bool(engine_of(tmp_path, a__b=body).explain_text(log).timeline) is fires


def test_sequences_ask_for_their_order(tmp_path: Path) -> None:
    body = """
    match: {fire: {regex: 'Fire here'}, smoke: {regex: 'Smoke here', role: context}}
    when: {sequence: [smoke, fire]}
    """
    engine = engine_of(tmp_path, a__b=body)
    assert engine.explain_text("Smoke here\nFire here\n").timeline
    assert not engine.explain_text("Fire here\nSmoke here\n").timeline


@pytest.mark.parametrize(
    ("when", "log", "fires"),
    [
        ("{sequence: [smoke, fire]}", "Smoke here, Fire here", True),
        ("{sequence: [smoke, fire]}", "Fire here, Smoke here", False),
        ("{sequence: [fire, fire]}", "Fire here", False),
        ("{sequence: [fire, fire]}", "Fire here\nFire here", True),
        ("{count: fire, after: smoke}", "Smoke here, Fire here", True),
        ("{count: fire, after: smoke}", "Fire here, Smoke here", False),
    ],
)
def test_the_order_counts_within_a_line_too(tmp_path: Path, when: str, log: str, fires: bool) -> None:
    body = "match: {fire: {regex: 'Fire here'}, smoke: {regex: 'Smoke here', role: context}}\nwhen: " + when
    assert bool(engine_of(tmp_path, a__b=body).explain_text(log + "\n").timeline) is fires


@pytest.mark.parametrize(
    ("one", "other", "same_rank", "other_rank"),
    [
        ("[rank1]: ", "[rank1]: ", True, False),
        ("[rank1]: ", "[rank2]: ", False, True),
        ("[rank1]: ", "", None, None),
        ("", "", None, None),
        ("[default1]:", "[default1]:", True, False),
        ("[default1]:", "[default2]:", False, True),
        ("[default1]:", "", None, None),
        ("[default1]:", "n1:70:9 [0] NCCL WARN ", None, None),
        ("n1:70:9 [0] NCCL WARN ", "n1:70:9 [0] NCCL WARN ", True, False),
        ("n1:70:9 [0] NCCL WARN ", "n1:71:9 [0] NCCL WARN ", False, True),
        ("n1:70:9 [0] NCCL WARN ", "n2:70:9 [0] NCCL WARN ", False, True),
    ],
)
def test_where_another_match_is_seen_from_one(
    tmp_path: Path, one: str, other: str, same_rank: bool | None, other_rank: bool | None
) -> None:
    rules = rules_of(tmp_path, a__b="match: {fire: {regex: 'Fire here'}, water: {regex: 'Water here'}}")
    fire, water = found_in(rules, f"{one}Fire here\n{other}Water here\n")
    assert (fire.is_near(water, "same-rank"), water.is_near(fire, "other-rank")) == (same_rank, other_rank)
    assert fire.is_near(water, "anywhere") is True


@pytest.mark.parametrize(("hosts", "near"), [("11", True), ("12", False)])
def test_the_host_of_another_match(tmp_path: Path, hosts: str, near: bool) -> None:
    rules = rules_of(tmp_path, a__b="match: {fire: {regex: 'Fire here'}}")
    one, other, bare = found_in(
        rules, "".join(f"n{host}:70:9 [0] NCCL WARN Fire here\n" for host in hosts) + "Fire here\n"
    )
    assert (one.is_near(other, "same-host"), one.is_near(bare, "same-host")) == (near, None)


@pytest.mark.parametrize(
    ("where", "log", "fires"),
    [
        ("same-rank", "[rank1]: Fire here\nWater here\n", False),
        ("other-rank", "[rank1]: Fire here\nWater here\n", True),
        ("same-rank", "Fire here\nWater here\n", True),
        ("other-rank", "Fire here\nWater here\n", False),
        ("same-host", "Fire here\nWater here\n", True),
    ],
)
def test_a_condition_where_the_log_does_not_tell(tmp_path: Path, where: str, log: str, fires: bool) -> None:
    body = f"""
    match: {{fire: {{regex: 'Fire here'}}, water: {{regex: 'Water here', role: context}}}}
    when: {{all: [{{seen: fire}}, {{seen: water, where: {where}}}]}}
    """
    assert bool(engine_of(tmp_path, a__b=body).explain_text(log).timeline) is fires


@pytest.mark.parametrize("where", ["same-rank", "other-rank", "same-host", "anywhere"])
@pytest.mark.parametrize("prefixes", [("[rank1]: ", ""), ("", ""), ("", "[rank1]: ")])
def test_what_the_log_does_not_tell_keeps_no_cause_from_explaining(
    tmp_path: Path, where: str, prefixes: tuple[str, str]
) -> None:
    engine = engine_of(
        tmp_path,
        a__fire="match: {seen: {regex: 'Fire here'}}",
        a__smoke="symptom:match: {seen: {regex: 'Smoke here'}}\nexplained_by: [{rule: a.fire, where: " + where + "}]",
    )
    found = engine.explain_text(f"{prefixes[0]}Fire here\n{prefixes[1]}Smoke here\n").diagnoses[0]
    assert (found.rule, found.explains) == ("a.fire", ("a.smoke",))


def test_ten_thousand_processes_are_judged_each_by_its_own_lines(tmp_path: Path) -> None:
    """Quadratic work would take minutes here."""
    body = """
    match: {fire: {regex: 'Fire here'}, water: {regex: 'Water here', role: context}}
    when: {all: [{seen: fire}], none: [{sequence: [fire, water], where: same-rank}]}
    """
    lines = (f"(W pid={pid}) Fire here\n" + f"(W pid={pid}) Water here\n" * (pid != 7777) for pid in range(10_000))
    assert [event.line for event in engine_of(tmp_path, a__b=body).explain_text("".join(lines)).timeline] == [15555]


def test_a_rule_for_other_versions_stays_silent_and_an_unknown_version_excludes_nothing(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, a__b="match: {x: {regex: 'Fire here'}}\napplies: {nccl: '>=2.24'}")
    for version, fits in (("2.24.3", True), ("2.20.5", False), (None, True)):
        facts = FactSet()
        if version:
            facts.add([Fact(id="nccl.version", value=version, origin="log:1")])
        assert applies(rules["a.b"], facts) is fits


@pytest.mark.parametrize(("version", "fits"), [("2.6.0a0+ecf3bae40a", True), ("2.5.1+cu124", False), ("unknown", True)])
def test_a_build_before_the_release_counts_as_the_release(tmp_path: Path, version: str, fits: bool) -> None:
    rules = rules_of(tmp_path, a__b="match: {x: {regex: 'Fire here'}}\napplies: {torch: '>=2.6'}")
    facts = FactSet()
    facts.add([Fact(id="torch.version", value=version, origin="log:1")])
    assert applies(rules["a.b"], facts) is fits


def test_numbers_are_read_and_derived(tmp_path: Path) -> None:
    body = r"""
    match:
      used: {regex: 'holds (?P<size>[\d.]+ \w+)', role: context}
      asked: {regex: 'wants (?P<size>\d+) bytes of (?P<total>[\d.]+ \w+)'}
    facts: {held: {from: [used.size], as: bytes}, wanted: {from: [asked.size], as: bytes}, total: {from: [asked.total], as: bytes}}
    derive: {need: {add: [held, wanted]}, gap: {sub: [need, total]}}
    """
    report = engine_of(tmp_path, a__b=body).explain_text("holds 21.48 GiB\nwants 4477503406 bytes of 22.15 GiB\n")
    assert report.diagnoses[0].values["gap"] == pytest.approx(3.5 * 2**30, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "as_", "value"),
    [
        ("4.17 GiB", "bytes", int(4.17 * 2**30)), ("64MB", "bytes", 64_000_000), ("512 bytes", "bytes", 512),
        ("16280MiB", "bytes", 16280 * 2**20), ("600000 ms", "seconds", 600.0), ("10 min", "seconds", 600.0),
        ("1,024", "int", 1024), ("2.18.3+cuda12.2", "version", "2.18.3"), ("lots", "bytes", None), ("3 apples", "bytes", None),
    ],
)  # fmt: skip
def test_quantities(text: str, as_: str, value: object) -> None:
    assert read_value(text, as_) == value  # type: ignore[arg-type]


def test_the_version_tables_add_what_the_known_versions_imply() -> None:
    from logdoc.facts import version_facts

    facts = FactSet()
    told = {
        "torch.version": "2.5.1",
        "torch.cuda": "12.4",
        "gpu.name": "NVIDIA A100-SXM4-80GB",
        "nccl.version": "2.19.3",
    }
    facts.add([Fact(id=name, value=value, origin="log:1") for name, value in told.items()])
    found = {fact.id: fact.value for fact in version_facts(facts)}
    assert (found["cuda.min_driver"], found["torch.bundled_nccl"], found["gpu.sm"]) == ("525.60.13", "2.21.5", "8.0")
    assert "nccl-subgroup-truncation" in str(found["nccl.known_bad"])
    unknown = FactSet()
    unknown.add([Fact(id=name, value="?", origin="log:1") for name in told])
    assert version_facts(unknown) == []


def test_noise_takes_weak_evidence_back_only_where_it_holds(tmp_path: Path) -> None:
    engine = engine_of(
        tmp_path,
        a__weak="match: {seen: {regex: 'drowned', strength: weak}}",
        a__noise="noise:match: {seen: {regex: 'drowned'}, swam: {regex: 'swims again', role: context}}\n"
        "when: {sequence: [seen, swam]}",
    )
    assert engine.explain_text("drowned\nswims again\n").outcome == "healthy"
    assert [one.rule for one in engine.explain_text("drowned\n").diagnoses] == ["a.weak"]
