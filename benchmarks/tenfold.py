"""Writes a pack that makes the rules ten times as many: copies of the shipped ones with other words to look for."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from logdoc.rulebase import rule_roots

COPIES = 9

_WORD = re.compile(r"(?<![\\<A-Za-z])[A-Za-z]{4,}")


def write_pack(folder: Path) -> int:
    """The pack's rules in `folder`; how many there are."""
    count = 0
    for path in sorted(Path(rule_roots()[0]).rglob("*.yaml")):
        rule = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        if not isinstance(rule, dict) or rule.get("schema") != "logdoc.rule/v1":
            continue
        for number in range(1, COPIES + 1):
            copy = {**rule, "id": f"{rule['id']}-{number}", "examples": {"must_match": [], "must_not_match": []}}
            copy["match"] = {name: _altered(signature, number) for name, signature in rule["match"].items()}
            target = folder / f"{copy['id'].replace('.', '/')}.yaml"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(yaml.dump(copy, allow_unicode=True, Dumper=yaml.CSafeDumper), encoding="utf-8")
            count += 1
    return count


def _altered(signature: dict[str, Any], number: int) -> dict[str, Any]:
    """The signature with the letters of its words moved along the alphabet."""
    altered = dict(signature)
    altered["regex"] = _moved(signature["regex"], number)
    if "needs" in signature:
        altered["needs"] = [_moved(text, number) for text in signature["needs"]]
    return altered


def _moved(text: str, number: int) -> str:
    def move(found: re.Match[str]) -> str:
        return "".join(
            chr((ord(one) - base + 2 * number) % 26 + base) for one in found.group() for base in [_base(one)]
        )

    return _WORD.sub(move, text)


def _base(letter: str) -> int:
    return ord("a") if letter.islower() else ord("A")


if __name__ == "__main__":
    sys.stdout.write(f"{write_pack(Path(sys.argv[1]))} rules\n")
