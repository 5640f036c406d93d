"""Finds the programs that a shell command runs, with their words and files. `tree-sitter-bash` (extra `read-shell`)
parses it.

The text is read as bash and POSIX shells read it. The syntax tree is used only if it covers the text without gaps. Text
is `Unreadable` if it can change what words mean: functions, aliases, `eval`, `source`, and programs in variables.
"""

import importlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from msgspec.structs import replace

from bylaw.errors import MissingExtra
from bylaw.reading import shell_programs as words
from bylaw.reading.shell_programs import Command
from bylaw.reading.shell_word import Word, read_word
from bylaw.reading.shell_wrappers import unwrap
from bylaw.reading.unreadable import Unreadable

__all__ = ["Command", "Word", "read_shell"]

MAX_CHARACTERS = 50_000
MAX_DEPTH = 60
MAX_SUBSTITUTIONS = 8
MAX_NESTED_TEXTS = 4
"""The maximum nesting depth of `sh -c`."""


_SILENT = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_GAP = re.compile(r"(?:[ \t\n]|\\\n)*")
_HYPHENATED = frozenset({"command", "redirected_statement"})
_HYPHEN = re.compile(r"[ \t]+-[ \t]+")
_JOINED_LINES = re.compile(r"(?<![ \t\n\\])\\\n(?![ \t])|\\\\\n")
_PLAIN_EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9?#@*$!-]|\{[A-Za-z_0-9]\w*\}|\{[A-Za-z_]\w*:-[\w./-]*\})")
_VALUES = {"for_statement": ("variable", "value"), "case_statement": ("value",), "case_item": ("value",)}
"""Parts of a statement that are words."""
_SETS_VARIABLE = re.compile(r"(?:(?:^|[\s;|&()])\{\w+|\])\}$")
"""Matches the text before the operator of a redirection such as `{PATH}<x`."""
_RESERVED = frozenset({"{", "}", "!"})
_ENDS = frozenset([b"", *(bytes([each]) for each in b" \t\n;&|()")])
"""Bytes that end a word. The end of the text is the empty string."""
_PLAIN_PATTERN = re.compile(r"[\w.,:@%+*?/\[\]-]*")
_PLAIN_ARITHMETIC = re.compile(r"\$\(\([0-9 +*/%()<>=!&|^~?:-]*\)\)")
_EXPANSIONS = frozenset(
    ["simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"]
)
_QUOTED = frozenset(["string", "raw_string", "ansi_c_string"])
_LITERAL = frozenset(
    [
        *("program", "list", "pipeline", "command", "command_name", "redirected_statement", "file_redirect"),
        *("file_descriptor", "comment", "variable_assignment", "variable_name", "word", "number", "string"),
        *("string_content", "raw_string", "concatenation"),
    ]
)
"""Syntax nodes that occur if every word is literal."""
_TIMED = frozenset({"time", "timeout"})
_SPLITS = re.compile(r"[<>|&;()]")
"""Operators that end a command in POSIX shells, which treat `[[` as a program and redirect the output of `[`."""


def read_shell(text: str) -> tuple[Command, ...]:
    """Return every program that `text` may run, in order. Raises `Unreadable` if this is uncertain. Takes less than 1
    ms.
    """
    reader = _Reader(text, nested=0)
    found = reader.commands()
    is_literal = reader.is_literal and all(
        word.is_exact for each in found for word in (*each.words, *each.files_read, *each.files_written)
    )
    return tuple(replace(each, is_literal=is_literal and _TIMED.issuperset(each.wrappers)) for each in found)


@cache
def _parser() -> Any:
    try:
        grammar = importlib.import_module("tree_sitter_bash")
        library = importlib.import_module("tree_sitter")
    except ImportError as error:
        raise MissingExtra("reading shell commands needs tree-sitter", "read-shell") from error
    return library.Parser(library.Language(grammar.language()))


