// The drawings as elements of their own. Each is fed one record: by its property `data`, or by a block of JSON inside it.

class Fed extends HTMLElement {
  #data = null;

  get data() { return this.#data; }

  set data(value) {
    this.#data = value;
    if (this.isConnected) this.draw(value);
  }

  connectedCallback() {
    if (this.#data === null) {
      const block = this.querySelector("script[type='application/json']");
      if (!block) return;
      this.#data = JSON.parse(block.textContent);
    }
    this.draw(this.#data);
  }
}

// One finding in full: {finding, policy, conversation, others, policies, out, address}; `policy` is the one to begin with.
class FindingElement extends Fed {
  #policy;

  draw(data) {
    learn(data);
    const address = data.address || "/finding/";
    fill(this, findingView(data.finding, data.conversation, {
      policyId: this.#policy || data.policy,
      others: data.others || [],
      isBrief: this.hasAttribute("brief"),
      level: Number(this.getAttribute("level")) || 3,
      choose: (id) => { this.#policy = id; this.draw(data); },
      addressOf: (id) => address + encodeURIComponent(safeForUrl(id)),
    }));
    if (this.isListening) return;
    this.isListening = true;
    this.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-step]");
      if (!link) return;
      event.preventDefault();
      this.showStep(Number(link.dataset.step));
    });
  }

  showStep(number) {
    const find = () => this.querySelector(`#step-${number}`);
    if (!find()) {
      const all = this.querySelector(".transcript button[aria-pressed='false']");
      if (all) all.click();
    }
    const row = find();
    if (!row) return;
    row.focus({preventScroll: true});
    row.scrollIntoView({block: "center"});
  }
}

// A chart of an audit: {overview, policies}; which one, its attribute `kind` says.
class ChartElement extends Fed {
  draw(data) {
    learn(data);
    const chart = CHARTS.get(this.getAttribute("kind"));
    if (chart) fill(this, chart(data.overview));
  }
}

customElements.define("bylaw-finding", FindingElement);
customElements.define("bylaw-chart", ChartElement);
