"""A pack with one policy changed: its guard and its words replaced. Thoughts under a changed policy come from it."""

import ast

from msgspec.structs import replace

from bylaw.errors import UsageError
from bylaw.pack import Pack, build_pack
from bylaw.policy.folder import read_folder
from bylaw.policy.python import parse_python, text_of

PERMITS = "    return permit()\n"


def changed_pack(pack: Pack, policy: str, words: str, guard: str | None) -> Pack:
    """The pack with `words` in the place of a policy. `guard` is the text of its guard; None: everything is permitted.

    Sentences that the old policy cites are not cited any more.
    """
    if policy not in pack.guards:
        raise UsageError(f"no guard holds to policy `{policy}`", hint="only a policy with a guard can be changed")
    folder = read_folder(pack.root, cases=False)
    file, name = pack.guards[policy].file, policy.replace("-", "_")
    folder.guards[file] = _with_function(folder.guards[file], name, guard)
    built = build_pack(folder)
    new = replace(built.policies[policy], definition=words, citations=())
    bound = {
        tool: tuple((new if each.id == policy else each, held) for each, held in guards)
        for tool, guards in built.by_tool.items()
    }
    return replace(built, policies={**built.policies, policy: new}, by_tool=bound)


def function_in(text: str, name: str) -> str | None:
    """The text of one function of a file; None where there is none of that name."""
    functions = [each for each in parse_python(text).body if isinstance(each, ast.FunctionDef)]
    found = next((each for each in functions if each.name == name), None)
    return text_of(text, found) if found is not None else None


def _with_function(text: str, name: str, new: str | None) -> str:
    """A file with another function of that name, and without the helpers that only the old one called."""
    old = function_in(text, name)
    assert old is not None, name
    text = text.replace(old, new if new is not None else old.split("\n")[0] + "\n" + PERMITS)
    for helper in sorted(_called(old) - _called(text)):
        if (own := function_in(text, helper)) is not None:
            text = text.replace(own, "")
    return text


def _called(text: str) -> set[str]:
    calls = (each.func for each in ast.walk(parse_python(text)) if isinstance(each, ast.Call))
    return {each.id for each in calls if isinstance(each, ast.Name)}
