"""`bylaw prompt`: instructions for the system prompt of a shielded agent."""

import json
from pathlib import Path

from tests.command import bylaw


def test_the_prompt_is_printed_as_markdown_and_as_data(tmp_path: Path) -> None:
    text = bylaw(tmp_path, "prompt", "clinic").stdout
    told = json.loads(bylaw(tmp_path, "prompt", "clinic", "--json").stdout)
    assert told["text"].strip() == text.strip()
    (waive,) = (each for each in told["writes"] if each["tool"] == "waive_invoice")
    assert waive["look_ups"] == ["get_patient(patient_id)", "get_invoice(invoice_id)"]
    assert f"- Ask: `{waive['questions'][0]}`" in text


def test_a_pack_without_writes_to_confirm_says_so(tmp_path: Path) -> None:
    for name, written in {
        "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\n",
        "policy.md": "Be kind.\n",
        "policies.yaml": "policies: [{id: kind, kind: knowledge, spans: [Be kind.]}]\n",
        "tools.yaml": "tools: {look: {effect: read}}\n",
    }.items():
        (tmp_path / name).write_text(written)
    done = bylaw(tmp_path, "prompt", ".")
    assert (done.returncode, done.stdout) == (0, "no instructions: no write requires a look-up or a confirmation\n")
