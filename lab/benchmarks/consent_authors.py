"""Scores answers by people who have not seen the code: how many yes answers count as a yes, and whether any other
answer does.

    uv run python lab/benchmarks/consent_authors.py shown [--set fresh] [--markdown]    what each author is shown
    uv run python lab/benchmarks/consent_authors.py score FILE...

An author reads a card or a sentence of the pack, and writes a customer's answers with their meaning. Each answer goes
through the shield: the agent asks, the customer answers, and the agent makes the call. A line of a file is
`{"shown": ID, "answer": TEXT, "agrees": BOOL}`.

Without a FILE, the command scores `labels/answers`. Three authors of `varied-*.jsonl` wrote as many kinds of yes as
they could think of (first count: 16 of 90 count). Three authors of `plain-*.jsonl` wrote the answers that they expect
in chat logs (first count: 69 of 90). Three authors of `chat-*.jsonl` wrote customers' answers in a support chat, for
the texts of `--set fresh`. These were counted once, after the last change (67 of 90). None of the 180 other answers
counted.
"""

import argparse
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from bylaw import Pack, Shield
from bylaw.text.number import amount_spellings

ANSWERS = Path(__file__).parent / "labels" / "answers"
SENTENCE = "Change nothing before the customer has agreed to it.\n"
TYPES = {str: "string", int: "integer", list: "array"}


class Case(Struct, frozen=True):
    """A call, and the way in which the customer is asked about it: with a card, or with a sentence from the pack."""

    id: str
    language: str
    title: str
    arguments: dict[str, Any]
    titles: tuple[str, ...] = ()
    sentence: str = ""
    money: tuple[str, str] = ("", "")
    """The argument that contains an amount, and its currency."""


DESKS: dict[str, Any] = yaml.safe_load((ANSWERS / "shown.yaml").read_text(encoding="utf-8"))
WORDS: dict[str, dict[str, Any]] = DESKS["words"]
SETS = {name: msgspec.convert(DESKS[name], list[Case]) for name in ("first", "fresh")}


def pack_of(case: Case) -> Pack:
    money, currency = case.money
    parameters = {
        name: {"title": title, "type": TYPES[type(value)]} | ({"currency": currency} if name == money else {})
        for (name, value), title in zip(case.arguments.items(), case.titles or _named(case.arguments), strict=True)
    }
    tool: dict[str, Any] = {"effect": "write", "title": case.title, "parameters": parameters, "changes": []}
    if case.sentence:
        tool["put_as"] = case.sentence
    predicates = {
        "change": {"effect": "write"},
        "agreed": {"consented": "told" if case.sentence else "card", "card": WORDS[case.language]},
    }
    rules = [{"id": "confirm", "formula": "ALWAYS (change IMPLIES agreed)"}]
    return Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
            "policy.md": SENTENCE,
            "policies.yaml": json.dumps({"policies": [{"id": "confirm", "kind": "rule", "spans": [SENTENCE.strip()]}]}),
            "rules.yaml": json.dumps({"predicates": predicates, "rules": rules}),
            "tools.yaml": json.dumps({"tools": {"act": tool}}),
        }
    )


def _named(arguments: dict[str, Any]) -> list[str]:
    return [name.replace("_", " ") for name in arguments]


def shown(case: Case) -> str:
    if case.sentence:
        ask = WORDS[case.language].get("asks", ["Shall I {call}?"])[0]
        return ask.replace("{call}", case.sentence.format(**{name: _value(case, name) for name in case.arguments}))
    with Shield(pack_of(case)).session() as session:
        session.user("Hello.")
        card = session.decide("act", case.arguments, id="tried").card
    assert card is not None, case.id
    return card.text


def _value(case: Case, name: str) -> str:
    """Return a value as it appears in the sentence."""
    value, (money, currency) = case.arguments[name], case.money
    if name == money:
        return amount_spellings(Decimal(value), currency, WORDS[case.language].get("decimal", "."))[0]
    parts = value if isinstance(value, list) else [value]
    return ", ".join(f'"{part}"' if " " in str(part) else str(part) for part in parts)


def is_allowed(case: Case, text: str, answer: str) -> bool:
    """Whether the shield allows the call after the answer. It must not allow the call before."""
    with Shield(pack_of(case)).session() as session:
        session.user("Hello.")
        assert not session.decide("act", case.arguments, id="before").allowed, case.id
        session.agent(text)
        session.user(answer)
        return session.decide("act", case.arguments, id="after").allowed


def score(files: list[Path]) -> bool:
    """Print how many answers of each kind are accepted. Return True if enough yes answers are accepted and no others
    are.
    """
    cases = {case.id: case for cases in SETS.values() for case in cases}
    counts: Counter[tuple[str, bool, bool]] = Counter()
    wrong: list[str] = []
    missed: list[str] = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            given = json.loads(line)
            case = cases[given["shown"]]
            counted = is_allowed(case, shown(case), given["answer"])
            counts[file.stem, given["agrees"], counted] += 1
            if counted and not given["agrees"]:
                wrong.append(f"{case.id}: {given['answer']}")
            if given["agrees"] and not counted:
                missed.append(f"{case.id}: {given['answer']}")
    print("| author | agree | of these count | others | of these count |\n|---|--:|--:|--:|--:|")
    for author in [*sorted({name for name, _, _ in counts}), "all"]:
        cells = [
            sum(count for key, count in counts.items() if author in ("all", key[0]) and key[1:] in kinds)
            for kinds in (
                [(True, True), (True, False)],
                [(True, True)],
                [(False, True), (False, False)],
                [(False, True)],
            )
        ]
        print(f"| {author} | {' | '.join(map(str, cells))} |")
    agreeing = sum(count for key, count in counts.items() if key[1])
    heard = sum(count for key, count in counts.items() if key[1:] == (True, True))
    for title, answers in (("count and must not", wrong), ("agree and do not count", missed)):
        print(f"{title}: {len(answers)}", *answers, sep="\n  ")
    return not wrong and heard >= 0.6 * agreeing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("shown", "score"))
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--set", choices=SETS, default="first")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if given.what == "shown":
        for case in SETS[given.set]:
            record = {"shown": case.id, "text": shown(case)}
            print(
                f"## {case.id}\n\n```\n{record['text']}\n```\n"
                if given.markdown
                else json.dumps(record, ensure_ascii=False)
            )
        return
    sets = (
        [given.files]
        if given.files
        else [sorted(ANSWERS.glob(f"{kind}-*.jsonl")) for kind in ("varied", "plain", "chat")]
    )
    if not [score(files) for files in sets][-1]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
