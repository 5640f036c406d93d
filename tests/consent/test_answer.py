"""What a whole answer says: a plain yes, a bare no, or anything else, which code does not read."""

from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.consent.answer import Shown, begins_with_yes, is_courtesy, languages, languages_of, said
from bylaw_lab.clinic import simulator
from bylaw_lab.clinic.simulator.dialogue import YES
from tests.written import load

PHRASES: dict[str, dict[str, list[str]]] = load(Path(simulator.__file__).parents[1] / "tasks" / "phrases.yaml")
SIMULATED = [*YES, *(each for part in PHRASES.values() for each in part.get("yes", ()))]

PLAIN = """
Yes | yes! | YES. | **Yes** | (yes) | yeah | Yep, thanks | y | sure | Sure thing! | ok | Okay, do it. |
Go ahead, please. | Please proceed. | I agree. | I confirm this | Confirmed. | That's correct. | Sounds good! |
Yes, perfect, thank you very much. | Works for me | By all means | \U0001f44d | \U0001f44d\U0001f3fd | Yes \U0001f642 |
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
Yes. How much is the fee? | not sure | I'm not ok with that |
Sure, why not | Yeah, right | yeah right as if | Oh sure | As if | If you must | Fine, be that way | Wait |
Hold on | Actually yes | Yes. Actually... | Yes. Wait. | It's fine | It is good | Everything is fine | That's okay |
That's fine | All good | I'm fine | Great, thanks | Continue | Carry on | Go on | go | Please continue | Right. |
word | Deal with it | correct me | Correct it | Correct that please | Confirm my booking | Approve the other |
I've changed my mind | No problem | No worries | Stop it | Don't stop | Never better | Why not | Yes \U0001f44e |
Yes \u274c | \U0001f44d\U0001f44e | Yes \U0001f609 | Yes \U0001f602 | Yes \U0001f643 | \U0001f937 | Ja |
\u0434\u0430 | Ja, aber nur eine | ye\u0455 | \uff39es | Yes. That was a joke. |
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
        ("decline the refund for order B1", "Yes, the refund for my order.", "other"),
        ("cancel flight F1 plus hotel H1", "Yes, cancel the flight", "other"),
        ("cancel order", "Yes, it", "other"),
        ("transfer money", "Yes, transfer to me", "other"),
        ("transfer money", "Yes, transfer the money to me", "other"),
        ("transfer money", "Yes, transfer my money", "yes"),
        ("transfer", "Yes, transfer it", "yes"),
        ("cancel order / refund payment", "Yes, cancel it", "other"),
        ("cancel order (close account)", "Yes, cancel it", "other"),
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
def test_a_yes_may_be_followed_by_an_echo(title: str, answer: str, says: str) -> None:
    assert said(answer, (Shown(title),)) == says


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("Ja", "yes"),
        ("JA!", "yes"),
        ("ja bitte", "yes"),
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
    assert said(answer, yes=frozenset(("ja", "na klar")), no=frozenset(("nein",))) == says


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
    assert said(answer, (Shown(asked),), no=frozenset(("halt",))) == says


@pytest.mark.parametrize(("answer", "says"), [("Tak", "yes"), ("Nie!", "no"), ("No.", "other"), ("Fine.", "other")])
def test_where_a_pack_does_not_ask_in_english_no_english_word_counts(answer: str, says: str) -> None:
    assert said(answer, yes=frozenset(("tak",)), no=frozenset(("nie",)), known=frozenset(("pl",))) == says


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
        ("Igualmente no", False),
        ("Obrigado, no", False),
        ("Thanks to me", False),
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


BAGS = Shown("add 2 checked bags to reservation X1 for $50.00", title="add checked bags")
PARTS = Shown("cancel the flight, rebook the hotel")


@pytest.mark.parametrize(
    ("shown", "answer", "says"),
    [
        (BAGS, "Yes, add them.", "other"),
        (BAGS, "Yes, add it.", "yes"),
        (BAGS, "Yes, please add the checked bags. Thank you!", "yes"),
        (BAGS, "Yes, add bags", "other"),
        (BAGS, "Yes, bags checked", "other"),
        (BAGS, "Yes, add 3 bags", "other"),
        (BAGS, "Yes, add it for $50", "other"),
        (BAGS, "Yes, only the bags", "other"),
        (BAGS, "Add the checked bags", "other"),
        (PARTS, "Yes, cancel it", "other"),
        (PARTS, "Yes, rebook the hotel", "other"),
        (Shown("send a refund, not a voucher"), "Yes, send a refund, not a voucher", "other"),
    ],
)
def test_an_echo_is_the_whole_title_or_its_verb(shown: Shown, answer: str, says: str) -> None:
    assert said(answer, (shown,)) == says


@pytest.mark.parametrize(
    "words", ["no", "OK, no", "OK, no transfer", "ok, wait", "Okay, not", "ok maar", "OK, 25", "OK, send"]
)
def test_what_denies_or_is_part_of_a_word_is_no_echo(words: str) -> None:
    text = "transfer money note: economy, wait recipient: AC-22 amount: 250.00"
    assert said(words, (Shown(text),)) != "yes"


@pytest.mark.parametrize(
    ("languages", "title", "answer", "says"),
    [
        ("zh", "\u53d6\u6d88\u8ba2\u5355", "\u597d\u7684\uff0c\u53d6\u6d88\u8ba2\u5355", "other"),
        ("zh", "\u53d6\u6d88\u8ba2\u5355", "\u597d\u7684\uff0c\u8ba2\u5355", "other"),
        ("en", "\u53d6\u6d88\u8ba2\u5355", "\u597d\u7684\uff0c\u53d6\u6d88\u8ba2\u5355", "other"),
        ("zh", "\u53d6\u6d88\u8ba2\u5355", "\u597d\u7684\uff0c\u53d6\u6d88\u8ba2\u5355 25", "other"),
        ("de", "Zimmer stornieren", "Ja, Zimmer stornieren", "yes"),
        ("de", "Zimmer stornieren", "Ja, das Zimmer", "other"),
        ("de", "Zimmer ohne Erstattung stornieren", "Ja, Zimmer stornieren", "other"),
        ("en", "Zimmer stornieren", "Ja, Zimmer stornieren", "other"),
    ],
)
def test_an_echo_is_in_the_language_of_the_text_and_has_its_verb(
    languages: str, title: str, answer: str, says: str
) -> None:
    shown = Shown(f"{title} O7 250.00", languages=frozenset((languages,)), title=title)
    assert said(answer, (shown,), known=frozenset(("de", "en"))) == says


YESES = """
Ja, bitte. | Ja gerne, vielen Dank! | Oui, s'il vous pla\xeet | D'accord, merci |
S\xed, por favor | De acuerdo, gracias |
S\xec, grazie mille | Va bene, proceda pure | Sim, por favor. Obrigado! | Ja, graag. Dank u wel | Tak, poprosz\u0119 |
Evet, l\xfctfen | \u306f\u3044\u3001\u304a\u9858\u3044\u3057\u307e\u3059\u3002 |
\ub124, \uc9c4\ud589\ud574 \uc8fc\uc138\uc694. |
\u597d\u7684\uff0c\u8c22\u8c22 | \u53ef\u4ee5
"""
NOES = """
Nein, danke. | Non merci | No, gracias | No, grazie | N\xe3o, obrigado | Nee, dank u | Nie, dzi\u0119kuj\u0119 |
Absolutely not | Of course not | Auf gar keinen Fall |
Hay\u0131r, te\u015fekk\xfcrler | \u3044\u3044\u3048 | \uc544\ub2c8\uc694 | \u4e0d\u8981
"""


@pytest.mark.parametrize(("answers", "says"), [(YESES, "yes"), (NOES, "no")], ids=["yes", "no"])
def test_the_customer_may_answer_in_another_language(answers: str, says: str) -> None:
    assert {each: said(each) for each in several(answers)} == dict.fromkeys(several(answers), says)


@pytest.mark.parametrize("answer", ["Tak", "Ja", "Si", "Nie"])
def test_a_word_with_two_meanings_counts_only_if_the_customer_writes_that_language(answer: str) -> None:
    assert said(answer) == "other"
    assert said(answer, known=frozenset(("de", "es", "pl"))) != "other"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Bitte stornieren Sie meinen Termin A1", "de"),
        ("Je voudrais annuler ma commande", "fr"),
        ("Quiero cancelar mi reserva", "es"),
        ("Vorrei cancellare il mio ordine", "it"),
        ("Ik wil graag mijn bestelling annuleren", "nl"),
        ("\u4e88\u7d04\u3092\u30ad\u30e3\u30f3\u30bb\u30eb\u3057\u3066", "ja"),
    ],
)
def test_the_language_of_a_customer_is_known_from_their_messages(text: str, language: str) -> None:
    assert language in languages_of(text)


@pytest.mark.parametrize(
    ("shown", "answer"),
    [
        ("cancel order R-7", "Good morning! Yes, please cancel order R-7. Thank you."),
        ("Soll ich den Tisch buchen?", "Ja \U0001f44d"),
        ("Shall I cancel order R-7?", "Hello, yes \U0001f44d\U0001f3fd"),
    ],
)
def test_greetings_and_thumbs_may_stand_beside_a_yes_in_any_language(shown: str, answer: str) -> None:
    assert said(answer, (Shown(shown),)) == "yes"
    assert begins_with_yes(answer)


def test_a_greeting_before_another_word_begins_with_no_yes() -> None:
    assert not begins_with_yes("Good morning, what does it cost?")
    assert not begins_with_yes("Thank you, no.")


_LISTED = frozenset(
    phrase
    for each in languages().values()
    for kind in ("yes", "ok", "alone")
    for phrase in getattr(each.phrases, kind)
    if phrase.isalpha() and each.is_spaced
)


@given(st.sampled_from(sorted(_LISTED)), st.integers(0, 9), st.sampled_from(["", *"aehiknorstuxz"]))
def test_a_word_that_only_resembles_a_yes_is_none(word: str, at: int, letter: str) -> None:
    near = word[:at] + letter + word[at + 1 :]
    assert said(word, known=frozenset(languages())) in ("yes", "other")
    if near not in _LISTED:
        assert said(near, known=frozenset(languages())) != "yes"
