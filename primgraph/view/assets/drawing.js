// From shown nodes and their layout to SVG. Text only ever enters as text.

const FONT = { label: "600 13px system-ui, sans-serif", note: "11px ui-monospace, monospace" };
const HEIGHT = 42;
const WIDEST = 34; // characters of a label
const PARTS = ["input", "constant", "forward", "tangent", "cotangent", "output", "mixed"];
const PART_TEXT = { constant: "constant", forward: "forward", tangent: "tangent", cotangent: "cotangent",
  input: "input", output: "output", mixed: "of several parts" };

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

const pen = document.createElement("canvas").getContext("2d");

function widthOf(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

function shortened(text) {
  const letters = [...text];
  return letters.length > WIDEST ? `${letters.slice(0, WIDEST - 1).join("")}…` : text;
}

function percent(share) {
  return `${(100 * share).toPrecision(share < 0.0995 ? 2 : 3)} %`;
}

// The two lines of text in a box, and the size they need.
function faceOf(node, heated) {
  const label = shortened(node.children ? `${node.label} (${node.boxes.length})` : node.label);
  const note = shortened(heated && node.heat !== null ? percent(node.heat) : node.note);
  const text = Math.max(widthOf(label, FONT.label), widthOf(note, FONT.note));
  const button = node.children || node.parent.parent ? 20 : 0;
  return { label, note, button, width: Math.max(56, Math.ceil(text + 28 + button)), height: HEIGHT };
}

// Outlines tell the parts apart without colour: pill, cut corners, notched ends, plain.
function outline(part, w, h) {
  const c = 9;
  if (part === "input" || part === "output") {
    const r = h / 2;
    return `M${r} 0H${w - r}A${r} ${r} 0 0 1 ${w - r} ${h}H${r}A${r} ${r} 0 0 1 ${r} 0Z`;
  }
  if (part === "tangent") return `M${c} 0H${w - c}L${w} ${c}V${h - c}L${w - c} ${h}H${c}L0 ${h - c}V${c}Z`;
  if (part === "cotangent") return `M0 0H${w}L${w - c} ${h / 2}L${w} ${h}H0L${c} ${h / 2}Z`;
  return `M4 0H${w - 4}Q${w} 0 ${w} 4V${h - 4}Q${w} ${h} ${w - 4} ${h}H4Q0 ${h} 0 ${h - 4}V4Q0 0 4 0Z`;
}

function spoken(node) {
  const kind = node.children ? `folded group of ${node.boxes.length}, ${PART_TEXT[node.part]}` : PART_TEXT[node.part];
  return `${node.label}, ${node.note}, ${kind}`;
}

function drawBox(node, face, x, y, hottest) {
  const { width, height } = face;
  const box = drawn("g", { class: `box part-${node.part}`, transform: `translate(${x} ${y})`, tabindex: -1,
    role: "button", "aria-label": spoken(node) });
  if (node.children) {
    box.classList.add("folded");
    box.setAttribute("aria-expanded", "false");
    for (const shift of [6, 3]) {
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
  if (node.part === "mixed") box.append(...shares(node, width, height));
  const middle = (width + face.button) / 2;
  box.append(drawn("text", { class: "label", x: middle, y: 18 }, face.label));
  box.append(drawn("text", { class: "note", x: middle, y: 33 }, face.note));
  box.append(drawn("path", { class: "plus", d: `M${width - 12} 8h8m-4 -4v8` }));
  if (face.button) box.append(foldButton(node));
  return box;
}

// The strip at the foot of a group of several parts: how much of each.
function shares(node, width, height) {
  let x = 4;
  return PARTS.filter((part) => node.parts.has(part)).map((part) => {
    const length = ((width - 8) * node.parts.get(part)) / node.boxes.length;
    x += length;
    return drawn("rect", { class: `share part-${part}`, x: x - length, y: height - 4, width: length, height: 4 });
  });
}

function foldButton(node) {
  const what = node.children ? `Unfold ${node.label}` : `Fold ${node.parent.label}`;
  return drawn("g", { class: "fold" }, drawn("title", {}, what),
    drawn("rect", { x: 4, width: 30, height: HEIGHT, fill: "transparent" }),
    drawn("circle", { cx: 20, cy: HEIGHT / 2, r: 7 }),
    drawn("path", { d: node.children ? "M16 21H24M20 17V25" : "M16 21H24" }));
}

// The route curves to its second point, runs straight to the third, curves to the fourth, and so on.
function drawArrow(route, labels) {
  let d = `M${route[0].join(" ")}`;
  for (let i = 1; i < route.length; i++) {
    const [[px, py], [x, y]] = [route[i - 1], route[i]];
    const half = (py + y) / 2;
    d += i % 2 ? `C${px} ${half} ${x} ${half} ${x} ${y}` : `L${x} ${y}`;
  }
  const named = labels.filter((label) => label);
  const width = (1.2 + 0.2 * Math.log2(labels.length)).toFixed(2);
  const arrow = drawn("path", { class: "arrow", d, "marker-end": "url(#tip)", "stroke-width": width });
  if (named.length) arrow.append(drawn("title", {}, [...new Set(named)].slice(0, 8).join(", ")));
  return arrow;
}
