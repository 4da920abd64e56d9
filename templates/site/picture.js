// Rooflines, log-log, as wide as the page has room; each has a dash of its own, so that colour carries nothing alone.
const picture = (() => {
  const MOST = 8;
  const DASHES = ["", "8 4", "2 3", "10 3 2 3", "14 5", "5 2", "16 3 2 3 2 3", "12 3 3 3"];
  const BOTTOM = 46;
  const TOP = 14;
  const RIGHT = 16;

  const decades = (low, high) => {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => 10 ** (first + index));
  };

  // `cards`: ids in the order chosen. So few that all are drawn keep their looks when the table is sorted.
  function show(place, legend, result, cards) {
    const curves = result.curves
      .slice(0, MOST)
      .map((curve, index) => ({ ...curve, look: cards.length <= MOST ? cards.indexOf(curve.name) : index }));
    place.hidden = curves.length === 0;
    legend.replaceChildren();
    if (curves.length === 0) return;
    const width = Math.max(280, place.clientWidth);
    const height = Math.round(Math.min(420, Math.max(240, width * 0.5)));
    const ridges = curves.map((curve) => roofline$ridge_point(curve.bandwidth, curve.peak));
    const points = [...ridges, ...result.marks.map((mark) => mark.intensity)];
    const across = [Math.min(0.1, Math.min(...points) / 3), Math.max(Math.max(...points) * 4, 10)];
    const reach = (curve, intensity) => roofline$attainable(intensity, curve.bandwidth, curve.peak);
    const up = [
      Math.min(...curves.map((curve) => reach(curve, across[0]))),
      1.3 * Math.max(...curves.map((curve) => curve.peak)),
    ];
    const left = width < 500 ? 84 : 92;
    const along = (value, [low, high]) => Math.log10(value / low) / Math.log10(high / low);
    const x = (value) => left + along(value, across) * (width - left - RIGHT);
    const y = (value) => height - BOTTOM - along(value, up) * (height - TOP - BOTTOM);
    const svg = drawn("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": spoken(curves, ridges, result.marks),
    });
    svg.append(
      ...grid(across, up, x, y, left, width, height),
      ...markers(result.marks, curves[0], x, y, reach, height),
    );
    [...curves.keys()].reverse().forEach((index) => {
      const [curve, ridge] = [curves[index], ridges[index]];
      const corners = [
        [across[0], reach(curve, across[0])],
        [ridge, curve.peak],
        [across[1], curve.peak],
      ];
      const points = corners.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
      svg.append(
        drawn(
          "polyline",
          { points, class: `curve c${curve.look}`, "stroke-dasharray": DASHES[curve.look] },
          drawn("title", {}, `${curve.name}: ridge at ${numbers$readable(ridge)} flop/byte`),
        ),
      );
    });
    svg.append(...dots(result.marks, curves[0], x, y, reach));
    place.replaceChildren(svg);
    legend.append(...entries(curves, ridges, result));
  }

  function grid(across, up, x, y, left, width, height) {
    const made = [];
    const [floor, right] = [height - BOTTOM, width - RIGHT];
    const columns = decades(...across);
    const every = Math.ceil((columns.length * 46) / (right - left));
    columns.forEach((value, index) => {
      made.push(drawn("path", { class: "grid", d: `M${x(value).toFixed(1)} ${TOP}V${floor}` }));
      if (index % every === 0) {
        const anchor = x(value) > right - 24 ? "end" : "middle";
        made.push(
          drawn(
            "text",
            {
              x: Math.min(x(value) + (anchor === "end" ? 20 : 0), width).toFixed(1),
              y: floor + 17,
              "text-anchor": anchor,
            },
            py.format(value, "g"),
          ),
        );
      }
    });
    for (const value of decades(...up)) {
      made.push(drawn("path", { class: "grid", d: `M${left} ${y(value).toFixed(1)}H${right}` }));
      made.push(
        drawn(
          "text",
          { x: left - 8, y: (y(value) + 4).toFixed(1), "text-anchor": "end" },
          terminal_plot$rate_text(value),
        ),
      );
    }
    made.push(
      drawn(
        "text",
        { x: (left + right) / 2, y: floor + 38, "text-anchor": "middle" },
        "arithmetic intensity, flop/byte",
      ),
    );
    return made;
  }

  const markers = (marks, first, x, y, reach, height) =>
    marks.map((mark) =>
      drawn("path", { class: "mark", d: `M${x(mark.intensity).toFixed(1)} ${TOP}V${height - BOTTOM}` }),
    );

  const dots = (marks, first, x, y, reach) =>
    marks.flatMap((mark, index) => {
      const [cx, cy] = [x(mark.intensity), y(reach(first, mark.intensity))];
      return [
        drawn("circle", { class: "dot", cx: cx.toFixed(1), cy: cy.toFixed(1), r: 9 }),
        drawn(
          "text",
          { class: "letter", x: cx.toFixed(1), y: (cy + 4).toFixed(1), "text-anchor": "middle" },
          "AB"[index],
        ),
      ];
    });

  const at = (mark) => `${mark.name} at ${numbers$readable(mark.intensity)} flop/byte`;

  function entries(curves, ridges, result) {
    const swatch = ({ look }) =>
      drawn(
        "svg",
        { viewBox: "0 0 36 10", class: "swatch", "aria-hidden": "true" },
        drawn("path", { d: "M0 5H36", class: `curve c${look}`, "stroke-dasharray": DASHES[look] }),
      );
    const made = curves.map((curve, index) =>
      element(
        "li",
        {},
        swatch(curve),
        element("b", {}, curve.name),
        ` ridge at ${numbers$readable(ridges[index])}`,
      ),
    );
    made.push(
      ...result.marks.map((mark, index) =>
        element("li", {}, element("span", { class: "badge", "aria-hidden": "true" }, "AB"[index]), at(mark)),
      ),
    );
    if (result.curves.length > MOST) made.push(element("li", {}, `The picture shows the first ${MOST}.`));
    return made;
  }

  const spoken = (curves, ridges, marks) =>
    `Rooflines. ${curves
      .map(
        (curve, index) =>
          `${curve.name}: ${terminal_plot$rate_text(curve.peak)} from ${numbers$readable(ridges[index])} flop/byte`,
      )
      .join("; ")}. ` + marks.map((mark) => `${at(mark)}.`).join(" ");

  return { show };
})();
