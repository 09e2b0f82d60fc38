// The lines of two texts side by side; only the rows in sight exist in the document.

const ROW = 20;
const AROUND = 3; // unchanged lines that stay around a change

// Rows to show: [left, right], or a number of unchanged rows left out.
function shortenedRows(rows, same) {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, r) => {
    if (!same(row)) near.fill(1, Math.max(0, r - AROUND), r + AROUND + 1);
  });
  const kept = [];
  let hidden = 0;
  rows.forEach((row, r) => {
    if (near[r] && hidden) {
      kept.push(hidden);
      hidden = 0;
    }
    if (near[r]) kept.push(row);
    else hidden++;
  });
  if (hidden) kept.push(hidden);
  return kept;
}

class Rows {
  constructor(scroller, inside, chosen) {
    Object.assign(this, { scroller, inside, chosen, rows: [], sides: [], selected: -1 });
    scroller.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(scroller);
    scroller.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      this.step(by);
    });
    inside.addEventListener("click", (event) => {
      const line = event.target.closest("[data-row]");
      if (line) this.chosen(Number(line.dataset.row));
    });
  }

  // The next row in the direction of an arrow key, past rows that are left out.
  step(by) {
    let r = this.selected < 0 ? Math.floor(this.scroller.scrollTop / ROW) : this.selected + by;
    while (typeof this.rows[r] === "number") r += by;
    if (!this.rows[r]) return;
    this.chosen(r);
    this.scrollTo(r);
  }

  // `sides` are the texts, one or two; rows have one line number for each. With `marked`, lines that
  // stand on one side only are said to have come or gone.
  show(rows, sides, marked) {
    Object.assign(this, { rows, sides, marked, selected: -1 });
    this.inside.style.height = `${rows.length * ROW}px`;
    this.scroller.scrollTop = 0;
    this.draw();
  }

  select(r) {
    this.selected = r;
    this.draw();
  }

  // Row `r` into the middle, unless it is in sight or there is none.
  scrollTo(r) {
    const { scrollTop, clientHeight } = this.scroller;
    const inSight = r * ROW >= scrollTop && (r + 1) * ROW <= scrollTop + clientHeight;
    if (r >= 0 && !inSight) this.scroller.scrollTop = r * ROW - clientHeight / 2;
    this.draw();
  }

  draw() {
    const from = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 5);
    const to = Math.min(this.rows.length, from + Math.ceil(this.scroller.clientHeight / ROW) + 10);
    const made = [];
    for (let r = from; r < to; r++) made.push(this.row(r));
    this.inside.replaceChildren(...made);
  }

  markOf(row, side) {
    if (row[side] < 0) return "none";
    if (!this.marked || row[1 - side] >= 0) return "same";
    return row[2] >= 0 ? "moved" : ["removed", "added"][side];
  }

  row(r) {
    const row = this.rows[r];
    const made = element("div", { class: "row" });
    made.style.top = `${r * ROW}px`;
    if (typeof row === "number") {
      made.classList.add("gap");
      made.append(`${row} unchanged ${row === 1 ? "line" : "lines"}`);
      return made;
    }
    made.classList.toggle("selected", r === this.selected);
    this.sides.forEach((lines, side) => {
      const mark = this.markOf(row, side);
      const sign = { removed: "−", added: "+", moved: "↕" }[mark] ?? "";
      const text = row[side] < 0 ? "" : lines[row[side]];
      const number = row[side] < 0 ? "" : String(row[side] + 1);
      const place = mark === "none" ? {} : { "data-row": r, title: text };
      made.append(element("div", { class: `line ${mark}`, ...place },
        element("span", { class: "number" }, number),
        element("span", { class: "sign" }, sign),
        element("code", {}, text)));
    });
    return made;
  }
}
