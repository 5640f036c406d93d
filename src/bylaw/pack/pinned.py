"""What of a pack decides on calls: two versions that differ in nothing else decide alike."""

import ast
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from bylaw.policy.folder import PackFolder
from bylaw.policy.python import parse_python


class Pinned(Struct, frozen=True):
    """The records and the code that decide. Cases, comments, the document's text and reviews do not."""

    records: Mapping[str, Any]
    """By name, as they were read: what stands in them, not how it is written."""
    code: Mapping[str, str]
    """Guards and look-up functions, by file."""

    def digest(self) -> str:
        """A name for it that another spelling of the same does not change."""
        code = {file: ast.dump(parse_python(text)) for file, text in self.code.items()}
        told = json.dumps([self.records, code], sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()


def pinned_of(folder: PackFolder) -> Pinned:
    """What of the files of a pack decides."""
    manifest = folder.manifest
    records: dict[str, Any] = {part: source.data for part, source in folder.parts.items()}
    named = [str(manifest.name), str(manifest.version)]
    told = [*named, str(manifest.now), str(manifest.criterion), str(manifest.world), manifest.shield]
    if manifest.timezone != "":
        told.append(str(manifest.timezone))
    return Pinned(records | {"pack": told}, {**folder.guards, **folder.lookups})
