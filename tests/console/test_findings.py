"""Findings by reason, and what somebody decides on them."""

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from bylaw.audit.attestation import read_attestations
from bylaw.audit.store import Store
from bylaw.audit.waiver import read_waivers
from bylaw.console.index import Wanted, open_index
from bylaw.console.index.query import FindingRow
from bylaw.console.pack_state import keep_call_case
from bylaw.errors import UsageError
from bylaw.pack import load_pack
from bylaw.review.case import CaseResult, run_cases
from tests.console.conftest import Reader


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_finding_of_the_files_has_a_reason_in_the_index(out: Path) -> None:
    index = open_index(out)
    every = index.reasons(Wanted(state="all"))
    listed = {
        row.id for reason in every for row in index.findings(Wanted(state="all", reason=reason.key), limit=10_000)
    }
    assert {finding.id for finding in Store(out).findings() if finding.executed is not False} <= listed
    assert sum(reason.findings for reason in every) == len(listed)


def test_all_of_one_rule_are_one_row(out: Path) -> None:
    rules = lines(out / "findings.jsonl")
    rows = [row for row in open_index(out).reasons(Wanted()) if row.verdict == "broken"]
    assert {row.policy: row.findings for row in rows} == {
        name: sum(line["policy"] == name for line in rules) for name in {line["policy"] for line in rules}
    }


def test_a_row_tells_why_and_not_which_predicates_hold(out: Path) -> None:
    rows = open_index(out).findings(Wanted(state="all"), limit=10_000)
    told = {row.because for row in rows if row.verdict == "broken" or row.id.endswith(":confirm-before-change")}
    assert any(each.startswith("the agent had not asked the user about this") for each in told)
    assert not [each for each in told if " hold" in each or "\n" in each]


def test_the_index_is_made_once_and_again_when_the_audit_changes(out: Path) -> None:
    (out / "console.db").unlink()
    open_index(out).close()
    made = (out / "console.db").stat().st_mtime_ns
    open_index(out).close()
    assert (out / "console.db").stat().st_mtime_ns == made
    calls = (out / "calls.jsonl").read_bytes()
    (out / "calls.jsonl").write_bytes(b"".join(calls.splitlines(keepends=True)[:50]))
    index = open_index(out)
    assert index.totals()[1] == 50


