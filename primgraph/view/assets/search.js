// Search in labels, types and details of all boxes of a step, folded away or not.

function haystack(picture) {
  return picture.boxes.map((box) => ({
    label: box.label.toLowerCase(),
    all: [box.label, box.note, box.part, ...box.details.map(([, text]) => text)].join("\n").toLowerCase(),
  }));
}

// Indices of the boxes that match: the label exactly, else in its beginning, else anywhere.
function search(hay, wanted) {
  const text = wanted.trim().toLowerCase();
  if (!text) return [];
  const places = (test) => hay.flatMap((entry, i) => (test(entry) ? [i] : []));
  for (const test of [(e) => e.label === text, (e) => e.label.startsWith(text), (e) => e.label.includes(text)]) {
    const found = places(test);
    if (found.length) return found;
  }
  return places((e) => e.all.includes(text));
}
