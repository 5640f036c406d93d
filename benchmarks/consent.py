"""Consent on recorded airline runs, against what two readers said: precision and recall for "no consent".

    uv run python benchmarks/consent.py FOLDER [--page docs/results/consent.md]

FOLDER is the folder of the runs (`tau1/runs`, `tau2/runs`). The labels, in `benchmarks/labels/airline-consent.csv`,
name conversations and steps and hold none of their words.
"""

import argparse
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from consent_trades import open_table, table

from bylaw.consent import Consent, Consents
from bylaw.facts.ledger import Ledger
from bylaw.pack import Pack, load_pack
from bylaw.trace import Identities, Trajectory, read

ROWS = (
    ("first", "development"),
    ("first", "kept apart"),
    ("second", "development"),
    ("second", "kept apart"),
    ("random", "kept apart"),
    ("doubted", "kept apart"),
    ("traits", "kept apart"),
    ("third", "development"),
    ("third", "kept apart"),
    ("fourth", "development"),
    ("fourth", "kept apart"),
    ("fifth", "development"),
    ("fifth", "kept apart"),
    ("all", "all"),
)
DRAWS = ("first", "third", "fourth", "fifth")
"""Draws that are told by one name; all other names are of parts of the second."""
LABELS = Path(__file__).parent / "labels" / "airline-consent.csv"
PAGE = """# Consent: the airline's writes, told by code and by readers

<!-- Written by benchmarks/consent.py --page; do not edit by hand. -->

{count} accepted writes of the recorded airline runs, one from each of as many conversations, were read by two readers
with the definition at hand: told on what, what changes, and the money and the means where money moves; agreed to in a
later message; nothing that matters differs; not spent. `consented` decides without a model. A positive is a write
without consent: none, or only requested.

The first draw is by seed alone. The second has a part by seed alone (`random`), a part that an earlier `consented`
had doubted, and a part with traits that go with a missing consent (a second write after one yes, an answer without a
yes, a flight or a card that the last message did not name): positives are more frequent there than in the runs. The
third is of runs in neither of the first two: its development half has writes with such traits that `consented` took for
agreed to, its other half 14 of these, 14 that it doubted and 14 by seed alone. The fourth is of conversations in none
of the others, every agent in turn: 58 that `consented`, as it was then, called without consent or left open, and 52
that it took for agreed to. The fifth is of conversations in none of the first four, every agent in turn: all 15 that
`consented` called without consent or left open (the fourth had taken most of those), and 45 it took for agreed to.

What is called development was looked at while `consented` was written; what the first two draws kept apart was read
later. The kept parts of the third, fourth and fifth were read by nobody but their readers, but for one conversation,
which was looked at when a fault was sought. All of them were counted many times, by the `consented` of before and by
this one ([decision 110](../decisions/0110-certain-or-open.md)). Who counts often enough tunes to what is counted.
**So no row of this table speaks for unseen runs: only labels that are kept elsewhere do.**

{kept}

| draw | half | writes | without consent | precision | recall | left open | found of all |
|---|---|---|---|---|---|---|---|
{rows}

In brackets: counts, and the interval of 95 % (Wilson). Precision and recall are over the writes it decides; `found of
all` counts what it leaves open as missed.

{weighted}

The pattern that the rule had before, on the first two draws: {before}

Two readers agree on {agree} of {read} ({share:.0%}) whether the user had consented: on {first_agree} of the first
{first_count}, where the other {first_parted} were read again, on {second_agree} of the second {second_count}, on
{third_agree} of the third {third_count} (one alone read its development half), on {fourth_agree} of
{fourth_count} of the fourth (one alone read {alone} of its development half), and on {fifth_agree} of the fifth
{fifth_count}. The {parted} others are in no row above;
`consented` leaves {parted_open} of them open. Most are refunds that were told without a sum.

A refund without a sum is much of what is left open. Readers of the first draws often took it for told; those of the
fourth, who had the definition word for word, mostly did not.

| reason | writes, of {all} accepted ones | value |
|---|---|---|
{reasons}

So few of these writes lack consent that one more or less moves the figures by points: they are bounds, not digits.

## Other trades

The airline's agents and users speak in few ways. So ten authors who knew nothing of this code made conversations of
other trades and labelled each write. The first four did so for a `consented` that read English by lists, and on its
first runs it accused agreed writes in every trade: 136 of 341 of a telephone provider, 43 of 91 of a hotel, an insurer
and a grocery, 16 of 88 of a car hire, a utility and a university, 14 of 60 of a gym, a parcel service and a property
manager. What was mended for the half of them that was read did next to nothing for the other. So it was replaced.

The fifth wrote 230 conversations of a veterinary practice, a moving company and a city library, and labelled their 272
writes before anything was run on them: 183 agreed, 89 without consent. They were counted once, by the reader as it was:
nobody who agreed was accused; of 28 writes taken for agreed 26 were (.93; the goal was .97); 81 % were left open (60),
14 % of the agreed were found (40), and 27 % of those without consent (25). **Since then they were read too, and what
was missed there was mended ([decision 170](../decisions/0170-what-answers-what.md)): their rows below, like those
of all before them, no longer speak for trades that nobody has seen.**

The sixth then wrote 215 conversations of a bank, a restaurant group and an evening school, and labelled their 278
writes: 198 agreed, 80 without consent. They were counted once: **3 of the 198 who agreed were accused (1.5 %; the goal
was at most 2); of 69 writes taken for agreed 68 were (.986; .97); 69 % were left open (60), 34 % of the agreed were
found (40), and 19 % of those without consent (25).** Sound, and still too quiet by a tenth. The two faults behind the
three accusations were mended since: a number before a colon was not read, and one yes to three vouchers that are alike
was spent by the first.

Those labels say little of answers that nobody in them gave. Tried with some 400 more of them, and with questions of
the agent that ask for something else, it took most for a yes. So a yes may now say nothing that was not put, and a
question for leave may ask for nothing beside it ([280](../decisions/0280-a-yes-says-nothing-that-was-not-put.md),
[290](../decisions/0290-the-whole-answer-is-held-to-what-was-put.md)): surer, and quieter still.

The seventh wrote 206 conversations of an optician, a theatre and a newspaper, terse and full of slang, and labelled
their 279 writes: 180 agreed, 99 without consent. They were counted once, by that stricter reader: **1 of the 180 who
agreed was accused (0.6 %; at most 2); all 16 writes taken for agreed were (.97); 84 % were left open (60), 9 % of the
agreed were found (40), and 28 % of those without consent (25).** The reader of before finds 28 of them. The
accusation is mended since: it rested on a thing that no look-up had shown, of which nobody knows by what words it was
put. What is open is for a card, a model or a person.

The eighth wrote 172 conversations of a ferry line, a plant nursery and a coworking space, and labelled their 231
writes: 153 agreed, 78 without consent. They were counted once: **nobody of the 153 was accused; of 36 writes taken for
agreed 34 were (.94; .97); 81 % were left open (60), 22 % of the agreed were found (40), and 12 % of those without
consent (25).**

The ninth wrote 180 conversations of a car hire, a gym and a courier (older ones of such trades were known, none of
these), and labelled their 226 writes: 143 agreed, 83 without consent. They were counted once: **nobody of the 143 was
accused; all 47 writes taken for agreed were (.97); 73 % were left open (60), 33 % of the agreed were found (40), and
18 % of those without consent (25).**

The tenth wrote 185 conversations of a self-storage firm, a dry cleaner and a solar installer, of which many are terse,
and labelled their 208 writes: 143 agreed, 65 without consent. They were counted once, by a reader that finds only the
plain case ([531](../decisions/0531-only-the-plain-case.md), [532](../decisions/0532-which-telling-which-question.md)):
**nobody of the 143 was accused; all 25 writes taken for agreed were (.97); 79 % were left open (60), 17 % of the agreed
were found (40), and 28 % of those without consent (25).** "Move FP-70455 to tomorrow 9/11, 5-7pm, no fee?" "y" is for
people and models to read: see below, where a model was right on all 72 of them that it was asked about.

Hostile answers and questions that nobody's labels hold are in `benchmarks/consent_hostile.py`: of 87, 1 is allowed
([370](../decisions/0370-reports-units-and-slang.md)). By `python benchmarks/consent_trades.py`:

{trades}

Why writes of these trades are left open:

{opens}

Most of what is missed is in the answers. Real people say more than yes ("Just rang them, 7001 is right. Yes to all
three!"), and among answers of that kind more than one in three gives no consent ("ouch. ok let me talk to my partner
first"). No list of words tells the two apart in a trade that nobody has read, so code leaves them to a card, a model or
a person. **The goals of 40 % found and 60 % open before any model are not met, and we do not expect reading by code to
meet them safely.**

## What is open, put to a model

`bylaw audit --llm batch:DIR` asks one question for each open write: the policy, the talk, what tools showed of the
call's values, and what code could not settle. 160 open writes were drawn by seed, 40 of each of the sixth author's
trades and 40 of the airline's kept part, and answered once by fresh readers who saw the questions alone (`python
benchmarks/consent_answers.py score benchmarks/recorded/consent --trades ... --most 40`; the airline's answers quote
recorded conversations and are not kept here):

| set | asked | agreed: precision | recall | without: precision | recall | left open |
|---|---|---|---|---|---|---|
| bank, catering, school | 120 | 1.00 (78/78) | 0.97 (78/80) | 0.95 (40/42) | 1.00 (40/40) | 0 |
| airline | 40 | 0.88 (29/33) | 0.94 (29/31) | 0.71 (5/7) | 0.56 (5/9) | 0 |
| optician, theatre, newspaper | 90 | 1.00 (60/60) | 0.98 (60/61) | 0.97 (29/30) | 1.00 (29/29) | 0 |
| storage, drycleaner, solar | 72 | 1.00 (50/50) | 1.00 (50/50) | 1.00 (22/22) | 1.00 (22/22) | 0 |
| the first two of these | 160 | 0.96 (107/111) | 0.96 (107/111) | 0.92 (45/49) | 0.92 (45/49) | 0 |

Of the tenth author's trades 24 open writes each were drawn and answered by two other readers (`--most 24`).
Of the seventh author's trades 30 open writes each were drawn and answered by three other readers (`--most 30`); their
answers were brought into the schema's form, which an endpoint would have held them to.

The goal was .92 for each. In the trades it is met. On the airline it is not: of nine open writes without consent four
were taken for agreed, three of them changes whose price nobody had told. To the labels that is no consent.

Made by `python benchmarks/consent.py` (folder of the runs as its argument).
"""
PARTED = "parted"
"""The label of a write on which the readers do not agree."""


