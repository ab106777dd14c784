"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");

  // Text goes into the page as text, never as markup.
  const make = (name, kind, text) => {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const number = (value) => {
    if (value === null || value === undefined) return "none";
    if (Number.isInteger(value)) return value.toLocaleString("en");
    return String(Number(value.toPrecision(5)));
  };

  // ---- numbers under the pointer
  const showTip = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x - box.width / 2), innerWidth - box.width - 8);
    const above = y - box.height - 14;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : y + 20}px`;
  };
  const hideTip = () => {
    tip.hidden = true;
    for (const mark of document.querySelectorAll(".pointed")) mark.setAttribute("visibility", "hidden");
  };
  const pointed = (event) => {
    const mark = event.target.closest?.("[data-tip]");
    if (mark) return showTip(mark.dataset.tip, event.clientX, event.clientY);
    const cells = event.target.closest?.(".cells");
    if (!cells) return hideTip();
    const figure = data.figures[cells.closest(".heat").dataset.figure];
    const box = cells.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * figure.columns.length);
    const row = Math.floor(((event.clientY - box.top) / box.height) * figure.rows.length);
    if (!(row in figure.values) || !(column in figure.values[row])) return hideTip();
    const frame = cells.querySelector(".pointed");
    frame.setAttribute("x", column);
    frame.setAttribute("y", row);
    frame.setAttribute("visibility", "visible");
    const names = `${figure.row} ${figure.rows[row]}, ${figure.column} ${figure.columns[column]}`;
    showTip(`${names}\n${number(figure.values[row][column])} ${figure.value}`, event.clientX, event.clientY);
  };
  document.addEventListener("pointermove", pointed, { passive: true });
  document.addEventListener("pointerdown", pointed, { passive: true });
  document.addEventListener("scroll", hideTip, { passive: true, capture: true });
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches?.("[data-tip]:focus-visible")) return;
    const box = event.target.getBoundingClientRect();
    showTip(event.target.dataset.tip, box.left + box.width / 2, box.top);
  });
  document.addEventListener("focusout", hideTip);

  // ---- large tables, made when someone asks for them
  for (const place of document.querySelectorAll("[data-table]")) {
    place.closest("details").addEventListener("toggle", () => {
      if (place.firstChild) return;
      const figure = data.figures[place.dataset.table];
      const table = make("table");
      const head = table.appendChild(make("thead")).appendChild(make("tr"));
      head.append(make("th", "", `${figure.row} \\ ${figure.column}`), ...figure.columns.map((name) => make("th", "", name)));
      const body = table.appendChild(make("tbody"));
      figure.values.forEach((values, row) => {
        const line = body.appendChild(make("tr"));
        line.append(make("td", "", figure.rows[row]), ...values.map((value) => make("td", "number", value === null ? "" : number(value))));
      });
      place.append(table);
    });
  }

  // ---- levels of pictures
  for (const figure of document.querySelectorAll("div.pictures")) {
    for (const button of figure.querySelectorAll("button[data-layer]")) {
      button.addEventListener("click", () => {
        for (const other of figure.querySelectorAll("button[data-layer]")) other.setAttribute("aria-pressed", String(other === button));
        for (const one of figure.querySelectorAll("span[data-layer]")) one.hidden = one.dataset.layer !== button.dataset.layer;
        for (const one of figure.querySelectorAll("[data-note]")) one.hidden = one.dataset.note !== button.dataset.layer;
      });
    }
  }

  // ---- the search box
  const tokens = data.tokens;
  if (!tokens) return;
  const input = document.getElementById("search");
  const matches = document.getElementById("matches");
  const answer = document.getElementById("answer");
  const kinds = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };
  const unpacked = (packed) => {
    const text = atob(packed.data);
    const bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    return new kinds[packed.bytes](bytes.buffer);
  };
  // How tokenizers mark the beginning or the inside of words.
  const bare = (word) => word.replace(/^(?:##|[▁ĠĊ]+)|<\/w>$/g, "").toLowerCase();
  let known = null;
  const open = () => {
    if (known) return known;
    const tierOf = unpacked(tokens.tier_of);
    known = { tierOf, bare: tokens.words.map(bare), exact: new Map(), codes: [], rows: [], place: new Map() };
    tokens.words.forEach((word, row) => known.exact.has(word) || known.exact.set(word, row));
    known.codes = tokens.tiers.map((tier) => (tier.codes ? unpacked(tier.codes) : null));
    known.rows = tokens.tiers.map(() => []);
    tierOf.forEach((tier, row) => {
      if (tier & 0x80) known.rows[tier & 0x7f].push(row);
    });
    for (const name of ["counts", "cosines"]) known[name] = tokens[name] ? unpacked(tokens[name]) : null;
    const near = tokens.neighbours;
    if (near) {
      for (const name of ["before", "after", "before_cosines", "after_cosines"]) known[name] = unpacked(near[name]);
      unpacked(near.rows).forEach((row, place) => known.place.set(row, place));
    }
    return known;
  };

  const find = (text) => {
    const { exact, bare: words, counts } = open();
    const low = bare(text) || text.toLowerCase();
    const found = [[], [], []];
    const same = exact.get(text);
    for (let row = 0; row < words.length; row += 1) {
      const word = words[row];
      if (row === same) continue;
      if (word === low) found[0].push(row);
      else if (word.startsWith(low)) found[1].push(row);
      else if (found[2].length < 500 && word.includes(low)) found[2].push(row);
    }
    const often = (row) => (counts ? -counts[row] : row);
    for (const some of found) some.sort((one, other) => often(one) - often(other) || one - other);
    return [...(same === undefined ? [] : [same]), ...found.flat()].slice(0, 14);
  };

  const button = (row, kind = "") => {
    const made = make("button", `word ${kind}`);
    made.type = "button";
    made.append(make("bdi", "", tokens.words[row]));
    made.title = tokens.words[row];
    made.addEventListener("click", () => {
      input.value = tokens.words[row];
      show([row]);
      matches.replaceChildren();
    });
    return made;
  };
  const list = (title, entries, empty) => {
    const box = make("div");
    box.append(make("h5", "", title));
    if (!entries.length) box.append(make("p", "note", empty));
    const lines = box.appendChild(make("ol"));
    for (const [row, beside, kind] of entries) {
      const line = lines.appendChild(make("li", kind));
      line.append(button(row), make("b", "", beside));
    }
    return box;
  };
  const colours = ["#0d7a70", "#b4640a", "#3c5fc4", "#b03a62", "#54801f", "#7a4fb8", "#7d6140", "#556273"];

  const sharing = (tier, row) => {
    const { codes, rows } = open();
    const many = tokens.tiers[tier].sizes.length;
    const all = codes[tier];
    const own = rows[tier].indexOf(row) * many;
    const counted = [];
    for (let other = 0; other < rows[tier].length; other += 1) {
      let same = 0;
      const begin = other * many;
      for (let book = 0; book < many; book += 1) if (all[begin + book] === all[own + book]) same += 1;
      if (same && begin !== own) counted.push([rows[tier][other], same]);
    }
    counted.sort((one, other) => other[1] - one[1] || one[0] - other[0]);
    return { codes: all.slice(own, own + many), others: counted.slice(0, 10), many };
  };

  const show = (found) => {
    answer.replaceChildren();
    if (!found.length) return;
    const row = found[0];
    const { tierOf, counts, cosines, place } = open();
    const mark = tierOf[row];
    const tier = mark & 0x7f;
    const kind = tokens.tiers[tier];
    const name = make("h4");
    name.append(make("bdi", "", tokens.words[row]));
    const facts = [`row ${row.toLocaleString("en")}`, `stored as ${kind.words}`];
    if (counts) facts.push(`seen ${counts[row].toLocaleString("en")} ${counts[row] === 1 ? "time" : "times"}`);
    if (cosines) facts.push(`cosine to the original ${((cosines[row] - 10000) / 10000).toFixed(4)}`);
    answer.append(name, make("p", "facts", facts.join(" · ")));
    const columns = make("div", "three");
    if (mark & 0x80) {
      const { codes, others, many } = sharing(tier, row);
      const tiles = make("div", "tiles");
      codes.forEach((code, book) => {
        const tile = make("span", "", code);
        tile.style.background = colours[code % colours.length];
        tile.dataset.tip = `codebook ${book}\ncode ${code} of ${kind.sizes[book]}`;
        tiles.append(tile);
      });
      answer.append(tiles);
      columns.append(list("Share most codes", others.map(([other, same]) => [other, `${same} of ${many}`, ""]), "No other word shares a code."));
    } else if (kind.sizes.length) {
      answer.append(make("p", "note", `This page holds the codes of the ${kind.rows.toLocaleString("en")} commonest of ${kind.all.toLocaleString("en")} rows; this one is rarer.`));
    } else {
      answer.append(make("p", "note", "This row is kept by itself: it has no codes."));
    }
    const at = place.get(row);
    if (at !== undefined) {
      const { many } = tokens.neighbours;
      const part = (which) => Array.from(known[which].slice(at * many, (at + 1) * many));
      const before = part("before"), after = part("after");
      const beside = (which) => part(which).map((cosine) => ((cosine - 100) / 100).toFixed(2));
      const near = beside("before_cosines"), far = beside("after_cosines");
      columns.append(
        list("Neighbours before", before.map((other, i) => [other, near[i], after.includes(other) ? "" : "gone"]), ""),
        list("Neighbours after", after.map((other, i) => [other, far[i], before.includes(other) ? "" : "new"]), ""),
      );
    }
    answer.append(columns);
    if (at !== undefined) answer.append(make("p", "key", "Dashed: no longer a neighbour. Orange: a new one. Beside them the cosine."));
    else if (tokens.neighbours) answer.append(make("p", "key", `Neighbours are there for the ${place.size.toLocaleString("en")} commonest rows.`));
  };

  input.addEventListener("input", () => {
    const text = input.value.trim();
    const found = text ? find(text) : [];
    matches.replaceChildren(...found.map((row, place) => button(row, place ? "" : "now")));
    if (text && !found.length) matches.append(make("p", "note", "No token like this."));
    show(found);
  });
})();
