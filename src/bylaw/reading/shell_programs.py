"""A command in a shell text. Determines whether it only reads, using the allowlists in `shell_programs.toml`."""

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
_OPTIONS: dict[str, dict[str, Any]] = _KNOWN["options"]


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
VERSIONS = _list("versions")
FIND = _list("find")
GIT = _list("git")
GIT_OPTIONS = _list("git_options")
GIT_LETTERS = frozenset(_KNOWN["git_letters"])
GIT_KEYS = _list("git_keys")
_PLAIN_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_OF_ZSH = frozenset(_KNOWN["of_zsh"].split())
_ACTS = re.compile("|".join((*sorted(_OF_ZSH), ".*_proxy", "npm_config_.*")))
_SPECIAL = re.compile("|".join(_KNOWN["special"].split()))
_PLAIN_VALUE = re.compile(r"[\w.,:;=@+*/-]*")
ALIASES = {
    "gsort": "sort",
    "ggrep": "grep",
    "gfind": "find",
    "gsed": "sed",
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "egrep": "grep",
    "fgrep": "grep",
}


def only_reads(command: "Command") -> bool:
    """Whether the command is known to affect only its own shell."""
    is_read = command.program == "read"
    if command.files_written or not all(
        is_harmless(name, word) for name, word in command.assignments if not (is_read and name == "IFS")
    ):
        return False
    if any(not word.is_exact or word.text.startswith(("/dev/tcp", "/dev/udp")) for word in command.files_read):
        return False
    if command.is_privileged or not command.is_of_system:
        return False
    return not command.program or has_known_words(command)


def has_known_words(command: "Command") -> bool:
    """Whether the program is known to be read-only with these words."""
    program = ALIASES.get(command.program, command.program)
    if program in ("test", "["):
        return _is_test(command)
    if program == "cd":
        return True
    if program == "find":
        return _only_finds(command.words)
    if program == "git":
        return _only_looks(command.words)
    if program in VERSIONS and [word.text for word in command.words if word.is_exact] == ["--version"]:
        return len(command.words) == 1
    if "numbers" in _OPTIONS.get(program, {}):
        return _has_number(command.words, _OPTIONS[program]["numbers"])
    if program == "read" and not all(is_plain_name(word.text) for word in command.words if word.text[:1] != "-"):
        return False
    return program in _OPTIONS and _has_only(command.words, _OPTIONS[program])


def is_plain_name(name: str) -> bool:
    """Whether a name belongs to a script's own variable and has no special meaning to a shell or program."""
    return _PLAIN_VARIABLE.fullmatch(name) is not None and not _ACTS.fullmatch(name)


def is_special(name: str) -> bool:
    """Whether a variable changes which programs, files or words a command refers to."""
    return _SPECIAL.fullmatch(name) is not None or name in _OF_ZSH


def is_harmless(name: str, value: Word) -> bool:
    """Whether programs behave the same for all plain values of the variable."""
    return is_plain_name(name) or is_well_known(name, value)


def is_well_known(name: str, value: Word) -> bool:
    """Whether all programs behave the same for this value of the variable."""
    if name in PAGERS:
        return value.is_exact and value.text in ("", "cat")
    return name in VARIABLES and value.is_exact and _PLAIN_VALUE.fullmatch(value.text) is not None


def _is_test(command: "Command") -> bool:
    """Whether a test contains only known operators and plain numbers. `-v` evaluates its argument. Numbers may be
    arithmetic.
    """
    words = command.words
    if not all(word.is_exact for word in words):
        return False
    texts = [word.text for word in words]
    operators = TESTS | NUMBER_TESTS | {"-a", "-o"}
    if not all(text in operators or len(text) < 2 for text in texts if text.startswith("-")):
        return False
    return not any(text in NUMBER_TESTS for text in texts) or not any("[" in text for text in texts)


def _only_finds(words: Sequence[Word]) -> bool:
    return all(
        (
            not word.text.startswith("-")
            or word.text in FIND
            or re.fullmatch(r"-\d+[A-Za-z]?|-O[0-3]", word.text) is not None
        )
        if word.is_exact
        else not word.may_be_option
        for word in words
    )


