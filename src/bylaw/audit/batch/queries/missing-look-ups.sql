-- Look-ups missing from near-miss and uninformed calls: how many calls, and why the facts were missing.
SELECT
    coalesce(lookup, '(' || entity || ')') AS lookup,
    count(DISTINCT (ordinal, step)) AS calls,
    count(DISTINCT ordinal) AS conversations,
    list_sort(list(DISTINCT tool)) AS tools,
    count(DISTINCT (ordinal, step)) FILTER (reason = 'never_seen') AS never_seen,
    count(DISTINCT (ordinal, step)) FILTER (reason = 'claimed') AS claimed,
    count(DISTINCT (ordinal, step)) FILTER (reason = 'stale') AS stale
FROM missing_facts
WHERE counts
GROUP BY 1
ORDER BY calls DESC, lookup
