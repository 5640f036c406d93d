def own_tables(call: change_rows | change_rows_by_query, facts):
    """Rows are inserted, updated and deleted only in tables of the schema `analysis`; all other tables are read-only.
    This also holds for changes inside a query, and for statements that are only explained."""
    for table in call.tables:
        if not table.startswith("analysis.") or len(table.split(".")) != 2:
            return deny(f"{table} is read-only; only tables of the schema analysis may be changed")
    return permit()


def bounded(call: change_rows | change_rows_by_query, facts):
    """An update or delete names its rows: without a value of a key that tools.yaml declares it is refused, and for a table without such a key a person is asked.
    A condition that is always true is no condition."""
    if call.kind != "insert" and not call.bounded:
        return deny(f"the {call.kind} gives no value of a key")
    return permit()


def ten_changes(call: change_rows | change_rows_by_query, facts):
    """At most ten statements of a conversation change rows."""
    if done("change_rows") + done("change_rows_by_query") >= 10:
        return deny("ten statements have changed rows in this conversation")
    return permit()
