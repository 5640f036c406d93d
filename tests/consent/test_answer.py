"""What a whole answer says: a plain yes, a bare no, or anything else, which code does not read."""

from pathlib import Path
from time import process_time

import pytest

from bylaw.consent.answer import begins_with_yes, is_courtesy, is_english, said
from bylaw_lab.clinic import simulator
from bylaw_lab.clinic.simulator.dialogue import YES
from tests.written import load

PHRASES: dict[str, dict[str, list[str]]] = load(Path(simulator.__file__).parents[1] / "tasks" / "phrases.yaml")
SIMULATED = [*YES, *(each for part in PHRASES.values() for each in part.get("yes", ()))]

PLAIN = """
Yes | yes! | YES. | **Yes** | (yes) | yeah | Yep, thanks | y | sure | Sure thing! | ok | Okay, do it. |
Go ahead, please. | Please proceed. | I agree. | I confirm this | Confirmed. | That's correct. | Sounds good! |
Perfect, thank you very much. | Works for me | By all means | \U0001f44d | \U0001f44d\U0001f3fd | Yes \U0001f642 |
Yes, do it now and thanks a lot | Yes please, carry on. | Yes\nplease | Just do it |
Yes, that's fine | Yes, I do | Yes, I'd like that | Yes, that would be great, thank you! | Yes, let's do it |
Yes, I'm sure | Yes, you can go ahead | You may proceed | yes plz | Yes \u2013 go ahead | Yes\u2014go ahead | Yes :) |
Yes, all good | Yes, it is | Awesome, yes please | Yes, no problem | Yes, I understand and agree |
Yes, please. Thank you for your help! | Yes, confirm it | Yes, please confirm
"""
BARE = """
No | no. | Nope, thanks | Nooo! | No thank you | Don\u2019t. | Do not proceed | I'd rather not | not now |
Never mind | Forget it | Leave it as it is | Stop | I don't want that | no no
"""
NEITHER = """
? | ... | Thanks | Please | Great! | Good. | Now | Hm | maybe | I guess so | whatever | Yes? | Yes?! | yes... |
yes\u2026 | ~~yes~~ | > yes | \"Yes\" | `yes` | <s>yes</s> | yes\u200b | [x] yes | Yes and no | Yes, no | No, yes |
yes/no | yes or no | No, go ahead | No, that's right | Yes, and | Yes, but | Yes, but only 100 | Yes if it is free |
Yes, tomorrow | Yes. To my savings. | Yes, the other one | Yes, half | Yes, 250 | Yes, both | yes to keeping it |
Yes. How much is the fee? | Of course not | Certainly not | Absolutely not | not sure | I'm not ok with that |
Sure, why not | Yeah, right | yeah right as if | Oh sure | As if | If you must | Fine, be that way | Wait |
Hold on | Actually yes | Yes. Actually... | Yes. Wait. | It's fine | It is good | Everything is fine | That's okay |
That's fine | All good | I'm fine | Great, thanks | Continue | Carry on | Go on | go | Please continue | Right. |
word | Deal with it | correct me | Correct it | Correct that please | Confirm my booking | Approve the other |
I've changed my mind | No problem | No worries | Stop it | Don't stop | Never better | Why not | Yes \U0001f44e |
Yes \u274c | \U0001f44d\U0001f44e | Yes \U0001f609 | Yes \U0001f602 | Yes \U0001f643 | \U0001f937 | Ja | Oui |
S\xed | \u0434\u0430 | \u306f\u3044 | Ja, aber nur eine | ye\u0455 | \uff39es | Yes. That was a joke. |
Yes said nobody | Please confirm | please confirm that | Confirm | Fine, all good | Ok, no problem | Ok, it is |
Yes, I understand | Yes, it's fine | Sure, it is good | I do | It is | Let's do it | That would be great |
You may not proceed | Yes ;) | Yes :( | Yes, that's fine, don't | Awesome | Yes-no
"""


def several(answers: str) -> list[str]:
    return [each.strip(" \n") for each in answers.replace("|\n", "|").split("|")]


def test_there_are_phrases_of_our_simulators() -> None:
    assert len(SIMULATED) > 12


@pytest.mark.parametrize("answer", [*SIMULATED, *several(PLAIN)])
def test_a_plain_yes(answer: str) -> None:
    assert said(answer) == "yes"


@pytest.mark.parametrize("answer", several(BARE))
def test_a_bare_no(answer: str) -> None:
    assert said(answer) == "no"


@pytest.mark.parametrize("answer", ["", " ", "yes " * 60, *several(NEITHER)])
def test_anything_else_is_neither(answer: str) -> None:
    assert said(answer) == "other"


