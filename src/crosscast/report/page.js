"use strict";
// Sorting, filtering, choosing devices, scales and values of figures: all is on the page without it, too.
(() => {
  const make = (tag, properties, ...inside) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...inside);
    return made;
  };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const status = make("p", { className: "away", role: "status" });
  document.body.append(status);
  const collator = new Intl.Collator("en", { numeric: true });
  const tables = all("main table");
  const caption = (table) => table.caption?.textContent ?? table.closest(".wide").getAttribute("aria-label");
  const rowsOf = (body) => [...body.rows].filter((row) => row.cells.length > 1);

  // Sort by a column: numbers by their values, what is not known at the end.
  const key = (row, place) => {
    const cell = row.cells[place];
    const number = cell?.dataset.v ?? cell?.dataset.s;
    return number === undefined ? (cell?.textContent.trim() ?? "") : Number(number);
  };
  const compare = (one, two) =>
    typeof one === "number" && typeof two === "number" ? one - two
      : typeof one === "number" ? -1 : typeof two === "number" ? 1 : collator.compare(one, two);
  const unknown = (value) => value === "" || value === "—";
  const sort = (table, place, heading) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const body of table.tBodies) {
      const rows = rowsOf(body).map((row) => [key(row, place), row]);
      rows.sort(([one], [two]) =>
        unknown(one) || unknown(two) ? unknown(one) - unknown(two) : (down ? -1 : 1) * compare(one, two));
      body.append(...rows.map(([, row]) => row));
    }
    status.textContent = `${caption(table)}: sorted by ${heading.textContent}, ${heading.getAttribute("aria-sort")}`;
  };
  for (const table of tables) {
    if (table.rows.length < 3 || table.dataset.fixed !== undefined) continue;
    [...table.tHead.rows[0].cells].forEach((heading, place) => {
      if (heading.classList.contains("range") || !heading.textContent.trim()) return;
      const button = make("button", { type: "button" }, ...heading.childNodes);
      button.addEventListener("click", () => sort(table, place, heading));
      heading.append(button);
    });
  }

  // Show the rows with some of the words in the field, of the devices that are chosen.
  const filters = new Map();
  const gone = new Set();
  const ofDevices = (table) => table.tHead.rows[0].cells[0].textContent.trim() === "device";
  const show = (table) => {
    const words = (filters.get(table)?.value ?? "").toLowerCase().split(",").map((word) => word.trim()).filter(Boolean);
    let shown = 0, count = 0;
    for (const body of table.tBodies) {
      const rows = rowsOf(body);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const off = ofDevices(table) && gone.has(row.cells[0].textContent.trim());
        row.hidden = off || (words.length > 0 && !words.some((word) => text.includes(word)));
        shown += !row.hidden;
        count += 1;
      }
      body.hidden = rows.length > 0 && rows.every((row) => row.hidden);
    }
    [...table.tHead.rows[0].cells].forEach((heading, place) => {
      const off = place > 0 && gone.has(heading.textContent.trim());
      if (heading.hidden !== off) for (const row of table.rows) if (row.cells[place]) row.cells[place].hidden = off;
    });
    return `${shown} of ${count} rows`;
  };
  const tools = (table) => {
    const region = table.closest(".wide");
    if (!region.previousElementSibling?.classList.contains("tools")) region.before(make("div", { className: "tools" }));
    return region.previousElementSibling;
  };
  for (const table of tables) {
    if (table.rows.length < 9 || table.dataset.fixed !== undefined) continue;
    const field = make("input", { type: "search", placeholder: "words, or words" });
    const count = make("span", { className: "note" });
    filters.set(table, field);
    field.setAttribute("aria-label", `Show rows of ${caption(table)} with`);
    field.addEventListener("input", () => {
      count.textContent = field.value ? show(table) : (show(table), "");
      status.textContent = count.textContent;
    });
    tools(table).append(make("label", {}, "Rows with", field), count);
  }
  const devices = [...new Set(tables.filter(ofDevices).flatMap((table) =>
    [...table.tBodies].flatMap(rowsOf).map((row) => row.cells[0].textContent.trim())))];
  if (devices.length > 2 && devices.length <= 80) {
    const title = make("summary", {}, "Choose devices");
    const boxes = devices.map((name) => {
      const box = make("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => {
        gone[box.checked ? "delete" : "add"](name);
        tables.forEach(show);
        title.textContent = `Choose devices (${devices.length - gone.size} of ${devices.length})`;
        status.textContent = `${devices.length - gone.size} of ${devices.length} devices are shown`;
      });
      return make("label", {}, box, name);
    });
    const set = (checked) => boxes.forEach((label) => {
      if (label.firstChild.checked !== checked) label.firstChild.click();
    });
    const button = (text, checked) => {
      const made = make("button", { type: "button" }, text);
      made.addEventListener("click", () => set(checked));
      return made;
    };
    const legend = make("legend", {}, "Devices that the tables show");
    const buttons = make("div", { className: "tools" }, button("All", true), button("None", false));
    document.querySelector("main .tools, main .wide").before(
      make("details", { className: "chooser" }, title, buttons, make("fieldset", {}, legend, ...boxes)));
  }

  // Switch the scale of ranges.
  for (const table of tables.filter((each) => each.dataset.low !== undefined)) {
    const { low, high, ends } = table.dataset;
    const [first, , last] = table.querySelectorAll(".ends span");
    const logarithmic = [first.textContent, last.textContent];
    const place = (value, linear) =>
      100 * (linear ? value / high : Math.log(value / low) / Math.log(high / low));
    const button = make("button", { type: "button" }, "Linear scale");
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const linear = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", linear);
      [first.textContent, last.textContent] = linear ? ["0", ends] : logarithmic;
      for (const track of all(".track", table)) {
        const [from, centre, to] = track.dataset.at.split(" ").map((value) => place(Number(value), linear));
        const [line, dot] = track.children;
        Object.assign(line.style, { left: `${from}%`, width: `${to - from}%` });
        dot.style.left = `${centre}%`;
      }
    });
    tools(table).append(button);
  }

  // Values of cells in full, and of figures: the mark nearest to the pointer, or the next by arrow keys.
  document.addEventListener("pointerover", ({ target }) => {
    const cell = target.closest?.("td[data-v]");
    if (cell && !cell.title) cell.title = cell.dataset.v;
  });
  const tip = make("div", { className: "tip", hidden: true });
  tip.setAttribute("role", "status");
  const spot = make("div", { className: "spot", hidden: true });
  const hide = () => { tip.hidden = spot.hidden = true; };
  document.body.append(tip, spot);
  for (const image of all("img[data-marks]")) {
    const marks = JSON.parse(image.dataset.marks);
    const region = image.closest(".wide");
    let current = -1;
    const tell = (number) => {
      current = number;
      const [x, y, text] = marks[number];
      const box = image.getBoundingClientRect();
      tip.textContent = text;
      tip.hidden = spot.hidden = false;
      const left = box.left + (x / 1e4) * box.width, top = box.top + (y / 1e4) * box.height;
      Object.assign(spot.style, { left: `${left}px`, top: `${top}px` });
      tip.style.left = `${Math.max(4, Math.min(left + 10, document.documentElement.clientWidth - tip.offsetWidth - 4))}px`;
      tip.style.top = `${Math.max(4, top - tip.offsetHeight - 10)}px`;
    };
    image.addEventListener("pointermove", (event) => {
      const box = image.getBoundingClientRect();
      let best = -1, least = 20 ** 2;
      marks.forEach(([x, y], number) => {
        const far = (box.left + (x / 1e4) * box.width - event.clientX) ** 2 + (box.top + (y / 1e4) * box.height - event.clientY) ** 2;
        if (far < least) [best, least] = [number, far];
      });
      if (best < 0) hide();
      else if (best !== current || tip.hidden) tell(best);
    });
    image.addEventListener("pointerleave", hide);
    region.addEventListener("blur", hide);
    region.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      const next = (current + step + marks.length) % marks.length;
      const x = (marks[next][0] / 1e4) * image.clientWidth;
      if (x < region.scrollLeft || x > region.scrollLeft + region.clientWidth) region.scrollLeft = x - region.clientWidth / 2;
      tell(next);
    });
  }
})();
