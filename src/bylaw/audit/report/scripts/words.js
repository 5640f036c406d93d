// The words of verdicts and reasons, and what the pack says: known to every drawing, whoever feeds it.

const VERDICTS = ["violation", "near_miss", "uninformed", "inconclusive", "compliant"];
// What a finding can be: a verdict on a call, or a rule that was broken.
const KINDS = ["violation", "near_miss", "broken", "uninformed", "inconclusive"];
const REASONS = ["claimed", "stale", "pending", "never_seen"];
const SEVERITIES = ["high", "medium", "low"];
const NAMES = new Map(Object.entries({
  violation: "violation", near_miss: "near-miss", uninformed: "uninformed", inconclusive: "undecided", compliant: "compliant", broken: "rule broken",
  new: "new", still: "known", waived: "waived", claimed: "only claimed by the user", stale: "out of date", pending: "changed in the same turn", never_seen: "never looked up",
}));
const named = (value) => NAMES.get(value) ?? value;

const policies = new Map();
const told = {out: "", hasDocument: false};

// Take in the policies that findings cite, the name of the folder that they are from, and whether there was a document.
function learn({policies: stated, out, document: hasDocument}) {
  for (const policy of stated || []) policies.set(policy.id, policy);
  if (out) told.out = out;
  if (hasDocument !== undefined) told.hasDocument = hasDocument;
}

function explainCommand(finding) {
  const quoted = (argument) => (/^[\w.\/:@#~+-]+$/.test(argument) ? argument : "'" + argument.replaceAll("'", "'\\''") + "'");
  return `bylaw explain ${quoted(told.out)} ${quoted(finding.trajectory)} ${finding.step ?? 0}`;
}
