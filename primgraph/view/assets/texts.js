// Text of the steps, side by side.

let offered = []; // rows with their lines, as shown
const rows = new Rows(at("rows"), at("rows-inside"), (r) => {
  const line = lineOf(offered[r]);
  rows.select(r, false);
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
  if (at("text").hidden) return;
  const right = now.lines.map(([text]) => text);
  const other = at("against").value === "" ? null : step(Number(at("against").value));
  at("only-changes").disabled = !other;
  if (!other) {
    offered = right.map((_, i) => [i]);
    at("changes").textContent = now.note;
    return rows.show(offered, [right]);
  }
  const left = other.lines.map(([text]) => text);
  const aligned = alignment(left, right);
  const same = ([i, j]) => i >= 0 && j >= 0;
  const count = (test) => aligned.filter(test).length;
  const lines = `${count(([i, , moved]) => i < 0 && moved < 0)} lines added, ${count(([, j, moved]) => j < 0 && moved < 0)} removed`;
  at("changes").textContent = [lines, tally(other, now), now.note].filter((text) => text).join(" · ");
  offered = at("only-changes").checked ? shortenedRows(aligned, same) : aligned;
  rows.show(offered, [left, right]);
}

// How the numbers of operators differ, the largest differences first.
function tally(before, after) {
  const change = new Map();
  for (const [sign, { picture }] of [[-1, before], [1, after]]) {
    for (const [name, count] of describe(picture.boxes.filter((box) => !["input", "output"].includes(box.part))).operators) {
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
  if (on) writeText();
}
