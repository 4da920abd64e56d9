// Every setting of the page, its text in the address, and what that text means. What cannot be read is replaced by the
// default and named in `problems`; it is never run, and only ever shown as text.
const settings = (() => {
  const LONGEST = 20000;

  const whole = (option, low, high) => (text) => {
    if (!/^[+-]?\d+(_\d+)*$/.test(text.trim()))
      throw new errors$UsageError(`${option} must be a whole number, not ${py.repr(text)}`, written(text));
    const value = py.float(text);
    llm_question$in_range(option, value, low, high);
    return value;
  };
  const number = (option, text) => {
    try {
      return py.float(text);
    } catch {
      throw new errors$UsageError(`${option} must be a number, not ${py.repr(text)}`, written(text));
    }
  };
  // One rule for every field, the command line's: a comma is refused, since 1,000 is one to some and a thousand to others.
  const written = (text) =>
    text.includes(",") ? "a point before decimals, nothing between thousands: 1.5, 1500" : "";
  const sortKey = (known) => (text) => {
    const key = text.replace(/^-/, "");
    if (!known.has(key))
      throw new errors$UsageError(`cannot sort by ${py.repr(text)}`, `one of ${known.keys().join(", ")}`);
    return text;
  };
  const oneOf = (option, known) => (text) => {
    if (!known.includes(text))
      throw new errors$UsageError(`${option} has no ${py.repr(text)}`, `one of ${known.join(", ")}`);
    return text;
  };
  const optional = (read) => (text) => (text.trim() === "" ? null : read(text));

  const ALL = {
    view: { usual: "compare", read: oneOf("view", ["compare", "llm"]) },
    cards: { usual: "rtx-4090,rtx-5090,l40s,a100-sxm-80gb,h100-sxm,h200-sxm,b200,mi300x", read: (text) => text },
    cost: { usual: "", read: (text) => text },
    ai: {
      usual: "60",
      read: optional((text) => terminal$positive(number("intensity", text), "intensity", "flop/byte")),
    },
    peak: { usual: "bf16", read: (text) => roof_choice$chosen_roof(text, false) },
    sort: { usual: "", read: optional(sortKey(comparing$_SORTS)) },
    model: { usual: "llama-3.3-70b", read: (text) => (work.subject(text, ""), text) },
    quant: { usual: "", read: (text) => (text === "" ? "" : work.subject(ALL.model.usual, text).quant.id) },
    gpus: { usual: "1", read: whole("GPUs", 1, llm_question$MOST_CARDS) },
    ctx: { usual: "8k", read: optional((text) => llm_question$tokens(text)) },
    batch: { usual: "1", read: whole("batch", 1, llm_question$MOST_BATCH) },
    kv: { usual: "fp16", read: (text) => (llm_question$kv_bits(text), text.toLowerCase()) },
    draft: { usual: "0", read: whole("drafted tokens", 0, llm_question$MOST_DRAFT) },
    overhead: { usual: "", read: (text) => llm_question$overhead(text.trim() ? number("overhead", text) : null) },
    watt: { usual: "", read: oneOf("watt", ["", "1"]) },
    "sort-llm": { usual: "", read: optional(sortKey(llm_question$_SORTS)) },
  };

  const usual = () => Object.fromEntries(Object.entries(ALL).map(([name, setting]) => [name, setting.usual]));

  // The texts of an address's fragment, and what is wrong with it.
  function parse(fragment) {
    const [texts, problems] = [usual(), []];
    if (fragment.length > LONGEST)
      return { texts, problems: [note("The address is too long, so it is not read.")] };
    for (const part of fragment.split("&").filter(Boolean)) {
      const [name, value] = [part.split("=", 1)[0], part.slice(part.indexOf("=") + 1)];
      if (!part.includes("=") || !Object.hasOwn(ALL, name)) {
        problems.push(note(`The address has a setting that is unknown here: ${clip(name)}.`));
        continue;
      }
      try {
        texts[name] = decodeURIComponent(value.replaceAll("+", " "));
      } catch {
        problems.push(note(`The address is broken at ${clip(name)}, so that setting is the usual one.`));
      }
    }
    return { texts, problems };
  }

  const note = (text) => ({ name: null, text });
  const clip = (text, most = 80) => (text.length > most ? `${text.slice(0, most)}...` : text);

  function fragment(texts) {
    const encode = (text) =>
      encodeURIComponent(text)
        .replace(/%(2C|3D|3A|2F)/g, decodeURIComponent)
        .replaceAll("%20", "+");
    return Object.keys(ALL)
      .filter((name) => texts[name] !== "" || ALL[name].usual !== "")
      .map((name) => `${name}=${encode(texts[name])}`)
      .join("&");
  }

  // What the texts mean; `problems` gets a sentence for each that means nothing. In place of such a one stands what
  // there was before, so that half a word is not answered with something else. `texts` of the answer are those that
  // count.
  function read(texts, problems, before = {}) {
    const found = { texts: {} };
    for (const [name, setting] of Object.entries(ALL)) {
      const value = attempt(() => setting.read(texts[name]), problems, name);
      found[name] = value !== undefined ? value : name in before ? before[name] : setting.read(setting.usual);
      found.texts[name] = value !== undefined ? texts[name] : (before.texts?.[name] ?? setting.usual);
    }
    found.cards = chosen(texts.cards, problems);
    found.prices = prices(texts.cost, found.cards, problems);
    if (texts.cards !== "all") found.texts.cards = found.cards.map((card) => card.id).join(",");
    found.texts.cost = priceList(found.prices);
    return found;
  }

  // Returns undefined, after a note, where what a person wrote cannot be; any other error is the page's own.
  function attempt(work, problems, name) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof py.KmrunError)) throw error;
      const text = `${error.sentence}${error.hint ? ` (${error.hint})` : ""}`;
      problems.push({ name, text: clip(text.replace(/^--/, ""), 400) });
      return undefined;
    }
  }

  const ids = (text) =>
    text === "all" ? [...catalogue.cards.keys()] : text.split(",").filter((name) => name.trim());

  function chosen(text, problems) {
    const found = new Map();
    for (const name of ids(text)) {
      const card = attempt(() => catalogue.find(name.trim()), problems, "cards");
      if (card) found.set(card.id, card);
    }
    return [...found.values()];
  }

  // CARD=X,... in parts of a name and a text. What a field holds may have any character, so it is encoded once more.
  // What has no name of its own belongs to the price before it: of 1,000 the page must not take the 1.
  const pricePart = (id, text) => `${id}=${encodeURIComponent(text)}`;

  function priceParts(text) {
    const parts = [];
    for (const part of text.split(",").filter((item) => item.trim())) {
      const place = part.lastIndexOf("=");
      if (place < 0 && parts.length) parts.at(-1)[1] += `,${part}`;
      else parts.push([part.slice(0, Math.max(place, 0)).trim(), decoded(part.slice(place + 1))]);
    }
    return parts;
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  function prices(text, cards, problems) {
    const found = new Map();
    const one = (name, price) => {
      number(`price of ${name || "a card"}`, price);
      const [[id, value]] = prices$prices([`${name}=${price}`], catalogue, cards).pairs();
      if (found.has(id)) throw new errors$UsageError(`${id} has two prices`, "the first one counts");
      found.set(id, value);
    };
    for (const [name, price] of priceParts(text)) attempt(() => one(name, price), problems, "cost");
    return py.dict([...found]);
  }

  // As `--cost` takes them, and with every digit.
  const priceList = (found) =>
    found
      .pairs()
      .map(([id, price]) => `${id}=${py.str(price)}`)
      .join(",");

  return { ALL, usual, parse, fragment, read, attempt, ids, priceList, pricePart, priceParts };
})();
