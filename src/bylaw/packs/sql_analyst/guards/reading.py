def credentials_read(call: read_rows | read_rows_by_query, facts):
    """Every table may be queried, except those that hold credentials: the schemas `auth` and `vault` and the server's lists of passwords."""
    return no_credentials(call.tables)


def credentials_copied(call: change_rows | change_rows_by_query | administer | administer_by_query, facts):
    """A copy of credentials counts as reading them, whatever the statement is called."""
    return no_credentials(call.sources)


def no_credentials(tables):
    for table in tables:
        name = table.split(".")[-1]
        if any(part in {"auth", "vault"} for part in table.split(".")[:-1]):
            return deny(f"{table} holds credentials")
        if name in {"pg_authid", "pg_auth_members", "pg_shadow", "pg_user_mapping", "pg_user_mappings", "pg_largeobject"}:
            return deny(f"{table} holds credentials")
    return permit()
