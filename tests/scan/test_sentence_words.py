"""What a sentence speaks of, in whatever forms of its words."""

import pytest

from bylaw.scan.sentence_words import Wording
from bylaw.text.stem import stem

VERBS = ["move", "cancel", "drop", "book", "refund", "change", "delete", "renew", "charge", "modify", "apply", "ship"]


@pytest.mark.parametrize(
    ("sentence", "writes", "tools", "meant"),
    [
        ("A booking may be moved once.", ["reserve_room", "move_booking"], ["get_booking"], ["move_booking"]),
        (
            "Reservations are cancelled within a day.",
            ["delete_message", "cancel_reservation"],
            [],
            ["cancel_reservation"],
        ),
        ("Delete no file.", ["drop_visit", "remove_file"], [], ["remove_file"]),
        ("We settle every bill.", ["set_mode"], [], []),
        ("Payments are refunded.", ["pay_bill", "reimburse_customer"], [], ["pay_bill", "reimburse_customer"]),
        ("Late check-out ends at two.", ["set_late_checkout", "set_room"], [], ["set_late_checkout"]),
        ("The checkup is short.", ["check_out"], [], []),
    ],
)
def test_deeds_are_told_from_things_and_from_words_that_only_begin_alike(
    sentence: str, writes: list[str], tools: list[str], meant: list[str]
) -> None:
    assert Wording(sentence).deeds(writes, [*writes, *tools]) == meant


@pytest.mark.parametrize("verb", VERBS)
def test_the_forms_of_a_verb_have_one_stem(verb: str) -> None:
    last = verb[-1]
    base = verb.removesuffix("e") if last == "e" else verb
    doubled = base + base[-1] if verb in ("cancel", "drop", "ship") else base
    past = f"{verb[:-1]}ied" if last == "y" else f"{doubled}ed"
    third = f"{verb[:-1]}ies" if last == "y" else f"{verb}s"
    assert {stem(form) for form in (verb, past, third, f"{doubled}ing")} == {stem(verb)}


@pytest.mark.parametrize(
    ("sentence", "looks", "first"),
    [
        ("Look up the patient before you book.", True, True),
        ("Look the patient's record up first.", True, True),
        ("Verify who is calling.", True, False),
        ("Only a confirmed visit can be moved.", False, False),
        ("A checkup comes before a crown.", False, False),
    ],
)
def test_looking_up_is_told_from_doing(sentence: str, looks: bool, first: bool) -> None:
    wording = Wording(sentence)
    assert (wording.looks_up, wording.looks_up_first) == (looks, first)
