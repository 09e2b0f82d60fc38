// What can be folded, as a tree, and the part of it that is shown.

const ENDS = new Set(["input", "output"]);
const LIMIT = 300; // boxes shown at once
const RUNS = 60; // runs of neighbours that a long list is packed into
const LONGEST = 200; // things that one click may unfold into

// Inner nodes have `children`; a leaf has none. `boxes` are ids of boxes, which are their places.
function foldingTree(picture, kind) {
  const groupOf = new Array(picture.boxes.length);
  for (const group of picture.groupings[kind] ?? []) {
    if (group.members.length > 1) for (const id of group.members) groupOf[id] = group;
  }
  const made = new Map();
  const top = [];
  const leaves = picture.boxes.map(({ label, note, part, heat }, i) => ({ label, note, part, heat, boxes: [i] }));
  leaves.forEach((leaf, i) => {
    const group = groupOf[i];
    if (!group) return top.push(leaf);
    if (!made.has(group)) {
      made.set(group, { label: group.label, group: group.kind, members: [] });
      top.push(made.get(group));
    }
    made.get(group).members.push(leaf);
  });
  for (const node of made.values()) adopt(node, packed(node.members, LONGEST, picture), picture);
  return { root: adopt({}, packed(top, LIMIT, picture), picture), leaves };
}

// Too long a list becomes runs of neighbours, each a node of its own.
function packed(nodes, longest, picture) {
  if (nodes.length <= longest) return nodes;
  const size = Math.ceil(nodes.length / RUNS);
  const runs = [];
  for (let i = 0; i < nodes.length; i += size) {
    const run = nodes.slice(i, i + size);
    const node = { label: `${i + 1} – ${i + run.length} of ${nodes.length}`, group: "run" };
    runs.push(adopt(node, packed(run, LONGEST, picture), picture));
  }
  return runs;
}

function adopt(node, children, picture) {
  node.children = children;
  node.boxes = [];
  for (const child of children) {
    child.parent = node;
    for (const i of child.boxes) node.boxes.push(i);
  }
  Object.assign(node, describe(node.boxes.map((i) => picture.boxes[i])));
  node.note = node.operators.slice(0, 3).map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
  if (node.operators.length > 3) node.note += ", …";
  return node;
}

// The name of the operator alone, of a label such as "y = mul(·, 2.0)".
function operatorOf(box) {
  return box.label.split(" = ").pop().split(/[ (]/)[0];
}

// What several boxes have in common: their operators by number, their share of time, and their
// part; inputs, outputs and constants are of the part that goes with them, as in folding.py.
function describe(boxes) {
  const count = new Map();
  const ends = new Map();
  const parts = new Map();
  let heat = null;
  for (const box of boxes) {
    const named = ENDS.has(box.part) ? ends : count;
    const name = named === ends ? box.label : operatorOf(box);
    named.set(name, (named.get(name) ?? 0) + 1);
    parts.set(box.part, (parts.get(box.part) ?? 0) + 1);
    if (box.heat !== null) heat = (heat ?? 0) + box.heat;
  }
  const operators = [...(count.size ? count : ends)].sort((a, b) => b[1] - a[1]);
  const computed = [...parts.keys()].filter((part) => part !== "constant" && !ENDS.has(part));
  const own = computed.length ? computed : [...parts.keys()];
  return { operators, parts, heat, part: own.length === 1 ? own[0] : "mixed" };
}

// The nodes that are shown, in the order of the graph: all parents of each are open.
function visible(root, open) {
  const shown = [];
  const stack = [...root.children];
  while (stack.length) {
    const node = stack.pop();
    if (node.children && open.has(node)) stack.push(...node.children);
    else shown.push(node);
  }
  return shown.sort((a, b) => a.boxes[0] - b.boxes[0]);
}

function ancestors(node) {
  const above = [];
  for (let up = node.parent; up && up.parent; up = up.parent) above.push(up);
  return above.reverse();
}

// Open `nodes`; what was opened longest ago folds where more than LIMIT boxes would show.
function unfold(root, open, nodes) {
  for (const node of nodes) {
    open.delete(node);
    open.add(node);
  }
  const keep = new Set(nodes.flatMap((node) => [node, ...ancestors(node)]));
  let folded = 0;
  for (const node of [...open]) {
    if (visible(root, open).length <= LIMIT) break;
    if (!keep.has(node)) folded += open.delete(node);
  }
  return folded;
}

// Open all that fits, from the outside in; says whether everything did.
function unfoldAll(root, open) {
  open.clear();
  let count = root.children.length;
  let all = true;
  const queue = root.children.filter((node) => node.children);
  for (const node of queue) {
    if (count + node.children.length - 1 > LIMIT) {
      all = false;
      continue;
    }
    open.add(node);
    count += node.children.length - 1;
    queue.push(...node.children.filter((child) => child.children));
  }
  return all;
}

// Arrows between the shown nodes: [tail, head, labels] by place in `shown`, each pair once.
function arrowsBetween(picture, shown) {
  const owner = new Int32Array(picture.boxes.length).fill(-1);
  shown.forEach((node, n) => node.boxes.forEach((i) => (owner[i] = n)));
  const found = new Map();
  for (const { tail, head, label } of picture.arrows) {
    const [t, h] = [owner[tail], owner[head]];
    if (t === h) continue;
    const key = t * shown.length + h;
    if (!found.has(key)) found.set(key, [t, h, []]);
    found.get(key)[2].push(label);
  }
  return [...found.values()];
}
