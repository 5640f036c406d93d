// What the page holds: one block read at once, and compressed blocks that are unpacked when a finding is opened.

const data = JSON.parse(document.getElementById("data").textContent);
const word = (position) => data.words[position];
learn({...data, document: data.overview.citations === "text"});
const standings = new Map(data.standings.map(([id, ...rest]) => [id, rest]));
const held = new Map(data.held.map(([trajectory, block]) => [word(trajectory), block]));
const state = {open: null};

const findings = data.findings.map((row) => {
  const [id, trajectory, step, agent, tool, executed, verdict, severity, judged, facts, because, seen, block] = row;
  const finding = {
    id, step, block, trajectory: word(trajectory), agent: word(agent), tool: word(tool), executed: executed === -1 ? null : executed === 1,
    verdict: word(verdict), severity: word(severity), because: word(because),
    policies: judged.map(word),
    facts: facts.map(([fact, reason, lookup]) => ({name: word(fact), reason: word(reason), lookup: word(lookup)})),
  };
  [finding.state, finding.waiver] = standings.get(id) || [data.compared ? "new" : "", ""];
  finding.rule = finding.verdict === "broken";
  finding.sought = [id, finding.trajectory, finding.agent, finding.tool, finding.because, seen, finding.waiver, ...finding.policies,
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
