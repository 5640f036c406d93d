"""Sheets for reading the airline's write calls, and the readers' word brought together.

    uv run python lab/benchmarks/near_miss_sheets.py render DATA DIR [--draw plain | strata | further]
    uv run python lab/benchmarks/near_miss_sheets.py settle DATA DIR [--draw plain | strata | further]

The calls are those that `near_miss_draw.py` draws by its seed. A sheet shows the document, conversations with their
write calls marked, and what the database held before each of them; no verdict of ours. Readers append their answers to
`DIR/NAME-K-A.answers.jsonl` and `-B`. `settle` renders a sheet `NAME-third-C` of the calls that they differ on, and
writes the labels once that is answered too. Sheets and answers quote the conversations and stay outside the
repository; the labels do not.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airline_draw import transcript
from msgspec.structs import replace
from near_miss_draw import DRAWS, Draw, Place

from bylaw.packs.tau_airline.world import AirlineWorld
from bylaw.trace import Call, Message, Result, Trajectory

A_SHEET = 130_000
"""Letters of conversations on a sheet, about."""
PROFILE = ("membership", "payment_methods", "reservations")
"""What of a customer the policy speaks of."""
SAID = {"agent": 240, "user": 600}
"""Letters of a message that are shown."""
QUESTIONS = ("unchecked", "amount", "permitted")
HEAD = Path(__file__).with_name("near_miss_sheet.md")
"""What stands at the top of a sheet."""


def held_before(trajectory: Trajectory, world: AirlineWorld, steps: Sequence[int]) -> dict[int, str]:
    """What the database held just before each of the calls, of what the call is about."""
    world = world.fork()
    results = {event.call: event for event in trajectory.events if isinstance(event, Result)}
    found: dict[int, str] = {}
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Call) and not event.fault:
            if step in steps:
                found[step] = about(event.arguments, world)
            world.apply(event, results.get(step))
    return found


def about(arguments: Any, world: AirlineWorld) -> str:
    """The reservation, the customer and the flights of a call, as lines."""
    trip = world.reservation(arguments.get("reservation_id"))
    owner = arguments.get("user_id") or (trip or {}).get("user_id")
    user = world.user(owner)
    trips = [trip] if trip is not None else []
    if "amount" in arguments and user is not None:
        trips = [found for each in user["reservations"] if (found := world.reservation(each)) is not None]
    asked = [leg for leg in arguments.get("flights") or () if isinstance(leg, dict)]
    flights = [*asked, *(leg for each in trips for leg in each["flights"])]
    legs = dict.fromkeys((str(each.get("flight_number")), str(each.get("date"))) for each in flights)
    lines = [f"reservation: {json.dumps(each)}" for each in trips]
    known = {part: user[part] for part in PROFILE} if user is not None else None
    lines.append(f"customer: {json.dumps(known)}")
    lines += [f"flight {number} on {date}: {json.dumps(world.day(number, date))}" for number, date in legs]
    return "\n".join(lines)


def _shortened(trajectory: Trajectory) -> Trajectory:
    """The conversation with what was said cut short: what tools showed is what the questions are about."""
    events = [
        replace(each, text=" ".join(each.text.split())[: SAID[each.by]]) if isinstance(each, Message) else each
        for each in trajectory.events
    ]
    return replace(trajectory, events=events)


def told(trajectory: Trajectory, names: dict[int, str], world: object) -> str:
    """One conversation up to the last of the named calls, and what the database held before each."""
    steps = sorted(names)
    lines = transcript(_shortened(trajectory), max(steps), width=2500).splitlines()
    marked = {f"   {step:3} CALL": f">> [ID {names[step]}] {step:3} CALL" for step in steps}
    marked |= {f">> {step:3} CALL": made for step, made in zip(steps, marked.values(), strict=True)}
    for place, line in enumerate(lines):
        for start, made in marked.items():
            if line.startswith(start):
                lines[place] = made + line.removeprefix(start)
    assert isinstance(world, AirlineWorld)
    held = held_before(trajectory, world, steps)
    shown: set[str] = set()
    for step in steps:
        new = [line for line in held.get(step, "not known").splitlines() if line not in shown]
        shown |= set(new)
        lines += ["", f"before {names[step]}, the database held:", *new]
        lines += ["(else as before the last call)"] if step != steps[0] else []
    return "\n".join(lines) + "\n"


def sheet(file: Path, draw: Draw, parts: Sequence[tuple[str, int]]) -> None:
    """Write one sheet, whole or not at all."""
    policy = draw.policy.read_text(encoding="utf-8")
    given = {"count": sum(count for _, count in parts), "answers": file.with_suffix(".answers.jsonl"), "policy": policy}
    text = HEAD.read_text(encoding="utf-8")
    for name, value in given.items():
        text = text.replace(f"{{{{{name}}}}}", str(value))
    for number, (body, _) in enumerate(parts, 1):
        text += f"\n\n================ CONVERSATION {number} of {len(parts)} ================\n\n{body}"
    half = file.with_suffix(".part")
    half.write_text(text, encoding="utf-8")
    half.rename(file)
    print(f"{file}: {len(parts)} conversations, {sum(count for _, count in parts)} calls, {len(text):,} letters")


def names_of(draw: Draw) -> dict[Place, str]:
    """The id of each call on the sheets."""
    return {place: f"c{number:03}" for number, place in enumerate(draw.places, 1)}


def render(draw: Draw, out: Path, name: str) -> None:
    """Every sheet, for both readers."""
    names = names_of(draw)
    sheets: list[list[tuple[str, int]]] = [[]]
    for each in draw.conversations:
        part = told(each.trajectory, {step: names[each.trajectory.id, step] for step in each.steps}, each.world)
        if sheets[-1] and sum(len(text) for text, _ in sheets[-1]) + len(part) > A_SHEET:
            sheets.append([])
        sheets[-1].append((part, len(each.steps)))
    for reader in "AB":
        for number, parts in enumerate(sheets, 1):
            sheet(out / f"{name}-{number}-{reader}.md", draw, parts)


def read_answers(out: Path, pattern: str) -> dict[str, dict[str, bool]]:
    """What a reader said, by the call's id; a second word on the same call does not count."""
    found: dict[str, dict[str, bool]] = {}
    for file in sorted(out.glob(pattern)):
        for line in file.read_text(encoding="utf-8").splitlines():
            record: dict[str, Any] = json.loads(line) if line.strip() else {}
            if "id" in record:
                found.setdefault(record["id"], {each: record[each] is True for each in QUESTIONS})
    return found