def test_a_folder_that_cannot_be_written_to_can_be_viewed(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (out / "console.db").unlink()
    import bylaw.console.index.build as build

    make = build._make  # pyright: ignore[reportPrivateUsage]

    def refuse(folder: Any, path: Path, stamp: str) -> None:
        if path.parent == out:
            raise PermissionError(path)
        make(folder, path, stamp)

    monkeypatch.setattr(build, "_make", refuse)
    index = open_index(out)
    assert index.totals()[2]
    assert not (out / "console.db").exists()


def test_search_finds_what_the_screen_shows(out: Path) -> None:
    index = open_index(out)
    call = next(line for line in lines(out / "calls.jsonl") if line.get("finding") and line["policies"])
    told = next(line for line in lines(out / "conversations.jsonl") if line["trajectory"] == call["trajectory"])
    patient = told["events"][call["step"]]["arguments"]["patient_id"]
    words = next(event["text"] for event in told["events"] if event["type"] == "message").split()[:3]
    for sought in (patient, call["finding"], call["trajectory"], call["tool"], " ".join(words), patient[:-1]):
        found = {row.id for row in index.findings(Wanted(state="all", q=sought), limit=10_000)}
        assert call["finding"] in found, sought
    assert index.findings(Wanted(state="all", q="zzzunheardof")) == []


@pytest.mark.parametrize("sought", ['"', "*", "NEAR(", "a AND", "'; DROP TABLE findings", "-", "(", "\x00", "%", "🦜"])
def test_any_text_can_be_searched_for(reader: Reader, sought: str) -> None:
    reader.get("/findings", params={"q": sought})
    reader.get("/findings", params={"policy": sought, "agent": sought, "reason": sought, "open": sought})


def test_filters_leave_what_they_name(out: Path) -> None:
    index = open_index(out)
    every = index.findings(Wanted(state="all"), limit=10_000)
    agent, tool = every[0].agent, every[0].tool
    wanted = {row.id for row in every if row.agent == agent and row.tool == tool}
    assert {row.id for row in index.findings(Wanted(state="all", agent=agent, tool=tool), limit=10_000)} == wanted
    policy = every[0].policy
    shown = index.findings(Wanted(state="all", policy=policy), limit=10_000)
    charged = {f.id for f in Store(out).findings() if any(charge.policy == policy for charge in f.charges)}
    assert {row.id for row in shown} >= charged


def test_the_counts_of_filters_are_those_of_the_tab(out: Path) -> None:
    index = open_index(out)
    for state in ("new", "open", "all"):
        for name, count in index.facet("policy", Wanted(state=state)):
            listed = index.findings(Wanted(state=state, policy=name), limit=10_000)
            assert len(listed) == count, (state, name)
        assert sum(count for _, count in index.facet("verdict", Wanted(state=state))) == len(
            index.findings(Wanted(state=state), limit=10_000)
        )
    assert ("nobody", 0) in index.facet("agent", Wanted(agent="nobody"))


def test_an_address_says_all_that_a_page_shows() -> None:
    wanted = Wanted(policy="a b", q="x&y", state="waived", reason="k")
    address = wanted.address()
    assert address == "/findings?policy=a+b&state=waived&q=x%26y&reason=k"
    assert Wanted.of([("policy", "a b"), ("state", "waived"), ("q", "x&y"), ("reason", "k")]) == wanted
    assert Wanted.of([("state", "no such")]) == Wanted()


def first(reader: Reader, **wanted: str) -> str:
    found = re.search(r'data-finding="([^"]+)"', reader.get("/findings", params=wanted))
    assert found is not None
    return found[1]


def test_waiving_writes_what_an_audit_reads(reader: Reader, out: Path) -> None:
    name = first(reader)
    told = reader.send(f"/finding/{name}/waive", reason="agreed: with the desk", expires="2999-01-01")
    path = out.parent / "waivers.yaml"
    assert str(path) in told
    finding = next(each for each in Store(out).findings() if each.id == name)
    (waiver,) = read_waivers(path).waive(finding)
    assert waiver.owner == "Mara (unverified)"
    assert waiver.reason == "agreed: with the desk"
    assert "Waived by" in reader.get(f"/finding/{name}")
    assert f'data-finding="{name}"' in reader.get("/findings?state=waived")


def test_what_somebody_waived_meanwhile_is_not_waived_again(reader: Reader, out: Path) -> None:
    name = first(reader)
    reader.send(f"/finding/{name}/false-alarm", reason="the clock was wrong")
    for word in ("waive", "false-alarm"):
        told = reader.send(f"/finding/{name}/{word}", status=422, reason="x", expires="2999-01-01")
        assert "Mara (unverified) already waived this finding" in told
    assert len(read_waivers(out.parent / "waivers.yaml").in_force) == 1
    reader.send(f"/finding/{name}/waive", reason="all of it", expires="2999-01-01", of="policy")
    assert len(read_waivers(out.parent / "waivers.yaml").in_force) == 2


def test_waiving_keeps_what_a_person_wrote_in_the_file(reader: Reader, out: Path) -> None:
    path = out.parent / "waivers.yaml"
    mine = "# ours\nwaivers:\n- policy: refund-cap  # until the talk\n  owner: Jo\n  reason: r\n  expires: 2999-01-01\n"
    path.write_text(mine)
    reader.send(f"/finding/{first(reader)}/waive", reason="x", expires="2999-01-01")
    assert path.read_text().startswith(mine)
    read_waivers(path)


def test_a_file_of_waivers_that_is_broken_is_left_as_it_is(reader: Reader, out: Path) -> None:
    path = out.parent / "waivers.yaml"
    path.write_text("waivers: {a: 1}\n")
    told = reader.send(f"/finding/{first(reader)}/waive", status=422, reason="x", expires="2999-01-01")
    assert "nothing was written" in told or "expected a list" in told
    assert path.read_text() == "waivers: {a: 1}\n"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"reason": "", "expires": "2999-01-01"}, "enter a reason"),
        ({"reason": "r", "expires": "soon"}, "is not a date"),
        ({"reason": "r", "expires": "2001-01-01"}, "is in the past"),
        ({"reason": "r", "expires": "2999-01-01", "by": "  "}, "needs a name"),
        ({"reason": "r" * 600, "expires": "2999-01-01"}, "more than 500"),
    ],
)
def test_a_waiver_that_lacks_something_is_not_written(
    reader: Reader, out: Path, fields: dict[str, str], why: str
) -> None:
    assert why in reader.send(f"/finding/{first(reader)}/waive", status=422, **fields)
    assert not (out.parent / "waivers.yaml").exists()


