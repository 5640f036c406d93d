"""Adds waivers, attestations, comments and signatures to files that people may also edit.

Comments in the YAML are kept.
"""

import json
import os
import re
import secrets
import textwrap
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml
from msgspec import Struct

from bylaw.audit.attestation import Attestation, every_attestation
from bylaw.audit.waiver import Waiver, read_waivers
from bylaw.errors import BylawError, UsageError
from bylaw.pack.review import REVIEW, Sides, Signature, Word, read_signatures
from bylaw.policy.folder import READY
from bylaw.policy.yaml import read_yaml_file
from bylaw.review.check import why_unenforced
from bylaw.scan.written import dump

try:
    import fcntl
except ImportError:  # Windows does not have `fcntl` locks.
    fcntl = None

FALSE_ALARM = "false alarm: "
"""The text with which the reason of a waiver for a false alarm starts."""
LONGEST = 500
"""The maximum length of a reason or a name, in characters."""
COMMENTS = "comments.yaml"
COMMENT = 2000
"""The maximum length of a comment, in characters."""
_WAIVERS = (
    "# Waived findings, each with an owner, a reason and an expiry date: see `bylaw audit --waivers`.\nwaivers:\n"
)
_ATTESTATIONS = "# Reviewers' answers about undecided calls. `bylaw audit` applies them.\nattestations:\n"
_COMMENTS = "# Comments on policies. They do not affect sign-off: see `bylaw review`.\ncomments:\n"
_ITEM = re.compile(r"^([ ]*)- ", re.MULTILINE)
_EMPTY = re.compile(r":[ ]*\[\][ ]*\n\s*\Z")


class Written(Struct, frozen=True):
    """The result of a change to a file, with the lines that were added."""

    path: Path
    lines: str
    told: str = ""
    was_there: bool = False
    """Whether the file already contained the record, so that nothing was written."""


class Comment(Struct, frozen=True):
    """A comment on one version of a policy. Comments do not affect sign-off."""

    policy: str
    by: str
    on: str
    text: str
    sentence: str = ""
    check: str = ""


def _comments(path: Path) -> list[Comment]:
    if not path.is_file():
        return []
    listed: Any = read_yaml_file(path, file=str(path)).data.get("comments") or []
    try:
        return msgspec.convert(listed, list[Comment], strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"not a valid list of comments: {error}", place=str(path)) from None


def attest(path: Path, given: Sequence[Attestation]) -> Written:
    records = [msgspec.to_builtins(each) for each in given]
    return add_records(path, records, head=_ATTESTATIONS, count=lambda made: len(every_attestation(made)))


def comments_of(root: Path, policy: str) -> list[Comment]:
    return [each for each in _comments(root / COMMENTS) if each.policy == policy]


def comment_on(root: Path, given: Comment) -> Written:
    text = given.text.strip()
    if not text:
        raise UsageError("enter a comment")
    if len(text) > COMMENT:
        raise UsageError(f"the comment has more than {COMMENT:,} characters")
    record = msgspec.to_builtins(given) | {"text": text}
    return add_records(root / COMMENTS, [record], head=_COMMENTS, count=lambda path: len(_comments(path)))


def waive(path: Path, what: Sequence[Mapping[str, Any]], *, owner: str, reason: str, expires: str) -> Written:
    """Waive findings until a given day.

    Each entry names either a `finding` with its `verdicts`, or a whole `policy`.
    """
    _needed(owner, "the name of the person responsible")
    _needed(reason, "a reason")
    try:
        last = date.fromisoformat(expires)
    except ValueError:
        raise UsageError(f"`{expires}` is not a date", hint="write it like 2026-12-31") from None
    if last < date.today():
        raise UsageError(f"`{expires}` is in the past", hint="choose a day in the future")
    texts = {"owner": " ".join(owner.split()), "reason": " ".join(reason.split()), "expires": last.isoformat()}
    return add_records(path, [{**each} | texts for each in what], head=_WAIVERS, count=_count_waivers)


def unwaive(path: Path, waiver: Waiver) -> Written:
    """Remove the waiver of a finding from the file. YAML comments above the waiver are kept."""
    if not waiver.finding:
        raise UsageError("this waiver covers more than one finding", place=waiver.place, hint="edit the file")
    with alone(path):
        every = path.read_text(encoding="utf-8").splitlines(keepends=True)
        line = waiver.place.rpartition(":")[2]
        start = int(line) - 1 if line.isdigit() else len(every)
        found = _ITEM.match(every[start]) if start < len(every) else None
        if found is None:
            raise UsageError("the file changed", place=waiver.place, hint="reload the page")
        end = start + 1
        while end < len(every) and every[end].startswith(f"{found[1]} "):
            end += 1
        left = "".join(every[:start] + every[end:])
        if not _ITEM.search(left):
            left = re.sub(r":[ ]*\n\s*\Z", ": []\n", left)
        lines = "".join(every[start:end])
        put(path, left, lambda rough: _check(rough, path, lines, _count_waivers, by=-1))
    return Written(path, lines, "removed; the finding counts again.")


def _count_waivers(path: Path) -> int:
    read_waivers(path)
    data = read_yaml_file(path, file=str(path)).data
    return len(cast("list[Any]", data.get("waivers") or data.get("") or []))


