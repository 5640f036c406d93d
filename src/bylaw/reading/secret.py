"""Finds values that may be passwords, keys or tokens: values that look random, and values after a name such as
`password`.

There is no list of token formats. A finding is a reason to ask, not a proof, and some secrets are not found.
"""

import re
from collections.abc import Iterator

from bylaw.reading.shell_command import Command

_NAME = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?"
    r"|(?:api|access|private|secret|auth|signing|encryption)[_-]?key|(?:pgp|db_?)?pass\b)"
)
_NAMED = re.compile(
    rf"(?i)((?:--[\w-]*)?{_NAME}[\w-]*+)"
    r"([\"'\])]*[ \t]*[:=>|,(]{0,2}>?[ \t]*)"
    r"(?:([\"'])([^\"'\s$<{]{4,})\3|([^\s\"'<>()\[\]{},;|$]{6,}))(?=(.?))"
)
"""Matches a name such as `password`, the punctuation after it, and a word with or without quotes."""
_NAMES_SECRET = re.compile(rf"(?i).*{_NAME}")
_USER_OF_URL = re.compile(r"://[^/\s:@]*:([^/\s:@$]+)@")
_RUN = re.compile(r"[A-Za-z0-9+/=_-]{16,}")
_UNBROKEN = re.compile(r"[A-Za-z0-9]{16,}")
_SEGMENT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HASH = re.compile(r"\b[0-9a-f]{7,64}\b")


def secrets_in(text: str) -> tuple[str, ...]:
    """Return the values that may be secrets."""
    return tuple(dict.fromkeys((*_random_in(text), *_named_in(text), *_USER_OF_URL.findall(text))))


def secrets_in_command(text: str, commands: tuple[Command, ...]) -> tuple[str, ...]:
    """Return the values in a shell command that may be secrets.

    Includes the value of any variable or option with a name such as `password`. Hashes in `git` commands are left out.
    """
    found = list(secrets_in(text))
    hashes: set[str] = set()
    for command in commands:
        words = [word.text if word.is_exact else "" for word in command.words]
        given = [(name, value.text) for name, value in command.assignments if value.is_exact]
        for word, after in zip(words, (*words[1:], ""), strict=False):
            name, _, value = word.partition("=")
            given.append((name, value or (after if word.startswith("--") else "")))
            # Quotes in the text may split the secret.
            found += secrets_in(word)
        found += [value for name, value in given if value and _NAMES_SECRET.fullmatch(name)]
        if command.program == "git":
            hashes.update(each for word in words for each in _HASH.findall(word))
    return tuple(each for each in dict.fromkeys(found) if each not in hashes)


def _named_in(text: str) -> Iterator[str]:
    """Yield the words that follow a name such as `password`.

    After a colon, an equals sign or an option, any word of at least eight letters counts, unless it is itself such a
    name or is code. Elsewhere, only a quoted word or a word with a digit counts.
    """
    for name, signs, _, quoted, plain, after in _NAMED.findall(text):
        value = quoted or plain
        if _NAMES_SECRET.match(value):
            continue
        is_given = name.startswith("--") or any(each in signs for each in ":=>")
        is_code = not quoted and (after in ("(", "[", "{") or "." in value)
        if value.isascii() and not any(each.isalpha() for each in value):
            continue
        has_digit = any(each.isdigit() for each in value)
        if has_digit or (quoted and signs.strip()) or (is_given and not is_code and len(value) >= 8):
            yield value


def _random_in(text: str) -> Iterator[str]:
    for run in _RUN.findall(text):
        kinds = sum(re.search(kind, run) is not None for kind in ("[a-z]", "[A-Z]", "[0-9]"))
        if kinds == 3 and _mean_length(_SEGMENT.findall(run)) < 3.4:
            yield run
        else:
            yield from (each for each in _UNBROKEN.findall(run) if not _is_readable(each))


def _is_readable(run: str) -> bool:
    """Whether an unbroken run of letters and digits is a number, or consists of words, as in `parseHttp2Headers`."""
    words = _SEGMENT.findall(run)
    letters = [each for each in words if not each.isdigit()]
    if run.isdigit() or (run.islower() and run.isalpha()):
        return True
    if run.isalpha():
        return _mean_length(letters) >= 2.5 and not any(each.isupper() and len(each) > 14 for each in letters)
    are_short = all(len(each) <= (3 if each.isdigit() else 5 if each.isupper() else 14) for each in words)
    return are_short and _mean_length(letters) >= 3


def _mean_length(words: list[str]) -> float:
    return sum(map(len, words)) / len(words)
