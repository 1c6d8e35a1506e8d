/* The arrows that fold the navigation have no name for screen readers. */
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
    summary.ariaLabel = "Pages of this section";
  }
});
