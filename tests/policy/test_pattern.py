"""Patterns of packs: those that could take for ever are refused, and the others do not."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import bylaw
from bylaw.policy.pattern import LONGEST, SHORTEST, PatternError, compile_pattern


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+$",
        "(a*)*b",
        "(a|a)*b",
        "(a|aa)+$",
        r"(\w+\s?)*$",
        r"(?:\d{1,3},?)*x",
        "(.*a){10,}",
        "(x+x+)+y",
        "(?:a?){12,}b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(?=(a+)+b)",
        r"(?:\s*\w+\s*)*;",
        "((ab)*)*c",
        "(a+|b+)*c",
        "(?:a|b|ab)*c",
        r"(?:[^\n]+|\w)*x",
        "(a{1,30}){1,30}b",
        "(?:(?:x|y)?(?:x|z)?)*w",
        "(?>(?:a|aa)+b)",
        "(?:(?:a+)+b)?+",
        "(?i:(?:Ab|aB)*)c",
        "(?s:(?:.*\n)*)x",
    ],
)
def test_what_doubles_with_every_letter_is_refused(text: str) -> None:
    with pytest.raises(PatternError, match="read in more than one way"):
        compile_pattern(text)


@pytest.mark.parametrize("text", [".*a.*b.*c", "<.*>.*</.*>", r"(?:\w+,?){3}x", "a+a+a+a+b", "(?:a{0,9}b?){0,9}c"])
def test_repeats_in_a_row_that_can_hand_letters_to_each_other_are_refused(text: str) -> None:
    with pytest.raises(PatternError, match="hand letters to each other"):
        compile_pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "^Error",
        r"patient \S+ not found",
        "(user|reservation) .*not found",
        r"flight (?P<f>\S+) not found on date (?P<d>\S+)",
        r"\b(?:yes|yeah|go ahead)\b",
        "(?:cancel|cancelled|cancelling)",
        r"(?:\w+,\s*)*\w+",
        r"(?:, \w+)*end",
        r"\d{1,3}(?:,\d{3})*(?:\.\d\d)?",
        "order.{0,80}cancel.{0,80}please",
        r"[\w.+-]+@[\w-]+\.[\w.]+",
        r"my (?:name|id) is (\w+(?: \w+){0,3})",
        r"(?:not|n't|never) (?:\w+ ){0,3}(?:confirm|agree)",
        r"^(?:.*\n)*x",
        "(?>a+)+b",
        "(?:a++)+b",
        r"(\w|\d)+!",
        "(a|b)*c",
    ],
)
def test_what_packs_say_is_taken(text: str) -> None:
    assert compile_pattern(text).search("nothing of the kind, 1,200.00") is not False


_LETTER = st.sampled_from(["a", "b", "[ab]", "."])
_REPEAT = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "{0,12}", "*?"])
_PATTERN = st.recursive(
    st.builds("".join, st.lists(st.builds("{}{}".format, _LETTER, _REPEAT), min_size=1, max_size=3)),
    lambda inner: st.one_of(
        st.builds("(?:{}){}".format, inner, _REPEAT),
        st.builds("(?:{}|{}){}".format, inner, inner, _REPEAT),
        st.builds("{}{}".format, inner, inner),
    ),
    max_leaves=4,
)
_PUMPED = [unit * 40 + end for unit in ("a", "b", "ab", "aab", "ba") for end in ("", "\n", "c")]


@given(_PATTERN)
@settings(max_examples=300, deadline=None)
def test_no_pattern_that_is_taken_hangs(text: str) -> None:
    try:
        pattern = compile_pattern(text + "!")
    except PatternError:
        return
    begun = time.perf_counter()
    for each in _PUMPED:
        pattern.search(each)
    assert time.perf_counter() - begun < 5


def test_only_the_beginning_of_a_text_is_searched() -> None:
    pattern = compile_pattern("needle")
    assert pattern.search("x" * (LONGEST - 6) + "needle")
    assert not pattern.search("x" * (LONGEST - 5) + "needle")
    assert len(list(pattern.finditer("needle" * LONGEST))) == LONGEST // 6


@pytest.mark.parametrize("text", ["(", "a{2,1}", "[z-a]", r"(?P<n>a)(?P<n>b)"])
def test_what_is_no_pattern_is_said_by_re_itself(text: str) -> None:
    with pytest.raises(re.error):
        compile_pattern(text)


def test_a_pattern_that_is_taken_is_fast_on_a_long_text() -> None:
    begun = time.perf_counter()
    compile_pattern("(user|reservation) .*not found").search("user n" * 10_000)
    assert time.perf_counter() - begun < 5


def test_a_list_of_many_words_is_looked_at_soon() -> None:
    begun = time.perf_counter()
    words = "|".join(f"{chr(97 + n % 26)}x{n}y{n}" for n in range(500))
    compile_pattern(words)
    with pytest.raises(PatternError, match="too many parts"):
        compile_pattern(f"(?:{words})*z")
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize(
    ("text", "unit", "end"),
    [
        (r"\w+[.-]?\w+@\w+", "a", ""),
        (r"\d+,?\d+ ?EUR", "1", ""),
        (r"[\d ]*\d+ EUR", "1", ""),
        (r"\s*\s*x", " ", ""),
        (r"\border.*refund.*please", "order refund ", ""),
        (r"\b.*a.*b", "a ", ""),
        ("(?:(?=a*b)a)*c", "a", "b"),
        ("(?:(?!a*c)a)*d", "a", ""),
        ("(?>a*b?)*c", "a", ""),
        ("^.*a.*b.*c", "ab", ""),
    ],
)
def test_what_costs_more_than_the_square_of_a_text_searches_less_of_it(text: str, unit: str, end: str) -> None:
    pattern = compile_pattern(text)
    assert SHORTEST <= pattern.longest < 2_500
    begun = time.perf_counter()
    pattern.search((unit * LONGEST)[: pattern.longest - len(end)] + end)
    pattern.search((unit * LONGEST)[: LONGEST - len(end)] + end)
    assert time.perf_counter() - begun < 10


def test_a_word_boundary_is_no_anchor() -> None:
    assert compile_pattern(r"\border.*refund.*please").longest == compile_pattern("order.*refund.*please").longest
    assert compile_pattern("^order.*refund").longest == compile_pattern(r"\Aorder.*refund").longest
    assert compile_pattern("(?m)^.*a.*b").longest < compile_pattern("^.*a.*b").longest


@pytest.mark.parametrize(
    "text",
    ["(user|reservation) .*not found", r"flight (?P<f>\S+) not found on (?P<d>\S+)", "order.{0,80}cancel.{0,80}please"],
)
def test_common_patterns_search_all_of_a_long_text(text: str) -> None:
    assert compile_pattern(text).longest == LONGEST
    assert compile_pattern(r"[\w.+-]+@[\w-]+\.[\w.]+").longest > 5_000


def _patterns(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("says", "text", "absent", "refused", "pattern") and isinstance(item, str):
                yield item
            yield from _patterns(item)
    elif isinstance(value, list):
        for item in value:
            yield from _patterns(item)


def test_the_patterns_of_shipped_packs_search_all_of_a_long_text() -> None:
    files = (Path(bylaw.__file__).parent / "packs").rglob("*.yaml")
    found = {text for file in files for text in _patterns(yaml.safe_load(file.read_text()))}
    assert len(found) > 10
    assert [text for text in found if compile_pattern(text).longest < LONGEST] == []
