"""A command in a shell text, and the files that it names."""

import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.reading.shell_forms import Form, form_of
from bylaw.reading.shell_word import Word

_KNOWN: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _list(name: str) -> frozenset[str]:
    return frozenset(_KNOWN[name].split())


UNFOLLOWABLE = _list("unfollowable")
STATEMENTS = _list("statements")
OPERATORS = _list("operators") | {"\n"}
TESTS = _list("tests")
NUMBER_TESTS = _list("number_tests")
FOLDERS = _list("folders")
VARIABLES = _list("variables")
PAGERS = _list("pagers")
BUILTINS = _list("builtins")
GIT_KEYS = _list("git_keys")
_PLAIN_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_OF_ZSH = frozenset(_KNOWN["of_zsh"].split())
_ACTS = re.compile("|".join((*sorted(_OF_ZSH), ".*_proxy", "npm_config_.*")))
_SPECIAL = re.compile("|".join(_KNOWN["special"].split()))
_PLAIN_VALUE = re.compile(r"[\w.,:;=@+*/-]*")


def is_plain_name(name: str) -> bool:
    """Whether a name belongs to a script's own variable and has no special meaning to a shell or program."""
    return _PLAIN_VARIABLE.fullmatch(name) is not None and not _ACTS.fullmatch(name)


def is_special(name: str) -> bool:
    """Whether a variable changes which programs, files or words a command refers to."""
    return _SPECIAL.fullmatch(name) is not None or name in _OF_ZSH


def is_well_known(name: str, value: Word) -> bool:
    """Whether all programs behave the same for this value of the variable."""
    if name in PAGERS:
        return value.is_exact and value.text in ("", "cat")
    return name in VARIABLES and value.is_exact and _PLAIN_VALUE.fullmatch(value.text) is not None


_PLAIN_OPTIONS = {"read": frozenset({"-r"}), **dict.fromkeys(["test", "["], TESTS | NUMBER_TESTS)}


_PLAIN_FORMAT = re.compile(r"(?:[^%\\]|%%|\\[abefnrtv\\\"']|%[-+ #0]*[0-9]*(?:\.[0-9]*)?[diouxXeEfgGcsbq])*")
"""Matches formats that set no variable (`%n`)."""


def is_plain_builtin(command: "Command") -> bool:
    """Whether a builtin has only plain words, which neither set variables nor contain arithmetic or commands."""
    known = _PLAIN_OPTIONS.get(command.program, frozenset[str]())
    if command.program == "printf" and not (command.words and _PLAIN_FORMAT.fullmatch(command.words[0].text)):
        return False
    return all(
        word.is_exact and "[" not in word.text and (not word.text.startswith("-") or word.text in known)
        for word in command.words
    )


_ADDRESS = r"(?:[0-9]+|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SED_COMMAND = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,(?:\+[0-9]+|{_ADDRESS}))?)?!?\s*"
    r"(?:s(?P<sign>[/|#,@!:~])(?P<old>(?:(?!(?P=sign))[^\\\n]|\\.)*)(?P=sign)(?:(?!(?P=sign))[^\\\n]|\\.)*(?P=sign)[gpIiMm0-9]*"
    r"|[dpqDPNnGgHhx=]|[aic](?:\\\n?|\s)[^\n]*)[ \t]*(?:[;\n]|$)"
)
_SED_OPTION = re.compile(r"-[nErusz]*(?:i[\w.~]*)?|--in-place(?:=[\w.~]+)?|--regexp-extended|--quiet|--silent")


def has_known_scripts(words: Sequence[Word]) -> bool:
    """Whether all `sed` scripts are known to only edit text. They must not name files or run commands."""
    scripts: list[Word] = []
    operands: list[Word] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.is_exact and word.text in ("-e", "-ne", "-i -e", "--expression"):
            scripts += waiting[:1]
            del waiting[:1]
        elif not word.is_exact or not word.text.startswith("-"):
            operands.append(word)
        elif not _SED_OPTION.fullmatch(word.text):
            return False
    return all(not word.is_exact or _is_known_script(word.text) for word in scripts or operands[:1])


def _is_known_script(script: str) -> bool:
    at = 0
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        # Inside brackets, the delimiter of a pattern is ambiguous.
        if found is None or (found["old"] or "").count("[") != (found["old"] or "").count("]"):
            return False
        at = found.end()
    return bool(script)


_PRIVILEGED = frozenset({"sudo", "doas", "su", "pkexec", "runuser"})
_INSIDE = re.compile(r"(?:^:|(?<=[@=,])(?<!\s))((?:/|\.\.(?:/|$))\S*)")
"""Matches an absolute path, or a path that goes up, in a word such as `@/etc/passwd`."""
_REMOTE_HELPER = re.compile(r"[a-z]+::")
"""Matches a `git` remote helper, such as `ext::command`."""
_FILE_URL = re.compile(r"(?i)file:(?://[^/\s]*)?(/\S*)")


