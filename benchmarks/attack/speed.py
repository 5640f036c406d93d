"""What a decision costs with guards that ask for provenance and for the request, and without, at 10 and 10,000 events.

python benchmarks/attack/speed.py [--json]

Each guard is held against one that gives the same answers to the same calls without asking: an allowed call with the
user's own account, one with an account from a record, and one with an account from nowhere, which is denied or asked
about. All take turns in one run, so that all see the same load.
"""

import argparse
import gc
import json
import statistics
import time
from typing import Any

from bylaw.pack import Pack
from bylaw.shield import LiveSession, Shield

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
PAIRS = {
    "provenance()": (TRACED, f'{KNOWN}    return permit() if is_known else deny("a strange account")\n'),
    "requested()": (
        ASKED,
        f'{KNOWN}    return permit() if is_known or facts.Wish.spoken else deny("not asked for")\n',
    ),
}
"""Each guard, and one that gives the same answers without asking where values came from."""
WANT = {"provenance()": ("allow", "allow", "deny"), "requested()": ("allow", "allow", "ask")}
TURNS = 300
FIRST = 30
"""Decisions at the start that are not counted."""


def session(guard: str, events: int) -> LiveSession:
    """A live session of so many events."""
    live = Shield(Pack.from_files({**FILES, "guards/known.py": guard})).session()
    live.user("Please pay 20 to AB1234 for the tickets.")
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


def costs(events: int) -> dict[str, tuple[float, float]]:
    """By guard, the medians of microseconds of the processor a decision, with it and with the one that does not ask."""
    sessions = {
        (name, place): session(guard, events) for name, pair in PAIRS.items() for place, guard in enumerate(pair)
    }
    spent: dict[tuple[str, int], list[float]] = {key: [] for key in sessions}
    gc.disable()
    for turn in range(TURNS):
        case = turn % 3
        account = ("AB1234", f"ZZ{events // 4}", "QQ9")[case]
        for key, live in sessions.items():
            started = time.thread_time()
            answer = live.decide("pay", {"account": account, "amount": 20, "note": "tickets"}, id=f"p{turn}").answer
            spent[key].append(time.thread_time() - started)
            assert answer == WANT[key[0]][case], (key, case, answer)
            live.result('"done"', id=f"p{turn}")
    gc.enable()
    found = {key: statistics.median(times[FIRST:]) * 1e6 for key, times in spent.items()}
    return {name: (found[name, 0], found[name, 1]) for name in PAIRS}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    told: list[dict[str, Any]] = []
    for events in (10, 10_000):
        for name, (asking, plain) in costs(events).items():
            told.append({"events": events, "guard": name, "asking": asking, "plain": plain})
            if not given.json:
                more = asking - plain
                print(f"{events:6} events: {name:13} {asking:6.0f} us, {more:+.0f} over {plain:.0f} without")
    if given.json:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