def test_what_is_written_cannot_break_out_of_its_entry(reader: Reader, out: Path) -> None:
    name = first(reader)
    reader.send(f"/finding/{name}/waive", reason="x\n- policy: '*'\n  owner: me # \u202e", expires="2999-01-01")
    finding = next(each for each in Store(out).findings() if each.id == name)
    waivers = read_waivers(out.parent / "waivers.yaml")
    assert [waiver.finding for waiver in waivers.waive(finding)] == [name]
    assert not waivers.unused


def test_a_whole_policy_can_be_waived(reader: Reader, out: Path) -> None:
    row = open_index(out).findings(Wanted())[0]
    reader.send(f"/finding/{row.id}/waive", reason="x", expires="2999-01-01", of="policy")
    assert f"policy: {row.policy}" in (out.parent / "waivers.yaml").read_text()


def test_a_waived_policy_says_how_much_of_it_is_waived_and_who_else_objects(reader: Reader, out: Path) -> None:
    every = [each for each in Store(out).findings() if each.executed is not False]
    shared = next(each for each in every if len({charge.policy for charge in each.charges}) > 1)
    policy = open_index(out).finding(shared.id).policy  # pyright: ignore[reportOptionalMemberAccess]
    own = [each for each in every if policy in {charge.policy for charge in each.charges}]
    alone = [each for each in own if {charge.policy for charge in each.charges} == {policy}]
    told = reader.send(f"/finding/{shared.id}/waive", reason="x", expires="2999-01-01", of="policy")
    assert f"{len(alone)} of {len(own)} findings of `{policy}` are waived. Other policies object" in told
    for other in {charge.policy for each in own for charge in each.charges} - {policy}:
        assert f"`{other}`" in told


def test_a_finding_that_is_not_there_is_not_replaced_by_another(reader: Reader) -> None:
    page = reader.get("/findings?state=all&open=nobody:1")
    assert "This finding is not in this audit" in page
    assert "/waive" not in page


def test_a_false_alarm_is_a_waiver_that_says_so(reader: Reader) -> None:
    name = first(reader)
    reader.send(f"/finding/{name}/false-alarm", reason="a test patient")
    page = reader.get("/findings?state=false-alarm")
    assert name in page
    assert "false alarm: a test patient" in reader.get(f"/finding/{name}")


def test_a_call_kept_as_a_case_is_run_with_the_pack(reader: Reader, pack: Path, out: Path) -> None:
    row = open_index(out).findings(Wanted(verdict="near_miss"))[0]
    told = reader.send(f"/finding/{row.id}/case", want="undetermined", note="kept: from an audit")
    assert "the case passes" in told
    results = [each for each in run_cases(load_pack(str(pack))) if isinstance(each, CaseResult)]
    (kept,) = [each for each in results if each.note == "kept: from an audit"]
    assert kept.passed
    assert kept.policy == row.policy


def test_a_case_that_wants_otherwise_is_kept_and_said_to_fail(reader: Reader, out: Path) -> None:
    row = open_index(out).findings(Wanted(verdict="near_miss"))[0]
    told = reader.send(f"/finding/{row.id}/case", want="permit", note="it should have been fine")
    assert "expects permit but gets undetermined" in told


def judged(out: Path, **wanted: str) -> tuple[str, dict[str, Any]]:
    """A violation whose own policy says so of it."""
    index = open_index(out)
    for row in index.findings(Wanted(verdict="violation"), limit=500):
        policy = next(each for each in index.line(row)["policies"] if each["id"] == row.policy)
        if all(policy[name] == value for name, value in wanted.items()):
            return row.id, policy
    raise AssertionError(f"no violation has {wanted}")


