"use strict";
// The page is whole without this: theme, chart highlighting, links into closed details.

const root = document.documentElement;
const themeButton = document.getElementById("theme");
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

function remembered(value) {
  try {
    if (value === undefined) return localStorage.getItem("grammarbench-theme");
    localStorage.setItem("grammarbench-theme", value);
  } catch { /* a page from a file or a sandbox may have no storage */ }
  return null;
}

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches;
}

function showTheme() {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
}

const kept = remembered();
if (kept === "dark" || kept === "light") root.dataset.theme = kept;
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  remembered(root.dataset.theme);
  showTheme();
});
systemDark.addEventListener("change", showTheme);
showTheme();

const keys = [...document.querySelectorAll(".key button")];
const curves = [...document.querySelectorAll(".chart g[id*='-arm-']")];

function highlight() {
  const chosen = new Set(keys.filter((key) => key.getAttribute("aria-pressed") === "true").map((key) => key.dataset.arm));
  for (const curve of curves) {
    const arm = /-arm-(\d+)/.exec(curve.id)[1];
    curve.classList.toggle("dim", chosen.size > 0 && !chosen.has(arm));
  }
}

for (const key of keys) {
  key.addEventListener("click", () => {
    key.setAttribute("aria-pressed", String(key.getAttribute("aria-pressed") !== "true"));
    highlight();
  });
}

// One tab is seen at a time; the address of whatever stands on a tab opens it.
const tabs = [...document.querySelectorAll(".tab")];

function showTab(wanted) {
  for (const tab of tabs) tab.classList.toggle("seen", tab === wanted);
  for (const link of document.querySelectorAll("nav a[data-tab]")) {
    if (`tab-${link.dataset.tab}` === wanted?.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function openTarget() {
  const [path] = location.hash.slice(1).split("?");
  let id = path === "/summary" ? "summary" : path;
  try { id = decodeURIComponent(id); } catch { /* as it stands */ }
  const target = id && !id.startsWith("/") ? document.getElementById(id) : null;
  const exploring = /^\/case(s|\/)/.test(path);
  const tab = exploring ? document.getElementById("tab-cases") : target?.closest(".tab");
  showTab(tab || tabs.find((one) => one.classList.contains("seen")) || tabs[0]);
  if (!target) return;
  target.hidden = false;
  for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
  if (tab && target === tab.querySelector("section")) scrollTo(0, 0);
  else target.scrollIntoView();
}
if (tabs.length > 1) root.classList.add("tabbed");
window.addEventListener("hashchange", openTarget);
openTarget();
