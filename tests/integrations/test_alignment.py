"""Which messages of a history are new: every way in which hosts change one."""

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from bylaw.integrations.follower import Follower
from bylaw.integrations.history import Answered, Asked, Heard, Mark, Part, Summary, Turn, align
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

PAST = [Mark("user", "Hello"), Mark("agent", "Hi."), Mark("user", "Yes."), Mark("agent", "Done."), Mark("user", "More"),
        Mark("agent", "Shall I?")]  # fmt: skip
YES, NO = Mark("user", "Yes."), Mark("user", "No, stop.")


def new(known: list[Mark], given: list[Mark]) -> tuple[list[int], int | None]:
    """The messages that are told, and where something may be missing."""
    found = align(known, given)
    return sorted(found.told), found.gap


def keyed(marks: list[Mark], start: int = 0) -> list[Mark]:
    return [Mark(each.by, each.text, each.calls, f"m{start + at}") for at, each in enumerate(marks)]


@pytest.mark.parametrize("has_keys", [True, False])
@pytest.mark.parametrize("start", range(len(PAST)))
def test_after_any_trimming_from_the_front_only_the_new_words_are_new(start: int, has_keys: bool) -> None:
    past = keyed(PAST) if has_keys else PAST
    fresh = Mark("user", "Yes.", key="m90" if has_keys else "")
    assert new(past, [*past[start:], fresh]) == ([len(PAST) - start], None)


def test_only_what_is_new_is_new_even_if_it_was_said_before() -> None:
    assert new(PAST, [YES]) == ([0], None)


def test_ids_that_are_made_anew_each_time_are_no_ids() -> None:
    assert new(keyed(PAST), keyed([*PAST, YES], start=50)) == ([6], None)


def test_an_id_that_all_messages_share_is_none() -> None:
    fake = [Mark(each.by, each.text, key="__fake__" if each.by == "agent" else "") for each in PAST]
    assert new(fake, [*fake, YES]) == ([6], None)
    assert new(fake[:2], [*fake[2:4], YES])[0] == [0, 1, 2]


def test_what_stands_in_the_place_of_the_beginning_is_not_new() -> None:
    assert new(PAST, [Mark("user", "A summary: yes, do it."), *PAST[3:], YES]) == ([4], None)
    assert new(PAST, [PAST[0], *PAST[3:], YES]) == ([4], None), "the first one is kept"
    # After a shorter end only the last exchange counts.
    assert new(PAST, [Mark("user", "A summary: yes, do it."), *PAST[4:], YES]) == ([2, 3], 2)


def test_what_stands_in_the_middle_of_what_was_heard_leaves_a_gap() -> None:
    past = keyed(PAST)
    inserted = [*past[:3], Mark("user", "No, stop.", key="m70"), *past[3:], Mark("user", "Yes.", key="m71")]
    assert new(past, inserted) == ([6, 7], 6), "what they answer is put again"


@pytest.mark.parametrize("at", range(len(PAST)))
@pytest.mark.parametrize("has_keys", [True, False])
def test_a_copy_of_what_was_heard_is_not_new(at: int, has_keys: bool) -> None:
    past = keyed(PAST) if has_keys else PAST
    fresh = Mark("user", "Yes.", key="m90" if has_keys else "")
    assert new(past, [*past[: at + 1], *past[at:], fresh]) == ([7], None)


def test_after_another_wording_of_what_was_heard_only_the_last_exchange_counts() -> None:
    assert new(PAST, [*PAST[:4], Mark("user", "[12:01] More"), PAST[5], YES]) == ([5, 6], 5)
    assert new(PAST, [*PAST[:5], Mark("agent", "Shall I do it?"), YES]) == ([5, 6], 5)


def test_a_history_that_went_back_in_time_leaves_a_gap_before_new_words() -> None:
    for word in (NO, YES):
        assert new(PAST, [*PAST[:4], word]) == ([3, 4], 3), "with the message that it answers"


@pytest.mark.parametrize("has_keys", [True, False])
@pytest.mark.parametrize("end", range(1, len(PAST) - 1))
def test_a_history_that_ends_before_what_the_user_said_last_leaves_a_gap(end: int, has_keys: bool) -> None:
    past = keyed(PAST) if has_keys else PAST
    assert new(past, past[:end])[1] is not None
    assert new(past, [*past[:end], Mark("agent", "", ("c1",), "m99" if has_keys else "")])[1] is not None


