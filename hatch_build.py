"""Puts the validated rules and the parsed data files into the wheel, so that the first start reads no YAML."""

from __future__ import annotations

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
        from logdoc.kept import data
        from logdoc.rulebase import cache

        folder = Path(tempfile.mkdtemp())
        cache.build(root / "rules", str(folder / cache.BUILT))
        build_data["force_include"][str(folder / cache.BUILT)] = f"logdoc/rulebase/{cache.BUILT}"
        for path in sorted((root / "logdoc" / "data").iterdir()):
            if path.suffix in data.PARSERS:
                data.build(str(path), str(folder / path.name))
                place = str(path.relative_to(root)) + data.BUILT_SUFFIX
                build_data["force_include"][str(folder / path.name)] = place
