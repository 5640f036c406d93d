"""The command `bylaw demo` shows a near-miss, a violation, and the shield that prevents both."""

import json
import shutil
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from bylaw.audit.report import write_report
from bylaw.audit.request import Request, write_audited
from bylaw.audit.run import audit, read_calls
from bylaw.cli.command import command
from bylaw.cli.console import open_console
from bylaw.cli.tables import agents_table
from bylaw.packs.clinic import demo
from bylaw.shield import Shield


@command("demo")
def demo_command(
    *,
    out: Annotated[Path, "--out DIR", "Output folder."] = Path("bylaw-demo"),
) -> None:
    """Show a near-miss and a violation in a built-in example."""
    console = open_console()
    story = demo.read_story()
    _conversation(story.honest, console)
    out.mkdir(parents=True, exist_ok=True)
    document = out / "policy.md"
    shutil.copyfile(demo.POLICY, document)
    doing = "Auditing 302 recorded conversations with five agents"
    with console.status(f"{doing} ...") as status:
        world, logs = out / "clinic.sqlite", out / "logs.jsonl.gz"
        demo.build_world(world)
        demo.write_logs(logs, story.honest, story.liar)
        request = Request((logs,), "clinic", world)
        found = audit(request, out, progress=lambda number: status.update(f"{doing}: {number + 1} done ..."))
        write_audited(request, out)
        lines = {line["trajectory"]: line for line in read_calls(out) if line["trajectory"] in ("honest", "liar")}
        policies: dict[str, Any] = json.loads((out / "policies.json").read_bytes())
        report = write_report(out, opening=lines["honest"]["finding"])
    _near_miss(lines["honest"], policies, story.honest, document, console)
    _violation(lines["liar"], story.liar, console)
    _heading(console, "4  Five simulated agents, 302 conversations")
    console.print(agents_table(found.summary))
    _heading(console, "5  The same calls behind a shield")
    shield = Shield("clinic")
    for record in (story.honest, story.liar):
        _shielded(record, story.look_ups, shield, console)
    _next(report, console)


def _conversation(record: dict[str, Any], console: Console) -> None:
    _heading(console, "1  A clinic's agent cancels an appointment")
    for message in record["messages"]:
        if message["role"] == "tool":
            console.print(Padding(Text(f"-> {_short(message['content'], 66)}", style="dim"), (0, 0, 0, 8)))
        elif message["content"]:
            who = "user" if message["role"] == "user" else "agent"
            console.print(_labelled(who, Text(message["content"])))
        for call in message.get("tool_calls", ()):
            arguments: dict[str, Any] = json.loads(call["function"]["arguments"])
            console.print(_labelled("call", Text(demo.key_of(call["function"]["name"], arguments), style="cyan")))
    passed = "passes" if record["outcome"] else "fails"
    console.print(f"\nOutcome check on the database: {passed}. The caller is Gold, so $0.00 was right.\n", markup=False)


def _heading(console: Console, title: str, style: str = "bold") -> None:
    console.print(Rule(Text(title, style=style), align="left", style="dim"))


def _labelled(label: str, text: Text) -> Table:
    grid = Table.grid()
    grid.add_column(width=8)
    grid.add_column()
    grid.add_row(Text(label, style="bold"), text)
    return grid


def _near_miss(
    line: dict[str, Any], policies: dict[str, Any], record: dict[str, Any], document: Path, console: Console
) -> None:
    _heading(console, "2  Bylaw: NEAR-MISS", "bold yellow")
    entry = next(policy for policy in line["policies"] if policy["determined"] == "near_miss")
    citation = policies[entry["id"]]["citations"][0]
    console.print(Text(f"{document}:{citation['line']}, {citation['heading']}", style="dim"))
    console.print(Padding(Text(_excerpt(citation["text"]), style="italic"), (0, 2)))
    for missing in entry["missing"]:
        fact = f"{missing['entity']}[{', '.join(missing['key'])}].{missing['field']}"
        console.print(Text("never looked up     ", style="bold").append(Text(fact, style="red")))
        said = record["messages"][0]["content"]
        console.print(
            Text("the user said       ", style="bold").append(Text(f'"{said.split(". ")[-1]}"', style="not bold"))
        )
        lookup = missing["lookup"]
        told = Text(demo.key_of(lookup["tool"], lookup["args"]), style="cyan")
        console.print(Text("should have called  ", style="bold").append(told))
    console.print("\nRight only by luck: no look-up had shown that this call was allowed.\n", markup=False)


def _violation(line: dict[str, Any], record: dict[str, Any], console: Console) -> None:
    _heading(console, "3  The same call for a caller who lies: VIOLATION", "bold red")
    entry = next(policy for policy in line["policies"] if policy["determined"] == "violation")
    _, _, arguments = demo.before_the_change(record)
    said = record["messages"][0]["content"].split(". ")[-1]
    console.print(Text(f'{arguments["patient_id"]} is a Standard member and says the same: "{said}"'))
    console.print(
        Text("violated            ", style="bold").append(Text(f"{entry['id']}: {entry['because']}", style="red"))
    )
    console.print("The agent acted the same way. The first outcome check gave no warning.\n", markup=False)


def _shielded(record: dict[str, Any], results: dict[str, Any], shield: Shield, console: Console) -> None:
    """Decide on the recorded call before it is executed, after making the look-ups that the shield requires."""
    messages, tool, arguments = demo.before_the_change(record)
    asked = f"{tool}(patient_id={arguments['patient_id']}, ...)"
    first = shield.decide(messages, tool, arguments)
    console.print(_labelled("call", Text(asked, style="cyan")))
    look_ups = {demo.key_of(each.tool, each.arguments): each for each in first.look_ups}
    console.print(_labelled("shield", Text(f"{first.answer}: {', '.join(look_ups)}", style="bold yellow")))
    for shown, look_up in look_ups.items():
        made = demo.call_messages(look_up.tool, look_up.arguments, results[shown], shown)
        messages = [*messages, *made]
        console.print(_labelled("call", Text(shown, style="cyan")))
        console.print(Padding(Text(f"-> {_short(made[-1]['content'], 66)}", style="dim"), (0, 0, 0, 8)))
    last = shield.decide(messages, tool, arguments)
    why = "; ".join(ground.because for ground in last.grounds if ground.answer != "allow")
    style = "bold green" if last.allowed else "bold red"
    console.print(_labelled("call", Text(asked, style="cyan")))
    console.print(_labelled("shield", Text(f"{last.answer}{': ' if why else ''}{why}", style=style)))
    console.print()


def _next(report: Path, console: Console) -> None:
    _heading(console, "6  Next: your own logs")
    console.print(Text(f"Every finding, with a drawing of its evidence: {report}", style="bold"))
    for line in (
        "bylaw scan LOGS                        patterns, no policy needed",
        "bylaw init LOGS --document POLICY.md   draft a pack",
        "bylaw audit LOGS --pack pack --report  find violations and near-misses",
    ):
        console.print(f"  {line}", markup=False)


def _excerpt(text: str) -> str:
    """Return the end of a long clause, because exceptions usually come at the end."""
    sentences = text.split(". ")
    return text if len(text) < 320 else "... " + ". ".join(sentences[-2:])


def _short(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 3]}..."
