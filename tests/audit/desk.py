"""A small desk with private fields, its pack, its database and its logs, for tests of what an audit writes."""

import base64
import html
import json
import re
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests import command

SECRET = 'Zoë "Zed" <z\\q@secret.example>/7'
"""An e-mail address as awkward as logs hold them: quotes, a backslash, brackets, a letter outside ASCII."""
UNSEEN = "hidden-0451@secret.example"
"""In the database only: no result ever shows it."""
PIN = 736251
SAID = "blue-elephant-9"
STREET = "12 Quiet Lane"
SECRETS = (SECRET, UNSEEN, str(PIN), SAID, STREET)
PROSE = "the weather in Lisbon is lovely"
"""Free text that no field marks: it goes only with --redact."""

PACK = {
    "pack.yaml": """
format: 1
name: desk
version: "1"
document: policy.md
""",
    "policy.md": """
# Desk

An account is closed only for a customer who is not a partner.
Letters go only to the address on file. Ask before you close an account.
""",
    "tools.yaml": """
refused: '^(?:Error: |\\{"error")'
tools:
  get_customer: {effect: read, parameters: {customer_id: string}}
  list_partners: {effect: read, parameters: {}}
  close_account: {effect: write, parameters: {customer_id: string, password: string?}, refused: '^Error'}
  send_letter: {effect: write, parameters: {customer_id: string, email: string, note: string?}}
""",
    "entities.yaml": """
entities:
  Customer:
    key: customer_id
    read: get_customer
    fields:
      email: {type: string, private: true}
      pin: {type: integer, private: true}
      address: {type: object, private: true}
      sick: {type: boolean, private: true}
      partner: boolean
  Login:
    key: []
    fields:
      password:
        {private: true, origin: user, from: [{argument: password}, {says: "password is (\\\\S+)"}]}
observations:
  get_customer: [{as: Customer}]
  list_partners:
    - {each: "$.*", as: Customer, key: {customer_id: $.id}, fields: {email: $key, partner: "=true"}}
""",
    "policies.yaml": """
policies:
  - id: no-partner
    kind: guard
    tools: [close_account]
    definition: An account is closed only for a customer who is not a partner.
    spans: [{quote: "An account is closed only for a customer who is not a partner."}]
    severity: high
  - id: own-address
    kind: guard
    tools: [send_letter]
    definition: Letters go only to the address on file.
    spans: [{quote: "Letters go only to the address on file."}]
    severity: low
  - id: ask-first
    kind: rule
    tools: [close_account]
    definition: Ask before you close an account.
    spans: [{quote: "Ask before you close an account."}]
    severity: medium
""",
    "rules.yaml": """
predicates:
  closes: {tool: close_account, description: the act closes an account}
  spoke: {message: true, description: the act is a message}
rules:
  - {id: ask-first, formula: "FOR EACH customer_id: ALWAYS (closes IMPLIES ONCE spoke)"}
""",
    "cases/desk.yaml": """
- policy: no-partner
  call: {close_account: {customer_id: C1}}
  facts: {"Customer[C1]": {partner: false}}
  want: permit
- policy: no-partner
  call: {close_account: {customer_id: C1}}
  facts: {"Customer[C1]": {partner: true, email: a@b.example}}
  want: deny
- policy: own-address
  call: {send_letter: {customer_id: C1, email: a@b.example}}
  facts: {"Customer[C1]": {email: a@b.example}}
  want: permit
- policy: own-address
  call: {send_letter: {customer_id: C1, email: a@b.example}}
  facts: {"Customer[C1]": {email: c@d.example, pin: 123456}}
  want: deny
""",
    "guards/desk.py": """
def no_partner(call, facts):
    customer = facts.Customer(call.customer_id)
    if customer.partner:
        return deny(f"{customer.email} of {call.customer_id} is a partner")
    return permit()


def own_address(call, facts):
    customer = facts.Customer(call.customer_id)
    if customer.email != call.email:
        return deny(f"the address on file is {customer.email}, with pin {customer.pin}")
    return permit()
""",
}

