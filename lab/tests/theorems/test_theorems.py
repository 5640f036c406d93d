"""A small search for a counterexample to the guarantees of `allow`."""

from decimal import Decimal
from pathlib import Path
from random import Random

from click.testing import CliRunner
from msgspec.structs import replace

import bylaw
from bylaw.record import Log
from bylaw_lab.cli import main
from bylaw_lab.theorems.checker import rejection
from bylaw_lab.theorems.generator import conversation
from bylaw_lab.theorems.planted import BUGS, plant
from bylaw_lab.theorems.run import check_conversations, seeds_of, told
from bylaw_lab.theorems.truth import (
    Allowed,
    HandedOver,
    Issued,
    PersonAnswered,
    PersonAsked,
    Pressed,
    Ran,
    Said,
    True_,
    key,
)
from bylaw_lab.theorems.truth import Shown as Looked

CALL = key("transfer", {"to": "AC-22", "amount": "250.00"})
SHOWN = Said("agent", "Shall I transfer 250.00 to AC-22?", 0.0, shows=(CALL,))
YES = Said("user", "Yes", 0.0, "P1", "yes")
ALLOWED = Allowed(CALL, 0.0, ("T2-told",), "P1")


def test_no_allowed_call_breaks_a_theorem() -> None:
    report = check_conversations(seeds_of(7, 300))
    assert report.rejected == [], "\n".join(told(report))
    assert report.allows["all"] > 100


def _why(*before: True_, allowed: Allowed = ALLOWED) -> str:
    events = [*before, allowed]
    return " ".join(rejection(events, len(events) - 1).values())


def test_a_yes_to_this_exact_call_permits_it() -> None:
    assert _why(SHOWN, YES) == ""
    assert _why(Issued("1", CALL, 0.0), Pressed("1", CALL, True, 0.0, 1, "P1")) == ""


def test_the_checker_rejects_an_allow_without_a_valid_yes() -> None:
    other = Said("user", "Wait", 0.0, "P1")
    assert "never said yes" in _why(SHOWN)
    assert "never said yes" in _why(SHOWN, YES, HandedOver("P2"))
    assert "never said yes" in _why(SHOWN, Said("other", "Yes", 0.0))
    assert "something else after the yes" in _why(SHOWN, YES, other)
    assert "may have used the yes" in _why(SHOWN, YES, Ran(CALL, "may have run"))
    respelled = key("transfer", {"to": "ac22", "amount": "250"})
    assert "may have used the yes" in _why(SHOWN, YES, Ran(respelled, "ran"))
    assert "too old" in _why(SHOWN, YES, allowed=Allowed(CALL, 7201.0, ("T2-told",), "P1"))
    late = Pressed("1", CALL, True, 0.0, 1, "P1")
    assert "between the press and its report" in _why(Issued("1", CALL, 0.0), other, late)


def test_the_checker_rejects_a_yes_to_another_fee() -> None:
    seen, shown = Looked("AC-22", Decimal("1.50"), 0), replace(SHOWN, fees=("1.50",))
    allowed = replace(ALLOWED, shows_fee=True)
    assert _why(seen, shown, YES, allowed=allowed) == ""
    assert "not known" in _why(shown, YES, allowed=allowed)
    assert "never said yes" in _why(seen, replace(SHOWN, fees=("2.00",)), YES, allowed=allowed)
    changed = Looked("AC-22", Decimal("2.00"), 3)
    assert "never said yes" in _why(seen, shown, YES, changed, allowed=allowed)
    assert "not known" in _why(seen, Ran(CALL, "may have run"), shown, YES, allowed=allowed)
    press = Pressed("1", CALL, True, 0.0, 2, "P1")
    assert _why(seen, Issued("1", CALL, 0.0, "1.50"), press, allowed=allowed) == ""
    assert "never said yes" in _why(seen, Issued("1", CALL, 0.0, "2.00"), press, allowed=allowed)


def test_a_card_that_was_issued_in_a_race_is_a_true_event() -> None:
    report = check_conversations(["20261206:97667"])
    assert (report.allows["T2-told"], report.rejected) == (1, [])


def test_an_approval_is_not_used_by_the_same_call_in_another_conversation() -> None:
    asked, answered = PersonAsked("a", CALL, 0.0, "", "P1", "one"), PersonAnswered("a", True, 0.0)
    mine = Allowed(CALL, 0.0, ("T6-approvals",), "P1", chat="one")
    assert _why(asked, answered, replace(mine, chat="two"), allowed=mine) == ""
    assert "the approval was used" in _why(asked, answered, mine, allowed=mine)
    with Log(":memory:") as log:
        events = conversation(Random("5:1110"), log, log, "t", "limits")
    assert len({each.chat for each in events if isinstance(each, Allowed)}) > 1


def test_the_command_replays_one_conversation_by_its_seed() -> None:
    result = CliRunner().invoke(main, ["theorems", "--only", "7:3"])
    assert result.exit_code == 0, result.output
    assert "conversations: 1" in result.output


def test_the_search_finds_a_planted_bug(tmp_path: Path) -> None:
    (verdict,) = plant(400, 1, tmp_path, ("a yes permits any number of calls",))
    assert verdict.is_found, verdict.output
    assert "may have used the yes" in verdict.output


def test_every_planted_bug_is_in_the_source_once() -> None:
    source = Path(bylaw.__file__).parent
    assert [bug.name for bug in BUGS if (source / bug.file).read_text(encoding="utf-8").count(bug.old) != 1] == []
    assert len(BUGS) >= 20
