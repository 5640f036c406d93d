"""What a decision costs with guards that ask for provenance and for the request, and without, at 10 and 10,000 events.

python benchmarks/attack/speed.py
"""

import gc
import statistics
import time

from bylaw.pack import Pack
from bylaw.shield import LiveSession, Shield

FILES = {
    "pack.yaml": "{format: 1, name: desk, document: policy.md}",
    "policy.md": "Money goes to known accounts.",
    "policies.yaml": "policies: [{id: known, kind: guard, tools: [pay], spans: [Money goes to known accounts.]}]",
    "tools.yaml": """
tools:
  read: {effect: read, parameters: {n: integer}, trust: {"*": record, note: content}}
  pay: {effect: write, parameters: {account: string, amount: number, note: string}, also_called: [pay], changes: []}
""",
}
PLAIN = 'def known(call, facts):\n    return permit() if call.account != "" else deny("no account")\n'
TRACED = """
def known(call, facts):
    return permit() if provenance(call.account).source in ["user", "record"] else deny("a strange account")
"""
ASKED = 'def known(call, facts):\n    return permit() if requested() else deny("not asked for")\n'


GUARDS = {"plain": PLAIN, "provenance()": TRACED, "requested()": ASKED}
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


def costs(events: int) -> dict[str, float]:
    """By guard, the median of microseconds a decision: the guards take turns, so that all see the same load."""
    sessions = {name: session(guard, events) for name, guard in GUARDS.items()}
    spent: dict[str, list[float]] = {name: [] for name in GUARDS}
    gc.disable()
    for turn in range(TURNS):
        known = ("AB1234", f"ZZ{events // 4}", "QQ9")[turn % 3]
        for name, live in sessions.items():
            started = time.perf_counter()
            live.decide("pay", {"account": known, "amount": 20, "note": "tickets"}, id=f"p{turn}")
            spent[name].append(time.perf_counter() - started)
            live.result('"done"', id=f"p{turn}")
    gc.enable()
    return {name: statistics.median(times[FIRST:]) * 1e6 for name, times in spent.items()}


def main() -> None:
    for events in (10, 10_000):
        found = costs(events)
        for name in ("provenance()", "requested()"):
            more = found[name] - found["plain"]
            print(f"{events:6} events: {name:13} {found[name]:6.0f} us, {more:+.0f} over {found['plain']:.0f} without")


if __name__ == "__main__":
    main()
