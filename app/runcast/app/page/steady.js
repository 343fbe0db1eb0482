// What is fetched to be drawn, and lists that stay where they are: an older answer never covers a newer one, and what
// a hand or a screen reader rests on is not taken away.

/**
 * A function that has `work` done, one at a time. Asked for meanwhile, it is done once more afterwards, so that what
 * is drawn last was read after it was last asked for. What the line swallowed is tried again, later each time; what
 * the server refused is not.
 */
export function steady(work, { pause = 500, longest = 8000 } = {}) {
  let busy = false;
  let again = false;
  let failures = 0;
  let timer;
  return async function ask() {
    again = true;
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    while (again) {
      again = false;
      try {
        await work();
        failures = 0;
      } catch (error) {
        if (error.status === undefined) reportError(error); // a mistake of the page's own
        else if (error.status < 400 || error.status >= 500) failures += 1;
        else failures = 0;
      }
    }
    busy = false;
    if (failures) timer = setTimeout(ask, Math.min(pause * 2 ** (failures - 1), longest));
  };
}

const rows = new WeakMap(); // list -> Map of key -> { node, stamp }

/**
 * Make a list's children these: `[{ key, stamp, make }]`. A row whose stamp is as it was is not touched; `make` gets
 * the node that is there, and returns it, or another.
 */
export function arrange(list, wanted) {
  const known = rows.get(list) ?? new Map();
  const kept = new Map();
  let place = list.firstElementChild;
  for (const { key, stamp, make } of wanted) {
    let row = known.get(key);
    if (row?.stamp !== stamp) {
      const node = make(row?.node);
      if (row && node !== row.node) {
        if (place === row.node) place = node;
        row.node.replaceWith(node);
      }
      row = { node, stamp };
    }
    kept.set(key, row);
    if (row.node === place) place = place.nextElementSibling;
    else list.insertBefore(row.node, place);
  }
  for (const [key, { node }] of known) if (!kept.has(key)) node.remove();
  rows.set(list, kept);
}
