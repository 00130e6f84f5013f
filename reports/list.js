// The list of cases: filtered and sorted over columns, of which only the rows in sight are in the document.

const MOST_ROWS = 80;
const list = { order: [], current: -1, query: new URLSearchParams(), table: null, texts: null };

function textOf(place) {
  list.texts ??= index.cases.name.map((name, i) => `${name}\n${index.cases.id[i]}\n${index.suites[index.cases.suite[i]]}`.toLowerCase());
  return list.texts[place];
}

// An address holds no lone surrogate: whoever wrote it put something else there.
const plain = (text) => text.replace(/[\p{Cs}\ufffd]/gu, "?");
const nameIn = (names, wanted) => names.findIndex((name) => plain(name) === plain(wanted));

function armsOf(query) {
  const wanted = query.has("backend") ? plain(query.get("backend")) : "";
  const all = index.arms.map((_, arm) => arm);
  if (!wanted) return all;
  const exact = all.filter((arm) => plain(index.arms[arm].label) === wanted);
  return exact.length ? exact : all.filter((arm) => [index.arms[arm].backend, index.arms[arm].spec].some((each) => plain(each) === wanted));
}

// The letters of the states asked for: "failing" is all that fail, "works" those that diverge as documented too, commas join several.
function lettersOf(query) {
  const wanted = (query.get("state") || "").split(",").filter(Boolean);
  if (!wanted.length) return null;
  const fits = (each) => wanted.some((one) => (one === "failing" ? each.fails : each.name.startsWith(one)));
  return new Set(index.states.filter(fits).map((each) => each.letter));
}

const best = (columns, arms, place, worst) => arms.reduce((found, arm) => Math.max(found, columns[arm][place] ?? -1), worst);
// The largest time of the arms; null where none is known.
const timeKey = (columns) => (place, arms) => { const us = best(columns(), arms, place, -1); return us < 0 ? null : us; };
const KEYS = {
  name: (place) => index.cases.name[place].toLowerCase(),
  suite: (place) => index.suites[index.cases.suite[place]],
  compile: timeKey(() => index.compile_us),
  p50: timeKey(() => index.fill_p50_us),
  p99: timeKey(() => index.fill_p99_us),
};

// What an object inherits is no key.
const keyNamed = (name) => Object.hasOwn(KEYS, name) ? KEYS[name] : undefined;

function choose(query) {
  const { tags, suite, dialect, group, different } = index.cases;
  const arms = armsOf(query);
  const letters = lettersOf(query);
  const text = (query.get("q") || "").trim().toLowerCase();
  const wantedTags = query.getAll("tag").map((tag) => nameIn(index.tags, [...tag].slice(0, 80).join("")));
  const wantedSuite = query.has("suite") ? nameIn(index.suites, query.get("suite")) : null;
  const wantedGroup = query.has("group") ? Number(query.get("group")) : null;
  const wantedDialect = query.has("dialect") ? nameIn(index.dialects, query.get("dialect")) : null;
  const is = query.get("is");
  const order = [];
  for (let i = 0; i < count(); i++) {
    if (wantedGroup !== null && group[i] !== wantedGroup) continue;
    if (is === "different" ? !different[i] : is === "alike" && different[i]) continue;
    if (wantedSuite !== null && suite[i] !== wantedSuite) continue;
    if (wantedDialect !== null && dialect[i] !== wantedDialect) continue;
    if (wantedTags.length && !wantedTags.every((tag) => tags[i].includes(tag))) continue;
    if (letters ? !arms.some((arm) => letters.has(index.state[arm][i])) : arms.length < index.arms.length && !arms.some((arm) => index.state[arm][i] !== ".")) continue;
    if (text && !textOf(i).includes(text)) continue;
    order.push(i);
  }
  const sort = query.get("sort") || "";
  const letter = /^-?arm(\d+)$/.exec(sort);
  const key = letter && index.state[letter[1]] ? (place) => index.state[letter[1]][place] : keyNamed(sort.replace(/^-/, ""));
  if (key) {
    const values = new Map(order.map((place) => [place, key(place, arms)]));
    const sign = sort.startsWith("-") ? -1 : 1;
    // What has no value comes last, either way round.
    order.sort((a, b) => {
      const x = values.get(a), y = values.get(b);
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return x < y ? -sign : x > y ? sign : a - b;
    });
  }
  return order;
}

