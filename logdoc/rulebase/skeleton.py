"""The start of a new rule, with a signature made from a log line: fixed words stay, what varies becomes a pattern."""

from __future__ import annotations

import json
import re

TO_FILL_IN = ("FILL IN", "待填写")  # what marks, in both languages, what the author must write; the lint refuses it
UNREADABLE = "\ufffd"  # for what YAML takes in no form
_VARIES = re.compile(r"(0x[0-9a-fA-F]+)|(\d+(?:\.\d+)*)|('[^']*'|\"[^\"]*\")|(/[\w./-]+)")


def signature_of(line: str) -> str:
    """A regex that fits `line` and its like: numbers, addresses, quoted names and paths may differ."""
    pattern, end = "", 0
    for found in _VARIES.finditer(line):
        pattern += re.escape(line[end : found.start()]).replace(r"\ ", " ")
        if found.group(1):
            pattern += "0x[0-9a-fA-F]+"
        elif found.group(2):
            pattern += r"[\d.]+"
        elif found.group(3):
            pattern += f"{found.group()[0]}[^{found.group()[0]}]*{found.group()[0]}"
        else:
            pattern += r"\S+"
        end = found.end()
    return (pattern + re.escape(line[end:]).replace(r"\ ", " ")).replace(UNREADABLE, ".")


def skeleton(rule_id: str, line: str | None, schema: str) -> str:
    """The text of a rule file to be filled in; what the author must write is marked. `schema`: where the JSON Schema of
    rules is, for the author's editor, seen from the file."""
    line = line and "".join(sign if sign.isprintable() or sign == "\t" else UNREADABLE for sign in line)
    log = line or "FILL IN: a line that shows this fault"
    regex = signature_of(line) if line else "FILL IN: a regex with a rare literal of at least 8 characters"
    return f"""\
# yaml-language-server: $schema={schema}
schema: logdoc.rule/v1
id: {rule_id}
kind: cause            # cause | symptom | noise
severity: error        # fatal | error | warning | info
status: experimental   # confidence is capped until this says stable
title: {{en: FILL IN, zh: 待填写}}
summary:
  en: FILL IN what it means.   # a named group of the regex may be quoted by its name in braces
  zh: 待填写含义。
match:
  seen: {{regex: {json.dumps(regex, ensure_ascii=False)}, strength: strong}}
restart: fix-first
fixes:
  - title: {{en: FILL IN, zh: 待填写}}
    run: {{any: ["FILL IN a command"]}}
    risk: safe
    verify: {{run: "FILL IN a command", see: {{en: FILL IN what it must show, zh: 待填写应看到的结果}}}}
examples:
  must_match:
    - log: {json.dumps(log, ensure_ascii=False)}
      expect: {{signature: seen, top: true}}
  must_not_match:
    - {{why: FILL IN, log: "FILL IN the nearest line that is something else"}}
"""
