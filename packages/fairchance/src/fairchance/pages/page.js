// Draws the charts at the width of the page, explains terms, copies text, opens all for print.
// `prepare` is called once the page is there, and again if its content changes.
function fit(spec, width) {
  if (!spec.vconcat) return { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
  const axis = Math.min(spec.usermeta?.axis ?? 90, 0.45 * width); // pixels of an axis with its labels
  for (const panel of spec.vconcat) panel.width = Math.max(width - axis, 120);
  return spec;
}

function look(width) {
  const ink = "var(--ink)", soft = "var(--soft)", line = "var(--line)"; // they follow dark mode and print
  return {
    background: "transparent", font: getComputedStyle(document.body).fontFamily, text: { color: ink }, rule: { color: ink },
    title: { color: ink, limit: width }, view: { stroke: null },
    axis: { titleLimit: 250, labelFontSize: 12, titleFontSize: 12, labelColor: soft, titleColor: soft,
      gridColor: line, domainColor: line, tickColor: line },
    legend: { labelFontSize: 12, labelColor: ink },
  };
}

async function draw(figure) {
  const place = figure.querySelector(".chart");
  const width = Math.floor(document.querySelector("main").clientWidth) - 45;
  if (place.dataset.width === `${width}`) return;
  place.dataset.width = width;
  const spec = fit(JSON.parse(figure.querySelector("script").textContent), width);
  spec.description = place.ariaLabel; // without it vega writes a label of its own
  const config = { ...spec.config, ...look(width) };
  // Expressions are interpreted and styles are in the stylesheet, so a strict policy allows charts.
  const tooltip = { theme: "custom", disableDefaultStyle: true };
  const options = { actions: false, renderer: "svg", ast: true, defaultStyle: false, config, tooltip };
  place.view?.finalize();
  place.view = (await vegaEmbed(place, spec, options)).view;
  place.querySelector("svg").ariaHidden = "true"; // the label says what it shows
}

async function drawAll() {
  for (const figure of document.querySelectorAll("figure")) await draw(figure).catch(console.error);
  document.documentElement.dataset.ready = "yes";
}

let waiting;
addEventListener("resize", () => {
  document.documentElement.dataset.ready = "";
  clearTimeout(waiting);
  waiting = setTimeout(drawAll, 150);
});
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
// A link to a section opens it.
const openTarget = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
};
addEventListener("hashchange", openTarget);

const tip = document.getElementById("tip");
function explain(term) {
  tip.textContent = document.getElementById(term.getAttribute("aria-describedby")).textContent;
  tip.hidden = false;
  const at = term.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8)) + "px";
  const below = at.bottom + 6;
  tip.style.top = (below + tip.offsetHeight < innerHeight ? below : at.top - tip.offsetHeight - 6) + "px";
}
addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

function prepare() {
  for (const term of document.querySelectorAll(".term")) {
    for (const kind of ["mouseenter", "focus", "click"]) term.addEventListener(kind, () => explain(term));
    for (const kind of ["mouseleave", "blur"]) term.addEventListener(kind, () => { tip.hidden = true; });
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard?.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
  openTarget();
  return drawAll();
}
