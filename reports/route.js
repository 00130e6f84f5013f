// The whole state is in the address: `#/cases?...` and `#/case/<id>`; everything else is the page itself.

function go(hash, replace = false) {
  if (replace) {
    history.replaceState(null, "", hash);
    route();
  } else location.hash = hash;
}

const routeOf = () => {
  const [path, query = ""] = location.hash.slice(1).split("?");
  return { path, query: new URLSearchParams(query) };
};

function placeOf(path, query) {
  let id = path.slice("/case/".length);
  try { id = decodeURIComponent(id); } catch { /* as it stands */ }
  if (query.has("suite")) {
    const suite = nameIn(index.suites, query.get("suite"));
    const named = index.cases.id.findIndex((each, place) => each === id && index.cases.suite[place] === suite);
    if (named >= 0) return named;
  }
  const at = Number(query.get("at"));
  return query.has("at") && index.cases.id[at] === id ? at : index.cases.id.indexOf(id);
}

let turn = 0;

async function route() {
  const { path, query } = routeOf();
  const mine = path === "/cases" || path.startsWith("/case/");
  root.classList.toggle("exploring", mine);
  explorer.hidden = !mine;
  if (!mine) {
    if (path === "") return;
    openTarget();
    return;
  }
  openTarget();  // an address that was only replaced tells no one else
  const now = ++turn;
  const fresh = !explorer.contains(document.activeElement);
  try {
    await loadIndex();
    if (now !== turn) return;
    if (path === "/cases") showList(query);
    else {
      const place = placeOf(path, query);
      if (place < 0) explorer.replaceChildren(el("p", { class: "warning" }, `There is no case ${path.slice(6)} on this page. `, link("cases", "All cases")));
      else {
        await showCase(place);
        list.current = list.order.indexOf(place);
      }
    }
    explorer.dataset.ready = location.hash;
  } catch (error) {
    explorer.replaceChildren(el("p", { class: "warning" }, `The data could not be opened: ${error.message}. `, el("a", { href: "#failing" }, "The failing cases without it")));
    root.classList.remove("scripted");
  }
  if (fresh || path !== "/cases") {
    scrollTo(0, 0);
    explorer.querySelector("h2")?.focus({ preventScroll: true });
  }
}

const onCases = () => location.hash.startsWith("#/cases");
const onCase = () => location.hash.startsWith("#/case/");

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (onCase()) go(`#/cases${list.query.size ? `?${list.query}` : ""}`);
    else if (onCases()) go("#disagreements");
    return;
  }
  if (typing) return;
  if (event.key === "/") {
    event.preventDefault();
    const focus = () => explorer.querySelector("[name=q]")?.focus();
    if (onCases()) focus();
    else {
      go("#/cases?state=failing");
      loadIndex().then(() => setTimeout(focus));
    }
  } else if (event.key === "j" || event.key === "k") {
    const step = event.key === "j" ? 1 : -1;
    if (onCases()) point(list.current + step);
    else if (onCase() && list.order[list.current + step] !== undefined && list.current >= 0) go(`#/${caseHash(list.order[list.current + step])}`);
  } else if (event.key === "Enter" && onCases() && list.current >= 0 && !/^(A|BUTTON)$/.test(event.target.tagName)) {
    go(`#/${caseHash(list.order[list.current])}`);
  }
}

// Without a way to open the data, the page stays as it is without a script.
if (explorer && typeof DecompressionStream === "function") {
  root.classList.add("scripted");
  for (const each of document.querySelectorAll("[data-go]")) {
    if (!each.dataset.go.startsWith("#/")) continue;
    const anchor = el("a", { href: each.dataset.go });
    anchor.append(...(each.childNodes.length ? each.childNodes : ["Explore them"]));
    each.append(anchor);
  }
  const ids = new Map([...document.querySelectorAll("#cases > .case")].map((each) => [each.id, each.dataset]));
  for (const anchor of document.querySelectorAll("a[href^='#case-']")) {
    const found = ids.get(anchor.getAttribute("href").slice(1));
    if (found !== undefined) anchor.setAttribute("href", `#/case/${encodeURIComponent(found.id)}?${new URLSearchParams({ suite: found.suite })}`);
  }
  document.getElementById("cases")?.replaceChildren();
  const save = (title, name, type, make) => el("button", { type: "button", click: async () => { await loadIndex(); download(name(), type, await make()); } }, title);
  document.getElementById("downloads")?.append(save("Download JSON", () => "report.json", "application/json", asJson), " ", save("Download CSV", csvName, "text/csv", asCsv));
  window.addEventListener("hashchange", route);
  document.addEventListener("keydown", pressed);
  route();
} else if (explorer) {
  explorer.before(el("p", { class: "note" }, "This browser cannot open the page's data, so the case explorer is off; a newer one can (Chrome 80, Firefox 113, Safari 16.4)."));
}
