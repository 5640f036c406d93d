// A finding in full: what it is, what the policy says, the drawing, what decides it, the conversation.

// What was put to the user, what the user answered and the call that followed, where a rule is about consent.
function exchange(finding, conversation) {
  const steps = finding.exchange || {};
  const quoted = (label, step) => {
    const event = eventAt(conversation, step);
    return event && event.text ? [make("dt", {}, label), make("dd", {}, stepLink(step, "step-"), " ", prose(event.text, 600))] : null;
  };
  if (steps.told_at === undefined && steps.answered_at === undefined) return [];
  const call = eventAt(conversation, finding.step);
  const given = call && call.type === "call" ? call.arguments.map(([name, value]) => `${name}: ${Array.isArray(value) ? value[0] : value}`).join(", ") : "";
  const made = given ? [make("dt", {}, "The call"), make("dd", {}, stepLink(finding.step, "step-"), " ", code(call.tool, 80), " ", prose(given, 600))] : null;
  return [quoted("Shown to the user", steps.told_at), quoted(steps.told_at === undefined ? "The user said" : "The answer", steps.answered_at), made];
}

// A lone surrogate cannot stand in an address.
function safeForUrl(text) {
  return text.replace(/\p{Cs}/gu, "\ufffd");
}

// `isBrief` leaves out the conversation; `choose` shows another policy of the finding; `addressOf` is where another finding is found; `level` that of its heading.
function findingView(finding, conversation, {policyId, others, choose, addressOf, isBrief, level = 3}) {
  const judged = finding.policies.filter((policy) => policy.missing);
  const policy = judged.find((entry) => entry.id === policyId) || mainPolicy(finding);
  const isRule = finding.verdict === "broken" || Boolean(finding.openRule);
  const because = policy && policy.because && !policy.is_lacking;
  const quotes = isBrief ? [] : exchange(finding, conversation).filter(Boolean);
  const clean = finding.policies.length - judged.length;
  return [
    make("p", {class: `verdict ${finding.verdict}`}, policy && policy.severity ? make("span", {class: `severity ${policy.severity}`}, said(policy.severity, 12)) : null, named(finding.verdict)),
    make(`h${level}`, {class: "headline"}, headline(finding, policy)),
    quotes.length ? make("dl", {class: "facts exchange"}, quotes) : null,
    make("p", {class: "story"}, story(finding, policy, conversation)),
    judged.length > 1 ? make("div", {class: "policy-choice", role: "group", "aria-label": "Policies that flag this call"}, judged.map((entry) =>
      make("button", {type: "button", class: "quiet", "aria-pressed": String(entry === policy), on: {click: () => choose(entry.id)}}, code(entry.id, 40), " ", named(entry.verdict)))) : null,
    policy ? citation(policy, policy.missing) : "",
    isRule || (!hasFacts(policy) && (finding.origins || []).length) ? null : drawing(finding, policy, conversation, "step-"),
    isBrief && hasFacts(policy) ? null : originsDrawing(finding, policy, conversation, "step-"),
    isBrief ? null : make("dl", {class: "facts"},
      because && (policy.headline || (!isRule && policy.because.length > 200)) ? [make("dt", {}, "Because"), make("dd", {}, marked(policy.because, 600))] : null,
      policy && policy.depends_on_user ? [make("dt", {}, "Depends"), make("dd", {}, "on something only the user can say")] : null,
      (policy && policy.asks.length) ? [make("dt", {}, "To ask"), make("dd", {}, policy.asks.map((ask, index) => [index ? "; " : "", said(ask.question || ask.fact, 200)]))] : null,
      (policy && policy.host.length) ? [make("dt", {}, "Not known"), make("dd", {}, policy.host.map((words, index) => [index ? "; " : "", said(words, 300)]))] : null,
      clean > 0 ? [make("dt", {}, "Also judged"), make("dd", {}, `${count(clean, "other policy", "other policies")}, all compliant`)] : null,
      others.length ? [make("dt", {}, "Same conversation"), make("dd", {}, others.map((entry, index) => [index ? ", " : "", make("a", {href: addressOf(entry.id), "data-finding": entry.id}, `step ${entry.step ?? "?"}`), ` ${named(entry.verdict)}`]))] : null,
      make("dt", {}, "Finding"), make("dd", {}, code(finding.finding, 80)),
      make("dt", {}, "In a terminal"), make("dd", {}, code(explainCommand(finding), 400))),
    isBrief ? null : transcript(finding, policy, conversation, level + 1)];
}
