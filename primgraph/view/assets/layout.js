// The layered layout of layout.py, step by step and number by number the same.

const GAP = { box: 28, edge: 14, layer: 46, margin: 16, port: 14 };
const SWEEPS = { order: 12, place: 8 };
const PULL = { straight: 8, bent: 2, free: 0.5 };

function layout(sizes, edges) {
  const flow = flowOf(sizes.length, edges);
  const rank = [];
  flow.forEach((v, i) => (rank[v] = i));
  const turned = edges.map(([tail, head]) => rank[tail] > rank[head]);
  const downward = edges.map(([tail, head], i) => (turned[i] ? [head, tail] : [tail, head]));
  const net = new Net(sizes, layersOf(flow, downward));
  const chains = downward.map(([upper, lower], i) => net.chain(upper, lower, turned[i]));
  const order = ordered(net);
  const x = placed(net, order);
  const { top, height } = bands(net, order);
  const middle = sizes.map((_, v) => top[net.layer[v]] + height[net.layer[v]] / 2);
  const routes = routesOf(net, chains, x, middle, top, height);
  routes.forEach((route, i) => turned[i] && route.reverse());
  return inView(sizes.map(([w, h], v) => [x[v] - w / 2, middle[v] - h / 2]), routes, sizes);
}

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
    if (below[v].length > above[v].length) layer[v] = Math.min(...below[v].map((head) => layer[head])) - 1;
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

  width(v) {
    return this.isBox(v) ? this.sizes[v][0] : 0;
  }

  height(v) {
    return this.isBox(v) ? this.sizes[v][1] : 0;
  }

  // The least distance of the middles of two neighbours in a layer.
  distance(left, right) {
    const boxes = Number(this.isBox(left)) + Number(this.isBox(right));
    return (this.width(left) + this.width(right)) / 2 + (GAP.edge + ((GAP.box - GAP.edge) * boxes) / 2);
  }

  pull(u, v) {
    if (this.isBox(u) && this.isBox(v)) return 1;
    return this.isBox(u) || this.isBox(v) ? PULL.bent : PULL.straight;
  }
}

// The nodes of each layer from left to right; of all that the sweeps try, the best.
function ordered(net) {
  const layers = [];
  const place = new Int32Array(net.layer.length);
  const key = new Float64Array(net.layer.length);
  net.layer.forEach((n, v) => {
    layers[n] ??= [];
    place[v] = layers[n].push(v) - 1;
  });
  let best = layers.map((nodes) => [...nodes]);
  let fewest = crossings(net, layers, place);
  for (let sweep = 0; sweep < SWEEPS.order && fewest; sweep++) {
    const down = sweep % 2 === 0;
    const near = down ? net.above : net.below;
    for (const nodes of down ? layers : [...layers].reverse()) {
      for (const v of nodes) {
        let sum = 0;
        for (const u of near[v]) sum += place[u];
        key[v] = near[v].length ? sum / near[v].length : place[v];
      }
      if (nodes.some((v, i) => i && key[v] < key[nodes[i - 1]])) nodes.sort((u, v) => key[u] - key[v]);
      nodes.forEach((v, i) => (place[v] = i));
    }
    const found = crossings(net, layers, place);
    if (found < fewest) [fewest, best] = [found, layers.map((nodes) => [...nodes])];
  }
  return best;
}

// How many pairs of links cross, counted layer by layer in a Fenwick tree.
function crossings(net, layers, place) {
  let count = 0;
  for (let n = 1; n < layers.length; n++) {
    const tree = new Int32Array(layers[n].length + 1);
    let seen = 0;
    for (const v of layers[n - 1]) {
      for (const u of net.below[v]) {
        count += seen;
        for (let i = place[u] + 1; i > 0; i -= i & -i) count -= tree[i];
      }
      for (const u of net.below[v]) {
        seen++;
        for (let i = place[u] + 1; i < tree.length; i += i & -i) tree[i]++;
      }
    }
  }
  return count;
}

// The middle of each node, from left to right.
function placed(net, layers) {
  const x = [];
  for (const nodes of layers) offsetsOf(net, nodes).forEach((offset, i) => (x[nodes[i]] = offset));
  for (let sweep = 0; sweep < SWEEPS.place; sweep++) {
    const down = sweep % 2 === 0;
    for (const nodes of down ? layers : [...layers].reverse()) fit(net, nodes, x, [down ? net.above : net.below]);
  }
  for (const nodes of layers) fit(net, nodes, x, [net.above, net.below]);
  straighten(net, layers, x);
  return x;
}

