"use strict";
// Powers as Python rounds them, and numbers as Python writes them.
const pythonNumbers = (() => {
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

  // toFixed is exact but for ties, which it rounds away from zero and Python to even. A tie is
  // odd / (2 x 10 ** digits), so it has at most digits + 1 binary places.
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
    if (!found) throw new RangeError(`format ${how}`);
    const [, precision, kind] = found;
    if (kind === "" && precision === undefined) return str(value);
    if (kind === "d") return fixed(value, 0);
    if (typeof value !== "number") throw new TypeError("no number");
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
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

  return { pow, fixed, format, str, repr };
})();