// ------------------------------------------------------------------------------------------------------ the filters

function select(name, label, options, query) {
  const chosen = query.get(name) || "";
  if (chosen && !options.some(([value]) => plain(value) === plain(chosen))) options = [...options, [chosen, chosen]];
  const made = el("select", { name, change: () => change(name, made.value) }, options.map(([value, title]) => el("option", { selected: plain(value) === plain(chosen) }, title)));
  [...made.options].forEach((option, i) => { option.value = options[i][0]; });
  return el("label", {}, label, made);
}

function change(name, value) {
  const query = new URLSearchParams(list.query);
  if (value) query.set(name, value);
  else query.delete(name);
  go(`#/cases${query.size ? `?${query}` : ""}`, true);
}

function filters(query) {
  const search = el("input", { type: "search", name: "q", value: query.get("q") || "", autocomplete: "off", spellcheck: "false", "aria-keyshortcuts": "/" });
  let soon;
  search.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(() => change("q", search.value), 120); });
  const used = new Map();
  for (const tags of index.cases.tags) for (const tag of tags) used.set(tag, (used.get(tag) || 0) + 1);
  const tags = [...used.keys()].sort((a, b) => used.get(b) - used.get(a)).slice(0, 200).map((tag) => index.tags[tag]).sort();
  const any = ["", "any"];
  return el("form", { class: "filters", role: "search", submit: (event) => event.preventDefault() },
    el("label", {}, "Search", search),
    select("backend", "Backend", [any, ...index.arms.map((arm) => [arm.label, arm.label])], query),
    select("state", "State", [any, ["failing", "fails"], ...index.states.map((each) => [each.name, each.title])], query),
    select("is", "Arms", [any, ["different", "differ"], ["alike", "agree"]], query),
    tags.length ? select("tag", "Tag", [any, ...tags.map((tag) => [tag, tag.slice(0, 60)])], query) : null,
    index.suites.length > 1 ? select("suite", "Suite", [any, ...index.suites.map((suite) => [suite, suite.slice(0, 60)])], query) : null,
    index.dialects.length > 1 ? select("dialect", "Dialect", [any, ...index.dialects.map((dialect) => [dialect, dialect])], query) : null,
    query.has("group") ? el("button", { type: "button", click: () => change("group", "") }, `Group ${Number(query.get("group")) + 1}: leave`) : null);
}

// -------------------------------------------------------------------------------------------------------- the table

// A name on end has little room: its middle goes, for names differ in the beginning and in the tokenizer at their end.
const NAME = 26;
const shortened = (name) => { const letters = [...name]; return letters.length <= NAME ? name : `${letters.slice(0, NAME / 2).join("")}…${letters.slice(1 - NAME / 2).join("")}`; };

function head(query) {
  const sort = query.get("sort") || "";
  const narrow = index.arms.length > 4 ? "mini" : "one";
  const columns = [["name", "Case", "title"], ["suite", "Suite", "suite"], ...index.arms.map((arm, i) => [`arm${i}`, arm.label, narrow]), ["compile", "Compile", "time"], ["p50", "Fill p50", "time"], ["p99", "Fill p99", "time"]];
  return el("thead", {}, el("tr", {}, columns.map(([key, title, kind]) => {
    const up = sort === key, down = sort === `-${key}`;
    const next = kind === "time" ? (down ? key : up ? "" : `-${key}`) : up ? `-${key}` : down ? "" : key;
    return el("th", { scope: "col", class: kind, "aria-sort": up ? "ascending" : down ? "descending" : null },
      el("button", { type: "button", title: `sort by ${title}`, click: () => change("sort", next) }, shortened(title), up ? " ↑" : down ? " ↓" : ""));
  })));
}

function line(position) {
  const place = list.order[position];
  const arms = armsOf(list.query);
  const narrow = index.arms.length > 4 ? "mini" : "one";
  const time = (columns) => { const us = best(columns, arms, place, -1); return el("td", { class: "time" }, us < 0 ? "–" : duration(us)); };
  return el("tr", { "aria-rowindex": position + 2, class: position === list.current ? "current" : null },
    el("td", { class: "title", title: index.cases.name[place].slice(0, 200) }, link(caseHash(place), index.cases.name[place].slice(0, 200).trim() || "unnamed")),
    el("td", { class: "suite" }, index.suites[index.cases.suite[place]].slice(0, 80)),
    index.arms.map((_, arm) => { const each = cameTo(place, arm); return el("td", { class: `${narrow} ${each.fails ? "failed" : "kept"}`, title: each.title }, each.glyph, narrow === "one" ? el("span", { class: "word" }, ` ${each.title.split(" ").slice(1).join(" ").split(",")[0]}`) : null); }),
    time(index.compile_us), time(index.fill_p50_us), time(index.fill_p99_us));
}

