"""A command in a shell text, and the files that it names."""

import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from bylaw.reading.shell_forms import Form, form_of
from bylaw.reading.unreadable import Unreadable

_LISTS: dict[str, str] = tomllib.loads(Path(__file__).with_name("shell_words.toml").read_text(encoding="utf-8"))
_NOT_FOLLOWED = frozenset(_LISTS["not_followed"].split())
_FOLDERS = frozenset(_LISTS["folders"].split())
_VARIABLES = frozenset(_LISTS["variables"].split())
_PAGERS = frozenset(_LISTS["pagers"].split())
_CHANGING_VARIABLE = re.compile("|".join(_LISTS["changing_variables"].split()))
_PLAIN_VALUE = re.compile(r"[\w.,:;=@+*/-]*")
_PROGRAM = re.compile(r":|[\w./][\w.@+/-]*(?<!/)")


class Word(Struct, frozen=True):
    """A word without its quotes, or as written if its value is unknown until the command runs.

    An unknown word contains a variable, a pattern or a home folder, and may become any number of words.
    """

    text: str
    is_exact: bool = True


class Command(Struct, frozen=True):
    """A program that may run, or a redirection without a program (`program` is then empty)."""

    program: str
    """The program's name without a folder: `rm` for `/bin/rm` and `sudo rm`."""
    written: str = ""
    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    """Variables that are set for the program."""
    files_read: tuple[Word, ...] = ()
    """Files whose content is redirected to the program."""
    files_written: tuple[Word, ...] = ()
    """Files to which output is redirected, except for `/dev/null`, `/dev/stdout` and `/dev/stderr`."""
    directories: frozenset[str] | None = frozenset({""})
    """The folders in which the program may run because of `cd`, relative to the initial folder. None if unknown."""
    is_privileged: bool = False
    """Whether the program runs as another user."""
    is_literal: bool = False
    """Whether every word in the whole shell text is exact, and no program in the text runs under `sudo` or `env`."""

    @classmethod
    def of(cls, program: Word, words: tuple[Word, ...], assignments: tuple[tuple[str, Word], ...]) -> "Command":
        """Return the command for a program. Raises `Unreadable` if the program may interpret its words differently."""
        name = posixpath.basename(program.text)
        if not program.is_exact or not _PROGRAM.fullmatch(program.text):
            raise Unreadable(f"the program `{program.text[:40]}` is unknown")
        if name in _NOT_FOLLOWED:
            raise Unreadable(f"the effect of `{name}` cannot be determined")
        for variable, _ in assignments:
            if _CHANGING_VARIABLE.fullmatch(variable):
                raise Unreadable(f"`{variable}` changes what commands do")
        return cls(name, program.text, words, assignments)

    @property
    def is_of_system(self) -> bool:
        """Whether the command names a system program, either without a folder or in one of the system's folders."""
        return "/" not in self.written or posixpath.normpath(posixpath.dirname(self.written)) in _FOLDERS

    @property
    def spelled(self) -> str | None:
        """The program and its words on one line, or None.

        Words with special characters are quoted. None if a word is unknown until the command runs, or if a variable may
        change the program's behaviour.
        """
        known = self.known_words
        if known is None or not all(_is_harmless(name, value) for name, value in self.assignments):
            return None
        return shlex.join((self.program, *(word.text for word in self.words)))

    @property
    def known_words(self) -> tuple[str, ...] | None:
        """The program, its words, and the variables that may change its behaviour.

        None if any of these is unknown until the command runs.
        """
        if not all(word.is_exact for word in (*self.words, *(value for _, value in self.assignments))):
            return None
        changing = (f"{name}={value.text}" for name, value in self.assignments if not _is_harmless(name, value))
        return (*changing, self.program if self.is_of_system else self.written, *(word.text for word in self.words))

    @property
    def options(self) -> tuple[str, ...]:
        """The words before `--` that begin with a hyphen."""
        return tuple(word.text for word in self._before_dashes() if word.is_exact and _is_option(word.text))

    @property
    def operands(self) -> tuple[str | None, ...]:
        """The words that do not begin with a hyphen, including option values that are separate words.

        An unknown word is None.
        """
        before = self._before_dashes()
        words = [word for word in before if not (word.is_exact and _is_option(word.text))]
        words += self.words[len(before) + 1 :]
        return tuple(word.text if word.is_exact else None for word in words)

    def _before_dashes(self) -> tuple[Word, ...]:
        dashes = Word("--")
        return self.words[: self.words.index(dashes)] if dashes in self.words else self.words

    @property
    def paths(self) -> tuple[str, ...] | None:
        """The words that may name files, relative to the initial folder. None if one of them is unknown.

        Includes operands, option values and redirected files. For a command with a closed form, only its files.
        """
        if (form := self.form) is not None:
            return self.from_start(path for each in form.paths for path in _named_in(each))
        words = (*self.words, *self.files_read, *self.files_written)
        if not all(each.is_exact for each in (*words, *(value for _, value in self.assignments))):
            return None
        named = [path for word in words for path in _named_in(word.text)]
        of_variables = (path for _, value in self.assignments for path in _named_in(value.text))
        named += [path for path in of_variables if path.startswith("/") or ".." in path]
        return None if any(map(_REMOTE_HELPER.match, named)) else self.from_start(named)

    def from_start(self, paths: Iterable[str]) -> tuple[str, ...] | None:
        """Return the command's paths relative to the initial folder. None if the folder in which the command runs is
        unknown.
        """
        if self.directories is None:
            return None
        return tuple(posixpath.join(folder, each) for each in paths for folder in sorted(self.directories))

    def may_have_option(self, *names: str) -> bool:
        """Whether the words may include one of these options, also in a group (`-rf` for `-f`) or abbreviated (`--forc`
        for `--force`).
        """
        return any(not word.is_exact or _is_one(word.text, names) for word in self._before_dashes())

    @property
    def form(self) -> Form | None:
        return form_of(self)

    @property
    def writes(self) -> bool:
        """Whether the command may change something. False only if a closed form shows that the command only reads."""
        form = self.form
        return form is None or bool(form.changed)


