// What changed between two texts, in about linear time: lines that mean the same stand side by side.

const SMALL = 1e6; // pairs of lines that are compared one by one

// Three names of each line, from strict to loose: the whole expression down to the inputs, the
// operator with those of its operands, the line without the numbers of its values.
function signatures(lines, numbers) {
  const number = (text) => {
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text);
  };
  const made = new Map(); // name of a value -> [full, loose] signature of the line that defines it
  return lines.map((line) => {
    const [left, right] = line.includes(" = ") ? line.split(/ = (.*)/s) : ["", line];
    const loose = number(line.trim().replace(/%\d+\b/g, "%"));
    const operands = (right.match(/%(?:\w+|"(?:[^"\\]|\\.)*")/g) ?? []).map((name) => made.get(name) ?? [name, name]);
    const near = number(`${loose}|${operands.map((o) => o[1])}`);
    const full = number(`${loose}:${operands.map((o) => o[0])}`);
    for (const name of left.match(/%(?:\w+|"(?:[^"\\]|\\.)*")/g) ?? []) made.set(name, [full, loose]);
    return [full, near, loose];
  });
}

// Longest increasing run of the second numbers of `pairs`, whose first numbers increase.
function increasing(pairs) {
  const ends = [];
  const before = new Int32Array(pairs.length);
  pairs.forEach(([, j], p) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]][1] < j) low = middle + 1;
      else high = middle;
    }
    before[p] = low ? ends[low - 1] : -1;
    ends[low] = p;
  });
  const kept = [];
  for (let p = ends.at(-1) ?? -1; p >= 0; p = before[p]) kept.push(pairs[p]);
  return kept.reverse();
}

// Pairs of the k-th line of a name with the k-th of the other side; with `once`, only of names
// that stand once on either side.
function sameName(a, b, [i0, i1, j0, j1], level, once) {
  const places = new Map();
  for (let j = j0; j < j1; j++) {
    if (!places.has(b[j][level])) places.set(b[j][level], []);
    places.get(b[j][level]).push(j);
  }
  const seen = new Map();
  for (let i = i0; i < i1; i++) seen.set(a[i][level], (seen.get(a[i][level]) ?? 0) + 1);
  const used = new Map();
  const pairs = [];
  for (let i = i0; i < i1; i++) {
    const name = a[i][level];
    const there = places.get(name) ?? [];
    const k = used.get(name) ?? 0;
    used.set(name, k + 1);
    if (k < there.length && !(once && (there.length > 1 || seen.get(name) > 1))) pairs.push([i, there[k]]);
  }
  return pairs;
}

// Longest common subsequence by the loose names, of a small range.
function common(a, b, [i0, i1, j0, j1]) {
  const [n, m] = [i1 - i0, j1 - j0];
  const best = new Uint16Array((n + 1) * (m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      const here = i * (m + 1) + j;
      const down = best[here + m + 1];
      best[here] = a[i0 + i][2] === b[j0 + j][2] ? best[here + m + 2] + 1 : Math.max(down, best[here + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < n && j < m; ) {
    const here = i * (m + 1) + j;
    if (a[i0 + i][2] === b[j0 + j][2]) pairs.push([i0 + i++, j0 + j++]);
    else if (best[here + m + 1] >= best[here + 1]) i++;
    else j++;
  }
  return pairs;
}

// Anchors of the strictest names first, then the gaps between them by looser ones.
function matched(a, b, range, level, pairs) {
  const [i0, i1, j0, j1] = range;
  if (i0 >= i1 || j0 >= j1) return;
  if (level === 3) {
    const small = (i1 - i0) * (j1 - j0) <= SMALL;
    for (const pair of small ? common(a, b, range) : increasing(sameName(a, b, range, 2, false))) pairs.push(pair);
    return;
  }
  let [i, j] = [i0, j0];
  for (const [p, q] of [...increasing(sameName(a, b, range, level, true)), [i1, j1]]) {
    matched(a, b, [i, p, j, q], level + 1, pairs);
    if (p < i1) pairs.push([p, q]);
    [i, j] = [p + 1, q + 1];
  }
}

// Rows [left, right, moved] of line numbers, -1 for none on that side. A line that stands on both
// sides in another order has a row on either, which tells where it has moved.
function alignment(left, right) {
  const numbers = new Map();
  return aligned(signatures(left, numbers), signatures(right, numbers));
}

// The same of two texts about the same boxes, as [text, box]: lines of one box stand together.
function alignmentByBox(left, right) {
  const signature = ([text, box]) => new Array(3).fill(box < 0 ? text : box);
  return aligned(left.map(signature), right.map(signature));
}

function aligned(a, b) {
  const pairs = [];
  matched(a, b, [0, a.length, 0, b.length], 0, pairs);
  const rows = [];
  let [i, j] = [0, 0];
  for (const [p, q] of [...pairs, [a.length, b.length]]) {
    while (i < p) rows.push([i++, -1]);
    while (j < q) rows.push([-1, j++]);
    if (i < a.length && j < b.length) rows.push([i++, j++]);
  }
  const gone = new Map(rows.filter(([, q]) => q < 0).map(([p]) => [a[p][0], p]));
  const come = new Map(rows.filter(([p]) => p < 0).map(([, q]) => [b[q][0], q]));
  return rows.map(([p, q]) => [p, q, (p < 0 ? gone.get(b[q][0]) : q < 0 ? come.get(a[p][0]) : -1) ?? -1]);
}