def settle(draw: Draw, out: Path, name: str) -> None:
    """Say where the readers agree; render what they differ on for a third, and write the labels once it is settled."""
    one, two, third = (read_answers(out, f"{name}-*-{reader}.answers.jsonl") for reader in "ABC")
    names = names_of(draw)
    both = [each for each in names.values() if each in one and each in two]
    print(f"{len(names)} calls; read by both: {len(both)}")
    for question in QUESTIONS:
        print(f"  {question}: {agreement([(one[each][question], two[each][question]) for each in both])}")
    near = [(near_miss(one[each]), near_miss(two[each])) for each in both]
    print(f"  near-miss: {agreement(near)}")
    if len(both) < len(names):
        return
    differ = [each for each in both if one[each] != two[each]]
    open_still = {each for each in differ if each not in third}
    print(f"  differ on some question: {len(differ)}, not yet read by a third: {len(open_still)}")
    if open_still:
        parts: list[tuple[str, int]] = []
        for each in draw.conversations:
            named = {step: names[each.trajectory.id, step] for step in each.steps}
            if own := {step: key for step, key in named.items() if key in open_still}:
                parts.append((told(each.trajectory, own, each.world), len(own)))
        half = len(parts) // 2
        for number, some in enumerate((parts[:half], parts[half:]), 1):
            if some:
                sheet(out / f"{name}-third{number}-C.md", draw, some)
        return
    with draw.labels.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("trajectory", "step", *(("stratum",) if draw.strata else ()), *QUESTIONS, "agreed"))
        for place, key in sorted(names.items()):
            votes = [each[key] for each in (one, two, third) if key in each]
            said = [sum(vote[question] for vote in votes) * 2 > len(votes) for question in QUESTIONS]
            words = ["yes" if value else "no" for value in (*said, key not in differ)]
            rows.writerow((*place, *((draw.strata[place],) if draw.strata else ()), *words))


def near_miss(said: dict[str, bool]) -> bool:
    """Allowed, and made without having seen that it was."""
    return said["unchecked"] and said["permitted"]


def agreement(pairs: Sequence[tuple[bool, bool]]) -> str:
    """The share on which two readers agree, and Cohen's kappa."""
    if not pairs:
        return "-"
    same = sum(one == two for one, two in pairs) / len(pairs)
    first, second = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    kappa = "-" if chance == 1 else f"{(same - chance) / (1 - chance):.2f}"
    return f"{same:.1%} the same, kappa {kappa}; yes by the first {first:.1%}, by the second {second:.1%}"


def main() -> int:
    """Render or settle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("render", "settle"))
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--draw", choices=tuple(DRAWS), default="strata")
    parser.add_argument("--name", default="nearmiss")
    options = parser.parse_args()
    draw = DRAWS[options.draw](options.data)
    {"render": render, "settle": settle}[options.what](draw, options.out, options.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
