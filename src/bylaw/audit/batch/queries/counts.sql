-- The counts of summary.json: executed calls, then refused calls.
SELECT
    CASE WHEN executed IS FALSE THEN 'refused' ELSE 'executed' END AS what,
    count(*) AS calls,
    count(*) FILTER (verdict = 'violation') AS violations,
    count(*) FILTER (verdict = 'near_miss') AS near_misses,
    count(*) FILTER (verdict = 'uninformed') AS uninformed,
    count(*) FILTER (undecided) AS undecided,
    CASE WHEN what = 'executed' THEN (SELECT count(*) FROM findings WHERE kind = 'rule') END AS broken_rules
FROM calls
GROUP BY what
ORDER BY what
