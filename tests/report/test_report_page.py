"""The report as a file: self-contained, inert, bounded, forgiving."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.report import write_report
from bylaw.audit.report.finding import WordList, call_details, row
from bylaw.audit.row import lacked
from bylaw.errors import UsageError
from tests.docs.walkthrough import run
from tests.report import audit_folders
from tests.suite import Demo


class Elements(HTMLParser):
    """The elements of a page, with what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[int, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            at = len(self.found) - 1
            self.text[at] = self.text.get(at, "") + data

    def blocks(self, name: str) -> list[str]:
        """The data blocks whose id starts with `name`."""
        return [
            self.text[at]
            for at, (tag, attrs) in enumerate(self.found)
            if tag == "script" and (attrs.get("id") or "").startswith(name)
        ]


def page(path: Path) -> Elements:
    return Elements(path.read_text("utf-8"))


def data(path: Path) -> dict[str, Any]:
    return json.loads(page(path).blocks("data")[0])


def unpacked(path: Path, name: str) -> list[dict[str, Any]]:
    return [item for block in page(path).blocks(name) for item in json.loads(zlib.decompress(base64.b64decode(block)))]


def test_page_names_nothing_to_load(clinic: Path, hostile: Path) -> None:
    for path in (clinic, hostile):
        for tag, attributes in page(path).found:
            assert tag not in {"iframe", "object", "embed", "base", "img", "audio", "video", "source"}
            assert not any(name.startswith("on") or name == "style" for name in attributes)
            for name in ("src", "href", "action", "data"):
                assert (attributes.get(name) or "#").startswith(("#", "data:image/svg"))
        style = next(text for at, text in page(path).text.items() if page(path).found[at][0] == "style")
        assert "url(" not in style
        assert "@import" not in style


def test_security_policy_lets_through_one_script_and_one_style_by_hash(clinic: Path) -> None:
    elements = page(clinic)
    policy = next(
        attrs["content"] or "" for tag, attrs in elements.found if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    for at, (tag, attributes) in enumerate(elements.found):
        if tag == "style" or (tag == "script" and "type" not in attributes):
            digest = base64.b64encode(hashlib.sha256(elements.text[at].encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in policy


def test_script_never_makes_markup_from_text() -> None:
    import bylaw.audit.report

    for script in (Path(bylaw.audit.report.__file__).parent / "scripts").glob("*.js"):
        source = script.read_text("utf-8")
        for sink in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "fetch(",
            "XMLHttpRequest",
            "DOMParser",
        ):
            assert sink not in source, (script.name, sink)


def test_hostile_texts_stay_inside_their_data_block(hostile: Path) -> None:
    text = hostile.read_text("utf-8")
    assert "</script><script>window" not in text
    assert "onerror=window" not in re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)
    assert text.isascii() or not set("\u202e\u2066\u2028\u2029\x00\x1b") & set(text)
    for block in page(hostile).blocks("data"):
        assert block.isascii()
        assert not set("<>&") & set(block)


def test_hostile_texts_come_back_as_they_were(hostile: Path) -> None:
    conversation = next(c for c in unpacked(hostile, "conversations-") if c["trajectory"] == "__proto__")
    said, length = conversation["events"][0]["text"]
    assert said.startswith(audit_folders.ATTACK + audit_folders.BIDI + audit_folders.LONE)
    assert length > 1_200_000
    assert len(said) == 20_000


def test_megabyte_messages_do_not_make_a_megabyte_page(hostile: Path) -> None:
    assert hostile.stat().st_size < 400_000


def test_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    one = write_report(audit_folders.clinic(tmp_path / "clinic"), tmp_path / "one.html")
    other = write_report(tmp_path / "clinic", tmp_path / "other.html")
    assert one.read_bytes() == other.read_bytes()


def test_five_thousand_findings_fit_in_a_small_page(large: Path) -> None:
    assert large.stat().st_size < 4_000_000
    held = data(large)
    assert len(held["findings"]) == held["flagged"] == 5000
    assert len({row[0] for row in held["findings"]}) == 5000
    assert len(unpacked(large, "conversations-")) == 5000


def test_conversations_that_do_not_fit_are_left_out_and_counted(tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=1000, always_bad=True)
    report = write_report(out, room=30_000)
    held = data(report)
    assert 0 < len(held["held"]) < held["conversations"] == 1000
    assert sum(len(block) for block in page(report).blocks("conversations-")) <= 30_000
    assert len(unpacked(report, "findings-")) == 1000


def test_page_opens_on_a_claimed_near_miss_that_the_outcome_check_passed(clinic: Path) -> None:
    opening = data(clinic)["opening"]
    assert opening["finding"]["verdict"] == "near_miss"
    facts = [fact for policy in opening["finding"]["policies"] for fact in policy["missing"]]
    assert [fact["reason"] for fact in facts] == ["claimed"]
    assert opening["conversation"]["outcome"]["good"]
    assert "Gold member" in opening["conversation"]["events"][facts[0]["claimed_at"]]["text"]


def test_every_flagged_call_is_listed_with_the_most_severe_first(clinic: Path) -> None:
    lines = [json.loads(line) for line in (clinic.parent / "calls.jsonl").read_text().splitlines()]
    flagged = {line["finding"]: line for line in lines if line["determined"] != "compliant"}
    rows = [row for row in data(clinic)["findings"] if not row[0].startswith("r")]
    assert {row[0] for row in rows} == set(flagged)
    verdicts = [flagged[row[0]]["determined"] for row in rows]
    settled = [
        row
        for row, verdict in zip(rows, verdicts, strict=True)
        if verdict in ("violation", "near_miss") and row[5] != 0
    ]
    assert verdicts.index("uninformed") >= len(settled)
    words = data(clinic)["words"]
    severities = [("high", "medium", "low").index(words[row[7]]) for row in settled]
    assert severities == sorted(severities)
    assert len(set(severities)) > 1


def test_an_audit_by_the_papers_criterion_lists_what_that_one_flags(tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic")
    lines = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
    named: dict[str, set[str]] = {}
    for criterion in ("determined", "strict"):
        summary = json.loads((out / "summary.json").read_text()) | {"criterion": criterion}
        (out / "summary.json").write_text(json.dumps(summary))
        held = data(write_report(out))
        named[criterion] = {row[0] for row in held["findings"] if not row[0].startswith("r")}
        assert named[criterion] == {line["finding"] for line in lines if line[criterion] != "compliant"}
        assert held["overview"]["criterion"] == criterion
    assert named["determined"] < named["strict"]


def test_details_hold_every_fact_a_finding_names(clinic: Path) -> None:
    lines = [json.loads(line) for line in (clinic.parent / "calls.jsonl").read_text().splitlines()]
    kept = {finding["finding"]: finding for finding in unpacked(clinic, "findings-")}
    for line in lines:
        if line["determined"] == "compliant":
            continue
        for policy, shown in zip(line["policies"], kept[line["finding"]]["policies"], strict=True):
            if "missing" in shown:
                assert [(f["entity"], f["field"], f["reason"]) for f in shown["missing"]] == [
                    (f["entity"], f["field"], f["reason"]) for f in lacked(policy["missing"], "determined")
                ]


def test_conversations_and_policies_that_were_not_kept_leave_gaps(tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=30, always_bad=True)
    for name in ("policies.json", "conversations.jsonl", "findings.jsonl"):
        (out / name).unlink()
    held = data(write_report(out))
    assert len(held["findings"]) == 30
    assert held["opening"]["conversation"] is None


@pytest.mark.parametrize("line", ["not json", "[1]", "[" * 100_000])
def test_a_damaged_folder_is_told_with_the_file_and_what_to_do(tmp_path: Path, line: str) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=5)
    with (out / "calls.jsonl").open("a") as lines:
        lines.write(line + "\n")
    with pytest.raises(UsageError, match=r"calls\.jsonl") as told:
        write_report(out)
    assert told.value.hint == "audit the logs again"


def test_deeply_nested_arguments_are_not_a_fault(tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=5, always_bad=True)
    for name in ("calls.jsonl", "conversations.jsonl"):
        lines = (out / name).read_text().splitlines()
        lines[0] = lines[0][:-1] + f', "extra": {"[" * 900 + "]" * 900}}}'
        (out / name).write_text("\n".join(lines) + "\n")
    held = json.loads((out / "conversations.jsonl").read_text().splitlines()[1])
    call = next(event for event in held["events"] if event["type"] == "call")
    call["arguments"]["deep"] = json.loads("[" * 900 + "]" * 900)
    with (out / "conversations.jsonl").open("a") as lines:
        lines.write(json.dumps(held | {"trajectory": "deep"}) + "\n")
    assert len(data(write_report(out))["findings"]) == 5


def test_folder_without_an_audit_is_the_users_to_fix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"this folder has no summary\.json"):
        write_report(tmp_path)


def test_audit_without_findings_says_what_that_does_not_mean(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"pack": {"name": "clinic"}, "agents": []}')
    (tmp_path / "calls.jsonl").write_text("")
    assert data(write_report(tmp_path))["opening"] is None


def test_listing_is_bounded_and_says_how_many_there_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bylaw.audit.report import finding
    from bylaw.audit.store import Store

    out = audit_folders.clinic(tmp_path / "clinic", conversations=300, always_bad=True)
    found = finding.index(Store(out), {}, "determined", listed=50)
    assert (len(found.places), found.total, found.calls) == (50, 300, 300)


def test_real_audit_is_told_whole(audited: Path) -> None:
    lines = [json.loads(line) for line in (audited.parent / "calls.jsonl").read_text().splitlines()]
    flagged = {line["finding"] for line in lines if line["determined"] in ("violation", "near_miss", "uninformed")}
    held = data(audited)
    assert flagged
    assert flagged <= {row[0] for row in held["findings"]}
    assert held["opening"]["finding"]["verdict"] == "near_miss"
    assert "claimed" in {
        fact["reason"] for p in held["opening"]["finding"]["policies"] for fact in p.get("missing", ())
    }
    assert held["opening"]["conversation"]["outcome"]["good"]
    summary = json.loads((audited.parent / "summary.json").read_text())
    for agent, shown in zip(summary["agents"], held["overview"]["agents"], strict=True):
        for name in ("violation_rate", "near_miss_rate", "near_miss_rate_of_writing"):
            assert shown[name]["count"] == agent["determined"][name]["count"]
    assert {row["name"] for row in held["overview"]["by_policy"]} == set(summary["by_policy"])


def test_a_violation_is_listed_by_what_was_wrong_not_by_what_else_was_not_looked_up() -> None:
    lacks = (audit_folders.missing("Account", "7", "status", "get_account", "never_seen"),)
    policies = [
        audit_folders.judged("active", "near_miss", lacks=lacks, because="not seen"),
        audit_folders.judged("seats", "violation", because="20 users"),
    ]
    call = {"trajectory": "t", "agent": "a", "step": 1, "tool": "add", "executed": True, "policies": policies}
    call |= {"strict": "violation", "determined": "violation"}
    words = WordList()
    assert words.list[row(call_details(call, "determined"), words)[10]] == "20 users"


def test_every_broken_rule_is_listed_with_its_conversation_and_told_in_words(clinic: Path) -> None:
    broken = [json.loads(line) for line in (clinic.parent / "findings.jsonl").read_text().splitlines()]
    calls = [json.loads(line) for line in (clinic.parent / "calls.jsonl").read_text().splitlines()]
    flagged = {line["finding"] for line in calls if line["determined"] != "compliant"}
    held = data(clinic)
    listed = {row[0] for row in held["findings"]}
    assert listed == flagged | {line["finding"] for line in broken}
    assert held["flagged"] == len(listed)
    told = {finding["finding"]: finding for finding in unpacked(clinic, "findings-")}
    kept = {conversation["trajectory"] for conversation in unpacked(clinic, "conversations-")}
    for line in broken:
        finding = told[line["finding"]]
        assert finding["tool"] == "confirm-before-change"
        assert finding["because"] == "the act changes something; not true: the caller has just said yes"
        assert finding["policies"][0]["severity"] == "medium"
        assert line["trajectory"] in kept


OPENINGS = [
    # what was found, and what the page opens on
    ([("uninformed", True)] * 4 + [("violation", True)] * 2, ("violation", True)),
    ([("uninformed", True), ("violation", True), ("near_miss", True)], ("near_miss", True)),
    ([("uninformed", True), ("violation", True), ("near_miss", False)], ("violation", True)),
    ([("uninformed", True)], ("violation", False)),
]


@pytest.mark.parametrize(("verdicts", "wanted"), OPENINGS)
def test_the_page_opens_on_a_near_miss_else_on_a_violation(
    tmp_path: Path, verdicts: list[tuple[str, bool]], wanted: tuple[str, bool]
) -> None:
    opening = data(write_report(audit_folders.dentist(tmp_path / "dentist", verdicts=verdicts)))["opening"]
    assert (opening["finding"]["verdict"], opening["finding"]["executed"]) == wanted


def test_the_page_opens_on_an_uninformed_call_rather_than_on_a_broken_rule_and_on_that_rather_than_on_nothing_judged(
    tmp_path: Path,
) -> None:
    out = audit_folders.dentist(tmp_path / "dentist", verdicts=[("inconclusive", True), ("uninformed", True)])
    calls = (out / "calls.jsonl").read_text().splitlines(keepends=True)
    (out / "calls.jsonl").write_text("".join(calls[:2]))
    assert data(write_report(out))["opening"]["finding"]["verdict"] == "uninformed"
    (out / "calls.jsonl").write_text(calls[0])
    assert data(write_report(out))["opening"]["finding"]["verdict"] == "broken"


def test_a_near_miss_that_cannot_be_drawn_does_not_open_the_page_where_a_violation_could(tmp_path: Path) -> None:
    out = audit_folders.dentist(tmp_path / "dentist", verdicts=[("near_miss", True), ("violation", True)])
    kept = (out / "conversations.jsonl").read_text().splitlines(keepends=True)
    (out / "conversations.jsonl").write_text("".join(kept[1:]))
    assert data(write_report(out))["opening"]["finding"]["verdict"] == "violation"
    (out / "conversations.jsonl").unlink()
    assert data(write_report(out))["opening"]["finding"]["verdict"] == "violation"
    calls = (out / "calls.jsonl").read_text().splitlines(keepends=True)
    (out / "calls.jsonl").write_text(calls[0])
    assert data(write_report(out))["opening"]["finding"]["verdict"] == "near_miss"


def test_what_the_host_supplies_is_not_asked_of_the_user(tmp_path: Path) -> None:
    report = write_report(audit_folders.dentist(tmp_path / "dentist", verdicts=[("inconclusive", True)]))
    finding = next(finding for finding in unpacked(report, "findings-") if finding["verdict"] == "inconclusive")
    policy = finding["policies"][0]
    assert policy["asks"] == []
    assert not policy["depends_on_user"]
    assert policy["because"] == "depends on a fact that only the host knows; possible reason: too old"
    assert "the log has no readable time" in policy["host"][0]


def test_an_audit_that_found_only_broken_rules_opens_on_one(tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic", conversations=5)
    (out / "calls.jsonl").write_text("")
    opening = data(write_report(out))["opening"]
    assert opening["finding"]["verdict"] == "broken"
    assert opening["conversation"]["events"]


def test_the_page_opens_on_the_finding_that_was_asked_for(tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "clinic")
    wanted = [row[0] for row in data(write_report(out))["findings"]][-1]
    assert data(write_report(out, opening=wanted))["opening"]["finding"]["finding"] == wanted
    with pytest.raises(UsageError, match="no finding `nothing`"):
        write_report(out, opening="nothing")


def test_the_demo_and_its_report_tell_the_same_story(demo: Demo) -> None:
    shown = " ".join(demo.shown.split())
    opening = data(demo.folder / "bylaw-demo" / "report.html")["opening"]
    (missing,) = (fact for policy in opening["finding"]["policies"] for fact in policy.get("missing", ()))
    assert opening["finding"]["trajectory"] == "honest"
    assert f"never looked up {missing['entity']}[{missing['key'][0]}].{missing['field']}" in shown
    assert "I'm Gold" in opening["conversation"]["events"][missing["claimed_at"]]["text"]
    place = re.search(r"(bylaw-demo/policy\.md):(\d+), (.*?) \.\.\.", shown)
    assert place is not None
    cited = (demo.folder / place[1]).read_text().splitlines()[int(place[2]) - 1]
    assert "Gold members are let off" in cited
    liar = run("bylaw explain bylaw-demo liar 7", demo.folder).stdout
    assert "the fee is $40.00, not $0.00" in liar


def test_waived_and_known_findings_are_marked_as_such(tmp_path: Path) -> None:
    out = audit_folders.clinic(tmp_path / "out", conversations=40)
    known, waived, *_ = [found[0] for found in data(write_report(out))["findings"]]
    assert data(out / "report.html")["compared"] is False
    waiver = {"owner": "Jo", "reason": "agreed", "expires": "2999-01-01", "place": "waivers.yaml:2"}
    record = {"still": [{"finding": known}], "waived": [{"finding": waived, "waivers": [waiver]}]}
    (out / "comparison.json").write_text(json.dumps(record))
    told = data(write_report(out))
    assert told["compared"] is True
    assert told["standings"] == [[known, "still", ""], [waived, "waived", "Jo, until 2999-01-01: agreed"]]


def test_search_knows_the_ids_and_quotes_of_the_drawing(clinic: Path) -> None:
    (first, *_) = unpacked(clinic, "findings-0")
    facts = [fact for policy in first["policies"] for fact in (*policy.get("seen", ()), *policy.get("missing", ()))]
    keys = {key for fact in facts for key in fact["key"] or ()}
    sought = next(found[-2] for found in data(clinic)["findings"] if found[0] == first["finding"])
    assert keys
    assert all(key in sought for key in keys)
    (told,) = [each for each in unpacked(clinic, "conversations-0") if each["trajectory"] == first["trajectory"]]
    given = [value for _, value in told["events"][first["step"]]["arguments"]]
    assert given
    assert all(value in sought for value in given)
