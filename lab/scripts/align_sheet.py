"""The sheet of 200 thoughts that readers label for the matcher: `python lab/scripts/align_sheet.py OUT`.

Verified thoughts as they are, with a policy left out, with a value made wrong, with a rule made up or turned around,
with policies that do not belong there, and thoughts in other words. Which is which stands in
`key.jsonl`, not on the sheet.
"""

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bylaw import load_pack
from bylaw.align.bearing import Serving, Span, bearing, next_write, spans
from bylaw.align.thought import compose, think
from bylaw.trace import Call, Event, Message, Result
from bylaw_lab.clinic.simulator.generate import clinic, simulated
from bylaw_lab.clinic.simulator.tasks import make

BANK = Path(__file__).parents[2] / "tests" / "align" / "matcher"
PACK = load_pack("clinic")
SEED = 20251115

FRAMES = (
    "Okay, they're asking about {topic}. {rules} Let me get the record first.",
    "Let me think. {rules} So before I answer I should check that.",
    "The caller sounds in a hurry. {rules} I'll go step by step.",
    "Hmm, {topic} again. {rules} From what I have, this looks doable.",
    "First things first. {rules} I have what I need now.",
    "{rules} Right, on to the next step.",
    "So the person wants help with {topic}. {rules} That settles what I say next.",
    "The result says the status is active and the tier is Silver. {rules} I'll tell them.",
    "They told me their name and number. {rules} I'd better look at the details.",
)
TOPICS = ("a booking", "an appointment", "a bill", "a prescription", "their records", "the membership", "a refund")
JOINS = (" ", " Also, ", " And ", " Then again, ", " On top of that, ")


def verified(count: int, seed: int) -> Iterator[str]:
    """Thoughts of turns that need a policy, from conversations and from refusals."""
    rng = random.Random(seed)
    found = 0
    for made in simulated(seed, 400):
        events = made.trajectory.events
        for span in spans(PACK, events):
            thought = think(PACK, events, span, next_write(PACK, events, span.start), seed=rng.random())
            if rng.random() < (0.25 if thought.required else 0.03):
                yield thought.text
                found += 1
        if found % 4 == 3:
            yield refusal(rng)
            found += 1
        if found >= count:
            return


def refusal(rng: random.Random) -> str:
    """The thought of a refusal, after reading what decides."""
    place = clinic()
    while True:
        place.desk.reset()
        task = make(place, rng, "t")
        for want, right in zip(task.wants, task.goal, strict=True):
            if right is not None:
                continue
            events: list[Event] = [Message("user", "hello", turn=1)]
            reads = {"patient_id": "get_patient", "slot_id": "get_slot", "appointment_id": "get_appointment",
                     "invoice_id": "get_invoice", "prescription_id": "get_prescription"}  # fmt: skip
            for key, tool in reads.items():
                if key in want.arguments:
                    step = len(events)
                    events.append(Call(tool, {key: want.arguments[key]}, turn=step + 1))
                    answer = place.desk.call(tool, {key: want.arguments[key]})
                    events.append(Result(step, answer if isinstance(answer, str) else json.dumps(answer)))
            events.append(Message("agent", "I am sorry.", turn=99))
            span = Span(len(events) - 1, len(events))
            serving = Serving(Call(want.tool, want.arguments), is_made=False)
            weighed = bearing(PACK, events, span, serving)
            if weighed.purpose == "refuse" and weighed.policies:
                return compose(PACK, weighed, events[:-1], events[-1:], seed=rng.random())


