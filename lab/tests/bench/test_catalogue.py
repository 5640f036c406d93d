"""A pack drafted from a tool catalogue: the result of rules and of an answer, and faulty answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bylaw.engine.request.allowance import kinds_of
from bylaw.errors import BylawError
from bylaw.llm import Answer, Request
from bylaw.pack import Pack
from bylaw.trace import Trajectory
from bylaw.trace.event import Call, Result
from bylaw_lab.bench.catalogue import suite_pack


def tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {each: {"type": kind} for each, kind in parameters.items()}}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("get_letters", "Shows the letters."),
    tool("frobnicate", "Frobnicates a plot.", plot="string", wish="string"),
    tool("show_page", "Shows a page.", url="string"),
]
SAID = {
    "tools": [
        {"name": "get_letters", "effect": "read", "strangers": "some", "fields": ["body"]},
        {
            "name": "frobnicate",
            "effect": "write",
            "arguments": [{"name": "plot", "kind": "name"}, {"name": "wish", "kind": "text"}],
        },
        {"name": "show_page", "effect": "read", "strangers": "all"},
    ]
}
LETTERS = Trajectory(
    "one", (Call("get_letters", {}), Result(0, "- {id: 5, body: Hello}\n- {id: 6, body: Bye}", tool="get_letters"))
)


class Says:
    """A model with one answer."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self.asked: list[Request] = []

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        return [Answer(json.dumps(self._said)) for _ in requests]


def draft(folder: Path, tools: Any = None, said: dict[str, Any] | None = None) -> Pack:
    path = folder / "tools.json"
    path.write_text(json.dumps(TOOLS if tools is None else tools))
    return suite_pack(path, folder / "pack", [LETTERS], Says(said) if said is not None else None)


def test_without_a_model_unknown_verbs_write_and_strangers_may_have_written_all_results(tmp_path: Path):
    pack = draft(tmp_path)
    assert {name: each.effect for name, each in pack.schema.tools.items()} == {
        "get_letters": "read",
        "frobnicate": "write",
        "show_page": "read",
    }
    assert not pack.schema.tools["get_letters"].trusts("id")
    assert set(pack.policies["as-asked"].tools) == {"frobnicate", "show_page"}


def test_an_answer_settles_effects_kinds_and_trust(tmp_path: Path):
    pack = draft(tmp_path, said=SAID)
    letters = pack.schema.tools["get_letters"]
    assert (letters.trusts("id"), letters.trusts("body")) == (True, False)
    assert not pack.schema.tools["show_page"].trusts("")
    assert kinds_of(pack.schema.tools["frobnicate"]) == {"plot": "name", "wish": "text"}


def test_writes_that_an_answer_calls_steps_prepare_others(tmp_path: Path):
    pack = draft(tmp_path, said={**SAID, "steps": ["frobnicate", "show_page", "unknown"]})
    assert [name for name, each in pack.schema.tools.items() if each.prepares] == ["frobnicate"]


def test_only_writes_are_asked_about_as_steps(tmp_path: Path):
    says = Says(SAID)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    suite_pack(tmp_path / "tools.json", tmp_path / "pack", [LETTERS], says)
    assert says.asked[1].messages[1].content == "The tools:\n\n- frobnicate(plot?, wish?): Frobnicates a plot."


def test_the_question_names_the_fields_that_results_have(tmp_path: Path):
    says = Says(SAID)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    suite_pack(tmp_path / "tools.json", tmp_path / "pack", [LETTERS], says)
    assert "its results have: body, id" in says.asked[0].messages[1].content


def test_a_pack_that_is_there_is_used_as_it_is(tmp_path: Path):
    draft(tmp_path)
    tools = tmp_path / "pack" / "tools.yaml"
    tools.write_text(tools.read_text().replace("effect: write", "effect: read"))
    assert draft(tmp_path).schema.tools["frobnicate"].effect == "read"


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "notes.txt").write_text("mine")
    with pytest.raises(BylawError, match="other files"):
        draft(tmp_path)


@pytest.mark.parametrize(
    "tools",
    [
        "none",
        [{"description": "has no name"}],
        [{"name": "pay", "parameters": "to whom"}],
        [{"name": "pay", "parameters": {"type": "object", "properties": {"to": "text"}}}],
        [tool("pay", "Pays."), tool("pay", "Pays again.")],
    ],
)
def test_a_malformed_catalogue_is_one_error_with_its_place(tools: Any, tmp_path: Path):
    with pytest.raises(BylawError) as raised:
        draft(tmp_path, tools)
    assert "tools.json" in str(raised.value)
    assert not (tmp_path / "pack").exists()