def test_what_is_wrong_by_facts_that_nobody_saw_is_no_case_that_denies(reader: Reader, out: Path, pack: Path) -> None:
    name, policy = judged(out, evidence="undetermined", world="deny")
    told = reader.send(f"/finding/{name}/case", 422, want="deny")
    assert "facts that were not looked up" in told
    assert policy["missing"][0]["field"] in told
    assert not (pack / "cases" / "from-audits.yaml").exists()
    assert "the case passes" in reader.send(f"/finding/{name}/case", want="undetermined")


def test_a_case_is_told_by_what_was_said_where_the_check_looks_at_that(pack: Path) -> None:
    events: list[dict[str, Any]] = [
        {"type": "call", "tool": "get_slot", "arguments": {"slot_id": "S1"}},
        {"type": "result", "call": 0, "text": '{"slot_id": "S1", "kind": "telehealth"}'},
        {"type": "message", "by": "user", "text": "I'll be out of state that day."},
        {"type": "call", "tool": "book_visit", "arguments": {"patient_id": "P1", "slot_id": "S1", "copay": "30.00"}},
    ]
    slot = {"entity": "Slot", "key": ["S1"], "field": "kind", "value": "telehealth"}
    policy: dict[str, Any] = {"id": "telehealth-location", "evidence": "deny", "world": None, "missing": []}
    policy |= {"because": "the patient will be out of state", "seen": [slot]}
    kept = keep_call_case(pack, policy, events, 3, "deny", "out of state")
    assert kept.told == "the case passes"
    assert "I'll be out of state that day." in kept.lines
    # What the case would not say is not written.
    events[2]["text"] = "Yes, I'll be in state."
    before = kept.path.read_text()
    with pytest.raises(
        UsageError, match="the audit said deny: the patient will be out of state; the case gives evidence"
    ):
        keep_call_case(pack, policy, events, 3, "deny", "in state")
    assert kept.path.read_text() == before


def test_the_same_call_is_not_kept_with_two_ends(reader: Reader, out: Path, pack: Path) -> None:
    name, policy = judged(out, evidence="deny")
    assert "Wrote to" in reader.send(f"/finding/{name}/case", want="deny", note="once")
    assert "already in" in reader.send(f"/finding/{name}/case", want="deny", note="once")
    assert "the pack already has this case and expects deny: once" in reader.send(
        f"/finding/{name}/case", 422, want="permit"
    )
    # Of two cases with one note, each ends as it does.
    kept = pack / "cases" / "from-audits.yaml"
    kept.write_text(kept.read_text() + kept.read_text().partition("\n")[2].replace("want: deny", "want: permit"))
    page = html.unescape(reader.get(f"/policy/{policy['id']}"))
    assert re.findall(r'<summary><span class="want (\w+)">.*?once</bdi>(.*)</summary>', page) == [
        ("deny", ""),
        ("permit", ' <b class="bad">gets <bdi>deny (' + policy["because"] + ")</bdi></b>"),
    ]


def test_a_broken_rule_kept_as_a_case_is_broken_again(reader: Reader, out: Path) -> None:
    row = open_index(out).findings(Wanted(verdict="broken"))[0]
    assert "the case passes" in reader.send(f"/finding/{row.id}/case", want="broken", note="asked nobody")


def test_what_is_open_is_attested_and_not_waived(reader: Reader, out: Path) -> None:
    rows = open_index(out).findings(Wanted(state="open"))
    assert rows
    name = rows[0].id
    assert "cannot be waived" in reader.send(f"/finding/{name}/waive", 422, reason="r", expires="2999-01-01")
    told = reader.send(f"/finding/{name}/attest", answer="fine", reason="I was on the call")
    assert "The next audit will count it" in told
    text = (out.parent / "attestations.yaml").read_text()
    assert "answer: fine" in text
    assert "Mara (unverified)" in text
    assert name in reader.get("/findings?state=attested")