WORLD = {
    "Customer": [
        {
            "customer_id": "C1",
            "email": SECRET,
            "pin": PIN,
            "partner": False,
            "sick": True,
            "address": {"street": STREET},
        },
        {"customer_id": "C2", "email": UNSEEN, "pin": PIN, "partner": True, "sick": False, "address": {}},
    ]
}


def talk(name: str, *steps: Any, agent: str = "desk-bot") -> dict[str, Any]:
    """A conversation in OpenAI's format: texts by user and agent in turn, calls as (tool, arguments, result)."""
    messages: list[dict[str, Any]] = []
    role = "user"
    for step in steps:
        if isinstance(step, str):
            messages.append({"role": role, "content": step})
            role = "assistant" if role == "user" else "user"
            continue
        tool, arguments, result = step
        id = f"call_{len(messages)}"
        function = {"name": tool, "arguments": json.dumps(arguments)}
        calls = [{"id": id, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        content = result if isinstance(result, str) else json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": id, "content": content})
        role = "user"
    return {"id": name, "agent": agent, "messages": messages}


def looked_up() -> dict[str, Any]:
    return {
        "customer_id": "C1",
        "email": SECRET,
        "pin": PIN,
        "partner": False,
        "sick": True,
        "address": {"street": STREET},
    }


def secretive() -> list[dict[str, Any]]:
    """Conversations with the secrets in messages, arguments, results, reasons, names and claims."""
    return [
        talk(
            f"mail from {SECRET}",
            f"I am {SECRET} and {PROSE}. My password is {SAID}.",
            ("get_customer", {"customer_id": "C1"}, looked_up()),
            ("send_letter", {"customer_id": "C1", "email": "x@y.example", "note": f"for {SECRET.upper()}"}, "ok"),
            f"Sent to {html.escape(SECRET)}, {quote(SECRET)}, {json.dumps(json.dumps(SECRET))}; you live in {STREET}.",
        ),
        talk("seldom", "Close C2.", ("close_account", {"customer_id": "C2"}, "ok")),
        talk(
            "claimed",
            f"My address is {UNSEEN}.",
            ("send_letter", {"customer_id": "C2", "email": UNSEEN}, f"Error: {PIN} is wrong"),
            ("send_letter", {"customer_id": "C2", "email": UNSEEN}, {"echo": {"pin": PIN, "sick": True}}),
        ),
        talk(
            "partners",
            "Who are they? Close C1.",
            ("list_partners", {}, {SECRET: {"id": "C1"}, UNSEEN: {"id": "C2"}}),
            ("close_account", {"customer_id": "C1", "password": SAID}, "ok"),
        ),
    ]


def write_desk(folder: Path, talks: list[dict[str, Any]] | None = None) -> Path:
    """The pack, the database and the logs in `folder`; the path of the logs."""
    for name, text in PACK.items():
        path = folder / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip(), encoding="utf-8")
    (folder / "world.json").write_text(json.dumps(WORLD), encoding="utf-8")
    return write_logs(folder / "logs.jsonl", secretive() if talks is None else talks)


def write_logs(path: Path, talks: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in talks), encoding="utf-8")
    return path


def bylaw(folder: Path, *arguments: str, status: int | None = 0) -> str:
    """What `bylaw` prints, run in `folder`; errors included."""
    done = command.bylaw(folder, *arguments)
    said = done.stdout + done.stderr
    assert status is None or done.returncode == status, said
    return said


def spellings(secret: str) -> set[bytes]:
    """A secret as files may hold it: plain, in JSON once or twice, in HTML, in an address, in base64."""
    once = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    texts = {secret, secret.upper(), *once, html.escape(secret), quote(secret)}
    for text in once:
        texts |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return {text.encode() for text in texts} | {base64.b64encode(secret.encode()).rstrip(b"=")}


def everything(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, and what is packed inside of pages."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = found[str(path)] = path.read_bytes()
            for number, block in enumerate(re.findall(rb'type="text/plain" id="[^"]*">([^<]*)<', data)):
                found[f"{path} block {number}"] = zlib.decompress(base64.b64decode(block))
    return found
