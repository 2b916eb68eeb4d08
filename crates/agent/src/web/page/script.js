
"use strict";
// Keeps the page fresh, and tells the values under the pointer. What is shown is
// written by the agent alone: this takes it over, and draws nothing itself.
(() => {
  const EVERY = 5000;
  const now = document.getElementById("now");
  const away = document.getElementById("away");
  const fresh = document.getElementById("fresh");
  let history = null;
  let pointed = null;

  const get = async (path) => {
    const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(EVERY) });
    if (!answer.ok) throw new Error(answer.statusText);
    return answer;
  };

  // Three digits, as the agent writes them.
  const digits = (value) => value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
  const tell = {
    rate: (value) => {
      if (value < 999.5) return value.toFixed(0) + " B/s";
      for (const unit of ["kB", "MB", "GB"]) {
        value /= 1000;
        if (value < 999.5) return digits(value) + " " + unit + "/s";
      }
      return digits(value / 1000) + " TB/s";
    },
    number: (value) => String(Math.round(value * 100) / 100),
    ms: (value) => value.toFixed(value < 9.95 ? 1 : 0) + " ms",
  };

  // The times below a chart are those of the agent, and so are those told here.
  const clock = (lane, share) => {
    const first = lane.querySelector(".hours span").textContent.split(":");
    const minute = (first[0] * 60 + +first[1] + Math.floor(share * 60)) % 1440;
    const two = (number) => String(number).padStart(2, "0");
    return two(Math.floor(minute / 60)) + ":" + two(minute % 60);
  };

  const point = () => {
    for (const lane of now.querySelectorAll("[data-lane]")) {
      const name = lane.dataset.lane;
      const series = history && history[name];
      const at = pointed && pointed.lane === name && series ? pointed.share : null;
      for (const line of lane.querySelectorAll(".cursor")) {
        line.setAttribute("visibility", at === null ? "hidden" : "visible");
        if (at !== null) {
          line.setAttribute("x1", at * 100 + "%");
          line.setAttribute("x2", at * 100 + "%");
        }
      }
      for (const text of lane.querySelectorAll(".value")) {
        text.dataset.last ??= text.textContent;
        let shown = text.dataset.last;
        if (at !== null) {
          const points = series[text.dataset.series];
          const value = points[Math.min(points.length - 1, Math.floor(at * points.length))];
          shown = value === null ? "–" : tell[text.dataset.unit](value);
        }
        text.textContent = shown;
      }
      for (const text of lane.querySelectorAll(".at")) {
        text.textContent = at === null ? "now" : "at " + clock(lane, at);
      }
    }
  };

  const follow = (event) => {
    const field = event.target.closest && event.target.closest(".field");
    if (!field) {
      if (pointed) {
        pointed = null;
        point();
      }
      return;
    }
    const box = field.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    pointed = { lane: field.closest("[data-lane]").dataset.lane, share };
    point();
  };
  document.addEventListener("pointermove", follow);
  document.addEventListener("pointerdown", follow);

  // What somebody has opened stays open, and keeps the focus.
  const take = (page) => {
    const open = [...now.querySelectorAll("details[open]")].map((details) => details.id);
    const focused = document.activeElement && document.activeElement.closest("#now details");
    const next = page.getElementById("now");
    for (const id of open) {
      const details = page.getElementById(id);
      if (details) details.open = true;
    }
    now.replaceChildren(...next.childNodes);
    document.title = page.title;
    const again = focused && document.getElementById(focused.id);
    if (again) again.querySelector("summary").focus({ preventScroll: true });
    point();
  };

  const refresh = async () => {
    try {
      const [page, numbers] = await Promise.all([
        get("./").then((answer) => answer.text()),
        get("history.json").then((answer) => answer.json()),
      ]);
      history = numbers;
      // A selection would be lost.
      if (getSelection().isCollapsed) {
        take(new DOMParser().parseFromString(page, "text/html"));
      }
      away.hidden = true;
      fresh.textContent = "fresh every 5 seconds";
    } catch {
      away.hidden = false;
    }
  };
  const again = async () => {
    if (!document.hidden) await refresh();
    setTimeout(again, EVERY);
  };
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
  again();
})();
