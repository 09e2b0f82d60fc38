// The page: its state, and what clicks and keys do to it.

const at = (id) => document.getElementById(id);
const [first, ...blocks] = document.querySelectorAll("script.step");
const names = JSON.parse(first.textContent);
const steps = []; // parsed when first shown

const KINDS = { line: "source line", operator: "operator lowered", pattern: "repeated pattern",
  stretch: "stretch of the graph", none: "nothing" };

const scene = drawn("g");
const picture = at("picture");
const camera = new Camera(picture, scene);
let now = null; // the step that is shown
let places = { boxes: [], size: { width: 1, height: 1 } };
let selected = null;

function step(number) {
  if (!steps[number]) {
    const read = unpacked(JSON.parse(blocks[number].textContent));
    steps[number] = { number, name: names[number], ...read, trees: new Map(), hay: null, ...firstKind(read.picture) };
  }
  return steps[number];
}

// Groups that fold to few enough boxes, the most telling kind first.
function firstKind(graph) {
  const kinds = Object.keys(graph.groupings).filter((kind) => graph.groupings[kind].length);
  const spared = (kind) => graph.groupings[kind].reduce((sum, group) => sum + group.members.length - 1, 0);
  const left = (kind) => graph.boxes.length - spared(kind);
  const kind = kinds.find((kind) => left(kind) <= LIMIT / 2) ?? kinds.find((kind) => left(kind) <= LIMIT);
  return { kinds, kind: kind ?? kinds[0] ?? "none" };
}

// The tree of the kind of grouping in use, with the nodes that are open; small graphs start open.
function tree() {
  if (!now.trees.has(now.kind)) {
    const made = { ...foldingTree(now.picture, now.kind), open: new Set() };
    if (now.picture.boxes.length <= LIMIT) unfoldAll(made.root, made.open);
    now.trees.set(now.kind, made);
  }
  return now.trees.get(now.kind);
}

function redraw() {
  const { root, open } = tree();
  const shown = visible(root, open);
  const hot = at("colouring").value === "heat" ? Math.max(...shown.map((node) => node.heat ?? 0)) : 0;
  const faces = shown.map((node) => faceOf(node, hot > 0));
  const arrows = arrowsBetween(now.picture, shown);
  const laid = layout(faces.map((face) => [face.width, face.height]), arrows.map(([tail, head]) => [tail, head]));
  const lines = drawn("g", { class: "arrows" });
  arrows.forEach(([, , labels], i) => lines.append(drawArrow(laid.routes[i], labels)));
  const boxes = shown.map((node, i) => {
    const [x, y] = laid.corners[i];
    const made = drawBox(node, faces[i], x, y, hot);
    return { node, made, x, y, width: faces[i].width, height: faces[i].height };
  });
  scene.replaceChildren(lines, ...boxes.map((box) => box.made));
  places = { boxes, arrows, lines: [...lines.children], size: { width: laid.width, height: laid.height } };
  picture.classList.toggle("heated", hot > 0);
  marks();
  legend(shown, hot);
}

function boxOf(target) {
  const made = target.closest?.(".box");
  return made && places.boxes.find((box) => box.made === made);
}

// The shown box that stands for a box of the picture, folded away in it or not.
function standsFor(index) {
  const leaf = tree().leaves[index];
  const above = new Set([leaf, ...ancestors(leaf)]);
  return places.boxes.find((box) => above.has(box.node));
}

function marks() {
  const hits = new Set(found.all);
  const current = found.all[found.place];
  for (const { node, made } of places.boxes) {
    made.classList.toggle("match", hits.size > 0 && node.boxes.some((i) => hits.has(i)));
    made.classList.toggle("current", current !== undefined && node.boxes.includes(current));
    made.classList.toggle("new", node.boxes.some((i) => added.has(i)));
    made.classList.toggle("selected", selected !== null && node.boxes.includes(selected));
  }
}

function legend(shown, hot) {
  const present = new Set(shown.flatMap((node) => (node.children ? [...node.parts.keys()] : [node.part])));
  if (shown.some((node) => node.part === "mixed")) present.add("mixed");
  const entries = PARTS.filter((part) => present.has(part)).map((part) => {
    const sample = drawn("svg", { width: 30, height: 18, viewBox: "-1 -1 44 26", "aria-hidden": "true" },
      drawn("g", { class: `sample part-${part}` }, drawn("path", { class: "shape", d: outline(part, 42, 24) })));
    return element("li", {}, sample, PART_TEXT[part]);
  });
  if (hot > 0) {
    entries.push(element("li", {}, element("span", { class: "scale" }), `share of time, 0 to ${percent(hot)}`));
  }
  at("legend").replaceChildren(...entries);
}