class Label(NamedTuple):
    """One labelled write."""

    trajectory: str
    step: int
    half: str
    label: str
    readers: str
    """What the two said, joined by `/`."""
    pattern: str
    """`broken` where the pattern over the last message took the write for one without consent; empty where unknown."""
    draw: str
    """`first`, `third`, `fourth`, `fifth`, or the part of the second draw."""
    weight: str = ""
    """For how many writes of the runs it stands, where it was drawn by parts of unlike size."""

    @property
    def is_agreed(self) -> bool:
        """Whether the readers agree that the user had consented, or that not."""
        return len({each == "consented" for each in self.readers.split("/")}) == 1


class Score:
    """Agreement on the positives: writes without consent."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[bool, bool | None]] = Counter()

    def add(self, label: str, value: bool | None) -> None:
        """Count one write."""
        self.counts[label != "consented", None if value is None else not value] += 1

    def row(self) -> list[str]:
        """Writes, positives, precision, recall, share left open, share of all positives found."""
        hit, false, missed = (self.counts[pair] for pair in ((True, True), (False, True), (True, False)))
        open = self.counts[True, None] + self.counts[False, None]
        positives, total = hit + missed + self.counts[True, None], sum(self.counts.values())
        return [
            str(total),
            str(positives),
            _share(hit, hit + false),
            _share(hit, hit + missed),
            _share(open, total),
            _share(hit, positives),
        ]


def _share(part: int, whole: int) -> str:
    """A share, its counts, and Wilson's interval of 95 %."""
    if not whole:
        return "-"
    share, z = part / whole, 1.96
    middle, scale = share + z * z / (2 * whole), 1 + z * z / whole
    width = z * (share * (1 - share) / whole + z * z / (4 * whole * whole)) ** 0.5
    low, high = max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)
    return f"{share:.2f} ({part}/{whole}; {low:.2f}-{high:.2f})"


