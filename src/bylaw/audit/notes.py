"""Notes on an audit: what its inputs lacked, what it could not judge, and what to do. The same in every output."""

from collections.abc import Iterator

from bylaw.audit.row import JsonRecord
from bylaw.text.number import counted

_MOST = 8
"""The most names that a note lists."""


def limits(summary: JsonRecord) -> Iterator[str]:
    """All that limits an audit: its sources of truth, the notes, and what it did not read."""
    if summary["world"] == "snapshot":
        yield "Ground truth: the database, replayed after each write."
    if worlds := summary["worlds"]:
        yield f"Databases by file: {_listed([f'{file}: {name}' for file, name in worlds.items()])}."
    yield from notes(summary)
    if not summary["outcome_from"]:
        yield "No outcome is recorded with these conversations."
    for tool, fields in summary["unmapped_fields"].items():
        yield f"Result fields of {tool} without an observation: {_listed(fields)}."
    if count := len(summary["skipped"]):
        yield f"{counted(count, 'unreadable record')} skipped, never counted as compliant; summary.json names them."


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def notes(summary: JsonRecord) -> list[str]:
    """What an audit says of its inputs, and what to do about it."""
    told: list[str] = []
    verdicts = summary["verdicts"][summary["criterion"]]
    if summary["world"] != "snapshot" and summary["agents"]:
        unjudged = sum(summary["by_tool"][tool]["executed"] for tool in summary["unguarded_tools"])
        uninformed, total = verdicts.get("uninformed", 0), sum(verdicts.values()) - unjudged
        settle = "; to decide them, give --world" if uninformed else ""
        told.append(f"No database ({summary['world']}): {uninformed:,} of {total:,} verdicts stay uninformed{settle}.")
    if names := summary["not_in_world"]:
        told.append(
            f"The database has no records of {', '.join(names)}: name a table like the entity, or map it under `world:`"
            " in entities.yaml."
        )
    told += [_lacking(lookup) for lookup in summary["evidence"] if lookup["cures"]]
    told += [
        f"{tool}: {each['perhaps_done']:,} of {each['calls']:,} results do not say whether the write was executed."
        " Add `surely_refused` to the tool in tools.yaml (`bylaw explain` shows the line)."
        for tool, each in summary["by_tool"].items()
        if each.get("perhaps_done") and each["effect"] == "write"
    ]
    told += _settling(summary)
    if len(summary["outcome_from"]) > 1:
        sources = ", ".join(f"{name} ({count:,})" for name, count in summary["outcome_from"].items())
        told.append(f"Outcomes come from: {sources}.")
    if others := summary["other_documents"]:
        told.append(
            f"The given document is not that of {', '.join(others)}, so their findings are cited by heading and line."
        )
    elif summary["citations"] != "text":
        told.append(
            "Citations have only heading and line, since the pack does not contain its document; give --document."
        )
    if summary["unreviewed_policies"]:
        count = len(summary["unreviewed_policies"])
        told.append(f"{counted(count, 'policy', 'policies')} of the pack not accepted yet; see `bylaw review`.")
    if names := summary["unenforced_policies"]:
        are = "is" if len(names) == 1 else "are"
        told.append(f"Counted here but not enforced by a shield: {', '.join(names)} {are} `unenforced` in the pack.")
    if summary["stale_policies"]:
        told.append(f"Policies with a quote that is not in the document: {', '.join(summary['stale_policies'])}")
    for change in summary["changed_policy"]:
        count = sum(change["trajectories"].values())
        told.append(
            f"{count:,} conversations ran under a policy text that differs in: {', '.join(change['statements'])};"
            " they have separate rows."
        )
    if summary["unguarded_tools"]:
        names = ", ".join(summary["unguarded_tools"])
        told.append(f"Tools without a guard, so that their calls were not judged: {names}")
    if summary["clockless"]:
        told.append(
            f"{summary['clockless']:,} calls depend on the time, which is unknown: add a"
            " `timestamp` to messages, or `now:` to the pack."
        )
    if count := summary["repeated_ids"]:
        what = "conversation has the same id as another" if count == 1 else "conversations have the same id as others"
        told.append(f"{count:,} {what}, now with `~2`, `~3` and so on appended, in the order of the files.")
    if summary["contradicted"]:
        count = summary["contradicted"]
        told.append(
            f"At {count:,} {'call' if count == 1 else 'calls'} the database contradicts what the agent had"
            " looked up. Check that it is the database at the start of these conversations."
        )
    if summary["clock"] and summary["period"] is not None:
        told.append(
            f"The pack sets the time (`now: {', '.join(summary['clock'])}`): calls were judged at that time, not at"
            " the times in the logs."
        )
    for limit in summary.get("limits", []):
        if limit["over"] or limit["open"]:
            lacking = ("untimed", "without a time"), ("unknown_whose", "without an owner")
            why = ", ".join(f"{limit[name]:,} calls {what}" for name, what in lacking if limit[name])
            counts = f"{limit['over']:,} of {limit['calls']:,} calls exceeded it"
            counts += f", {limit['open']:,} undecided{f' ({why})' if why else ''}" if limit["open"] else ""
            told.append(f"Limit `{limit['limit']}` ({limit['text']}): {counts}.")
    if summary["untimed"]:
        told.append(f"Conversations without times, so that no fact expired: {summary['untimed']}")
    if summary["unknown_tools"]:
        told.append(f"Tools that are not in the pack: {', '.join(summary['unknown_tools'])}")
        if summary["by_tool"].keys() <= summary["unknown_tools"].keys():
            told.append("None of the tools is in the pack. Check that it is the pack of these logs.")
    return told


def _settling(summary: JsonRecord) -> list[str]:
    """The answers of models and people, and how to decide the rest."""
    told: list[str] = []
    for name, row in summary["answered"].items():
        left = f", undecided {row['open']:,} times" if row["open"] else ""
        if row["yes"] or row["no"]:
            told.append(f"Decided by a model: {name} is true {row['yes']:,} times, false {row['no']:,} times{left}.")
    for name, row in summary["settled"].items():
        yes, no = counted(row["yes"], "time"), counted(row["no"], "time")
        told.append(f"Settled by a person: {name} was followed {yes}, not followed {no}.")
    if summary["open"]["calls"] and not summary["answered"] and not summary["unanswered"]:
        told.append("Undecided calls are not counted as violations. To decide them, use --llm MODEL or `bylaw view`.")
    return told


def _lacking(lookup: JsonRecord) -> str:
    """How many results of a look-up were usable, and how to fix the rest."""
    counts = f"{lookup['captured']:,} recorded, {lookup['readable']:,} readable"
    shown = f", {lookup['shown']:,} of use to the pack" if lookup["shown"] is not None else ""
    return f"{lookup['tool']}: of {lookup['results']:,} results {counts}{shown}: {'; '.join(lookup['cures'])}."