class _Reader:
    def __init__(self, text: str, *, nested: int) -> None:
        if len(text) > MAX_CHARACTERS:
            raise Unreadable(f"the command has more than {MAX_CHARACTERS:,} characters")
        if nested > MAX_NESTED_TEXTS:
            raise Unreadable("shells that run shells, nested too deeply")
        _check_characters(text)
        self.source = text.encode("utf-8")
        self.nested = nested
        self.found: list[Command] = []
        self.directories: frozenset[str] | None = frozenset({""})
        """The folders in which the next command may run if all earlier commands succeeded."""
        self.reached = self.directories
        """The folders in which the next command may run if an earlier part of the statement failed."""
        self.line = 1
        self.inside = 0
        self.is_literal = False

    def commands(self) -> list[Command]:
        tree = _parser().parse(self.source)
        root = tree.root_node
        if root.has_error:
            raise Unreadable("the shell command cannot be parsed", line=_line_of_fault(root))
        before = self.source[: root.start_byte] + self.source[root.end_byte :]
        if before.strip(b" \t\n"):
            raise Unreadable("the parser skipped part of the text")
        self.is_literal = all(each.type in _LITERAL for each in _walk(root) if each.is_named)
        self._statement(root, 0, has_input=False)
        if not self.found:
            raise Unreadable("there is no command")
        return self.found

    def _text(self, node: Any) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8")

    def _fault(self, reason: str, node: Any) -> Unreadable:
        return Unreadable(reason, line=node.start_point[0] + 1)

    def _statement(self, node: Any, depth: int, *, has_input: bool) -> None:
        if depth > MAX_DEPTH:
            raise self._fault("commands nested too deeply to follow", node)
        kind = node.type
        self.line = node.start_point[0] + 1
        if kind == "comment":
            self._check_comment(node)
        elif kind == "command":
            self._command(node, (), has_input=has_input)
        elif kind == "redirected_statement":
            self._redirected(node, depth, has_input=has_input)
        elif kind == "test_command":
            self._test(node)
        elif kind in ("variable_assignment", "variable_assignments"):
            assigned = [node] if kind == "variable_assignment" else list(node.children)
            self._add(Command("", assignments=tuple(self._assignment(each) for each in assigned)))
        elif kind == "declaration_command":
            self._export(node)
        elif kind in words.STATEMENTS:
            self._structure(node, depth, has_input=has_input)
        else:
            raise self._fault(f"`{kind.replace('_', ' ')}` cannot be followed", node)

    def _structure(self, node: Any, depth: int, *, has_input: bool) -> None:
        if self.source[node.start_byte : node.start_byte + 2] == b"((":
            raise self._fault("arithmetic", node)
        self._check_gaps(node)
        start, first = self.directories, len(self.found)
        self._children(node, depth, has_input=has_input)
        if node.type in ("while_statement", "for_statement"):
            if self.reached != start:
                del self.found[first:]
                self.directories = None
                self._children(node, depth, has_input=has_input)
            self.found[first:] = [replace(each, is_repeated=True) for each in self.found[first:]]
        if node.type in ("subshell", "pipeline"):
            self.directories = self.reached = start

    def _children(self, node: Any, depth: int, *, has_input: bool) -> None:
        """Read nested statements in order. A change of folder is certain only for statements after `&&`."""
        kind = node.type
        reached = self.directories
        chain = kind == "list"
        piped = has_input
        for at, child in enumerate(node.children):
            if not child.is_named:
                if child.type not in words.OPERATORS or (child.type == ";;" and kind != "case_item"):
                    raise self._fault(f"`{child.type}`", child)
                if (child.type in _RESERVED or child.type.isalpha()) and not self._stands_alone(child):
                    raise self._fault(f"`{child.type}` that is part of a word", child)
                piped = piped or child.type in ("|", "|&")
                continue
            if node.field_name_for_child(at) == "variable" and not words.is_plain_name(self._text(child)):
                self._add(Command("", assignments=((self._text(child), Word("", "one")),)))
            if node.field_name_for_child(at) in _VALUES.get(kind, ()):
                if kind != "case_item" or not _PLAIN_PATTERN.fullmatch(self._text(child)):
                    self._word(child)
                continue
            after = node.children[at + 1].type if at + 1 < len(node.children) else None
            here = self.reached = self.directories
            self._statement(child, depth + 1, has_input=piped)
            if kind == "pipeline" or after == "&":
                self.directories = here
                continue
            reached = _either(reached, _either(self.reached, self.directories))
            chain = chain and after in ("&&", None)
            if not chain:
                self.directories = reached
        self.reached = reached

    def _stands_alone(self, node: Any) -> bool:
        before = self.source[node.start_byte - 1 : node.start_byte] if node.start_byte else b""
        return before in _ENDS and self.source[node.end_byte : node.end_byte + 1] in _ENDS

    def _check_gaps(self, node: Any) -> None:
        """Check the gaps between the parts of a statement. Only white space, or a lone hyphen that the grammar drops,
        is allowed.
        """
        at = node.start_byte
        for child in node.children:
            gap = self._gap(at, child.start_byte)
            if not _GAP.fullmatch(gap) and not (node.type in _HYPHENATED and _HYPHEN.fullmatch(gap)):
                raise self._fault("the parser skipped part of the text", node)
            at = child.end_byte
        if not _GAP.fullmatch(self._gap(at, node.end_byte)):
            raise self._fault("the parser skipped part of the text", node)

    def _gap(self, start: int, end: int) -> str:
        return self.source[start:end].decode("utf-8")

    def _check_comment(self, node: Any) -> None:
        before = self.source[node.start_byte - 1 : node.start_byte] if node.start_byte else b"\n"
        after = self.source[node.end_byte : node.end_byte + 1]
        if (
            before not in b" \t\n;&|()"
            or after not in (b"", b"\n")
            or b"\n" in self.source[node.start_byte : node.end_byte]
        ):
            raise self._fault("a `#` that may not begin a comment", node)

    def _test(self, node: Any) -> None:
        """Read `[[ ... ]]` or `[ ... ]`, which compare values and examine files. Arithmetic and `-v` might run
        commands.
        """
        is_single = self._text(node.children[0]) == "["
        if self._text(node.children[0]) not in ("[", "[["):
            raise self._fault("arithmetic", node)
        if b"\n" in self.source[node.start_byte : node.end_byte] or not all(
            self._stands_alone(bracket) for bracket in (node.children[0], node.children[-1])
        ):
            raise self._fault("a bracket that may not begin or end a test", node)
        if _SPLITS.search(self._unquoted(node)):
            raise self._fault(
                "a test with a sign that some shells treat as a redirection or as the end of the command", node
            )
        operators = words.TESTS | words.NUMBER_TESTS if is_single else words.TESTS
        for each in _walk(node):
            is_operator = each.type == "test_operator" or (
                not each.is_named and each.parent.type.endswith("_expression")
            )
            if is_operator and self._text(each) not in operators:
                raise self._fault(f"the test `{self._text(each)}`", each)
            if each.type == "word" and self._text(each).startswith("-"):
                raise self._fault(f"the test `{self._text(each)}`", each)
            is_bare = each.type in _EXPANSIONS and each.parent.type != "string"
            if is_single and is_bare and self._text(each) not in ("$?", "$#", "$$"):
                raise self._fault("`[` with an expansion outside quotes", each)
        if is_single and sum(1 for each in _walk(node) if each.type in ("binary_expression", "unary_expression")) > 2:
            raise self._fault("`[` with more than one test", node)
        compares_numbers = any(not each.is_named and self._text(each) in words.NUMBER_TESTS for each in _walk(node))
        compares_numbers = compares_numbers or any(self._text(each) in words.NUMBER_TESTS for each in _walk(node))
        if compares_numbers and b"[" in self.source[node.start_byte + 1 : node.end_byte - 1]:
            raise self._fault("arithmetic", node)
        self._substitutions(node)
        self._add(Command("test", "["))

    def _export(self, node: Any) -> None:
        self._check_gaps(node)
        if not node.children or self._text(node.children[0]) != "export":
            raise self._fault(f"`{self._text(node.children[0])}` cannot be followed", node)
        named: list[tuple[str, Word]] = []
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                named.append(self._assignment(child))
            elif child.type == "variable_name":
                named.append((self._text(child), Word("", "one")))
            else:
                raise self._fault("`export` with words other than names", child)
        self._add(Command("export", "export", assignments=tuple(named)))

    def _command(self, node: Any, redirects: Sequence[Any], *, has_input: bool) -> None:
        self._check_gaps(node)
        assignments: list[tuple[str, Word]] = []
        spelled: list[Word] = []
        files = _Files()
        end = -1
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            elif child.type in ("file_redirect", "herestring_redirect"):
                self._redirect(child, files)
            elif child.type == "comment":
                self._check_comment(child)
            else:
                if child.start_byte == end:
                    raise self._fault("the parser splits a word in two", child)
                if end >= 0 and "-" in self._gap(end, child.start_byte):
                    spelled.append(Word("-"))
                spelled.append(self._word(child.children[0] if child.type == "command_name" else child))
            end = child.end_byte
        for each in redirects:
            if "-" in self._gap(end, each.start_byte):
                spelled.append(Word("-"))
            self._redirect(each, files)
            end = each.end_byte
        base = Command(
            "",
            assignments=tuple(assignments),
            files_read=tuple(files.read),
            files_written=tuple(files.written),
            has_input=has_input or files.has_input,
        )
        if spelled:
            self._run(spelled, base)
        else:
            self._add(base)

    def _redirected(self, node: Any, depth: int, *, has_input: bool) -> None:
        self._check_gaps(node)
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child is not body and child != body]
        if body is not None and body.type == "command":
            self._command(body, redirects, has_input=has_input)
            return
        files = _Files()
        for each in redirects:
            self._redirect(each, files)
        if files.read or files.written or files.has_input:
            self._add(Command("", files_read=tuple(files.read), files_written=tuple(files.written)))
        if body is not None:
            self._statement(body, depth + 1, has_input=has_input or files.has_input)

    def _redirect(self, node: Any, files: "_Files") -> None:
        before = self.source[: node.start_byte].decode("utf-8")
        if _SETS_VARIABLE.search(before):
            raise self._fault("a redirection that sets a variable", node)
        if node.type == "herestring_redirect":
            files.has_input = True
            for child in node.named_children:
                self._word(child)
            return
        if node.type == "heredoc_redirect":
            self._heredoc(node, files)
            return
        if node.type != "file_redirect":
            raise self._fault(f"`{node.type.replace('_', ' ')}` cannot be followed", node)
        sign = next((child.type for child in node.children if not child.is_named), "")
        targets = node.children_by_field_name("destination")
        if len(targets) != 1:
            raise self._fault("a redirection with words after it", node)
        if (descriptor := node.child_by_field_name("descriptor")) is not None:
            before = self.source[descriptor.start_byte - 1 : descriptor.start_byte] if descriptor.start_byte else b" "
            if (
                before not in b" \t\n;|&("
                or not self._text(descriptor).isascii()
                or not self._text(descriptor).isdigit()
            ):
                raise self._fault("a redirection that may be part of a word", node)
        target = self._word(targets[0])
        is_copy = sign in (">&", "<&") and target.is_exact and (target.text.isdigit() or target.text == "-")
        if is_copy:
            return
        match sign:
            case "<":
                files.has_input = True
                files.read.append(target)
            case ">" | ">>" | ">|" | "&>" | "&>>" | ">&":
                if not (target.is_exact and target.text in _SILENT):
                    files.written.append(target)
            case _:
                raise self._fault(f"the redirection `{sign}`", node)

    def _heredoc(self, node: Any, files: "_Files") -> None:
        if files.has_heredoc:
            raise self._fault("two here-documents for one command", node)
        files.has_input = files.has_heredoc = True
        label = ""
        for child in node.children:
            match child.type:
                case "<<" | "<<-" | "\n":
                    pass
                case "heredoc_start":
                    label = self._text(child)
                case "heredoc_body":
                    self._check_heredoc(node, child, label)
                case "heredoc_end":
                    pass
                case "file_redirect":
                    self._redirect(child, files)
                case "pipeline" | "command" | "list":
                    files.after.append(child)
                case "|" | "|&":
                    pass
                case _:
                    raise self._fault(f"`{self._text(child)[:40]}` after a here-document", child)
        if node.children[-1].type != "heredoc_end":
            raise self._fault("a here-document without an end", node)
        here = self.directories
        for child in files.after:
            self._statement(child, 1, has_input=True)
        files.after.clear()
        self.directories = here

    def _check_heredoc(self, node: Any, body: Any, label: str) -> None:
        is_quoted = label[:1] in ("'", '"') and label[-1:] == label[:1]
        plain = label[1:-1] if is_quoted else label
        if not re.fullmatch(r"[A-Za-z_][\w-]*", plain):
            raise self._fault("the label of a here-document is not a plain word", node)
        strips = node.children[0].type == "<<-"
        end = node.children[-1].end_byte
        *lines, last = (line.lstrip("\t") if strips else line for line in self._gap(body.start_byte, end).split("\n"))
        if plain in lines or last != plain or self.source[end : end + 1] not in (b"", b"\n"):
            raise self._fault("it is not clear where a here-document ends", node)
        if not is_quoted:
            self._substitutions(body)
            if re.search(r"(?<!\\)(?:\\\\)*(?:`|\$[({\[])", self._residue(body)):
                raise self._fault("an expansion in a here-document", node)

    def _word(self, node: Any) -> Word:
        if node.type in ("array", "extglob_pattern", "regex", "subscript"):
            raise self._fault(f"`{self._text(node)[:40]}` cannot be followed", node)
        outside = inside = False
        waiting = [(node, False)]
        while waiting:
            here, is_quoted = waiting.pop()
            if here.type in _EXPANSIONS:
                inside, outside = inside or is_quoted, outside or not is_quoted
            else:
                waiting += [(child, is_quoted or here.type == "string") for child in here.children]
        self._substitutions(node)
        return read_word(self._text(node), self._residue(node), expands_outside=outside, expands_inside=inside)

    def _unquoted(self, node: Any) -> str:
        """Return the text with each expansion and each quoted text replaced by one letter."""
        return self._residue(node, _EXPANSIONS | _QUOTED)

    def _residue(self, node: Any, left_out: frozenset[str] = _EXPANSIONS) -> str:
        """Return the text with each expansion replaced by one letter."""
        parts: list[bytes] = []
        at = node.start_byte
        waiting = [node]
        while waiting:
            here = waiting.pop()
            if here.type in left_out:
                parts += [self.source[at : here.start_byte], b"x"]
                at = here.end_byte
            else:
                waiting += reversed(here.children)
        return b"".join([*parts, self.source[at : node.end_byte]]).decode("utf-8")

    def _substitutions(self, node: Any) -> None:
        """Read the commands inside a word or text. Reject expansions that do more than give a value."""
        waiting = [node]
        while waiting:
            here = waiting.pop()
            if here.type in ("command_substitution", "process_substitution"):
                self._inside(here)
                continue
            if here.type in ("simple_expansion", "expansion") and not _PLAIN_EXPANSION.fullmatch(self._text(here)):
                raise self._fault(f"the expansion `{self._text(here)[:40]}`", here)
            if here.type == "arithmetic_expansion" and not _PLAIN_ARITHMETIC.fullmatch(self._text(here)):
                raise self._fault("arithmetic with names", here)
            waiting += reversed(here.children)

    def _inside(self, node: Any) -> None:
        if self._text(node).startswith("`") and "\\" in self._text(node):
            raise self._fault("a backslash between backticks", node)
        self._check_gaps(node)
        here = self.directories
        self.inside += 1
        if self.inside > MAX_SUBSTITUTIONS:
            raise self._fault("substitutions nested too deeply", node)
        for child in node.named_children:
            if child.type in ("file_redirect", "heredoc_redirect", "herestring_redirect"):
                files = _Files()
                self._redirect(child, files)
                self._add(Command("", files_read=tuple(files.read), files_written=tuple(files.written)))
            else:
                self._statement(child, 1, has_input=False)
                self.directories = _either(here, self.directories)
        self.inside -= 1
        self.directories = here

    def _assignment(self, node: Any) -> tuple[str, Word]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name" or b"+=" in self.source[name.start_byte : name.end_byte + 2]:
            raise self._fault("an assignment that is not to a name", node)
        if value is None:
            return self._text(name), Word("")
        if value.start_byte != name.end_byte + 1:
            raise self._fault("an assignment with a space", node)
        return self._text(name), self._word(value)

    def _add(self, command: Command) -> None:
        self._check_variables(command)
        self.found.append(replace(command, directories=self.directories, line=self.line))

    def _run(self, spelled: list[Word], base: Command) -> None:
        """Add the program at the start of `spelled`. If it is a wrapper, also add the program that it runs."""
        first = spelled[0]
        if not first.is_exact:
            raise Unreadable(f"the program `{first.text[:40]}` is unknown until it runs", line=self.line)
        if not first.text or first.text.startswith("-") or first.text.endswith("/"):
            raise Unreadable(f"`{first.text[:40]}` is not a program", line=self.line)
        name = posixpath.basename(first.text)
        command = replace(base, program=name, written=first.text, words=tuple(spelled[1:]))
        if name in words.UNFOLLOWABLE:
            raise Unreadable(f"`{name}` cannot be followed", line=self.line)
        if name in words.BUILTINS and not words.is_plain_builtin(command):
            raise Unreadable(f"`{name}` in a form that may set variables or run commands", line=self.line)
        if name in ("sed", "gsed") and not words.has_known_scripts(command.words):
            raise Unreadable(f"a script of `{name}` that may name files or run commands", line=self.line)
        if name == "read":
            self._check_variables(replace(command, assignments=tuple((word.text, word) for word in command.words)))
        inner = unwrap(command)
        if inner is None or inner.keeps:
            self._add(command if inner is None or inner.own is None else replace(command, words=inner.own))
        if inner is not None:
            wrapped = replace(
                base,
                wrappers=(*base.wrappers, name),
                assignments=(*base.assignments, *inner.assignments),
                has_input=base.has_input or inner.feeds,
                is_repeated=base.is_repeated or inner.feeds,
            )
            self._check_variables(wrapped)
            here = self.directories
            if inner.is_elsewhere:
                self.directories = None
            if inner.text is not None:
                self._nested_text(inner.text, wrapped)
            for each in inner.commands:
                self._run(list(each), wrapped)
            if inner.is_elsewhere:
                self.directories = here
        elif name == "cd":
            self._change_directory(command)

    def _check_variables(self, command: Command) -> None:
        for name, _ in command.assignments:
            if words.is_special(name) and not (name == "IFS" and command.program == "read"):
                raise Unreadable(f"`{name}` changes what commands do", line=self.line)

    def _nested_text(self, text: str, wrapped: Command) -> None:
        reader = _Reader(text, nested=self.nested + 1)
        reader.directories = reader.reached = self.directories
        for each in reader.commands():
            self.found.append(
                replace(
                    each,
                    wrappers=(*wrapped.wrappers, *each.wrappers),
                    assignments=(*wrapped.assignments, *each.assignments),
                    files_written=(*wrapped.files_written, *each.files_written),
                    files_read=(*wrapped.files_read, *each.files_read),
                    has_input=wrapped.has_input or each.has_input,
                    is_repeated=wrapped.is_repeated or each.is_repeated,
                    line=self.line,
                )
            )

    def _change_directory(self, command: Command) -> None:
        targets = [word for word in command.words if not (word.is_exact and word.text in ("--", "-P", "-L"))]
        if (
            len(targets) != 1
            or not targets[0].is_exact
            or targets[0].text.startswith(("-", "~"))
            or not targets[0].text
        ):
            self.directories = None
        elif self.directories is not None:
            target = targets[0].text
            self.directories = frozenset(
                target if target.startswith("/") or not each else f"{each}/{target}" for each in self.directories
            )


class _Files:
    def __init__(self) -> None:
        self.read: list[Word] = []
        self.written: list[Word] = []
        self.has_input = False
        self.has_heredoc = False
        self.after: list[Any] = []
        """Statements between a here-document's label and its text."""


def _check_characters(text: str) -> None:
    if (bad := _CONTROL.search(text)) is not None:
        raise Unreadable(
            f"there is a control character, U+{ord(bad.group()):04X}", line=text.count("\n", 0, bad.start()) + 1
        )
    if any(each not in " \t\n" and (each.isspace() or not each.isprintable()) for each in text):
        raise Unreadable("there is a space or an invisible character that shells read differently")
    if _JOINED_LINES.search(text):
        raise Unreadable("a backslash at the end of a line joins two words")


def _either(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None or len(one | other) > 8:
        return None
    return one | other


def _walk(node: Any) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting += reversed(here.children)


def _line_of_fault(root: Any) -> int:
    return next((each.start_point[0] + 1 for each in _walk(root) if each.is_error or each.is_missing), 0)
