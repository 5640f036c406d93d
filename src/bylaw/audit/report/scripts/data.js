// What the page holds: one block read at once, and compressed blocks that are unpacked when a finding is opened.

const data = JSON.parse(document.getElementById("data").textContent);
const word = (position) => data.words[position];
const policies = new Map(data.policies.map((policy) => [policy.id, policy]));
const held = new Map(data.held.map(([trajectory, block]) => [word(trajectory), block]));
const VERDICTS = ["violation", "near_miss", "uninformed", "inconclusive", "compliant"];
// What a finding can be: a verdict on a call, or a rule that was broken.
const KINDS = ["violation", "near_miss", "broken", "uninformed", "inconclusive"];
const REASONS = ["claimed", "stale", "pending", "never_seen"];
const SEVERITIES = ["high", "medium", "low"];
const NAMES = new Map(Object.entries({
  violation: "violation", near_miss: "near-miss", uninformed: "uninformed", inconclusive: "inconclusive", compliant: "compliant", broken: "rule broken",
  claimed: "taken from the user", stale: "out of date", pending: "changed in the same turn", never_seen: "never looked up",
}));
const named = (value) => NAMES.get(value) ?? value;

const state = {open: null};

const findings = data.findings.map((row) => {
  const [id, trajectory, step, agent, tool, executed, verdict, severity, judged, facts, because, block] = row;
  const finding = {
    id, step, block, trajectory: word(trajectory), agent: word(agent), tool: word(tool), executed: executed === -1 ? null : executed === 1,
    verdict: word(verdict), severity: word(severity), because: word(because),
    policies: judged.map(word),
    facts: facts.map(([fact, reason, lookup]) => ({name: word(fact), reason: word(reason), lookup: word(lookup)})),
  };
  finding.rule = finding.verdict === "broken";
  finding.sought = [id, finding.trajectory, finding.agent, finding.tool, finding.because, ...finding.policies,
    ...finding.facts.map((f) => `${f.name} ${f.lookup} ${named(f.reason)}`)].join("\n").toLowerCase();
  return finding;
});
const findingsById = new Map(findings.map((finding) => [finding.id, finding]));

const unpacked = new Map();

function unpack(name) {
  if (!unpacked.has(name)) {
    const block = document.getElementById(name);
    const letters = atob(block.textContent);
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    unpacked.set(name, new Response(stream).json());
    if (unpacked.size > 24) unpacked.delete(unpacked.keys().next().value);
  }
  return unpacked.get(name);
}

async function findingDetails(finding) {
  return (await unpack(`findings-${finding.block}`)).find((details) => details.finding === finding.id);
}

async function conversationOf(trajectory) {
  if (!held.has(trajectory)) return null;
  return (await unpack(`conversations-${held.get(trajectory)}`)).find((conversation) => conversation.trajectory === trajectory) || null;
}

function explainCommand(finding) {
  const quoted = (argument) => (/^[\w.\/:@#~+-]+$/.test(argument) ? argument : "'" + argument.replaceAll("'", "'\\''") + "'");
  return `bylaw explain ${quoted(data.out)} ${quoted(finding.trajectory)} ${finding.step ?? 0}`;
}
