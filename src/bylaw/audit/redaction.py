"""Pseudonyms of ids, agents and files, with `--redact` only."""

import hashlib
import re
import secrets
from typing import Any, cast

from bylaw.errors import RecordError, UsageError

Line = dict[str, Any]

_PLACE = re.compile(r"^(.*?)([:#]\d+)?$", re.DOTALL)
_EXTENSION = re.compile(r"(\.[a-z]+)?(\.gz)?$", re.IGNORECASE)
_QUOTED = re.compile(r"`[^`]*`?|'[^']*'?|\"[^\"]*\"?")
_SHORTEST = 8
_CHANGED = " (changed policy)"


class Pseudonyms:
    """Pseudonyms: the same value and key give the same pseudonym."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, value: Any) -> str:
        """The pseudonym of a value; a number and its text have the same one."""
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        return "p-" + hashlib.blake2b(text.encode("utf-8", "replace"), key=self._key, digest_size=5).hexdigest()

    def unquoted(self, text: str) -> str:
        """A message without the values it quotes."""
        return _QUOTED.sub("...", text)

    @property
    def mark(self) -> str:
        """Identifies the key without revealing it."""
        return hashlib.blake2b(b"which key", key=self._key, digest_size=6).hexdigest()

    def place(self, place: str) -> str:
        """A place with its path hidden; its line or position is kept."""
        path, at = cast(re.Match[str], _PLACE.match(place)).groups()
        return self.file(path) + (at or "")

    def file(self, path: str) -> str:
        """A file's path hidden, all but its extension."""
        ending = cast(re.Match[str], _EXTENSION.search(path))[0]
        return f"{self.of(path)}{ending}" if path else path

    def agent(self, name: str) -> str:
        """An agent's name hidden; the suffix that the audit added is kept."""
        own = name.removesuffix(_CHANGED)
        return f"{self.of(own)}{name[len(own) :]}" if own else name

    def fault(self, fault: RecordError) -> RecordError:
        """A fault without quoted values."""
        return RecordError(self.unquoted(fault.message), place=self.place(fault.place))

    def summary(self, summary: Line) -> Line:
        """`summary.json` without names of files, agents, and tools or fields that the pack does not know."""
        unknown: dict[str, int] = summary["unknown_tools"]

        def agents(counts: Line) -> Line:
            return {self.agent(name): count for name, count in counts.items()}

        def tools(counts: Line) -> Line:
            return {self.of(tool) if tool in unknown else tool: count for tool, count in counts.items()}

        return summary | {
            "redacted": self.mark,
            "files": [self.file(file) for file in summary["files"]],
            "worlds": {self.file(file): self.file(note) for file, note in summary["worlds"].items()},
            "agents": [row | {"agent": self.agent(row["agent"])} for row in summary["agents"]],
            "by_tool": tools(summary["by_tool"]),
            "by_lookup": {
                lookup: row | {"agents": agents(row["agents"]), "tools": tools(row["tools"])}
                for lookup, row in summary["by_lookup"].items()
            },
            "by_rule": {rule: row | {"agents": agents(row["agents"])} for rule, row in summary["by_rule"].items()},
            "unknown_tools": tools(unknown),
            "unmapped_fields": {
                tool: list(map(self.of, names)) for tool, names in tools(summary["unmapped_fields"]).items()
            },
            "limits": [
                row | {"first": [each | {"file": self.file(each["file"])} for each in row["first"]]}
                for row in summary["limits"]
            ],
            "changed_policy": [
                row | {"trajectories": agents(row["trajectories"])} for row in summary["changed_policy"]
            ],
        }


def redaction_key(given: str | None) -> bytes:
    """The key that was given, or a random one for this run."""
    if given is None:
        return secrets.token_bytes(32)
    if len(given) < _SHORTEST:
        raise UsageError("the redaction key is too short", hint=f"give at least {_SHORTEST} characters")
    return hashlib.blake2b(given.encode(), digest_size=32).digest()
