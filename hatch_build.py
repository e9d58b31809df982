"""Puts the validated rules and the parsed data files into the wheel, so that the first start reads no YAML."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuiltRules(BuildHookInterface[Any]):
    """An editable install is left alone: it reads the YAML that is being edited."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, self.root)
        from logdoc.catalog.tables import parse_document, parse_rows
        from logdoc.kept import BUILT_SUFFIX, build_document
        from logdoc.rulebase.cache import BUILT, build
        from logdoc.rulebase.observations import parse_observations

        folder = Path(tempfile.mkdtemp())
        build(root / "rules", str(folder / BUILT))
        build_data["force_include"][str(folder / BUILT)] = f"logdoc/rulebase/{BUILT}"
        parsers = {".tsv": parse_rows, ".yaml": parse_document}
        named = {"observations.yaml": parse_observations, "weights.json": json.loads}
        for path in sorted((root / "logdoc" / "data").iterdir()):
            parse = named.get(path.name) or parsers.get(path.suffix)
            if parse is not None:
                build_document(str(path), parse, str(folder / path.name))
                place = str(path.relative_to(root)) + BUILT_SUFFIX
                build_data["force_include"][str(folder / path.name)] = place
