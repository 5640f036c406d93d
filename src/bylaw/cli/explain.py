"""The command `bylaw explain` shows a call with its policies, its known and missing facts, and the next step."""

import json
import shlex
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import click
from msgspec import Struct
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bylaw.audit.request import events_in_logs
from bylaw.audit.row import SEVERITIES, Finding, lacked, rank
from bylaw.audit.store import Store
from bylaw.cli.command import Audited, Name, Word, command
from bylaw.cli.console import open_console
from bylaw.engine.wording import (
    fact_words,
    host_words,
    is_hosts,
    origin_words,
    policy_words_for_reader,
    rule_words_for_reader,
)
from bylaw.errors import UsageError
from bylaw.facts.call_record import declaration_for
from bylaw.pack import Criterion
from bylaw.policy.statement import told_place
from bylaw.policy.tool import Effect
from bylaw.text.visible import all_visible, clean

_SHOWN = 30
_SEVERITY_STYLES = {"high": "bold red", "medium": "yellow"}


class Wanted(NamedTuple):
    """A filter for findings. An empty field matches everything."""

    policies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()

    def holds(self, finding: Finding) -> bool:
        """Whether a finding matches the filter. At least one of its policies must match all conditions on policies."""
        verdict = "rule" if finding.kind == "rule" else finding.verdict
        charged = not (self.policies or self.severities) or any(
            (not self.policies or charge.policy in self.policies)
            and (not self.severities or charge.severity in self.severities)
            and (not self.verdicts or finding.kind == "rule" or charge.verdict in self.verdicts)
            for charge in finding.charges
        )
        return (
            charged
            and (not self.tools or finding.name in self.tools)
            and (not self.agents or finding.agent in self.agents)
            and (not self.verdicts or verdict in self.verdicts)
        )


def print_findings(store: Store, console: Console, *, wanted: Wanted = Wanted(), whole: bool = False) -> None:  # noqa: B008
    """List the matching findings, with the ids that `bylaw explain` accepts."""
    every = list(store.findings())
    unsettled = list(store.inconclusive())
    held = filter(wanted.holds, (*every, *unsettled) if wanted.verdicts else every)
    found = sorted(held, key=lambda each: (each.gravity, each.kind == "rule"))
    print_about(store, console)
    if not found:
        said = f"None of the {len(every):,} findings match." if every else "No findings."
        console.print(said, markup=False)
        _tell_unsettled(unsettled, wanted, console)
        return
    acts = _by_act(found)
    shown = acts if whole else acts[:_SHOWN]
    for finding, *others in shown:
        for line in finding_lines(finding):
            console.print(line)
        for other in others:
            console.print(Text(f"{'':7}{other.id} also {_kind(other)} {_policies(other)}"))
    if len(acts) > len(shown):
        left = sum(map(len, acts)) - sum(map(len, shown))
        rest = f"and {left:,} more; --all lists every finding; --policy, --tool, --agent and --verdict filter them"
        console.print(rest, markup=False)
    named = "ID" if any(finding.id for finding in found) else "CONVERSATION STEP"
    console.print(f"to explain one: bylaw explain {store.path} {named}", markup=False, soft_wrap=True)
    _tell_unsettled(unsettled, wanted, console)


def _tell_unsettled(calls: list[Finding], wanted: Wanted, console: Console) -> None:
    """Print the number of calls that have no verdict. They are not listed, because they are not findings."""
    if calls and not wanted.verdicts:
        one = len(calls) == 1
        said = f"{len(calls):,} {'call has' if one else 'calls have'} no verdict: --verdict inconclusive lists "
        console.print(said + ("it" if one else "them"), markup=False)


def _by_act(findings: list[Finding]) -> list[list[Finding]]:
    """Group findings about one call or message. The groups are in the order of their first findings."""
    acts: dict[tuple[str, str, int], list[Finding]] = {}
    for finding in findings:
        acts.setdefault((finding.trajectory, finding.agent, finding.step), []).append(finding)
    return list(acts.values())


def _kind(finding: Finding) -> str:
    return "rule" if finding.kind == "rule" else finding.verdict.replace("_", "-")


