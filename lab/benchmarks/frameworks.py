"""The matrix of frameworks: what an agent may do there while the shield holds, each cell by tests of the real library.

    uv run python lab/benchmarks/frameworks.py [FRAMEWORK...] [--folder DIR] [--page docs/reference/frameworks.md]

Each framework has an environment of its own, made as `lanes.py` makes it. `yes`: the tests of the cell pass; `no`: one
fails; `-`: no test shows it yet. On the page, frameworks that were not asked for keep their columns. Status 1 where a
test fails or does not run.
"""

import argparse
import subprocess
import sys
import tempfile
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
        "plain": "test_mcp.py::test_a_refused_call_never_reaches_the_server_and_the_client_goes_on",
        "async": "test_mcp_in_process.py::test_two_proxies_on_one_log_share_a_conversation",
        "many at once": "test_mcp.py::test_many_clients_at_once_keep_their_conversations_apart",
        "stream": "test_mcp_passing.py::test_a_call_that_streams_is_held_like_any_other",
        "trimmed": f"test_mcp_changed.py::test_{CHANGED}",
        "summarised": "test_mcp_changed.py::test_clients_that_trim_or_summarise_finish_their_tasks",
        "only new items": "test_mcp_changed.py::test_clients_that_tell_all_or_what_is_new_finish_their_tasks",
        "interrupt, resume here": "test_mcp_rounds.py::test_an_interrupted_call_is_the_same_call_when_it_goes_on",
        "resume elsewhere": "test_mcp_rounds.py::test_it_goes_on_in_another_proxy_and_in_one_only",
        "nested": "test_mcp_inner.py::test_each_call_of_an_inner_agent_is_decided_on",
        "handoff": "test_mcp_inner.py::test_an_agent_that_is_handed_over_to_goes_on_and_is_held",
        "approval": "test_mcp_asking.py::test_where_the_user_does_not_answer_a_person_may_if_the_pack_lets_one",
        "card": "test_mcp_asking.py::test_the_user_is_asked_once_by_a_card_and_their_yes_lets_the_call_run",
        "context per run": "test_mcp_speaking.py",
    },
    "langchain": {
        "plain": f"langchain/test_adapter.py::test_{REFUSED}",
        "stream": "langchain/test_matrix.py::test_a_streamed_run_is_held_like_any_other",
        "async": "langchain/test_adapter.py::test_so_does_ainvoke",
        "many at once": f"langchain/test_matrix.py::test_{MANY}",
        "trimmed": f"langchain/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised": "langchain/test_histories.py::test_what_a_summary_says_is_not_the_users_word",
        "only new items": f"langchain/test_changed.py::TestChanges::test_{FINISHED}",
        "interrupt, resume here": "langchain/test_interrupts.py::test_a_call_that_was_interrupted_goes_on",
        "resume elsewhere": "langchain/test_interrupts.py::test_it_goes_on_in_one_worker_only",
        "nested": "langchain/test_inner.py",
        "handoff": f"langchain/test_matrix.py::test_{HANDED}",
        "approval": f"langchain/test_pausing.py::TestPauses::test_{APPROVAL}",
        "card": f"langchain/test_pausing.py::TestPauses::test_{CARD}",
        "context per run": "langchain/test_speaking.py",
    },
    "openai-agents": {
        "plain": f"openai_agents/test_adapter.py::test_{REFUSED}",
        "stream": "openai_agents/test_adapter.py::test_so_does_a_streamed_run",
        "async": f"openai_agents/test_adapter.py::test_{REFUSED}",
        "many at once": f"openai_agents/test_matrix.py::test_{MANY}",
        "trimmed": f"openai_agents/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised": f"openai_agents/test_changed.py::TestChanges::test_{FINISHED}",
        "only new items": "openai_agents/test_histories.py::test_a_second_yes_is_heard_where_only_new_items_are_passed",
        "interrupt, resume here": "openai_agents/test_approvals.py::test_a_person_is_asked_once_and_the_call_goes_on",
        "resume elsewhere": "openai_agents/test_approvals.py::test_a_person_is_asked_once_and_the_call_goes_on",
        "nested": "openai_agents/test_histories.py::test_so_is_one_that_it_runs_without_them",
        "handoff": "openai_agents/test_histories.py::test_the_tools_of_an_agent_that_is_handed_over_to_are_decided_on",
        "approval": f"openai_agents/test_pausing.py::test_{APPROVAL}",
        "card": f"openai_agents/test_pausing.py::test_{CARD}",
        "context per run": f"openai_agents/test_matrix.py::test_{PRINCIPALS}",
    },
    "pydantic-ai": {
        "plain": f"pydantic_ai/test_adapter.py::test_{REFUSED}",
        "stream": "pydantic_ai/test_adapter.py::test_so_does_a_streamed_run",
        "async": f"pydantic_ai/test_adapter.py::test_{REFUSED}",
        "trimmed": f"pydantic_ai/test_changed.py::TestChanges::test_{CHANGED}",
        "many at once": f"pydantic_ai/test_matrix.py::test_{MANY}",
        "summarised": f"pydantic_ai/test_changed.py::TestChanges::test_{FINISHED}",
        "only new items": f"pydantic_ai/test_changed.py::TestChanges::test_{FINISHED}",
        "interrupt, resume here": "pydantic_ai/test_pausing.py::test_a_tool_that_needs_approval_of_its_own_goes_on",
        "resume elsewhere": "pydantic_ai/test_pausing.py::test_a_tool_that_needs_approval_of_its_own_goes_on",
        "nested": f"pydantic_ai/test_inner.py::test_{INNER}",
        "handoff": "pydantic_ai/test_matrix.py::test_an_agent_that_goes_on_with_the_messages_of_another_is_held",
        "approval": f"pydantic_ai/test_pausing.py::TestPauses::test_{APPROVAL}",
        "card": f"pydantic_ai/test_pausing.py::TestPauses::test_{CARD}",
        "context per run": f"pydantic_ai/test_matrix.py::test_{PRINCIPALS}",
    },
    "adk": {
        "plain": f"adk/test_adapter.py::test_{REFUSED}",
        "stream": f"adk/test_adapter.py::test_{REFUSED}",
        "async": f"adk/test_adapter.py::test_{REFUSED}",
        "many at once": f"adk/test_matrix.py::test_{MANY}",
        "trimmed": f"adk/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised": f"adk/test_changed.py::TestChanges::test_{FINISHED}",
        "only new items": "adk/test_changed.py::test_nor_where_adk_hands_over_the_last_events_only",
        "interrupt, resume here": "adk/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "resume elsewhere": "adk/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "nested": f"adk/test_inner.py::test_{INNER}",
        "handoff": f"adk/test_matrix.py::test_{HANDED}",
        "approval": f"adk/test_pausing.py::TestPauses::test_{APPROVAL}",
        "card": f"adk/test_pausing.py::TestPauses::test_{CARD}",
        "context per run": f"adk/test_matrix.py::test_{PRINCIPALS}",
    },
    "agent-framework": {
        "plain": f"agent_framework/test_adapter.py::test_{REFUSED}",
        "stream": f"agent_framework/test_adapter.py::test_{REFUSED}",
        "async": f"agent_framework/test_adapter.py::test_{REFUSED}",
        "many at once": f"agent_framework/test_matrix.py::test_{MANY}",
        "trimmed": f"agent_framework/test_changed.py::TestChanges::test_{CHANGED}",
        "summarised": f"agent_framework/test_changed.py::TestChanges::test_{FINISHED}",
        "only new items": "agent_framework/test_changed.py::test_nor_where_the_framework_compacts",
        "interrupt, resume here": "agent_framework/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "resume elsewhere": "agent_framework/test_matrix.py::test_a_call_that_was_interrupted_goes_on",
        "nested": f"agent_framework/test_inner.py::test_{INNER}",
        "handoff": "agent_framework/test_matrix.py::test_an_agent_that_goes_on_in_the_session_of_another_is_held",
        "approval": f"agent_framework/test_pausing.py::TestPauses::test_{APPROVAL}",
        "card": f"agent_framework/test_pausing.py::TestPauses::test_{CARD}",
        "context per run": f"agent_framework/test_matrix.py::test_{PRINCIPALS}",
    },
    "claude": {
        "plain": f"test_claude.py::test_{REFUSED}",
        "stream": "test_claude_matrix.py::test_a_streamed_run_is_held_like_any_other",
        "async": f"test_claude.py::test_{REFUSED}",
        "many at once": f"test_claude_matrix.py::test_{MANY}",
        "trimmed": f"test_claude_matrix.py::test_{KEPT}",
        "summarised": "test_claude_matrix.py::test_what_a_summary_says_is_not_the_users_word",
        "only new items": "test_claude_matrix.py::test_a_session_that_is_resumed_with_what_is_new_goes_on",
        "interrupt, resume here": "test_claude_pausing.py::test_a_call_that_was_interrupted_goes_on",
        "resume elsewhere": "test_claude_pausing.py::test_a_call_that_was_interrupted_goes_on",
        "nested": f"test_claude_matrix.py::test_{INNER}",
        "handoff": "test_claude_matrix.py::test_an_agent_that_goes_on_in_the_session_of_another_is_held",
        "approval": f"test_claude_matrix.py::test_{APPROVAL}",
        "card": f"test_claude_pausing.py::TestPauses::test_{CARD}",
        "context per run": f"test_claude_matrix.py::test_{PRINCIPALS}",
    },
}  # fmt: skip
"""By framework, the tests that each row rests on: a file, or one test of it, whatever its parameters."""
ROWS = (
    *("plain", "stream", "async", "many at once", "trimmed", "summarised", "only new items"),
    *("interrupt, resume here", "resume elsewhere", "nested", "handoff", "approval", "card", "context per run"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=f"of {', '.join(CELLS)}; all by default")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-lanes")
    parser.add_argument("--page", type=Path, help="the page whose matrix is to be written")
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
    """The cells of one framework."""
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
    """`yes` where all runs of a test passed, and there was one."""
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
    known = [name for name in CELLS if name in columns]
    head = ["", *(columns[name].get("version") or name for name in known)]
    rows = [[row, *(columns[name].get(row, "-") for name in known)] for row in ROWS]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def read_page(page: Path | None) -> dict[str, dict[str, str]]:
    """The columns of a page written before, by framework."""
    text = page.read_text(encoding="utf-8") if page else ""
    lines = text.partition(BEGIN)[2].partition(END)[0].splitlines()
    head, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")] or [[]]
    by_package = {LANES[name].versions[0]: name for name in CELLS}
    found: dict[str, dict[str, str]] = {}
    for at, version in enumerate(head[1:], 1):
        if (name := by_package.get(version.partition(" ")[0])) is not None:
            found[name] = {"version": version, **{row[0]: row[at] for row in rows[1:] if row[at] != "-"}}
    return found


def write_page(page: Path, columns: Mapping[str, Mapping[str, str]]) -> None:
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(columns)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
