// One flagged conversation: its steps, with the judged call, what showed its facts and what claimed them marked.

function marks(finding, policy, conversation) {
  const at = new Map();
  const put = (step, kind, ...words) => {
    if (step === null || step === undefined) return;
    if (!at.has(step)) at.set(step, []);
    at.get(step).push({kind, words});
  };
  for (const fact of (policy && policy.seen) || []) put(fact.shown_at, "seen", "showed the ", factName(fact));
  for (const fact of policy ? policy.missing : []) {
    put(fact.claimed_at, "claimed", "claims the ", factName(fact));
    if (fact.reason === "stale") put(fact.stale_by, "stale", "changed the ", factName(fact));
  }
  for (const origin of finding.origins || []) put(origin.step, origin.founded ? "seen" : "claimed", "holds the value of ", code(origin.argument, 60));
  if (finding.verdict !== "broken") put(finding.step, "judged", "the judged call");
  for (const broken of conversation.rules || []) put(broken.step, "broken", "breaks the rule ", code(broken.rule, 60));
  return at;
}

function eventBody(event, explain) {
  if (event.type === "call") {
    return make("div", {}, code(event.tool, 120), make("dl", {class: "given"}, event.arguments.map(([name, value]) => [make("dt", {}, said(name, 80)), make("dd", {}, prose(value, 400, explain))])));
  }
  return prose(event.text, event.type === "result" ? 600 : 1500, explain);
}

function eventRow(finding, event, step, tags, explain) {
  const who = event.type === "message" ? event.by || "message" : event.type === "call" ? (event.by === "user" ? "user calls" : "agent calls") : event.error ? "error result" : "result";
  const kinds = tags.map((tag) => tag.kind);
  return make("li", {id: `step-${step}`, tabindex: "-1", class: ["event", event.type, event.type === "message" && event.by === "user" ? "by-user" : "", event.error ? "error" : "", ...kinds].join(" ")},
    make("p", {class: "who"}, make("span", {class: "step"}, String(step)), make("span", {}, said(who, 30)), event.type === "result" && event.call !== null ? make("span", {class: "note"}, `of step ${event.call}`) : null),
    make("div", {class: "body"}, eventBody(event, explain),
      tags.map((tag) => make("p", {class: `tag ${tag.kind}`}, tag.words, tag.kind === "judged" || tag.kind === "broken" ? null : [" ", make("a", {href: `#step-${finding.step}`, "data-step": finding.step}, "to the call")]))));
}

function transcript(finding, policy, conversation, level) {
  const explain = code(explainCommand(finding), 400);
  if (!conversation) {
    return make("div", {class: "transcript"}, make(`h${level}`, {class: "part"}, "Conversation"),
      make("p", {class: "note"}, "This conversation is not in the page, to keep the file small. To read it: ", explain));
  }
  const at = marks(finding, policy, conversation);
  const near = new Set();
  for (const step of at.keys()) for (const close of [step - 1, step, step + 1]) near.add(close);
  conversation.events.forEach((event, step) => {
    if (event.type === "result" && at.has(step) && event.call !== null) near.add(event.call);
    if (event.type === "result" && event.call === finding.step) near.add(step);
  });
  const list = make("ol", {class: "events"});
  const fold = (from, to) => {
    const button = make("button", {type: "button", class: "quiet"}, `${count(to - from, "step")} ${from === 0 ? "before" : to === conversation.events.length ? "after" : "in between"}`);
    const row = make("li", {class: "folded"}, button);
    button.addEventListener("click", () => {
      const rows = conversation.events.slice(from, to).map((event, index) => eventRow(finding, event, from + index, [], explain));
      row.replaceWith(...rows);
      rows[0].focus();
    });
    return row;
  };
  const show = (whole) => {
    list.replaceChildren();
    let skipped = null;
    conversation.events.forEach((event, step) => {
      if (whole || near.has(step) || conversation.events.length <= 12) {
        if (skipped !== null) list.append(fold(skipped, step));
        skipped = null;
        list.append(eventRow(finding, event, step, at.get(step) || [], explain));
      } else if (skipped === null) skipped = step;
    });
    if (skipped !== null) list.append(fold(skipped, conversation.events.length));
  };
  show(false);
  const all = make("button", {type: "button", class: "quiet", "aria-pressed": "false"}, "Whole conversation");
  all.addEventListener("click", () => {
    const whole = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(whole));
    show(whole);
  });
  return make("div", {class: "transcript"},
    make("div", {class: "row"}, make(`h${level}`, {class: "part"}, "Conversation"), conversation.events.length > 12 ? all : null),
    make("p", {class: "note"}, said(conversation.trajectory, 80), conversation.file ? [" in ", said(conversation.file, 80), conversation.position !== null ? `, record ${number(conversation.position)}` : ""] : "",
      conversation.outcome ? [" \u00b7 outcome ", conversation.outcome.good ? "good" : "bad", conversation.outcome.source === "outcome" ? "" : [" (", said(conversation.outcome.source, 60), ")"]] : " \u00b7 outcome not known"),
    list);
}