def _policies(finding: Finding) -> str:
    told = (each for each in finding.gravest_first if finding.kind == "rule" or each.verdict == finding.verdict)
    names = [charge.policy for charge in told]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def print_about(store: Store, console: Console) -> None:
    """Print the date and the files of the audit, and the dates of its conversations."""
    summary = store.summary
    if not summary["date"]:
        return
    files: list[str] = summary["files"]
    more = f" and {len(files) - 3:,} other files" if len(files) > 3 else ""
    said = f"audited on {summary['date']}: {', '.join(clean(name, 60) for name in files[:3])}{more}"
    if period := summary["period"]:
        first, last = period["from"][:10], period["to"][:10]
        said += f", conversations of {first}" if first == last else f", conversations from {first} to {last}"
    console.print(Text(said, style="dim"))


def finding_lines(finding: Finding, head: Text | None = None) -> Iterator[Text]:
    """Yield the lines for a finding: severity and policies, reason, then call and conversation."""
    severity = next((charge.severity for charge in finding.gravest_first), "")
    start = (head or Text()) + Text(f"{severity:<7}", style=_SEVERITY_STYLES.get(severity, ""))
    yield start + Text(f"{finding.id} {_kind(finding)} {_policies(finding)}".strip())
    refused = ", refused" if finding.executed is False else ""
    place = f"{clean(finding.name, 60)} at step {finding.step} of {clean(finding.trajectory, 60)}{refused}"
    indent = " " * (len(head) + 7 if head else 7)
    is_settled = finding.kind == "call" and finding.verdict != "inconclusive"
    if is_settled and (because := next((charge.because for charge in finding.gravest_first), "")):
        yield Text(f"{indent}{clean(because, 70)}")
    yield Text(f"{indent}{place}", style="dim")
    if finding.verdict == "inconclusive":
        reasons = dict.fromkeys(charge.because for charge in finding.charges) or [finding.because]
        yield Text(f"{'':7}{clean('; '.join(reasons), 300)}", style="dim")


_STYLES = {
    "violation": "red",
    "near_miss": "yellow",
    "uninformed": "yellow",
    "inconclusive": "magenta",
    "compliant": "green",
}


@command("explain")
def explain_command(
    out: Audited,
    name: Annotated[
        str | None,
        "[ID]",
        "Id of a finding or conversation, or the first characters of the id. If omitted, findings are listed.",
    ] = None,
    step: Annotated[int | None, "Step of a write call or a broken rule. If omitted, all steps are listed."] = None,
    *,
    policy: Annotated[tuple[str, ...], "--policy ID", "List only findings of this policy. May be repeated."] = (),
    tool: Annotated[tuple[Name, ...], "List only findings on calls to this tool."] = (),
    agent: Annotated[tuple[Name, ...], "List only findings of this agent."] = (),
    verdict: Annotated[
        tuple[str, ...],
        Word(("violation", "near_miss", "rule", "uninformed", "inconclusive")),
        "List only findings of this kind. May be repeated.",
    ] = (),
    severity: Annotated[tuple[str, ...], click.Choice(SEVERITIES), "List only findings of this severity."] = (),
    whole: Annotated[bool, "--all", "List every finding instead of the first 30."] = False,
) -> None:
    """Explain one finding of an audit, or list them all."""
    console = open_console()
    wanted = Wanted(policy, tool, agent, verdict, severity)
    store = Store(out)
    if name is None:
        print_findings(store, console, wanted=wanted, whole=whole)
        return
    if wanted != Wanted() or whole:
        raise UsageError("an id cannot be combined with filters", hint="leave out one of them")
    trajectory, at = store.find(name)
    step = at if step is None else step
    lines, criterion = store.explainable(trajectory), store.criterion
    if step is None and len(lines) > 1:
        _list(all_visible(lines), out, criterion, console)
        return
    line = next(iter(lines.values())) if step is None else lines.get(step)
    if line is None:
        known = ", ".join(map(str, lines))
        what = f"nothing was judged at step {step} of `{trajectory}`"
        raise UsageError(what, hint=f"known steps: {known}")
    events = store.events(trajectory) or events_in_logs(out, trajectory)
    doubtful = {at for at, each in lines.items() if each.get("executed", False) is None}
    shown = all_visible(line), all_visible(store.policies), all_visible(events)
    explain(*shown, console, criterion=criterion, doubtful=doubtful)
    console.print()
    if place := store.repeated_at(trajectory):
        console.print(Text(f"another conversation has the same id; this one is {clean(place, 200)}"))
    print_about(store, console)


