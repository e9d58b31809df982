"""Prefixes of Python loggers as frameworks set them: logging, loguru, hydra, DeepSpeed, Hugging Face, vLLM, SGLang."""

from __future__ import annotations

from logdoc.dialects.base import Dialect
from logdoc.kept.patterns import lazily

_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|NOTICE|SUCCESS|TRACE)"
_STAMP = r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PLACE = r"[\w./<>-]+\.py:\d+(?::\w+)?"

PYTHON = Dialect(
    "python",
    frozenset("[0123456789DIWECFNST<"),
    (
        # vLLM: `INFO 08-20 18:04:10 [core.py:700] ` and before 0.8 `INFO 08-02 08:50:03 core.py:803] `
        lazily(
            rf"(?P<level>{_LEVEL}) +(?P<time>(?:\d{{4}}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?) "
            rf"\[?(?P<component>(?:[\w./-]+/)?{_PLACE})\] ?"
        ),
        # SGLang: `[2025-01-01 10:00:00 TP0] `, `[2025-01-01 10:00:00 DP1 TP3] `
        lazily(
            rf"\[(?P<time>{_STAMP})(?: (?:[DEP]P\d+ )*TP(?P<local_rank>\d+)(?: [DEP]P\d+)*)?\] "
            rf"(?!\[)(?:(?P<level>{_LEVEL}):? )?"
        ),
        # DeepSpeed: `[2024-12-01 01:02:03,456] [INFO] [logging.py:128:log_dist] [Rank 0] `
        lazily(rf"\[(?P<time>{_STAMP})\] ?\[(?P<level>{_LEVEL})\] ?(?:\[(?P<component>{_PLACE})\] ?)?"),
        # hydra: `[2025-07-28 17:49:57,134][__main__][INFO] - `
        lazily(rf"\[(?P<time>{_STAMP})\]\[(?P<component>[\w.]+)\]\[(?P<level>{_LEVEL})\] ?-? ?"),
        # Hugging Face: `[INFO|trainer.py:2134] 2024-05-01 10:00:00,123 >> `
        lazily(rf"\[(?P<level>{_LEVEL})\|(?P<component>[\w./-]+:\d+)\](?: (?P<time>{_STAMP}))? ?>> "),
        # NeMo/Lightning: `[NeMo W 2024-05-01 10:00:00 nemo_logging:349] `
        lazily(rf"\[NeMo (?P<level>[DIWE]) (?P<time>{_STAMP}) (?P<component>[\w.]+:\d+)\] ?"),
        # loguru: `2023-07-26 09:59:13.215 | INFO     | pkg.mod:func:26 - `
        lazily(rf"(?P<time>{_STAMP}) \| (?P<level>{_LEVEL}) *\| (?P<component>[\w.<>]+:[\w<>]+:\d+) - "),
        # logging, usual formats: `2024-05-01 10:00:00,123 - name - INFO - `, `… INFO name: `, `… [INFO] `
        lazily(
            rf"(?P<time>{_STAMP}),? +(?:[-|:] )?(?:\[?(?P<component>[\w.]+(?::\d+)?)\]? [-|:] )?"
            rf"\[?(?P<level>{_LEVEL})\b\]?(?: *[-|:] ?| +)"
        ),
        lazily(rf"\[(?P<time>{_STAMP})\] ?"),
        lazily(rf"(?P<time>{_STAMP})[:,]? +(?:[-|] )?"),
        # logging.basicConfig: `ERROR:root:`; bracketed and bare levels
        lazily(rf"(?P<level>{_LEVEL}):(?P<component>[A-Za-z_][\w.]*):"),
        lazily(rf"\[(?P<level>{_LEVEL})\] ?(?:\[(?P<component>{_PLACE})\] ?)?"),
        lazily(rf"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL) +(?:- |\[(?P<component>{_PLACE})\] ?)"),
        # pytest's mark of an exception's lines: `E       RuntimeError: …`
        lazily(r"E {3,12}(?=[A-Za-z])"),
        # TensorRT-LLM: `ERROR 2025-07-21 14:34:24.934 factory.py:62] `
        lazily(rf"(?P<level>{_LEVEL}) (?P<time>{_STAMP}) (?:\[?(?P<component>{_PLACE})\] ?)?"),
    ),
)
