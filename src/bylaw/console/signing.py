"""Signatures on policies, in the pack's folder: accepted, rejected, or accepted as unenforced."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bylaw.console.records import alone, put
from bylaw.errors import UsageError
from bylaw.pack.review import REVIEW, Sides, Signature, Word, read_signatures
from bylaw.policy.folder import READY
from bylaw.review.noted import why_unenforced
from bylaw.scan.written import dump


def is_installed(root: Path) -> bool:
    """Whether a folder is part of an installed package, which an upgrade replaces."""
    place = root.resolve()
    return place.is_relative_to(READY.resolve()) or bool({"site-packages", "dist-packages"} & set(place.parts))


def refuse_installed(root: Path) -> None:
    """A review is written into the pack's folder, which must not be one that an installation may replace."""
    if is_installed(root):
        raise UsageError(
            "this pack is part of an installed package: an upgrade would delete the review",
            place=str(root),
            hint="copy the folder and review the copy",
        )


def sign(root: Path, sides: Mapping[str, Sides], words: Mapping[str, Word], by: str, note: str) -> None:
    """Write signatures of the current policies: accepted or rejected, by whom, with a note."""
    if not words:
        return
    text = "# Who accepted which check. A signature lapses when the sentence or the check changes.\n"
    today = datetime.now(UTC).date().isoformat()
    # The lock keeps two people who sign at the same time from overwriting each other.
    with alone(root / REVIEW):
        signed = read_signatures(root)
        for name, word in words.items():
            signed[name] = Signature(word, by, today, sides[name].sentence, sides[name].check, note)
        body = {name: msgspec.to_builtins(each) for name, each in signed.items()}
        put(root / REVIEW, text + dump({"policies": body}))


def accept_unenforced(root: Path, name: str, by: str, reason: str) -> None:
    """Mark a policy as unenforced in policies.yaml, with the person who accepted that and the reason."""
    path = root / "policies.yaml"
    text = path.read_text(encoding="utf-8")
    word = json.dumps({"accepted_by": by, "reason": reason or why_unenforced(root, name)}, ensure_ascii=False)
    place = re.compile(rf"^(\s*)- id: {re.escape(name)}$", re.MULTILINE)
    made, count = place.subn(lambda match: f"{match[0]}\n{match[1]}  unenforced: {word}", text)
    if count != 1:
        hint = f"write `unenforced: {word}` there yourself"
        raise UsageError(f"policies.yaml must have one line `- id: {name}`", place=str(path), hint=hint)
    path.write_text(made, encoding="utf-8")
