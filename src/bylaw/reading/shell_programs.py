"""Which shell commands only read, by the allowlists in `shell_programs.toml`."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING, Any

from bylaw.reading.shell_word import Word

if TYPE_CHECKING:
    from bylaw.reading.shell_command import Command

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
ANY_WORDS = _list("any_words")
VARIABLES = _list("variables")
VERSIONS = _list("versions")
FIND = _list("find")
GIT = _list("git")
GIT_OPTIONS = _list("git_options")
GIT_LETTERS = frozenset(_KNOWN["git_letters"])
GIT_KEYS = _list("git_keys")
_PLAIN_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_LOWER_CASE_THAT_ACT = frozenset({"path", "cdpath", "fpath", "manpath", "mailpath", "module_path", "fignore", "prompt"})
"""Variables that zsh ties to those that programs are found by."""
_ALIASES = {
    "gsort": "sort",
    "ggrep": "grep",
    "gfind": "find",
    "gsed": "sed",
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
}


def only_reads(command: "Command") -> bool:
    """Whether the command is known to change nothing but the shell it runs in."""
    assigned = {name for name, _ in command.assignments} - ({"IFS"} if command.program == "read" else set())
    if command.files_written or not all(is_harmless(name) for name in assigned):
        return False
    if any(not word.is_exact or word.text.startswith(("/dev/tcp", "/dev/udp")) for word in command.files_read):
        return False
    if command.is_privileged or (dirname(command.written) and dirname(command.written) not in FOLDERS):
        return False
    program = _ALIASES.get(command.program, command.program)
    if not program:
        return True
    if program in ("test", "["):
        return _is_test(command)
    if program == "cd":
        return True
    if program in ANY_WORDS:
        return True
    if program == "find":
        return _only_finds(command.words)
    if program == "git":
        return _only_looks(command.words)
    if program in VERSIONS and [word.text for word in command.words if word.is_exact] == ["--version"]:
        return len(command.words) == 1
    return program in _OPTIONS and _has_only(command.words, _OPTIONS[program])


def is_harmless(name: str) -> bool:
    """Whether programs do the same whatever the variable of this name is."""
    return name in VARIABLES or (
        _PLAIN_VARIABLE.fullmatch(name) is not None and name not in _LOWER_CASE_THAT_ACT and not name.endswith("_proxy")
    )


def _is_test(command: "Command") -> bool:
    """`-v` evaluates what it names, so nothing unknown may stand where an operator can."""
    if command.written == "[" and not command.words:
        return True
    return all(word.is_exact and word.text not in ("-v", "-R") for word in command.words)


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
    """`git` with a command that looks, and with known options."""
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
    """Whether the words are options of the lists, and operands of the form."""
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
            if word.may_be_option:
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
        return bool(operands) and operands[0].is_exact and re.fullmatch(known["first"], operands[0].text) is not None
    if "script" in known:
        return _is_script(operands, known)
    if "most" in known and (len(operands) > known["most"] or any(word.kind in ("glob", "many") for word in operands)):
        return False
    if "operands" in known:
        return all(word.is_exact and re.fullmatch(known["operands"], word.text) for word in operands)
    return True


def _is_script(operands: Sequence[Word], known: dict[str, Any]) -> bool:
    if not operands or not operands[0].is_exact:
        return False
    script = operands[0].text
    return re.fullmatch(known["script"], script) is not None and not any(
        each in script for each in known.get("script_without", "").split()
    )
