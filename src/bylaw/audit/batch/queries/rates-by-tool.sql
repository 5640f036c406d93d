-- Per tool: executed calls by verdict.
SELECT
    tool,
    count(*) AS executed,
    count(*) FILTER (verdict = 'violation') AS violation,
    count(*) FILTER (verdict = 'near_miss') AS near_miss,
    count(*) FILTER (verdict = 'uninformed') AS uninformed,
    count(*) FILTER (verdict = 'inconclusive') AS inconclusive,
    count(*) FILTER (verdict = 'compliant') AS compliant
FROM calls
WHERE executed IS NOT FALSE
GROUP BY tool
ORDER BY violation DESC, near_miss DESC, tool
