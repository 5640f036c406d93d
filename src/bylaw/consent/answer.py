"""Classifies the user's answer as a plain yes, a plain no, or neither. A model or a reviewer reads an answer that is
neither.

`answers.toml` lists the phrases, with one section per language. After a yes, the user may repeat the title of the
question or its verb. Any other word makes the answer neither.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from msgspec import Struct, convert

Said = Literal["yes", "no", "other"]
Unclear = Literal["conditional", "other_language", "unclear"]
"""The reason why an answer is neither yes nor no: it has a condition, is in an unsupported language, or is unclear."""
Kind = Literal["yes", "ok", "alone", "also", "unclear", "no", "thanks", "polite", "small"]

_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u2032\u00b4\uff07]")
_THUMB = re.compile("(?:\U0001f44d|\u2705|\U0001f44c)[\U0001f3fb-\U0001f3ff\ufe0f]*")
_FRIENDLY = re.compile(
    "[\U0001f600\U0001f601\U0001f603\U0001f604\U0001f60a\U0001f642\U0001f64f\U0001f389\u2764\ufe0f]+|(?<!\\S):-?\\)(?!\\S)"
)
"""Matches friendly emoji. Laughing and winking emoji do not match, because with them a yes may be a joke."""
_MARKS = re.compile(
    r"(?<![,.!;:])[,.!;:]++(?=\s|$)|[,.!;:](?=[\u3040-\u9fff\uac00-\ud7af])|(?<=\s)[-\u2010-\u2015\u2212]++(?=\s)|[\u2013-\u2015()\u00a1\u3001\u3002\uff01\uff0c\uff1a\uff1b]"
)
_UNSURE = re.compile("[?\u061f\uff1f\u037e]|\\.\\.|\u2026|~~|^\\s*>|[\ufeff\u200b-\u200f\u202a-\u202e]", re.MULTILINE)
"""Matches signs that a yes may not be meant: a question mark, an ellipsis, and struck-out, quoted or hidden text."""
_LETTERS = re.compile(r"[^\W\d_]+")
_JOINS = re.compile(r"[^\w\s'\u2019-]|\s(?:and|plus|und|et|y|e|en|oraz|i|ve)\s")
"""Matches a sign or a word that may join two actions in a title."""
_ENDS_OPEN = re.compile(r"\s(?:and|but|or|und|oder|aber|et|mais|y|pero|e|ma|mas|en|maar|i|ale|ve|ama)$")
_OTHER_SCRIPT = re.compile("[^\\W\\d_\u0000-\u024f\u1e00-\u1eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Matches a letter from a script that `answers.toml` does not support."""
_AGREES = "\U0001f44d"
"""The thumbs-up and tick emoji, which mean yes in every language."""
LONGEST = 200
"""The maximum length of an answer in characters. A longer text says more than yes or no."""
_VERB_AND_IT = 2
"""The maximum number of words that repeat only the verb, as in "Yes, cancel it"."""
_SHARE = 0.15
"""The minimum share of a language's common words in a text that is written in the language."""
_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "zh": re.compile("[\u4e00-\u9fff]"),
}
"""The order matters: Japanese comes before Chinese, because Japanese text contains Chinese characters but only Japanese
has kana.
"""
_UNSPACED = frozenset(("ja", "zh"))
ENGLISH = frozenset(("en",))
_NONE = frozenset[str]()


class Shown(Struct, frozen=True):
    """The text shown to the user, without the phrases that are the same for all calls."""

    text: str
    languages: frozenset[str] = ENGLISH
    """The languages of the pack's wording. An answer may repeat the title only in one of these languages."""
    title: str = ""
    """The part of the text that the pack's author wrote. If empty, the author wrote all of it."""


class Phrases(Struct, frozen=True, forbid_unknown_fields=True):
    """The phrases of one language. See `answers.toml`."""

    yes: frozenset[str]
    ok: frozenset[str]
    alone: frozenset[str]
    also: frozenset[str]
    no: frozenset[str]
    thanks: frozenset[str]
    polite: frozenset[str]
    small: frozenset[str]
    condition: frozenset[str]
    contrast: frozenset[str]
    denial: frozenset[str]
    common: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    unclear: frozenset[str] = frozenset()
    helper: frozenset[str] = frozenset()
    verb_last: bool = False


