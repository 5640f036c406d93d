"""Packs in which nothing is changed before the customer has agreed to it, whatever their tools are."""

from bylaw import Pack


def agreed_pack(tools: str, consented: str = "told") -> Pack:
    """A pack of these tools; `consented` is what its one predicate about consent says, after that word."""
    return Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
            "policy.md": "Change nothing before the customer has agreed to it.\n",
            "policies.yaml": (
                "policies:\n - {id: ask, kind: rule, spans: [Change nothing before the customer has agreed to it.]}\n"
            ),
            "rules.yaml": (
                f"predicates: {{change: {{effect: write}}, agreed: {{consented: {consented}}}}}\n"
                "rules:\n  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
            ),
            "tools.yaml": tools,
        }
    )
