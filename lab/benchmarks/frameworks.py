"""Tests the shield in each agent framework, with the real library, and writes the results to the reference page.

    uv run python lab/benchmarks/frameworks.py [FRAMEWORK...] [--folder DIR] [--page docs/reference/frameworks.md]

Each framework has its own environment, which `lanes.py` prepares. `yes`: the tests pass; `no`: one fails; `-`: there is
no test yet. On the page, frameworks that are not named on the command line keep their results. The exit status is 1 if
a test fails or does not run.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from lanes import LANES, ROOT, prepare, versions

TESTS = ROOT / "tests" / "integrations"
BEGIN, END = "<!-- matrix: lab/benchmarks/frameworks.py -->", "<!-- end of the matrix -->"
REFUSED = "a_refused_tool_does_not_run_and_the_agent_goes_on"
CHANGED = "no_write_runs_that_the_whole_history_would_refuse"
FINISHED = "trimmed_and_summarised_agents_finish_their_tasks"
CARD = "the_users_answer_to_a_card_is_a_confirmation"
APPROVAL = "a_persons_answer_is_an_approval"
MANY = "many_conversations_at_once_are_kept_apart"
PRINCIPALS = "a_yes_of_one_principal_is_not_anothers"
HANDED = "an_agent_that_is_handed_over_to_is_held"
KEPT = "no_history_that_the_program_keeps_lets_a_write_run_that_the_whole_would_refuse"
INNER = "what_the_outer_agent_tells_the_inner_one_is_not_the_users_word"

CELLS: dict[str, dict[str, str]] = {
    "mcp": {
        "plain runs": "test_mcp.py::test_a_refused_call_never_reaches_the_server_and_the_client_goes_on",
        "async": "test_mcp_in_process.py::test_two_proxies_on_one_log_share_a_conversation",
        "parallel conversations": "test_mcp.py::test_many_clients_at_once_keep_their_conversations_apart",
        "streaming": "test_mcp_passing.py::test_a_call_that_streams_is_held_like_any_other",
        "trimmed histories": f"test_mcp_changed.py::test_{CHANGED}",
        "summarised histories": "test_mcp_changed.py::test_clients_that_trim_or_summarise_finish_their_tasks",
        "new messages": "test_mcp_changed.py::test_clients_that_tell_all_or_what_is_new_finish_their_tasks",
        "resumed runs": "test_mcp_rounds.py::test_an_interrupted_call_is_the_same_call_when_it_goes_on",
        "runs resumed elsewhere": "test_mcp_rounds.py::test_it_goes_on_in_another_proxy_and_in_one_only",
        "inner agents": "test_mcp_inner.py::test_each_call_of_an_inner_agent_is_decided_on",
        "handoffs": "test_mcp_inner.py::test_an_agent_that_is_handed_over_to_goes_on_and_is_held",
        "approvals": "test_mcp_asking.py::test_where_the_user_does_not_answer_a_person_may_if_the_pack_lets_one",
        "cards": "test_mcp_asking.py::test_the_user_is_asked_once_by_a_card_and_their_yes_lets_the_call_run",
        "several users": "test_mcp_speaking.py",
    },
    "langchain": {
        "plain runs": f"langchain/test_adapter.py::test_{REFUSED}",
        "streaming": "langchain/test_matrix.py::test_a_streamed_run_is_held_like_any_other",
        "async": "langchain/test_adapter.py::test_so_does_ainvoke",
        "parallel conversations": f"langchain/test_matrix.py::test_{MANY}",
        "trimmed histories": f"langchain/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised histories": "langchain/test_histories.py::test_what_a_summary_says_is_not_the_users_word",
        "new messages": f"langchain/test_changed.py::TestChanges::test_{FINISHED}",
        "resumed runs": "langchain/test_interrupts.py::test_a_call_that_was_interrupted_goes_on",
        "runs resumed elsewhere": "langchain/test_interrupts.py::test_it_goes_on_in_one_worker_only",
        "inner agents": "langchain/test_inner.py",
        "handoffs": f"langchain/test_matrix.py::test_{HANDED}",
        "approvals": f"langchain/test_pausing.py::TestPauses::test_{APPROVAL}",
        "cards": f"langchain/test_pausing.py::TestPauses::test_{CARD}",
        "several users": "langchain/test_speaking.py",
    },
    "openai-agents": {
        "plain runs": f"openai_agents/test_adapter.py::test_{REFUSED}",
        "streaming": "openai_agents/test_adapter.py::test_so_does_a_streamed_run",
        "async": f"openai_agents/test_adapter.py::test_{REFUSED}",
        "parallel conversations": f"openai_agents/test_matrix.py::test_{MANY}",
        "trimmed histories": f"openai_agents/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised histories": f"openai_agents/test_changed.py::TestChanges::test_{FINISHED}",
        "new messages": "openai_agents/test_histories.py::test_a_second_yes_is_heard_where_only_new_items_are_passed",
        "resumed runs": "openai_agents/test_approvals.py::test_a_person_is_asked_once_and_the_call_goes_on",
        "runs resumed elsewhere": "openai_agents/test_approvals.py::test_a_person_is_asked_once_and_the_call_goes_on",
        "inner agents": "openai_agents/test_histories.py::test_so_is_one_that_it_runs_without_them",
        "handoffs": "openai_agents/test_histories.py::test_the_tools_of_an_agent_that_is_handed_over_to_are_decided_on",
        "approvals": f"openai_agents/test_pausing.py::test_{APPROVAL}",
        "cards": f"openai_agents/test_pausing.py::test_{CARD}",
        "several users": f"openai_agents/test_matrix.py::test_{PRINCIPALS}",
    },
    "pydantic-ai": {
        "plain runs": f"pydantic_ai/test_adapter.py::test_{REFUSED}",
        "streaming": "pydantic_ai/test_adapter.py::test_so_does_a_streamed_run",
        "async": f"pydantic_ai/test_adapter.py::test_{REFUSED}",
        "trimmed histories": f"pydantic_ai/test_changed.py::TestChanges::test_{CHANGED}",
        "parallel conversations": f"pydantic_ai/test_matrix.py::test_{MANY}",
        "summarised histories": f"pydantic_ai/test_changed.py::TestChanges::test_{FINISHED}",
        "new messages": f"pydantic_ai/test_changed.py::TestChanges::test_{FINISHED}",
        "resumed runs": "pydantic_ai/test_pausing.py::test_a_tool_that_needs_approval_of_its_own_goes_on",
        "runs resumed elsewhere": "pydantic_ai/test_pausing.py::test_a_tool_that_needs_approval_of_its_own_goes_on",
        "inner agents": f"pydantic_ai/test_inner.py::test_{INNER}",
        "handoffs": "pydantic_ai/test_matrix.py::test_an_agent_that_goes_on_with_the_messages_of_another_is_held",
        "approvals": f"pydantic_ai/test_pausing.py::TestPauses::test_{APPROVAL}",
        "cards": f"pydantic_ai/test_pausing.py::TestPauses::test_{CARD}",
        "several users": f"pydantic_ai/test_matrix.py::test_{PRINCIPALS}",
    },
    "adk": {
        "plain runs": f"adk/test_adapter.py::test_{REFUSED}",
        "streaming": f"adk/test_adapter.py::test_{REFUSED}",
        "async": f"adk/test_adapter.py::test_{REFUSED}",
        "parallel conversations": f"adk/test_matrix.py::test_{MANY}",
        "trimmed histories": f"adk/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised histories": f"adk/test_changed.py::TestChanges::test_{FINISHED}",
        "new messages": "adk/test_changed.py::test_nor_where_adk_hands_over_the_last_events_only",
        "resumed runs": "adk/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "runs resumed elsewhere": "adk/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "inner agents": f"adk/test_inner.py::test_{INNER}",
        "handoffs": f"adk/test_matrix.py::test_{HANDED}",
        "approvals": f"adk/test_pausing.py::TestPauses::test_{APPROVAL}",
        "cards": f"adk/test_pausing.py::TestPauses::test_{CARD}",
        "several users": f"adk/test_matrix.py::test_{PRINCIPALS}",
    },
    "agent-framework": {
        "plain runs": f"agent_framework/test_adapter.py::test_{REFUSED}",
        "streaming": f"agent_framework/test_adapter.py::test_{REFUSED}",
        "async": f"agent_framework/test_adapter.py::test_{REFUSED}",
        "parallel conversations": f"agent_framework/test_matrix.py::test_{MANY}",
        "trimmed histories": f"agent_framework/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised histories": f"agent_framework/test_changed.py::TestChanges::test_{FINISHED}",
        "new messages": "agent_framework/test_changed.py::test_nor_where_the_framework_compacts",
        "resumed runs": "agent_framework/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "runs resumed elsewhere": "agent_framework/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "inner agents": f"agent_framework/test_inner.py::test_{INNER}",
        "handoffs": "agent_framework/test_matrix.py::test_an_agent_that_goes_on_in_the_session_of_another_is_held",
        "approvals": f"agent_framework/test_pausing.py::TestPauses::test_{APPROVAL}",
        "cards": f"agent_framework/test_pausing.py::TestPauses::test_{CARD}",
        "several users": f"agent_framework/test_matrix.py::test_{PRINCIPALS}",
    },
    "claude": {
        "plain runs": f"test_claude.py::test_{REFUSED}",
        "streaming": "test_claude_matrix.py::test_a_streamed_run_is_held_like_any_other",
        "async": f"test_claude.py::test_{REFUSED}",
        "parallel conversations": f"test_claude_matrix.py::test_{MANY}",
        "trimmed histories": f"test_claude_matrix.py::test_{KEPT}",
        "summarised histories": "test_claude_matrix.py::test_what_a_summary_says_is_not_the_users_word",
        "new messages": "test_claude_matrix.py::test_a_session_that_is_resumed_with_what_is_new_goes_on",
        "resumed runs": "test_claude_pausing.py::test_a_call_that_was_interrupted_goes_on",
        "runs resumed elsewhere": "test_claude_pausing.py::test_a_call_that_was_interrupted_goes_on",
        "inner agents": f"test_claude_matrix.py::test_{INNER}",
        "handoffs": "test_claude_matrix.py::test_an_agent_that_goes_on_in_the_session_of_another_is_held",
        "approvals": f"test_claude_matrix.py::test_{APPROVAL}",
        "cards": f"test_claude_pausing.py::TestPauses::test_{CARD}",
        "several users": f"test_claude_matrix.py::test_{PRINCIPALS}",
    },
}  # fmt: skip
"""The tests of each situation, by framework: a file, or one test in it with any parameters."""
ROWS = (
    *("plain runs", "streaming", "async", "parallel conversations", "trimmed histories", "summarised histories"),
    *("new messages", "resumed runs", "runs resumed elsewhere", "inner agents", "handoffs"),
    *("approvals", "cards", "several users"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=f"of {', '.join(CELLS)}; all by default")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-lanes")
    parser.add_argument("--page", type=Path, help="the page to write the results to")
    given = parser.parse_args()
    if unknown := sorted(set(given.frameworks) - set(CELLS)):
        parser.error(f"no such framework: {', '.join(unknown)}")
    columns = read_page(given.page)
    for name in given.frameworks or CELLS:
        columns[name] = column(name, given.folder / name)
        if given.page:
            write_page(given.page, columns)
    print(table(columns))
    return 1 if any("no" in cells.values() for cells in columns.values()) else 0


def column(name: str, environment: Path) -> dict[str, str]:
    """Run the tests of one framework. Return its results by situation."""
    python = prepare(name, LANES[name], environment, fresh=False)
    report = environment / "matrix.xml"
    report.unlink(missing_ok=True)
    chosen = list(dict.fromkeys(str(TESTS / each) for each in CELLS[name].values()))
    command = [python, "-m", "pytest", *chosen, "-q", "-n", "0", "-p", "no:cacheprovider", f"--junitxml={report}"]
    print(f"{name}: {len(chosen)} of its tests", flush=True)
    subprocess.run(command, cwd=ROOT, check=False)
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    cells = {row: verdict(test, cases) for row, test in CELLS[name].items()}
    return {"version": versions(python, LANES[name].versions), **cells}


def verdict(test: str, cases: list[ElementTree.Element]) -> str:
    """Return `yes` if the test ran and passed with all parameters."""
    file, *within = test.split("::")
    module = ".".join(["tests.integrations", *file.removesuffix(".py").split("/"), *within[:-1]])
    function = within[-1] if within else ""
    found = [
        case
        for case in cases
        if case.get("classname") == module and function in ("", (case.get("name") or "").partition("[")[0])
    ]
    is_wrong = any(case.find(each) is not None for case in found for each in ("failure", "error", "skipped"))
    return "yes" if found and not is_wrong else "no"


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return a line for each framework: its version, and the rows of the table that its tests do not confirm."""
    situations = f"{', '.join(ROWS[:-1])} and {ROWS[-1]}"
    intro = f"We tested each adapter with the real library: {situations}."
    lines = [*textwrap.wrap(intro, 120), "", "| version | passed |", "|---|---|"]
    for name in (name for name in CELLS if name in columns):
        cells = columns[name]
        lacking = [f"{row} ({cells.get(row, '-')})" for row in ROWS if cells.get(row) != "yes"]
        lines.append(f"| {cells.get('version') or name} | {'all but ' + ', '.join(lacking) if lacking else 'all'} |")
    return "\n".join(lines)


def read_page(page: Path | None) -> dict[str, dict[str, str]]:
    """Return the cells for each framework from an earlier version of the page."""
    text = page.read_text(encoding="utf-8") if page else ""
    by_package = {LANES[name].versions[0]: name for name in CELLS}
    found: dict[str, dict[str, str]] = {}
    for line in text.partition(BEGIN)[2].partition(END)[0].splitlines():
        version, _, passed = line.strip("| ").partition(" | ")
        name = by_package.get(version.partition(" ")[0])
        if name is not None:
            lacking = dict(re.findall(r"([\w ]+?) \((no|-)\)(?:, )?", passed.removeprefix("all but ")))
            found[name] = {"version": version, **dict.fromkeys(ROWS, "yes"), **lacking}
    return found


def write_page(page: Path, columns: Mapping[str, Mapping[str, str]]) -> None:
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(columns)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
