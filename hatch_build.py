"""Puts the validated rules and the parsed observations into the wheel, so that the first start reads no YAML."""

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
        from logdoc.kept import BUILT_SUFFIX, build_document
        from logdoc.rulebase.cache import BUILT, build
        from logdoc.rulebase.observations import parse_observations

        folder = Path(tempfile.mkdtemp())
        build(root / "rules", str(folder / BUILT))
        data = "logdoc/data/observations.yaml"
        build_document(str(root / data), parse_observations, str(folder / "observations"))
        build_data["force_include"][str(folder / BUILT)] = f"logdoc/rulebase/{BUILT}"
        build_data["force_include"][str(folder / "observations")] = data + BUILT_SUFFIX
