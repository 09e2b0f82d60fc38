// What can be folded, as a tree, and the part of it that is shown.

const LIMIT = 300; // boxes shown at once

// Inner nodes have `children`; a leaf has none. `boxes` are ids of boxes, which are their places.
function treeOf(picture, groups) {
  const leaves = picture.boxes.map(({ label, note, part, order, heat }, i) =>
    ({ label, note, part, order, heat, boxes: [i] }));
  const nodes = groups.map((group) => ({ ...group, boxes: [], heat: null }));
  for (const node of [...nodes].reverse()) {
    node.children = node.children.map((n) => (n < 0 ? nodes[-1 - n] : leaves[n]));
    node.children.forEach((child, i) => {
      Object.assign(child, { parent: node, closed: [node.sizes[2 * i], node.sizes[2 * i + 1]] });
      for (const box of child.boxes) node.boxes.push(box);
      if (child.heat !== null) node.heat = (node.heat ?? 0) + child.heat;
    });
    node.boxes.sort((a, b) => a - b);
  }
  const open = new Set(nodes.slice(1).filter((node) => node.open));
  return { root: nodes[0], leaves, open };
}

// The name of the operator alone, of a label such as "y = mul(·, 2.0)".
function operatorOf(box) {
  return box.label.split(" = ").pop().split(/[ (]/)[0];
}

// What several boxes have in common: their operators by number, and how many are of each part.
function describe(boxes) {
  const [count, ends, parts] = [new Map(), new Map(), new Map()];
  for (const box of boxes) {
    const named = ENDS.has(box.part) ? ends : count;
    const name = named === ends ? box.label : operatorOf(box);
    named.set(name, (named.get(name) ?? 0) + 1);
    parts.set(box.part, (parts.get(box.part) ?? 0) + 1);
  }
  return { operators: [...(count.size ? count : ends)].sort((a, b) => b[1] - a[1]), parts };
}

// How many boxes are shown: all parents of each are open.
function shownCount(root, open) {
  let count = 0;
  const stack = [...root.children];
  while (stack.length) {
    const node = stack.pop();
    if (node.children && open.has(node)) stack.push(...node.children);
    else count++;
  }
  return count;
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
    if (shownCount(root, open) <= LIMIT) break;
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
