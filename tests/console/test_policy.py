"""The policy in the console: what holds each sentence, signatures, comments; and an audit against an earlier one."""

import html
import json
import re
import shutil
from pathlib import Path

from bylaw.console.index import Wanted, open_index
from bylaw.pack.review import read_signatures, standings
from tests.console.conftest import Reader


def test_document_says_of_every_sentence_what_holds_it(reader: Reader) -> None:
    page = reader.get("/policy")
    rows = re.findall(r'<div class="sentence-row (\w+)"', page)
    from bylaw.pack import load_pack
    from bylaw.review.check import covered_sentences

    assert rows == [each.state for each in covered_sentences(load_pack("clinic"))]
    assert "findings" in page


def digest(page: str) -> str:
    found = re.search(r'name="digest" value="([0-9a-f]+)"', page)
    assert found is not None
    return found[1]


def test_accepting_signs_what_was_read(reader: Reader, pack: Path) -> None:
    page = reader.get("/policy/refund-cap")
    told = reader.send("/policy/refund-cap/sign", word="accepted", note="as agreed", digest=digest(page))
    assert "accepted by" in told
    signature = read_signatures(pack)["refund-cap"]
    assert (signature.word, signature.by, signature.note) == ("accepted", "Mara (unverified)", "as agreed")
    assert standings(pack)["refund-cap"] == "accepted"


def test_who_signs_reads_the_functions_that_the_check_calls(reader: Reader) -> None:
    for page in (reader.get("/policy/late-cancel-fee"), reader.get("/try/late-cancel-fee")):
        assert "def fee(call, facts, patient):" in page
        assert "patient.late_waivers_used &gt;= 2" in page
    assert "def fee" not in reader.get("/policy/refund-cap")


def test_what_changed_meanwhile_is_not_signed(reader: Reader, pack: Path) -> None:
    read = digest(reader.get("/policy/refund-cap"))
    guards = next(path for path in (pack / "guards").glob("*.py") if "def refund_cap" in path.read_text())
    guards.write_text(guards.read_text().replace("def refund_cap(", "def refund_cap(", 1).replace("50", "51", 1))
    told = reader.send("/policy/refund-cap/sign", status=422, word="accepted", digest=read)
    assert "changed after you loaded the page" in told
    assert not read_signatures(pack)


def test_a_rejection_needs_a_note(reader: Reader, pack: Path) -> None:
    read = digest(reader.get("/policy/refund-cap"))
    assert "enter what is wrong" in reader.send("/policy/refund-cap/sign", status=422, word="rejected", digest=read)
    reader.send("/policy/refund-cap/sign", word="rejected", note="it is 60", digest=read)
    assert read_signatures(pack)["refund-cap"].note == "it is 60"


def test_a_comment_decides_nothing_and_stays(reader: Reader, pack: Path) -> None:
    reader.send("/policy/refund-cap/comment", text="why 50?\nask: billing")
    reader.send("/policy/refund-cap/comment", text="since 2019")
    page = reader.get("/policy/refund-cap")
    assert page.index("why 50?") < page.index("since 2019")
    assert not read_signatures(pack)
    from bylaw.pack import load_pack

    load_pack(str(pack))


def test_cases_show_everything_that_decides_them(reader: Reader, pack: Path) -> None:
    (pack / "cases" / "more.yaml").write_text(
        "- note: after another refund\n  policy: refund-cap\n"
        '  call: {issue_refund: {patient_id: P1, invoice_id: I1, amount: "10.00"}}\n'
        "  done: [{issue_refund: {patient_id: P7}}]\n"
    )
    page = reader.get("/policy/refund-cap")
    assert "after another refund" in page
    assert "P7" in page


def test_rules_are_drawn(reader: Reader) -> None:
    page = reader.get("/policy/confirm-before-change")
    found = re.search(r'src="(/policy/confirm-before-change/automaton.svg[^"]*)"', page)
    assert found is not None
    answer = reader.client.get(found[1])
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.text.startswith("<svg")


def test_nobody_signs_an_installed_pack(out: Path) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    reader = Reader(view_app(View(out)))
    assert "installed package" in reader.send("/policy/refund-cap/sign", status=422, word="accepted", digest="x")
    assert "no such policy" in reader.get("/policy/none", status=404)


def test_an_earlier_audit_tells_new_from_known_and_gone(out: Path) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    before = out.parent / "before"
    shutil.copytree(out, before)
    lines = (out / "calls.jsonl").read_text().splitlines(keepends=True)
    flagged = [name for line in lines if (name := json.loads(line).get("finding"))]
    (out / "calls.jsonl").write_text("".join(line for line in lines if flagged[0] not in line))
    (before / "calls.jsonl").write_text("".join(line for line in lines if flagged[1] not in line))
    reader = Reader(view_app(View(out)))
    assert "before" in reader.get("/compare")
    page = reader.get("/compare?base=before")
    numbers = dict(re.findall(r"<dt>([^<]+)</dt><dd[^>]*>(?:<a[^>]*>)?([\d,]+)", page))
    assert numbers["New"] == "1"
    assert int(numbers["Fixed"]) + int(numbers["Not audited again"]) == 1
    assert flagged[1] in reader.get("/findings?base=before")


