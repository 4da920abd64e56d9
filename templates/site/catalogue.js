// Cards, models and formats: plain data in the page, records of the translated classes for the formulas.
const catalogue = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dict = (plain) => py.dict(Object.entries(plain ?? {}));
  const records = (entries, build) =>
    new Map(Object.entries(entries).map(([id, entry]) => [id, build({ ...entry, id })]));

  const cards = records(data.cards, (entry) =>
    py.record(card$Card, {
      ...entry,
      vector_rates: dict(entry.vector_rates),
      matmul_rates: dict(entry.matmul_rates),
      published: dict(entry.published),
    }),
  );
  const models = records(data.models, (entry) =>
    py.record(llm_model$Model, {
      ...entry,
      attention: (entry.attention ?? []).map((part) => py.record(llm_model$Attention, part)),
      recurrent: (entry.recurrent ?? []).map((part) => py.record(llm_model$Recurrent, part)),
      ffn: (entry.ffn ?? []).map((part) => py.record(llm_model$FeedForward, part)),
      experts: entry.experts ? py.record(llm_model$Experts, entry.experts) : null,
    }),
  );
  const quants = records(data.quants, (entry) => py.record(llm_quant$Quant, entry));
  const [cardNames, modelNames, quantNames] = [data.card_names, data.model_names, data.quant_names].map(dict);

  // The card that a person means, by any exact name of it.
  function find(name) {
    if (cards.has(name)) return cards.get(name);
    const found = card_names$exact(name, cardNames);
    if (found.length === 1) return cards.get(found[0]);
    const letters = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
    const wanted = letters(name);
    const like = found.length ? found : [...cards.keys()].filter((id) => wanted && letters(id).includes(wanted));
    if (like.length === 1) return cards.get(like[0]);
    if (like.length === 0) throw new errors$UnknownName(`unknown card ${py.repr(name)}`, "the list has all cards");
    const more = like.length > 8 ? ` and ${like.length - 8} more` : "";
    const hint = `say which: ${like.slice(0, 8).join(", ")}${more}`;
    throw new errors$UsageError(`${py.repr(name)} names ${like.length} cards`, hint);
  }

  function named(kind, known, names, spelling, name) {
    if (!names.has(spelling))
      throw new errors$UnknownName(`unknown ${kind} ${py.repr(name)}`, "the list has all of them");
    return known.get(names.get(spelling));
  }

  return {
    version: data.version,
    usual: data.usual,
    cards,
    models,
    quants,
    find,
    model: (id) => models.get(id),
    quant: (id) => quants.get(id),
    find_model: (name) =>
      named("model", models, modelNames, model_catalogue$compact(model_catalogue$bare(name)), name),
    find_quant: (name) => named("format", quants, quantNames, model_catalogue$compact(name), name),
  };
})();
