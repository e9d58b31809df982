"""Copies 16 MiB between every ordered pair of visible GPUs and compares the data byte for byte.

Prints {"copying": "0-1"} before each copy (so a hang names its pair) and at the end {"p2p": true, "bad": […], …}.
Where torch reaches no GPU at all, its exception is the last word.
"""

from __future__ import annotations

import importlib
import json
import sys

if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[0]
SIZE = 16 << 20


def say(value: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> None:
    torch = importlib.import_module("torch")
    count = torch.cuda.device_count()
    if not count:
        torch.cuda.init()  # raises, with CUDA's own reason
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    bad, peers = [], []
    generator = torch.Generator().manual_seed(20240229)
    for source, target in pairs:
        name = f"{source}-{target}"
        if torch.cuda.can_device_access_peer(source, target):
            peers.append(name)
        say({"copying": name})
        original = torch.randint(0, 256, (SIZE,), dtype=torch.uint8, generator=generator)
        there = original.to(torch.device("cuda", source)).to(torch.device("cuda", target))
        torch.cuda.synchronize(target)
        if not torch.equal(there.cpu(), original):
            bad.append(name)
    say({"p2p": True, "bad": bad, "peers": peers, "pairs": len(pairs)})


main()
