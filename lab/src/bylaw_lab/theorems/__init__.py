"""Search for a counterexample to the guarantees of `allow` (docs/reference/guarantees.md).

`generator` plays hostile conversations against a shield through its public API and keeps a list of true events. From
this list, `checker` decides whether each allowed call was permitted. The two share only `truth`, plain records.
"""
