-- Findings that an earlier audit (--base) does not have; ids are the same where a conversation was made anew.
SELECT finding, kind, name, agent, conversation, step, verdict, severity, because
FROM findings
WHERE finding NOT IN (SELECT finding FROM base.findings)
ORDER BY ordinal, step
