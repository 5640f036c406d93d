def credentials_read(call: read_rows | read_rows_by_query | read_for_indexes, facts):
    """Every table may be queried, except those that hold credentials: the schemas `auth` and `vault` and the server's lists of passwords.
    Of the server's own tables, those that describe tables, columns, indexes and how much they are used may be queried."""
    return no_credentials(call.tables)


def credentials_copied(call: change_rows | change_rows_by_query | administer | administer_by_query, facts):
    """A copy of credentials counts as reading them, whatever the statement is called."""
    return no_credentials(get(call, "sources", []))


def no_credentials(tables):
    for table in tables:
        parts = table.split(".")
        if any(lower(part) in {"auth", "vault", '"auth"', '"vault"'} for part in parts[:-1]):
            return deny(f"{table} holds credentials")
        if is_of_server(parts) and not describes(parts[-1]):
            return deny(f"{table} may hold credentials of the server, or values of tables that do")
    return permit()


def is_of_server(parts):
    name = lower(parts[-1])
    if any(name.startswith(each) for each in ["pg_", '"pg_', "sqlite_", '"sqlite_', "sys"]):
        return True
    return any(lower(part) in {"pg_catalog", "information_schema", "mysql", "sys", "performance_schema", "master", "msdb", '"pg_catalog"', '"information_schema"', '"mysql"', '"sys"', '"performance_schema"'} for part in parts[:-1])


def describes(name):
    if name in {"tables", "columns", "views", "schemata", "table_constraints", "key_column_usage", "constraint_column_usage", "referential_constraints", "check_constraints", "sequences", "routines", "parameters", "triggers", "table_privileges", "column_privileges", "domains"}:
        return True
    if name in {"pg_class", "pg_namespace", "pg_attribute", "pg_attrdef", "pg_type", "pg_index", "pg_indexes", "pg_constraint", "pg_tables", "pg_views", "pg_matviews", "pg_sequences", "pg_sequence", "pg_description", "pg_depend", "pg_proc", "pg_trigger", "pg_enum", "pg_inherits", "pg_extension", "pg_available_extensions", "pg_database", "pg_am", "pg_operator", "pg_collation", "pg_language", "pg_policies", "pg_locks", "pg_timezone_names", "pg_partitioned_table", "pg_statio_user_tables", "sqlite_master", "sqlite_schema"}:
        return True
    return name in {"pg_stat_user_tables", "pg_stat_user_indexes", "pg_stat_all_tables", "pg_stat_all_indexes", "pg_stat_database", "pg_stat_bgwriter"}
