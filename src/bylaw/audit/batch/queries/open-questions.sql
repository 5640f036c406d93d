-- What is open, the commonest first: facts that only the user knows, and rules that code cannot tell broken from kept.
SELECT kind, policy, coalesce(question, because) AS question, count(*) AS calls, count(DISTINCT ordinal) AS conversations
FROM open_questions
WHERE executed IS NOT FALSE
GROUP BY ALL
ORDER BY calls DESC, policy, question
