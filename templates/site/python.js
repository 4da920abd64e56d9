// What Python means where JavaScript means something else. The formulas below it are translated from kmrun's own
// source; tests compare every figure and every printed text with Python's.
const py = (() => {
  const { pow, fixed, format, str, repr } = pythonNumbers;

  class Record {}

  class KmrunError extends Error {
    constructor(sentence, hint = "") {
      super(sentence);
      this.sentence = sentence;
      this.hint = hint;
    }
  }
  class ValueError extends Error {}
  class KeyError extends Error {}

  // A dict: keys may be tuples, order is that of insertion.
  const key = (value) => (Array.isArray(value) ? JSON.stringify(value) : value);
  class Dict {
    constructor(pairs = []) {
      this.entries = new Map();
      for (const [name, value] of pairs) this.set(name, value);
    }
    set(name, value) {
      this.entries.set(key(name), [name, value]);
    }
    has(name) {
      return this.entries.has(key(name));
    }
    get(name, other = null) {
      return this.has(name) ? this.entries.get(key(name))[1] : other;
    }
    keys() {
      return [...this.entries.values()].map((pair) => pair[0]);
    }
    values() {
      return [...this.entries.values()].map((pair) => pair[1]);
    }
    pairs() {
      return [...this.entries.values()].map((pair) => [...pair]);
    }
  }

  const known = (value) => {
    if (value === undefined) throw new TypeError("a value is missing");
    return value;
  };

  function truth(value) {
    if (value === null || value === false || value === "" || value === 0) return false;
    if (Array.isArray(value)) return value.length > 0;
    if (value instanceof Dict) return value.entries.size > 0;
    if (value instanceof Set) return value.size > 0;
    return known(value) !== null;
  }

  function iter(value) {
    if (Array.isArray(value) || value instanceof Set || typeof value === "string") return value;
    if (value instanceof Dict) return value.keys();
    throw new TypeError("not iterable");
  }

  function eq(left, right) {
    if (Array.isArray(left) && Array.isArray(right)) {
      return left.length === right.length && left.every((item, index) => eq(item, right[index]));
    }
    return known(left) === known(right);
  }

  function order(left, right) {
    if (Array.isArray(left)) {
      for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
        const found = order(left[index], right[index]);
        if (found) return found;
      }
      return left.length - right.length;
    }
    return left < right ? -1 : left > right ? 1 : 0;
  }

  function has(container, value) {
    if (container instanceof Dict) return container.has(value);
    if (container instanceof Set) return container.has(value);
    if (typeof container === "string") return container.includes(value);
    return iter(container).some((item) => eq(item, value));
  }

  function at(sequence, index) {
    const place = index < 0 ? sequence.length + index : index;
    if (place < 0 || place >= sequence.length) throw new KeyError(`no item ${index}`);
    return sequence[place];
  }

  function item(container, name) {
    if (!(container instanceof Dict)) return at(container, name);
    if (!container.has(name)) throw new KeyError(`no key ${name}`);
    return container.get(name);
  }

  function put(container, name, value) {
    if (container instanceof Dict) container.set(name, value);
    else if (Array.isArray(container) && name >= 0 && name < container.length) container[name] = value;
    else throw new KeyError(`no place ${name}`);
  }

  const gather = (fill) => {
    const out = [];
    fill(out);
    return out;
  };

  // Arithmetic

  function add(left, right) {
    if (Array.isArray(left)) return [...left, ...right];
    return known(left) + known(right);
  }

  function div(left, right) {
    if (right === 0) throw new RangeError("division by zero");
    return left / right;
  }

  function mod(left, right) {
    const rest = left % right;
    return rest !== 0 && rest < 0 !== right < 0 ? rest + right : rest;
  }

  const floordiv = (left, right) => Math.round((left - mod(left, right)) / right);

  function best(values, keyOf, other, sign) {
    const every = [...iter(values)];
    if (every.length === 0) {
      if (other === undefined) throw new ValueError("nothing to choose from");
      return other;
    }
    const by = keyOf ?? ((value) => value);
    let [chosen, mark] = [every[0], by(every[0])];
    for (const candidate of every.slice(1)) {
      const next = by(candidate);
      if (order(next, mark) * sign > 0) [chosen, mark] = [candidate, next];
    }
    return known(chosen);
  }

  function sorted(values, keyOf, reverse = false) {
    const by = keyOf ?? ((value) => value);
    const marked = [...iter(values)].map((value) => [by(value), value]);
    marked.sort((a, b) => (reverse ? order(b[0], a[0]) : order(a[0], b[0])));
    return marked.map((pair) => pair[1]);
  }

  function sum(values, start = 0) {
    let total = start;
    for (const value of iter(values)) total = add(total, value);
    return total;
  }

  function float(value) {
    if (typeof value === "number") return value;
    const text = value.trim().toLowerCase();
    if (/^[+-]?(inf|infinity)$/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
    if (/^[+-]?nan$/.test(text)) return NaN;
    if (!/^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$/.test(text)) {
      throw new ValueError(`could not convert string to float: ${repr(value)}`);
    }
    return Number(text.replaceAll("_", ""));
  }

  function round(value, digits = 0) {
    if (digits < 0) throw new ValueError("round");
    return Number(fixed(value, digits));
  }

  function slice(sequence, low, high) {
    return sequence.slice(low ?? 0, high ?? sequence.length);
  }

  const zip = (...sequences) => {
    const every = sequences.map((sequence) => [...iter(sequence)]);
    if (every.some((one) => one.length !== every[0].length)) throw new ValueError("zip");
    return every[0].map((_, index) => every.map((one) => one[index]));
  };

  const counted = (low, high, step = 1) => {
    const [from, to] = high === undefined ? [0, low] : [low, high];
    return Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, index) => from + index * step);
  };

  const next = (values, other) => {
    const [first] = iter(values);
    if (first !== undefined) return first;
    if (other === undefined) throw new ValueError("no next");
    return other;
  };

  const replaced = (record, changes) =>
    Object.assign(Object.create(Object.getPrototypeOf(record)), record, changes);

  // The record of a plain object; a field that is absent has its default.
  const record = (kind, plain) => new kind(...kind.fields.map((name) => plain[name]));

  const partition = (text, by, place) =>
    place < 0 ? null : [text.slice(0, place), by, text.slice(place + by.length)];

  const method = {
    append: (list, value) => {
      list.push(value);
      return null;
    },
    extend: (list, values) => {
      list.push(...iter(values));
      return null;
    },
    insert: (list, place, value) => {
      list.splice(place, 0, value);
      return null;
    },
    pop: (list) => at(list.splice(-1), 0),
    get: (dict, name, other = null) => dict.get(name, other),
    items: (dict) => dict.pairs(),
    keys: (dict) => dict.keys(),
    values: (dict) => dict.values(),
    join: (by, texts) => [...iter(texts)].join(by),
    lower: (text) => text.toLowerCase(),
    isascii: (text) => !/[^\x00-\x7f]/.test(text),
    isdigit: (text) => /^\p{Nd}+$/u.test(text),
    isalnum: (text) => /^[\p{L}\p{N}]+$/u.test(text),
    startswith: (text, start) => [start].flat().some((one) => text.startsWith(one)),
    endswith: (text, end) => [end].flat().some((one) => text.endsWith(one)),
    removeprefix: (text, start) => (text.startsWith(start) ? text.slice(start.length) : text),
    removesuffix: (text, end) => (end && text.endsWith(end) ? text.slice(0, -end.length) : text),
    partition: (text, by) => partition(text, by, text.indexOf(by)) ?? [text, "", ""],
    rpartition: (text, by) => partition(text, by, text.lastIndexOf(by)) ?? ["", "", text],
    replace: (text, old, other, most) => {
      const parts = text.split(old);
      const kept = most === undefined ? parts.length - 1 : Math.min(most, parts.length - 1);
      return (
        parts.slice(0, kept + 1).join(other) +
        parts
          .slice(kept + 1)
          .map((part) => old + part)
          .join("")
      );
    },
    split: (text, by) => (by === undefined ? text.trim().split(/\s+/).filter(Boolean) : text.split(by)),
    strip: (text) => text.trim(),
    rstrip: (text) => text.trimEnd(),
  };

  return {
    Record,
    KmrunError,
    ValueError,
    KeyError,
    Dict,
    truth,
    iter,
    eq,
    has,
    item,
    put,
    slice,
    gather,
    method,
    record,
    replaced,
    add,
    div,
    mod,
    floordiv,
    pow,
    sum,
    sorted,
    round,
    format,
    str,
    repr,
    float,
    zip,
    next,
    range: counted,
    and: (...parts) => parts.reduce((value, part, index) => (index && !truth(value) ? value : part()), true),
    or: (...parts) => parts.reduce((value, part, index) => (index && truth(value) ? value : part()), false),
    shift: (value, by) => value * 2 ** by,
    union: (left, right) => new Dict([...left.pairs(), ...right.pairs()]),
    dict: (pairs) => new Dict(pairs),
    fromkeys: (names, value = null) => new Dict([...iter(names)].map((name) => [name, value])),
    set: (values = []) => new Set(iter(values)),
    frozenset: (values = []) => new Set(iter(values)),
    subset: (small, large) => [...small].every((one) => has(large, one)),
    abs: (value) => Math.abs(value),
    all: (values) => [...iter(values)].every(truth),
    any: (values) => [...iter(values)].some(truth),
    divmod: (left, right) => [floordiv(left, right), mod(left, right)],
    enumerate: (values) => [...iter(values)].map((value, index) => [index, value]),
    int: (value) => Math.trunc(float(value)),
    len: (value) => (value instanceof Dict ? value.entries.size : value instanceof Set ? value.size : value.length),
    list: (values = []) => [...iter(values)],
    tuple: (values = []) => [...iter(values)],
    map: (change, values) => [...iter(values)].map((value) => change(value)),
    max: (values, keyOf, other) => best(values, keyOf, other, 1),
    min: (values, keyOf, other) => best(values, keyOf, other, -1),
    math: {
      isfinite: Number.isFinite,
      isnan: Number.isNaN,
      log10: Math.log10,
      ceil: Math.ceil,
      floor: Math.floor,
      nan: NaN,
      inf: Infinity,
    },
  };
})();
