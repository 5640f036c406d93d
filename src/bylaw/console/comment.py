"""Notes on a policy that decide nothing, kept in the pack beside its review."""

from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.console.record_file import Written, add_record
from bylaw.errors import UsageError
from bylaw.policy.yaml import read_yaml_file

COMMENTS = "comments.yaml"
HEAD = "# What readers said of policies. It decides nothing; `bylaw review` signs.\ncomments:\n"
LONGEST = 2000


class Comment(Struct, frozen=True):
    """What somebody said of a policy, and of which state of it."""

    policy: str
    by: str
    on: str
    text: str
    sentence: str = ""
    check: str = ""


def comments_of(root: Path, policy: str) -> list[Comment]:
    """All comments on one policy, the oldest first."""
    return [each for each in _listed(root / COMMENTS) if each.policy == policy]


def comment_on(root: Path, given: Comment) -> Written:
    """Add one."""
    text = given.text.strip()
    if not text:
        raise UsageError("say something")
    if len(text) > LONGEST:
        raise UsageError(f"more than {LONGEST:,} characters")
    record = msgspec.to_builtins(given) | {"text": text}
    return add_record(root / COMMENTS, record, head=HEAD, count=lambda path: len(_listed(path)))


def _listed(path: Path) -> list[Comment]:
    if not path.is_file():
        return []
    listed = cast("list[Any]", read_yaml_file(path, file=str(path)).data.get("comments") or [])
    try:
        return msgspec.convert(listed, list[Comment], strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"not a list of comments: {error}", place=str(path)) from None
