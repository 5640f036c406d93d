// Pages that follow a service: news by server-sent events, a word where they stop coming, and times that run.
(() => {
  const AGAIN = 2000; // Milliseconds until a stream that was refused is asked for again.
  const PATIENCE = 4000; // Milliseconds without a connection before the page says so.

  function listen() {
    const place = document.getElementById("listening");
    if (!place) return;
    const notice = document.getElementById("notice");
    let known = place.dataset.known;
    let late = null;
    let source = null;
    const say = (...parts) => { const line = document.createElement("p"); line.className = "told wrong"; line.append(...parts); notice.replaceChildren(line); };

    async function refused() {
      const link = document.createElement("a");
      link.href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
      link.textContent = "Sign in again";
      try {
        const enough = new AbortController();
        const answer = await fetch(place.dataset.events, {signal: enough.signal});
        enough.abort();
        if (answer.status === 401) { say("You are signed out, so this page is no longer updated. ", link); return; }
      } catch { /* still away */ }
      setTimeout(open, AGAIN);
    }

    function open() {
      source = new EventSource(`${place.dataset.events}?known=${encodeURIComponent(known)}`);
      source.addEventListener("open", () => { clearTimeout(late); late = null; notice.replaceChildren(); });
      source.addEventListener("changed", (event) => {
        known = event.data;
        const shown = document.querySelector("[data-shown]");
        if (!shown || shown.dataset.shown !== known) htmx.trigger(place, "changed");
      });
      // The server ends each stream after a while, and the browser asks again: only a long silence is told.
      source.addEventListener("error", () => {
        if (late === null) late = setTimeout(() => say("The server does not answer. This page may be out of date; it updates again when the server is back."), PATIENCE);
        if (source.readyState === EventSource.CLOSED) refused();
      });
    }

    open();
    addEventListener("pagehide", () => source.close());
  }

  function span(seconds) {
    if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
    return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
  }

  // Times go on while a page is open: `data-left` runs down from when it came, `data-ago` up.
  const came = new WeakMap();
  function run() {
    for (const each of document.querySelectorAll("[data-left], [data-ago]")) {
      if (!came.has(each)) came.set(each, performance.now());
      const passed = (performance.now() - came.get(each)) / 1000;
      const words = span("left" in each.dataset ? Number(each.dataset.left) - passed : Number(each.dataset.ago) + passed);
      if (each.textContent !== words) each.textContent = words;
    }
  }

  listen();
  run();
  setInterval(run, 1000);
})();