def test_the_next_undecided_call_is_shown_after_one_was_settled(reader: Reader, out: Path) -> None:
    rows = open_index(out).findings(Wanted(state="open"))
    given = {"answer": "wrong", "reason": "nobody asked", "by": "Mara", "token": reader.token}
    given["queue"] = Wanted(state="open").address()
    told = reader.client.post(f"/finding/{rows[0].id}/attest", data=given, headers={"hx-request": "true"})
    assert told.headers["hx-retarget"] == "#detail"
    found = re.search(r'id="detail"[^>]* data-finding="([^"]+)"', told.text)
    assert found is not None
    assert found[1] != rows[0].id
    assert found[1] in {row.id for row in rows}
    assert f"{len(rows) - 1} left in this list" in told.text
    assert f"open={found[1]}" in unquote(told.headers["hx-push-url"])
    assert 'value="nobody asked"' in told.text, "the reason is offered again"


def sharing(out: Path) -> list[FindingRow]:
    """Undecided calls that one answer of the customer's is about."""
    index = open_index(out)
    return next(found for row in index.findings(Wanted(state="open")) if len(found := index.sharing(row)) > 1)


def test_a_consent_is_asked_about_with_the_question_the_answer_and_the_call(reader: Reader, out: Path) -> None:
    index = open_index(out)
    row = next(row for row in index.findings(Wanted(state="open")) if row.exchange)
    page = html.unescape(re.sub(r"</?(?:mark|bdi)>", "", reader.get(f"/finding/{row.id}")))
    assert "Did the customer agree to" in page
    assert "Was the rule followed?" not in page
    whole = index.whole(row.conversation)
    assert whole is not None
    asked, answered = (whole["events"][int(step)] for step in row.exchange.split("-"))
    for said in (asked, answered):
        assert said["text"].strip() in page
    for value in whole["events"][row.step]["arguments"].values():
        assert str(value) in page


def test_calls_after_one_answer_are_one_row_and_settled_together(reader: Reader, out: Path) -> None:
    rows = sharing(out)
    page = reader.get(f"/findings?state=open&reason={rows[0].reason}&open={rows[0].id}")
    assert "Did the customer agree to all of these?" in page
    assert page.count(f'name="pick-{rows[0].number}"') == 1, "one row in the list"
    assert f'name="with-{rows[0].number}-{rows[1].number}"' in page
    others = {f"pick-{row.number}": row.id for row in rows[1:]}
    given = {"answer": "fine", "reason": "one yes to both", "by": "Mara", "token": reader.token, **others}
    given["queue"] = Wanted(state="open").address()
    told = reader.client.post(f"/finding/{rows[0].id}/attest", data=given, headers={"hx-request": "true"}).text
    settled = read_attestations(out.parent / "attestations.yaml").values()
    assert {each.finding for each in settled} == {row.id for row in rows}
    following = re.search(r'id="detail"[^>]* data-finding="([^"]+)"', told)
    assert following is not None
    assert following[1] not in {row.id for row in rows}
    assert "that the customer agreed: " in re.sub("</?bdi>", "", reader.get(f"/finding/{rows[0].id}"))


def test_a_call_left_out_of_an_answer_stays_undecided(reader: Reader, out: Path) -> None:
    first, second, *_ = sharing(out)
    reader.send(f"/finding/{first.id}/attest", answer="fine", reason="a yes to the first only")
    assert second.id in {row.id for row in open_index(out).findings(Wanted(state="open"))}
    assert "Did the customer agree to this?" in reader.get(f"/finding/{second.id}")


def test_skipping_leads_to_another_answer(reader: Reader, out: Path) -> None:
    rows = sharing(out)
    found = re.search(r'data-key="s" href="[^"]*open=([^"]+)"', reader.get(f"/finding/{rows[0].id}"))
    assert found is not None
    assert unquote(found[1]) not in {row.id for row in rows}


def sent(reader: Reader, path: str, **fields: str) -> Any:
    """The answer to a form that the page sends by its script."""
    given = {"token": reader.token, "by": "Mara", **fields}
    return reader.client.post(path, data=given, headers={"hx-request": "true"})


def shown(page: str) -> str:
    found = re.search(r'id="detail"[^>]* data-finding="([^"]+)"', page)
    assert found is not None
    return html.unescape(found[1])


