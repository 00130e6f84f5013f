// The page of one case: what went in, what each backend said, and how to see it again without this page.

const unhexed = (hex) => Uint8Array.from(hex.match(/../g) || [], (pair) => parseInt(pair, 16));

// As Python writes them.
const pythonBytes = (bytes) => `b"${[...bytes].map((byte) => (byte > 31 && byte < 127 && byte !== 34 && byte !== 92 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`)).join("")}"`;

// Bytes for people: text where they are text, the rest as \xNN.
function bytesShown(hex) {
  const bytes = unhexed(hex);
  try {
    return JSON.stringify(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return pythonBytes(bytes);
  }
}

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'"'"'`)}'`);

const canRepro = (arm) => index.page.repro[index.arms[arm].run];

// Where the run's folder holds no cases, the case is walked again from its suite.
function command(place, arm, note, ...more) {
  const { run, spec, several_vocabularies: several, vocabulary } = index.arms[arm];
  const id = index.cases.id[place], again = !canRepro(arm), suite = index.suites[index.cases.suite[place]];
  const one = index.cases.id.indexOf(id) === index.cases.id.lastIndexOf(id) ? id : `${suite}/${id}`;  // several suites may have the grammar
  const words = again ? ["grammarbench", "run", index.page.walked_as[index.cases.suite[place]], "--case", id, "--backends", spec] : ["grammarbench", "repro", index.runs[run].folder, one, "--backends", spec];
  if (several || again) words.push("--vocabularies", vocabulary);
  if (again) return [...words, "--out", "again"].map(quoted).join(" ");
  if (note?.instance !== undefined) words.push("--instance", String(note.instance));
  if (["finding", "documented"].includes(note?.kind) && note.findings?.length) words.push("--check", note.findings[0].check);
  return [...words, ...more].map(quoted).join(" ");
}

// Where the walk ended: the token that was refused, its bytes, and the byte of the instance that it begins at.
function refusal(note) {
  if (note.at === undefined) return "";
  if (note.status !== "ok") return `lost at token ${note.at}`;
  const allowed = note.allowed === undefined ? "" : `; ${note.allowed.toLocaleString("en")} ${note.allowed === 1 ? "token was" : "tokens were"} allowed there`;
  if (note.at >= (note.tokens || 0)) return `end-of-sequence, after all ${note.tokens || 0} tokens${allowed}`;
  const bytes = note.token === undefined ? "" : ` ${bytesShown(note.token)}, at byte ${note.offset}`;
  return `token ${note.at} of ${note.tokens}${bytes}${allowed}`;
}

function findingShown(finding) {
  const facts = [finding.at === undefined ? "" : `before token ${finding.at}`, finding.instance === undefined ? "" : `instance ${finding.instance}`, finding.cause ? `cause: ${finding.cause.replaceAll("_", " ")}` : "",
    finding.documented ? "documented by the backend" : "", finding.over ? `▼ ${finding.over} wrongly forbidden` : "", finding.under ? `▲ ${finding.under} wrongly allowed` : ""].filter(Boolean).join(", ");
  return el("li", {}, el("b", {}, finding.check.replaceAll("_", " ")), facts ? `: ${facts}` : "", el("span", { class: "text" }, finding.text || ""),
    finding.examples ? el("span", { class: "text token" }, `for example ${finding.examples.map(bytesShown).join("  ")}`) : null);
}

function noteShown(note) {
  const place = note.phase ? ` in ${note.phase}` : "";
  const refused = refusal(note);
  return el("li", {}, armName(note.arm), " ", el("b", {}, index.outcomes.find((each) => each.name === note.kind).title), place, note.signal ? `, ${note.signal}` : "",
    note.kind === "over_constrained" ? `, at ${refused}` : refused && note.status !== "ok" ? `: ${refused}` : "",
    note.text ? el("pre", { tabindex: "0", "aria-label": "what was said" }, note.text) : null,
    note.findings ? el("ul", { class: "notes" }, note.findings.map(findingShown), note.more_findings ? el("li", {}, `${note.more_findings} more findings`) : null) : null);
}

// What befell the case behind others in one process, and not alone.
function delayedShown(each) {
  const behind = each.behind.map((one, at) => [at ? ", " : "", link(`case/${encodeURIComponent(one.id)}?${new URLSearchParams({ suite: one.suite })}`, one.name || "unnamed")]);
  return el("li", {}, armName(each.arm), " ", each.led, behind, each.said);
}

function armsTable(place, detail) {
  const allowed = (arm) => {
    const found = detail.notes.filter((note) => note.arm === arm);
    const over = Math.max(0, ...found.map((each) => each.over || 0)), under = Math.max(0, ...found.map((each) => each.under || 0));
    return over || under ? `▼ ${over} ▲ ${under}` : "–";
  };
  const first = (arm) => {
    const note = detail.notes.find((each) => each.arm === arm && each.kind === "over_constrained" && each.at !== undefined);
    return note ? el("span", {}, `instance ${note.instance}: `, el("span", { class: "token" }, refusal(note))) : "–";
  };
  const texts = [["Refused first", first], ["Mask", allowed]].map(([title, of]) => [title, index.arms.map((_, arm) => of(arm))]).filter(([, cells]) => cells.some((each) => each !== "–"));
  const times = [["Compile", index.compile_us], ["Fill p50", index.fill_p50_us], ["Fill p99", index.fill_p99_us]];
  const row = (_, arm) => el("tr", {}, el("th", { scope: "row" }, armName(arm), " ", el("span", { class: "version" }, index.arms[arm].version)), el("td", {}, cameTo(place, arm).title), texts.map(([, cells]) => el("td", {}, cells[arm])),
    times.map(([, columns]) => el("td", { class: "time" }, duration(columns[arm][place]))));
  const masks = texts.some(([title]) => title === "Mask") ? "; ▼▲ tokens that its mask wrongly forbids and allows at the worst place that a finding names" : "";
  const heads = ["Backend", "State", ...texts.map(([title]) => title), ...times.map(([title]) => title)];
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Per backend" }, el("table", { class: "came-out" }, el("caption", {}, `What each backend made of it${masks}.`),
    el("thead", {}, el("tr", {}, heads.map((title) => el("th", { scope: "col" }, title)))), el("tbody", {}, index.arms.map(row))));
}

