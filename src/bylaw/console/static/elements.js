// Names in charts lead to the console's own pages.
leading.address = (wanted) => {
  const {text, reason, ...rest} = wanted;
  const query = new URLSearchParams({state: "all", ...rest});
  if (text || reason) query.set("q", text || named(reason));
  return `/findings?${query}`;
};

// A whole conversation: {conversation, from, total, findings, judged, policies, address}. Steps count from `from`.
class ConversationElement extends Fed {
  #lit = null;

  draw(data) {
    learn(data);
    this.#lit = null;
    const {conversation, from, total} = data;
    const verdicts = new Map(data.judged.map(([step, , verdict]) => [step, verdict]));
    const speaking = new Map();
    for (const finding of data.findings) {
      if (!speaking.has(finding.step)) speaking.set(finding.step, []);
      speaking.get(finding.step).push(finding);
      if (finding.verdict !== "compliant") verdicts.set(finding.step, worse(finding.verdict, verdicts.get(finding.step)));
    }
    const rows = conversation.events.map((event, index) => this.row(event, from + index, verdicts.get(from + index), speaking.get(from + index) || [], conversation.events, from));
    fill(this,
      make("div", {class: "timeline"},
        this.map(verdicts, total, from, rows.length),
        make("ol", {class: "events", "aria-label": "Steps of the conversation"}, rows)),
      make("aside", {class: "aside", "aria-label": "Findings in this conversation"}, this.aside(data)));
    this.follow();
  }

  row(event, step, verdict, findings, events, from) {
    const isMessage = event.type === "message";
    const who = isMessage ? event.by || "message" : event.type === "call" ? (event.by === "user" ? "user calls" : "agent calls") : event.error ? "error" : "result";
    const call = event.type === "result" && event.call !== null ? events[event.call - from] : null;
    const body = isMessage ? prose(event.text, 1500, "")
      : event.type === "call" ? make("details", {open: findings.length > 0}, make("summary", {}, code(event.tool, 80), " ", make("span", {class: "note"}, said(event.arguments.map(([name, value]) => `${name}: ${Array.isArray(value) ? value[0] : value}`).join(", "), 90))), make("dl", {class: "given"}, event.arguments.map(([name, value]) => [make("dt", {}, said(name, 80)), make("dd", {}, prose(value, 400, ""))])))
      : make("details", {}, make("summary", {}, call && call.type === "call" ? [make("span", {class: "note"}, "of "), code(call.tool, 60), " "] : null, make("span", {class: "note brief"}, said(Array.isArray(event.text) ? event.text[0] : event.text, 90))), prose(event.text, 4000, ""));
    return make("li", {id: `step-${step}`, tabindex: "-1", class: ["event", event.type, isMessage && event.by === "user" ? "by-user" : "", event.error ? "error" : "", findings.length ? "judged" : ""].join(" ")},
      make("p", {class: "who"}, make("a", {class: "step", href: `#step-${step}`, "aria-label": `Link to step ${step}`}, String(step)), make("span", {}, said(who, 30))),
      make("div", {class: "body"}, body,
        verdict === "compliant" && !findings.length ? make("p", {class: "tag seen"}, "judged: compliant") : null,
        findings.map((finding) => make("p", {class: "tag"}, make("a", {href: `/finding/${encodeURIComponent(safeForUrl(finding.finding))}`, class: `verdict ${finding.verdict}`}, named(finding.verdict)), " ", code((mainPolicy(finding) || {id: finding.tool}).id, 60)))));
  }

  // A map of the conversation that marks the judged steps.
  map(verdicts, total, from, shown) {
    const marksOf = [...verdicts].filter(([step]) => step < total);
    return make("nav", {class: "minimap", "aria-label": "Judged steps"},
      make("i", {class: "window", style: {top: `${(from / total) * 100}%`, height: `${(shown / total) * 100}%`}}),
      marksOf.slice(0, 400).map(([step, verdict]) => make("a", {href: this.addressOf(step), class: `mark ${verdict}`, title: `step ${step}: ${named(verdict)}`, "aria-label": `Step ${step}: ${named(verdict)}`, style: {top: `${((step + 0.5) / total) * 100}%`}})));
  }

  addressOf(step) {
    const {from, window: size} = this.data;
    return step >= from && step < from + size ? `#step-${step}` : `?from=${Math.floor(step / size) * size}#step-${step}`;
  }

