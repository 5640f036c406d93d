"""Finds values that may be passwords, keys or tokens: they look random, or their names suggest it.

There is no list of token formats. A finding is a reason to ask, not a proof.
"""

import re
from collections.abc import Iterator

from bylaw.reading.shell_programs import Command

_NAMES = (
    r"passw(?:or)?d|passphrase|pwd|secret|token|credentials?"
    r"|(?:api|access|private|secret|auth|signing|encryption)[_-]?key"
)
_NAME = re.compile(rf"(?i).*(?:{_NAMES})|(?:.*[_-])?key")
_LITERAL = re.compile(
    rf"(?i)(?:{_NAMES})[\"']?[ \t]*[:=][ \t]*(?:[\"']([^\"'\s$<{{][^\"'\s]{{3,}})[\"']"
    r"|((?=\S*[0-9])[^\s\"'()\[\]{}<>$,;]{6,})[ \t]*$)",
    re.MULTILINE,
)
"""Matches a literal after a name and a colon or equals sign. Without quotes, the literal must contain a digit and end
the line.
"""
_USER_OF_URL = re.compile(r"://[^/\s:@]*:([^/\s:@$]+)@")
_RUN = re.compile(r"[A-Za-z0-9+/=_-]{16,}")
_UNBROKEN = re.compile(r"[A-Za-z0-9]{16,}")
_SEGMENT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HASH = re.compile(r"\b[0-9a-f]{7,64}\b")


def secrets_in(text: str) -> tuple[str, ...]:
    """Return the values in a text that may be secrets."""
    named = (found[1] or found[2] for found in _LITERAL.finditer(text))
    return tuple(dict.fromkeys((*_random_in(text), *named, *_USER_OF_URL.findall(text))))


def secrets_in_command(text: str, commands: tuple[Command, ...]) -> tuple[str, ...]:
    """Return the values in a shell command that may be secrets. Hashes in `git` commands are excluded."""
    found = list(secrets_in(text))
    hashes: set[str] = set()
    for command in commands:
        words = [word.text if word.is_exact else "" for word in command.words]
        named = [(name, value.text) for name, value in command.assignments if value.is_exact]
        for word, after in zip(words, (*words[1:], ""), strict=False):
            name, _, value = word.partition("=")
            named.append((name, value or (after if word.startswith("--") else "")))
            found += secrets_in(word)
        found += [value for name, value in named if value and _is_secret(name, value)]
        if command.program == "git":
            hashes.update(each for word in words for each in _HASH.findall(word))
    return tuple(each for each in dict.fromkeys(found) if each not in hashes)


def _is_secret(name: str, value: str) -> bool:
    """Whether a name suggests that its value is a secret. A short key may be a database column or a letter."""
    if _NAME.fullmatch(name) is None:
        return False
    return len(value) > 5 or not name.lower().endswith("key")


def _random_in(text: str) -> Iterator[str]:
    for run in _RUN.findall(text):
        kinds = sum(re.search(kind, run) is not None for kind in ("[a-z]", "[A-Z]", "[0-9]"))
        if kinds == 3 and _mean_length(_SEGMENT.findall(run)) < 3.4:
            yield run
        else:
            yield from (each for each in _UNBROKEN.findall(run) if not _is_readable(each))


def _is_readable(run: str) -> bool:
    """Whether an unbroken run of letters and digits is a number, or consists of words like `parseHttp2Headers`."""
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