def wrong_value(text: str, rng: random.Random) -> str | None:
    """The thought with one number of a policy made another."""
    clauses = [policy.definition.rstrip(".") for policy in PACK.policies.values()]
    spots = [
        match
        for clause in clauses
        if (at := text.lower().find(clause.lower())) >= 0
        for match in re.finditer(r"\$\d+\.00|\b\d+(?= hours| days| January| March|,)|\b(?:three|five|two|once)\b", text)
        if at <= match.start() < at + len(clause)
    ]
    if not spots:
        return None
    spot = rng.choice(spots)
    words = {"three": "four", "five": "six", "two": "three", "once": "once"}
    old = spot[0]
    if old.startswith("$"):
        new = f"${rng.choice([x for x in (5, 10, 35, 45, 75, 80, 120, 175, 300) if f'${x}.00' != old])}.00"
    elif old in words:
        new = words[old]
    else:
        new = str(rng.choice([x for x in (3, 6, 12, 14, 30, 36, 72, 90) if str(x) != old]))
    return text[: spot.start()] + new + text[spot.end() :] if new != old else None


def without_one(text: str, rng: random.Random) -> str | None:
    """The thought with one of several policies left out."""
    match = re.search(
        r"(What counts here|The policies for this|I have to keep in mind|Several things count): (.*?)\. ", text
    )
    if match is None or "; " not in match[2]:
        return None
    clauses = match[2].split("; ")
    clauses.pop(rng.randrange(len(clauses)))
    return f"{text[: match.start(2)]}{'; '.join(clauses)}{text[match.end(2) :]}"


def with_sentence(text: str, sentence: str, rng: random.Random) -> str:
    """The thought with a sentence put between two of its own."""
    ends = [match.end() for match in re.finditer(r"[.?] (?=[A-Z])", text)] or [0]
    at = rng.choice(ends)
    return f"{text[:at]}{sentence} {text[at:]}"


def in_other_words(rng: random.Random, bank: dict[str, list[str]], false: list[str]) -> str:
    """A thought in a frame of its own, with one to three rules in other words."""
    chosen = rng.sample(sorted(bank), rng.choice([1, 1, 2, 2, 3]))
    rules = [rng.choice(bank[policy]) for policy in chosen]
    if rng.random() < 0.35:
        rules.insert(rng.randrange(len(rules) + 1), rng.choice(false))
    text = rules[0]
    for rule in rules[1:]:
        join = rng.choice(JOINS)
        lower = rule if rule.split()[0] in ("I", "Gold", "Silver", "Standard") else rule[0].lower() + rule[1:]
        text += join + (rule if join == " " else lower)
    return rng.choice(FRAMES).format(topic=rng.choice(TOPICS), rules=text)


def sheet() -> list[dict[str, Any]]:
    rng = random.Random(SEED)
    bank = yaml.safe_load((BANK / "paraphrases.yaml").read_text(encoding="utf-8"))
    false = yaml.safe_load((BANK / "false.yaml").read_text(encoding="utf-8"))
    unwritten = [*false["made_up"], *false["turned"]]
    pool = list(dict.fromkeys(verified(420, 77)))
    rng.shuffle(pool)
    rows: list[tuple[str, str]] = [("verified", pool.pop()) for _ in range(45)]
    wanted = {"omission": 25, "wrong value": 35, "made up": 30, "irrelevant": 15}
    for kind, count in wanted.items():
        while count:
            text = pool.pop()
            match kind:
                case "omission":
                    spoilt = without_one(text, rng)
                case "wrong value":
                    spoilt = wrong_value(text, rng)
                case "made up":
                    spoilt = with_sentence(text, rng.choice(unwritten), rng)
                case _:
                    spoilt = with_sentence(text, rng.choice(list(PACK.policies.values())).definition, rng)
            if spoilt is not None:
                rows.append((kind, spoilt))
                count -= 1
    rows += [("other words", in_other_words(rng, bank, unwritten)) for _ in range(50)]
    rng.shuffle(rows)
    return [{"id": f"T{number:03}", "kind": kind, "thought": text} for number, (kind, text) in enumerate(rows, 1)]


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    rows = sheet()
    with (out / "sheet.jsonl").open("w", encoding="utf-8") as shown, (out / "key.jsonl").open("w") as key:
        for row in rows:
            shown.write(json.dumps({"id": row["id"], "thought": row["thought"]}, ensure_ascii=False) + "\n")
            key.write(json.dumps({"id": row["id"], "kind": row["kind"]}) + "\n")
    print(f"{len(rows)} thoughts in {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