// Long edges run straight down as far as the room between their neighbours allows.
function straighten(net, layers, x) {
  const left = [];
  const right = [];
  for (const nodes of layers) nodes.forEach((v, i) => ([left[v], right[v]] = [nodes[i - 1], nodes[i + 1]]));
  for (const trunk of net.trunks.values()) {
    let [run, low, high] = [[], -Infinity, Infinity];
    for (const v of trunk.slice(1)) {
      const least = left[v] === undefined ? -Infinity : x[left[v]] + net.distance(left[v], v);
      const most = right[v] === undefined ? Infinity : x[right[v]] - net.distance(v, right[v]);
      if (Math.max(low, least) > Math.min(high, most)) {
        align(run, low, high, x);
        [run, low, high] = [[], -Infinity, Infinity];
      }
      run.push(v);
      [low, high] = [Math.max(low, least), Math.min(high, most)];
    }
    align(run, low, high, x);
  }
}

// All nodes of `run` at one place, the mean of theirs if that lies within the bounds.
function align(run, low, high, x) {
  const mean = run.reduce((sum, v) => sum + x[v], 0) / run.length;
  for (const v of run) x[v] = Math.min(Math.max(mean, low), high);
}

// How far each node of a layer is from the first one, at least.
function offsetsOf(net, nodes) {
  const offsets = [0];
  for (let i = 1; i < nodes.length; i++) offsets[i] = offsets[i - 1] + net.distance(nodes[i - 1], nodes[i]);
  return offsets;
}

// The least-squares fit to the neighbours that keeps order and distances: runs that would fall
// back behind the one before them are pooled to their common mean.
function fit(net, nodes, x, sides) {
  const offsets = offsetsOf(net, nodes);
  const runs = [];
  nodes.forEach((v, i) => {
    let weight = 0;
    let total = 0;
    for (const near of sides) {
      for (const u of near[v]) {
        const pull = net.pull(u, v);
        weight += pull;
        total += pull * x[u];
      }
    }
    if (weight === 0) {
      weight = PULL.free;
      total = PULL.free * x[v];
    }
    let run = { mean: total / weight - offsets[i], weight, count: 1 };
    while (runs.length && runs[runs.length - 1].mean > run.mean) {
      const last = run;
      run = runs.pop();
      run.mean = (run.mean * run.weight + last.mean * last.weight) / (run.weight + last.weight);
      run.weight += last.weight;
      run.count += last.count;
    }
    runs.push(run);
  });
  let i = 0;
  for (const { mean, count } of runs) for (let k = 0; k < count; k++, i++) x[nodes[i]] = mean + offsets[i];
}

// The upper edge and the height of each layer.
function bands(net, layers) {
  const height = layers.map((nodes) => nodes.reduce((most, v) => Math.max(most, net.height(v)), 0));
  let y = GAP.margin;
  const top = height.map((h) => (y += h + GAP.layer) - h - GAP.layer);
  return { top, height };
}

// The points of each edge, downward; those that end at one box reach it side by side.
function routesOf(net, chains, x, middle, top, height) {
  const ends = new Map();
  chains.forEach((chain, number) => {
    if (!chain.length) return;
    if (!ends.has(chain.at(-1))) ends.set(chain.at(-1), []);
    ends.get(chain.at(-1)).push([x[chain.at(-2)], number]);
  });
  const port = [];
  for (const [v, arriving] of ends) {
    arriving.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const gap = Math.min(GAP.port, (0.8 * net.width(v)) / arriving.length);
    arriving.forEach(([, number], i) => (port[number] = x[v] + (i - (arriving.length - 1) / 2) * gap));
  }
  return chains.map((chain, number) => {
    if (!chain.length) return [];
    const [first, last] = [chain[0], chain.at(-1)];
    const points = [[x[first], middle[first] + net.height(first) / 2]];
    for (const v of chain.slice(1, -1)) {
      const upper = top[net.layer[v]];
      points.push([x[v], upper], [x[v], upper + height[net.layer[v]]]);
    }
    points.push([port[number], middle[last] - net.height(last) / 2]);
    return points;
  });
}

// The same, moved so that everything lies inside the margin.
function inView(corners, routes, sizes) {
  let [left, right, bottom] = corners.length ? [Infinity, -Infinity, -Infinity] : [0, 0, 0];
  corners.forEach(([x, y], v) => {
    left = Math.min(left, x);
    right = Math.max(right, x + sizes[v][0]);
    bottom = Math.max(bottom, y + sizes[v][1]);
  });
  for (const route of routes) {
    for (const [x] of route) {
      left = Math.min(left, x);
      right = Math.max(right, x);
    }
  }
  const shift = GAP.margin - left;
  return {
    corners: corners.map(([x, y]) => [x + shift, y]),
    routes: routes.map((route) => route.map(([x, y]) => [x + shift, y])),
    width: right - left + 2 * GAP.margin,
    height: bottom + GAP.margin,
  };
}
