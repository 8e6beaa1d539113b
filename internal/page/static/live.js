// New steps appear on top of the list. While the reader is further down, on a
// row, or selects text, they wait behind a button, so that nothing moves.

const everyMS = 1000;
const mostRows = 200;

const table = document.getElementById("steps");
const news = document.getElementById("news");
const trouble = document.getElementById("trouble");
const blank = document.getElementById("row").content.firstElementChild;
let newest = Number(table.dataset.newest);
let waiting = []; // steps, the newest first
let gap = false; // there are steps between waiting and the rows

function makeRow(step) {
  const row = blank.cloneNode(true);
  row.dataset.n = step.number;
  for (const cell of row.querySelectorAll("[data-f]")) {
    if (cell.dataset.f === "badge") {
      cell.classList.add(step.cells.class);
    } else {
      cell.textContent = step.cells[cell.dataset.f];
    }
  }
  const link = row.querySelector("th > a");
  link.href = link.href.replace(/[0-9]+(?=[?#]|$)/, step.number);
  return row;
}

const reading = () =>
  scrollY > 40 || String(getSelection()) !== "" || table.tBodies[0].contains(document.activeElement);

function show() {
  const rows = waiting.map(makeRow);
  const body = table.tBodies[0];
  if (gap) {
    body.replaceChildren();
  }
  waiting = [];
  gap = false;
  news.hidden = true;
  if (rows.length === 0) {
    return;
  }
  document.getElementById("empty")?.remove();
  table.hidden = false;
  for (const row of rows) {
    row.classList.add("fresh");
  }
  body.prepend(...rows);
  while (body.rows.length > mostRows) {
    body.lastElementChild.remove();
  }
}

news.addEventListener("click", () => {
  show();
  scrollTo(0, 0);
  table.querySelector("tbody a")?.focus({ preventScroll: true });
});

const number = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

// count updates the figures around the rows, and what there is to choose from.
function count(data) {
  const all = Object.values(data.outcomes).reduce((a, b) => a + b, 0);
  for (const chip of document.querySelectorAll("[data-outcome]")) {
    const n = chip.dataset.outcome === "" ? all : (data.outcomes[chip.dataset.outcome] ?? 0);
    chip.querySelector(".n").textContent = number(n);
  }
  document.getElementById("kept").textContent = data.kept_text;
  const range = document.getElementById("range");
  if (range) {
    range.textContent = `1–${number(table.tBodies[0].rows.length)} of ${number(data.chosen)}`;
  }
  for (const [name, values] of [["model", data.models], ["tool", data.tools]]) {
    const list = document.querySelector(`select[name="${name}"]`);
    const known = new Set([...list.options].map((o) => o.textContent));
    for (const value of values) {
      if (!known.has(value)) {
        list.append(new Option(value));
      }
    }
  }
}

function take(data) {
  newest = data.newest;
  gap ||= data.older !== "" || data.steps.length + waiting.length > mostRows;
  waiting = [...data.steps, ...waiting].slice(0, mostRows);
  if (waiting.length === 0) {
    return;
  }
  if (!reading()) {
    show();
    return;
  }
  const n = waiting.length >= mostRows ? `${mostRows}+` : waiting.length;
  news.textContent = n === 1 ? "1 new step" : `${n} new steps`;
  news.hidden = false;
}

// say shows what is wrong, or nothing.
function say(text) {
  trouble.textContent = text;
  trouble.hidden = text === "";
}

async function ask() {
  const url = new URL(location);
  url.searchParams.set("format", "json");
  url.searchParams.set("after", newest);
  const answer = await fetch(url, { cache: "no-store" });
  if (answer.status === 401) {
    say("The gateway was started again. Open the address that it printed.");
    return false;
  }
  if (!answer.ok) {
    throw new Error(answer.status);
  }
  const data = await answer.json();
  if (data.newest < newest) { // another process, with the same key
    location.reload();
    return false;
  }
  say("");
  take(data);
  count(data);
  return true;
}

async function loop() {
  let again = true;
  if (!document.hidden) {
    try {
      again = await ask();
    } catch {
      say("The gateway does not answer. Trying again…");
    }
  }
  if (again) {
    setTimeout(loop, everyMS);
  }
}
setTimeout(loop, everyMS);
