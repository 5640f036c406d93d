"""Runs one library through the script, with the code of the guide: `python drive.py STACK SCRIPT PAGE OUT`."""

import ast
import asyncio
import contextlib
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from script import Script, serve

_BLOCK = re.compile(r"^<!-- stack: (\S+) (\S+) (before|after) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Page:
    """The guide's code blocks for one stack. All run in one namespace, as in one program."""

    def __init__(self, path: Path, stack: str) -> None:
        found = _BLOCK.findall(path.read_text())
        # The code for any stack comes last on the page, but is needed first.
        self._blocks = [each for name in ("any", stack) for each in found if each[0] == name]
        self.namespace: dict[str, Any] = {}

    def run(self, when: str, *names: str, **given: Any) -> None:
        """Run the blocks of a moment, or those with given names. `given` holds the variables that the page expects."""
        asyncio.run(self.run_async(when, *names, **given))

    async def run_async(self, when: str, *names: str, **given: Any) -> None:
        self.namespace |= given
        for _, name, moment, source in self._blocks:
            if moment == when and (not names or name in names):
                code = compile(source, f"page: {name}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                outcome = eval(code, self.namespace)
                if asyncio.iscoroutine(outcome):
                    await outcome


def main() -> None:
    stack, script, page, out = sys.argv[1:]
    for name in ("OTEL_SDK_DISABLED", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        os.environ.pop(name, None)
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "0", "DO_NOT_TRACK": "1"}
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with contextlib.chdir(out):
        opened = Script(Path(script))
        drive = importlib.import_module(f"stack_{stack.replace('-', '_')}").drive
        drive(opened, serve(opened), Page(Path(page), stack))


if __name__ == "__main__":
    main()
