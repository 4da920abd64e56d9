// From settings to figures: the formulas are the translated ones, this only hands over.
const work = (() => {
  const shown = (value) => value ?? null;

  function compare(asked, problems) {
    const { peak: choice, ai, cards, prices } = asked;
    const every = compare$compare(cards, (card) => choice.roof(card), ai, prices);
    const attempted = settings.attempt(() => comparing$ordered(every, asked.sort), problems, "sort");
    const standings = attempted ?? every;
    // With very many cards the sentence that names them all stands below the table.
    const sentence = compare$sentence(standings);
    const lead = sentence.length > 300 ? "" : sentence;
    return {
      standings,
      sort: attempted ? asked.sort : null,
      lead,
      caption: ai === null ? "What the cards have" : comparing$caption(ai, choice),
      columns: comparing$columns(standings, ai, choice),
      remarks: comparing$remarks(standings, choice).filter((text) => text !== lead),
      bars: standings.map((item) => shown(item.attainable)),
      curves: standings
        .filter((item) => item.bandwidth && item.peak)
        .map((item) => ({ name: item.card.id, bandwidth: item.bandwidth, peak: item.peak })),
      marks: ai === null ? [] : [{ name: "the kernel", intensity: ai }],
    };
  }

  // The model in its format, as `kmrun llm` reads it: a size or a name.
  function subject(name, quant) {
    const wish = new llm_subject$Wish(name, quant === "" ? null : quant);
    const size = llm_subject$parse_params(name);
    return size === null
      ? llm_subject$of_shapes(catalogue.find_model(name), wish, catalogue, null)
      : llm_subject$of_size(size, wish, catalogue);
  }

  function llm(asked, problems) {
    const found = subject(asked.model, asked.quant);
    const load = new llm_ceiling$Load(
      found.model,
      found.weights,
      llm_question$kv_bits(asked.kv),
      asked.ctx,
      asked.batch,
      asked.gpus,
      asked.draft,
    );
    const question = new llm_answer$Question(load, found.quant, asked.overhead, asked.prices, py.frozenset());
    const assumptions = [...found.assumptions, ...llm_question$assumed(question, asked.cards, asked.kv, found)];
    const inquiry = new llm_question$Inquiry(found, question, asked.cards, assumptions);
    const answers = llm_question$ordered(inquiry, asked["sort-llm"]);
    const watt = asked.watt === "1";
    const [main, layouts, costs] = llm_table$columns(question, answers, watt);
    const seen = main.findIndex((column) => column.head === "seen");
    return {
      answers,
      sort: asked["sort-llm"],
      question,
      caption: llm_table$title(found, question),
      lead: site_lead$lead(answers),
      columns: [...main.slice(0, seen), ...layouts, ...main.slice(seen), ...costs],
      remarks: [
        ...llm_table$lacking(answers, question),
        llm_table$CLOSING,
        llm_table$assumed(answers, assumptions, watt),
      ],
      bars: answers.map((item) => shown(item.tok_per_s)),
      curves: answers
        .filter((item) => item.memory && item.roof)
        .map((item) => ({ name: item.card.id, bandwidth: item.memory, peak: item.roof.flop_per_s })),
      marks: intensities(question),
    };
  }

  // Where decoding and the prompt stand on a roofline: their flop over the bytes that they must read.
  function intensities(question) {
    const { load } = question;
    const weights = load.weights.read(load.weights.per_token);
    const marks = [
      { name: "decoding", intensity: llm_ceiling$pass_flops(load) / llm_ceiling$read_bytes(load) },
      { name: "the prompt", intensity: llm_work$prefill_flops(load.model, question.context) / weights },
    ];
    return marks.filter((mark) => mark.intensity > 0 && Number.isFinite(mark.intensity));
  }

  // The same question for a terminal, of what counts and in that order; null where there is none to ask.
  function command(asked, sort) {
    const { texts } = asked;
    const cards = asked.cards.map((card) => card.id);
    if (cards.length === 0) return null;
    const words = (...pairs) =>
      pairs.filter(([, value]) => value).map(([option, value]) => `${option} ${quoted(value)}`);
    const both = words(["--cost", settings.priceList(asked.prices)], ["--sort", sort]);
    if (asked.view === "compare") {
      return [
        "kmrun compare",
        ...cards,
        ...words(["--ai", texts.ai.trim()], ["--peak", asked.peak.name]),
        ...both,
      ].join(" ");
    }
    return [
      "kmrun llm",
      quoted(asked.model),
      "--gpus",
      ...cards,
      ...words(
        ["--quant", asked.quant],
        ["--ctx", texts.ctx.trim()],
        ["--batch", asked.batch === 1 ? "" : String(asked.batch)],
        ["--num-gpus", asked.gpus === 1 ? "" : String(asked.gpus)],
        ["--kv", asked.kv === "fp16" ? "" : asked.kv],
        ["--draft", asked.draft ? String(asked.draft) : ""],
        ["--overhead-gb", texts.overhead.trim()],
      ),
      ...both,
      ...(asked.watt === "1" ? ["--per-watt"] : []),
    ].join(" ");
  }

  const quoted = (text) => (/^[\w.,:=@%+/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

  return { compare, llm, subject, command };
})();