let quiet = 0;
function say(text) {
  at("message").textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => at("message").replaceChildren(), 6000);
}

// Folding.

// Redraw, keeping what `index` stands in at its place on the screen.
function redrawAround(index) {
  const before = standsFor(index);
  const [x, y] = [before.x + before.width / 2, before.y];
  redraw();
  const after = standsFor(index);
  camera.pan((x - after.x - after.width / 2) * camera.k, (y - after.y) * camera.k);
  return after;
}

function toggle(node) {
  const { root, open } = tree();
  if (node.children) {
    const folded = unfold(root, open, [node]);
    if (folded) say(`At most ${LIMIT} boxes are shown: what was unfolded first is folded again.`);
  } else if (node.parent.parent) open.delete(node.parent);
  hideCard();
  redrawAround(node.boxes[0]).made.focus({ preventScroll: true });
}

function foldAll() {
  tree().open.clear();
  redraw();
  show();
}

function unfoldEverything() {
  const { root, open, leaves } = tree();
  const all = unfoldAll(root, open);
  redraw();
  show();
  say(all ? "" : `At most ${LIMIT} boxes are shown at once: some of the ${leaves.length} stay folded.`);
}

function show(whole = false) {
  const top = places.boxes[0];
  camera.fit(places.size, whole, top ? top.x + top.width / 2 : 0);
}

// Unfold down to a box of the picture and bring it to the middle.
function reveal(index) {
  const { root, open, leaves } = tree();
  const above = ancestors(leaves[index]);
  if (above.some((node) => !open.has(node))) {
    unfold(root, open, above);
    redraw();
  } else marks();
  camera.centre(standsFor(index));
}

// The card.

function hideCard() {
  at("card").hidden = true;
}

function showCard(box) {
  fillCard(at("card"), box.node.label, cardRows(box.node, now.picture));
  placeCard(at("card"), box.made, at("stage"));
  box.made.setAttribute("aria-describedby", "card");
  places.arrows.forEach(([tail, head], i) => {
    places.lines[i].classList.toggle("near", places.boxes[tail] === box || places.boxes[head] === box);
  });
  const siblings = box.node.parent.parent ? box.node.parent : null;
  for (const { node, made } of places.boxes) {
    made.classList.toggle("sibling", siblings !== null && node.parent === siblings);
  }
}

function leave() {
  hideCard();
  for (const made of scene.querySelectorAll("[aria-describedby]")) made.removeAttribute("aria-describedby");
  for (const made of scene.querySelectorAll(".near, .sibling")) made.classList.remove("near", "sibling");
}

function select(index) {
  selected = index;
  marks();
  if (index === null || at("text").hidden) return;
  rows.select(rowOf(index));
  rows.scrollTo(rows.selected);
}

// Search.

const found = { all: [], place: 0 };

function find(text) {
  now.hay ??= haystack(now.picture);
  found.all = search(now.hay, text);
  found.place = 0;
  findNext(0, text);
}

function findNext(by, text = at("search").value) {
  const count = found.all.length;
  if (count) {
    found.place = (found.place + by + count) % count;
    reveal(found.all[found.place]);
  } else marks();
  at("matches").textContent = count ? `${found.place + 1} of ${count}` : text.trim() ? "none" : "";
}

// Steps.

function openStep(number) {
  now = step(number);
  selected = null;
  document.querySelectorAll("#steps [role=tab]").forEach((tab, i) => {
    tab.setAttribute("aria-selected", i === number);
    tab.tabIndex = i === number ? 0 : -1;
  });
  const kinds = [...now.kinds, "none"];
  at("kind").replaceChildren(...kinds.map((kind) => element("option", { value: kind }, KINDS[kind] ?? kind)));
  at("kind").value = now.kind;
  // What was measured is shown at once, and stays chosen until there is nothing measured.
  const measured = now.picture.boxes.some((box) => box.heat !== null);
  if (measured === at("heat-field").hidden) at("colouring").value = measured ? "heat" : "part";
  at("heat-field").hidden = !measured;
  const others = names.map((name, i) => element("option", { value: i }, name)).filter((_, i) => i !== number);
  at("against").replaceChildren(element("option", { value: "" }, "nothing"), ...others);
  at("against").value = number > 0 ? number - 1 : "";
  Object.assign(found, { all: [], place: 0 });
  redraw();
  show();
  if (at("search").value) find(at("search").value);
  writeText();
}
