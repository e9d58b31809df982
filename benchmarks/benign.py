"""Makes logdoc/data/benign.txt: examples of the lines that healthy jobs print again and again, from tests/data/healthy.

python benchmarks/benign.py
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEALTHY, SAMPLE = ROOT / "tests" / "data" / "healthy", ROOT / "logdoc" / "data" / "benign.txt"
OFTEN = 10  # lines of one form in the corpus: it is printed step by step, not once
EXAMPLES = 2  # kept of each form
LONGEST = 400  # characters of one
# printed once by each rank or for each file, or no training: tables of nccl-tests, dumps
ONCE = re.compile(
    r"NCCL INFO Channel|torch/distributed/run\.py|^[0-9a-fx: -]+$|r-xp|\.safetensors$|socket\.cpp"
    r"|^(?:Downloading|upload:) |^ +\d+ +\d+ +float |^ *[\]}],$"
)

_NUMBERS = re.compile(r"[0-9a-f]*\d[0-9a-f.]*(?:[-:,/ ]{0,2}[0-9a-f]*\d[0-9a-f.]*)*")


def form_of(line: str) -> str:
    """A line with its numbers made equal."""
    return " ".join(_NUMBERS.sub("#", line).split())


def benign_lines() -> list[str]:
    """The examples, in order of the corpus."""
    lines = [
        line
        for path in sorted(HEALTHY.glob("*.log"))
        for line in re.split(r"[\r\n]+", path.read_bytes().decode("utf-8", "replace"))
        if line.strip() and not ONCE.search(line)
    ]
    often = {form for form, count in Counter(map(form_of, lines)).items() if count >= OFTEN}
    seen: Counter[str] = Counter()
    found = []
    for line in lines:
        form = form_of(line)
        seen[form] += 1
        if form in often and seen[form] <= EXAMPLES:
            found.append(line[:LONGEST])
    return found


if __name__ == "__main__":
    SAMPLE.write_text("\n".join(benign_lines()) + "\n", encoding="utf-8")