def _list(lines: dict[int, dict[str, Any]], out: Path, criterion: Criterion, console: Console) -> None:
    trajectory: str = next(iter(lines.values()))["trajectory"]
    console.print(Text(f"judged steps of {trajectory}:", style="bold"))
    names = {
        step: line.get("tool") or ", ".join(rule["rule"] for rule in line["rules"]) for step, line in lines.items()
    }
    room = max(map(len, names.values()))
    for step, line in lines.items():
        said = Text(f"  {step:>{len(str(max(lines)))}}  {names[step]:<{room}}  ")
        said.append(_verdict_line(line, criterion) if "tool" in line else Text("rule broken", style="red"))
        if line.get("executed") is False:
            said.append(", refused")
        console.print(said, soft_wrap=True)
    command = f"bylaw explain {shlex.quote(str(out))} {shlex.quote(trajectory)} STEP"
    console.print(f"to explain one: {command}", markup=False, soft_wrap=True)


def explain(
    line: dict[str, Any],
    policies: dict[str, Any],
    events: list[dict[str, Any]],
    console: Console,
    *,
    criterion: Criterion = "determined",
    doubtful: Set[int] = frozenset(),
) -> None:
    """Print each policy's verdict on the call, most severe first.

    If there is no verdict, print the call or message that broke a rule. `doubtful` contains the steps of calls that
    may not have been executed.
    """
    _Explanation(line, line["step"], policies, events, console, criterion, doubtful).tell()


