"use strict";
// What Python means where JavaScript means something else. The formulas below it are translated from kmrun's own
// source; tests compare every figure and every printed text with Python's.
const py = (() => {
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
    set(name, value) { this.entries.set(key(name), [name, value]); }
    has(name) { return this.entries.has(key(name)); }
    get(name, other = null) { return this.has(name) ? this.entries.get(key(name))[1] : other; }
    keys() { return [...this.entries.values()].map((pair) => pair[0]); }
    values() { return [...this.entries.values()].map((pair) => pair[1]); }
    pairs() { return [...this.entries.values()].map((pair) => [...pair]); }
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

  // A power of a whole exponent in twice the precision, rounded once, as a good C library's is. Math.pow may be off by
  // a unit in the last place.
  function pow(base, exponent) {
    if (!Number.isInteger(exponent) || exponent < 0) return base ** exponent;
    let [high, low, squareHigh, squareLow] = [1, 0, base, 0];
    for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
      if (rest % 2 === 1) [high, low] = product(high, low, squareHigh, squareLow);
      [squareHigh, squareLow] = product(squareHigh, squareLow, squareHigh, squareLow);
    }
    return high + low;
  }

  // Dekker's product of two numbers that are each a sum of two doubles (T. J. Dekker, 1971).
  function product(a, aLow, b, bLow) {
    const main = a * b;
    if (!Number.isFinite(main) || Math.abs(main) < 1e-250) return [main, 0];
    const [aTop, bTop] = [split(a), split(b)];
    const [aRest, bRest] = [a - aTop, b - bTop];
    const error = aTop * bTop - main + aTop * bRest + aRest * bTop + aRest * bRest;
    const small = error + (a * bLow + aLow * b);
    const sum = main + small;
    return [sum, small - (sum - main)];
  }

  function split(value) {
    const scaled = value * 134217729;
    return scaled - (scaled - value);
  }

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

  // Numbers as text

  // toFixed is exact but for ties, which it rounds away from zero and Python to even. A tie is odd / (2 x 10 ** digits),
  // so it has at most digits + 1 binary places.
  function fixed(value, digits) {
    if (Object.is(value, -0)) return `-${(0).toFixed(digits)}`;
    const tied = !Number.isInteger(value) && Number.isInteger(value * 2 ** (digits + 1));
    if (Math.abs(value) < 1e21 && !tied) return value.toFixed(digits);
    const [top, bottom] = fraction(value);
    const scaled = 2n * (top < 0n ? -top : top) * 10n ** BigInt(digits);
    let rounded = (scaled + bottom) / (2n * bottom);
    if ((scaled + bottom) % (2n * bottom) === 0n && rounded % 2n === 1n) rounded -= 1n;
    const text = rounded.toString().padStart(digits + 1, "0");
    const whole = text.slice(0, text.length - digits);
    return (value < 0 ? "-" : "") + (digits ? `${whole}.${text.slice(text.length - digits)}` : whole);
  }

  // A double as a quotient of integers.
  function fraction(value) {
    let [top, bottom] = [value, 1n];
    while (!Number.isInteger(top)) {
      top *= 2;
      bottom *= 2n;
    }
    return [BigInt(top), bottom];
  }

  // As printf's %e, to so many digits after the point; ties to even.
  function scientific(value, digits) {
    if (value === 0) return `${fixed(value, digits)}e+00`;
    let power = Number(Math.abs(value).toExponential().split("e")[1]);
    const [top, bottom] = fraction(Math.abs(value));
    const rounded = (exponent) => {
      const shift = BigInt(digits - exponent);
      const up = 2n * top * (shift > 0n ? 10n ** shift : 1n);
      const down = bottom * (shift < 0n ? 10n ** -shift : 1n);
      const half = (up + down) / (2n * down);
      return (up + down) % (2n * down) === 0n && half % 2n === 1n ? half - 1n : half;
    };
    let mantissa = rounded(power).toString();
    if (mantissa.length !== digits + 1) {
      // 9.99 became 10.0; or the shortest text of the double had been rounded up to the next power.
      power += mantissa.length > digits + 1 ? 1 : -1;
      mantissa = rounded(power).toString();
    }
    const body = digits ? `${mantissa[0]}.${mantissa.slice(1)}` : mantissa;
    const size = String(Math.abs(power)).padStart(2, "0");
    return `${value < 0 ? "-" : ""}${body}e${power < 0 ? "-" : "+"}${size}`;
  }

  function general(value, precision) {
    const digits = precision || 1;
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const power = Number(scientific(value, digits - 1).split("e")[1]);
    const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (power < -4 || power >= digits) {
      const [body, size] = scientific(value, digits - 1).split("e");
      return `${bare(body)}e${size}`;
    }
    return bare(fixed(value, digits - 1 - power));
  }

  function format(value, how) {
    const found = /^(?:\.(\d+))?([efgd]?)$/.exec(how);
    if (!found) throw new ValueError(`format ${how}`);
    const [, precision, kind] = found;
    if (kind === "" && precision === undefined) return str(value);
    if (kind === "d") return fixed(value, 0);
    if (!Number.isFinite(known(value))) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    const digits = precision === undefined ? 6 : Number(precision);
    if (kind === "f") return fixed(value, digits);
    return kind === "e" ? scientific(value, digits) : general(value, digits);
  }

  function str(value) {
    if (typeof value === "string") return value;
    if (value === null) return "None";
    if (value === true || value === false) return value ? "True" : "False";
    if (typeof value !== "number") throw new TypeError("no text");
    if (!Number.isFinite(value)) return format(value, "f");
    return Number.isInteger(value) ? fixed(value, 0) : String(value).replace(/e([+-])(\d)$/, "e$10$2");
  }

  const repr = (value) => {
    if (typeof value !== "string") return str(value);
    return value.includes("'") && !value.includes('"') ? `"${value}"` : `'${value.replaceAll("'", "\\'")}'`;
  };

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
    append: (list, value) => { list.push(value); return null; },
    extend: (list, values) => { list.push(...iter(values)); return null; },
    insert: (list, place, value) => { list.splice(place, 0, value); return null; },
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
      return parts.slice(0, kept + 1).join(other) + parts.slice(kept + 1).map((part) => old + part).join("");
    },
    split: (text, by) => (by === undefined ? text.trim().split(/\s+/).filter(Boolean) : text.split(by)),
    strip: (text) => text.trim(),
    rstrip: (text) => text.trimEnd(),
  };

  return {
    Record, KmrunError, ValueError, KeyError, Dict, truth, iter, eq, has, item, put, slice, gather, method, record, replaced,
    add, div, mod, floordiv, pow, sum, sorted, round, format, str, repr, float, zip, next, range: counted,
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
      isfinite: Number.isFinite, isnan: Number.isNaN, log10: Math.log10, ceil: Math.ceil, floor: Math.floor,
      nan: NaN, inf: Infinity,
    },
  };
})();
