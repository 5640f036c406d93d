"""Patterns of packs: what Python finds RE2 finds, in time that grows with the text alone."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bylaw
from bylaw.policy.pattern import LONGEST, PatternError, compile_pattern
from tests.examples import examples
from tests.written import load

HOSTILE = (
    "(a+)+$",
    "(a|aa)+$",
    r"(\w+\s?)*$",
    r"(?:\d{1,3},?)*x",
    "(x+x+)+y",
    "(?:yes |yes )*!",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    ".*a.*b.*c",
    r"\border.*refund.*please",
    "(?:(?:x|y)?(?:x|z)?)*w",
    r"[\w.+-]+@[\w-]+\.[\w.]+",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_keeps_a_pattern_busy(text: str) -> None:
    pattern = compile_pattern(text)
    begun = time.process_time()
    for unit in ("a", "x", "1", "yes ", "ab", "order refund ", "aé"):
        pattern.search(unit * LONGEST)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"my name is (\w+)", "Hello, my name is José Ñandú."),
        (r"\W+(\w+)$", "das ist schön"),
        (r"order\s+(\d+)", "Order\u00a0\u0664\u0662"),
        (r"not found$", "reservation not found\n"),
        (r"not found\Z", "reservation not found\n"),
        (r"[^\]\s]+\]", "a ]bc]"),
        (r"x{,3}y", "xxxxy x{,3}y"),
        ("caf\\u00e9|na[\\u00ef]ve", "NAÏVE CAFÉ"),
        (r"[]x]$", "a]"),
        (r"[a[]$|[$]", "b[ $"),
        (r"(?m)^b$", "a\nb\nc"),
        (r"flight (?P<flight_number>\S+) not found on date (?P<date>\S+)", "Flight HAT1 not found on date 2024-05-01"),
        (r"\d{1,3}(?:,\d{3})*(?:\.\d\d)?", "it is 1,200.00 in all"),
        (r"\$(\d+)", "that costs $40"),
        (r"(?s)a.b", "a\nb"),
        ("straße|ΣΑΣ", "STRASSE Straße σας"),
    ],
)
def test_a_pattern_finds_what_python_finds(text: str, said: str) -> None:
    theirs, ours = list(re.finditer(text, said, re.IGNORECASE)), list(compile_pattern(text).finditer(said))
    assert len(theirs) == len(ours)
    for expected, found in zip(theirs, ours, strict=True):
        assert expected[0].rstrip("\n") == (found[0] or "").rstrip("\n")
        assert expected.groupdict() == found.groupdict()
        assert (expected.lastindex or 0) == (found.lastindex or 0)
        assert expected[expected.lastindex or 0] == found[found.lastindex or 0] or not expected.lastindex


_LETTER = st.sampled_from(["a", "b", "é", "[aé]", r"[\wß]", ".", r"\w", r"\W", r"\s", r"\d", r"\.", " "])
_REPEAT = st.sampled_from(["", "", "*", "+", "?", "{2}", "{,2}", "{1,3}", "*?"])
_PATTERN = st.recursive(
    st.builds("".join, st.lists(st.builds("{}{}".format, _LETTER, _REPEAT), min_size=1, max_size=3)),
    lambda inner: st.one_of(
        st.builds("(?:{}){}".format, inner, st.sampled_from(["", "?"])),
        st.builds("({}|{})".format, inner, inner),
        st.builds("^{}".format, inner),
        st.builds("{}$".format, inner),
    ),
    max_leaves=4,
)


@given(_PATTERN, st.text(alphabet="abé B7٣._\n\u00a0ß", max_size=12))
@examples(100)
def test_any_pattern_matches_the_texts_that_python_says_it_matches(text: str, said: str) -> None:
    expected = re.search(text, said, re.IGNORECASE)
    found = compile_pattern(text).search(said)
    assert (expected is None) == (found is None)
    if expected is not None and found is not None:
        assert expected[0].rstrip("\n") == (found[0] or "").rstrip("\n")


def test_case_counts_where_it_is_asked_for() -> None:
    assert compile_pattern("^Sorry").search("sorry, no")
    assert not compile_pattern("^Sorry", ignore_case=False).search("sorry, no")


def test_but_not_anywhere_in_the_text_undoes_a_match() -> None:
    pattern = compile_pattern(r"\byes\b", r"\byes,? but\b")
    assert pattern.search("Yes, please.")
    assert not pattern.search("yes, but not today")
    assert not pattern.search("Well, yes. I mean: yes but later")
    assert list(pattern.finditer("yes but yes")) == []


def test_half_a_character_in_a_text_does_no_harm() -> None:
    found = compile_pattern(r"yes (\w+)").search("\ud83d yes José")
    assert found is not None
    assert found[1] == "José"


def test_only_the_beginning_of_a_text_is_searched() -> None:
    pattern = compile_pattern("needle")
    assert pattern.search("x" * (LONGEST - 6) + "needle")
    assert not pattern.search("x" * (LONGEST - 5) + "needle")
    assert len(list(pattern.finditer("needle" * LONGEST))) == LONGEST // 6


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(", "`(` is not a valid pattern: missing )"),
        ("a{2,1}", "invalid repetition size"),
        ("[z-a]", "invalid character class range"),
        ("yes(?! but)", "list text that must not match under `but_not`"),
        ("(?<!not )proceed", "list text that must not match under `but_not`"),
        (r"(a)\1", "write out the repeated text"),
        ("(?x) a b", "as a list of patterns"),
        ("(?:a++)+b", "leave out the second"),
        (r"\b(yes|sí)\b", r"`\b` recognises only the letters a to z, not `í`"),
        (r"(\w+ ?){1,900}!", "pattern too large"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_with_the_cure(text: str, why: str) -> None:
    with pytest.raises(PatternError, match=re.escape(why)):
        compile_pattern(text)
    with pytest.raises(PatternError, match=re.escape(why)):
        compile_pattern("yes", text)


def _patterns(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("says", "text", "absent", "refused", "pattern", "but_not") and isinstance(item, str):
                yield item
            yield from _patterns(item)
    elif isinstance(value, list):
        for item in value:
            yield from _patterns(item)


def test_the_patterns_of_shipped_packs_find_what_python_finds() -> None:
    files = list((Path(bylaw.__file__).parent / "packs").rglob("*.yaml"))
    found = {text for file in files for text in _patterns(load(file))}
    assert len(found) > 10
    texts = [
        "user sara_doe_496 not found",
        "Error: flight HAT001 not found on date 2024-05-20",
        "Yes, but I’d like to know the price first. How do we proceed?",
        "I am out-of-state; that's correct, please confirm if it is free",
        "Patient P-7 not found",
    ]
    for text in found:
        theirs, ours = re.compile(text, re.IGNORECASE), compile_pattern(text)
        for said in texts:
            assert (theirs.search(said) is None) == (ours.search(said) is None)
