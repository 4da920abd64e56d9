// The page: controls write texts, texts go into the address, and everything below is made anew from them.
(() => {
  const by = (id) => document.getElementById(id);
  const controls = ["ai", "peak", "model", "quant", "gpus", "ctx", "batch", "kv", "draft", "overhead"];
  let texts = settings.usual();
  let asked = null;
  let result = null;
  let shown = ""; // the fragment that the page stands for

  function fill(select, pairs) {
    select.replaceChildren(...pairs.map(([value, text]) => element("option", { value }, text)));
  }

  function prepare() {
    fill(
      by("peak"),
      compare$PEAK_NAMES.pairs().map(([name, figure]) => [name, compare$peak_title(figure)]),
    );
    fill(
      by("kv"),
      llm_cache$KV_BITS.keys().map((name) => [name, name]),
    );
    fill(by("quant"), [
      ["", "the model's own, else q4_k_m"],
      ...[...catalogue.quants.keys()].map((id) => [id, id]),
    ]);
    by("models").replaceChildren(...[...catalogue.models.keys()].map((value) => element("option", { value })));
    by("all-cards").replaceChildren(
      ...[...catalogue.cards.values()].map((card) => element("option", { value: card.id }, card.name)),
    );
    const vendors = [...new Set([...catalogue.cards.values()].map((card) => card.vendor))];
    const titles = { nvidia: "NVIDIA", amd: "AMD", apple: "Apple", intel: "Intel", google: "Google", aws: "AWS" };
    fill(by("group"), [
      ["", "add many ..."],
      ["usual", "what people have or rent"],
      ["all", `all ${catalogue.cards.size} cards`],
      ...vendors.map((vendor) => [`vendor:${vendor}`, `all of ${titles[vendor] ?? vendor}`]),
      ["none", "take all away"],
    ]);
    for (const id of controls) by(id).addEventListener("input", () => change({ [id]: by(id).value }));
    by("watt").addEventListener("change", () => change({ watt: by("watt").checked ? "1" : "" }));
    by("add").addEventListener("submit", add);
    by("group").addEventListener("change", addMany);
    by("settings").addEventListener("submit", (event) => event.preventDefault());
    for (const view of ["compare", "llm"]) by(`view-${view}`).addEventListener("click", () => change({ view }));
    by("copy").addEventListener("click", copy);
    by("skip").addEventListener("click", skip);
    by("cards").open = window.matchMedia("(min-width: 960px)").matches;
    window.addEventListener("hashchange", () => location.hash !== shown && load());
    new ResizeObserver(() => result && draw()).observe(by("results"));
    load();
  }

  function load() {
    shown = location.hash;
    const parsed = settings.parse(location.hash.replace(/^#/, ""));
    texts = parsed.texts;
    asked = null;
    render(parsed.problems);
  }

  function change(some) {
    texts = { ...texts, ...some };
    render([]);
    // What counts goes into the address, not a half word that is refused: the link shows what this page shows.
    shown = `#${settings.fragment(asked.texts)}`;
    try {
      history.replaceState(null, "", shown);
    } catch {
      location.hash = shown; // where a browser will have no history for files, or not so fast
    }
  }

  // The link's own way would put its name in the place of the settings.
  function skip(event) {
    event.preventDefault();
    by("results-heading").focus();
    by("results-heading").scrollIntoView();
  }

  const chosen = () => asked.cards.map((card) => card.id);

  function add(event) {
    event.preventDefault();
    const problems = [];
    const names = by("card")
      .value.split(",")
      .map((name) => name.trim())
      .filter(Boolean);
    const found = names.map((name) => settings.attempt(() => catalogue.find(name), problems, "card"));
    if (problems.length) return render(problems);
    by("card").value = "";
    change({ cards: [...new Set([...chosen(), ...found.map((card) => card.id)])].join(",") });
    return undefined;
  }

  function addMany() {
    const group = by("group").value;
    by("group").value = "";
    if (group === "all") return change({ cards: "all" });
    if (group === "none") return change({ cards: "", cost: "" });
    const vendor = group.replace("vendor:", "");
    const more =
      group === "usual"
        ? catalogue.usual
        : [...catalogue.cards.values()].filter((card) => card.vendor === vendor).map((card) => card.id);
    return change({ cards: [...new Set([...chosen(), ...more])].join(",") });
  }

  function remove(id, index) {
    const kept = chosen().filter((one) => one !== id);
    change({ cards: kept.join(","), cost: prices((one) => one !== id) });
    const buttons = by("chosen").querySelectorAll("button");
    (buttons[Math.min(index, buttons.length - 1)] ?? by("card")).focus();
  }

  const prices = (wanted) =>
    [...by("chosen").querySelectorAll("input")]
      .filter((input) => input.value.trim() && wanted(input.dataset.card))
      .map((input) => settings.pricePart(input.dataset.card, input.value.trim()))
      .join(",");

  // The prices as they were written, so that a wrong one stays in its field.
  const priceTexts = () =>
    new Map(
      settings.priceParts(texts.cost).map(([name, text]) => {
        try {
          return [catalogue.find(name).id, text];
        } catch {
          return ["", ""];
        }
      }),
    );

  function showCards(cards) {
    const rows = [...by("chosen").children];
    if (rows.length === cards.length && rows.every((row, index) => row.dataset.card === cards[index].id)) {
      const known = priceTexts();
      for (const input of by("chosen").querySelectorAll("input")) {
        if (input !== document.activeElement) input.value = known.get(input.dataset.card) ?? "";
      }
      return;
    }
    const known = priceTexts();
    by("chosen").replaceChildren(
      ...cards.map((card, index) => {
        const price = element("input", {
          type: "text",
          "data-card": card.id,
          "aria-label": `price of ${card.id} in $ per hour`,
          autocomplete: "off",
          oninput: () => change({ cost: prices(() => true) }),
        });
        price.value = known.get(card.id) ?? "";
        const gone = element(
          "button",
          {
            type: "button",
            class: "gone",
            "aria-label": `take ${card.id} away`,
            onclick: () => remove(card.id, index),
          },
          "\u00d7",
        );
        return element(
          "li",
          { "data-card": card.id, title: card.name },
          element("span", {}, card.id),
          "$",
          price,
          "/h",
          gone,
        );
      }),
    );
  }

  // Selects show what counts: a link may spell it in another way, or name a format that is in no list (4.5bpw).
  function showChoices() {
    const { quant } = asked;
    if (![...by("quant").options].some((one) => one.value === quant))
      by("quant").append(element("option", { value: quant }, quant));
    by("quant").value = quant;
    by("peak").value = asked.peak.name;
    by("kv").value = asked.kv;
  }

  function render(problems) {
    asked = settings.read(texts, problems, asked ?? {});
    for (const id of controls) if (by(id).value !== texts[id]) by(id).value = texts[id];
    showChoices();
    by("watt").checked = asked.watt === "1";
    showCards(asked.cards);
    by("count").textContent = numbers$count(asked.cards.length, "card");
    document.body.dataset.view = asked.view;
    for (const view of ["compare", "llm"])
      by(`view-${view}`).setAttribute("aria-pressed", String(view === asked.view));
    result = work[asked.view](asked, problems);
    by("caption").textContent = result.caption;
    by("lead").textContent = result.lead;
    by("lead").hidden = result.lead === "";
    table.show(by("table"), asked.view, result, result.sort, asked.peak, (key) => {
      const name = asked.view === "llm" ? "sort-llm" : "sort";
      const focused = document.activeElement?.dataset?.sort;
      change({ [name]: key });
      by("table")
        .querySelector(`[data-sort="${CSS.escape(focused ?? "")}"]`)
        ?.focus();
    });
    by("empty").hidden = asked.cards.length > 0;
    by("frame").hidden = asked.cards.length === 0;
    by("figure").hidden = result.curves.length === 0;
    by("remarks").replaceChildren(...result.remarks.map((text) => element("p", {}, text)));
    const command = work.command(asked, result.sort);
    by("command").textContent = command ?? "";
    by("command").hidden = command === null;
    by("no-command").hidden = command !== null;
    draw();
    complain(problems);
  }

  const draw = () => picture.show(by("picture"), by("legend"), result, chosen());

  function complain(problems) {
    by("problems").replaceChildren(...problems.map((problem) => element("li", {}, problem.text)));
    by("problems").hidden = problems.length === 0;
    const wrong = new Set(problems.map((problem) => problem.name));
    for (const id of [...controls, "card"]) by(id).removeAttribute("aria-invalid");
    for (const id of wrong) if (controls.includes(id) || id === "card") by(id).setAttribute("aria-invalid", "true");
    for (const input of by("chosen").querySelectorAll("input")) {
      const bad = input.value.trim() !== "" && !asked.prices.has(input.dataset.card);
      if (bad) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(location.href);
      by("copied").textContent = "Copied.";
    } catch {
      by("copied").textContent = "Copy it from the address bar.";
    }
  }

  prepare();
})();