def test_every_finding_of_a_list_is_reviewed_in_one_pass(reader: Reader, out: Path) -> None:
    index = open_index(out)
    row = index.findings(Wanted(verdict="violation"), limit=1)[0]
    wanted = Wanted(policy=row.policy, agent=row.agent)
    every = {each.id for each in index.findings(wanted, limit=10_000)}
    assert 1 < len(every) < 50
    page, passed = reader.get(wanted.address()), list[str]()
    assert shown(page) == index.first(wanted).id  # pyright: ignore[reportOptionalMemberAccess]
    for number in range(len(every)):
        passed.append(shown(page))
        if number % 2:
            link = re.search(r'data-key="s" href="([^"]+)"', page)
            page = reader.get(html.unescape(link[1])) if link else page
        else:
            way = {"reason": "read it", "expires": "2999-01-01", "queue": wanted.address()}
            page = sent(reader, f"/finding/{passed[-1]}/waive", **way).text
    assert len(set(passed)) == len(passed)
    assert set(passed) == every


def test_the_page_of_one_finding_stays_with_it(reader: Reader) -> None:
    name = first(reader)
    told = sent(reader, f"/finding/{name}/waive", reason="agreed", expires="2999-01-01")
    assert "hx-retarget" not in told.headers
    assert "Waived by" in told.text


def test_several_findings_are_waived_with_one_reason(reader: Reader, out: Path) -> None:
    index = open_index(out)
    reason = max(index.reasons(Wanted()), key=lambda each: each.findings)
    wanted = Wanted(reason=reason.key)
    rows = index.findings(wanted, limit=2)
    path = wanted.address("/findings/waive")
    given = {"reason": "agreed with the desk", "expires": "2999-01-01"}
    assert "select at least one" in reader.send(path, 422, **given)
    picked = {f"pick-{row.number}": row.id for row in rows}
    assert "enter a reason" in reader.send(path, 422, **given | picked | {"reason": ""})
    assert "2 findings waived" in reader.send(path, **given | picked)
    assert "already waived" in reader.send(path, 422, **given | picked)
    assert "the list has changed" in reader.send(path, 422, **given | {"every": str(reason.findings)})
    rest = str(reason.findings - 2)
    reader.send(path, **given | {"every": rest, "kind": "false-alarm"})
    waivers = read_waivers(out.parent / "waivers.yaml")
    own = [each for each in Store(out).findings() if index.finding(each.id).reason == reason.key]  # pyright: ignore
    assert all(waivers.waive(each) for each in own if each.executed is not False)
    assert len(waivers.in_force) == reason.findings
    assert sum(each.reason.startswith("false alarm: ") for each in waivers.in_force) == reason.findings - 2
    undecided = index.findings(Wanted(state="open"), limit=1)[0]
    wrong = {f"pick-{undecided.number}": undecided.id}
    assert "already waived or cannot be waived" in reader.send(path, 422, **given | wrong)


def test_several_undecided_calls_are_settled_with_one_reason(reader: Reader, out: Path) -> None:
    rows = open_index(out).findings(Wanted(state="open"))[:3]
    picked = {f"pick-{row.number}": row.id for row in rows}
    assert "enter a reason" in reader.send("/findings/attest?state=open", 422, answer="fine", **picked)
    assert "select at least one" in reader.send("/findings/attest?state=open", 422, answer="fine", reason="r")
    gone: dict[str, Any] = {"answer": "fine", "reason": "r", "pick-1": "nobody:1"}
    assert "not in this audit" in reader.send("/findings/attest?state=open", 422, **gone)
    assert not (out.parent / "attestations.yaml").exists()
    told = reader.send("/findings/attest?state=open", answer="fine", reason="read them", **picked)
    assert f"{len(rows)} calls settled" in told
    given = read_attestations(out.parent / "attestations.yaml").values()
    assert {each.finding for each in given} == {row.id for row in rows}
    flagged = open_index(out).findings(Wanted(), limit=1)[0]
    send = {"answer": "fine", "reason": "r", "pick-1": flagged.id}
    assert "only undecided calls" in reader.send("/findings/attest?state=open", 422, **send)


