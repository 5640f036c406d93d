"""The sections of the airline's results page."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PAPER = (
    ("GPT5-chat", 0.480, 0.120, 98, 0.085, 0.173),
    ("Claude-Sonnet4", 0.405, 0.220, 116, 0.070, 0.121),
    ("Gemini-3-pro", 0.229, 0.205, 85, 0.060, 0.140),
    ("GPT-oss-120b", 0.399, 0.182, 93, 0.040, 0.086),
    ("Qwen2.5-72b", 0.611, 0.207, 144, 0.061, 0.084),
    ("Kimi-K2.5", 0.270, 0.195, 97, 0.070, 0.144),
)
"""The columns of Table 2 of Rabinovich et al.: failures, violations, conversations with writes, and near-misses."""
CRITERIA = ("strict", "determined")
FEES = ("bags-fee", "book-bags-fee")
DUE = re.compile(r"(\d+) of \d+ bags are to be paid, not (\d+)")
Rows = Sequence[Sequence[object]]


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def share(rate: Mapping[str, Any]) -> str:
    if rate["value"] is None:
        return "-"
    return f"{percent(rate['value'])} [{100 * rate['low']:.0f}-{100 * rate['high']:.0f}] ({rate['count']}/{rate['of']})"


def rows_of_agents(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the agents. Those with a changed policy come last."""
    return sorted(summary["agents"], key=lambda row: ("(" in row["agent"], row["agent"]))


def agreement_table(file: Path) -> list[dict[str, str]]:
    """Return the readers' answers about the sampled calls, or an empty table if there are none yet."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def executed(calls: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the accepted calls of the tools that the pack knows."""
    return [call for call in calls if call["executed"] is not False and call["policies"]]


