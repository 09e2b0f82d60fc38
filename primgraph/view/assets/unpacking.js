// A step as the page works with it, made of what packing.py writes: texts in the place of numbers.

function unpacked({ texts, picture, lines, places, note }) {
  return {
    picture: typeof picture === "number" ? step(picture).picture : unpackedPicture(picture, texts),
    lines: places.map((box, i) => [" ".repeat(lines[2 * i]) + texts[lines[2 * i + 1]], box]),
    note,
  };
}

function unpackedPicture({ title, boxes, heats, tails, heads, labels, groupings }, texts) {
  const pairs = (numbers) => {
    const found = [];
    for (let i = 3; i < numbers.length; i += 2) found.push([texts[numbers[i]], texts[numbers[i + 1]]]);
    return found;
  };
  return {
    title: texts[title],
    boxes: boxes.map((numbers, id) => ({
      id,
      label: texts[numbers[0]],
      note: texts[numbers[1]],
      part: texts[numbers[2]],
      details: pairs(numbers),
      heat: heats[id] ?? null,
    })),
    arrows: tails.map((tail, i) => ({ tail, head: heads[i], label: texts[labels[i]] })),
    groupings: Object.fromEntries(Object.entries(groupings).map(([kind, groups]) =>
      [kind, groups.map(([label, ...runs]) => ({ label: texts[label], kind, members: membersOf(runs) }))])),
  };
}

// What runs, each a first number and a length, stand for.
function membersOf(runs) {
  const found = [];
  for (let r = 0; r < runs.length; r += 2) {
    for (let i = 0; i < runs[r + 1]; i++) found.push(runs[r] + i);
  }
  return found;
}
