-- Conversations with the most findings, the most severe first.
SELECT
    conversation,
    agent,
    count(*) FILTER (severity = 'high') AS high,
    count(*) FILTER (severity = 'medium') AS medium,
    count(*) FILTER (severity = 'low') AS low,
    list_sort(list(DISTINCT name)) AS what
FROM findings
WHERE executed IS NOT FALSE AND verdict IN ('violation', 'near_miss')
GROUP BY conversation, agent
ORDER BY high DESC, medium DESC, low DESC, conversation
LIMIT 50
