// Where everything stands when some groups are open. Each group has been laid out by itself; where
// what is in it takes more room than then, or less, the plane is stretched, or shrunk, there.

const TITLE = 26; // the line of a frame that has its title
const ROOM = 6; // how far from the corner of a box an arrow stays

// A map of positions that brings spans, [start, length], to the lengths that are wanted, at least.
function stretched(spans, wanted) {
  if (spans.every(([, length], i) => length === wanted[i])) return (x) => x;
  const cuts = [...new Set(spans.flatMap(([start, length]) => [start, start + length]))].sort((a, b) => a - b);
  const moved = [cuts[0]];
  for (let c = 1; c < cuts.length; c++) {
    const [from, to] = [cuts[c - 1], cuts[c]];
    let factor = 0;
    spans.forEach(([start, length], i) => {
      if (start < to && start + length > from) factor = Math.max(factor, wanted[i] / length);
    });
    moved.push(moved[c - 1] + (to - from) * (factor || 1));
  }
  return (x) => {
    let c = cuts.findLastIndex((cut) => cut <= x);
    if (c < 0) return moved[0] + x - cuts[0];
    if (c === cuts.length - 1) return moved[c] + x - cuts[c];
    return moved[c] + ((x - cuts[c]) * (moved[c + 1] - moved[c])) / (cuts[c + 1] - cuts[c]);
  };
}

// The size of an open group and, from its corner on, boxes, frames, ports and arrows in it.
function placed(group, open) {
  const inner = group.children.map((child) => (child.children && open.has(child) ? placed(child, open) : null));
  const rects = [];
  const add = (laid, size, what) => rects.push({ ...what, laid, size, at: group.at.slice(2 * rects.length, 2 * rects.length + 2) });
  group.children.forEach((child, i) => {
    const laid = child.children && child.open ? [child.size[0], child.size[1] + TITLE] : child.closed;
    add(laid, inner[i] ? inner[i].size : child.closed, { node: child, inner: inner[i] });
  });
  for (const port of group.ports) add([port.width, port.height], [port.width, port.height], { port });
  const maps = [0, 1].map((k) => stretched(rects.map((r) => [r.at[k], r.laid[k]]), rects.map((r) => r.size[k])));
  for (const rect of rects) {
    [rect.x, rect.y] = [0, 1].map((k) =>
      (maps[k](rect.at[k]) + maps[k](rect.at[k] + rect.laid[k]) - rect.size[k]) / 2);
    [rect.width, rect.height] = rect.size;
  }
  const arrows = group.edges.filter((edge) => edge.route.length).map((edge) => {
    const [tail, head] = [rects[edge.tail], rects[edge.head]];
    const route = edge.route.map(([x, y]) => [maps[0](x), maps[1](y)]);
    return { ...edge, tail, head, route: (edge.wire ? attachedWire : attachedCurve)(route, tail, head) };
  });
  const columns = group.columns.map((column) => ({ ...column, left: maps[0](column.left), right: maps[0](column.right) }));
  const size = [maps[0](group.size[0]), maps[1](group.size[1]) + (group.parent ? TITLE : 0)];
  return { group, rects, arrows, columns, size };
}

const clamp = (x, low, high) => Math.min(Math.max(x, Math.min(low, high)), Math.max(low, high));
const inside = (x, start, length) => clamp(x, start + Math.min(ROOM, length / 2), start + length - Math.min(ROOM, length / 2));

// A curve leaves the lower side of its tail, or the upper one where it runs upward.
function attachedCurve(route, tail, head) {
  const down = route[0][1] <= route.at(-1)[1];
  const start = [inside(route[0][0], tail.x, tail.width), down ? tail.y + tail.height : tail.y];
  const end = [inside(route.at(-1)[0], head.x, head.width), down ? head.y : head.y + head.height];
  return [start, ...route.slice(1, -1), end];
}

// A wire reaches the side of a box that its first, or last, line runs to.
function attachedWire(route, tail, head) {
  const points = route.map((point) => [...point]);
  if (points.length === 2) points.splice(1, 0, ...middleOf(points));
  attachEnd(points, tail);
  attachEnd(points.reverse(), head);
  return points.reverse();
}

// Two corners in the middle of a straight wire, where it may step aside.
function middleOf([[ax, ay], [bx, by]]) {
  const level = Math.abs(bx - ax) > Math.abs(by - ay);
  return level ? [[(ax + bx) / 2, ay], [(ax + bx) / 2, by]] : [[ax, (ay + by) / 2], [bx, (ay + by) / 2]];
}

function attachEnd(points, rect) {
  const [start, next] = points;
  const k = Math.abs(start[1] - next[1]) < 1e-6 ? 0 : 1; // the axis that the line runs along
  const [corner, length] = [[rect.x, rect.y], [rect.width, rect.height]];
  start[k] = next[k] > start[k] ? corner[k] + length[k] : corner[k];
  start[1 - k] = next[1 - k] = inside(start[1 - k], corner[1 - k], length[1 - k]);
}
