"""What a decision costs with guards that ask for provenance and for the request, and without, at 10 and 10,000 events.

python benchmarks/attack/speed.py
"""

import statistics
import time

from bylaw.pack import Pack
from bylaw.shield import Shield

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


def cost(guard: str, events: int) -> float:
    """Microseconds of a decision, the median of many, in a conversation of so many events."""
    pack = Pack.from_files({**FILES, "guards/known.py": guard})
    with Shield(pack).session() as session:
        session.user("Please pay 20 to AB1234 for the tickets.")
        for number in range(events // 2):
            session.messages(
                [
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {"id": f"r{number}", "function": {"name": "read", "arguments": f'{{"n": {number}}}'}}
                        ],
                    },
                    {
                        "role": "tool",
                        "tool_call_id": f"r{number}",
                        "content": f'{{"account": "ZZ{number}", "amount": {number}, "note": "some words {number}"}}',
                    },
                ]
            )
        spent: list[float] = []
        for turn in range(200):
            known = ("AB1234", f"ZZ{events // 4}", "QQ9")[turn % 3]
            started = time.perf_counter()
            session.decide("pay", {"account": known, "amount": 20, "note": "tickets"}, id=f"p{turn}")
            spent.append(time.perf_counter() - started)
            session.result('"done"', id=f"p{turn}")
    return statistics.median(spent[20:]) * 1e6


def main() -> None:
    for events in (10, 10_000):
        plain = cost(PLAIN, events)
        for name, guard in (("provenance()", TRACED), ("requested()", ASKED)):
            print(f"{events:6} events: {name} {cost(guard, events):6.0f} us, without {plain:6.0f} us")


if __name__ == "__main__":
    main()
