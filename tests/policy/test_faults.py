"""Every kind of fault in a pack is reported with its place, never as a crash, and all of them together."""

from pathlib import Path

import pytest

from tests.policy.shop import FILES, edited, faults, load, write_pack

TOOL = "    changes: [Order.state]\n"
FIELD = "      paid: boolean\n"
SEEN = "    - {as: Order, absent: not found}\n"
SPAN = '    spans: [{quote: "Only paid orders are shipped."}]\n'
CASE = '  facts: {"Order[O1]": {paid: true}}\n'

# What is changed, what the first fault must say. Lines are those of the changed file.
FAULTS: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    # pack.yaml
    "a format of the future": (edited("pack.yaml", "format: 1", "format: 2"), "BY405 pack.yaml:1: format `2` is not 1"),
    "no name": (edited("pack.yaml", "name: shop\n", ""), "BY405 pack.yaml: the pack has no name"),
    "no document": (edited("pack.yaml", "document: policy.md\n", ""), "BY405 pack.yaml: the pack has no document"),
    "a document that is not there": (
        {"policy.md": None},
        "BY405 pack.yaml:5: document `policy.md` does not exist",
    ),
    "a binary document": ({"policy.md": b"\xff\xfe\x00"}, "BY405 pack.yaml:5: document `policy.md` is not UTF-8 text"),
    "a clock that is none": (
        edited("pack.yaml", "2025-01-01T10:00:00", "noon"),
        "BY405 pack.yaml:6: `noon` is not a time",
    ),
    "an unknown criterion": (
        edited("pack.yaml", "now:", "criterion: lenient\nnow:"),
        "BY408 pack.yaml:6: `criterion` cannot be `lenient`",
    ),
    "a base that is nowhere": (edited("pack.yaml", "now:", "base: ../none\nnow:"), "BY405 pack.yaml:6: base `../none`"),
    "a slip in the manifest": (
        edited("pack.yaml", "title:", "titel:"),
        "BY408 pack.yaml:4: `titel` is not a known key; known: about, base, criterion",
    ),
    "a manifest that is a list": ({"pack.yaml": "- format: 1\n"}, "BY408 pack.yaml:1: a list is not allowed here"),
    # tools.yaml
    "an unknown effect": (
        edited("tools.yaml", "  ship:\n    effect: write", "  ship:\n    effect: delete"),
        "BY406 tools.yaml:9: effect of `ship` must be read, write or none",
    ),
    "a read that prepares other calls": (
        edited("tools.yaml", "  ship:\n    effect: write", "  ship:\n    effect: read\n    prepares: true"),
        "BY406 tools.yaml:10: `prepares` is for writes, but the effect of `ship` is read",
    ),
    "tools as a list": ({"tools.yaml": "tools: [ship]\n"}, "BY408 tools.yaml:1: `tools` must be a mapping, not a list"),
    "a tool that is a word": (
        {"tools.yaml": "tools:\n  ship: write\n"},
        "BY408 tools.yaml:2: `ship` must be a mapping, not `write`",
    ),
    "a slip in a tool": (
        edited("tools.yaml", TOOL, "    chnages: []\n"),
        "BY408 tools.yaml:11: `chnages` is not a known key",
    ),
    "parameters as a list": (
        edited("tools.yaml", '{order_id: string, note: "string?"}', "[order_id]"),
        "BY408 tools.yaml:10: `parameters` must be a mapping, not a list",
    ),
    "changes of no entity": (
        edited("tools.yaml", "[Order.state]", "[Ordr.state]"),
        "BY404 tools.yaml:11: `Ordr` is not an entity; did you mean `Order`?",
    ),
    "changes of no field": (
        edited("tools.yaml", "[Order.state]", "[Order.stat]"),
        "BY404 tools.yaml:11: `Order` has no field `stat`",
    ),
    "changes that are a word": (
        edited("tools.yaml", "[Order.state]", "Order.state"),
        "BY408 tools.yaml:11: `changes` must be a list, not `Order.state`",
    ),
    "a path that does not parse": (
        edited("tools.yaml", "[Order.state]", '[{as: Order, each: "$args.[", fields: [state]}]'),
        "BY404 tools.yaml:11: path `$args.[` cannot be read from column 6",
    ),
    "an effect on nothing": (
        edited("tools.yaml", TOOL, "    effects: [{as: Parcel}]\n"),
        "BY404 tools.yaml:11: `Parcel` is not an entity",
    ),
    "an effect that moves nowhere": (
        edited("tools.yaml", TOOL, "    effects: [{as: Order, set: {total: {times: 2}}}]\n"),
        "BY404 tools.yaml:11: `total` has no operation",
    ),
    "an effect that moves in no way": (
        edited("tools.yaml", TOOL, "    effects: [{as: Order, set: {total: {}}}]\n"),
        "BY404 tools.yaml:11: `total` has no operation",
    ),
    "an effect out of nothing": (
        edited(
            "tools.yaml", TOOL, "    effects: [{as: Order, set: {total: {of: Parcel.price, key: $args.order_id}}}]\n"
        ),
        "BY404 tools.yaml:11: `Parcel.price` is not a field",
    ),
    "a pattern of refusal that is none": (
        edited("tools.yaml", TOOL, '    refused: "("\n'),
        "BY409 tools.yaml:11: `(` is not a valid pattern",
    ),
    "a pattern of refusal that every result has": (
        edited("tools.yaml", TOOL, "    surely_refused: 'Sorry|'\n"),
        "BY409 tools.yaml:11: the pattern matches every result",
    ),
    # entities.yaml
    "an unknown type": (
        edited("entities.yaml", FIELD, "      paid: bool\n"),
        "BY404 entities.yaml:6: `bool` is not a type",
    ),
    "a type in a list": (
        edited("entities.yaml", FIELD, "      paid: [boolean]\n"),
        "BY404 entities.yaml:6: a list may contain only the values of an enumeration, but `boolean` is a type",
    ),
    "a slip in a field": (
        edited("entities.yaml", FIELD, "      paid: {typ: boolean}\n"),
        "BY408 entities.yaml:6: `typ` is not a known key",
    ),
    "an unknown origin": (
        edited("entities.yaml", FIELD, "      paid: {type: boolean, origin: oracle}\n"),
        "BY404 entities.yaml:6: origin `oracle` is not one of system, user, context",
    ),
    "a way to nothing": (
        edited("entities.yaml", FIELD, "      paid: {type: boolean, origin: user, from: [{value: true}]}\n"),
        "BY404 entities.yaml:6: `from` needs `argument` or `says`",
    ),
    "a saying that is no pattern": (
        edited("entities.yaml", FIELD, '      paid: {type: boolean, origin: user, from: [{says: "("}]}\n'),
        "BY409 entities.yaml:6: `(` is not a valid pattern",
    ),
    "a saying that looks ahead": (
        edited("entities.yaml", FIELD, '      paid: {type: boolean, origin: user, from: [{says: "yes(?! but)"}]}\n'),
        "BY409 entities.yaml:6: `yes(?! but)` is not a valid pattern: invalid perl operator: (?!; look-ahead",
    ),
    "what is not said is no pattern": (
        edited("entities.yaml", FIELD, '      paid: {type: boolean, origin: user, from: [{says: a, but_not: "("}]}\n'),
        "BY409 entities.yaml:6: `(` is not a valid pattern",
    ),
    "what is not said of an argument": (
        edited(
            "entities.yaml", FIELD, "      paid: {type: boolean, origin: user, from: [{argument: a, but_not: b}]}\n"
        ),
        "BY404 entities.yaml:6: `but_not` needs `says`",
    ),
    "claims as a list": (
        edited("entities.yaml", FIELD, "      paid: {type: boolean, claims: [paid it]}\n"),
        "BY408 entities.yaml:6: `claims` must be a mapping, not a list",
    ),
    "a look-up that is no tool": (
        edited("entities.yaml", "read: get_order", "read: get_orders"),
        "BY404 entities.yaml:4: `get_orders` is not a tool",
    ),
    "a look-up by an argument that is none": (
        edited("entities.yaml", "read: get_order", "read: {tool: find_orders, arguments: {order_id: order_id}}"),
        "BY404 entities.yaml:4: `find_orders` has no argument `order_id`",
    ),
    "a look-up by a key that is none": (
        edited("entities.yaml", "read: get_order", "read: {tool: get_order, arguments: {order_id: number}}"),
        "BY404 entities.yaml:4: `number` is not a key",
    ),
    "freshness that is no number": (
        edited("entities.yaml", "read: get_order", "fresh_for: a while\n    read: get_order"),
        "BY408 entities.yaml:4: `fresh_for` must be a number, not `a while`",
    ),
    "an observation of nothing": (
        edited("entities.yaml", SEEN, "    - {as: Parcel}\n"),
        "BY404 entities.yaml:13: `Parcel` is not an entity",
    ),
    "an observation as nothing": (
        edited("entities.yaml", SEEN, "    - {absent: not found}\n"),
        "BY404 entities.yaml:13: an observation requires `as:`",
    ),
    "an observation that is a number": (
        edited("entities.yaml", SEEN, "    - 5\n"),
        "BY408 entities.yaml:13: item 1 of `get_order` must be a mapping, not `5`",
    ),
    "an observation of no tool": (
        edited("entities.yaml", "  find_orders:\n", "  search:\n"),
        "BY404 entities.yaml:14: `search` is not a tool",
    ),
    "an observed field that is none": (
        edited("entities.yaml", "absent: not found", "fields: {colour: $.colour}"),
        "BY404 entities.yaml:13: `Order` has no field `colour`",
    ),
    "an observed key that is none": (
        edited("entities.yaml", "absent: not found", "key: {number: $.number}"),
        "BY404 entities.yaml:13: `number` is not a key of `Order`",
    ),
    "a condition without a value": (
        edited("entities.yaml", "absent: not found", "when: {path: $.kind}"),
        "BY404 entities.yaml:13: `when` needs `is`, `in` or `exists`",
    ),
    "a section of its own": (
        {"entities.yaml": FILES["entities.yaml"] + "things: {}\n"},
        "BY408 entities.yaml:16: `things` is not a known key",
    ),
    # policies.yaml
    "a policy without an id": (
        edited("policies.yaml", "  - id: only-paid\n    kind", "  - kind"),
        "BY406 policies.yaml:2: a policy needs an id",
    ),
    "a policy that stands twice": (
        edited("policies.yaml", "- id: no-gifts", "- id: only-paid"),
        "BY406 policies.yaml:8: policy `only-paid` is listed twice",
    ),
    "an unknown kind": (
        edited("policies.yaml", "kind: conversation", "kind: talk"),
        "BY406 policies.yaml:14: kind `talk` of `say-it` is not one of guard, rule",
    ),
    "an unknown severity": (
        edited("policies.yaml", "severity: high", "severity: fatal"),
        "BY406 policies.yaml:7: severity of `only-paid` must be high, medium or low, not `fatal`",
    ),
    "a policy for no tool": (
        edited("policies.yaml", "tools: [ship]", "tools: [send]"),
        "BY406 policies.yaml:4: `send` of policy `only-paid` is not a tool",
    ),
    "a guard that binds no tool": (
        edited("policies.yaml", "    tools: [ship]\n", ""),
        "BY406 policies.yaml:2: policy `only-paid` applies to no tool",
    ),
    "a policy that cites nothing": (
        edited("policies.yaml", SPAN, ""),
        "BY406 policies.yaml:2: policy `only-paid` cites no sentence",
    ),
    "a span of nothing": (
        edited("policies.yaml", SPAN, "    spans: [{document: policy.md}]\n"),
        "BY406 policies.yaml:6: a span of `only-paid` needs `quote`, or `line` and `digest`",
    ),
    "a word that no enumeration has, under a name of its own": (
        edited(
            "guards/shop.py",
            "    if facts.Order(call.order_id).paid:\n",
            "    state = facts.Order(call.order_id).state\n    if state == 'snet':\n",
        ),
        "BY201 guards/shop.py:3: `state` is never `snet`; did you mean `sent`?",
    ),
    "a section for a guard": (
        edited("policies.yaml", SPAN, "    spans: [{heading: Shipping}]\n"),
        "BY406 policies.yaml:6: a span of `only-paid` is a whole section; quote the sentence",
    ),
    "a digest read as a number": (
        edited("policies.yaml", SPAN, "    spans: [{line: 5, digest: 123456789012}]\n"),
        "BY408 policies.yaml:6: `digest` must be text, not `123456789012`; put the value in quotes",
    ),
    "accepted by nobody": (
        edited("policies.yaml", SPAN, SPAN + "    unenforced: {reason: later}\n"),
        "BY406 policies.yaml:2: `unenforced` of `only-paid` does not name the person who accepts it",
    ),
    "a slip in a policy": (
        edited("policies.yaml", "severity: high", "sevrity: high"),
        "BY408 policies.yaml:7: `sevrity` is not a known key",
    ),
    # guards
    "a guard outside the language": (
        edited("guards/shop.py", "if facts.Order(call.order_id).paid:", "while facts.Order(call.order_id).paid:"),
        "BY201 guards/shop.py:2: ",
    ),
    "a guard over a field that is none": (
        edited("guards/shop.py", "(call.order_id).paid", "(call.order_id).payed"),
        "BY201 guards/shop.py:2: `Order` has no field `payed`",
    ),
    "a guard over an argument that is none": (
        edited("guards/shop.py", "facts.Order(call.order_id).paid", "facts.Order(call.number).paid"),
        "BY201 guards/shop.py:2: no tool in scope has the argument `number`",
    ),
    "a guard that enforces no policy": (
        {"guards/more.py": "def only_blue(call, facts):\n    return permit()\n"},
        "BY405 guards/more.py:1: guard `only_blue` belongs to no policy",
    ),
    "a second guard": (
        {"guards/more.py": "def only_paid(call, facts):\n    return permit()\n"},
        "BY405 guards/shop.py:1: policy `only-paid` has a second guard; the first guard is at guards/more.py:1",
    ),
    "a guard for talk": (
        {"guards/more.py": "def say_it(call, facts):\n    return permit()\n"},
        "BY405 guards/more.py:1: policy `say-it` is of kind conversation, not guard",
    ),
    "a guard that is binary": ({"guards/more.py": b"\xff\xfe"}, "BY402 guards/more.py: not UTF-8 text"),
    # rules.yaml
    "a formula that does not parse": (
        {"rules.yaml": "predicates: {shipped: {tool: ship}}\nrules:\n  - {id: say-it, formula: ALWAYS (shipped}\n"},
        "BY301 rules.yaml:3: column 8: this `(` is never closed",
    ),
    "a rule over nothing": (
        {"rules.yaml": "predicates: {}\nrules:\n  - {id: say-it, formula: ALWAYS shipped}\n"},
        "BY303 rules.yaml:3: rule `say-it` uses `shipped`, which is not a predicate",
    ),
    "a weight too large to add up": (
        {"rules.yaml": "predicates: {s: {tool: ship}}\nrules:\n  - {id: say-it, formula: ALWAYS s, weight: -1e308}\n"},
        "BY303 rules.yaml:3: the weight of rule `say-it` is too large; use at most 1,000,000, or make",
    ),
    "a learned weight too large to add up": (
        {
            "rules.yaml": "predicates: {s: {tool: ship}}\nrules:\n  - {id: say-it, formula: ALWAYS s}\n",
            "weights.yaml": "weights:\n  say-it: 1e308\n",
        },
        "BY303 weights.yaml:2: the weight of rule `say-it` is too large; use at most 1,000,000, or make",
    ),
    "a weight that is no number": (
        {"rules.yaml": "predicates: {shipped: {tool: ship}}\nrules:\n  - {id: say-it, formula: x, weight: much}\n"},
        "BY408 rules.yaml:3: `weight` must be a number, not `much`",
    ),
    # cases
    "a case that is a number": (
        {"cases/shop.yaml": "- 5\n"},
        "BY408 cases/shop.yaml:1: item 1 of `cases` must be a mapping, not `5`",
    ),
    "a slip in a case": (
        edited("cases/shop.yaml", CASE, CASE.replace("facts", "fact")),
        "BY408 cases/shop.yaml:4: `fact` is not a known key",
    ),
    "facts that are a word": (
        edited("cases/shop.yaml", CASE, "  facts: paid\n"),
        "BY408 cases/shop.yaml:4: `facts` must be a mapping, not `paid`",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_its_place(name: str, tmp_path: Path) -> None:
    changes, wanted = FAULTS[name]
    found = faults(tmp_path, changes)
    assert any(fault.startswith(wanted) for fault in found), "\n".join(found)


def test_the_pack_these_faults_spoil_is_sound(tmp_path: Path) -> None:
    pack = load(tmp_path)
    assert list(pack.guards) == ["only-paid", "no-gifts"]
    assert pack.by_tool.keys() == {"ship", "refund"}


def test_all_faults_of_all_files_are_reported_together(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        {
            **edited("pack.yaml", "format: 1", "format: 3"),
            **edited("tools.yaml", "[Order.state]", "[Order.stat]"),
            **edited("entities.yaml", FIELD, "      paid: bool\n"),
            **edited("policies.yaml", "severity: high", "severity: fatal"),
            **edited("guards/shop.py", ".gift", ".present"),
            "rules.yaml": "predicates: {}\nrules: [{id: say-it, formula: ALWAYS x}]\n",
            "cases/shop.yaml": "- 5\n",
            "cases/more.yaml": "- {note: &a x}\n- *a\n",
        },
    )
    places = {fault.split()[1].split(":")[0] for fault in found}
    assert places == {
        "pack.yaml",
        "tools.yaml",
        "entities.yaml",
        "policies.yaml",
        "guards/shop.py",
        "rules.yaml",
        "cases/shop.yaml",
        "cases/more.yaml",
    }


def test_a_guard_with_a_fault_is_one_fault(tmp_path: Path) -> None:
    found = faults(tmp_path, edited("guards/shop.py", ".gift", ".present"))
    assert len(found) == 1
    assert found[0].startswith("BY201 guards/shop.py:8: `Order` has no field `present`")


@pytest.mark.parametrize("kind", ["guard", "rule"])
def test_what_nothing_enforces_must_be_accepted_by_name(kind: str, tmp_path: Path) -> None:
    listed = f"""\
  - id: to-the-owner
    kind: {kind}
    tools: [ship]
    definition: Nothing is shipped to somebody else.
    spans: [{{quote: "Nothing is shipped to somebody else."}}]
"""
    found = faults(tmp_path / "a", {"policies.yaml": FILES["policies.yaml"] + listed})
    assert found == [
        f"BY405 policies.yaml:17: policy `to-the-owner` has no check; write its {kind}, "
        "or accept this by name: `bylaw review --unenforced to-the-owner`, or "
        "`unenforced: {accepted_by: ..., reason: ...}`"
    ]
    accepted = listed + "    unenforced: {accepted_by: Ada, reason: addresses come next month}\n"
    pack = load(tmp_path / "b", {"policies.yaml": FILES["policies.yaml"] + accepted})
    unenforced = pack.policies["to-the-owner"].unenforced
    assert unenforced is not None
    assert unenforced.accepted_by == "Ada"


def test_a_rule_enforces_its_policy(tmp_path: Path) -> None:
    policies = FILES["policies.yaml"].replace("kind: conversation", "kind: rule")
    rules = "predicates: {shipped: {tool: ship}}\nrules: [{id: quiet, policy: say-it, formula: ALWAYS NOT shipped}]\n"
    assert load(tmp_path, {"policies.yaml": policies, "rules.yaml": rules}).book.rules[0].policy == "say-it"


def test_a_folder_without_a_manifest_is_no_pack(tmp_path: Path) -> None:
    from bylaw.errors import UsageError
    from bylaw.pack import load_pack

    with pytest.raises(UsageError, match="so it is not a pack"):
        load_pack(write_pack(tmp_path, {"pack.yaml": None}))


def test_a_field_may_default_to_an_empty_record(tmp_path: Path) -> None:
    from bylaw.facts.ledger import Ledger

    labels = "total: money\n      labels: {type: string, default: {}}"
    schema = load(tmp_path, edited("entities.yaml", "total: money", labels)).schema
    field, ledger = schema.entities["Order"].fields["labels"], Ledger(schema)
    ledger.said.append((0, "it is fragile"))
    assert field.default == {}
    assert ledger.claim(field, "fragile", 1) == (0, "fragile")