def test_a_run_that_is_tried_again_says_nothing_new() -> None:
    past = [*PAST, YES, Mark("agent", "", ("call_1",))]
    assert new(past, [*PAST, YES]) == ([], None)


def test_of_a_history_that_nobody_knows_only_the_last_exchange_counts() -> None:
    strange = [Mark("user", "Book it"), Mark("agent", "Which?"), Mark("user", "That"), Mark("agent", "This?"), YES]
    assert new(PAST, strange) == ([0, 1, 2, 3, 4], 3)
    assert new(PAST, [NO, YES]) == ([0, 1], 1)


def test_an_old_yes_that_was_moved_to_the_end_is_no_new_one() -> None:
    past = keyed(PAST)
    assert new(past, [past[5], Mark("user", "Hm", key="m80"), past[2]])[0] == []
    assert new(PAST, [PAST[5], Mark("user", "Hm"), YES]) == ([1, 2], 1)


def test_a_reply_that_was_given_before_does_not_hide_what_it_answers() -> None:
    assert new([*PAST, YES, Mark("agent", "All right.")], [NO, Mark("agent", "All right.")])[0] == [0, 1]


def test_words_that_were_changed_after_they_were_heard_are_heard_with_a_gap() -> None:
    past = keyed([*PAST, YES])
    changed = [*past[:-1], Mark("user", "No, stop.", key=past[-1].key)]
    assert new(past, changed) == ([6], 6)


@pytest.mark.parametrize("has_keys", [True, False])
@pytest.mark.parametrize("words", ["No, stop.", "Not yes, do it", "Yes, but 60", "yes"])
def test_an_edit_of_what_the_user_said_last_is_heard_after_the_agent_has_spoken(words: str, has_keys: bool) -> None:
    past = [*PAST, YES, Mark("agent", "One moment.")]
    past = keyed(past) if has_keys else past
    at = len(PAST)
    changed = [*past[:at], replace(past[at], text=words), *past[at + 1 :]]
    assert new(past, changed) == ([at], at)
    # What they say next is heard alone, and what was rewritten before it is no gap.
    known = [*changed, Mark("agent", "Shall I?", key="q" if has_keys else "")]
    assert new(known, [*known, NO]) == ([len(known)], None)


def test_long_histories_are_placed_in_a_short_time() -> None:
    past = [Mark("user" if at % 2 == 0 else "agent", f"said {at % 7}") for at in range(3000)]
    begun = time.process_time()
    align(past, [Mark("user", "another"), *past[-800::2], YES])
    assert time.process_time() - begun < 5


def test_after_a_summary_the_user_is_asked_again_and_heard(tmp_path: Path) -> None:
    """What a model wrote in the place of the user's yes is no yes; one to the card is."""
    asked = {"rental_id": "R1"}
    with desk(tmp_path) as shield:
        follower = Follower(shield.session("c", context=CUSTOMER))
        history: list[Part] = [Heard("Extend R1 to 2026-11-20.", "1")]
        history.append(Turn("", (Asked("g", "get_rental", asked),), "2"))
        follower.follow(history)
        follower.decide("g", "get_rental", asked)
        history += [Answered("g", Rentals().rental), Turn(PUT_EXTEND, (), "3"), Heard("Yes", "4")]
        follower.follow(history)
        follower.follow([Summary(), Turn("", (Asked("w", "extend_rental", EXTEND),), "9")])
        refused = follower.decide("w", "extend_rental", EXTEND)
        assert not refused.allowed
        assert refused.card is not None
        assert refused.feedback.endswith(refused.card.text)
        assert "do not try again" not in refused.feedback
        told: list[Part] = [Turn("", (Asked("w", "extend_rental", EXTEND),), "9"), Answered("w", refused.feedback)]
        told += [Turn(refused.card.text, (), "10"), Heard("Yes", "11")]
        told.append(Turn("", (Asked("x", "extend_rental", EXTEND),), "12"))
        follower.follow([Summary(), *told])
        assert follower.decide("x", "extend_rental", EXTEND).allowed