def _is_harmless(name: str, value: Word) -> bool:
    """Whether this value of the variable does not change the behaviour of any program."""
    if name in _PAGERS:
        return value in (Word(""), Word("cat"))
    return name in _VARIABLES and value.is_exact and _PLAIN_VALUE.fullmatch(value.text) is not None


def _is_option(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and text != "--"


def _is_one(option: str, names: Sequence[str]) -> bool:
    """Whether an option is one of these, possibly abbreviated or grouped with other letters."""
    if option.startswith("--"):
        given = option.partition("=")[0]
        return len(given) > 2 and any(name.startswith(given) for name in names)
    letters = [name[1] for name in names if not name.startswith("--")]
    return _is_option(option) and any(letter in option[1:] for letter in letters)


_INSIDE = re.compile(r"(?:^:|(?<=[@=,])(?<!\s))((?:/|\.\.(?:/|$))\S*)")
"""Matches an absolute path, or a path that goes up, in a word such as `@/etc/passwd`."""
_REMOTE_HELPER = re.compile(r"[a-z]+::")
"""Matches a `git` remote helper, such as `ext::command`."""
_FILE_URL = re.compile(r"(?i)file:(?://[^/\s]*)?(/\S*)")


def _named_in(text: str) -> list[str]:
    """Return the paths that a word may name: the whole word, an option's value, or the value after `name=`."""
    _, equals, value = text.partition("=")
    inside = [found[1] for found in _INSIDE.finditer(text)] + [found[1] for found in _FILE_URL.finditer(text)]
    if not _is_option(text):
        named = [text, value] if value else [text]
    else:
        carried = [text[at:] for sign in ("/", "..", "~") if (at := text.find(sign)) > 0]
        if carried and not text.startswith("--"):
            carried.append(text[2:])
        named = [value] if equals and value else [each for each in carried if each]
    return [*named, *(each for each in dict.fromkeys(inside) if each not in named)]
