// The data: gzip as base64, in the page or in scripts beside it; everything that is shown of it goes through `el` as text.

const explorer = document.getElementById("explorer");
const waiting = new Map();
const opened = new Map();
// In a split page the scripts under assets/ hand their data to this.
globalThis.grammarbench = (name, text) => waiting.get(name)?.(text);

function packed(name) {
  const here = document.getElementById(`data-${name}`);
  if (here) return Promise.resolve(here.textContent);
  return new Promise((resolve, reject) => {
    waiting.set(name, resolve);
    const script = document.createElement("script");
    script.src = `assets/${name}.js`;
    script.addEventListener("error", () => reject(new Error(`assets/${name}.js is not there; the folder assets belongs beside this page`)));
    document.head.append(script);
  });
}

async function unpacked(name) {
  const binary = atob((await packed(name)).trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function load(name) {
  if (!opened.has(name)) opened.set(name, unpacked(name));
  return opened.get(name);
}

let index = null;
const count = () => index.cases.id.length;
const byLetter = new Map();  // of a walk
const byState = new Map();  // of a case on an arm

async function loadIndex() {
  if (index) return;
  index = await load("index");
  for (const [known, kinds] of [[byLetter, index.outcomes], [byState, index.states]]) {
    for (const each of kinds) known.set(each.letter, { ...each, glyph: each.title.split(" ")[0] });
    known.set(".", { name: "", letter: ".", title: "not run", fails: false, glyph: " " });
  }
}

async function detailOf(place) {
  if (place >= index.detailed) return null;
  let shard = index.shards.length - 1;
  while (index.shards[shard] > place) shard--;
  return (await load(`cases-${shard}`))[place - index.shards[shard]];
}

const cameTo = (place, arm) => byState.get(index.state[arm][place]);

// What would steer the text around or not be seen is spelled out, as in the parts of the page that need no script.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}\p{Cs}]/gu;

function shown(text) {
  return String(text).replace(INVISIBLE, (each) => {
    const code = each.codePointAt(0);
    const [letter, digits] = code < 256 ? ["x", 2] : code < 65536 ? ["u", 4] : ["U", 8];
    return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
  });
}

// One line of a script or a comment: nothing in it begins another.
const onLine = (text) => shown(text).replace(/\n/g, "\\n").replace(/\t/g, "\\t");

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : shown(value));
  }
  made.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== "").map((each) => (each instanceof Node ? each : shown(each))));
  return made;
}

// A link never leaves the page: what follows the # is ours, what is in it is encoded.
function link(hash, ...children) {
  return el("a", { href: `#/${hash}` }, ...children);
}

const caseHash = (place) => {
  const id = index.cases.id[place];
  const first = index.cases.id.indexOf(id) === place;
  return `case/${encodeURIComponent(id)}${first ? "" : `?at=${place}`}`;
};

function duration(us) {
  if (us === null || us === undefined) return "–";
  for (const [unit, size] of [["s", 1e6], ["ms", 1e3], ["µs", 1]]) {
    if (us >= size * 0.9995) {
      const value = us / size;
      return `${value >= 99.95 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3))} ${unit}`;
    }
  }
  return `${Math.round(us * 1000)} ns`;
}

const SVG = "http://www.w3.org/2000/svg";

function armName(arm) {
  const { label, colour, dash, marker } = index.arms[arm];
  const swatch = document.createElementNS(SVG, "svg");
  for (const [name, value] of [["class", "swatch"], ["viewBox", "0 0 24 12"], ["aria-hidden", "true"]]) swatch.setAttribute(name, value);
  for (const [d, paint] of [["M0 6H24", "stroke"], [marker, "fill"]]) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    path.setAttribute(paint, `var(--s${colour})`);
    if (paint === "stroke") {
      path.setAttribute("stroke-width", "2");
      path.setAttribute("stroke-dasharray", dash);
    }
    swatch.append(path);
  }
  return el("span", { class: "name" }, swatch, el("span", { class: "arm" }, label));
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function box(text, what, raw = text) {
  const button = el("button", { type: "button", "aria-label": `Copy ${what}`, click: () => copy(raw, button) }, "Copy");
  return el("div", { class: "box" }, button, el("pre", { tabindex: "0", "aria-label": what }, text || " "));
}

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = el("a", { download: name, href: url });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// What a spreadsheet would run is made text, as in the files of `grammarbench report --format csv`; `spreadsheet` in harness/text.py has the same signs.
function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

// A line of CSV has no place to say that cases are left off; the name of the file has.
function csvName() {
  return count() === index.page.in_all ? "cases.csv" : `cases-${count()}-of-${index.page.in_all}.csv`;
}

function asCsv() {
  const lines = [["suite", "case", "case_id", "dialect", "tags", "arm", "version", "vocabulary", "state", "compile_us", "fill_p50_us", "fill_p99_us"]];
  const { id, name, suite, dialect, tags } = index.cases;
  for (let i = 0; i < count(); i++) {
    index.arms.forEach((arm, a) => {
      const state = cameTo(i, a).name;
      if (state) lines.push([index.suites[suite[i]], name[i], id[i], index.dialects[dialect[i]], tags[i].map((tag) => index.tags[tag]).join(" "), arm.label, arm.version, arm.vocabulary, state, index.compile_us[a][i], index.fill_p50_us[a][i], index.fill_p99_us[a][i]]);
    });
  }
  return lines.map((line) => line.map(cell).join(",") + "\n").join("");
}

async function asJson() {
  const details = [];
  for (let i = 0; i < index.shards.length; i++) details.push(...(await load(`cases-${i}`)));
  const { shards, detailed, stated, page, ...rest } = index;
  // The same as report.json; where the page has less, it says so.
  const less = page.whole ? {} : { stated, in_all: page.in_all, detailed };
  return JSON.stringify({ ...rest, ...less, details });
}
