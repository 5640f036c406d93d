"""What a decision costs with guards that ask for provenance and for the request, and without, at 10 and 10,000 events.

python lab/benchmarks/attack/speed.py [--json] [--most MICROSECONDS]

Each guard is held against one that gives the same answers to the same calls without asking: an allowed call with the
user's own account, one with an account from a record, and one with an account from nowhere, which is denied or asked
about. All take turns in one run, so that all see the same load. The model's answers to `requested()` are known.
"""

import argparse
import gc
import json
import statistics
import time
from typing import Any

from bylaw.answering.request import RequestReader, question
from bylaw.engine.conversation import OpenRequests
from bylaw.engine.request import Allowance, Deed, Slot, Source, Span
from bylaw.pack import Pack
from bylaw.shield import LiveSession, Shield
from bylaw_lab.bench.defence import WithoutLook

FILES = {
    "pack.yaml": "{format: 1, name: desk, document: policy.md}",
    "policy.md": "Money goes to known accounts.",
    "policies.yaml": "policies: [{id: known, kind: guard, tools: [pay], spans: [Money goes to known accounts.]}]",
    "entities.yaml": "entities:\n  Wish: {key: [], fields: {spoken: {type: boolean, origin: user}}}\n",
    "tools.yaml": """
tools:
  read: {effect: read, parameters: {n: integer}, trust: {"*": record, note: content}}
  pay: {effect: write, parameters: {account: string, amount: number, note: string}, also_called: [pay], changes: []}
""",
}
KNOWN = 'def known(call, facts):\n    is_known = call.account in ["AB1234"] or call.account.startswith("ZZ")\n'
TRACED = """
def known(call, facts):
    return permit() if provenance(call.account).source in ["user", "record"] else deny("a strange account")
"""
ASKED = 'def known(call, facts):\n    return permit() if requested() else deny("not asked for")\n'
UNASKED = f'{KNOWN}    return permit() if is_known or facts.Wish.spoken else deny("not asked for")\n'
PAIRS = {
    "provenance()": (TRACED, f'{KNOWN}    return permit() if is_known else deny("a strange account")\n'),
    "requested()": (ASKED, UNASKED),
}
"""Each guard, and one that gives the same answers without asking where values came from."""
WANT = {
    "provenance()": ("allow", "allow", "deny"),
    "requested()": ("allow", "allow", "ask"),
}
CALLS = ("the user's own", "of a record", "from nowhere")
TURNS = 600
FIRST = 20
"""Decisions on each call at the start that are not counted."""


def answered(pack: Pack, request: str, record: int) -> OpenRequests:
    """A reader that knows what a model said of the request."""

    def at(words: str) -> tuple[Span, ...]:
        return (Span(request.index(words), request.index(words) + len(words)),)

    slots = (
        Slot("account", "found", at("AB1234"), (Source("read", at(f"words {record}")),), field="account"),
        Slot("amount", "said", at("20")),
        Slot("note", "free", (), (Source("read", at(f"words {record}")),)),
    )
    found = Allowance((Deed("pay", at("pay"), slots),))
    reader = RequestReader(None, known={question(request, pack.schema.tools).key: found})
    return lambda of: WithoutLook(reader(of))


def session(guard: str, events: int) -> LiveSession:
    """A live session of so many events."""
    pack = Pack.from_files({**FILES, "guards/known.py": guard})
    request = f"Please pay 20 to AB1234 for the tickets, and to the account with the words {events // 4}."
    live = Shield(pack, requests=answered(pack, request, events // 4)).session()
    live.user(request)
    for number in range(events // 2):
        asked = {"id": f"r{number}", "function": {"name": "read", "arguments": f'{{"n": {number}}}'}}
        shown = f'{{"account": "ZZ{number}", "amount": {number}, "note": "some words {number}"}}'
        live.messages(
            [
                {"role": "assistant", "tool_calls": [asked]},
                {"role": "tool", "tool_call_id": f"r{number}", "content": shown},
            ]
        )
    return live


def costs(events: int) -> dict[str, list[tuple[float, float]]]:
    """By guard and call, the medians of microseconds of the processor a decision, with it and with the one that does
    not ask."""
    sessions = {
        (name, place): session(guard, events) for name, pair in PAIRS.items() for place, guard in enumerate(pair)
    }
    spent: dict[tuple[str, int, int], list[float]] = {
        (*key, case): [] for key in sessions for case in range(len(CALLS))
    }
    gc.disable()
    for turn in range(TURNS):
        case = turn % len(CALLS)
        account = ("AB1234", f"ZZ{events // 4}", "QQ9")[case]
        for key, live in sessions.items():
            started = time.thread_time()
            answer = live.decide("pay", {"account": account, "amount": 20, "note": "tickets"}, id=f"p{turn}").answer
            spent[*key, case].append(time.thread_time() - started)
            assert answer == WANT[key[0]][case], (key, case, answer)
            # What was done spends the request: each payment is refused by its tool, and made again.
            live.result("the bank is closed", id=f"p{turn}", error=True, refused=True)
    gc.enable()
    found = {key: statistics.median(times[FIRST:]) * 1e6 for key, times in spent.items()}
    return {name: [(found[name, 0, case], found[name, 1, case]) for case in range(len(CALLS))] for name in PAIRS}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--most", type=float, help="fail where `requested()` adds more microseconds than this")
    given = parser.parse_args()
    told: list[dict[str, Any]] = []
    for events in (10, 10_000):
        for name, medians in costs(events).items():
            asking, plain = (statistics.mean(each[place] for each in medians) for place in (0, 1))
            more = {call: with_it - without for call, (with_it, without) in zip(CALLS, medians, strict=True)}
            told.append({"events": events, "guard": name, "asking": asking, "plain": plain, "more": more})
            if not given.json:
                each = ", ".join(f"{call} {cost:+.0f}" for call, cost in more.items())
                print(f"{events:6} events: {name:21} {asking - plain:+4.0f} us over {plain:.0f} ({each})")
    if given.json:
        print(json.dumps(told))
    is_over = given.most is not None and any(
        each["asking"] - each["plain"] > given.most for each in told if each["guard"] == "requested()"
    )
    return int(is_over)


if __name__ == "__main__":
    raise SystemExit(main())
