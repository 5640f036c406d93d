"""What a review does to a shield: it binds the policies it names, and what is not enforced is said."""

import logging
from pathlib import Path

import pytest

from bylaw import load_pack
from bylaw.pack.review import told_unaccepted
from bylaw.shield import Shield
from bylaw.shield.backtest import backtest
from bylaw.trace import Call, Trajectory
from tests.command import bylaw
from tests.engine.test_conversation import FILES

TWO = {
    **FILES,
    "policy.md": "Refund an order only after it was returned.\nRefund paid orders only.\n",
    "entities.yaml": FILES["entities.yaml"].replace("returned: boolean", "returned: boolean, paid: boolean"),
    "policies.yaml": FILES["policies.yaml"]
    + "  - {id: paid-only, tools: [refund], spans: [{quote: Refund paid orders only.}]}\n",
    "guards/g.py": FILES["guards/g.py"]
    + """

def paid_only(call, facts):
    if facts.Order(call.order_id).paid:
        return permit()
    return deny("not paid")
""",
}


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for name, text in TWO.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def stopping(root: Path, *, returned: bool, paid: bool) -> tuple[str, ...]:
    """The policies that stop a refund."""
    session = Shield(root).session()
    assert session.decide("get_order", {"order_id": "7"}).allowed
    session.result({"order_id": "7", "returned": returned, "paid": paid})
    decision = session.decide("refund", {"order_id": "7"})
    return tuple(each.policy for each in decision.grounds if each.posture == "enforce" and each.answer == "deny")


def test_accepting_one_policy_of_a_pack_written_by_hand_leaves_the_others_enforced(by_hand: Path) -> None:
    done = bylaw(by_hand.parent, "review", by_hand, "--accept", "paid-only", "--by", "Ann")
    assert (done.returncode, "1 accepted, 1 unreviewed" in done.stdout) == (0, True)
    assert "not enforced" not in done.stdout
    assert stopping(by_hand, returned=False, paid=False) == ("returned-first", "paid-only")


