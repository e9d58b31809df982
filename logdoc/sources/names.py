"""What a file's name alone tells: whether a folder's file may be a log, and how names are sorted and shown."""

from __future__ import annotations

import os
import re

from logdoc.kept.patterns import lazily

COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zstd")
TEXT_SUFFIXES = (".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".jsonl", ".ndjson")
ERROR_FILE = "error.json"
_URL = lazily(r"[A-Za-z][A-Za-z0-9+.-]+://")

# Kept out of a folder's reading by name, so that a training folder's code, configuration, data, pictures and
# weights are not even opened. Anything else is judged by its first bytes.
_NOT_LOG_SUFFIXES = (
    ".py .pyc .pyi .pyx .ipynb .c .cc .cpp .cu .cuh .h .hpp .o .a .so .rs .go .js .ts .css .java .jar .whl .egg "
    ".sh .bash .sbatch .slurm .cmd .bat .ps1 .patch .diff .md .rst .tex .html .htm .xml .pdf .doc .docx .ppt .pptx "
    ".json .yaml .yml .toml .ini .cfg .conf .env .lock .csv .tsv .xls .xlsx .parquet .arrow .feather .db .sqlite "
    ".pt .pth .ckpt .bin .safetensors .gguf .ggml .onnx .pkl .pickle .npy .npz .h5 .hdf5 .msgpack .tfrecord .lmdb "
    ".tfevents .prof .nsys-rep .qdrep .ncu-rep .distcp .metadata .idx .model .vocab .wandb .sif .img .iso .deb .rpm "
    ".png .jpg .jpeg .gif .bmp .svg .webp .tif .tiff .ico .mp3 .mp4 .wav .flac .avi .mov .mkv .webm .ttf .woff "
    ".swp .bak .pem .key .crt .pub .md5 .sha256 .pid"
)
_NOT_LOG_NAMES = (
    "readme license licence notice copying authors changelog contributing makefile dockerfile jenkinsfile version "
    "requirements.txt vocab.txt merges.txt cmakelists.txt readme.txt license.txt"
)
_NOT_LOGS = frozenset((*_NOT_LOG_SUFFIXES.split(), *_NOT_LOG_NAMES.split()))
SKIPPED_FOLDERS = frozenset(("__pycache__", "node_modules", "site-packages"))

# PyTorch writes a dump to <prefix><global rank>; the prefixes of its releases end in `trace_rank_`, NVIDIA's
# resiliency extension takes `_dump_`; TORCH_FR_DUMP_TEMP_FILE may set any other.
_DUMP_NAME = lazily(r"(?:.*trace_rank_|.*_dump_)\d+(?:\.(?:pkl|pickle|json))?|torch_fr_.*", re.IGNORECASE)


def without_compression_suffix(name: str) -> str:
    """`rank_3.log.gz` → `rank_3.log`: the suffix is only for finding the name inside, the bytes decide the format."""
    for suffix in COMPRESSION_SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def is_dump_name(name: str) -> bool:
    """Does a file of this name hold a flight-recorder dump, if its content agrees?"""
    return _DUMP_NAME.fullmatch(without_compression_suffix(name)) is not None


def may_be_log(name: str) -> bool:
    """Is a file of this name, found in a folder, worth opening?"""
    inner = without_compression_suffix(name).lower()
    if name.startswith("."):
        return False
    if inner == ERROR_FILE or is_dump_name(name):
        return True
    return inner not in _NOT_LOGS and os.path.splitext(inner)[1] not in _NOT_LOGS and ".tfevents." not in inner


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Sorts `rank_2` before `rank_10`; the name itself settles `1` against `01`."""
    parts: list[str | int] = list(re.split(r"([0-9]+)", name))
    parts[1::2] = [int(digits) for digits in parts[1::2]]
    return parts, name


def shown(path: str) -> str:
    """`path` fit for a report: a file name is foreign data too, and may hold escapes or bytes that are no UTF-8."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def is_url(argument: str) -> bool:
    """`s3://…`, `https://…` and their like; a Windows drive is not."""
    return _URL.match(argument) is not None
