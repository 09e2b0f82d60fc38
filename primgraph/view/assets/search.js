// Search in labels, types and details of all boxes of a step, folded away or not.

function haystack(picture) {
  return picture.boxes.map((box) => ({
    operator: operatorOf(box).toLowerCase(),
    label: box.label.toLowerCase(),
    all: [box.label, box.note, box.part, ...box.details.map(([, text]) => text)].join("\n").toLowerCase(),
  }));
}

// Indices of the boxes that match: by their operator, else in the label, else anywhere.
function search(hay, wanted) {
  const text = wanted.trim().toLowerCase();
  if (!text) return [];
  const places = (test) => hay.flatMap((entry, i) => (test(entry) ? [i] : []));
  for (const test of [(entry) => entry.operator === text, (entry) => entry.label.includes(text)]) {
    const found = places(test);
    if (found.length) return found;
  }
  return places((entry) => entry.all.includes(text));
}
