"""What people get wrong in their first hour: each mistake is one message, with its place and the mend."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.command import bylaw
from tests.docs.walkthrough import ROOT

GUARD = "guards/example_refund_order.py"
CASES = "cases/example-refund-order.yaml"


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The example shop of the audit guide, and the pack that `init` drafts from it."""
    folder = tmp_path_factory.mktemp("drafted")
    for name in ("logs.jsonl", "policy.md"):
        shutil.copy(ROOT / "examples" / "shop" / name, folder / name)
    assert bylaw(folder, "init", "logs.jsonl", "--document", "policy.md").returncode == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


@pytest.fixture
def folder(drafted: dict[str, str], tmp_path: Path) -> Path:
    for name, text in drafted.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


class Mistake(NamedTuple):
    """Something done wrong, the command that meets it, and what it says of it."""

    name: str
    make: Callable[[Path], object]
    command: str
    place: str
    mend: str
    status: int = 2


def change(file: str, old: str, new: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / "pack" / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return make


def write(file: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_text(text, encoding="utf-8")


def add(file: str, text: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        with (folder / "pack" / file).open("a", encoding="utf-8") as opened:
            opened.write(text)

    return make


def copy(source: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "pack" / target).write_bytes((folder / "pack" / source).read_bytes())


def cut(folder: Path) -> None:
    logs = folder / "logs.jsonl"
    logs.write_bytes(logs.read_bytes()[:3000])


RULE = "predicates:\n  refund: {tool: refund_order}\nrules:\n  - {id: undecided, formula: ALWAYS (refund IMPLIES}\n"
LISTED_AGAIN = "  - {id: undecided, kind: knowledge, spans: [Be friendly and keep answers short.]}\n"
AUDIT = "audit logs.jsonl --pack pack"
MISTAKES = [
    Mistake(
        "no tools.yaml",
        lambda folder: (folder / "pack/tools.yaml").unlink(),
        "check pack",
        "tools.yaml",
        "list the tools",
    ),
    Mistake(
        "a guard removed, and its entry left",
        lambda folder: [(folder / "pack" / name).unlink() for name in (GUARD, CASES)],
        "check pack",
        "policies.yaml:5",
        "or remove the policy",
    ),
    Mistake("an empty tools.yaml", write("pack/tools.yaml", ""), "check pack", "tools.yaml", "list the tools"),
    Mistake(
        "no entities.yaml",
        lambda folder: (folder / "pack/entities.yaml").unlink(),
        "check pack",
        "entities.yaml",
        "declare the entities",
    ),
    Mistake(
        "a tab in YAML",
        write("pack/tools.yaml", "tools:\n\trefund_order: {effect: write}\n"),
        "check pack",
        "tools.yaml:2",
        "indent with spaces",
    ),
    Mistake(
        "wrong indentation in YAML",
        change("entities.yaml", "    key: order_id", "   key: order_id"),
        "check pack",
        "entities.yaml:6",
        "in the same column",
    ),
    Mistake(
        "wrong indentation in a guard",
        change(GUARD, "    return permit()", "  return permit()"),
        "check pack",
        f"{GUARD}:10",
        "exactly four spaces",
    ),
    Mistake(
        "a tool misspelt in a guard",
        change(GUARD, "call: refund_order", "call: refund_ordr"),
        "check pack",
        f"{GUARD}:7",
        "did you mean `refund_order`?",
    ),
    Mistake(
        "a tool misspelt where it is listed",
        change("tools.yaml", "get_order", "get_ordr"),
        "check pack",
        "entities.yaml:6",
        "did you mean `get_ordr`?",
    ),
    Mistake(
        "an entity misspelt where it is declared",
        change("entities.yaml", "  Order:", "  Ordr:"),
        "check pack",
        "tools.yaml:10",
        "did you mean `Ordr`?",
    ),
    Mistake(
        "a field misspelt in a guard",
        change(GUARD, ".exists", ".exsts"),
        "check pack",
        f"{GUARD}:8",
        "did you mean `exists`?",
    ),
    Mistake(
        "an unknown key in tools.yaml",
        change("tools.yaml", "parameters:", "parametrs:"),
        "check pack",
        "tools.yaml:",
        "known: also_called",
    ),
    Mistake("a folder that is no pack", lambda folder: (folder / "new").mkdir(), "check new", "new", "`bylaw init"),
    Mistake("the folder above the pack", lambda folder: None, "check .", ".", "did you mean `pack`?"),
    Mistake("a pack that is nowhere", lambda folder: None, "check desk", "desk", "pass a folder with a pack.yaml"),
    Mistake(
        "the path of a file for a pack",
        lambda folder: None,
        "check pack/pack.yaml",
        "pack/pack.yaml",
        "pass its folder: pack",
    ),
    Mistake("an empty log", write("logs.jsonl", ""), AUDIT, "logs.jsonl", "empty"),
    Mistake("a log that is not there", lambda folder: None, "audit chats --pack pack", "chats", "pass files"),
    Mistake(
        "a log misspelt", lambda folder: None, "audit log.jsonl --pack pack", "log.jsonl", "did you mean `logs.jsonl`?"
    ),
    Mistake("a document for a log", lambda folder: None, "audit policy.md --pack pack", "policy.md", "docs/formats.md"),
    Mistake(
        "logs of another agent",
        lambda folder: None,
        "audit logs.jsonl --pack clinic",
        "pack `clinic`",
        "use the pack that belongs to the logs",
    ),
    Mistake("a log cut in the middle", cut, AUDIT, "logs.jsonl:4", "export the conversation again", status=3),
    Mistake(
        "a wrong path of the document",
        change("pack.yaml", "document: policy.md", "document: polcy.md"),
        "check pack",
        "pack.yaml:5",
        "did you mean `policy.md`?",
    ),
    Mistake("a wrong --document", lambda folder: None, "check pack --document polcy.md", "polcy.md", "no such file"),
    Mistake(
        "a rule that does not parse",
        write("pack/rules.yaml", RULE),
        "check pack",
        "rules.yaml:4",
        "write a predicate",
    ),
    Mistake(
        "a syntax error in a guard", change(GUARD, "facts):", "facts)"), "check pack", f"{GUARD}:7", "expected ':'"
    ),
    Mistake(
        "a misspelt answer in a guard",
        change(GUARD, "return permit()", "return permt()"),
        "check pack",
        f"{GUARD}:10",
        "did you mean `permit`?",
    ),
    Mistake(
        "two guards of one policy",
        copy(GUARD, "guards/copied.py"),
        "check pack",
        f"{GUARD}:7",
        "the first guard is at guards/copied.py:7",
    ),
    Mistake("an id given twice", add("policies.yaml", LISTED_AGAIN), "check pack", "policies.yaml:", "remove one"),
    Mistake(
        "a pack that is there already", lambda folder: None, "init logs.jsonl --document policy.md", "pack", "--out"
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_one_message_with_its_place_and_the_mend(mistake: Mistake, folder: Path) -> None:
    mistake.make(folder)
    ran = bylaw(folder, *mistake.command.split())
    assert ran.returncode == mistake.status, ran.stdout + ran.stderr
    (told,) = ran.stderr.splitlines()
    assert told.startswith("bylaw: BY")
    assert mistake.place in told
    assert mistake.mend in told
    assert not ran.stdout or mistake.status != 2


@pytest.mark.parametrize(
    ("command", "mend"),
    [
        ("audit logs.jsonl", "pack: your own folder (`bylaw init LOGS --document FILE` starts one)"),
        ("audit --pack clinic", "LOGS: files or folders of recorded conversations"),
        ("compile policy.md", "pass the document with --document policy.md"),
        ("shield pack", "use `bylaw proxy` for an MCP server"),
        ("cover pack", "`bylaw check PACK` shows which sentences are covered"),
        ("chek pack", "Did you mean 'check'?"),
    ],
)
def test_a_command_line_that_is_not_understood_is_told_how_to_go_on(command: str, mend: str, folder: Path) -> None:
    ran = bylaw(folder, *command.split())
    assert ran.returncode == 2
    assert ran.stderr.startswith("Usage: bylaw")
    assert mend in ran.stderr.splitlines()[-1]


def test_a_case_of_an_unknown_policy_is_one_entry_and_not_also_a_guard_without_cases(folder: Path) -> None:
    change(CASES, "policy: example-refund-order", "policy: refund-order")(folder)
    ran = bylaw(folder, "check", "pack")
    assert ran.returncode == 1
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[1] == f"next: correct {CASES}:1"
    assert ran.stdout.count("BY407") == 1
    assert "did you mean" in " ".join(ran.stdout.split())
    assert "a permitted or a denied case" not in ran.stdout


def test_faults_of_their_own_are_still_told_together(folder: Path) -> None:
    change(GUARD, ".exists", ".exsts")(folder)
    write("pack/rules.yaml", RULE)(folder)
    ran = bylaw(folder, "check", "pack")
    assert [line.split()[1] for line in ran.stderr.splitlines()[:2]] == ["BY301", "BY201"]
    assert ran.stderr.splitlines()[2] == "bylaw: pack `pack` contains 2 errors"


def test_a_tool_that_many_places_name_is_one_fault_with_all_of_them(folder: Path) -> None:
    change("tools.yaml", "get_order", "get_ordr")(folder)
    add("entities.yaml", "observations:\n  get_order: {as: Order}\n")(folder)
    ran = bylaw(folder, "check", "pack")
    (told,) = ran.stderr.splitlines()
    assert "also at entities.yaml:" in told