class _Explanation(Struct, frozen=True):
    line: dict[str, Any]
    step: int
    policies: dict[str, Any]
    events: list[dict[str, Any]]
    console: Console
    criterion: Criterion
    doubtful: Set[int]

    def tell(self) -> None:
        line, step = self.line, self.step
        if "tool" in line:
            self._call()
        else:
            said = self.events[step].get("text") or self.events[step].get("tool", "") if step < len(self.events) else ""
            self.console.print(Text(f"step {step} of {line['trajectory']}", style="bold"))
            self._say(2, _short(said))
        judged = [each for each in line["policies"] if each[self.criterion] != "compliant"]
        for alike in _alike(sorted(judged, key=lambda each: rank(each.get("severity", ""))), self.criterion):
            self.console.print()
            self._policy(alike)
        for broken in line.get("rules", []):
            self._rule(broken, Text("rule broken", style="red"))
        for unsure in line.get("open_rules", []):
            said = Text("rule undecided: code cannot tell whether the rule was followed", style="magenta")
            self._rule(unsure, said)
        self._permitting([entry for entry in line["policies"] if entry not in judged], is_alone=not judged)

    def _say(self, indent: int, text: str, style: str = "") -> None:
        self.console.print(Padding(Text(text, style=style), (0, indent)))

    def _rule(self, found: dict[str, Any], standing: Text) -> None:
        policy: dict[str, Any] = self.policies.get(found.get("policy", ""), {})
        self.console.print()
        self.console.print(_headed(policy.get("severity", ""), found["rule"], standing))
        if found.get("sentence"):
            self._say(2, found["sentence"], "italic")
        self._say(2, f"at this step: {rule_words_for_reader(found, policy.get('predicates', {}))}")
        for label, step, text in _exchange(found, self.events):
            self._say(4, f"{label} at step {step}: {_short(text)}")
        reasons = [why.get("reason") for each in found.get("predicates", ()) if (why := each.get("why"))]
        if "unread" in reasons:
            self._say(4, "spoken consent counts after a card, or after a sentence from `put_as` in tools.yaml")

    def _call(self) -> None:
        line, step = self.line, self.step
        unsure = (
            "the result does not show whether the call was executed" if self._answer(step) else "result not captured"
        )
        executed = {True: "accepted", False: "refused", None: unsure}[line["executed"]]
        called = f" by {line['called']}" if line.get("called") else ""
        self.console.print(
            Text(f"{line['tool']}{called} at step {step} of {line['trajectory']} ({executed})", style="bold")
        )
        if step < len(self.events):
            self._say(2, _short(json.dumps(self.events[step]["arguments"], ensure_ascii=False), 1000))
        else:
            self._say(2, "the log that contains its arguments was moved", "dim")
        for origin in line.get("origins", []):
            self._say(2, f"value    {origin_words(origin)}")
        if line["executed"] is None:
            self._show_answer(step, 2, "write")
        self.console.print(_verdict_line(line, self.criterion))
        if line.get("because"):
            self.console.print(Text(line["because"]))

    def _answer(self, step: int) -> str:
        for each in self.events:
            if each["type"] == "result" and each.get("call") == step and each["text"]:
                return str(each["text"])
        return ""

    def _show_answer(self, step: int, indent: int, effect: Effect) -> None:
        if answer := self._answer(step):
            tool, means = (
                self.events[step]["tool"],
                "the write was not executed" if effect == "write" else "the look-up failed",
            )
            said = f"{tool} at step {step} returned: {_short(answer)}"
            if effect == "write" or answer.lstrip()[:1] not in ("{", "["):
                said += f"\nif the result means that {means}, add this to `{tool}` in tools.yaml:"
                said += f"\n  {declaration_for(effect, answer)}"
            self._say(indent, said)

    def _unread(self, entry: dict[str, Any]) -> list[int]:
        """For each fact whose result is unreadable, return the step of the last call that names the fact's entity."""
        found: list[int] = []
        for fact in entry.get("reason", {}).get("not_readable") or ():
            named = {str(part) for part in fact["key"] or ()}
            before = range(min(self.step, len(self.events)) - 1, -1, -1)
            calls = (at for at in before if self.events[at]["type"] == "call")
            asked = (at for at in calls if named & set(map(str, self.events[at]["arguments"].values())))
            found += [at for at in [next(asked, None)] if at is not None and self._answer(at)]
        return list(dict.fromkeys(found))

    def _permitting(self, entries: list[dict[str, Any]], *, is_alone: bool) -> None:
        """Print the policies that permit the call.

        If other policies are printed too, print only the names of the permitting policies.
        """
        if not entries:
            return
        self.console.print()
        if not is_alone:
            names = ", ".join(entry["id"] for entry in entries)
            self.console.print(Text("also checked, compliant: ") + Text(names, style="green"))
            return
        self.console.print("checked, compliant:", markup=False)
        for entry in entries:
            policy = self.policies.get(entry["id"], {})
            cited = " ".join(str(cited["text"] or "") for cited in policy.get("citations", ()))
            said = policy.get("definition") or cited
            line = Text(entry["id"], style="green").append(f": {said}" if said.strip() else "", style="default")
            self.console.print(Padding(line, (0, 2)))
            for seen in entry.get("seen", []):
                self._say(4, _seen(seen), "green")

    def _policy(self, alike: list[dict[str, Any]]) -> None:
        entry, events = alike[0], self.events
        names = ", ".join(each["id"] for each in alike)
        self.console.print(_headed(entry.get("severity", ""), names, _verdict(entry[self.criterion])))
        cited = (line for each in alike for line in _cited(self.policies.get(each["id"], {})))
        for where, words in dict.fromkeys(cited):
            self._say(2, f"{where}: {words}", "italic")
        if entry["because"]:
            self._say(2, f"because: {policy_words_for_reader(entry)}")
        for asked_at in self._unread(entry):
            self._show_answer(asked_at, 4, "read")
        shown = {fact_words(seen): seen for each in alike for seen in each.get("seen", [])}
        for seen in shown.values():
            self._say(2, _seen(seen), "green")
        for missing in lacked(entry["missing"], self.criterion):
            self._say(2, f"missing  {fact_words(missing)}: {missing['reason'].replace('_', ' ')}", "red")
            at: int | None = missing["claimed_at"]
            if at is not None and at < len(events):
                self._say(4, f"the user said at step {at}: {_short(events[at]['text'])}")
            lookup = missing["lookup"]
            stale_by: int | None = missing.get("stale_by")
            if stale_by is not None:
                tool = f": {events[stale_by].get('tool', '')}" if stale_by < len(events) else ""
                perhaps = ", which may have been executed" if stale_by in self.doubtful else ""
                self._say(4, f"out of date since step {stale_by}{tool}{perhaps}")
                if perhaps:
                    self._show_answer(stale_by, 4, "write")
            elif lookup and (asked := self._asked(lookup)):
                self._say(4, asked)
            if lookup:
                given = ", ".join(f"{name}={value!r}" for name, value in lookup["args"].items())
                self._say(4, f"look up first: {lookup['tool']}({given})")
        for ask in entry["asks"]:
            fact: str = ask["fact"]
            said = host_words(fact) if is_hosts(fact) else f"only the user knows: {fact} - {ask['question']}"
            self._say(2, said, "magenta")

    def _asked(self, lookup: dict[str, Any]) -> str:
        """Return why the agent's look-up did not show the fact, or an empty string if it was never made."""
        wanted = {name: str(value) for name, value in lookup["args"].items()}
        told = ""
        for asked_at, event in enumerate(self.events[: self.step]):
            if event["type"] != "call" or event["tool"] != lookup["tool"]:
                continue
            called = f"{lookup['tool']} was called at step {asked_at}"
            given = {name: str(value) for name, value in event["arguments"].items()}
            if given != wanted:
                continue
            results = ((at, each) for at, each in enumerate(self.events) if each["type"] == "result")
            answered_at = next((at for at, each in results if each.get("call") == asked_at), None)
            if answered_at is None:
                told = f"{called}; no result was recorded"
            elif answered_at > self.step:
                told = f"{called}, but its result arrived after this call, at step {answered_at}"
            else:
                told = f"{called}; its result at step {answered_at} did not show this fact"
        return told


