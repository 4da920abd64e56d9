// The table as the command line prints it, cell by cell; heads that can sort are buttons.
const table = (() => {
  const SORTS = {
    compare: { card: "name", memory: "memory", ridge: "ridge", "$/h": "cost", "per $": "value" },
    llm: {
      card: "name",
      decode: "decode",
      prefill: "prefill",
      fits: "fits",
      longest: "context",
      "per $": "value",
      "$/Mtok": "cost",
      "tok/J": "watt",
    },
  };
  const WORDS = { mem: "memory", comp: "compute", link: "link" };

  function sortKey(view, column, index, peak) {
    const key = SORTS[view][column.unit === "per $" ? column.unit : column.head];
    if (key || view === "llm") return key ?? null;
    if (column.head.startsWith("at ")) return "attainable";
    return index >= 2 && peak && isPeak(column, peak) ? "peak" : null;
  }

  const isPeak = (column, peak) =>
    column.head === py.item(peaks$COMPUTE_FIGURES, peak.figure)[1].split("_")[0] &&
    (column.unit.includes("tensor") || column.unit === "TFLOP/s") === true &&
    column.unit.includes("fp32 acc") === peak.figure.includes("fp32acc");

  // `say`: what a click on a head does with its sort key.
  function show(place, view, result, sort, peak, say) {
    const top = Math.max(0, ...result.bars.map((value) => value ?? 0));
    const heads = result.columns.map((column, index) => head(view, column, index, sort, peak, say));
    const rows = result.columns[0].cells.map((_, row) =>
      element("tr", {}, ...result.columns.map((column) => cell(column, row, result, top))),
    );
    place.replaceChildren(
      element("caption", { class: "unseen" }, result.caption),
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows),
    );
  }

  function head(view, column, index, sort, peak, say) {
    const key = sortKey(view, column, index, peak);
    const unit = column.unit ? [" ", element("small", {}, column.unit)] : [];
    if (!key) return element("th", { scope: "col", class: column.left ? "left" : null }, column.head, ...unit);
    const now = sort === key ? "down" : sort === `-${key}` ? "up" : "";
    const largest = py.item(view === "llm" ? llm_question$_SORTS : comparing$_SORTS, key)[1];
    const falling = largest === (now === "down");
    const state = now ? (falling ? "descending" : "ascending") : null;
    const next = now === "down" ? `-${key}` : now === "up" ? "" : key;
    const arrow = element(
      "span",
      { class: "arrow", "aria-hidden": "true" },
      now ? (falling ? "\u25be" : "\u25b4") : "",
    );
    const button = element(
      "button",
      { type: "button", "data-sort": key, onclick: () => say(next) },
      column.head,
      arrow,
      ...unit,
    );
    return element("th", { scope: "col", "aria-sort": state, class: column.left ? "left" : null }, button);
  }

  function cell(column, row, result, top) {
    const text = column.cells[row];
    if (column.left) return element("th", { scope: "row" }, text);
    if (column.head === "fits") return element("td", { class: `fits-${text === "?" ? "unknown" : text}` }, text);
    if (column.head === "bound") return element("td", { class: "word" }, WORDS[text] ?? text);
    const made = element("td", {}, text);
    const value = result.bars[row];
    if ((column.head.startsWith("at ") || column.head === "decode") && value && top) {
      made.className = "bar";
      made.style.setProperty("--share", `${(100 * value) / top}%`);
    }
    return made;
  }

  return { show };
})();