@pytest.mark.parametrize(
    ("title", "answer", "says"),
    [
        ("cancel order", "Yes, cancel it", "yes"),
        ("cancel order", "Yes, cancel the order, please.", "yes"),
        ("cancel order", "ok cancel", "yes"),
        ("cancel order", "Cancel it, yes", "other"),
        ("cancel order", "Cancel it", "other"),
        ("cancel order", "No, cancel it", "other"),
        ("cancel order", "Yes, the order", "other"),
        ("cancel order", "Yes, it", "other"),
        ("cancel order", "Confirm my order", "other"),
        ("cancel order", "Confirm the order", "other"),
        ("cancel plan", "Continue my plan", "other"),
        ("cancel plan", "Yes, continue my plan", "other"),
        ("cancel booking", "Correct the booking", "other"),
        ("transfer to other account", "Yes, other account", "other"),
        ("transfer to other account", "Yes, to my other account", "other"),
        ("send refund instead of voucher", "Yes, voucher", "other"),
        ("cancel or keep order", "Yes, cancel", "other"),
        ("cancel and reorder", "Yes, cancel it", "other"),
        ("cancel or keep order", "Yes", "yes"),
        ("stop payment", "Stop", "other"),
        ("stop payment", "No", "no"),
        ("stop payment", "Yes, stop payment", "other"),
    ],
)
def test_an_answer_may_name_the_deed_from_its_first_word_on(title: str, answer: str, says: str) -> None:
    assert said(answer, title) == says


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("Ja", "yes"),
        ("JA!", "yes"),
        ("ja bitte", "other"),
        ("Ja?", "other"),
        ("Ja\u061f", "other"),
        ("Ja...", "other"),
        ("~~Ja~~", "other"),
        ("> Ja", "other"),
        ("Ja \U0001f44e", "other"),
        ("Nein.", "no"),
        ("Nein, ja", "other"),
        ("Yes", "yes"),
        ("na klar", "yes"),
    ],
)
def test_a_pack_has_words_of_its_own(answer: str, says: str) -> None:
    assert said(answer, "", frozenset(("ja", "na klar")), frozenset(("nein",))) == says


@pytest.mark.parametrize(
    ("asked", "answer", "says"),
    [
        ("Shall I leave parcel P-1 at the door?", "Please leave it, thank you!", "other"),
        ("Shall I leave parcel P-1 at the door?", "No, thanks.", "no"),
        ("I will stop the renewal of S-1. Shall I go ahead?", "Please stop.", "other"),
        ("I will stop the renewal of S-1. Shall I go ahead?", "Please do not go ahead", "no"),
        ("Shall I not renew contract K-1?", "No, please don't.", "other"),
        ("Shall I say that you won't come?", "No", "other"),
        ("Shall I not renew contract K-1?", "Yes.", "yes"),
        ("Shall I note K-1?", "No.", "no"),
        ("Shall I halt K-1?", "Halt", "other"),
    ],
)
def test_a_no_in_the_words_of_what_was_asked_is_none(asked: str, answer: str, says: str) -> None:
    assert said(answer, no=frozenset(("halt",)), asked=asked) == says


@pytest.mark.parametrize(("answer", "says"), [("Tak", "yes"), ("Nie!", "no"), ("No.", "other"), ("Fine.", "other")])
def test_where_a_pack_does_not_ask_in_english_no_english_word_counts(answer: str, says: str) -> None:
    assert said(answer, "", frozenset(("tak",)), frozenset(("nie",)), is_english=False) == says


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("Shall I do this? Please answer yes or no.", True),
        ("Do you agree?", True),
        ("Is that right?", True),
        ("Devo farlo? Rispondere s\xec o no.", False),
        ("Zrobi\u0107 to? Tak lub nie.", False),
        ("Soll ich das tun? Bitte antworten Sie mit Ja oder Nein.", False),
        ("Jeg har en tid i morgen klokken ni, er det i orden for dig at have den?", False),
    ],
)
def test_what_is_english(text: str, is_so: bool) -> None:
    assert is_english(text) is is_so


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("Thanks!", True),
        ("Great, thank you very much.", True),
        ("Good morning", True),
        ("Thank you for your help, have a nice day. Bye!", True),
        ("", False),
        ("Great.", False),
        ("Thanks, but no", False),
        ("Thanks. Yes.", False),
        ("Thanks?", False),
        ("Thank you, wait", False),
    ],
)
def test_what_is_a_courtesy(text: str, is_so: bool) -> None:
    assert is_courtesy(text) is is_so


@pytest.mark.parametrize("part", [",", ".", "please ", "no", "- ", "\n", " ", "Don't worry ", ":)", "yes", "no. "])
def test_a_message_of_a_megabyte_is_read_in_no_time(part: str) -> None:
    text = "see" + part * (1_000_000 // len(part)) + "x"
    start = process_time()
    for each in (text, text[3:]):
        assert said(each) == "other"
        begins_with_yes(each)
        is_courtesy(each)
    assert process_time() - start < 8, "a quadratic one takes hours"
