"""Several conversations under limits on one log: one after another, at the same time, and after crashes."""

from functools import cache
from random import Random
from typing import Any

from bylaw import Pack
from bylaw.record import Log
from bylaw_lab.theorems.host import Host
from bylaw_lab.theorems.story import Story, Wanted
from bylaw_lab.theorems.truth import True_

PRINCIPALS = ("P-1", "P1", "p-1", "P-2")
ACCOUNTS = ("AC-22", "AC22", "ac-22", "DE77")


@cache
def limit_pack() -> Pack:
    """Return a desk with at most two credits per customer, and one gift per account unless a reviewer agrees."""
    return Pack.from_files(
        {
            "pack.yaml": (
                "{format: 1, name: credits, document: policy.md, shield: {unguarded: allow, "
                "approval: {timeout: 900, lifetime: 1800}}}"
            ),
            "policy.md": "At most two credits an hour.\nAt most one gift an hour.\n",
            "policies.yaml": (
                "policies:\n  - {id: few-credits, spans: [At most two credits an hour.]}\n"
                "  - {id: one-gift, spans: [At most one gift an hour.]}\n"
            ),
            "entities.yaml": "context:\n  signed_in_as: string\n",
            "tools.yaml": (
                "tools:\n"
                "  credit: {effect: write, parameters: {amount: string}, changes: [], refused: ^REFUSED}\n"
                "  gift: {effect: write, parameters: {to: string, amount: string}, changes: [], refused: ^REFUSED}\n"
            ),
            "rules.yaml": (
                "limits:\n"
                "  - {id: few-credits, tool: credit, most: 2, within: 1h, per: context.signed_in_as}\n"
                "  - {id: one-gift, tool: gift, most: 1, within: 1h, per: call.to, over: ask}\n"
            ),
        }
    )


class Conversations(Story):
    """Conversations on one log. Each move is made in one of them."""

    def __init__(self, rng: Random, log: Log, name: str) -> None:
        self._hosts = [_host(rng, log, name, number) for number in range(3)]
        super().__init__(rng, self._hosts[0], ("T5-limits",), "limits")

    def switch(self) -> None:
        self.host = self.rng.choice(self._hosts)

    def race_elsewhere(self, wanted: Wanted) -> None:
        """Make a call in two conversations, or twice in one, at the same moment."""
        self.race(wanted, [self.host, self.rng.choice(self._hosts)])


def _host(rng: Random, log: Log, name: str, number: int) -> Host:
    host = Host(rng, limit_pack(), log, name, rng.choice(PRINCIPALS))
    host.use(f"{host.id}-{number}")
    # An approval counts in one conversation.
    host.chat = host.id
    return host


def limit_story(rng: Random, log: Log | None, name: str) -> list[True_]:
    """Play some conversations and return their true events."""
    assert log is not None
    story = Conversations(rng, log, name)
    for _ in range(rng.choice((3, 4, 6))):
        story.switch()
        wanted = _wanted(rng)
        way = rng.random()
        if way < 0.15:
            story.host.reopen()
        if way < 0.12:
            story.race_elsewhere(wanted)
        else:
            story.attempt(wanted)
        if story.approvals and rng.random() < 0.6:
            story.person(rng.random() < 0.8)
            story.attempt(wanted)
    return story.events


def _wanted(rng: Random) -> Wanted:
    arguments: dict[str, Any] = {"amount": rng.choice(("5", "9"))}
    if rng.random() < 0.5:
        return Wanted("credit", arguments)
    return Wanted("gift", {"to": rng.choice(ACCOUNTS), **arguments})
