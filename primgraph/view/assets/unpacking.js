// A step as the page works with it, made of what packing.py writes: texts in the place of numbers.

function unpacked({ texts, picture, lines, places, note }) {
  return {
    picture: typeof picture === "number" ? step(picture).picture : unpackedPicture(picture, texts),
    lines: places.map((box, i) => [" ".repeat(lines[2 * i]) + texts[lines[2 * i + 1]], box]),
    note,
  };
}

function unpackedPicture({ title, boxes, heats, scenes }, texts) {
  const pairs = (numbers) => {
    const found = [];
    for (let i = 4; i < numbers.length; i += 2) found.push([texts[numbers[i]], texts[numbers[i + 1]]]);
    return found;
  };
  return {
    title: texts[title],
    boxes: boxes.map((numbers, id) => ({
      id,
      label: texts[numbers[0]],
      note: texts[numbers[1]],
      part: texts[numbers[2]],
      order: numbers[3],
      details: pairs(numbers),
      heat: heats[id] ?? null,
    })),
    scenes: Object.fromEntries(Object.entries(scenes).map(([kind, groups]) =>
      [kind, groups.map((group) => unpackedGroup(group, texts))])),
  };
}

function unpackedGroup(group, texts) {
  return {
    ...group,
    label: texts[group.label],
    note: texts[group.note],
    part: texts[group.part],
    kind: texts[group.kind],
    ports: group.ports.map(([label, source, width, height]) => ({ label: texts[label], source, width, height })),
    edges: group.edges.map((numbers) => unpackedEdge(numbers, texts)),
    columns: group.columns.map(([part, order, left, right]) => ({ part: texts[part], order, left, right })),
  };
}

// Twice the number of labels and 1 for a wire, how many arrows, ends, labels, and points.
function unpackedEdge([kind, count, tail, head, ...rest], texts) {
  const labels = rest.splice(0, kind >> 1).map((n) => texts[n]);
  const route = [];
  for (let i = 0; i < rest.length; i += 2) route.push([rest[i], rest[i + 1]]);
  return { wire: kind % 2 === 1, count, tail, head, labels, route };
}
