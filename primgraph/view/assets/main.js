// The page: its state, and what clicks and keys do to it.

const at = (id) => document.getElementById(id);
const [first, ...blocks] = document.querySelectorAll("script.step");
const names = JSON.parse(first.textContent);
const steps = []; // parsed when first shown

const KINDS = { layer: "part and layer", line: "source line", pattern: "repeated pattern", none: "nothing" };

const scene = drawn("g");
const picture = at("picture");
const camera = new Camera(picture, scene);
let now = null; // the step that is shown
let places = { boxes: [], frames: [], lines: [], size: { width: 1, height: 1 } };
let selected = null;

function step(number) {
  if (!steps[number]) {
    const read = unpacked(JSON.parse(blocks[number].textContent));
    const kinds = Object.keys(read.picture.scenes).filter((kind) => kind !== "none");
    steps[number] = { number, name: names[number], ...read, trees: new Map(), hay: null, kinds, kind: kinds[0] ?? "none" };
  }
  return steps[number];
}

// The tree of the kind of grouping in use, with the nodes that are open.
function tree() {
  if (!now.trees.has(now.kind)) now.trees.set(now.kind, treeOf(now.picture, now.picture.scenes[now.kind]));
  return now.trees.get(now.kind);
}

function redraw() {
  const { root, open } = tree();
  const whole = placed(root, open);
  places = { boxes: [], frames: [], lines: [], size: { width: whole.size[0], height: whole.size[1] } };
  const hottest = at("colouring").value === "heat" ? hottestOf(whole) : 0;
  const layers = { columns: drawn("g"), frames: drawn("g"), arrows: drawn("g", { class: "arrows" }), boxes: drawn("g") };
  for (const column of whole.columns) layers.columns.append(drawColumn(column, whole.size[1]));
  drawInside(whole, 0, 0, hottest, layers);
  scene.replaceChildren(...Object.values(layers));
  picture.classList.toggle("heated", hottest > 0);
  marks();
  legend(hottest);
}

function hottestOf({ rects }) {
  const heats = rects.filter((rect) => rect.node).map((rect) => (rect.inner ? hottestOf(rect.inner) : rect.node.heat ?? 0));
  return Math.max(0, ...heats);
}

// Draw what is in an open group whose inside begins at `left`, `top`: frames below what they hold.
function drawInside({ rects, arrows }, left, top, hottest, layers) {
  const moved = new Map(rects.map((rect) => [rect, { ...rect, x: rect.x + left, y: rect.y + top }]));
  for (const rect of moved.values()) {
    if (rect.inner) {
      const made = drawFrame(rect.node, rect);
      layers.frames.append(made);
      places.frames.push({ ...rect, made });
      drawInside(rect.inner, rect.x, rect.y + TITLE, hottest, layers);
    } else if (rect.node) {
      if (rect.node.children) rect.node.told ??= describe(rect.node.boxes.map((i) => now.picture.boxes[i]));
      const made = drawBox(rect.node, faceOf(rect.node, hottest > 0), rect, hottest);
      layers.boxes.append(made);
      places.boxes.push({ ...rect, made });
    } else {
      const made = drawPort(rect.port, rect);
      layers.boxes.append(made);
      if (rect.port.source >= 0) made.addEventListener("click", () => reveal(rect.port.source));
    }
  }
  for (const arrow of arrows) {
    const route = arrow.route.map(([x, y]) => [x + left, y + top]);
    const made = drawArrow({ ...arrow, route });
    layers.arrows.append(made);
    places.lines.push({ made, ends: [arrow.tail.node, arrow.head.node] });
  }
}

function boxOf(target) {
  const made = target.closest?.(".box");
  return made && places.boxes.find((box) => box.made === made);
}

function frameOf(target) {
  const made = target.closest?.(".frame");
  return made && places.frames.find((frame) => frame.made === made);
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

function legend(hottest) {
  const present = new Map();
  for (const { part, order } of now.picture.boxes) {
    if (!present.has(part)) present.set(part, new Set());
    present.get(part).add(Math.max(order, 1));
  }
  if (places.boxes.some((box) => box.node.part === "mixed")) present.set("mixed", new Set([1]));
  const kinds = PARTS.flatMap((part) =>
    [...(present.get(part) ?? [])].sort((a, b) => a - b).map((order) => [part, order]));
  const entries = kinds.map(([part, order]) => {
    const sample = drawn("svg", { width: 30, height: 18, viewBox: "-1 -1 44 26", "aria-hidden": "true" },
      drawn("g", { class: `sample ${partClass(part, order)}` },
        drawn("path", { class: "shape", d: outline(part, 42, 24) })));
    return element("li", {}, sample, partTitle(part, order));
  });
  if (hottest > 0) {
    entries.push(element("li", {}, element("span", { class: "scale" }), `share of time, 0 to ${percent(hottest)}`));
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

// Redraw; what was fitted is fitted again, else `node` stays at its place on the screen.
function redrawAround(node) {
  const placeOf = () => [...places.boxes, ...places.frames].find((place) => place.node === node);
  const before = placeOf();
  const [x, y] = [before.x + before.width / 2, before.y];
  redraw();
  if (camera.fitted) return show();
  const after = placeOf();
  camera.pan((x - after.x - after.width / 2) * camera.k, (y - after.y) * camera.k);
}

function toggle(node) {
  const { root, open } = tree();
  if (open.has(node)) open.delete(node);
  else if (unfold(root, open, [node])) say(`At most ${LIMIT} boxes are shown: what was unfolded first is folded again.`);
  hideCard();
  redrawAround(node);
  standsFor(node.boxes[0]).made.focus({ preventScroll: true });
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

function show() {
  camera.fit(places.size);
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
  for (const { made, ends } of places.lines) made.classList.toggle("near", ends.includes(box.node));
}

function leave() {
  hideCard();
  for (const made of scene.querySelectorAll("[aria-describedby]")) made.removeAttribute("aria-describedby");
  for (const made of scene.querySelectorAll(".near")) made.classList.remove("near");
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
