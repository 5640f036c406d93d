-- The counts of summary.json: executed calls, then refused calls.
SELECT
    what,
    count(ordinal) AS calls,
    count(*) FILTER (verdict = 'violation') AS violations,
    count(*) FILTER (verdict = 'near_miss') AS near_misses,
    count(*) FILTER (verdict = 'uninformed') AS uninformed,
    count(*) FILTER (undecided) AS undecided,
    CASE WHEN what = 'executed' THEN (SELECT count(*) FROM findings WHERE kind = 'rule') END AS broken_rules
FROM (VALUES ('executed', FALSE), ('refused', TRUE)) AS kinds (what, is_refused)
LEFT JOIN calls ON (executed IS FALSE) = is_refused
GROUP BY what
ORDER BY what
