"""Private values stay out of every output, and with --redact so does everything people said."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.audit.private import Scrub
from bylaw.audit.redaction import Pseudonyms, redaction_key
from bylaw.errors import UsageError

from .desk import PROSE, SECRETS, bylaw, everything, looked_up, spellings, talk, write_desk

OUTPUTS = ("--sarif", "shared/s.sarif", "--junit", "shared/j.xml", "--report", "--out", "shared/out")


def leaks(folder: Path, said: str, secrets: tuple[str, ...] = SECRETS) -> list[str]:
    files = everything(folder) | {"terminal": said.encode()}
    # A terminal breaks lines where it likes.
    files["terminal unwrapped"] = re.sub(rb"\s+", b"", files["terminal"])
    return [
        f"{name}: {spelled!r}"
        for name, data in files.items()
        for secret in secrets
        for spelled in spellings(secret)
        if spelled in data
    ]


def explained(folder: Path) -> str:
    lines = [json.loads(line) for line in (folder / "shared/out/calls.jsonl").read_text().splitlines()]
    return "".join(bylaw(folder, "explain", "shared/out", line["trajectory"], str(line["step"])) for line in lines)


WORLDS = (("--world", "world.json"), ("--without-world", "none"), ())
REDACTED = (("--redact",), ("--redact", "--redact-key", "correct horse"))


# One world is enough for workers, who must share the key.
@pytest.mark.parametrize(
    ("world", "redact", "jobs"),
    [
        *((world, redact, "1") for world in WORLDS for redact in ((), *REDACTED)),
        *((WORLDS[0], redact, "2") for redact in REDACTED),
    ],
)
@pytest.mark.usefixtures("quick_workers")
def test_no_output_holds_a_private_value(
    tmp_path: Path, world: tuple[str, ...], redact: tuple[str, ...], jobs: str
) -> None:
    write_desk(tmp_path)
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--jobs", jobs, *world, *redact, *OUTPUTS)
    said += explained(tmp_path)
    assert leaks(tmp_path / "shared", said) == []
    kept = everything(tmp_path / "shared")
    assert "[Customer.email]" in "".join(data.decode("utf-8", "replace") for data in kept.values())
    assert any(PROSE.encode() in data for data in kept.values()) == (not redact)


def test_the_secrets_are_found_where_nothing_is_private(tmp_path: Path) -> None:
    """The test above would see a leak: the same logs under a pack without marks leak everywhere."""
    write_desk(tmp_path)
    entities = tmp_path / "pack/entities.yaml"
    entities.write_text(entities.read_text().replace("private: true", "private: false"))
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json", *OUTPUTS)
    found = leaks(tmp_path / "shared", said)
    for name in ("calls.jsonl", "conversations.jsonl", "s.sarif", "j.xml", "report.html block", "summary.json"):
        assert any(name in leak for leak in found), name


def test_short_private_values_go_where_their_field_stands(tmp_path: Path) -> None:
    write_desk(tmp_path)
    bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--out", "shared/out")
    conversations = (tmp_path / "shared/out/conversations.jsonl").read_text()
    assert '\\"sick\\": true' not in conversations
    assert '\\"partner\\": false' in conversations


def test_redacted_output_says_no_word_and_no_id_of_the_log(tmp_path: Path) -> None:
    steps = (
        (
            "get_customer",
            {"customer_id": "CUSTOMER-77"},
            looked_up() | {"customer_id": "CUSTOMER-77", "mood": "grumpy"},
        ),
        ("close_account", {"customer_id": "CUSTOMER-78"}, "Closed for GRUMPYFACE"),
    )
    record = talk("CHAT-ALPHA", "Please close CUSTOMER-78, says WORDSMITH", *steps)
    broken = tmp_path / "logs.jsonl"
    write_desk(tmp_path, [record])
    broken.write_text(broken.read_text() + '{"id": "BROKENSECRET", "messages": "BROKENSECRET"}\n')
    said = bylaw(
        tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--redact", "--redact-key", "a long key", *OUTPUTS, status=3
    )
    words = ("CUSTOMER-77", "CUSTOMER-78", "CHAT-ALPHA", "WORDSMITH", "GRUMPYFACE", "grumpy", "mood", "BROKENSECRET")
    assert leaks(tmp_path / "shared", said, (*words, "logs.jsonl:")) == []
    conversation = json.loads((tmp_path / "shared/out/conversations.jsonl").read_text())
    shown = json.loads(conversation["events"][2]["text"])
    assert shown["customer_id"] == conversation["events"][1]["arguments"]["customer_id"]
    assert shown["partner"] is False


def test_redacted_output_names_no_agent_and_no_tool_that_the_pack_does_not_know(tmp_path: Path) -> None:
    steps = (
        ("UNHEARD_OF", {"customer_id": "C1"}, "ok"),
        ("get_customer", {"customer_id": "C2"}, looked_up() | {"partner": True}),
        ("close_account", {"customer_id": "C2"}, "Closed"),
    )
    write_desk(tmp_path, [talk("one", "Please close it", *steps) | {"agent": "ACMEBOT"}])
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--redact", *OUTPUTS)
    said += explained(tmp_path)
    assert leaks(tmp_path / "shared", said, ("ACMEBOT", "UNHEARD_OF")) == []
    summary = json.loads((tmp_path / "shared/out/summary.json").read_text())
    (agent,), (tool,) = summary["agents"], summary["unknown_tools"]
    lines = [json.loads(line) for line in (tmp_path / "shared/out/calls.jsonl").read_text().splitlines()]
    assert {line["agent"] for line in lines} == {agent["agent"]}
    assert [line["tool"] for line in lines] == [tool, "close_account"]
    assert tool in summary["by_tool"]


@pytest.mark.parametrize(
    ("name", "ending"), [("of-mallory.jsonl", ".jsonl"), ("of.mallory", ""), ("mallory.of.Mallory.gz", ".gz")]
)
def test_redacted_output_names_no_log(name: str, ending: str, tmp_path: Path) -> None:
    write_desk(tmp_path, [talk("one", "Please close it", ("close_account", {"customer_id": "C2"}, "Closed"))])
    log = tmp_path / name
    (tmp_path / "logs.jsonl").rename(log)
    if name.endswith(".gz"):
        log.write_bytes(gzip.compress(log.read_bytes()))
    said = bylaw(tmp_path, "audit", name, "--pack", "pack", "--redact", *OUTPUTS)
    assert leaks(tmp_path / "shared", said, ("mallory", "Mallory")) == []
    (file,) = json.loads((tmp_path / "shared/out/summary.json").read_text())["files"]
    assert re.fullmatch(rf"p-[0-9a-f]+{re.escape(ending)}", file)


def test_the_same_key_gives_the_same_findings_and_another_key_others(tmp_path: Path) -> None:
    write_desk(tmp_path)

    def findings(out: str, *arguments: str) -> set[str]:
        bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--out", out, "--redact", *arguments)
        return set(re.findall(r'"finding":"(\w+)"', (tmp_path / out / "calls.jsonl").read_text()))

    one, again = findings("one", "--redact-key", "first key"), findings("again", "--redact-key", "first key")
    other, some = findings("other", "--redact-key", "second key"), findings("some")
    assert one == again
    assert len(one | other | some) == 3 * len(one) > 0
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--redact", "--baseline", "one", status=2)
    assert "same --redact-key" in said


def test_a_redaction_key_is_not_too_short() -> None:
    with pytest.raises(UsageError, match="too short"):
        redaction_key("short")
    assert redaction_key(None) != redaction_key(None)
    assert Pseudonyms(redaction_key("long enough")).of(5) == Pseudonyms(redaction_key("long enough")).of("5")


@given(st.text(min_size=3, max_size=12).map(str.strip).filter(lambda text: len(text) > 2), st.text(max_size=20))
def test_a_private_value_is_found_in_json_however_deep(secret: str, around: str) -> None:
    scrub = Scrub([(("Thing.field", secret, "field", False), None)])
    text = json.dumps({"a": f"{around} {secret} {around}", "field": secret})
    for _ in range(3):
        hidden = scrub.text(text)
        assert json.dumps(secret) not in hidden
        assert f'"{secret}"' not in hidden
        try:
            data = json.loads(hidden)
            while isinstance(data, str):
                data = json.loads(data)
        except json.JSONDecodeError:
            # A value that starts or ends with a backslash may take an escape beside it along: hidden, but not JSON.
            assert "\\" in json.dumps(secret)
        else:
            assert data["field"] in ("[Thing.field]", "[private]")
        text = json.dumps(text)


_VALUES = st.lists(
    st.one_of(
        st.sampled_from(
            ["555-1234", "555-12345", "5551234", "a@b.org", "A@B.ORG", "abc", "abcdef", "12 Main St", "x/y", "q&a"]
        ),
        st.text(alphabet="abAB1.-@_", min_size=1, max_size=8),
        st.integers(0, 2000),
        st.booleans(),
    ),
    max_size=4,
)
_AROUND = st.lists(
    st.one_of(
        st.sampled_from([" ", '"', ", ", "%40", "&amp;", "\\n", "\n", "é", "phone", '"phone": ', "x"]),
        st.text(alphabet="abAB1.-@_ ", max_size=4),
    ),
    max_size=5,
)


@given(_VALUES, st.lists(_AROUND, min_size=1, max_size=4), st.data())
def test_a_value_beside_an_escape_is_found_like_any_other(
    values: list[object], around: list[list[str]], data: st.DataObject
) -> None:
    named = zip(values, ["phone", "a", "x", "b"], strict=False)
    scrub = Scrub([((f"Thing.{name}", value, name, False), None) for value, name in named])
    for parts in around:
        mixed = data.draw(st.permutations([*parts, *(str(value) for value in values)]))
        text = "".join(mixed)
        # Beside an escape the values are found by a pattern, elsewhere letter by letter.
        assert scrub.text(f"%; {text}") == f"%; {scrub.text(text)}"


@pytest.mark.parametrize("redact", [(), ("--redact", "--redact-key", "correct horse")])
def test_a_private_value_in_an_agents_name_stays_private(tmp_path: Path, redact: tuple[str, ...]) -> None:
    look = ("get_customer", {"customer_id": "C1"}, looked_up())
    talks = [
        talk("one", "Close C1.", look, ("close_account", {"customer_id": "C1"}, "ok"), agent=f"bot of {SECRETS[0]}"),
        talk("two", "Who am I?", look, agent=f"bot of {SECRETS[0]}"),
    ]
    write_desk(tmp_path, talks)
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--world", "world.json", *redact, *OUTPUTS)
    said += explained(tmp_path)
    assert leaks(tmp_path / "shared", said) == []
    summary = json.loads((tmp_path / "shared/out/summary.json").read_text())
    (agent,) = summary["agents"]
    assert agent["trajectories"] == 2
    if not redact:
        assert agent["agent"] == "bot of [Customer.email]"


PERSONS = {
    "pack.yaml": "{format: 1, name: shop, document: policy.md}",
    "policy.md": "Refund members only.",
    "policies.yaml": "policies: [{id: members, kind: rule, spans: [Refund members only.]}]",
    "tools.yaml": "tools:\n  get_person: {effect: read, parameters: {ssn: string}}\n"
    "  refund: {effect: write, parameters: {ssn: string}}\n",
    "entities.yaml": "entities: {Person: {key: ssn, read: get_person, fields: {ssn: PRIVATE, member: boolean}}}\n"
    "observations: {get_person: [{as: Person}]}\n",
    "rules.yaml": "predicates: {stranger: {code: "
    '\'act.tool == "refund" and not facts.Person(act.arguments["ssn"]).member\'}}\n'
    "rules: [{id: members, formula: ALWAYS NOT stranger}]\n",
}


@pytest.mark.parametrize(("field", "redact"), [("{type: string, private: true}", ()), ("string", REDACTED[1])])
def test_the_keys_of_facts_that_a_rule_lacks_are_hidden(tmp_path: Path, field: str, redact: tuple[str, ...]) -> None:
    (tmp_path / "pack").mkdir()
    for name, text in PERSONS.items():
        (tmp_path / "pack" / name).write_text(text.replace("PRIVATE", field))
    function = {"name": "refund", "arguments": '{"ssn": "078-05-1120"}'}
    asked = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    answered = {"role": "tool", "tool_call_id": "1", "content": "done"}
    (tmp_path / "logs.jsonl").write_text(json.dumps({"id": "a", "messages": [asked, answered]}))
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", *redact, *OUTPUTS)
    (line,) = (tmp_path / "shared/out/calls.jsonl").read_text().splitlines()
    assert json.loads(line)["open_rules"][0]["predicates"][0]["why"]["facts"]
    assert leaks(tmp_path / "shared", said, ("078-05-1120",)) == []


def test_a_private_value_in_the_name_of_an_unknown_tool_stays_private(tmp_path: Path) -> None:
    email = "ines.lang@example.org"
    steps = (
        ("get_customer", {"customer_id": "C2"}, looked_up() | {"email": email}),
        (f"mail_{email}", {"customer_id": "C2"}, "ok"),
        ("close_account", {"customer_id": "C2"}, "Closed"),
    )
    write_desk(tmp_path, [talk("one", "Close it", *steps)])
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", *OUTPUTS)
    assert leaks(tmp_path / "shared", said, (email,)) == []
    summary = json.loads((tmp_path / "shared/out/summary.json").read_text())
    assert [*summary["unknown_tools"]] == ["mail_[Customer.email]"]
    assert "mail_[Customer.email]" in summary["by_tool"]
