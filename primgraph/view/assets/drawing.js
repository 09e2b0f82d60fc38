// From shown nodes and their layout to SVG. Text only ever enters as text.

const WIDEST = { label: 34, note: 40 }; // characters
const STACK = 6; // how far the sheets below a folded group look out
const ENDS = new Set(["input", "output"]);
const PARTS = ["input", "constant", "forward", "tangent", "cotangent", "update", "output", "mixed"];
const PART_TEXT = { constant: "constant", forward: "forward", tangent: "forward mode", cotangent: "reverse",
  update: "update", input: "input", output: "output", mixed: "of several parts" };

function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function shortened(text, most) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

function percent(share) {
  return `${(100 * share).toPrecision(share < 0.0995 ? 2 : 3)} %`;
}

// The two lines of text in a box, for which it has been made wide enough.
function faceOf(node, heated) {
  const label = node.children ? titleOf(node) : node.label;
  const note = heated && node.heat !== null ? percent(node.heat) : node.note;
  return { label: shortened(label, WIDEST.label), note: shortened(note, WIDEST.note) };
}

function titleOf(node) {
  return `${node.label} (${node.boxes.length})`;
}

// What a part is called, with the order of the derivative where it is not the first.
function partTitle(part, order) {
  return order > 1 ? `${PART_TEXT[part]}, order ${order}` : PART_TEXT[part] ?? part;
}

// The classes of a part, with the shade of the order of a derivative.
function partClass(part, order) {
  return order > 1 ? `part-${part} order-${Math.min(order, 4)}` : `part-${part}`;
}

// Outlines tell the parts apart without colour: pill, cut corners, notched ends, plain.
function outline(part, w, h) {
  const c = 9;
  if (part === "input" || part === "output") {
    const r = h / 2;
    return `M${r} 0H${w - r}A${r} ${r} 0 0 1 ${w - r} ${h}H${r}A${r} ${r} 0 0 1 ${r} 0Z`;
  }
  if (part === "tangent") return `M${c} 0H${w - c}L${w} ${c}V${h - c}L${w - c} ${h}H${c}L0 ${h - c}V${c}Z`;
  if (part === "update") return `M0 0H${w}V${h - c}L${w - c} ${h}H${c}L0 ${h - c}Z`;
  if (part === "cotangent") return `M0 0H${w}L${w - c} ${h / 2}L${w} ${h}H0L${c} ${h / 2}Z`;
  return `M4 0H${w - 4}Q${w} 0 ${w} 4V${h - 4}Q${w} ${h} ${w - 4} ${h}H4Q0 ${h} 0 ${h - 4}V4Q0 0 4 0Z`;
}

function spoken(node) {
  const part = partTitle(node.part, node.order);
  const kind = node.children ? `folded group of ${node.boxes.length}, ${part}` : part;
  return `${node.label}, ${node.note}, ${kind}`;
}

function drawBox(node, face, rect, hottest) {
  const [width, height] = [rect.width, rect.height].map((n) => (node.children ? n - STACK : n));
  const box = drawn("g", { class: `box ${partClass(node.part, node.order)}`, transform: `translate(${rect.x} ${rect.y})`, tabindex: -1,
    role: "button", "aria-label": spoken(node) });
  if (node.children) {
    box.classList.add("folded");
    box.setAttribute("aria-expanded", "false");
    for (const shift of [STACK, STACK / 2]) {
      const transform = `translate(${shift} ${shift})`;
      box.append(drawn("path", { class: "shape under", d: outline(node.part, width, height), transform }));
    }
  }
  box.append(drawn("path", { class: "shape", d: outline(node.part, width, height) }));
  if (node.heat !== null && hottest > 0) {
    const warmth = drawn("path", { class: "warmth", d: outline(node.part, width, height) });
    warmth.setAttribute("fill-opacity", (0.7 * Math.sqrt(node.heat / hottest)).toFixed(3));
    box.append(warmth);
  }
  if (node.part === "mixed" && node.children) box.append(...shares(node, width, height));
  const middle = (width + (node.children ? 20 : 0)) / 2;
  box.append(drawn("text", { class: "label", x: middle, y: 18 }, face.label));
  box.append(drawn("text", { class: "note", x: middle, y: 33 }, face.note));
  if (node.order > 1) box.append(drawn("text", { class: "order", x: width - 9, y: 12 }, orderSign(node.order)));
  box.append(drawn("path", { class: "plus", d: `M${width - 12} 8h8m-4 -4v8` }));
  if (node.children) box.append(foldButton(node, 20, height / 2));
  return box;
}

