// The places of the nodes of each layer, as in placing.py.

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
      const least = left[v] === undefined ? -Infinity : x[left[v]] + distance(net, left[v], v);
      const most = right[v] === undefined ? Infinity : x[right[v]] - distance(net, v, right[v]);
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
  for (let i = 1; i < nodes.length; i++) offsets[i] = offsets[i - 1] + distance(net, nodes[i - 1], nodes[i]);
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
        const pull = pullOf(net, u, v);
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

// The least distance of the middles of two neighbours in a layer.
function distance(net, left, right) {
  const boxes = Number(net.isBox(left)) + Number(net.isBox(right));
  return (net.width(left) + net.width(right)) / 2 + (GAP.edge + ((GAP.box - GAP.edge) * boxes) / 2);
}

// How strongly neighbours pull at each other; one that has no other neighbour gives way.
function pullOf(net, u, v) {
  if (net.degree(u) === 1 || net.degree(v) === 1) return PULL.weak;
  if (net.isBox(u) && net.isBox(v)) return 1;
  return net.isBox(u) || net.isBox(v) ? PULL.bent : PULL.straight;
}
