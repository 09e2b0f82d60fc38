// Layers of boxes, and the net of boxes and dummy nodes between neighbouring layers, as in net.py.

const GAP = { box: 28, edge: 14, layer: 46, margin: 16, port: 14 };
const SWEEPS = { order: 12, place: 8 };
const PULL = { straight: 8, bent: 2, free: 0.5, weak: 0.01 };

// All boxes, each after those with edges to it; in a cycle the first one goes first.
function flowOf(count, edges) {
  const below = Array.from({ length: count }, () => []);
  const missing = new Array(count).fill(0);
  for (const [tail, head] of edges) {
    if (tail === head) continue;
    below[tail].push(head);
    missing[head]++;
  }
  const flow = [...missing.keys()].filter((v) => !missing[v]);
  const taken = missing.map((n) => !n);
  for (let done = 0, first = 0; done < count; done++) {
    if (done === flow.length) {
      while (taken[first]) first++;
      taken[first] = true;
      flow.push(first);
    }
    for (const head of below[flow[done]]) {
      if (--missing[head] || taken[head]) continue;
      taken[head] = true;
      flow.push(head);
    }
  }
  return flow;
}

// As high as the operands allow, then lower where that shortens edges; empty layers do not count.
function layersOf(flow, edges) {
  const above = flow.map(() => []);
  const below = flow.map(() => []);
  for (const [tail, head] of edges) {
    if (tail === head) continue;
    below[tail].push(head);
    above[head].push(tail);
  }
  const layer = flow.map(() => 0);
  for (const v of flow) for (const head of below[v]) layer[head] = Math.max(layer[head], layer[v] + 1);
  for (const v of [...flow].reverse()) {
    const [heads, tails] = [new Set(below[v]), new Set(above[v])];
    if (heads.size && heads.size >= tails.size) layer[v] = Math.min(...[...heads].map((head) => layer[head])) - 1;
  }
  const used = new Map([...new Set(layer)].sort((a, b) => a - b).map((n, i) => [n, i]));
  return layer.map((n) => used.get(n));
}

// Boxes and dummy nodes, with links between neighbouring layers only. Edges that leave one box in
// one direction share their dummy nodes, for they carry one value.
class Net {
  constructor(sizes, layer) {
    Object.assign(this, { sizes, layer: [...layer], trunks: new Map() });
    this.above = layer.map(() => []);
    this.below = layer.map(() => []);
  }

  chain(upper, lower, turned) {
    if (upper === lower) return [];
    const key = 2 * upper + Number(turned);
    if (!this.trunks.has(key)) this.trunks.set(key, [upper]);
    const trunk = this.trunks.get(key);
    const length = this.layer[lower] - this.layer[upper];
    while (trunk.length < length) {
      const dummy = this.layer.push(this.layer[trunk.at(-1)] + 1) - 1;
      this.above.push([]);
      this.below.push([]);
      this.link(trunk.at(-1), dummy);
      trunk.push(dummy);
    }
    this.link(trunk[length - 1], lower);
    return [...trunk.slice(0, length), lower];
  }

  link(upper, lower) {
    this.below[upper].push(lower);
    this.above[lower].push(upper);
  }

  isBox(v) {
    return v < this.sizes.length;
  }

  degree(v) {
    return this.above[v].length + this.below[v].length;
  }

  width(v) {
    return this.isBox(v) ? this.sizes[v][0] : 0;
  }

  height(v) {
    return this.isBox(v) ? this.sizes[v][1] : 0;
  }
}