// The sign of a derivative of that order.
function orderSign(order) {
  return `∂${[...String(order)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

// The frame of an open group, with its title.
function drawFrame(node, rect) {
  const frame = drawn("g", { class: `frame ${partClass(node.part, node.order)}`, transform: `translate(${rect.x} ${rect.y})` });
  const title = shortened(titleOf(node), Math.max(Math.floor((rect.width - 40) / 9), 2));
  frame.append(
    drawn("rect", { class: "border", width: rect.width, height: rect.height, rx: 8 }),
    drawn("rect", { class: "bar", width: rect.width, height: 24, rx: 8 }),
    drawn("text", { class: "title", x: 30, y: 17 }, title),
    foldButton(node, 16, 13),
  );
  return frame;
}

// The column of a part, with its name above.
function drawColumn({ part, order, left, right }, height) {
  return drawn("g", { class: `column ${partClass(part, order)}` },
    drawn("rect", { class: "lane", x: left - 12, y: 4, width: right - left + 24, height: height - 8, rx: 10 }),
    drawn("text", { class: "heading", x: (left + right) / 2, y: 22 }, partTitle(part, order)));
}

// Where values come into a group, or leave it.
function drawPort({ label, source }, rect) {
  const made = drawn("g", { class: source < 0 ? "port" : "port source", transform: `translate(${rect.x} ${rect.y})` },
    drawn("rect", { width: rect.width, height: rect.height, rx: rect.height / 2 }));
  if (label) made.append(drawn("text", { class: "note", x: rect.width / 2, y: 12.5 }, label));
  if (source >= 0) made.append(drawn("title", {}, "Show where this comes from"));
  return made;
}

// The strip at the foot of a group of several parts: how much of each.
function shares(node, width, height) {
  let x = 4;
  const { parts } = node.told;
  return PARTS.filter((part) => parts.has(part)).map((part) => {
    const length = ((width - 8) * parts.get(part)) / node.boxes.length;
    x += length;
    return drawn("rect", { class: `share part-${part}`, x: x - length, y: height - 4, width: length, height: 4 });
  });
}

function foldButton(node, x, y) {
  const open = tree().open.has(node);
  return drawn("g", { class: "fold" }, drawn("title", {}, `${open ? "Fold" : "Unfold"} ${node.label}`),
    drawn("rect", { x: x - 14, y: y - 13, width: 28, height: 26, fill: "transparent" }),
    drawn("circle", { cx: x, cy: y, r: 7 }),
    drawn("path", { d: `M${x - 4} ${y}h8${open ? "" : `M${x} ${y - 4}v8`}` }));
}

function drawArrow({ route, wire, labels, count }) {
  const d = wire ? wirePath(route) : curvePath(route);
  const width = ((wire ? 1 : 1.2) + 0.2 * Math.log2(count)).toFixed(2);
  const arrow = drawn("path", { class: wire ? "arrow wire" : "arrow", d, "marker-end": "url(#tip)", "stroke-width": width });
  const named = labels.filter((label) => label);
  if (named.length) arrow.append(drawn("title", {}, named.join(", ")));
  return arrow;
}

// The route curves to its second point, runs straight to the third, curves to the fourth, and so on.
function curvePath(route) {
  let d = `M${route[0].join(" ")}`;
  for (let i = 1; i < route.length; i++) {
    const [[px, py], [x, y]] = [route[i - 1], route[i]];
    const half = (py + y) / 2;
    d += i % 2 ? `C${px} ${half} ${x} ${half} ${x} ${y}` : `L${x} ${y}`;
  }
  return d;
}

// The route runs straight from point to point; its corners are round.
function wirePath(route) {
  let d = `M${route[0].join(" ")}`;
  for (let i = 1; i + 1 < route.length; i++) {
    const [[ax, ay], [x, y], [bx, by]] = [route[i - 1], route[i], route[i + 1]];
    const [before, after] = [Math.abs(x - ax) + Math.abs(y - ay), Math.abs(bx - x) + Math.abs(by - y)];
    const r = Math.min(7, before / 2, after / 2);
    d += `L${x - r * Math.sign(x - ax)} ${y - r * Math.sign(y - ay)}`
      + `Q${x} ${y} ${x + r * Math.sign(bx - x)} ${y + r * Math.sign(by - y)}`;
  }
  return `${d}L${route.at(-1).join(" ")}`;
}