class Language:
    def __init__(self, name: str, phrases: Phrases) -> None:
        self.phrases = phrases
        self.is_spaced = name not in _UNSPACED
        self._kinds: dict[str, Kind] = {_AGREES: "yes"}
        self.starts: dict[str, list[str]] = {}
        """Phrases by their first word or, in scripts without spaces, by their first character. The longest phrase comes
        first.
        """
        kinds: tuple[Kind, ...] = ("small", "polite", "thanks", "also", "alone", "ok", "yes", "no", "unclear")
        for kind in kinds:
            self._kinds |= dict.fromkeys(getattr(phrases, kind), kind)
        for phrase in sorted(self._kinds, key=len, reverse=True):
            self.starts.setdefault(self._start_of(phrase, 0), []).append(phrase)

    def _start_of(self, text: str, at: int) -> str:
        if not self.is_spaced:
            return text[at : at + 1]
        end = text.find(" ", at)
        return text[at:] if end < 0 else text[at:end]

    def match(self, text: str, at: int) -> tuple[Kind, str] | None:
        """Return the kind of the longest phrase that starts at this position in a normalised text, and the phrase. None
        if no phrase starts there.
        """
        for phrase in self.starts.get(self._start_of(text, at), ()):
            end = at + len(phrase)
            is_joined = not self.is_spaced and not phrase[-1].isascii()
            if text.startswith(phrase, at) and (is_joined or end == len(text) or text[end] == " "):
                return self._kinds[phrase], phrase
        return None

    def tokens(self, text: str, wanted: frozenset[str]) -> frozenset[str]:
        return wanted.intersection(text.split()) if self.is_spaced else frozenset(e for e in wanted if e in text)

    def is_context_needed(self, phrases: Iterable[str]) -> bool:
        """Whether each of these phrases means something else in another language, so that the language matters."""
        shared = self.phrases.shared
        return all(each in shared or shared.issuperset(each.split()) for each in phrases)


@cache
def languages() -> Mapping[str, Language]:
    data = tomllib.loads(Path(__file__).with_name("answers.toml").read_text(encoding="utf-8"))
    return {name: Language(name, phrases) for name, phrases in convert(data, dict[str, Phrases]).items()}


@lru_cache(maxsize=2048)
def said(
    text: str,
    shown: tuple[Shown, ...] = (),
    *,
    yes: frozenset[str] = frozenset(),
    no: frozenset[str] = frozenset(),
    known: frozenset[str] = ENGLISH,
) -> Said:
    """Classify an answer to the texts in `shown`. `yes` and `no` are additional answers from the pack, and `known`
    contains the user's possible languages.
    """
    if len(text) > LONGEST:
        return "other"
    words = bare(text)
    if not words or _UNSURE.search(text) or _ENDS_OPEN.search(words):
        return "other"
    if words in yes:
        return "yes"
    if words in no:
        return "other" if _is_no_ambiguous(words, shown, known) else "no"
    found = {_in_language(name, languages()[name], words, shown, known) for name in _begun_in(words)}
    return "other" if found >= {"yes", "no"} else "yes" if "yes" in found else "no" if "no" in found else "other"


def _in_language(name: str, language: Language, words: str, shown: tuple[Shown, ...], known: frozenset[str]) -> Said:
    kinds: list[Kind] = []
    phrases: list[str] = []
    echoes: list[str] = []
    at = 0
    while at < len(words):
        if words[at] == " ":
            at += 1
            continue
        found = language.match(words, at)
        if found is None:
            if not language.is_spaced or not {"yes", "ok"} & set(kinds) or "also" in kinds:
                return "other"
            echo = words[at:].split(" ", 1)[0]
            echoes.append(echo)
            at += len(echo)
            continue
        kind, phrase = found
        if kind == "unclear" or (kind == "also" and "yes" not in kinds):
            return "other"
        if kind == "small":
            echoes.append(phrase)
        else:
            kinds.append(kind)
            phrases.append(phrase)
        at += len(phrase)
    if name not in known and language.is_context_needed(phrases):
        return "other"
    if "no" in kinds:
        is_no = not {"yes", "ok", "alone"} & set(kinds) and not echoes
        return "no" if is_no and not _is_no_ambiguous(words, shown, known | {name}) else "other"
    if not {"yes", "ok", "alone"} & set(kinds):
        return "other"
    if echoes and (
        "alone" in kinds or not any(name in each.languages and _is_echo(language, echoes, each) for each in shown)
    ):
        return "other"
    return "yes"


def _is_echo(language: Language, echoes: list[str], shown: Shown) -> bool:
    """Whether the words after a yes repeat the whole title. If the title has one part, its verb is enough ("Yes, cancel
    it").
    """
    title, small = bare(shown.title or shown.text), language.phrases.small
    words, own = ([each for each in some if each not in small] for some in (title.split(), echoes))
    if not own or _has_contrast(title, shown.languages):
        return False
    is_one_action = not language.phrases.verb_last and not _JOINS.search(shown.title or shown.text)
    if is_one_action and own == words[:1] and len(echoes) <= _VERB_AND_IT:
        return True
    # Small words at the end may say something else, as in "Yes, transfer the money to me".
    return own == words and echoes[-1] not in small


