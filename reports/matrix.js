// Sorting of the summary matrix: a click on a column's head, a preset, or #/summary?sort=KEY.
{
  const table = document.getElementById("overview");
  const heads = table ? [...table.querySelectorAll("thead th[data-key]")] : [];
  const body = table && table.tBodies[0];
  const first = body ? [...body.rows] : [];

  const sortBy = (key, turned) => {
    const head = heads.find((each) => each.dataset.key === key);
    if (!head) return;
    const column = [...head.parentElement.cells].indexOf(head);
    const sign = (head.dataset.lower === "1" ? 1 : -1) * (turned ? -1 : 1);
    const value = (row) => (row.cells[column].dataset.value === undefined ? null : Number(row.cells[column].dataset.value));
    const rows = [...first].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      // What was not measured stays below, whichever way.
      return x === null || y === null ? (x === null) - (y === null) : sign * (x - y);
    });
    body.append(...rows);
    for (const each of heads) {
      each.removeAttribute("aria-sort");
      delete each.dataset.turned;
    }
    if (turned) head.dataset.turned = "1";
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    for (const each of document.querySelectorAll("a.preset")) {
      if (each.dataset.sort === key) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
    }
  };

  const fromHash = () => {
    const found = /^#\/summary\?(.*)$/.exec(location.hash);
    if (!found) return;
    const key = new URLSearchParams(found[1]).get("sort") || "";
    sortBy(key.replace(/^-/, ""), key.startsWith("-"));
    document.getElementById("summary").scrollIntoView();
  };

  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = head.textContent;
    button.addEventListener("click", () => {
      const turned = head.hasAttribute("aria-sort") && !(head.dataset.turned === "1");
      history.replaceState(null, "", `#/summary?sort=${turned ? "-" : ""}${encodeURIComponent(head.dataset.key)}`);
      sortBy(head.dataset.key, turned);
    });
    head.replaceChildren(button);
  }
  window.addEventListener("hashchange", fromHash);
  fromHash();
}
