"""Sheets for reading the airline's write calls, and the labels that two readers and a third come to.

    uv run python benchmarks/near_miss_sheets.py render ../shared/data/tau-airline DIR [--name nearmiss]
    uv run python benchmarks/near_miss_sheets.py settle ../shared/data/tau-airline DIR [--name nearmiss]

The calls are those of `near_miss_search.py`: 50 recorded conversations that write, drawn by its seed. A sheet shows the
document, conversations with their write calls marked, and what the database held before each of them; no verdict of
ours. Readers append their answers to `DIR/NAME-K-A.answers.jsonl` and `-B`. `settle` renders a sheet `NAME-third-C` of
the calls that they differ on, and writes `labels/airline-near-miss.csv` once that is answered too. Sheets and answers
quote the conversations and stay outside the repository; the labels do not.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airline_draw import transcript
from near_miss_search import LABELS, Place, drawn_airline, is_write

from bylaw.pack import Pack
from bylaw.packs.tau_airline.world import AirlineWorld
from bylaw.trace import Call, Result, Trajectory

A_SHEET = 70_000
"""Letters of conversations on a sheet, about."""
PROFILE = ("membership", "payment_methods", "reservations")
"""What of a customer the policy speaks of."""
QUESTIONS = ("unchecked", "amount", "permitted")
HEAD = Path(__file__).with_name("near_miss_sheet.md")
"""What stands at the top of a sheet."""


def writes(pack: Pack, trajectory: Trajectory) -> list[int]:
    """The steps of the agent's write calls."""
    return [
        step
        for step, event in enumerate(trajectory.events)
        if isinstance(event, Call) and event.by == "agent" and is_write(pack, event)
    ]


def name_of(place: Place) -> str:
    """A call's id on a sheet."""
    return f"{place[0][:8]}#{place[1]}"


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
    flights = [*(arguments.get("flights") or ()), *(leg for each in trips for leg in each["flights"])]
    legs = dict.fromkeys((str(each.get("flight_number")), str(each.get("date"))) for each in flights)
    lines = [f"reservation: {json.dumps(each)}" for each in trips]
    known = {part: user[part] for part in PROFILE} if user is not None else None
    lines.append(f"customer: {json.dumps(known)}")
    lines += [f"flight {number} on {date}: {json.dumps(world.day(number, date))}" for number, date in legs]
    return "\n".join(lines)


def told(trajectory: Trajectory, places: Sequence[Place], world: object) -> str:
    """One conversation up to the last of the calls, and what the database held before each."""
    steps = [step for _, step in places]
    lines = transcript(trajectory, max(steps), width=2500).splitlines()
    marked = {f"   {step:3} CALL": f">> [ID {name_of((trajectory.id, step))}] {step:3} CALL" for step in steps}
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
        lines += ["", f"before {name_of((trajectory.id, step))}, the database held:", *new]
        lines += ["(else as before the last call)"] if step != steps[0] else []
    return "\n".join(lines) + "\n"


def sheet(file: Path, policy: str, parts: Sequence[tuple[str, int]]) -> None:
    """Write one sheet, whole or not at all."""
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


def render(data: Path, out: Path, name: str) -> None:
    """Every sheet, for both readers."""
    pack, drawn = drawn_airline(data)
    policy = (data / "tau2" / "policy.md").read_text(encoding="utf-8")
    parts = [
        (told(each, [(each.id, step) for step in steps], world), len(steps))
        for each, world in drawn
        if (steps := writes(pack, each))
    ]
    sheets: list[list[tuple[str, int]]] = [[]]
    for part in parts:
        if sheets[-1] and sum(len(text) for text, _ in sheets[-1]) + len(part[0]) > A_SHEET:
            sheets.append([])
        sheets[-1].append(part)
    for reader in "AB":
        for number, each in enumerate(sheets, 1):
            sheet(out / f"{name}-{number}-{reader}.md", policy, each)


def read_answers(out: Path, pattern: str) -> dict[str, dict[str, bool]]:
    """What a reader said, by the call's id; a second word on the same call does not count."""
    found: dict[str, dict[str, bool]] = {}
    for file in sorted(out.glob(pattern)):
        for line in file.read_text(encoding="utf-8").splitlines():
            record: dict[str, Any] = json.loads(line) if line.strip() else {}
            if "id" in record:
                found.setdefault(record["id"], {each: record[each] is True for each in QUESTIONS})
    return found


def settle(data: Path, out: Path, name: str) -> None:
    """Say where the readers agree; render what they differ on for a third, and write the labels once it is settled."""
    pack, drawn = drawn_airline(data)
    one, two, third = (read_answers(out, f"{name}-*-{reader}.answers.jsonl") for reader in "ABC")
    places = {name_of((each.id, step)): (each.id, step) for each, _ in drawn for step in writes(pack, each)}
    lacking = [each for each in places if each not in one or each not in two]
    print(f"{len(places)} calls; read by both: {len(places) - len(lacking)}")
    both = [each for each in places if each in one and each in two]
    for question in QUESTIONS:
        print(f"  {question}: {agreement([(one[each][question], two[each][question]) for each in both])}")
    near = [(near_miss(one[each]), near_miss(two[each])) for each in both]
    print(f"  near-miss: {agreement(near)}")
    if lacking:
        return
    differ = [each for each in both if one[each] != two[each]]
    open_still = [each for each in differ if each not in third]
    print(f"  differ on some question: {len(differ)}, not yet read by a third: {len(open_still)}")
    if open_still:
        policy = (data / "tau2" / "policy.md").read_text(encoding="utf-8")
        parts: list[tuple[str, int]] = []
        for each, world in drawn:
            own = [places[key] for key in open_still if places[key][0] == each.id]
            if own:
                parts.append((told(each, own, world), len(own)))
        half = len(parts) // 2
        for number, some in enumerate((parts[:half], parts[half:]), 1):
            if some:
                sheet(out / f"{name}-third{number}-C.md", policy, some)
        return
    with LABELS.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("trajectory", "step", *QUESTIONS, "agreed"))
        for key, (trajectory, step) in sorted(places.items(), key=lambda item: item[1]):
            votes = [each[key] for each in (one, two, third) if key in each]
            said = [sum(vote[question] for vote in votes) * 2 > len(votes) for question in QUESTIONS]
            words = ["yes" if value else "no" for value in said]
            rows.writerow((trajectory, step, *words, "yes" if key not in differ else "no"))


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
    parser.add_argument("--name", default="nearmiss")
    options = parser.parse_args()
    {"render": render, "settle": settle}[options.what](options.data, options.out, options.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