def _only_looks(words: Sequence[Word]) -> bool:
    at = 0
    while at < len(words) and words[at].is_exact and words[at].text.startswith("-"):
        if words[at].text in ("-C", "-c"):
            at += 1
        elif words[at].text not in ("--no-pager", "--version", "--no-optional-locks"):
            return False
        at += 1
    if at >= len(words) or not words[at].is_exact:
        return at == len(words) and bool(words)
    name, rest = words[at].text, words[at + 1 :]
    if name in ("branch", "remote", "tag", "stash", "worktree", "config"):
        given = tuple(word.text if word.is_exact else "?" for word in rest)
        return given in _LISTINGS[name]
    return name in GIT and _git_options_look(rest)


_LISTINGS: dict[str, frozenset[tuple[str, ...]]] = {
    "branch": frozenset(
        {(), ("-a",), ("-v",), ("-vv",), ("-r",), ("--show-current",), ("--list",), ("--all",), ("-av",)}
    ),
    "remote": frozenset({(), ("-v",), ("--verbose",)}),
    "tag": frozenset({(), ("-l",), ("--list",)}),
    "stash": frozenset({("list",), ("show",)}),
    "worktree": frozenset({("list",)}),
    "config": frozenset({("--list",), ("-l",)}),
}


def _git_options_look(words: Sequence[Word]) -> bool:
    for word in words:
        if not word.is_exact:
            if word.may_be_option:
                return False
        elif word.text == "--":
            return True
        elif word.text.startswith("--"):
            if word.text.partition("=")[0] not in GIT_OPTIONS:
                return False
        elif word.text.startswith("-") and not set(re.sub(r"[\"'=].*", "", word.text[1:])) <= GIT_LETTERS:
            return False
    return True


def _has_only(words: Sequence[Word], known: dict[str, Any]) -> bool:
    letters, valued = frozenset(known.get("letters", "")), frozenset(known.get("valued", ""))
    long = frozenset(known.get("long", "").split())
    operands: list[Word] = []
    dashes = False
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if len(operands) >= known.get("free_after", len(words) + 1):
            break
        if not word.is_exact:
            if word.may_be_option and not dashes:
                return False
            operands.append(word)
        elif dashes or not word.text.startswith("-") or word.text == "-":
            operands.append(word)
        elif word.text == "--":
            dashes = True
        elif word.text.startswith("--"):
            if word.text.partition("=")[0] not in long:
                return False
        elif word.text[1] in valued:
            if len(word.text) == 2:
                if at == len(words) or not words[at].is_exact:
                    return False
                at += 1
        elif not set(word.text[1:]) <= letters:
            return False
    if "first" in known:
        return _is_format(operands, words, known["first"])
    if "script" in known:
        return _is_script(operands, known)
    if "most" in known and (len(operands) > known["most"] or any(word.kind == "many" for word in operands)):
        return False
    if "operands" in known:
        return all(word.is_exact and re.fullmatch(known["operands"], word.text) for word in operands)
    return True


def _has_number(words: Sequence[Word], known: str) -> bool:
    forms = {True: known, False: r"\"?\$(?:[?#]|\{?\w+\}?)\"?"}
    return len(words) <= 1 and all(re.fullmatch(forms[word.is_exact], word.text) is not None for word in words)


def _is_format(operands: Sequence[Word], words: Sequence[Word], known: str) -> bool:
    """Whether a format sets no variables and contains no arithmetic."""
    if not operands or not operands[0].is_exact or re.fullmatch(known, operands[0].text) is None:
        return False
    has_numbers = re.search(r"%[^a-zA-Z%]*(?:[diouxXeEfgG]|\*)", operands[0].text) is not None
    return not has_numbers or not any(word.is_exact and "[" in word.text and word is not operands[0] for word in words)


def _is_script(operands: Sequence[Word], known: dict[str, Any]) -> bool:
    if not operands or not operands[0].is_exact:
        return False
    script = operands[0].text
    return re.fullmatch(known["script"], script) is not None and not any(
        each in script for each in known.get("script_without", "").split()
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
        """Whether the command may change something. True unless it is known to only read with these options."""
        return not only_reads(self)


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
