// The order of the nodes of each layer, as in ordering.py.

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
