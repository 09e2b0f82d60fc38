// Text of the steps, side by side.

let offered = []; // rows with their lines, as shown
let added = new Set(); // boxes of lines that the other step does not have
const rows = new Rows(at("rows"), at("rows-inside"), (r) => {
  const line = lineOf(offered[r]);
  rows.select(r);
  if (line < 0) return say(`“${now.name}” does not have this line.`);
  if (now.lines[line][1] < 0) return say("This line has no box of its own.");
  selected = now.lines[line][1];
  reveal(selected);
});

// The line of the step that is shown, which is the right one of two; -1 where it has none.
function lineOf([left, right, moved]) {
  return right === undefined ? left : right >= 0 ? right : moved;
}

function rowOf(index) {
  return offered.findIndex((row) => Array.isArray(row) && now.lines[lineOf(row)]?.[1] === index);
}

function writeText() {
  added = new Set();
  if (!at("text").hidden) compare();
  marks();
}

function compare() {
  const right = now.lines.map(([text]) => text);
  const other = at("against").value === "" ? null : step(Number(at("against").value));
  const about = other !== null && sameBoxes(other.picture, now.picture);
  at("only-changes").disabled = !other || about;
  if (!other) {
    offered = right.map((_, i) => [i]);
    at("changes").textContent = now.note;
    return rows.show(offered, [right], false);
  }
  const left = other.lines.map(([text]) => text);
  const [all, told] = about
    ? [alignmentByBox(other.lines, now.lines), "the same equations"]
    : changesOf(alignment(left, right));
  at("changes").textContent = [told, tally(other, now), now.note].filter((text) => text).join(" · ");
  offered = all;
  rows.show(offered, [left, right], !about);
  if (about) rows.scrollTo(all.findIndex(([i, j]) => i >= 0 && j >= 0));
}

// The rows to show, and in words how many changed; boxes of added lines are marked.
function changesOf(all) {
  const come = all.filter(([i, , moved]) => i < 0 && moved < 0);
  const gone = all.filter(([, j, moved]) => j < 0 && moved < 0);
  added = new Set(come.map(([, j]) => now.lines[j][1]));
  const same = ([i, j]) => i >= 0 && j >= 0;
  return [at("only-changes").checked ? shortenedRows(all, same) : all,
    `${come.length} lines added, marked + in the picture, ${gone.length} removed`];
}

function sameBoxes(one, two) {
  if (one === two) return true;
  return one.boxes.length === two.boxes.length
    && one.boxes.every((box, i) => box.label === two.boxes[i].label && box.note === two.boxes[i].note);
}

// How the numbers of operators differ, the largest differences first.
function tally(before, after) {
  const change = new Map();
  for (const [sign, { picture }] of [[-1, before], [1, after]]) {
    const computed = picture.boxes.filter((box) => box.part !== "input" && box.part !== "output");
    for (const [name, count] of describe(computed).operators) {
      change.set(name, (change.get(name) ?? 0) + sign * count);
    }
  }
  const changed = [...change].filter(([, n]) => n).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const told = changed.slice(0, 6).map(([name, n]) => `${name} ${n < 0 ? "−" : "+"}${Math.abs(n)}`);
  return told.join(", ") + (changed.length > 6 ? ", …" : "");
}

function showText(on) {
  at("text").hidden = !on;
  at("text-toggle").setAttribute("aria-pressed", on);
  writeText();
}
