// What checks.py asks of a page. The lists of sentences are empty if all is well.
(() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const style = (e) => getComputedStyle(e);
  const name = (e) => {
    const place = e.id ? `#${e.id}` : [...e.classList].map((c) => `.${c}`).join("");
    return `<${e.localName}${place}> “${e.textContent.trim().slice(0, 40)}”`;
  };
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const ancestors = (e) => (e.parentElement ? [e.parentElement, ...ancestors(e.parentElement)] : []);
  const hidesOverflow = (e) => style(e).overflowX !== "visible";

  // Elements may reach beyond the window only inside a frame that scrolls and that the keyboard
  // can reach; on paper nothing scrolls.
  function overflow(mayScroll) {
    const width = document.documentElement.clientWidth, found = [];
    const whole = document.scrollingElement.scrollWidth;
    if (whole > width) found.push(`the document is ${whole} px wide in a window of ${width} px`);
    for (const e of all("body *:not(svg *)")) {
      if (!shown(e)) continue;
      const box = e.getBoundingClientRect(), more = e.scrollWidth - e.clientWidth;
      const forReadersOnly = box.width <= 1, framed = ancestors(e).some(hidesOverflow);
      if (forReadersOnly) continue;
      if (!framed && (box.right > width + 1 || box.left < -1))
        found.push(`${name(e)} reaches from ${box.left} to ${box.right} px`);
      if (more <= 1 || e.localName === "svg" || style(e).display.startsWith("inline")) continue;
      if (!hidesOverflow(e)) found.push(`the content of ${name(e)} is ${more} px too wide`);
      else if (!mayScroll || !["auto", "scroll"].includes(style(e).overflowX))
        found.push(`${more} px of ${name(e)} are cut`);
      else if (e.tabIndex < 0) found.push(`the keyboard cannot scroll ${name(e)}`);
    }
    return found;
  }

  // The contrast of text in charts, which axe does not measure.
  function faint() {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
      paint.clearRect(0, 0, 1, 1);
      paint.fillStyle = colour;
      paint.fillRect(0, 0, 1, 1);
      return [...paint.getImageData(0, 0, 1, 1).data];
    };
    const light = (colour) => {
      const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      const [r, g, b] = colour.map((c) => linear(c / 255));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = new Set();
    for (const text of all("svg text").filter((e) => shown(e) && e.textContent.trim())) {
      const svg = text.closest("svg");
      const backs = [svg, ...ancestors(svg)].map((e) => rgba(style(e).backgroundColor));
      const back = backs.find((colour) => colour[3] === 255) ?? [255, 255, 255];
      const fill = style(text).fill;
      const [dark, bright] = [light(rgba(fill)), light(back)].sort((a, b) => a - b);
      const ratio = (bright + 0.05) / (dark + 0.05);
      if (ratio < 4.5) found.add(`contrast ${ratio.toFixed(1)} of ${fill}, ${name(text)}`);
    }
    return [...found];
  }

  const marks = (figure) => all(".role-mark :is(path, rect, line, image, text)", figure).filter(shown);
  const looks = (figure) =>
    marks(figure).map((e) => ["opacity", "fill", "stroke"].map((key) => style(e)[key]).join());
  const empty = () => all("figure").filter((e) => !marks(e).length).map((e) => `${name(e)} has no marks`);

  // Points in the window at which a mark of a chart is, at most ten of them.
  function points(figure) {
    const found = marks(figure).filter((e) => e.localName !== "text");
    const some = found.filter((_, at) => at % Math.ceil(found.length / 10) === 0);
    return some.map((e) => {
      if (e.closest(".mark-line, .mark-trail")) {
        const at = e.getPointAtLength(e.getTotalLength() / 2).matrixTransform(e.getScreenCTM());
        return [at.x, at.y];
      }
      const box = e.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    });
  }

  const unfold = (open) => all("details").forEach((e) => (e.open = open));
  const folded = () =>
    all("details > :not(summary)").filter((e) => !e.checkVisibility()).map((e) => `${name(e)} is hidden`);

  window.measure = { overflow, faint, looks, empty, points, unfold, folded };
})();