let height = 34;

function draw() {
  const { scroller, body } = list.table;
  const inSight = Math.min(Math.ceil((scroller.clientHeight || 600) / height) + 16, MOST_ROWS);
  const first = Math.max(0, Math.min(Math.floor(scroller.scrollTop / height) - 8, list.order.length - inSight));
  const last = Math.min(list.order.length, first + inSight);
  if (list.table.first === first && list.table.last === last) return;
  Object.assign(list.table, { first, last });
  const gap = (rows) => { const made = el("tr", { class: "gap", "aria-hidden": "true" }, el("td", {})); made.firstChild.style.height = `${rows * height}px`; return made; };
  const rows = [];
  for (let i = first; i < last; i++) rows.push(line(i));
  body.replaceChildren(gap(first), ...rows, gap(list.order.length - last));
  if (rows.length && rows[0].offsetHeight) height = rows[0].offsetHeight;
}

function point(position) {
  if (!list.order.length) return;
  list.current = Math.max(0, Math.min(position, list.order.length - 1));
  const { scroller } = list.table;
  const top = list.current * height;
  const under = scroller.querySelector("thead").offsetHeight;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top + height > scroller.scrollTop + scroller.clientHeight - under) scroller.scrollTop = top + height - scroller.clientHeight + under;
  list.table.first = -1;
  draw();
}

function showList(query) {
  const began = performance.now();
  const typing = document.activeElement?.name === "q" && explorer.contains(document.activeElement);
  const at = typing ? document.activeElement.selectionStart : 0;
  if (String(query) !== String(list.query)) list.current = -1;
  list.query = query;
  list.order = choose(query);
  const body = el("tbody");
  const table = el("table", { "aria-rowcount": list.order.length + 1 }, el("caption", { class: "skip" }, "Cases"), head(query), body);
  const scroller = el("div", { class: "rows", tabindex: "0", role: "region", "aria-label": "Cases", scroll: draw }, table);
  list.table = { scroller, body, first: -1, last: -1 };
  explorer.replaceChildren(
    el("p", { class: "ways" }, el("a", { href: "#disagreements" }, "← Report"), el("span", { class: "version" }, el("kbd", {}, "/"), " search  ", el("kbd", {}, "j"), " ", el("kbd", {}, "k"), " move  ", el("kbd", {}, "Enter"), " open  ", el("kbd", {}, "Esc"), " back")),
    el("h2", { tabindex: "-1" }, "Cases"),
    ...index.stated.map((each) => el("p", { class: "note" }, each)),
    ...[groupNote(query)].filter(Boolean), filters(query),
    el("p", { class: "note", role: "status" }, `${countShown()}. Times are the largest of ${query.get("backend") ? "this backend" : "all backends"}.`),
    el("p", { class: "print-only" }, "On paper: the rows that were in sight. Download CSV, in the report, has all of them."),
    scroller);
  draw();
  if (list.current >= 0) point(list.current);
  if (typing) {
    const field = explorer.querySelector("[name=q]");
    field.focus();
    field.setSelectionRange(at, at);
  }
  explorer.dataset.opened = (performance.now() - began).toFixed(1);
}

// How many cases are shown, of those that this page has and of all that were walked.
function countShown() {
  const [shown, here, all] = [list.order.length, count(), index.page.in_all].map((number) => number.toLocaleString("en"));
  if (index.page.in_all === count()) return `${shown} of ${here} cases`;
  return shown === here ? `${here} of ${all} cases (the others are left off)` : `${shown} of the ${here} cases on this page (of ${all}, the others are left off)`;
}

function groupNote(query) {
  const group = query.has("group") ? index.groups[Number(query.get("group"))] : null;
  if (!group) return "";
  const titles = group.vector.map((name, arm) => (name ? `${index.arms[arm].label}: ${index.states.find((each) => each.name === name).title}` : "")).filter(Boolean);
  return el("p", {}, group.tags.map((tag) => [el("span", { class: "tag" }, tag), " "]), titles.join("; "));
}