  aside(data) {
    if (!data.findings.length) return make("p", {class: "note"}, data.judged.length ? "Every judged call of this conversation was compliant." : "No call of this conversation was judged.");
    return data.findings.map((finding) => {
      const policy = mainPolicy(finding);
      const steps = finding.exchange || {};
      const facts = policy ? [...(policy.seen || []).map((fact) => [fact, fact.shown_at, "seen"]), ...policy.missing.map((fact) => [fact, fact.claimed_at ?? fact.stale_by, (fact.claimed_at ?? null) === null ? fact.reason : "claimed"])] : [];
      return make("section", {class: "about-finding"},
        make("p", {class: `verdict ${finding.verdict}`}, make("a", {href: `/finding/${encodeURIComponent(safeForUrl(finding.finding))}`}, named(finding.verdict)), make("span", {class: "note"}, " at ", make("a", {href: this.addressOf(finding.step), class: "step"}, `step ${finding.step}`))),
        make("p", {class: "why"}, code(policy ? policy.id : finding.tool, 60), policy && policy.because ? [" ", marked(sentence(policy.because), 300)] : null),
        facts.length || (finding.origins || []).length || steps.told_at !== undefined || steps.answered_at !== undefined ? make("ul", {class: "fact-choice"},
          [["told_at", "question to the user"], ["answered_at", "answer"]].filter(([name]) => steps[name] !== undefined && steps[name] !== null).map(([name, words]) => make("li", {}, this.choice(make("span", {}, words), steps[name], "exchange"))),
          (finding.origins || []).map((origin) => make("li", {}, origin.step === null ? make("span", {class: "gap"}, code(origin.argument, 40), make("span", {class: "note"}, ` ${plain(origin.words, 200)}`)) : this.choice(code(origin.argument, 40), origin.step, origin.founded ? "value" : "content"))),
          facts.slice(0, 24).map(([fact, step, kind]) => make("li", {}, step === null || step === undefined ? make("span", {class: "gap"}, factName(fact), make("span", {class: "note"}, ` ${named(kind)}`)) : this.choice(factName(fact), step, kind)))) : null);
    });
  }

  choice(label, step, kind) {
    const button = make("button", {type: "button", class: `quiet fact-button ${kind}`, "aria-pressed": "false"}, label, make("span", {class: "note"}, kind === "seen" ? ` shown at ${step}` : kind === "exchange" ? ` at ${step}` : kind === "value" ? ` from ${step}` : kind === "content" ? ` from free text at ${step}` : kind === "claimed" ? ` said at ${step}` : ` changed at ${step}`));
    button.addEventListener("click", () => this.light(button, step, kind));
    return button;
  }

  light(button, step, kind) {
    const isOn = button.getAttribute("aria-pressed") === "true";
    for (const other of this.querySelectorAll(".fact-button[aria-pressed='true']")) other.setAttribute("aria-pressed", "false");
    if (this.#lit) this.#lit.classList.remove("lit", "seen", "claimed");
    this.#lit = null;
    if (isOn) return;
    button.setAttribute("aria-pressed", "true");
    const row = this.querySelector(`#step-${step}`);
    if (!row) { location.assign(this.addressOf(step)); return; }
    row.classList.add("lit", ["seen", "exchange", "value"].includes(kind) ? "seen" : "claimed");
    const details = row.querySelector("details");
    if (details) details.open = true;
    row.scrollIntoView({block: "center"});
    this.#lit = row;
  }

  // The step in the address may be in another part of a long conversation.
  follow() {
    const match = location.hash.match(/^#step-(\d+)$/);
    if (!match) return;
    const step = Number(match[1]);
    const {from, window: size, total} = this.data;
    if (step < total && (step < from || step >= from + size)) { location.replace(this.addressOf(step)); return; }
    const row = this.querySelector(`#step-${step}`);
    if (!row) return;
    const details = row.querySelector("details");
    if (details) details.open = true;
    row.scrollIntoView({block: "center"});
    row.focus({preventScroll: true});
  }
}

function worse(one, other) {
  const rank = (verdict) => { const at = ["violation", "broken", "near_miss", "uninformed", "inconclusive", "compliant"].indexOf(verdict); return at < 0 ? 9 : at; };
  return other !== undefined && rank(other) < rank(one) ? other : one;
}

customElements.define("bylaw-conversation", ConversationElement);
addEventListener("hashchange", () => { for (const each of document.querySelectorAll("bylaw-conversation")) each.follow(); });
