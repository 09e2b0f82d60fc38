// The layered layout, step by step and number by number the same as in layout.py.

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

// The upper edge and the height of each layer.
function bands(net, layers) {
  const height = layers.map((nodes) => nodes.reduce((most, v) => Math.max(most, net.height(v)), 0));
  const top = [];
  let y = GAP.margin;
  for (const tallest of height) {
    top.push(y);
    y += tallest + GAP.layer;
  }
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