const VALID = new Map([[true, "the grammar allows it"], [false, "the grammar forbids it"], [null, "nobody says if it is valid"]]);

function instanceShown(detail, instance) {
  const came = index.arms.map((_, arm) => [arm, byLetter.get(detail.walks[arm]?.[instance.number] ?? ".")]).filter(([, each]) => each.name);
  const notes = detail.notes.filter((note) => note.instance === instance.number);
  const cut = instance.left_off ? `cut: ${instance.left_off.toLocaleString("en")} more bytes. ` : "";
  return [el("h3", {}, `Instance ${instance.number}: ${instance.name} `, el("span", { class: "version" }, VALID.get(instance.valid))), box(instance.content, `instance ${instance.number}`),
    cut || instance.invalid_utf8 ? el("p", { class: "note" }, cut, instance.invalid_utf8 ? "Not valid UTF-8: its other bytes are shown as \\xNN." : "") : null,
    el("p", { class: "ways" }, came.map(([arm, each]) => el("span", {}, armName(arm), " ", el("span", { class: each.fails ? "failed" : "kept" }, each.title)))),
    notes.length ? el("ul", { class: "notes" }, notes.map(noteShown)) : null];
}

// A script that judges the instance without us and without the backend, where one was tried and says what the case says. JSON's strings are Python's.
function judgement(detail, instance) {
  const lines = instance && detail.judgements?.[instance.number];
  if (!lines || instance.left_off || detail.grammar_left_off) return "";
  return [`grammar = ${JSON.stringify(detail.grammar)}`, `instance = ${JSON.stringify(instance.content)}.encode()`, lines, `# the case says: ${instance.valid ? "valid" : "not valid"}`, ""].join("\n");
}

const EXPECTED = { over_constrained: "True True on every line: the grammar allows it", under_constrained: "False on the last line: the grammar forbids it", declined: "no error: the grammar is right (a library that keeps its errors to itself prints nothing; the command shows them)" };

// What a script of the backend alone is to show.
function expected(note) {
  const finding = ["finding", "documented"].includes(note.kind) && note.findings?.[0];
  if (!finding) return EXPECTED[note.kind] || "it ends, and without an error";
  const only = finding.over && !finding.under ? "True True on the last line, because an output can go on so" : finding.under && !finding.over ? "False on the last line, because no output goes on so" : finding.check.replaceAll("_", " ");
  return `${only}; seen: ${JSON.stringify((finding.text || finding.check).slice(0, 300))}`;
}

