"""Notes on a policy that decide nothing, kept in the pack beside its review."""

from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.console.record_file import Written, add_record, read_records
from bylaw.errors import UsageError

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


_listed = partial(read_records, name="comments", type=Comment)


def comments_of(root: Path, policy: str) -> list[Comment]:
    """All comments on one policy, the oldest first."""
    return [each for each in _listed(root / COMMENTS) if each.policy == policy]


def comment_on(root: Path, given: Comment) -> Written:
    text = given.text.strip()
    if not text:
        raise UsageError("say something")
    if len(text) > LONGEST:
        raise UsageError(f"more than {LONGEST:,} characters")
    record = msgspec.to_builtins(given) | {"text": text}
    return add_record(root / COMMENTS, record, head=HEAD, count=lambda path: len(_listed(path)))
