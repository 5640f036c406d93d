"""The files whose contents a shell command shows or copies, if the command names each of them."""

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from bylaw.reading import shell_programs as programs
from bylaw.reading.shell_programs import Command
from bylaw.reading.shell_word import Word

_BRANCH = r"(?:HEAD|@|(?:origin/)?(?:main|master|develop))(?:[~^][0-9]*)*"
_REVISION = re.compile(rf"{_BRANCH}(?:\.\.\.?(?:{_BRANCH})?)?")
"""Matches names of commits. Other names and hashes may refer to a stored file."""
_STORED = re.compile(rf"(?:{_BRANCH})?:([\w.][\w./@+-]*)")
_PLAIN_GIT = re.compile(r"-(?:[0-9]+|n[0-9]*|[SG].*|[iEwbM])")
_NUMBER = re.compile(r"[0-9]+")


def shown_files(command: Command) -> tuple[str, ...] | None:
    """Return the names, or patterns of names, of all files whose contents the command may show or copy.

    None if it may show others: those in a folder, in the history of git, or named by a word that is unknown before the
    command runs.
    """
    named = _shown(command)
    if named is None or any(word.kind in ("one", "many") for word in command.files_read):
        return None
    return tuple(word.text for word in (*command.files_read, *named))


def _shown(command: Command) -> list[Word] | None:
    program, words = programs.ALIASES.get(command.program, command.program), command.words
    if not program or program in programs.SHOWS_NOTHING or words == (Word("--version"),):
        return []
    if any(word.kind in ("one", "many") for word in words):
        return None
    match program:
        case "git":
            return _of_git(words)
        case "grep":
            return _of_grep(command)
        case "rg":
            return _of_rg(command)
        case "sed" if any(word.is_exact and word.text.startswith("-i") for word in words):
            return []
        case "sed" | "awk" | "jq":
            return _after_script(words, programs.valued_letters(program))
        case "cp" | "mv":
            operands = _operands(words, "")
            return operands[:-1] if operands and not command.may_have_option("-t", "--target-directory") else None
        case _:
            return _operands(words, programs.valued_letters(program)) if program in programs.SHOWS else None


def _operands(words: Sequence[Word], valued: str) -> list[Word] | None:
    found: list[Word] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.text.startswith("-"):
            found.append(word)
        elif word.text == "--":
            return found + waiting
        elif word.text.startswith("--"):
            name, _, value = word.text.partition("=")
            if value and name not in programs.PLAIN_VALUES and not _NUMBER.fullmatch(value):
                return None
        elif (at := next((at for at, letter in enumerate(word.text) if letter in valued), 0)) == len(word.text) - 1 > 0:
            # A pattern may match several words, and so several files.
            if not waiting or not waiting.pop(0).is_exact:
                return None
        elif not word.is_exact and not at:
            return None
    return found


def _after_script(words: Sequence[Word], valued: str) -> list[Word] | None:
    operands = _operands(words, valued)
    return operands[1:] if operands and operands[0].is_exact else None


def _of_grep(command: Command) -> list[Word] | None:
    kinds = [Word(word.text.removeprefix("--include=")) for word in command.words if word.text.startswith("--include=")]
    words = tuple(word for word in command.words if not word.text.startswith("--include="))
    rest, valued = replace(command, words=words), programs.valued_letters("grep")
    # After a first `--exclude`, grep searches all other files too.
    has_others = any(re.match(r"--exclude(?!-dir)", word.text) for word in words)
    if rest.may_have_option("-f", "--file", "--include") or has_others:
        return None
    if rest.may_have_option("-r", "-R", "-d", "--recursive", "--dereference-recursive", "--directories"):
        # The kinds also apply to the files that the command names.
        return kinds or None
    return _operands(words, valued) if rest.may_have_option("-e", "--regexp") else _after_script(words, valued)


def _of_rg(command: Command) -> list[Word] | None:
    words = command.words
    if Word("--files") in words:
        return []
    has_pattern = command.may_have_option("-e", "--regexp")
    operands = (
        _operands(words, programs.valued_letters("rg"))
        if has_pattern
        else _after_script(words, programs.valued_letters("rg"))
    )
    if operands is None:
        return None
    kinds = [after for word, after in pairwise(words) if word.text == "-g"]
    kinds += [Word(word.text.removeprefix("--glob=")) for word in words if word.text.startswith("--glob=")]
    has_others = any(re.match(r"-[^-]*g", word.text) and word.text != "-g" for word in words)
    if has_others or any(word.text.startswith("!") for word in kinds):
        return None
    # The kinds do not apply to the files that the command names.
    named = [word for word in operands if word.text != "." and not word.text.endswith("/")]
    searches_folder = not operands or len(named) < len(operands)
    return None if searches_folder and not kinds else [*named, *kinds]


def _of_git(words: Sequence[Word]) -> list[Word] | None:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        at += 2 if words[at].text in ("-C", "-c") else 1
    if at >= len(words):
        return []
    name, rest = words[at].text, words[at + 1 :]
    dashes = next((at for at, word in enumerate(rest) if word == Word("--")), len(rest))
    options = [word.text for word in rest[:dashes] if word.text.startswith("-")]
    operands = [word for word in rest[:dashes] if not word.text.startswith("-")]
    paths = list(rest[dashes + 1 :])
    match name:
        case "status":
            return None if any("v" in each for each in options if not each.startswith("--")) else []
        case "remote" | "stash" if options:
            return None
        case "mv":
            return (operands + paths)[:-1]
        case "blame":
            return [word for word in operands + paths if not _REVISION.fullmatch(word.text)] or None
        case "cat-file" if options in (["-t"], ["-s"], ["-e"]):
            return []
        case "show" | "cat-file" if operands and not paths and all(_STORED.fullmatch(word.text) for word in operands):
            return [Word(word.text.partition(":")[2]) for word in operands]
        case "log" | "diff" | "show":
            return _of_changes(name, options, [word.text for word in operands], paths)
        case _:
            return [] if name in programs.GIT_SHOWS_NOTHING else None


def _of_changes(name: str, options: list[str], operands: list[str], paths: list[Word]) -> list[Word] | None:
    """Return the files whose changes are shown, which are those after `--`. Without `--`, only names may be listed."""
    are_commits = all(_REVISION.fullmatch(each) or (name == "log" and each.isdigit()) for each in operands)
    names = {each.partition("=")[0] for each in options if not _PLAIN_GIT.fullmatch(each)}
    lists_names = name == "log" or (bool(names & programs.GIT_LISTS) and (name == "diff" or are_commits))
    if lists_names and names <= programs.GIT_LISTS | programs.GIT_PLAIN:
        return []
    is_limited = bool(paths) and are_commits and not any(word.text.startswith(":") for word in paths)
    return paths if is_limited and not any(each.startswith("-L") for each in options) else None
