// Text of the steps, side by side.

let offered = []; // rows with their lines, as shown
const rows = new Rows(at("rows"), at("rows-inside"), (r, side) => {
  const line = offered[r][offered[r].length - 1];
  const box = line < 0 ? -1 : now.lines[line][1];
  rows.select(r, false);
  if (box >= 0) {
    selected = box;
    reveal(box);
  } else say(side === 0 && line < 0 ? `This line is not in “${now.name}”.` : "This line has no box of its own.");
});

function rowOf(index) {
  return offered.findIndex((row) => Array.isArray(row) && row.at(-1) >= 0 && now.lines[row.at(-1)][1] === index);
}

function writeText() {
  if (at("text").hidden) return;
  const right = now.lines.map(([text]) => text);
  const other = at("against").value === "" ? null : step(Number(at("against").value));
  at("rows").classList.toggle("single", !other);
  at("only-changes").disabled = !other;
  if (!other) {
    offered = right.map((_, i) => [i]);
    at("changes").textContent = now.note;
    return rows.show(offered, [right]);
  }
  const left = other.lines.map(([text]) => text);
  const aligned = alignment(left, right);
  const same = ([i, j]) => i >= 0 && j >= 0;
  const [gone, come] = [aligned.filter((row) => row[1] < 0).length, aligned.filter((row) => row[0] < 0).length];
  at("changes").textContent = [`+${come} −${gone} lines`, tally(other, now), now.note].filter((text) => text).join(" · ");
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
