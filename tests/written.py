"""Cases that are written as YAML, read quickly where that can be done."""

from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(path: Path) -> Any:
    """What a file holds."""
    return yaml.load(path.read_text(encoding="utf-8"), _LOADER)
