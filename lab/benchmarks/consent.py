"""Compares decisions about consent with readers' labels, on recorded airline runs and in other domains.

    uv run python lab/benchmarks/consent.py FOLDER [--page lab/results/pages/consent.md]

FOLDER contains the runs (`tau1/runs`, `tau2/runs`). The labels in `lab/benchmarks/labels/airline-consent.csv` name
conversations and steps, and contain none of their text.
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from consent_hostile import allowed, tries
from consent_trades import counted_all, table

from bylaw.consent import Consent, Consents
from bylaw.facts.ledger import Ledger
from bylaw.pack import Pack, load_pack
from bylaw.trace import Identities, Trajectory, read

LABELS = Path(__file__).parent / "labels" / "airline-consent.csv"
PAGE = """# Consent: what code, readers and models make of recorded talks

<!-- Written by lab/benchmarks/consent.py --page; do not edit by hand. -->

Code reads no prose: a yes counts to a card, or to a sentence in
which the pack has its agents ask. The agents below had neither, so none of their agreed writes is found, and most of
all writes are open. What is counted here is what code still says by structure alone, and whether it is right.

| | agreed | accused | found agreed | open | without consent | found | open | taken for agreed |
|---|---|---|---|---|---|---|---|---|
{rows}

*Without consent* and *found*: nothing had been put to the user, or the yes was
used up. **Nobody who had a yes is accused, and nobody who had none is let through.**

The airline's labels are of {count} accepted writes of recorded runs, one from each of as many conversations. Two
readers agree on {agree} of {read} ({share:.0%}) whether the user had consented; the {parted} on which they part are in
no row, and code leaves {parted_open} of them open. The {trade_count} writes of other trades are of conversations by ten
authors who knew nothing of this code, 28 trades from a bank to a vet, each write labelled by its author. All these
labels have been counted many times, and code was changed after it: they can show that something is wrong, not that
nothing is.

Beside the labels there are {tries} answers and questions that somebody made up to get a call through without a yes,
such as "Yes, in theory" to a sentence of the pack's, and "Shall I undo the transfer of 250.00 from H-11 to H-22?"
(`python lab/benchmarks/consent_hostile.py`). Allowed: {allowed}.

| reason | writes, of {all} accepted ones of the airline | value |
|---|---|---|
{reasons}

By trade (`python lab/benchmarks/consent_trades.py`):

{trades}

## What is open, put to a model

An earlier wording of the question took 6 of 87 hostile answers for a yes. Where a model may settle a consent live
(`model: may settle`), expect that somebody who tries to deceive it succeeds now and then. This cannot happen with a
card.

Made by `python lab/benchmarks/consent.py` (folder of the runs as its argument).
"""
PARTED = "parted"
"""The label of a write on which the readers disagree."""


class Label(NamedTuple):
    """One labelled write."""

    trajectory: str
    step: int
    half: str
    label: str
    readers: str
    """The labels of both readers, joined by `/`."""
    pattern: str
    """`broken` if the pattern over the last message found no consent. Empty if that is unknown."""
    draw: str
    """`first`, `third`, `fourth` or `fifth`, or for the second draw, the name of its part."""
    weight: str = ""
    """How many writes in the runs this write represents, if the parts of the draw have different sizes."""

    @property
    def is_agreed(self) -> bool:
        """Whether both readers say that the user consented, or both say that the user did not."""
        return len({each == "consented" for each in self.readers.split("/")}) == 1


def labels() -> list[Label]:
    with LABELS.open(encoding="utf-8", newline="") as file:
        return [Label(row[0], int(row[1]), *row[2:]) for row in list(csv.reader(file))[1:]]


def runs(folder: Path, parts: Sequence[str] = ("tau1", "tau2")) -> Iterable[tuple[str, Trajectory]]:
    """Yield the conversations in these parts, under their names in an audit."""
    identities = Identities()
    for path in [path for part in parts for path in sorted(folder.glob(f"{part}/runs/*.json*"))]:
        for each in read(path):
            if isinstance(each, Trajectory):
                yield identities.unique(each.id), each


def found(pack: Pack, folder: Path) -> dict[tuple[str, int], Consent]:
    """Return what code decides about every accepted write."""
    answers: dict[tuple[str, int], Consent] = {}
    for name, trajectory in runs(folder):
        ledger = Ledger(pack.schema)
        ledger.observe_all(0, trajectory.events)
        consents = Consents(trajectory.events, ledger)
        for write in ledger.writes:
            if write.accepted and write.tool is not None:
                answers[name, write.step] = consents.find(write)
    return answers


def row(name: str, seen: Counter[tuple[str, str]]) -> str:
    """Return one line of the table: the number of writes by label and decision."""
    cells: list[int] = []
    for label, order in (("kept", ("broken", "kept", "open")), ("broken", ("broken", "open", "kept"))):
        cells += [sum(seen[label, each] for each in order), *(seen[label, each] for each in order)]
    return f"| {name} | {' | '.join(f'{each:,}' for each in cells)} |"


def page(labelled: Sequence[Label], answers: dict[tuple[str, int], Consent]) -> str:
    names = {True: "kept", False: "broken", None: "open"}
    airline: Counter[tuple[str, str]] = Counter()
    for label in labelled:
        if label.label != PARTED:
            value = answers[label.trajectory, label.step].value
            airline["kept" if label.label == "consented" else "broken", names[value]] += 1
    twice = [label for label in labelled if "/" in label.readers]
    parted = [label for label in labelled if label.label == PARTED]
    trades = counted_all()
    reasons = Counter((answer.reason, answer.value) for answer in answers.values())
    values = {True: "consent", False: "none", None: "open"}
    return PAGE.format(
        rows="\n".join((row("airline", airline), row("other trades", trades), row("all", airline + trades))),
        count=len(labelled),
        agree=sum(label.is_agreed for label in twice),
        read=len(twice),
        share=sum(label.is_agreed for label in twice) / len(twice),
        parted=len(parted),
        parted_open=sum(answers[label.trajectory, label.step].value is None for label in parted),
        trade_count=f"{sum(trades.values()):,}",
        tries=len(tries()),
        allowed=", ".join(f'"{answer}" to "{asked}"' for asked, answer, _, _ in allowed()) or "none",
        all=f"{len(answers):,}",
        reasons="\n".join(
            f"| {reason} | {count} | {values[value]} |" for (reason, value), count in reasons.most_common()
        ),
        trades=table(),
    )


def main() -> int:
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
