-- Undecided calls, the most frequent question first: facts that only the user knows, and rules that code cannot settle.
SELECT kind, policy, coalesce(question, because) AS question, count(*) AS calls, count(DISTINCT ordinal) AS conversations
FROM open_questions
WHERE executed IS NOT FALSE
GROUP BY ALL
ORDER BY calls DESC, policy, question
