"""Whether provenance changes a verdict of a pack that does not ask for it: call by call, in clinic and airline.

    uv run python lab/benchmarks/provenance_law.py [--count 500] [--data ../shared/data]

Each conversation is audited three times: as always; without provenance, so that any use of it fails; and with every
argument of every judged call traced before the call is judged. The exit status is 1 if any verdict or finding differs.
"""

import argparse
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from prefix_law import DATA, recorded, simulated

from bylaw import Pack, Trajectory, verdicts
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.facts.ledger import Ledger
from bylaw.facts.provenance import Provenance
from bylaw.facts.tracing import origins_of
from bylaw.trace.event import Call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="simulated conversations for each of ten seeds")
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    wrong = 0
    for name, talks in (("clinic", simulated(given.count)), ("airline", recorded(given.data))):
        conversations = calls = traced = differing = 0
        for pack, talk in talks:
            conversations += 1
            plain = told(pack, talk)
            with without_provenance():
                differing += told(pack, talk) != plain
            with with_provenance() as asked:
                differing += told(pack, talk) != plain
            calls, traced = calls + len(plain[0]), traced + asked()
        print(
            f"{name}: {conversations:,} conversations, {calls:,} judged calls, {traced:,} arguments traced, "
            f"{differing:,} conversations differ"
        )
        wrong += differing
    return 1 if wrong else 0


def told(pack: Pack, talk: Trajectory) -> tuple[list[Any], Any]:
    """All that an audit says of a conversation."""
    found = verdicts(pack, talk)
    return [_said(each) for each in found.calls], found.findings


def _said(verdict: CallVerdict) -> tuple[Any, ...]:
    return (
        *(verdict.made.step, verdict.strict, verdict.determined, verdict.policies, verdict.fault),
        *(verdict.rules, verdict.open_rules, verdict.origins),
    )


@contextmanager
def without_provenance() -> Generator[None]:
    """Nobody can ask where a value came from."""

    def refused(ledger: Ledger, context: Mapping[str, Any]) -> Provenance:
        raise AssertionError("a pack that does not ask for provenance was given it")

    with patch.object(Ledger, "provenance", refused):
        yield


@contextmanager
def with_provenance() -> Generator[Callable[[], int]]:
    """Every argument is traced before its call is judged; gives how many were."""
    judge, traced = Session.judge, 0

    def tracing(session: Session, call: Call) -> Any:
        nonlocal traced
        judgement = judge(session, call)
        traced += len(origins_of(session.ledger, judgement.made, {}))
        return judge(session, call)

    with patch.object(Session, "judge", tracing):
        yield lambda: traced


if __name__ == "__main__":
    raise SystemExit(main())