def test_an_answer_on_a_conversation_that_has_changed_settles_nothing(reader: Reader, out: Path) -> None:
    row = open_index(out).findings(Wanted(state="open"))[0]
    reader.send(f"/finding/{row.id}/attest", answer="fine", reason="r")
    file = out.parent / "attestations.yaml"
    assert row.id in reader.get("/findings?state=attested")
    file.write_text(re.sub(r"seen: .*", "seen: abc", file.read_text()))
    assert row.id not in reader.get("/findings?state=attested")


def test_an_installed_pack_gets_no_cases(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    monkeypatch.chdir(out.parent)
    reader = Reader(view_app(View(out)))
    name = first(reader)
    assert "installed package" in reader.send(f"/finding/{name}/case", status=422, want="deny")


def test_many_who_triage_at_once_lose_nothing(reader: Reader, out: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    names = [row.id for row in open_index(out).findings(Wanted(), limit=24)]
    readers = [Reader(reader.app) for _ in range(4)]
    tokens = [each.token for each in readers]

    def waive(number: int) -> int:
        who = number % len(readers)
        form = {"token": tokens[who], "by": f"P{who}", "reason": "r", "expires": "2999-01-01"}
        return readers[who].client.post(f"/finding/{names[number]}/waive", data=form).status_code

    with ThreadPoolExecutor(4) as many:
        assert set(many.map(waive, range(len(names)))) == {200}
    text = (out.parent / "waivers.yaml").read_text()
    assert all(f"finding: {name}" in text or f'finding: "{name}"' in text for name in names)
    waivers = read_waivers(out.parent / "waivers.yaml")
    assert sum(bool(waivers.waive(finding)) for finding in Store(out).findings()) == len(names)


def test_a_waiver_is_taken_back_and_leaves_the_file_as_it_was(reader: Reader, out: Path) -> None:
    path = out.parent / "waivers.yaml"
    first, second = open_index(out).findings(Wanted(), limit=2)
    path.write_text("# ours\nwaivers: []\n")
    for row in (first, second):
        reader.send(f"/finding/{row.id}/waive", reason="agreed", expires="2999-01-01", of="finding")
    both = path.read_text()
    told = reader.send(f"/finding/{second.id}/unwaive")
    assert "removed; the finding counts again" in told
    assert both.startswith(path.read_text())
    assert path.read_text().startswith("# ours\nwaivers:\n")
    reader.send(f"/finding/{first.id}/unwaive")
    assert read_waivers(path).in_force == ()
    reader.send(f"/finding/{first.id}/unwaive", status=422)
    reader.send(f"/finding/{first.id}/waive", reason="agreed", expires="2999-01-01", of="finding")
    (waiver,) = read_waivers(path).in_force
    assert waiver.finding == first.id


def test_a_waiver_of_a_whole_policy_is_not_taken_back_for_one_finding(reader: Reader, out: Path) -> None:
    row = open_index(out).findings(Wanted(), limit=1)[0]
    reader.send(f"/finding/{row.id}/waive", reason="agreed", expires="2999-01-01", of="policy")
    if read_waivers(out.parent / "waivers.yaml").in_force[0].policy:
        reader.send(f"/finding/{row.id}/unwaive", status=422)


def test_a_button_pressed_twice_writes_once(reader: Reader, out: Path) -> None:
    row = open_index(out).findings(Wanted(), limit=1)[0]
    for _ in range(2):
        reader.send(f"/finding/{row.id}/waive", reason="agreed", expires="2999-01-01")
    assert (out.parent / "waivers.yaml").read_text().count(row.id) == 1


@pytest.mark.parametrize("name", ["waivers.yaml", "attestations.yaml"])
def test_a_file_that_cannot_be_read_is_told_on_the_page(reader: Reader, out: Path, name: str) -> None:
    (out.parent / name).write_text("waivers: [")
    for path in ("/", "/findings", "/findings?state=open"):
        assert "cannot be read" in reader.get(path)


def test_a_pack_that_was_moved_away_is_told(reader: Reader, out: Path, pack: Path) -> None:
    pack.rename(pack.with_name("moved"))
    for path in ("/policy", "/policy/refund-cap", "/try/refund-cap"):
        assert "cannot be read" in reader.get(path, 422)
    row = open_index(out).findings(Wanted(), limit=1)[0]
    assert "no longer exists" in reader.send(f"/finding/{row.id}/case", 422, want="deny")
    assert not pack.exists()