def _exchange(found: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[tuple[str, int, str]]:
    for why in filter(None, (predicate.get("why") for predicate in found.get("predicates", ()))):
        for label, key in (("the agent asked", "told_at"), ("the user answered", "answered_at")):
            step: int | None = why.get(key)
            if step is not None and step < len(events) and events[step].get("text"):
                said = label if key == "told_at" or why.get("told_at") is not None else "the user said"
                yield said, step, events[step]["text"]


def _headed(severity: str, name: str, verdict: Text) -> Text:
    start = Text(f"{severity}  " if severity else "", style="bold red" if severity == "high" else "bold")
    return start + Text(name, style="bold") + Text("  ") + verdict


def _alike(judged: list[dict[str, Any]], criterion: Criterion) -> list[list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in judged:
        said = [entry[criterion], entry["because"], entry["missing"], entry["asks"]]
        # Policies without a reason are not grouped.
        key = json.dumps(said, default=str) if entry["because"] else entry["id"]
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _cited(policy: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each cited sentence with its location.

    If there is no document, yield the policy's definition with all its locations.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for citation in policy.get("citations", []):
        if citation["text"]:
            stands = (citation, *citation.get("again", ()))
            told_places = (told_place(each["document"], each["line"], each["heading"]) for each in stands)
            yield ", ".join(told_places), citation["text"]
        else:
            places.setdefault((citation["document"], citation["heading"]), []).append(citation["line"])
    if places:
        told = [
            f"{document}{':' if any(lines) else ''}{', '.join(str(line) for line in sorted(lines) if line)}"
            f"{f' ({heading})' if heading else ''}"
            for (document, heading), lines in places.items()
        ]
        yield "; ".join(told), f"in the pack's words: {policy.get('definition', '')}"


def _seen(seen: dict[str, Any]) -> str:
    value = f" = {seen['value']}" if "value" in seen else ""
    return f"seen     {fact_words(seen)}{value}, step {seen['shown_at']}"


def _verdict_line(line: dict[str, Any], criterion: Criterion) -> Text:
    is_judged = line["policies"] or line.get("because")
    verdict = _verdict(line[criterion]) if is_judged else Text("not judged: no guard applies to this tool")
    if not line.get("rules"):
        unsure = ", ".join(rule["rule"] for rule in line.get("open_rules", []))
        return Text.assemble(verdict, (f"; undecided: {unsure}", "magenta")) if unsure else verdict
    names = ", ".join(rule["rule"] for rule in line["rules"])
    return Text.assemble((f"broke {names}", "red"), " (guards alone: ", verdict, ")")


def _verdict(verdict: str) -> Text:
    return Text(verdict.replace("_", "-"), style=_STYLES[verdict])


def _short(text: str, most: int = 300) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most]} ..."