def _has_contrast(title: str, written: frozenset[str]) -> bool:
    """Whether a title contains a word such as "or". A yes may then refer to only one of the alternatives."""
    spoken = (languages()[name] for name in written | languages_of(title) | ENGLISH)
    return any(each.tokens(title, each.phrases.contrast) for each in spoken)


def _is_no_ambiguous(words: str, shown: tuple[Shown, ...], known: frozenset[str]) -> bool:
    """Whether a no may mean agreement, as in "Leave it" after "Shall I leave it?", or "No" after "Shall I say that you
    won't come?".
    """
    asked = bare(" ".join(each.text for each in shown))
    spoken = [each for name, each in languages().items() if name in known]
    if any(each.tokens(asked, each.phrases.denial) for each in spoken):
        return True
    helpers = frozenset[str]().union(*(each.phrases.small | each.phrases.helper for each in languages().values()))
    return not (set(words.split()) - helpers).isdisjoint(asked.split())


def why_unclear(text: str, known: frozenset[str] = ENGLISH) -> Unclear:
    """Return the reason why an answer is neither a yes nor a no."""
    if said(text[: LONGEST + 1], known=frozenset(languages())) != "other" or _OTHER_SCRIPT.search(text):
        return "other_language"
    words = bare(text)
    spoken = [languages()[name].phrases for name in _begun_in(words) | (languages_of(text) & known)]
    is_conditional = any(not (each.condition | each.contrast).isdisjoint(words.split()) for each in spoken)
    return "conditional" if begins_with_yes(text) and is_conditional else "unclear"


def _begun_in(words: str) -> frozenset[str]:
    return _first_words().get(words.partition(" ")[0], _NONE) | _first_words().get(words[:1], _NONE)


@cache
def _first_words() -> Mapping[str, frozenset[str]]:
    """Return the languages by the first word of each phrase or, in scripts without spaces, by its first character."""
    found: dict[str, set[str]] = {}
    for name, language in languages().items():
        for start in language.starts:
            found.setdefault(start, set()).add(name)
    return {start: frozenset(names) for start, names in found.items()}


def begins_with_yes(text: str) -> bool:
    """Whether text begins with a yes in any language, possibly after a polite phrase."""
    words = bare(text.lstrip()[:LONGEST])
    return any(_first_kind(languages()[name], words) in ("yes", "ok", "alone") for name in _begun_in(words))


def _first_kind(language: Language, words: str) -> Kind | None:
    at = 0
    while at < len(words):
        found = language.match(words, at) if words[at] != " " else ("polite", " ")
        if found is None or found[0] not in ("thanks", "polite"):
            return found[0] if found is not None else None
        at += len(found[1])
    return None


@lru_cache(maxsize=2048)
def is_courtesy(text: str) -> bool:
    """Whether a message consists only of thanks or a greeting."""
    if len(text) > LONGEST or _UNSURE.search(text):
        return False
    words = bare(text)
    return any(_is_courteous(languages()[name], words) for name in _begun_in(words))


def _is_courteous(language: Language, words: str) -> bool:
    at, is_kind = 0, False
    while at < len(words):
        found = language.match(words, at) if words[at] != " " else ("polite", " ")
        if found is None or found[0] not in ("thanks", "polite"):
            return False
        if found[0] == "polite" and " " in found[1].strip():
            # "Thanks" may be followed by "please" but not by "to me".
            return False
        is_kind = is_kind or found[0] == "thanks"
        at += len(found[1])
    return is_kind


@lru_cache(maxsize=4096)
def languages_of(text: str, least: int = 1) -> frozenset[str]:
    """Return the possible languages of a text. They are recognised by script, or by at least `least` different common
    words.
    """
    for name, script in _SCRIPTS.items():
        if script.search(text):
            return frozenset((name,))
    words = _LETTERS.findall(text.lower())
    common: dict[str, list[str]] = {}
    for word in words:
        for name in _common_words().get(word, ()):
            common.setdefault(name, []).append(word)
    return frozenset(
        name for name, found in common.items() if len(set(found)) >= least and len(found) >= len(words) * _SHARE
    )


@cache
def _common_words() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, language in languages().items():
        for word in language.phrases.common:
            found.setdefault(word, []).append(name)
    return found


def bare(text: str) -> str:
    """Return an answer in lower case, without friendly emoji, punctuation between words and extra spaces."""
    lower = _APOSTROPHES.sub("'", _FRIENDLY.sub(" ", _THUMB.sub(f" {_AGREES} ", text))).lower()
    lower = unicodedata.normalize("NFC", lower.replace("i\u0307", "i"))
    return " ".join(_MARKS.sub(" ", lower.replace("*", " ")).split())