def _needed(text: str, what: str) -> None:
    if not text.strip():
        raise UsageError(f"enter {what}")
    if len(text) > LONGEST:
        raise UsageError(f"{what} cannot have more than {LONGEST} characters")


def add_records(
    path: Path, records: Sequence[Mapping[str, Any]], *, head: str, count: Callable[[Path], int]
) -> Written:
    """Append the records that are not yet in the file.

    Before the file is replaced, `count` must find all of the records in the new version. Concurrent writers wait for
    each other.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path):
        before = path.read_text(encoding="utf-8") if path.is_file() else head
        if before and not before.endswith("\n"):
            before += "\n"
        before = _EMPTY.sub(":\n", before)
        found = _ITEM.search(before)
        indent = found[1] if found is not None else ("  " if before.rstrip().endswith(":") else "")
        every = [written(record, indent) for record in records]
        # If a form is sent twice, the file already has some of its records.
        fresh = [lines for lines in every if not (path.is_file() and f"\n{lines}" in before)]
        if not fresh:
            return Written(path, "".join(every), was_there=True)
        lines = "".join(fresh)
        put(path, before + lines, lambda rough: _check(rough, path, lines, count, by=len(fresh)))
    return Written(path, lines)


def put(path: Path, text: str, check: Callable[[Path], None] = lambda _: None) -> None:
    """Replace a file atomically. If `check` raises an error, the file is not changed."""
    rough = path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}")
    try:
        with rough.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        check(rough)
        if path.exists():
            rough.chmod(path.stat().st_mode & 0o777)
        os.replace(rough, path)
    finally:
        rough.unlink(missing_ok=True)


def written(record: Mapping[str, Any], indent: str = "") -> str:
    """Return a record as a YAML list item, with one line per key. Empty values are left out."""
    # Convert to JSON and back, so that no objects are shared. YAML would write shared objects as aliases.
    kept = json.loads(
        json.dumps({name: value for name, value in record.items() if value not in ("", None)}, default=str)
    )
    is_visible = json.dumps(kept, ensure_ascii=False).isprintable()
    text = yaml.safe_dump([kept], sort_keys=False, default_flow_style=None, width=1_000_000, allow_unicode=is_visible)
    return textwrap.indent(text, indent)


def _check(rough: Path, path: Path, lines: str, count: Callable[[Path], int], *, by: int) -> None:
    """Raise UsageError unless the changed file is valid and has `by` more entries than before."""
    before = count(path) if path.is_file() else 0
    try:
        why = "" if count(rough) == before + by else "the new entry would end up outside the list"
    except BylawError as error:
        why = str(error).replace(str(rough), str(path))
    if why:
        hint = f"{'add' if by > 0 else 'remove'} it by hand: {lines.strip()}"
        raise UsageError(f"nothing was written: {why}", place=str(path), hint=hint)


@contextmanager
def alone(path: Path) -> Generator[None]:
    """Lock a folder, so that only one process at a time writes to its files.

    The lock is released if the process ends.
    """
    if fcntl is None:
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_installed(root: Path) -> bool:
    """Whether a folder is in an installed package, and so would be replaced by an upgrade."""
    place = root.resolve()
    return place.is_relative_to(READY.resolve()) or bool({"site-packages", "dist-packages"} & set(place.parts))


def refuse_installed(root: Path) -> None:
    """Raise UsageError for a folder in an installed package, because an upgrade would overwrite the review."""
    if is_installed(root):
        raise UsageError(
            "this pack belongs to an installed package, and an upgrade would delete the review",
            place=str(root),
            hint="copy the folder and review the copy",
        )


def sign(root: Path, sides: Mapping[str, Sides], words: Mapping[str, Word], by: str, note: str) -> None:
    """Sign the current versions of policies as accepted or rejected."""
    if not words:
        return
    text = "# Who accepted which check. A signature lapses when the sentence or the check changes.\n"
    today = datetime.now(UTC).date().isoformat()
    # Without the lock, two people who sign at the same time could overwrite each other's signatures.
    with alone(root / REVIEW):
        signed = read_signatures(root)
        for name, word in words.items():
            signed[name] = Signature(word, by, today, sides[name].sentence, sides[name].check, note)
        body = {name: msgspec.to_builtins(each) for name, each in signed.items()}
        put(root / REVIEW, text + dump({"policies": body}))


def accept_unenforced(root: Path, name: str, by: str, reason: str) -> None:
    """Mark a policy in policies.yaml as unenforced, with a reason and the name of the person who is responsible."""
    path = root / "policies.yaml"
    text = path.read_text(encoding="utf-8")
    word = json.dumps({"accepted_by": by, "reason": reason or why_unenforced(root, name)}, ensure_ascii=False)
    place = re.compile(rf"^(\s*)- id: {re.escape(name)}$", re.MULTILINE)
    made, count = place.subn(lambda match: f"{match[0]}\n{match[1]}  unenforced: {word}", text)
    if count != 1:
        hint = f"add `unenforced: {word}` to the policy by hand"
        raise UsageError(f"policies.yaml must have one line `- id: {name}`", place=str(path), hint=hint)
    path.write_text(made, encoding="utf-8")