def test_rejecting_one_lets_that_one_go_and_no_other_and_everything_says_so(
    by_hand: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = bylaw(by_hand.parent, "review", by_hand, "--reject", "paid-only", "--by", "Ann")
    assert "1 not enforced: paid-only (rejected)" in done.stdout
    assert stopping(by_hand, returned=False, paid=False) == ("returned-first",)
    with caplog.at_level(logging.WARNING, logger="bylaw"):
        shield = Shield(by_hand)
    assert "paid-only (rejected)" in caplog.text
    assert repr(shield) == "<shield of shop 0: enforce; 1 of 2 policies not enforced>"
    checked = bylaw(by_hand.parent, "check", by_hand).stdout
    assert "1 not enforced: paid-only (rejected)" in checked
    assert "1 enforced, 1 not accepted" in checked
    listed = bylaw(by_hand.parent, "check", by_hand, "--sentences").stdout
    assert "not accepted: paid-only (guard)" in listed
    assert "enforced: returned-first (guard)" in listed
    (by_hand / "policies.yaml").write_text(
        (by_hand / "policies.yaml").read_text()
        + "  - {id: about-paying, kind: knowledge, spans: [Refund paid orders]}\n"
    )
    assert "1 enforced, 1 not accepted" in bylaw(by_hand.parent, "check", by_hand).stdout, "knowledge enforces nothing"


def test_an_author_who_goes_on_writing_is_not_held_back_by_an_old_review(by_hand: Path) -> None:
    bylaw(by_hand.parent, "review", by_hand, "--accept", "paid-only", "--reject", "returned-first", "--by", "Ann")
    guards = by_hand / "guards/g.py"
    guards.write_text(guards.read_text().replace("not paid", "unpaid").replace("not returned", "kept"))
    assert stopping(by_hand, returned=False, paid=False) == ("returned-first", "paid-only")


def test_a_compiled_pack_says_how_many_nobody_accepted(by_hand: Path) -> None:
    (by_hand / "compiled.yaml").write_text("policies: {}\n")
    assert repr(Shield(by_hand)) == "<shield of shop 0: enforce; 2 of 2 policies not enforced>"
    assert "2 not enforced: returned-first, paid-only (unsigned)" in bylaw(by_hand.parent, "check", by_hand).stdout


def test_many_that_are_not_enforced_are_counted_and_the_first_named() -> None:
    told = told_unaccepted({**{f"p{number}": "open" for number in range(9)}, "q": "rejected"})
    assert told == "10 not enforced: p0, p1, p2, p3, p4, p5 and 3 more (open), q (rejected)"


def test_a_backtest_goes_by_what_was_reviewed(by_hand: Path, tmp_path: Path) -> None:
    trajectory = Trajectory("a", [Call("refund", {"order_id": "7"}, "1", "agent", 0)])
    (by_hand / "pack.yaml").write_text((by_hand / "pack.yaml").read_text() + "shield: {unguarded: allow}\n")
    old = load_pack(by_hand)
    rejected = tmp_path / "rejected"
    by_hand.rename(rejected)
    names = [part for name in ("paid-only", "returned-first") for part in ("--reject", name)]
    bylaw(tmp_path, "review", rejected, *names, "--by", "Ann")
    assert backtest(old, load_pack(rejected), [trajectory]).now_allowed == 1


def test_yes_and_no_to_one_policy_is_an_error_and_nothing_is_written(by_hand: Path) -> None:
    done = bylaw(by_hand.parent, "review", by_hand, "--accept", "paid-only", "--reject", "paid-only", "--by", "Ann")
    assert (done.returncode, (by_hand / "review.yaml").exists()) == (2, False)
    assert "`paid-only` is both accepted and rejected" in done.stderr


def test_no_review_is_written_into_an_installed_package(by_hand: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site-packages" / "shop"
    installed.parent.mkdir()
    by_hand.rename(installed)
    for pack, policy in ((installed, "paid-only"), ("clinic", "late-cancel-fee")):
        done = bylaw(tmp_path, "review", pack, "--accept", policy, "--by", "Ann")
        assert (done.returncode, "copy the folder" in done.stderr) == (2, True)
    assert not (installed / "review.yaml").exists()


def test_a_write_that_only_rejected_policies_bind_is_asked_about_like_any_that_none_binds(by_hand: Path) -> None:
    names = [part for name in ("paid-only", "returned-first") for part in ("--reject", name)]
    bylaw(by_hand.parent, "review", by_hand, *names, "--by", "Ann")
    session = Shield(by_hand).session()
    assert session.decide("get_order", {"order_id": "7"}).allowed
    session.result({"order_id": "7", "returned": True, "paid": True})
    decision = session.decide("refund", {"order_id": "7"})
    assert (decision.answer, decision.allowed, decision.unguarded) == ("ask", False, True)
    assert [each.because for each in decision.grounds if each.kind == "unguarded"] == [
        "no policy says whether this is allowed"
    ]


def test_a_check_marked_unenforced_is_noted_and_stops_nothing(by_hand: Path, caplog: pytest.LogCaptureFixture) -> None:
    policies = by_hand / "policies.yaml"
    mark = "  - {id: paid-only, unenforced: {accepted_by: Ann, reason: later},"
    policies.write_text(policies.read_text().replace("  - {id: paid-only,", mark))
    assert stopping(by_hand, returned=False, paid=False) == ("returned-first",)
    with caplog.at_level(logging.WARNING, logger="bylaw"):
        shield = Shield(by_hand)
    assert "1 not enforced: paid-only (unenforced)" in caplog.text
    session = shield.session()
    session.decide("get_order", {"order_id": "7"})
    session.result({"order_id": "7", "returned": True, "paid": False})
    decision = session.decide("refund", {"order_id": "7"})
    assert (decision.answer, decision.allowed) == ("deny", True)
    assert [(each.policy, each.posture) for each in decision.grounds if each.answer == "deny"] == [
        ("paid-only", "shadow")
    ]


def test_a_shield_warns_of_a_clock_that_stands_still(by_hand: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="bylaw"):
        Shield(by_hand)
        Shield("clinic")
    assert "stands still" not in caplog.text
    path = by_hand / "pack.yaml"
    path.write_text(path.read_text() + "now: 2025-05-12T09:00:00\n")
    with caplog.at_level(logging.WARNING, logger="bylaw"):
        Shield(by_hand)
    assert "`now:` in pack.yaml fixes the clock at 2025-05-12T09:00:00" in caplog.text
