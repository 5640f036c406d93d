// Live pages: server-sent events, a notice when the connection is lost, and running times.
(() => {
  const AGAIN = 2000; // Milliseconds before reconnecting to a stream that was refused.
  const PATIENCE = 4000; // Milliseconds without a connection before the notice appears.

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
      // The server ends each stream after a while and the browser reconnects, so show the notice only after a long silence.
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

  // `data-left` counts down from the time at which the page was loaded, and `data-ago` counts up.
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
