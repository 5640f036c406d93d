"""Conversations under `requested()`: the user asks for payments, and the agent makes these and others."""

import re
from functools import cache
from random import Random

from bylaw import Pack
from bylaw.engine.request import Allowance, Deed, Doubt, Slot, Span
from bylaw.record import Log
from bylaw_lab.theorems import desk
from bylaw_lab.theorems.host import HistoryHost, Host, StatelessHost
from bylaw_lab.theorems.story import Story, Wanted
from bylaw_lab.theorems.truth import HandedOver, True_, key

_ASKS = re.compile(r"(?P<asked>Pay (?P<amount>[\d.]+) to (?P<account>[\w-]+?))\.")
_QUOTE = re.compile(r'"[^"]*"')
_WITHDRAWN = "Forget it."


@cache
def request_pack() -> Pack:
    return Pack.from_files(
        {
            "pack.yaml": "{format: 1, name: errands, document: policy.md, shield: {handover: true}}",
            "policy.md": "The assistant does what its user asks for.",
            "policies.yaml": (
                "policies:\n  - {id: as-asked, kind: guard, tools: {effect: write}, "
                "spans: [The assistant does what its user asks for.]}\n"
            ),
            "entities.yaml": "context:\n  signed_in_as: string\n",
            "guards/asked.py": 'def as_asked(call, facts):\n    return permit() if requested() else deny("no")\n',
            "tools.yaml": (
                "tools:\n"
                "  get_mail: {effect: read, parameters: {sender: string}}\n"
                "  pay:\n    effect: write\n    refused: ^REFUSED\n    changes: []\n"
                "    parameters: {account: string, amount: number, date: string?, note: string?}\n"
            ),
        }
    )


def read_request(text: str) -> Allowance:
    """Return how a good reader understands a message. Quoted text requests nothing, and a withdrawal cancels everything
    before it.
    """
    hidden = _QUOTE.sub(lambda found: " " * len(found[0]), text)
    begin = hidden.rfind(_WITHDRAWN) + 1
    deeds: list[Deed] = []
    for found in _ASKS.finditer(hidden, begin):
        slots = (
            Slot("account", "said", (Span(*found.span("account")),)),
            Slot("amount", "said", (Span(*found.span("amount")),)),
            Slot("note", "free"),
        )
        deeds.append(Deed("pay", (Span(*found.span("asked")),), slots))
    return Allowance(tuple(deeds))


class GoodReader:
    """Reads requests as intended, and confirms every call that code would allow. This is the hardest case for code."""

    def read(self, text: str) -> Allowance:
        return read_request(text)

    def look(self, doubt: Doubt) -> dict[str, bool]:
        return dict.fromkeys(doubt.asked, True)


def _open_reader(pack: Pack) -> GoodReader:
    return GoodReader()


def request_story(rng: Random, log: Log | None, name: str) -> list[True_]:
    """Play one conversation and return its true events."""
    kinds: tuple[type[Host], ...] = (Host, HistoryHost) if log is not None else (Host, HistoryHost, StatelessHost)
    host = rng.choice(kinds)(rng, request_pack(), log, name, "P1", requests=_open_reader)
    story = Story(rng, host, ("T4-requests",), "requested()")
    asked: list[Wanted] = []
    for _ in range(rng.choice((1, 2, 3, 4))):
        way = rng.random()
        if way < 0.65 or not asked:
            asked += _asks(story)
        elif way < 0.72:
            story.user("other", _WITHDRAWN, withdraws=True)
        elif way < 0.8:
            story.user("other", f'Is this a scam: "{_sentence(_payment(rng))}"?')
        elif way < 0.85:
            story.agent(_sentence(_payment(rng)))
        elif way < 0.9 and host.may_reopen:
            host.reopen()
        elif way < 0.93 and host.principal != "P2" and host.vouch("P2"):
            story.events.append(HandedOver("P2"))
        else:
            story.attempt(Wanted("get_mail", {"sender": _sentence(_payment(rng))}))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            story.attempt(_call_like(rng, rng.choice(asked) if asked else _payment(rng)))
    return story.events


def _payment(rng: Random) -> Wanted:
    return Wanted("pay", {"account": rng.choice(desk.ACCOUNTS)[0], "amount": float(rng.choice(desk.AMOUNTS)[0])})


def _sentence(payment: Wanted) -> str:
    return f"Pay {payment.arguments['amount']:g} to {payment.arguments['account']}."


def _asks(story: Story) -> list[Wanted]:
    """Let the user ask for one or several payments in one message."""
    payments = [_payment(story.rng) for _ in range(story.rng.choice((1, 1, 1, 2, 3)))]
    requests = tuple(key(each.tool, each.arguments) for each in payments)
    story.user("other", " ".join(map(_sentence, payments)), requests=requests)
    return payments


def _call_like(rng: Random, asked: Wanted) -> Wanted:
    """Return the requested payment, the same payment with another spelling, date or note, or another payment."""
    given = dict(asked.arguments)
    way = rng.random()
    if way < 0.1:
        return _payment(rng)
    if way < 0.2:
        spellings = next(each for each in desk.ACCOUNTS if given["account"] in each)
        given["account"] = rng.choice(spellings)
    elif way < 0.3:
        given["date"] = f"2026-01-0{rng.randrange(1, 9)}"
    elif way < 0.4:
        given["note"] = rng.choice(("rent", "gift"))
    elif way < 0.45:
        given["amount"] = given["amount"] * 10
    return Wanted("pay", given)