class Command(Struct, frozen=True):
    """A program that may run, or a redirection without a program (`program` is then empty)."""

    program: str
    r"""The program's name without a folder: `rm` for `/bin/rm`, `\rm`, `busybox rm` and `find -delete`."""
    written: str = ""
    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    """Variables that are set for the program. Without a program, variables that the command sets."""
    files_read: tuple[Word, ...] = ()
    """Files that are redirected to the program."""
    files_written: tuple[Word, ...] = ()
    """Files to which output is redirected, except for `/dev/null`, `/dev/stdout` and `/dev/stderr`."""
    wrappers: tuple[str, ...] = ()
    """Programs that run this program, outermost first: `sudo`, `env`, `xargs`, `sh`."""
    directories: frozenset[str] | None = frozenset({""})
    """The folders in which the program may run after `cd`, relative to the start. None if unknown."""
    has_input: bool = False
    """Whether the input is a pipe, a file or text in the command."""
    is_repeated: bool = False
    """Whether the program may run any number of times, in a loop or for each result of another program."""
    is_literal: bool = False
    """Whether the whole text is a list of programs with literal words: no patterns, expansions, input texts or nested
    shells.
    """
    line: int = 1

    @property
    def is_of_system(self) -> bool:
        """Whether the command names a system program, either without a folder or in one of the system's folders."""
        return "/" not in self.written or posixpath.normpath(posixpath.dirname(self.written)) in FOLDERS

    @property
    def is_privileged(self) -> bool:
        return any(wrapper in _PRIVILEGED for wrapper in self.wrappers)

    @property
    def spelled(self) -> str | None:
        """The program and its words on one line. Words with special characters are quoted.

        None if a word is not known before the command runs, or if a variable may change what the program does.
        """
        if self.known_words is None or not all(is_well_known(name, value) for name, value in self.assignments):
            return None
        return shlex.join((self.program, *(word.text for word in self.words)))

    @property
    def known_words(self) -> tuple[str, ...] | None:
        """The program, its words, and variables that may change what it does.

        None if any of them is not known before the command runs.
        """
        variables: list[str] = []
        for name, value in self.assignments:
            if not value.is_exact:
                return None
            if not is_well_known(name, value):
                variables.append(f"{name}={value.text}")
        if not all(word.is_exact for word in self.words):
            return None
        return (*variables, self.program if self.is_of_system else self.written, *(word.text for word in self.words))

    @property
    def options(self) -> tuple[str, ...]:
        """The words before `--` that begin with a hyphen."""
        return tuple(word.text for word in self._before_dashes() if word.is_exact and _is_option(word.text))

    @property
    def operands(self) -> tuple[str | None, ...]:
        """The words that do not begin with a hyphen. An unknown word is None.

        Option values that are separate words are included.
        """
        before = len(self._before_dashes())
        return tuple(
            word.text if word.is_exact else None
            for at, word in enumerate(self.words)
            if not (word.is_exact and (_is_option(word.text) if at < before else at == before and word.text == "--"))
        )

    def _before_dashes(self) -> tuple[Word, ...]:
        at = next((at for at, word in enumerate(self.words) if word.is_exact and word.text == "--"), len(self.words))
        return self.words[:at]

    @property
    def paths(self) -> tuple[str, ...] | None:
        """The words that may name files, relative to the start. None if one of them is unknown.

        Includes operands, option values and redirected files. A command with a closed form names only its files.
        """
        named: list[str] = []
        for word in self._naming():
            if not word.is_exact:
                return None
            named += _named_in(word.text)
        for _, value in self.assignments:
            if not value.is_exact:
                return None
            named += [each for each in _named_in(value.text) if each.startswith("/") or ".." in each]
        if any(_REMOTE_HELPER.match(each) for each in named):
            return None
        return self.from_start(named)

    def from_start(self, paths: Iterable[str]) -> tuple[str, ...] | None:
        """Return paths of the command relative to the start. None if the folder that it runs in is unknown."""
        if self.directories is None:
            return None
        return tuple(posixpath.join(folder, each) for each in paths for folder in sorted(self.directories))

    def _naming(self) -> Sequence[Word]:
        """The words that may name files."""
        if (form := form_of(self)) is not None:
            return [Word(each) for each in form.paths]
        words = self.words
        if self.program == "sed" and not any(word.text.startswith(("-e", "--e")) for word in words):
            # `has_known_scripts` checked that the script names no file.
            script = next((at for at, word in enumerate(words) if not word.text.startswith("-")), len(words))
            words = (*words[:script], *words[script + 1 :])
        return (*words, *self.files_read, *self.files_written)

    def may_have_option(self, *names: str) -> bool:
        """Whether the words may include one of these options: `-f`, also as in `-rf`; `--force`, also as `--forc`."""
        for word in self._before_dashes():
            if not word.is_exact:
                if word.may_be_option:
                    return True
                continue
            for name in names:
                if name.startswith("--"):
                    given = word.text.partition("=")[0]
                    if len(given) > 2 and name.startswith(given):
                        return True
                elif _is_option(word.text) and not word.text.startswith("--") and name[1:] in word.text[1:]:
                    return True
        return False

    @property
    def form(self) -> Form | None:
        return form_of(self)

    @property
    def writes(self) -> bool:
        """Whether the command may change something. True unless a closed form shows that it only reads."""
        form = form_of(self)
        return form is None or bool(form.changed)


def _named_in(text: str) -> list[str]:
    """Return the paths that a word may name: the word itself, an option's value, or the value after `name=`."""
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


def _is_option(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and text != "--"