class Page:
    """Builds the page, section by section."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def text(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"

    def say(self, *paragraphs: str) -> None:
        for paragraph in paragraphs:
            self.lines += [paragraph, ""]

    def table(self, head: Sequence[str], rows: Rows) -> None:
        self.lines.append("| " + " | ".join(head) + " |")
        self.lines.append("|" + "---|" * len(head))
        self.lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
        self.lines.append("")

    def intro(self, summary: Mapping[str, Any]) -> None:
        count = sum(agent["trajectories"] for agent in summary["agents"])
        self.say(
            "# The airline: a verdict on recorded runs",
            "<!-- Written by lab/benchmarks/airline_results.py; do not edit by hand. -->",
            f"{count:,} conversations of eleven agents with the airline of tau-bench (tau1) and tau2-bench "
            f"(tau2), held to "
            "the pack `tau-airline` against the database each run started from. A near-miss is a write whose "
            "guard needed "
            "something the agent had not looked up, though it turned out to be allowed.",
            "Made by `python lab/benchmarks/airline_results.py` (folder of the runs as its argument).",
        )

    def table2(self, agents: Sequence[Mapping[str, Any]]) -> None:
        self.say(
            "## Rates per agent (the paper's Table 2)",
            "Shares of conversations with a 95 % Wilson interval. `failed`: the final database differs from the "
            "gold one "
            "(which gold: see the outcomes below). `near-miss` counts, as in the paper, conversations whose "
            "outcome is good.",
        )
        for criterion in CRITERIA:
            self.say(f"### {criterion}")
            rows = [
                (
                    row["agent"],
                    row["trajectories"],
                    row["with_write_calls"],
                    share(row["failure_rate"]),
                    share(row[criterion]["violation_rate"]),
                    share(row[criterion]["near_miss_rate"]),
                    share(row[criterion]["near_miss_rate_of_writing"]),
                )
                for row in agents
            ]
            self.table(("agent", "runs", "writing", "failed", "violation", "near-miss", "near-miss of writing"), rows)
        self.say("### The paper's six agents, for comparison (200 runs each on the verified tasks)")
        rows = [
            (name, 200, writing, percent(failed), percent(violation), percent(near), percent(of_writing))
            for name, failed, violation, writing, near, of_writing in PAPER
        ]
        self.table(("agent", "runs", "writing", "failed", "violation", "near-miss", "near-miss of writing"), rows)
        self.say(
            "The two tables are not the same experiment: other agents, other users, for tau1 another policy text "
            "and no tool "
            "that tells a flight's status, and few runs for some agents. The range of near-misses is nevertheless "
            "similar."
        )

    def figure4(self, summary: Mapping[str, Any]) -> None:
        self.say("## Near-misses by write tool and by missed look-up (the paper's Figure 4)")
        tools = sorted(summary["by_tool"].items(), key=lambda item: -item[1]["strict"]["near_miss"])
        rows = [
            (f"`{name}`", row["executed"], row["strict"]["near_miss"], row["determined"]["near_miss"])
            for name, row in tools
        ]
        self.table(("write tool", "executed", "near-misses, strict", "near-misses, determined"), rows)
        lookups = sorted(summary["by_lookup"].items(), key=lambda item: -item[1]["strict"])
        rows = [(f"`{name}`", row["strict"], row["determined"]) for name, row in lookups]
        self.table(("look-up that was missed", "calls, strict", "calls, determined"), rows)
        self.say(
            "As in the paper, `update_reservation_flights` is the most exposed tool, with `book_reservation` far "
            "behind. The "
            "paper's most missed look-up is `get_flight_status`, added to its tools and asked for by its guards "
            "wherever a "
            "flight must be available; here a search result shows that too, and what agents skip is the search "
            "itself, for the "
            "price of the flights in a new cabin. `get_user_details` comes second in both: agents charge a "
            "payment method "
            "they know only from the reservation's payment history."
        )

    def missed(self, calls: Sequence[Mapping[str, Any]]) -> None:
        facts: Counter[tuple[str, str, str]] = Counter()
        why: Counter[str] = Counter()
        for call in executed(calls):
            if call["strict"] == "near_miss":
                missing = [
                    m for policy in call["policies"] for m in policy["missing"] if policy["strict"] == "near_miss"
                ]
                facts.update({(call["tool"], m["entity"], m["field"]) for m in missing})
                why.update({m["reason"] for m in missing})
        self.say(
            "## What is most often missed", "Near-miss calls (strict) by the fact they lacked; a call may lack several."
        )
        ranked = sorted(facts.items(), key=lambda each: (-each[1], each[0]))
        rows = [(f"`{tool}`", f"`{entity}.{field}`", count) for (tool, entity, field), count in ranked]
        self.table(("write tool", "fact", "calls"), rows)
        self.table(("why it was missing", "calls"), why.most_common())

    def ten(self, calls: Sequence[Mapping[str, Any]]) -> None:
        self.say(
            "## Ten flagged calls",
            "One of each of the ten most frequent kinds (tool, verdict, policy), from as many agents as possible.",
        )
        flagged = [call for call in executed(calls) if call["strict"] in ("violation", "near_miss")]
        kinds: dict[tuple[str, str, str], list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
        for call in flagged:
            policy = next(p for p in call["policies"] if p["strict"] == call["strict"])
            kinds.setdefault((call["tool"], call["strict"], policy["id"]), []).append((call, policy))
        quoted: Counter[str] = Counter()
        chosen: list[tuple[Any, ...]] = []
        for _, found in sorted(kinds.items(), key=lambda item: -len(item[1]))[:10]:
            call, policy = min(found, key=lambda pair: quoted[pair[0]["agent"]])
            quoted[call["agent"]] += 1
            where = (f"`{call['trajectory']}`", call["step"], f"`{call['tool']}`")
            chosen.append((*where, call["strict"], reason(policy)))
        self.table(("conversation", "step", "call", "verdict", "because"), chosen)

    def unseen(self, calls: Sequence[Mapping[str, Any]]) -> None:
        done = executed(calls)
        unclear = Counter(call["tool"] for call in done if call["strict"] == "inconclusive")
        on_user = sum(any(policy["asks"] for policy in call["policies"]) for call in done)
        self.say(
            "## What the guards cannot see",
            "Guards read tool calls, tool results and the database. They do not read the user's mind or words:",
            "- **Why the user cancels.** Insurance covers health and weather; only the user can say which it is. "
            "Where the "
            f"reservation is insured and gives no other ground the verdict is `inconclusive`: "
            f"{sum(unclear.values())} of "
            f"{len(done)} executed writes ({percent(sum(unclear.values()) / max(len(done), 1))}), all of them "
            f"{', '.join(f'`{tool}`' for tool in unclear) or 'none'}. The reason was asked for in {on_user} "
            f"judgements.",
            "- **Whether the user complained and asked** before a certificate was sent, and which reservation it "
            "was for: a "
            "certificate names none, so any of the user's reservations may justify it.",
            "- **Whether the user wanted** the bags, the insurance or the payment method of a booking, and "
            "whether they "
            "confirmed. Confirmation is a rule over the conversation, not a guard.",
            "- **The status of a flight in tau1.** Its tools tell no status but `available`, so a cancellation "
            "that rests on a "
            "cancelled flight, or a trip with a flight dated today or earlier, can never be fully informed there.",
            "- **The cabin in tau1.** Its `update_reservation_flights` charges for a new cabin but keeps the old one "
            "on record, and shows it so. Later calls are judged by the record: free bags, changes or a cancellation "
            "that only the cabin paid for would allow are violations, some of them in runs whose reward is 1.",
        )

    def violations(self, calls: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]) -> None:
        gold = [call for call in executed(calls) if found[call["trajectory"]]["gold"]]
        bad = [call for call in gold if call["strict"] == "violation"]
        self.say(
            "## Violations",
            f"On runs whose final database equals the verified gold: {len(bad)} of {len(gold)} executed writes "
            f"({percent(len(bad) / max(len(gold), 1))}).",
        )
        if bad:
            rows = [
                (f"`{call['trajectory']}`", call["step"], f"`{call['tool']}`", reason(policy))
                for call in bad
                for policy in call["policies"]
                if policy["strict"] == "violation"
            ]
            self.table(("conversation", "step", "call", "because"), rows)
        counts: Counter[tuple[str, str]] = Counter()
        for call in executed(calls):
            counts.update(
                (call["tool"], policy["id"]) for policy in call["policies"] if policy["strict"] == "violation"
            )
        self.say("Over all runs, by policy (a call may break several):")
        self.table(
            ("call", "policy", "calls"), [(f"`{tool}`", policy, n) for (tool, policy), n in counts.most_common()]
        )
        fees = [
            policy["because"]
            for call in executed(calls)
            for policy in call["policies"]
            if policy["id"] in FEES and policy["strict"] == "violation"
        ]
        too_much = sum(int(told[1]) < int(told[2]) for because in fees if (told := DUE.match(because)))
        self.say(
            "Other readers of the same policy may take three things otherwise. A bag that is free but charged breaks "
            f"the allowance as much as one that is not free and not charged ({too_much} of the "
            f"{len(fees)} calls above under the two policies on fees). A certificate for a "
            "delay needs the trip to be changed or cancelled before. In tau1 the cabin is the one on record (see "
            "above).",
        )

    def gold(self, judged: Sequence[Any], named: Mapping[tuple[str, str], str]) -> None:
        fine = sum(verdict.world == "permit" for verdict in judged)
        self.say(
            "## The gold actions",
            f"The gold writes of the 50 verified tasks, applied in order to the database: {fine} of {len(judged)} "
            "judgements permit. The others:",
        )
        rows = [
            (
                verdict.task,
                f"`{verdict.tool}`",
                verdict.policy,
                f"breaks the written policy, {named[verdict.task, verdict.policy]}"
                if (verdict.task, verdict.policy) in named
                else "insured: permitted if the user's reason is covered, and the task's user is unwell",
            )
            for verdict in judged
            if verdict.world != "permit"
        ]
        self.table(("task", "gold action", "policy", "why"), rows)

    def outcomes(self, found: Mapping[str, Mapping[str, Any]], calls: Sequence[Mapping[str, Any]]) -> None:
        self.say(
            "## Outcomes, three ways",
            "Good outcomes by source. Rates above use the first that is known: the verified gold actions (tau2), then "
            "`reward_info.db_check.db_match`, then `reward` (tau1, whose tasks are the original, unverified ones).",
        )
        rows: list[tuple[str, int, int, str]] = []
        for source in ("gold", "db_match", "reward"):
            known = [outcome[source] for outcome in found.values() if outcome[source] is not None]
            rows.append((source, len(known), sum(known), percent(sum(known) / max(len(known), 1))))
        self.table(("source", "known", "good", "share"), rows)
        both = Counter((o["gold"], o["db_match"], o["reward"]) for o in found.values() if o["gold"] is not None)
        self.say("Where they can be compared (tau2):")
        self.table(("gold", "db_match", "reward", "runs"), [(*key, count) for key, count in both.most_common()])

    def changed_policy(self, summary: Mapping[str, Any]) -> None:
        self.say(
            "## Runs under a changed policy",
            "Some files carry a policy text that differs from the pack's document. They have rows of their own "
            "above. None of "
            "the changes alters what a guard decides: they tighten transfers, spell out the 24 hours, and repeat "
            "that bags "
            "nobody needs are not added.",
        )
        rows = [
            (", ".join(entry["statements"]), ", ".join(f"{agent} ({n})" for agent, n in entry["trajectories"].items()))
            for entry in summary["changed_policy"]
        ]
        self.table(("statements that differ", "runs"), rows)

    def agreement(self, read: Sequence[Mapping[str, str]]) -> None:
        self.say("## Read one by one")
        if not read:
            self.say(
                "Fifty flagged and fifty unflagged calls are drawn by `lab/benchmarks/airline_draw.py`; nobody has "
                "read them yet."
            )
            return
        counts = Counter((row["drawn"], row["agrees"]) for row in read)
        rows = [(drawn, counts[drawn, "yes"], counts[drawn, "no"]) for drawn in ("flagged", "unflagged")]
        self.table(("drawn", "the reader agrees", "disagrees"), rows)
        if disagreed := [row for row in read if row["agrees"] != "yes"]:
            keys = ("drawn", "trajectory", "step", "note")
            self.table(keys, [[row.get(key, "") for key in keys] for row in disagreed])

    def measured(self, replayed: tuple[int, int], timed: Mapping[str, float]) -> None:
        same, total = replayed
        self.say(
            "## Measured",
            f"Replaying every recorded call on the world gives back {same:,} of {total:,} results "
            f"({same / total:.3%}).",
        )
        rows = [
            (name, f"{seconds:.2f} s", f"{seconds / timed['json.loads']:.2f}")
            for name, seconds in timed.items()
            if name != "bytes"
        ]
        self.table((f"one core, {timed['bytes'] / 1e6:.0f} MB of JSON", "CPU", "times json.loads"), rows)


def reason(policy: Mapping[str, Any]) -> str:
    """Return one line that says why a policy denies a call."""
    missing = [f"{m['entity']}[{', '.join(m['key'] or ['?'])}].{m['field']}" for m in policy["missing"]]
    if policy["strict"] == "violation":
        return f"{policy['id']}: {policy['because']}"
    shown = ", ".join(f"`{fact}`" for fact in missing[:2]) + (
        f" and {len(missing) - 2} more" if len(missing) > 2 else ""
    )
    return f"{policy['id']}: not looked up: {shown}"