def labels() -> list[Label]:
    """The labelled writes."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        return [Label(row[0], int(row[1]), *row[2:]) for row in list(csv.reader(file))[1:]]


def runs(folder: Path) -> Iterable[tuple[str, Trajectory]]:
    """The conversations under the names that an audit gives them."""
    identities = Identities()
    for path in [*sorted(folder.glob("tau1/runs/*.json*")), *sorted(folder.glob("tau2/runs/*.json*"))]:
        for each in read(path):
            if isinstance(each, Trajectory):
                yield identities.unique(each.id), each


def found(pack: Pack, folder: Path) -> dict[tuple[str, int], Consent]:
    """What is found of every accepted write."""
    answers: dict[tuple[str, int], Consent] = {}
    for name, trajectory in runs(folder):
        ledger = Ledger(pack.schema)
        ledger.observe_all(0, trajectory.events)
        consents = Consents(trajectory.events, ledger)
        for write in ledger.writes:
            if write.accepted and write.tool is not None:
                answers[name, write.step] = consents.find(write)
    return answers


def weighted(draw: str, labelled: Sequence[Label], answers: dict[tuple[str, int], Consent]) -> str:
    """What is to be expected of all the runs a draw stands for, each write counted as often as it stands for."""
    count: dict[tuple[bool, bool | None], float] = defaultdict(float)
    for label in labelled:
        if label.draw == draw and label.half == "kept apart" and label.label != PARTED:
            value = answers[label.trajectory, label.step].value
            count[label.label != "consented", None if value is None else not value] += float(label.weight)
    hit, false, missed = (count[pair] for pair in ((True, True), (False, True), (True, False)))
    open, positives = count[True, None] + count[False, None], hit + missed + count[True, None]
    return (
        f"the {draw}'s kept part has precision {_ratio(hit, hit + false)}, recall {_ratio(hit, hit + missed)}, "
        f"{open / sum(count.values()):.0%} left open, {_ratio(hit, positives)} of all found"
    )


def _ratio(part: float, whole: float) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def page(labelled: Sequence[Label], answers: dict[tuple[str, int], Consent]) -> str:
    """The results page."""
    scores: dict[tuple[str, str], Score] = {pair: Score() for pair in ROWS}
    before = Score()
    for label in labelled:
        if label.label == PARTED:
            continue
        value = answers[label.trajectory, label.step].value
        whole = label.draw if label.draw in DRAWS else "second"
        for draw in {label.draw, whole, "all"}:
            for half in (label.half, "all"):
                if (draw, half) in scores:
                    scores[draw, half].add(label.label, value)
        if label.pattern:
            before.add(label.label, label.pattern != "broken")
    rows = [f"| {draw} | {half} | {' | '.join(score.row())} |" for (draw, half), score in scores.items()]
    pattern = before.row()
    first = [label for label in labelled if label.draw == "first"]
    second = [label for label in labelled if label.draw not in DRAWS]
    third = [label for label in labelled if label.draw == "third" and "/" in label.readers]
    fourth = [label for label in labelled if label.draw == "fourth" and "/" in label.readers]
    fifth = [label for label in labelled if label.draw == "fifth"]
    expected = (
        f"With each write counted as often as the part it was drawn from is larger than what was drawn, so as the runs "
        f"have them: {'; '.join(weighted(draw, labelled, answers) for draw in ('fourth', 'fifth'))}."
    )
    parted = [label for label in labelled if label.label == PARTED]
    kept = [label for label in labelled if label.half == "kept apart" and label.label not in (PARTED, "consented")]
    told = Counter(answers[label.trajectory, label.step].value for label in kept)
    agree = {
        name: sum(label.is_agreed for label in some)
        for name, some in (
            ("first", first),
            ("second", second),
            ("third", third),
            ("fourth", fourth),
            ("fifth", fifth),
        )
    }
    read = len(first) + len(second) + len(third) + len(fourth) + len(fifth)
    reasons = Counter((answer.reason, answer.value) for answer in answers.values())
    names = {True: "consent", False: "none", None: "open"}
    return PAGE.format(
        trades=table(),
        opens=open_table(),
        count=len(labelled),
        agree=sum(agree.values()),
        read=read,
        share=sum(agree.values()) / read,
        first_agree=agree["first"],
        first_count=len(first),
        first_parted=len(first) - agree["first"],
        second_agree=agree["second"],
        second_count=len(second),
        third_agree=agree["third"],
        third_count=len(third),
        fourth_agree=agree["fourth"],
        fourth_count=len(fourth),
        fifth_agree=agree["fifth"],
        fifth_count=len(fifth),
        weighted=fill(expected, 118),
        kept=fill(
            f"Of the {len(kept)} writes without consent in all kept parts, {told[False]} are told as such, {told[None]}"
            f" are left open, and {told[True]} are taken for consent.",
            118,
        ),
        alone=sum(label.draw == "fourth" and "/" not in label.readers for label in labelled),
        parted=len(parted),
        parted_open=sum(answers[label.trajectory, label.step].value is None for label in parted),
        rows="\n".join(rows),
        before=f"precision {pattern[2]}, recall {pattern[3]}.",
        all=len(answers),
        reasons="\n".join(
            f"| {reason} | {count} | {names[value]} |" for (reason, value), count in reasons.most_common()
        ),
    )


def main() -> int:
    """Print the page, or write it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--page", type=Path)
    given = arguments.parse_args()
    text = page(labels(), found(load_pack("tau-airline/tau1"), given.folder))
    if given.page is None:
        sys.stdout.write(text)
    else:
        given.page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