def test_two_audits_are_compared_by_policy_and_agent_with_sizes_and_intervals(out: Path) -> None:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    before = out.parent / "before"
    shutil.copytree(out, before)
    now = json.loads((out / "summary.json").read_text())
    name, row = max(now["by_policy"].items(), key=lambda each: each[1]["determined"]["violation"])
    agent = next(each for each in now["agents"] if each["determined"]["violation_rate"]["count"])
    count, of = row["determined"]["violation"], row["applied"]
    row["determined"]["violation"], row["applied"] = 0, 900
    (before / "summary.json").write_text(json.dumps(now))
    page = Reader(view_app(View(out))).get("/compare?base=before")
    rows = re.findall(r"<tr><th.*?</tr>", page, re.DOTALL)
    told = next(each for each in rows if f"{count} of {of}" in each and f"/policy/{name}" in each)
    assert "0 of 900" in told
    assert 'class="num bad"' in told
    found = agent["determined"]["violation_rate"]
    assert any(each.count(f"{found['count']} of {found['of']}") == 2 and agent["agent"] in each for each in rows)


def test_a_policys_page_says_what_it_says_itself_of_a_call_that_others_flagged_too(reader: Reader, out: Path) -> None:
    index = open_index(out)
    for row in index.findings(Wanted(verdict="violation", state="all"), limit=500):
        judged = [each for each in index.line(row)["policies"] if each["id"] != row.policy]
        found = [each for each in judged if each["determined"] == "violation" and each["because"] != row.because]
        listed = [index.findings(Wanted(policy=each["id"], state="all"), limit=5) for each in found]
        if any(row in rows for rows in listed):
            break
    else:
        raise AssertionError("no call was flagged by two policies")
    other = next(each for each, rows in zip(found, listed, strict=True) if row in rows)
    page = re.sub("<[^>]+>", "", reader.get(f"/policy/{other['id']}"))
    line = next(line for line in page.splitlines() if f"{row.conversation}, step {row.step}" in line)
    assert other["because"].replace("`", "") in html.unescape(line)


def test_a_policys_page_says_of_how_many_calls_it_flagged_how_many(reader: Reader, out: Path) -> None:
    judged = json.loads((out / "summary.json").read_text())["by_policy"]["slot-open"]
    page = re.sub("<[^>]+>", "", reader.get("/policy/slot-open"))
    many = "any" if judged["could_deny"] == judged["applied"] else judged["could_deny"]
    assert f"It applied to {judged['applied']} calls and could have denied {many} of them." in page
    flagged = {kind: count for kind, count in judged["determined"].items() if count and kind != "compliant"}
    words = {"violation": "violation", "near_miss": "near-miss"}
    assert flagged
    assert all(f"{count} {words[kind]}" in page for kind, count in flagged.items())


def test_what_needs_no_signature_does_not_ask_for_one_and_what_is_signed_looks_settled(
    reader: Reader, pack: Path
) -> None:
    page = reader.get("/policy/refund-cap")
    assert "needs no signature" in page
    assert 'class="review unreviewed"' in page
    reader.send("/policy/refund-cap/sign", word="accepted", digest=digest(page))
    settled = reader.get("/policy/refund-cap")
    assert 'class="review accepted"' in settled
    assert "needs no signature" not in settled
    assert '<span class="review accepted">1 accepted</span>' in reader.get("/policy")


def test_more_than_one_is_a_plural(reader: Reader) -> None:
    page = re.sub("<[^>]+>", "", reader.get("/policy/slot-open"))
    counts = re.findall(r"(\d+) (violations?|near-miss(?:es)?)\b", page)
    assert counts
    assert all((count == "1") == (word in ("violation", "near-miss")) for count, word in counts)


def test_unsigned_checks_are_signed_one_after_the_other(reader: Reader, pack: Path) -> None:
    (pack / "compiled.yaml").write_text("policies: {}\n")
    (pack / "review.yaml").unlink(missing_ok=True)
    names = [name for name, state in standings(pack).items() if state in ("unsigned", "unreviewed")]
    assert len(names) > 3
    queue = reader.get("/review")
    assert f'<a href="#checks">{len(names)}</a>' in queue
    assert len(re.findall(r'<a href="/policy/[^"]*queue=checks"><code>', queue)) == len(names)
    page, signed = reader.get("/review/next"), list[str]()
    while len(signed) < 3:
        name = next(name for name in names if f'action="/policy/{name}/sign"' in page)
        page = reader.send(f"/policy/{name}/sign", word="accepted", queue="checks", digest=digest(page))
        signed.append(name)
        assert f"{len(names) - len(signed)} checks to sign" in page
    assert signed == names[:3]
    assert set(read_signatures(pack)) == set(signed)


def test_the_queue_goes_from_checks_to_undecided_calls_to_findings(reader: Reader, out: Path) -> None:
    index, page = open_index(out), reader.get("/review")
    numbers = dict(re.findall(r"<dt>([^<]+)</dt><dd><a [^>]*>([\d,]+)</a>", page))
    assert numbers == {
        "Undecided calls": str(index.states(Wanted())["open"]),
        "New findings": str(index.states(Wanted())["new"]),
    }
    first = index.first(Wanted(state="open"))
    assert first is not None
    assert f'data-finding="{first.id}"' in reader.get("/review/next")
