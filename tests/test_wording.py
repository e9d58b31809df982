"""Texts: what is not known is not said; commands keep a visible blank; both languages say the same things."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from logdoc.kept.sentences import PLACEHOLDER, sentences
from logdoc.render.wrap import wrapped
from logdoc.reporting.wording import fill, fill_command, stated, title
from logdoc.types.finding import Fact
from logdoc.types.rule import FactValue, Text


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("It needs {need:gib}. It has {total:gib}.", "It needs 4.00 GiB."),
        ("Needs {need:gib} of {total:gib}. Version 2.1 is old.", "Version 2.1 is old."),
        ("{n:n} times after {t:ms}", "1,234 times after 10 min"),
        ("需要 {need:gib}。共有 {total:gib}。", "需要 4.00 GiB。"),
        ("uses {x|python}", "uses python"),
        ("{text:gib} is shown as it is", "lots is shown as it is"),
        ("a dict {1: 2} stays", "a dict {1: 2} stays"),
    ],
)
def test_sentences(template: str, said: str) -> None:
    assert fill(template, {"need": 4 * 2**30, "n": 1234, "t": "600000", "text": "lots"}) == said


KNOWN: dict[str, FactValue] = {
    "job.script": "pre train.py", "host": "n7", "rank.pid": 41, "rank": 3, "traceback.file": "/ck/a.pt", "hub.repo": "o/m",
    "log.name": "run.log",
}  # fmt: skip


@pytest.mark.parametrize(
    ("template", "typed"),
    [
        ("python <script> ...", "python 'pre train.py' ..."),
        ("bash -c 'python train.py'", "bash -c 'python train.py'"),  # no quotes within quotes
        ("python mytrain.py; cat train.py.log", "python mytrain.py; cat train.py.log"),
        ("sbatch --exclude=<node> job.sh", "sbatch --exclude=n7 job.sh"),
        ("scontrol update nodename=NODE state=drain", "scontrol update nodename=n7 state=drain"),
        ("kubectl cordon <node>", "kubectl cordon <node>"),  # a pod is no node
        ("py-spy dump --pid <pid of rank {rank}>", "py-spy dump --pid 41"),
        ("py-spy dump --native --pid <pid>; gdb -p <pid>", "py-spy dump --native --pid 41; gdb -p 41"),
        ("kill <pid>", "kill <pid>"),  # of another process
        ("mv CHECKPOINT CHECKPOINT.bad; ls OLD_CHECKPOINT", "mv /ck/a.pt /ck/a.pt.bad; ls OLD_CHECKPOINT"),
        ("hf download ORG/MODEL; ls /x/ORG/MODEL", "hf download o/m; ls /x/ORG/MODEL"),
        ("grep Error <log> | head", "grep Error run.log | head"),
    ],
)
def test_what_the_log_names_is_filled_into_commands(template: str, typed: str) -> None:
    assert fill_command(template, KNOWN) == typed


def test_an_unknown_process_is_asked_for_by_its_rank() -> None:
    assert fill_command("py-spy dump --pid <pid of rank {rank}>", {"rank": 3}) == "py-spy dump --pid <pid of rank 3>"
    assert fill_command("py-spy dump --pid <pid of rank {rank}>", {}) == "py-spy dump --pid <pid of rank <rank>>"


def test_a_hostile_name_fills_no_command_with_more_than_a_word() -> None:
    hostile = {"job.script": "x.py; touch {python} '$(id)'", "python": "p"}
    assert fill_command("python <script>", hostile) == "python 'x.py; touch {python} '\"'\"'$(id)'\"'\"''"


def test_a_command_shows_what_the_user_must_set() -> None:
    assert fill_command("{python|python} -m x --host {host}", {}) == "python -m x --host <host>"


@pytest.mark.parametrize(
    ("value", "unit", "wanted"),
    [
        (1 << 26, "bytes", "64 MiB"),
        (80 << 30, "bytes", "80.00 GiB"),
        (4096, "bytes", "4096"),
        (600, "s", "10 min"),
        (12, "", "12"),
        ("unlimited", "bytes", "unlimited"),
        (True, "bytes", "True"),
    ],
)
def test_a_fact_is_stated_in_its_unit(value: FactValue, unit: str, wanted: str) -> None:
    assert stated(Fact(id="shm.free", value=value, origin="shm@n", unit=unit)) == f"shm.free = {wanted}"


@pytest.mark.parametrize("file", ["phrases.yaml", "runner_phrases.yaml"])
def test_own_sentences_exist_twice_with_the_same_placeholders(file: str) -> None:
    for key, text in sentences(file).items():
        names = [{found["name"] for found in PLACEHOLDER.finditer(part)} for part in (text.en, text.zh)]
        assert names[0] == names[1], key
        assert text.en.strip()
        assert text.zh.strip()


@pytest.mark.parametrize("text", ["word " * 60, "显存不足，需要更多显存" * 20, "x" * 300, "mixed 显存 text " * 30, ""])
def test_wrapping_counts_cells_and_loses_nothing(text: str) -> None:
    lines = list(wrapped(text, 40, "  "))
    assert all(cell_len(line) <= 40 for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("captured", "typed"),
    [
        ("eth0", "ip link show eth0"),
        ("/data/a-b_1.tar", "ip link show /data/a-b_1.tar"),
        ("$(touch pwned)", "ip link show '$(touch pwned)'"),
        ("x; rm -rf ~", "ip link show 'x; rm -rf ~'"),
        ("a\nb", "ip link show 'a b'"),
    ],
)
def test_a_hostile_log_cannot_shape_a_command(captured: str, typed: str) -> None:
    assert fill_command("ip link show {name}", {"name": captured}) == typed


def test_a_title_with_an_unknown_part_is_still_said() -> None:
    text = Text(en="It raised {type}", zh="抛出了 {type}")
    assert title(text, "en", {"type": "KeyError"}) == "It raised KeyError"
    assert title(text, "zh", {}) == "抛出了 …"
