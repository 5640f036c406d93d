"""The files of lines that an audit writes, conversation by conversation, in order."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bylaw.audit.examine import Examined
from bylaw.audit.line import finding_id, named, writable
from bylaw.engine.limited import LimitedCall
from bylaw.trace import Identities

BUFFER = 1 << 20
"""Bytes written at once: most conversations are longer than the usual buffer."""


class LineFiles:
    """`calls.jsonl`, `conversations.jsonl` and `findings.jsonl` in a folder, open for writing."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self._calls, self._conversations, self._findings = (
            self._stack.enter_context((folder / f"{name}.jsonl").open("wb", BUFFER))
            for name in ("calls", "conversations", "findings")
        )
        self.read = Identities()
        """The conversations that were read, as the files name them."""
        self.count = 0
        self.repeated = 0
        """Conversations whose id another one had before."""
        self._limited: dict[LimitedCall, tuple[str, bytes]] = {}
        """Calls that count under limits, each with its conversation and the line that it has if it is one too many."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, part: Examined) -> None:
        """Write what there is of one conversation, under a name of its own."""
        self.count += 1
        own = writable(part.id)
        name = self.read.unique(own)
        self.repeated += name != own
        made: defaultdict[str, int] = defaultdict(int)
        for _, tool, flagged, line in part.calls:
            made[tool] += 1
            self._calls.write(named(line, name, finding_id(name, tool, made[tool]) if flagged else None))
        if part.conversation is not None:
            self._conversations.write(named(part.conversation, name))
        self._limited.update((call, (name, line)) for call, line in part.limited)
        for rule, line in part.findings:
            made["rule " + rule] += 1
            self._findings.write(named(line, name, finding_id(name, "rule " + rule, made["rule " + rule])))

    def write_limits(self, over: Iterable[LimitedCall]) -> None:
        """Write the calls that were one too many, which is known once every conversation was read."""
        made: Counter[tuple[str, str]] = Counter()
        for call in sorted(over, key=lambda call: (call.limit, call.file, call.position, call.step)):
            name, line = self._limited[call]
            made[name, call.limit] += 1
            self._findings.write(named(line, name, finding_id(name, f"limit {call.limit}", made[name, call.limit])))
