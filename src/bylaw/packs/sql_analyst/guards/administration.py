def administration(call: administer | administer_by_query, facts):
    """Tables are created and dropped in the schema `analysis` only; nothing else of the structure is changed.
    No table is altered or truncated.
    Rights and roles are not granted, revoked or altered.
    Data is not copied to or from files and programs.
    Settings of the server and of the session stay as they are.
    Code is not stored or run in the database."""
    tables = get(call, "tables", [])
    if call.kind in {"create", "drop"} and len(tables) > 0 and all(table.startswith("analysis.") and len(table.split(".")) == 2 for table in tables):
        return permit()
    return deny(f"{call.kind} is an administrator's statement, except to create or drop a table of the schema analysis")
