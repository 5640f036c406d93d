"""The plain loop of the documentation, around OpenAI's client and a scripted model."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai", reason="the loop is around OpenAI's client")

import openai

from bylaw.shield import Shield
from tests.docs.walkthrough import ROOT
from tests.integrations.shop import USERS, Shop, check_log, check_talk, start_model, write_pack


def test_the_loop_of_the_documentation_works_as_written(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    (source,) = re.findall(r"^```python\n(def answer\(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shop = Shop()
    script, url = start_model(tmp_path)
    given: dict[str, Any] = {
        "json": json,
        "client": openai.OpenAI(base_url=url, api_key="none"),
        "MODEL": "c1",
        "TOOLS": [],
    }
    given["FUNCTIONS"] = {"get_order": shop.get_order, "refund": shop.refund}
    exec(source, given)
    messages: list[dict[str, object]] = []
    with Shield(write_pack(tmp_path)).session("c1") as session:
        for user in USERS:
            given["answer"](session, messages, user)
        check_talk(script, shop)
        log = tmp_path / "plain.jsonl"
        log.write_text(json.dumps({"id": "c1", "messages": messages}) + "\n")
        check_log(session, log)
