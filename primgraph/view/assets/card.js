// The card that tells about one box or one folded group.

function cardRows(node, picture) {
  if (!node.children) {
    const box = picture.boxes[node.boxes[0]];
    const heat = box.heat === null ? [] : [["share of time", percent(box.heat)]];
    const type = box.details.some(([name]) => name === "type") ? [] : [["type", box.note]];
    return [...type, ...box.details, ["part", partTitle(box.part, box.order)], ...heat];
  }
  const { operators, parts: count } = node.told;
  const most = operators.slice(0, 6).map(([name, count]) => `${name} ×${count}`);
  if (operators.length > 6) most.push(`${operators.length - 6} more`);
  const present = PARTS.filter((part) => count.has(part));
  const parts = present.map((part) => `${PART_TEXT[part]} ×${count.get(part)}`);
  const heat = node.heat === null ? [] : [["share of time", percent(node.heat)]];
  return [
    ["folded", `${node.boxes.length} boxes: click to unfold`],
    ["operators", most.join(", ")],
    ["parts", parts.join(", ")],
    ...heat,
  ];
}

function fillCard(card, title, rows) {
  const list = element("dl");
  for (const [name, text] of rows) list.append(element("dt", {}, name), element("dd", {}, text));
  card.replaceChildren(element("h2", {}, title), list);
  card.hidden = false;
}

// Beside the box, where there is room: right, left, else below it.
function placeCard(card, anchor, stage) {
  const [a, s] = [anchor.getBoundingClientRect(), stage.getBoundingClientRect()];
  const [w, h] = [card.offsetWidth, card.offsetHeight];
  const right = a.right - s.left + 10;
  const left = a.left - s.left - w - 10;
  let x = right + w < s.width ? right : left > 0 ? left : Math.min(Math.max(8, a.left - s.left), s.width - w - 8);
  let y = x === right || x === left ? a.top - s.top : a.bottom - s.top + 10;
  if (y + h > s.height - 8) y = x === right || x === left ? s.height - h - 8 : a.top - s.top - h - 10;
  card.style.left = `${Math.max(8, x)}px`;
  card.style.top = `${Math.max(8, y)}px`;
}
