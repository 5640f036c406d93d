"""What spares work gives the same answers as the plain way, and a long talk costs no more than a short one."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.engine.consent import Consent, Consents, weighing
from bylaw.engine.consent.answer import affirmation, plain_yes, refusal, user_answer
from bylaw.engine.consent.answer.plain_yes import is_bare_yes, is_plain_yes
from bylaw.engine.consent.call.deed import Deed, any_deed, deeds
from bylaw.engine.consent.put import beside, proposal
from bylaw.engine.consent.said.mentions import Mentions
from bylaw.engine.consent.said.number import counts
from bylaw.engine.consent.said.utterance import Utterance
from bylaw.engine.consent.shown.field_values import FieldValues
from bylaw.engine.consent.shown.records import Records
from bylaw.engine.consent.told import payment, price
from bylaw.engine.consent.weighing import Weighing
from bylaw.facts import condition, sentence
from bylaw.facts.folded_text import fold, occurs
from bylaw.facts.ledger import Ledger
from bylaw.facts.phrases import Phrases
from bylaw.facts.spelling import spell
from bylaw.trace.event import Call, Event, Message, Result
from tests.engine.clinic import conversations
from tests.engine.clinic import pack as clinic_pack
from tests.engine.consent.shop import SCHEMA, ask, events_of
from tests.engine.consent.test_consent import CASES as CONSENT_CASES
from tests.engine.consent.test_consent import last_call
from tests.engine.consent.test_proposal import ASKS, DOES_NOT
from tests.examples import examples

PHRASES = [
    (name, phrases)
    for module in (
        sentence,
        condition,
        affirmation,
        refusal,
        user_answer,
        plain_yes,
        proposal,
        beside,
        weighing,
        payment,
        price,
    )
    for name, phrases in vars(module).items()
    if isinstance(phrases, Phrases)
]
CASES = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("cases.yaml", "families.yaml"))
VALUES = (
    "R-1",
    "R-10",
    "R-1001",
    5,
    12.5,
    1200,
    "2024-05-05",
    "2024-05-20T10:00",
    "gift_card_77",
    "mia_li",
    "Ed O'Hara",
)
WORDS = (
    *("R-1", "r-10", "R-1001x", "5", "five", "05", "12.50", "$1,200", "1200.00", "May 5th", "5 may 2024", "2024-05-05"),
    *("2024-05-201", "20th of May", "2024-05-20t10:00", "gift card 77", "Mia Li", "Ed O'Hara", "mia", "and", "7", "1"),
)


@cache
def sentences() -> list[str]:
    """Sentences of cases and of simulated conversations."""
    talks = "\n".join(each.text for talk in conversations()[:40] for each in talk.events if isinstance(each, Message))
    lines = "\n".join((CASES, ASKS, DOES_NOT, talks)).splitlines()
    return sorted({part for line in lines for part in sentence.sentences(line)})


@pytest.mark.parametrize("phrases", [each for _, each in PHRASES], ids=[name for name, _ in PHRASES])
def test_a_phrase_is_found_as_by_trying_every_pattern(phrases: Phrases) -> None:
    whole = re.compile("|".join(f"(?:{pattern})" for pattern in phrases.patterns))
    texts = list(sentences())
    assert phrases.among(texts, " ".join(texts)) == [text for text in texts if phrases.found_in(text)]
    for text in texts:
        found = [each[0] for each in whole.finditer(text)]
        assert phrases.found_in(text) == bool(found), text
        assert phrases.all_in(text) == found
        assert phrases.without(text) == (whole.sub(" ", text) if found else text)


UTTERANCES = st.tuples(st.sampled_from(("user", "agent")), st.lists(st.sampled_from(WORDS), max_size=4))


@pytest.mark.parametrize("near", [0, 2])
@examples(25)
@given(st.lists(UTTERANCES, max_size=30))
def test_the_last_to_say_a_value_is_found_as_by_reading_everything(
    near: int, said: list[tuple[str, list[str]]]
) -> None:
    talk = [Utterance(step, by, " ".join(words)) for step, (by, words) in enumerate(said)]
    # Nearly all of them count as said long ago, and are looked up.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bylaw.engine.consent.said.mentions._NEAR", near)
        mentions = Mentions(talk)
        for value in VALUES:
            for end in (len(talk), len(talk) // 2):
                for by in ("", "user", "agent"):
                    of = [each.by in (by or each.by) and each.says(value) for each in talk[:end]]
                    assert mentions.latest(value, end, by) == max(
                        (at for at, yes in enumerate(of) if yes), default=None
                    )
                plain = [at for at, each in enumerate(talk[:end]) if each.names(fold(str(value)))]
                assert mentions.has_form(fold(str(value)), end) == bool(plain)


@given(st.lists(UTTERANCES, max_size=30), st.data())
def test_what_was_said_of_late_is_the_same_whatever_was_asked_before(
    said: list[tuple[str, list[str]]], data: st.DataObject
) -> None:
    talk = [Utterance(step, by, " ".join(words)) for step, (by, words) in enumerate(said)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bylaw.engine.consent.said.mentions._LATELY", 5)
        mentions = Mentions(talk)
        for end in data.draw(st.lists(st.integers(0, len(talk)), max_size=6)):
            late = [each for each in talk[max(0, end - 5) : end] if each.by == "agent"]
            assert mentions.has("R-1", lambda each: each.says("R-1"), end, "agent") == any(x.says("R-1") for x in late)
            numbers = {number for each in late for number in counts(each.text, "")}
            assert mentions.has_number(("5", "7"), "", end, "agent") == bool(numbers & {"5", "7"})


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=20), st.lists(st.sampled_from(WORDS), max_size=6))
def test_another_value_of_a_field_is_found_as_by_trying_all(values: list[str], words: list[str]) -> None:
    field = FieldValues()
    for step, value in enumerate(values):
        field.add(value, step)
    own, said = fold(values[0]), Utterance(0, "user", " ".join(words))
    for since, before in ((0, len(values)), (0, len(values) // 2), (len(values) // 3, len(values) // 2)):
        plain = [fold(value) for value in values[since:before]]
        assert field.other_in(said, own, since, before) == any(occurs(v, said.folded) >= 0 for v in plain if v != own)


def test_values_of_late_are_read_where_a_question_skipped_them() -> None:
    shown = ["R-1"] * 5 + ["R-2"] + ["R-1"] * 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bylaw.engine.consent.shown.records._LATELY", 5)
        records = Records([Result(None, f'{{"order_id": "{each}"}}') for each in shown])
        assert [records.has_other("order_id", "r-1", before) for before in (0, 11, 6)] == [False, False, True]


@given(st.lists(st.sampled_from(("R-1", "R-2", "R-3")), min_size=1, max_size=40), st.data())
def test_values_of_late_are_the_same_whatever_was_asked_before(shown: list[str], data: st.DataObject) -> None:
    events: list[Event] = [Result(None, f'{{"order_id": "{each}"}}') for each in shown]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bylaw.engine.consent.shown.records._LATELY", 5)
        records = Records(events)
        for before in data.draw(st.lists(st.integers(0, len(shown)), max_size=6)):
            late = shown[max(0, before - 5) : before]
            for own in ("R-1", "R-2"):
                assert records.has_other("order_id", own.lower(), before) == any(each != own for each in late)


IDS = ("R-1", "R-2", "R-3", "O'H", 'a"b')


@given(st.lists(st.sampled_from(IDS), min_size=1, max_size=60))
def test_records_are_found_as_by_reading_every_result(shown: list[str]) -> None:
    events: list[Event] = [Result(None, f'{{"order_id": "{each}", "at": {at}}}') for at, each in enumerate(shown)]
    records = Records(events)
    for before in (len(events), len(events) // 2):
        for id in IDS:
            plain = [at for at, each in enumerate(shown[:before]) if each == id and '"' not in id]
            assert [entry.fields["at"] for entry in records.entries(id, before)] == plain[::-1]
            assert records.shows(id, before) == any(f'"{id}"' in str(each.content) for each in events[:before])


FORMS = ("cancel", "recancelled", "add", "adding", "additional", "unbook", "uncancel", "call off", "x_add")


@given(st.lists(st.one_of(st.text(alphabet="abcdeginorsuy ._-", max_size=12), st.sampled_from(FORMS)), max_size=6))
def test_words_for_a_deed_are_those_of_the_plain_pattern(parts: list[str]) -> None:
    text = " ".join(parts).lower()
    for deed in (deeds("cancel_order"), deeds("add_bag"), deeds("book_flight"), any_deed()):
        assert deed.stands_in(text) == (plain_pattern(deed).search(text) is not None)


def plain_pattern(deed: Deed) -> re.Pattern[str]:
    long = "|".join(re.escape(stem) for stem in deed.stems if len(stem) > 4)
    short = "|".join(re.escape(stem) for stem in deed.stems if len(stem) <= 4)
    forms = [rf"(?:{long})\w*"] * bool(long) + [rf"(?:{short})(?:e|s|d|es|ed|ing|ings)?\b"] * bool(short)
    return re.compile(rf"\b(?:re|un)?(?:{'|'.join(forms)})")


def shopping(orders: int) -> Iterator[Event]:
    """A talk in which one order after the other is looked up, and some cancelled, some without a yes."""
    for number in range(orders):
        order, turn, step = f"R-{1000 + number}", 5 * number, 6 * number
        yield Message("user", f"What about my order {order} of May {number % 28 + 1}?", turn)
        yield Call("get_order", {"order_id": order}, turn=turn + 1)
        yield Result(step + 1, f'{{"order_id": "{order}", "total": {number}}}', tool="get_order")
        yield Message(
            "agent", f"I can cancel {order}. Shall I go ahead?" if number % 3 else f"It is {order}.", turn + 2
        )
        yield Message("user", ("Yes.", "It arrived broken.", "Sure, thanks.")[number % 3], turn + 3)
        yield Call("cancel_order", {"order_id": order}, turn=turn + 4)


def test_a_write_costs_no_more_late_in_a_long_talk(monkeypatch: pytest.MonkeyPatch) -> None:
    read = [0]

    asked = Utterance.says

    def says(self: Utterance, value: str | float) -> bool:
        read[0] += 1
        return asked(self, value)

    monkeypatch.setattr(Utterance, "says", says)
    costs: list[int] = []
    ledger, seen = Ledger(SCHEMA), list[Event]()
    consents = Consents(seen, ledger)
    for step, event in enumerate(shopping(400)):
        seen.append(event)
        ledger.observe(step, event)
        if isinstance(event, Call) and event.tool == "cancel_order":
            read[0] = 0
            consents.find(ledger.calls[step])
            costs.append(read[0])
    assert max(costs[-60:]) <= max(costs[40:100])


def test_a_yes_of_long_ago_counts_where_it_named_the_thing_and_was_not_taken_back() -> None:
    def talk(*between: str) -> list[Event]:
        texts = ["I would cancel R-1001. Shall I go ahead?", "Yes."]
        texts += [text for each in between for text in ("It is on its way.", each)]
        said: list[Event] = [Message(("agent", "user")[at % 2], text, at) for at, text in enumerate(texts)]
        return [*said, Call("cancel_order", {"order_id": "R-1001"}, turn=len(texts))]

    def ask(events: list[Event]) -> bool | None:
        ledger = Ledger(SCHEMA)
        ledger.observe_all(0, events)
        return Consents(events, ledger).find(ledger.writes[-1]).value

    assert ask(talk(*["Where is my parcel?"] * 30)) is True
    assert ask(talk(*["Where is my parcel?"] * 30, "Not yet.", *["Where is it?"] * 3)) is False
    assert ask(talk("Hold on.", *["Where is my parcel?"] * 30)) is False


def test_it_is_sure_of_a_yes_where_all_that_is_found_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    weigh, is_sure = Weighing.consent, Weighing.is_sure
    seen: Counter[bool] = Counter()

    def check(self: Weighing) -> bool:
        sure = not self.is_held and is_sure(self)
        assert sure == (self.is_named and weigh(self).value is True)
        seen[sure] += 1
        return sure

    def consent(self: Weighing) -> Consent:
        check(self)
        return weigh(self)

    monkeypatch.setattr(Weighing, "is_sure", check)
    monkeypatch.setattr(Weighing, "consent", consent)
    for case in CONSENT_CASES:
        events = list(events_of(case["events"]))
        ask(events, last_call(events))
    for talk in conversations()[:60]:
        ledger = Ledger(clinic_pack().schema)
        ledger.observe_all(0, talk.events)
        consents = Consents(talk.events, ledger)
        for write in ledger.writes:
            consents.find(write)
    assert min(seen[True], seen[False]) > 100


NUMBERS = (0, 1, 5, 12, 12.5, 1200, 1200.25, -5, -1200, 0.5, 50, 100.05, 1e20, 1234567)
PIECES = (
    "0",
    "1",
    "5",
    "12",
    "50",
    "200",
    ",",
    ".",
    "-",
    "_",
    " ",
    "$",
    "x",
    "five",
    "zero",
    "00",
    "٣",
    "½",
    "25",
    "1,200",
)


def number_pattern(number: float) -> re.Pattern[str]:
    """A number as it may be said, in one pattern."""
    whole, _, part = (str(int(number)) if number == int(number) and number < 1e15 else str(number)).partition(".")
    spoken = [whole]
    if whole.lstrip("-").isdigit():
        spoken.append(f"{int(whole):,}")
    if not part and 0 <= number <= 12:
        names = "zero one two three four five six seven eight nine ten eleven twelve"
        spoken.append(names.split()[int(number)])
    tail = rf"\.{re.escape(part)}0*" if part else r"(?:\.0+)?"
    return re.compile(rf"(?<![\w-])(?<!\d[.,])(?:{'|'.join(map(re.escape, spoken))}){tail}(?!\w|[.,]\d)")


@given(st.sampled_from(NUMBERS), st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_a_number_is_found_as_by_its_pattern(number: float, text: str) -> None:
    spelling = spell(number)
    assert spelling is not None
    assert spelling.said_in(text) == (number_pattern(number).search(text) is not None)


DAYS = ("2024-05-15", "2024-05-05", "2024-03-05", "2024-12-03T10:00", "2024-06-01", "2024-09-05 09:30")
MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
DAY_WORDS = (
    *("may", "may.", "mar", "march.", "marc.", "june.", "jun", "sept.", "september", "december", "decmay", "of", "the"),
    *("5", "05", "5th", "15", "005", "3", "12", "1", "31", "2024", "2023", "24", "2024-05-15", "2023-05-15", "10:00"),
)


def day_pattern(text: str) -> re.Pattern[str]:
    """A day as it may be said, in one pattern."""
    year, month, day = text[:4], int(text[5:7]), int(text[8:10])
    name = MONTHS[month - 1]
    called = rf"(?:{name}|{name[:3]}\.?|{name[:4]}\.?)"
    suffix = r"(?:st|nd|rd|th|(?!st|nd|rd|th))"
    no_other_year = rf"(?!,? (?!{year})(?:19|20)\d\d(?![\d:]|[.,]\d))"
    forms = (
        re.escape(text[:10]),
        rf"{called} (?:the )?0?{day}(?!\d){suffix}{no_other_year}",
        rf"(?<!\d)0?{day}(?:st|nd|rd|th)? (?:of )?{called}[a-z.]*(?![a-z.]){no_other_year}",
        rf"(?<!\d)(?<!\d{{4}}[/.-])0?{month}[/.-]0?{day}(?!\d|[/.-]\d{{4}}(?!\d))",
        rf"(?<!\d)0?{month}[/.-]0?{day}[/.-](?:{year}|{year[2:]})(?!\d)",
        rf"(?<!\d)0?{day}[/.-]0?{month}[/.-](?:{year}|{year[2:]})(?!\d)",
        rf"(?<!\d){year}[/.-]0?{month}[/.-]0?{day}(?!\d)",
    )
    return re.compile("|".join(forms))


@given(st.sampled_from(DAYS), st.lists(st.sampled_from(DAY_WORDS), max_size=7), st.sampled_from((" ", "/", "-", ".")))
def test_a_day_is_found_as_by_its_pattern(day: str, words: list[str], between: str) -> None:
    text, spelling = between.join(words), spell(day)
    assert spelling is not None
    assert spelling.said_in(text) == (day_pattern(day).search(text) is not None)


@given(st.text(alphabet="aZ_ éßŞ–’“→€👍\u2460Ⓐ\xaa", max_size=12))
def test_a_text_is_folded_alike_whatever_signs_it_has(text: str) -> None:
    assert fold(text) == " ".join(text.casefold().replace("_", " ").split())


@pytest.mark.parametrize("said", [*ASKS.splitlines(), "Yes.", "Yes, please. Thanks!", "Yes. Later.", "Ok, only that."])
def test_a_bare_yes_is_plain_whatever_was_told(said: str) -> None:
    told = ("", "I would cancel R-1 tomorrow for half of it. Shall I?")
    if is_bare_yes(said):
        assert all(is_plain_yes(said, text, ("R-1",), follows=follows) for text in told for follows in (True, False))
