// What the page does at clicks and keys, and its start.

picture.append(
  drawn("defs", {},
    drawn("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8,
      markerUnits: "userSpaceOnUse", orient: "auto" }, drawn("path", { d: "M0 0.5L8 4L0 7.5Z" }))),
  scene,
);

picture.addEventListener("click", (event) => {
  const box = boxOf(event.target);
  if (camera.dragged || event.target.closest(".port.source")) return;
  const frame = frameOf(event.target);
  if (frame && event.target.closest(".fold, .bar, .title")) return toggle(frame.node);
  if (!box) {
    select(null);
    return leave();
  }
  if (box.node.children) return toggle(box.node);
  select(box.node.boxes[0]);
});
picture.addEventListener("pointerover", (event) => {
  const box = boxOf(event.target);
  leave();
  if (box) showCard(box);
});
picture.addEventListener("pointerleave", leave);
picture.addEventListener("focusin", (event) => {
  const box = boxOf(event.target);
  if (box && event.target.matches(":focus-visible")) showCard(box);
});

// The nearest box in the direction of an arrow key.
function neighbour(from, [dx, dy]) {
  let [best, least] = [null, Infinity];
  for (const box of places.boxes) {
    const x = box.x + box.width / 2 - from.x - from.width / 2;
    const y = box.y - from.y;
    const ahead = x * dx + y * dy;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (ahead > 1 && ahead + 2 * aside < least) [best, least] = [box, ahead + 2 * aside];
  }
  return best;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function boxKeys(event, box) {
  if (event.key === "Enter" || event.key === " ") {
    if (box.node.children) toggle(box.node);
    else if (event.key === " " && box.node.parent.parent) toggle(box.node.parent);
    else select(box.node.boxes[0]);
    return true;
  }
  const next = ARROWS[event.key] && !event.shiftKey && neighbour(box, ARROWS[event.key]);
  if (!next) return false;
  camera.centre(next);
  next.made.focus({ preventScroll: true });
  return true;
}

picture.addEventListener("keydown", (event) => {
  const box = boxOf(event.target);
  const direction = ARROWS[event.key];
  if (box && boxKeys(event, box)) return event.preventDefault();
  if (!box && event.key === "Enter" && places.boxes.length) {
    camera.centre(places.boxes[0]);
    places.boxes[0].made.focus({ preventScroll: true });
  } else if (direction) {
    camera.pan(-60 * direction[0], -60 * direction[1]);
    event.preventDefault();
  }
});

const KEYS = {
  "/": () => at("search").select(),
  "+": () => camera.zoom(1.25),
  "=": () => camera.zoom(1.25),
  "-": () => camera.zoom(0.8),
  0: () => show(),
  t: () => showText(at("text").hidden),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    at("search").value = "";
    find("");
    select(null);
    leave();
    picture.focus();
  } else if (KEYS[event.key] && !event.ctrlKey && !event.metaKey && !event.target.matches("input, select")) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

let typed = 0;
function findTyped() {
  clearTimeout(typed);
  typed = 0;
  find(at("search").value);
}
at("search").addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(findTyped, 150);
});
at("search").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  if (typed) findTyped();
  else findNext(event.shiftKey ? -1 : 1);
});
at("kind").addEventListener("change", () => {
  now.kind = at("kind").value;
  redraw();
  show();
});
at("steps").addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const next = by && document.querySelectorAll("#steps [role=tab]")[now.number + by];
  if (!next) return;
  openStep(now.number + by);
  next.focus();
});
at("colouring").addEventListener("change", redraw);
at("fold-all").addEventListener("click", foldAll);
at("unfold-all").addEventListener("click", unfoldEverything);
at("zoom-in").addEventListener("click", KEYS["+"]);
at("zoom-out").addEventListener("click", KEYS["-"]);
at("fit").addEventListener("click", KEYS[0]);
at("text-toggle").addEventListener("click", KEYS.t);
at("against").addEventListener("change", writeText);
at("only-changes").addEventListener("change", writeText);

names.forEach((name, i) => {
  const tab = element("button", { type: "button", role: "tab", "aria-controls": "stage" }, name);
  tab.addEventListener("click", () => openStep(i));
  at("steps").append(tab);
});
openStep(0);
