"""Trying a change to a check: its cases, past calls, and what saving writes."""

import re
from pathlib import Path

import pytest

from bylaw.audit.store import Store
from bylaw.console.pages import view_app
from bylaw.console.trying import audit_bench, drafts_of, patch, policies_of, tried_pack
from bylaw.console.view import View
from bylaw.pack import load_pack
from bylaw.review.case import run_cases
from tests.console.conftest import Reader

NOTICE = "reschedule-notice"


@pytest.fixture
def view(out: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> View:
    monkeypatch.chdir(out.parent)
    return View(out, pack=str(pack))


def guard_text(view: View, policy: str = NOTICE) -> str:
    return drafts_of(view.pack_now(), policy)[0].text


def test_the_saved_check_changes_no_past_call(view: View) -> None:
    now = view.pack_now()
    for policy in (NOTICE, "confirm-before-change", "refund-cap"):
        found = audit_bench(view).backtests.run(now.pack, now.pack, [policy])
        assert found.judged
        assert found.changes == []


def test_the_saved_check_says_of_past_calls_what_the_audit_said(view: View) -> None:
    """A check tried by itself finds what it found among all others."""
    now = view.pack_now()
    edited = tried_pack(now, drafts_of(now, NOTICE)[0], f"{HEAD}    return permit()")
    found = audit_bench(view).backtests.run(now.pack, edited, [NOTICE])
    flagged = {
        (finding.trajectory, finding.step)
        for finding in Store(view.out).findings()
        for charge in finding.charges
        if charge.policy == NOTICE
    }
    assert flagged
    assert {(each.conversation, each.step) for each in found.changes} == flagged
    assert {each.after for each in found.changes} == {"compliant"}
    assert all(each.because and each.is_past for each in found.changes), "what the saved check had against it"


def test_a_broken_rule_that_is_turned_round_changes_what_the_audit_said(view: View) -> None:
    now = view.pack_now()
    draft = drafts_of(now, "confirm-before-change")[0]
    edited = tried_pack(now, draft, "ALWAYS NOT (handed_over AND several_changes)")
    found = audit_bench(view).backtests.run(now.pack, edited, [draft.policy])
    broken = {
        (finding.trajectory, finding.step)
        for finding in Store(view.out).findings()
        if finding.kind == "rule" and finding.charges[0].policy == draft.policy
    }
    assert broken
    assert {(each.conversation, each.step) for each in found.changes if each.before == "broken"} == broken


def test_editing_shows_failing_cases_and_changed_calls(reader: Reader, view: View) -> None:
    first = reader.get(f"/try/{NOTICE}")
    assert "as saved" in first
    strict = guard_text(view).replace("hours(24)", "hours(600)")
    tried = reader.send(f"/try/{NOTICE}", text=strict)
    assert "gets <bdi>undetermined" in tried
    assert "compliant → violation" in tried
    assert "+    if notice &gt;= hours(600):" in tried


def test_a_call_that_the_edited_check_permits_says_what_it_was_flagged_for(reader: Reader, view: View) -> None:
    tried = reader.send(f"/try/{NOTICE}", text=f"{HEAD}    return permit()")
    assert '<span class="note">no longer:</span> ' in tried
    strict = guard_text(view).replace("hours(24)", "hours(600)")
    assert "no longer:" not in reader.send(f"/try/{NOTICE}", text=strict)


def test_saving_writes_the_guard_and_nothing_else(reader: Reader, view: View, pack: Path) -> None:
    before = {path: path.read_text() for path in pack.rglob("*.*") if path.suffix in (".py", ".yaml", ".md")}
    draft = drafts_of(view.pack_now(), NOTICE)[0]
    strict = draft.text.replace("hours(24)", "hours(25)")
    said = reader.send(f"/try/{NOTICE}/save", text=strict, digest=draft.digest, despite="2")
    assert "saved by Mara (unverified)" in said
    changed = {path for path, text in before.items() if path.read_text() != text}
    assert changed == {pack / draft.file}
    assert (pack / draft.file).read_text() == before[pack / draft.file].replace(draft.text, strict)
    assert load_pack(str(pack))
    again = reader.send(f"/try/{NOTICE}/save", 422, text=draft.text, digest=draft.digest)
    assert "changed after you loaded the page" in again


def test_saving_a_rule_keeps_comments_and_the_other_rules(reader: Reader, view: View, pack: Path) -> None:
    path = pack / "rules.yaml"
    before = path.read_text()
    draft = drafts_of(view.pack_now(), "one-change-at-a-time")[0]
    text = "ALWAYS (change IMPLIES NOT several_changes)"
    reader.send("/try/one-change-at-a-time/save", text=text, digest=draft.digest)
    assert path.read_text() == before.replace("ALWAYS NOT (change AND several_changes)", text)


@pytest.mark.parametrize("style", ["'{}'", '"{}"', ">-\n      {}", "|\n      {}"])
def test_a_formula_is_replaced_however_it_is_written(view: View, pack: Path, style: str) -> None:
    path = pack / "rules.yaml"
    formula = "ALWAYS NOT (change AND several_changes)"
    path.write_text(path.read_text().replace(formula, style.format(formula)))
    draft = drafts_of(view.pack_now(), "one-change-at-a-time")[0]
    lines = patch(pack, draft, "ALWAYS NOT several_changes").splitlines()
    assert "+    formula: ALWAYS NOT several_changes" in lines
    assert not [line for line in lines if line[0] in "+-" and ("weight" in line or "- id" in line)]


HEAD = "def reschedule_notice(call: reschedule_appointment, facts):\n"
HOSTILE = {
    "an import": f"import os\n\n\n{HEAD}    return permit()",
    "a dunder": f"{HEAD}    return permit() if call.__class__ else deny('')",
    "open": f"{HEAD}    open('x')\n    return permit()",
    "no such fact": f"{HEAD}    return permit() if facts.X(1).y else deny('')",
    "half": f"{HEAD}    if",
    "nothing": "",
    "another name": "def other(call: reschedule_appointment, facts):\n    return permit()",
    "nested": f"{HEAD}    return {'(' * 5000}{')' * 5000}",
    "a while": f"{HEAD}    while True:\n        pass\n    return permit()",
    "a megabyte": f"{HEAD}    return deny('{'x' * 100_000}')",
}


def test_what_a_guard_may_not_do_is_told_and_not_saved(reader: Reader, view: View, pack: Path) -> None:
    draft = drafts_of(view.pack_now(), NOTICE)[0]
    before = (pack / draft.file).read_text()
    for what, text in HOSTILE.items():
        assert "told wrong" in reader.send(f"/try/{NOTICE}", text=text), what
        reader.send(f"/try/{NOTICE}/save", 422, text=text, digest=draft.digest)
        assert (pack / draft.file).read_text() == before, what


def test_a_reason_tells_nothing_that_the_pack_calls_private(reader: Reader, view: View) -> None:
    text = f'{HEAD}    return deny(f"the caller is {{facts.Patient(call.patient_id).email}}")'
    tried = reader.send(f"/try/{NOTICE}", text=text)
    assert "the caller is" in tried
    assert "@" not in tried.partition('id="past"')[2]


def test_a_check_that_takes_too_long_is_tried_on_the_first_conversations(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bylaw.console.trying.SECONDS", 0.0)
    now = view.pack_now()
    found = audit_bench(view).backtests.run(now.pack, now.pack, [NOTICE])
    assert found.tried < found.of
    assert found.changes == []


def test_an_installed_pack_offers_the_patch_and_writes_nothing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out.parent)
    reader = Reader(view_app(View(out)))
    view = View(out)
    draft = drafts_of(view.pack_now(), NOTICE)[0]
    text = draft.text.replace("hours(24)", "hours(25)")
    tried = reader.send(f"/try/{NOTICE}", text=text)
    assert "As a patch" in tried
    assert "Save to the pack" not in tried
    reader.send(f"/try/{NOTICE}/save", 422, text=text, digest=draft.digest)


def test_without_logs_the_cases_still_run(out: Path, reader: Reader, view: View) -> None:
    (out / "audited.json").unlink()
    tried = reader.send(f"/try/{NOTICE}", text=guard_text(view).replace("hours(24)", "hours(600)"))
    assert "gets <bdi>undetermined" in tried
    assert "does not record where its logs are" in tried


def test_a_policy_that_nothing_checks_has_nothing_to_try(reader: Reader, view: View) -> None:
    reader.get("/try/nobody", 404)
    now = view.pack_now()
    bare = [name for name in now.pack.policies if not drafts_of(now, name)]
    assert bare
    reader.get(f"/try/{bare[0]}", 404)


def test_a_check_with_failing_cases_is_saved_only_if_somebody_confirms_it(
    reader: Reader, view: View, pack: Path
) -> None:
    strict = guard_text(view).replace("hours(24)", "hours(600)")
    found = re.search(r'name="digest" value="(\w+)"', reader.get(f"/try/{NOTICE}"))
    assert found is not None
    form = {"text": strict, "digest": found[1]}
    assert "nothing was written" in reader.send(f"/try/{NOTICE}/save", status=422, **form)
    failing = re.search(r'name="despite" value="(\d+)"', reader.send(f"/try/{NOTICE}", 200, **form))
    assert failing is not None
    assert "its findings are stale" not in reader.get("/")
    assert "Wrote to" in reader.send(f"/try/{NOTICE}/save", 200, **form, despite=failing[1])
    for address in ("/", "/findings", "/conversations", "/policy"):
        page = reader.get(address)
        assert "its findings are stale" in page
        assert f"--pack {pack}" in page


def test_a_case_that_is_added_leaves_the_audit_fresh(reader: Reader, pack: Path) -> None:
    cases = next((pack / "cases").glob("*.yaml"))
    cases.write_text(cases.read_text() + "# a comment\n")
    assert "its findings are stale" not in reader.get("/")


def test_a_function_that_checks_share_is_edited_and_tried_under_each_of_them(reader: Reader, view: View) -> None:
    page = reader.get("/try/late-cancel-fee")
    assert "/try/late-cancel-fee?rule=fee" in page
    draft = next(each for each in drafts_of(view.pack_now(), "late-cancel-fee") if each.name == "fee")
    dearer = draft.text.replace("40.00", "45.00")
    tried = reader.send("/try/late-cancel-fee", text=dearer, rule="fee")
    assert "+        return money(&#34;45.00&#34;)" in tried
    assert 'class="fails"' in tried
    shared = next(
        (policy, each)
        for policy in view.pack_now().pack.guards
        for each in drafts_of(view.pack_now(), policy)
        if each.kind == "function" and len(policies_of(view.pack_now(), each)) > 1
    )
    policy, function = shared
    other = policies_of(view.pack_now(), function)[1]
    page = reader.get(f"/try/{policy}?rule={function.name}")
    assert f'Also called by <a href="/policy/{other}">' in page
    results = run_cases(view.pack_now().pack, of={policy, other})
    assert len(re.findall(r'<li class="passes">', page)) == len(list(results))


def test_saving_a_function_writes_it_and_no_other(reader: Reader, view: View, pack: Path) -> None:
    draft = next(each for each in drafts_of(view.pack_now(), "late-cancel-fee") if each.name == "fee")
    before = (pack / draft.file).read_text()
    text = draft.text.replace("40.00", "45.00")
    tried = reader.send("/try/late-cancel-fee", text=text, rule="fee")
    failing = re.search(r'name="despite" value="(\d+)"', tried)
    assert failing is not None
    given = {"text": text, "rule": "fee", "digest": draft.digest}
    assert "nothing was written" in reader.send("/try/late-cancel-fee/save", 422, **given)
    reader.send("/try/late-cancel-fee/save", 200, despite=failing[1], **given)
    assert (pack / draft.file).read_text() == before.replace(draft.text, text)