// The adapter's lines under a vocabulary with only what the walk needs: every byte, its longer tokens, end-of-sequence. JSON's strings are Python's.
function snippet(detail, note) {
  const made = detail.snippets?.[note.arm];
  if (!made) return "";
  let pieces = made.pieces?.map(unhexed);
  if (!pieces) {
    const content = new TextEncoder().encode(detail.instances.find((each) => each.number === made.instance).content);
    let at = 0;
    pieces = (made.cuts || [...content].map(() => 1)).map((length) => content.slice(at, (at += length)));
  }
  const walk = [...pieces, ...(made.end ? [[]] : [])].map(pythonBytes);
  const longer = [...new Set(pieces.filter((each) => each.length > 1).map(pythonBytes))];
  const { backend, version } = index.arms[note.arm];
  return [`# ${onLine(`${backend} ${version}`)}`, `vocabulary = [${longer.join(", ")}] + [bytes([byte]) for byte in range(256)] + [b""]`,
    `walk = [vocabulary.index(token) for token in [${walk.join(", ")}]]`, `grammar = ${JSON.stringify(detail.grammar)}`, made.lines, `# expected: ${onLine(expected(note))}`, ""].join("\n");
}

function fenced(text) {
  const longest = Math.max(2, ...(text.match(/`+/g) || []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function issueText(place, detail, note) {
  const arm = index.arms[note.arm];
  const instance = detail.instances.find((each) => each.number === note.instance);
  const title = index.outcomes.find((each) => each.name === note.kind).title.split(" ").slice(1).join(" ");
  const refused = refusal(note);
  const parts = [`${title}: ${index.cases.name[place].split("\n")[0].slice(0, 120)}`, "",
    `${arm.backend} ${arm.version}${arm.options ? ` (${arm.options})` : ""}, vocabulary ${arm.vocabulary}`, "",
    `${index.dialects[index.cases.dialect[place]]}:`, fenced((detail.grammar || "").slice(0, 4000)), ""];
  if (instance) parts.push(`Instance (${VALID.get(instance.valid)}):`, fenced(instance.content.slice(0, 4000)), "");
  if (refused) parts.push(`Stopped: ${refused}`);
  if (note.text) parts.push("Said:", fenced(note.text));
  for (const each of note.findings || []) parts.push(`${each.check}${each.cause ? ` (${each.cause})` : ""}: ${each.text || ""}`);
  const judge = judgement(detail, instance);
  if (judge) parts.push("", "What is right, by an independent validator:", fenced(judge));
  const alone = snippet(detail, note);
  const head = alone || canRepro(note.arm) ? "A script that needs the backend alone:" : "To walk it again:";
  return [...parts, "", head, fenced(alone || command(place, note.arm, note, "--script", "repro.py")), ""].join("\n");
}

function neighbours(place) {
  const at = list.order.indexOf(place);
  const near = (step, title) => { const other = at < 0 ? undefined : list.order[at + step]; return other === undefined ? "" : link(caseHash(other), title); };
  return [near(-1, "← previous"), near(1, "next →")];
}

async function showCase(place) {
  const { name, id, suite, dialect, tags } = index.cases;
  const detail = await detailOf(place);
  const top = [
    el("p", { class: "ways" }, link(list.query.size ? `cases?${list.query}` : "cases", "← Cases"), ...neighbours(place), el("a", { class: "end", href: "#disagreements" }, "Report")),
    el("h2", { tabindex: "-1" }, name[place].trim() || "unnamed"),
    el("p", { class: "version" }, `${index.suites[suite[place]]} · ${index.dialects[dialect[place]]} · ${id[place]} `,
      tags[place].map((tag) => [el("span", { class: "tag" }, link(`cases?${new URLSearchParams({ tag: index.tags[tag] })}`, index.tags[tag])), " "]))];
  const noted = detail || { notes: [], instances: [], walks: {}, more: 0 };
  const parts = [armsTable(place, noted)];
  if (!detail) {
    parts.push(el("p", { class: "warning" }, "This case works without a divergence, or is not judged or not measured, on every arm; its grammar and instances were left off to keep the page small.", index.page.alone ? "" : " report.json has them."));
  } else {
    if (detail.delayed) parts.push(el("h3", {}, "Behind other cases only"), el("ul", { class: "notes" }, detail.delayed.map(delayedShown)));
    parts.push(el("h3", {}, "Grammar"), detail.grammar === undefined ? el("p", { class: "note" }, canRepro(0) ? "Its grammar is not in the run's cases.jsonl." : "The run was published without its cases.") : box(detail.grammar, "grammar"),
      detail.grammar_left_off ? el("p", { class: "note" }, `cut: ${detail.grammar_left_off.toLocaleString("en")} more characters`) : null);
    const whole = detail.notes.filter((note) => note.instance === undefined || !detail.instances.some((each) => each.number === note.instance));
    if (whole.length) parts.push(el("h3", {}, "The whole case"), el("ul", { class: "notes" }, whole.map(noteShown)));
    const fails = (instance) => detail.notes.some((note) => note.instance === instance.number);
    parts.push(...detail.instances.filter(fails).flatMap((instance) => instanceShown(detail, instance)));
    const fine = detail.instances.filter((instance) => !fails(instance));
    if (fine.length) parts.push(el("details", { open: fine.length === detail.instances.length }, el("summary", {}, `${fine.length} ${fine.length === 1 ? "instance without a failure of its own" : "instances without a failure of their own"}`), fine.flatMap((instance) => instanceShown(detail, instance)).filter(Boolean)));
    if (detail.more_instances || detail.more) parts.push(el("p", { class: "note" }, `${detail.more_instances} more instances and ${detail.more} more notes are not shown; grammarbench table RUN --format csv lists every walk.`));
    parts.push(...again(place, detail));
  }
  explorer.replaceChildren(...[...top, ...parts].filter(Boolean));
}

function again(place, detail) {
  const ours = (note) => note.kind === "harness_error";
  const firsts = index.arms.map((_, arm) => { const mine = detail.notes.filter((note) => note.arm === arm); return mine.find((note) => !ours(note)) || mine[0]; }).filter(Boolean);
  const parts = [el("h3", {}, "See it again")];
  if (!firsts.length) return [...parts, box(command(place, 0), "command")];
  for (const note of firsts) {
    const alone = snippet(detail, note), why = index.arms[note.arm].no_snippet;
    parts.push(el("p", {}, armName(note.arm)), box(command(place, note.arm, note), "command"),
      alone ? el("details", {}, el("summary", {}, "With the backend alone"), box(alone, "script of the backend alone"))
        : el("p", { class: "note" }, ours(note) ? "No script of the backend alone: what went wrong is ours." : note.phase === "dialect" ? "No script of the backend alone: it has no such dialect." : why ? `No script of the backend alone here: ${why}.` : "No short script of the backend alone: the walk is long or special, or the page would be too large with it."));
  }
  const all = firsts.every((note) => canRepro(note.arm));
  const walks = all ? "A command walks the instance again, token by token, and prints what was allowed there." : "Each command walks the case again and writes the run to the folder \"again\"; grammarbench repro with that folder then shows each token. CORPUS stands for the folder of a suite that does not come with GrammarBench.";
  parts.push(el("p", { class: "note" }, `${walks} A script needs the backend alone: for each token it prints the bytes, whether the mask allows it, whether it is accepted. Its lines come from the adapter. Its vocabulary is not a tokenizer's: it holds only what the walk needs. The script has not been run${all ? ": grammarbench repro tries it, and --script FILE writes it" : ""}.`));
  const judged = detail.notes.find((note) => note.instance !== undefined);
  const judge = judgement(detail, detail.instances.find((each) => each.number === judged?.instance) || detail.instances[0]);
  if (judge) parts.push(el("h3", {}, "What is right, by an independent validator"), box(judge, "snippet"));
  const faults = firsts.filter((note) => !ours(note));
  if (detail.grammar !== undefined && faults.length) {
    parts.push(el("h3", {}, "As an issue"), el("p", { class: "note" }, "Plain text to paste into the backend's tracker."));
    for (const note of faults) parts.push(el("details", {}, el("summary", {}, armName(note.arm)), box(issueText(place, detail, note), `issue text for ${index.arms[note.arm].label}`)));
  }
  return parts;
}
