// Shows one view after another, and reads it again while it is looked at. The key is asked for, or
// comes in the fragment of the address, which no server sees; it stays in this tab.
const EVERY = 3000; // milliseconds
const content = document.getElementById("content"), news = document.getElementById("news");
const door = document.getElementById("door"), field = document.getElementById("key");
const charts = new Promise((done) => document.getElementById("vega").addEventListener("load", done));
const parts = "summary, .term, .scroll, main a, .copy"; // what the keyboard can reach in a view
let shown = "", etag = "", timer, asked = 0;

function takeKey() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!given) return false;
  sessionStorage.setItem("key", given);
  history.replaceState(null, "", location.pathname);
  return true;
}

const WORDS = {
  401: "A valid key is needed: paste one that `fairchance keys add --role audit` printed.",
  403: "This key may not see the dashboard. It needs the role audit: `fairchance keys add --role audit`.",
};

// Words are set only if they change: a screen reader says them each time.
const tell = (words) => { if (news.textContent !== words) news.textContent = words; };

async function show() {
  const [, view, id] = location.hash.match(/^#\/(\w+)(?:\/(.*))?$/) ?? [null, "overview", ""];
  const address = `/views/${view}${id ? `?id=${encodeURIComponent(decodeURIComponent(id))}` : ""}`;
  const key = sessionStorage.getItem("key"), mine = ++asked;
  const headers = { ...(key && { Authorization: `Bearer ${key}` }), ...(address === shown && { "If-None-Match": etag }) };
  clearTimeout(timer);
  try {
    const response = await fetch(address, { headers, cache: "no-store" });
    const text = await response.text();
    if (mine !== asked) return; // another view was chosen meanwhile
    if (response.ok) {
      await change(text, address);
      etag = response.headers.get("ETag");
    }
    if (response.ok || response.status === 304) {
      tell("");
      document.getElementById("read").textContent = `Read at ${new Date().toLocaleTimeString()}; read again every ${EVERY / 1000} seconds.`;
    } else tell(WORDS[response.status] ?? `${JSON.parse(text).detail} It is asked again.`);
    const refused = response.status === 401 || response.status === 403;
    if (refused === door.hidden) ask(refused);
    if (response.status === 401 && !shown) content.replaceChildren(Object.assign(document.createElement("h1"), { textContent: "fairchance" }));
    if (refused) return;
  } catch {
    tell("The service does not answer. It is asked again.");
  }
  timer = setTimeout(show, EVERY);
}

function ask(wanted) {
  door.hidden = !wanted;
  field.value = "";
  if (wanted && document.activeElement === document.body) field.focus();
}

// A field outside of a form is not sent. What no key has, such as a line's end, is left out.
function enter() {
  sessionStorage.setItem("key", field.value.replace(/[^!-~]/g, ""));
  field.value = "";
  show();
}

// Replaces the view. If it is the same one, what is unfolded, focused and drawn stays.
async function change(html, address) {
  const same = address === shown, before = content.cloneNode(false);
  const focused = [...content.querySelectorAll(parts)].indexOf(document.activeElement);
  const open = Object.fromEntries([...content.querySelectorAll("details")].map((e) => [e.id, e.open]));
  const figures = Object.fromEntries([...content.querySelectorAll("figure")].map((e) => [e.id, e]));
  const verdict = content.querySelector(".verdict")?.className;
  before.innerHTML = html;
  if (same) {
    for (const part of before.querySelectorAll("details")) part.open = open[part.id] ?? part.open;
    for (const figure of before.querySelectorAll("figure")) {
      const old = figures[figure.id], spec = (e) => e.querySelector("script").textContent;
      if (old && spec(old) === spec(figure)) figure.replaceWith(old);
    }
  }
  document.getElementById("tip").hidden = true;
  content.replaceChildren(...before.childNodes);
  document.title = content.querySelector("h1").textContent;
  for (const link of document.querySelectorAll("nav a")) {
    const here = address.slice(7).split("?")[0] === link.hash.slice(2);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!same && shown) content.focus();
  else if (focused >= 0) content.querySelectorAll(parts)[focused]?.focus({ preventScroll: true });
  if (!same && shown) scrollTo(0, 0);
  shown = address;
  const now = content.querySelector(".verdict");
  if (same && now && now.className !== verdict) tell(now.textContent);
  await charts;
  await prepare();
}

addEventListener("hashchange", () => { if (takeKey() || location.hash.startsWith("#/")) show(); });
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : show()));
document.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = `#/applicant/${encodeURIComponent(document.getElementById("id").value.trim())}`;
});
door.querySelector("button").addEventListener("click", enter);
field.addEventListener("keydown", (event) => { if (event.key === "Enter") enter(); });
takeKey();
show();
