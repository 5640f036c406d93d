"""What stands in a guard for a field whose value is not known: an Unknown that knows what values the field may have."""

from collections.abc import Mapping
from typing import Any

from bylaw.facts.entity import Fact, Field, Origin
from bylaw.facts.unknown import BranchDecider, Unknown, UnknownBool
from bylaw.facts.value_set import EITHER, TRUE
from bylaw.facts.variable import DAY, Variable


def unknown_fact(
    decider: BranchDecider, field: Field, name: str, needs: Mapping[Fact, Origin], thing: Any = None
) -> Unknown:
    """The Unknown that stands for a field whose value is not known."""
    match field.type:
        case "boolean":
            whose = (thing[0], thing[1]) if field.name == "exists" and thing is not None else None
            return UnknownBool(decider, Variable(name, EITHER, None, needs, "boolean", whose), TRUE)
        case "enum":
            return Unknown(decider, name, needs, "text", words=frozenset(field.values))
        case "string":
            return Unknown(decider, name, needs, "text")
        case "integer":
            return Unknown(decider, name, needs, "number", step=1)
        case "number":
            return Unknown(decider, name, needs, "number", exact=False)
        case "money":
            return Unknown(decider, name, needs, "number")
        case "date":
            return Unknown(decider, name, needs, "time", step=DAY)
        case "datetime":
            return Unknown(decider, name, needs, "time", step=1)
        case "list":
            return Unknown(decider, name, needs, "list")
        case "object":
            return Unknown(decider, name, needs, "record")
