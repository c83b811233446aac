"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const CELL = 4; // pixels between two points where decision values are computed
  const SAME = 2e-5; // deviations closer than this are a tie, coefficients have 24 bits
  const MOTION = 180; // milliseconds from one boundary to the next

  const PRESETS = [
    ["Protect a small group", { data: "group", weights: "superquantile", alpha: 0.2, C: 0.1, kernel: "linear" }],
    ["Ignore wrong labels", { data: "labels", weights: "trimmed", alpha: 0.1, C: 1, kernel: "linear" }],
    ["Trim too much: a class is lost", { data: "unequal", weights: "trimmed", alpha: 0.16, C: 0.5, kernel: "linear" }],
    ["Too careful: w = 0", { data: "overlap", weights: "superquantile", alpha: 0.3, C: 1, kernel: "linear" }],
    ["Bend the boundary", { data: "moons", weights: "basic", alpha: 0.5, C: 0.5, kernel: "rbf" }],
    ["Fewer missed tumours", { data: "tumours", weights: "basic", alpha: 0.3, C: 0.1, kernel: "linear" }],
  ];
  const KERNELS = { linear: "Linear", rbf: "Gaussian" };
  const NAMES = { "-1": "orange", 1: "blue" };
  // An alpha whose weights show the character of the family on its button.
  const TYPICAL = { basic: 0.3, superquantile: 0.4, exponential: 4, "max-entropy": 0.7, quadratic: 0.7, trimmed: 0.25, olympic: 0.6 };

  const state = { ...PRESETS[0][1] };
  const datasets = new Map();
  let selected = null; // row of the point under the pointer or chosen by rank
  let current = null; // what is shown: dataset, solution, picture
  let shown = null; // decision values and radii on the screen, on their way to the current ones
  let frame = 0;

  // -- data ---------------------------------------------------------------------------------------

  async function load(key) {
    if (!datasets.has(key)) datasets.set(key, unpack($(`data-${key}`).textContent));
    return datasets.get(key);
  }

  async function unpack(text) {
    const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const length = new DataView(buffer).getUint32(0, true);
    const dataset = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const n = dataset.y.length;
    const alphas = dataset.families.map((family) => family.alphas.length);
    const perKernel = alphas.reduce((a, b) => a + b, 0) * dataset.Cs.length;
    let offset = 4 + length;
    const take = (Type, count) => {
      const block = new Type(buffer, offset, count);
      offset += block.byteLength;
      return block;
    };
    dataset.figures = take(Float64Array, 4 * perKernel * dataset.kernels.length);
    dataset.coefficients = dataset.kernels.map((kernel) =>
      kernel === "linear" ? take(Float64Array, 2 * perKernel) : take(Float32Array, n * perKernel),
    );
    dataset.perKernel = perKernel;
    dataset.starts = alphas.map((_, k) => alphas.slice(0, k).reduce((a, b) => a + b, 0) * dataset.Cs.length);
    dataset.gram = kernelValues(dataset, dataset.X);
    return dataset;
  }

  function kernelValues(dataset, points) {
    const { X, gamma } = dataset;
    const values = new Float64Array(points.length * X.length);
    let k = 0;
    for (const [a, b] of points)
      for (const [c, d] of X) values[k++] = Math.exp(-gamma * ((a - c) ** 2 + (b - d) ** 2));
    return values;
  }

  function solution(dataset, { kernel, family, alpha, C }) {
    const within = dataset.starts[family] + alpha * dataset.Cs.length + C;
    const row = 4 * (kernel * dataset.perKernel + within);
    const isLinear = dataset.kernels[kernel] === "linear";
    const size = isLinear ? 2 : dataset.y.length;
    const [intercept, objective, bound, status] = dataset.figures.subarray(row, row + 4);
    return {
      isLinear,
      coefficients: dataset.coefficients[kernel].subarray(within * size, (within + 1) * size),
      intercept,
      objective,
      bound,
      gap: Math.max(0, objective - bound) / Math.max(1, Math.abs(objective)),
      status: dataset.statuses[status],
      weights: dataset.families[family].weights[alpha],
      C: dataset.Cs[C],
    };
  }

  // -- mathematics --------------------------------------------------------------------------------

  /** Scores, deviations and the objective, from coefficients alone. */
  function evaluate(dataset, fit) {
    const { X, y, gram } = dataset;
    const n = y.length;
    const a = fit.coefficients;
    const parts = X.map((x, i) => {
      if (fit.isLinear) return a[0] * x[0] + a[1] * x[1];
      let sum = 0;
      for (let j = 0; j < n; j++) sum += gram[i * n + j] * a[j];
      return sum;
    });
    const norm2 = fit.isLinear
      ? a[0] * a[0] + a[1] * a[1]
      : parts.reduce((sum, value, i) => sum + a[i] * value, 0);
    const scores = parts.map((value) => value + fit.intercept);
    const deviations = scores.map((score, i) => Math.max(0, 1 - y[i] * score));
    const order = deviations.map((_, i) => i).sort((i, j) => deviations[i] - deviations[j] || i - j);
    const loss = order.reduce((sum, i, k) => sum + fit.weights[k] * deviations[i], 0);
    return { scores, deviations, order, norm2, loss, objective: 0.5 * norm2 + fit.C * loss };
  }

  /** Who pays what: tied deviations share the weights of their ranks. */
  function inspect(dataset, fit) {
    const result = evaluate(dataset, fit);
    const { order, deviations, scores } = result;
    const n = order.length;
    const weights = new Float64Array(n);
    for (let start = 0, end; start < n; start = end) {
      end = start + 1;
      while (end < n && deviations[order[end]] - deviations[order[end - 1]] < SAME) end++;
      let sum = 0;
      for (let k = start; k < end; k++) sum += fit.weights[k];
      for (let k = start; k < end; k++) weights[order[k]] = sum / (end - start);
    }
    let last = n;
    while (last > 0 && fit.weights[last - 1] === 0) last--;
    const ignored = new Set(order.slice(last).filter((i) => deviations[i] > SAME));
    const wrong = new Set(order.filter((i) => dataset.y[i] * scores[i] < -1e-9));
    const rank = new Int32Array(n);
    order.forEach((i, k) => (rank[i] = k));
    const costs = deviations.map((deviation, i) => (deviation > SAME ? fit.C * weights[i] * deviation : 0));
    const isFlat = result.norm2 < 1e-6;
    // One score for all: it may still name a class.
    const isMute = isFlat && Math.abs(fit.intercept) < 0.01;
    return { ...result, weights, costs, rank, ignored, wrong, isFlat, isMute };
  }

  const count = (rows, set) => rows.filter((row) => set.has(row)).length;

  /** Segments along which the values on a grid equal a level. */
  function contour(values, columns, rows, level) {
    const path = new Path2D();
    const cross = (a, b) => (level - a) / (b - a);
    for (let r = 0; r + 1 < rows; r++) {
      for (let c = 0; c + 1 < columns; c++) {
        const k = r * columns + c;
        const a = values[k];
        const b = values[k + 1];
        const d = values[k + columns + 1];
        const e = values[k + columns];
        const side = a < level;
        if (side === b < level && side === d < level && side === e < level) continue;
        const ends = [];
        if (a < level !== b < level) ends.push([c + cross(a, b), r]);
        if (b < level !== d < level) ends.push([c + 1, r + cross(b, d)]);
        if (e < level !== d < level) ends.push([c + cross(e, d), r + 1]);
        if (a < level !== e < level) ends.push([c, r + cross(a, e)]);
        for (let j = 0; j + 1 < ends.length; j += 2) {
          path.moveTo(ends[j][0] * CELL, ends[j][1] * CELL);
          path.lineTo(ends[j + 1][0] * CELL, ends[j + 1][1] * CELL);
        }
      }
    }
    return path;
  }

  // -- the plane ----------------------------------------------------------------------------------

  const colours = {};
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["surface", "ink", "quiet", "line", "raised", "positive", "negative", "weight", "accent"])
      colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

  function prepare(canvas) {
    const { width, height } = canvas.getBoundingClientRect();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
  }

  /** From data to pixels, the same scale both ways, and the grid of decision values. */
  function measure(dataset) {
    const { width, height } = $("plane").getBoundingClientRect();
    const old = dataset.view;
    if (old && old.width === width && old.height === height) return old;
    const [xs, ys] = [0, 1].map((axis) => dataset.X.map((point) => point[axis]));
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [low, high] = [Math.min(...ys), Math.max(...ys)];
    const margin = Math.min(34, 0.09 * width);
    const scale = Math.min((width - 2 * margin) / (right - left), (height - 2 * margin) / (high - low));
    const toPixel = ([a, b]) => [
      width / 2 + scale * (a - (left + right) / 2),
      height / 2 - scale * (b - (low + high) / 2),
    ];
    const columns = Math.ceil(width / CELL) + 1;
    const rows = Math.ceil(height / CELL) + 1;
    const nodes = [];
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < columns; c++)
        nodes.push([
          (left + right) / 2 + (c * CELL - width / 2) / scale,
          (low + high) / 2 - (r * CELL - height / 2) / scale,
        ]);
    dataset.view = { width, height, columns, rows, nodes, pixels: dataset.X.map(toPixel), kernel: null };
    return dataset.view;
  }

  function decisionValues(dataset, view, fit) {
    const a = fit.coefficients;
    const values = new Float32Array(view.nodes.length);
    if (fit.isLinear) {
      for (let k = 0; k < values.length; k++) {
        const node = view.nodes[k];
        values[k] = a[0] * node[0] + a[1] * node[1] + fit.intercept;
      }
      return values;
    }
    view.kernel ??= Float32Array.from(kernelValues(dataset, view.nodes));
    const { kernel } = view;
    const n = a.length;
    for (let k = 0, first = 0; k < values.length; k++, first += n) {
      let sum = fit.intercept;
      for (let j = 0; j < n; j++) sum += kernel[first + j] * a[j];
      values[k] = sum;
    }
    return values;
  }

  function radiiOf(result) {
    const most = Math.max(...result.costs, 1e-12);
    return result.costs.map((cost) => (cost > 1e-9 ? 5 + 7 * Math.sqrt(cost / most) : 4.5));
  }

  const shade = document.createElement("canvas");
  function drawPlane(values, radii) {
    const { dataset, result, view, ghost } = current;
    const { context, width, height } = prepare($("plane"));
    context.fillStyle = colours.surface;
    context.fillRect(0, 0, width, height);

    Object.assign(shade, { width: view.columns, height: view.rows });
    const image = new ImageData(view.columns, view.rows);
    const [plus, minus] = [rgb(colours.positive), rgb(colours.negative)];
    values.forEach((value, k) => {
      const colour = value < 0 ? minus : plus;
      const strength = result.isMute ? 0 : 0.05 + 0.17 * Math.min(1, Math.abs(value));
      image.data[4 * k] = colour[0];
      image.data[4 * k + 1] = colour[1];
      image.data[4 * k + 2] = colour[2];
      image.data[4 * k + 3] = 255 * strength;
    });
    shade.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = true;
    context.drawImage(shade, -CELL / 2, -CELL / 2, view.columns * CELL, view.rows * CELL);

    const line = (grid, level, dash, size, colour) => {
      context.setLineDash(dash);
      context.lineWidth = size;
      context.strokeStyle = colour;
      context.stroke(contour(grid, view.columns, view.rows, level));
    };
    context.lineCap = "round";
    if (ghost) line(ghost, 0, [], 2, colours.quiet + "99");
    if (!result.isFlat) {
      line(values, -1, [], 1, colours.negative);
      line(values, 1, [], 1, colours.positive);
      line(values, 0, [], 2.6, colours.ink);
    }
    context.setLineDash([]);

    const marked = new Set(dataset.marked);
    const isStory = dataset.marked.length && dataset.marked.length < 10;
    const order = [...radii.keys()].sort((i, j) => radii[j] - radii[i]);
    for (const i of order) {
      const [x, y] = view.pixels[i];
      const colour = dataset.y[i] > 0 ? colours.positive : colours.negative;
      const isIgnored = result.ignored.has(i);
      drawMark(context, x, y, isIgnored ? 5 : radii[i], dataset.y[i], colour, isIgnored);
      if (isStory && marked.has(i)) {
        context.beginPath();
        context.arc(x, y, 1.9, 0, 7);
        context.fillStyle = isIgnored ? colour : colours.surface;
        context.fill();
      }
    }
    if (selected !== null) {
      const [x, y] = view.pixels[selected];
      context.beginPath();
      context.arc(x, y, radii[selected] + 6, 0, 7);
      context.lineWidth = 2;
      context.strokeStyle = colours.ink;
      context.stroke();
    }
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.quiet;
    context.textBaseline = "alphabetic";
    if (dataset.axes[0].length > 3) {
      context.textAlign = "right";
      context.fillText(`${dataset.axes[0]} →`, width - 10, height - 9);
      context.save();
      context.translate(16, 10);
      context.rotate(-Math.PI / 2);
      context.fillText(`${dataset.axes[1]} →`, 0, 0);
      context.restore();
    }
    if (result.isFlat) {
      context.textAlign = "center";
      context.font = "600 14px system-ui, sans-serif";
      const text = result.isMute ? "w = 0: no boundary, one score for all" : `w = 0: every point is called ${NAMES[Math.sign(current.fit.intercept)]}`;
      context.lineWidth = 6;
      context.lineJoin = "round";
      context.strokeStyle = colours.surface;
      context.strokeText(text, width / 2, 24);
      context.fillStyle = colours.ink;
      context.fillText(text, width / 2, 24);
    }
  }

  function drawMark(context, x, y, radius, label, colour, isIgnored) {
    context.beginPath();
    if (label > 0) context.arc(x, y, radius, 0, 7);
    else context.rect(x - 0.9 * radius, y - 0.9 * radius, 1.8 * radius, 1.8 * radius);
    context.lineWidth = 1.4;
    context.strokeStyle = isIgnored ? colour : colours.surface;
    context.fillStyle = isIgnored ? colours.surface : colour;
    context.fill();
    context.stroke();
    if (isIgnored) {
      context.beginPath();
      context.arc(x, y, radius + 5, 0, 7);
      context.setLineDash([3, 3]);
      context.strokeStyle = colours.ink;
      context.stroke();
      context.setLineDash([]);
    }
  }

  // -- the ranks ----------------------------------------------------------------------------------

  const INSET = { left: 34, right: 34, top: 10, bottom: 10 };

  function drawBars() {
    const { dataset, fit, result } = current;
    const { context, width, height } = prepare($("bars"));
    const n = result.order.length;
    const { left, top } = INSET;
    const [w, h] = [width - left - INSET.right, height - top - INSET.bottom];
    const base = top + h;
    const step = w / n;
    const tallest = niceCeiling(Math.max(...result.deviations, 1));
    const heaviest = niceCeiling(Math.max(...fit.weights));

    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineWidth = 1;
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(base - share * h) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(left + w, y);
      context.stroke();
      context.fillStyle = colours.quiet;
      context.textAlign = "right";
      context.fillText(brief(share * tallest), left - 6, y);
      context.fillStyle = colours.weight;
      context.textAlign = "left";
      context.fillText(brief(share * heaviest), left + w + 6, y);
    }
    result.order.forEach((i, k) => {
      const size = (result.deviations[i] / tallest) * h;
      const colour = dataset.y[i] > 0 ? colours.positive : colours.negative;
      const gap = Math.min(1.5, step / 5);
      const [x, barWidth] = [left + k * step + gap / 2, step - gap];
      if (i === selected) {
        context.fillStyle = colours.ink + "26";
        context.fillRect(left + k * step - 1, top, step + 2, h);
      }
      // A strip for the classes, since many bars have no height.
      context.fillStyle = colour;
      context.fillRect(x, base + 4, barWidth, 4);
      if (result.ignored.has(i)) {
        context.strokeStyle = colour;
        context.lineWidth = 1.2;
        context.setLineDash([2, 2]);
        context.strokeRect(x + 0.6, base - size + 0.6, barWidth - 1.2, size - 0.6);
        context.setLineDash([]);
      } else {
        context.fillRect(x, base - size, barWidth, size);
      }
    });
    // A deviation of 1 lies on the boundary: all beyond are errors.
    const one = Math.round(base - h / tallest) + 0.5;
    context.strokeStyle = colours.ink;
    context.setLineDash([1, 3]);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(left, one);
    context.lineTo(left + w, one);
    context.stroke();
    context.setLineDash([]);
    if (tallest > 1) {
      context.fillStyle = colours.quiet;
      context.textAlign = "left";
      context.textBaseline = "bottom";
      context.fillText("misclassified above this line", left + 4, one - 2);
    }
    const path = new Path2D();
    fit.weights.forEach((weight, k) => {
      const y = base - (weight / heaviest) * h;
      if (k === 0) path.moveTo(left, y);
      path.lineTo(left + k * step, y);
      path.lineTo(left + (k + 1) * step, y);
    });
    context.lineJoin = "round";
    context.strokeStyle = colours.surface;
    context.lineWidth = 5;
    context.stroke(path);
    context.strokeStyle = colours.weight;
    context.lineWidth = 2.2;
    context.stroke(path);
  }

  const niceCeiling = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].find((k) => k * power >= value * (1 - 1e-9)) * power;
  };
  const brief = (value) => String(Number(value.toPrecision(2)));

  // -- words --------------------------------------------------------------------------------------

  const number = (value) => (Math.abs(value) < 1e-5 ? "0" : Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(4));
  const plural = (k, one, many = `${one}s`) => `${k} ${k === 1 ? one : many}`;
  const percent = (share) => `${share >= 0.0995 ? Math.round(100 * share) : Number((100 * share).toPrecision(2))}%`;
  const gapWords = (gap) => (gap < 1e-9 ? "below 10⁻⁹" : gap < 1e-4 ? gap.toExponential(0).replace("e-", " · 10⁻").replace(/\d+$/, (digits) => [...digits].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("")) : percent(gap));

  function meaningOf(family, alpha, weights) {
    const n = weights.length;
    const topTenth = weights.slice(-Math.round(n / 10)).reduce((a, b) => a + b, 0) / n;
    const points = (share) => `${Number((share * n).toFixed(1))} of ${n} points`;
    if (family === "uniform") return "All ranks count alike: the classical SVM.";
    if (weights.every((weight) => Math.abs(weight - 1) < 1e-9)) return "Here all ranks count alike: the classical SVM.";
    if (family === "superquantile") return `Only the worst ${percent(alpha)} count: ${points(alpha)}.`;
    if (family === "trimmed") return `The worst ${percent(alpha)} are ignored: ${points(alpha)}.`;
    if (family === "olympic") return `Only the middle ${percent(alpha)} count; best and worst are ignored.`;
    return `The worst tenth carries ${percent(topTenth)} of the weight.`;
  }

  function statusWords(fit, isConvex) {
    if (fit.status === "optimal" && isConvex) return ["Proven optimal.", "The weights never fall, so the problem is convex."];
    if (fit.status === "optimal") return ["Proven optimal,", "globally, although the weights fall."];
    return ["Best solution found.", "The weights fall; a proof was not in reach."];
  }

  function noticeOf() {
    const { dataset, fit, result, classical, family, isConvex } = current;
    const [one, many] = dataset.marked_name.split("|");
    const words = [];
    const [all, lost] = [dataset.marked.length, count(dataset.marked, result.ignored)];
    if (result.isFlat && lost && lost === all)
      return `All ${all} ${many} are ignored: as many may be. To call every point ${NAMES[Math.sign(fit.intercept)]} then costs nothing. Lower α, or rank within classes (ranks="class").`;
    if (result.isFlat && !result.isMute)
      return `The best answer is w = 0: every point is called ${NAMES[Math.sign(fit.intercept)]}. Raise C, or change α.`;
    if (result.isFlat)
      return "The best that can be done for the worst points is w = 0: all are treated alike, none well. That is the optimum, not a fault. Raise α, or take weights that count the other points too.";
    if (family.key === "uniform")
      return "The classical SVM: every point pays by its deviation alone. Choose other weights; its boundary stays as a grey line.";
    if (Math.max(...result.deviations) < SAME)
      return "All points lie beyond their margins: nobody pays, and ranks do not matter. Lower C to see them matter.";
    const before = count(dataset.marked, classical.wrong);
    const after = count(dataset.marked, result.wrong);
    if (dataset.key === "labels") {
      const found = count(dataset.marked, result.ignored);
      if (result.ignored.size)
        words.push(`${found} of ${all} ${many} are among the ${result.ignored.size} ignored points (ringed).`);
      else if (after < all) words.push(`The boundary gives way to ${after === 0 ? "all" : all - after} of the ${all} ${many}.`);
      const [now, then] = [result, classical].map((one) => one.wrong.size - count(dataset.marked, one.wrong));
      if (now !== then) words.push(`Of the ${dataset.y.length - all} right labels ${now || "none"} ${now > 1 ? "are" : "is"} misclassified; the classical SVM misses ${then || "none"}.`);
    } else if (all) {
      if (after < before) words.push(`${after ? `Only ${after}` : "None"} of the ${all} ${many} ${after === 1 ? "is" : "are"} misclassified; the classical SVM misses ${before === all ? `all ${all}` : before}.`);
      else if (after > before) words.push(`${after === all ? `All ${all}` : `${after} of ${all}`} ${many} ${after === 1 ? "is" : "are"} misclassified; the classical SVM misses ${before || "none"}.`);
      const whose = words.length ? "of them" : `of the ${all} ${many}`;
      if (lost) words.push(`${lost === all ? "All" : lost} ${whose} ${lost === 1 ? "is" : "are"} ignored (ringed).`);
    } else if (result.ignored.size) words.push(`${plural(result.ignored.size, "point")} ignored (ringed): they do not pull at the boundary.`);
    const [worst, was] = [Math.max(...result.deviations), Math.max(...classical.deviations)];
    if (worst < 0.97 * was) words.push(`The worst deviation falls from ${was.toFixed(2)} to ${worst.toFixed(2)}.`);
    else if (worst > 1.03 * was) words.push(`The worst deviation grows from ${was.toFixed(2)} to ${worst.toFixed(2)}.`);
    const tied = result.deviations.filter((deviation) => deviation > worst - SAME).length;
    if (tied > 2 && isConvex) words.push(`The ${tied} worst points are tied.`);
    const errors = result.wrong.size - classical.wrong.size;
    const isToldApart = dataset.key === "labels"; // wrong labels apart, above
    if (errors > 0 && !isToldApart) words.push(`The price: ${plural(errors, "training error")} more.`);
    else if (errors < 0 && !isToldApart) words.push(`${plural(-errors, "training error")} fewer.`);
    if (!words.length)
      words.push(isConvex ? "Nearly the classical SVM here: these weights change little. Move α or C." : "These weights change little here. Move α or C.");
    return words.join(" ");
  }

  function tile(list, name, value, note) {
    const box = document.createElement("div");
    const [term, entry] = ["dt", "dd"].map((tag) => box.appendChild(document.createElement(tag)));
    term.textContent = name;
    entry.textContent = value;
    const small = entry.appendChild(document.createElement("small"));
    small.textContent = note;
    list.append(box);
  }

  function write() {
    const { dataset, fit, result, classical, family, isConvex } = current;
    const alpha = family.alphas[current.index.alpha];
    $("story").textContent = dataset.story;
    $("alpha-value").textContent = family.alphas.length > 1 ? alpha : "–";
    $("alpha").disabled = family.alphas.length < 2;
    $("alpha").setAttribute("aria-valuetext", family.alphas.length > 1 ? String(alpha) : "none for uniform weights");
    $("meaning").textContent = meaningOf(family.key, alpha, fit.weights);
    $("C-value").textContent = fit.C;
    $("C").setAttribute("aria-valuetext", String(fit.C));
    $("notice").textContent = noticeOf();

    const list = $("tiles");
    list.replaceChildren();
    const isUniform = family.key === "uniform";
    const note = (value) => (isUniform ? "" : `classical: ${value}`);
    const n = dataset.y.length;
    const worst = (one) => Math.max(...one.deviations).toFixed(2);
    tile(list, "Training errors", result.isMute ? "–" : `${result.wrong.size} of ${n}`, note(classical.wrong.size));
    tile(list, "Worst deviation", worst(result), note(worst(classical)));
    if (dataset.marked.length) {
      const name = { group: "Group missed", labels: "Wrong labels obeyed", unequal: "Small class missed", tumours: "Malignant missed" }[dataset.key];
      const all = dataset.marked.length;
      const tell = (one) => (dataset.key === "labels" ? all - count(dataset.marked, one.wrong) : count(dataset.marked, one.wrong));
      tile(list, name, result.isMute ? "–" : `${tell(result)} of ${all}`, note(tell(classical)));
    }
    if (fit.weights[n - 1] === 0 || !dataset.marked.length)
      tile(list, "Ignored", String(result.ignored.size), result.ignored.size ? "ringed" : "nobody");

    const [status, words] = statusWords(fit, isConvex);
    $("status").textContent = status;
    $("status-words").textContent = words;
    document.querySelector(".proof").classList.toggle("open", fit.status !== "optimal");
    $("proof-fill").style.width = `${fit.objective > 1e-9 ? (100 * Math.max(0, fit.bound)) / fit.objective : 100}%`;
    $("bound").textContent = number(Math.max(0, fit.bound));
    $("objective").textContent = number(fit.objective);
    $("gap").textContent = gapWords(fit.gap);
    $("parts").textContent = `Objective = ½‖w‖² ${number(0.5 * result.norm2)} + C · weighted deviations ${number(fit.C * result.loss)}`;
    writePoint();
    announce(status);
  }

  function writePoint() {
    const { dataset, result, fit } = current;
    const slider = $("rank");
    const n = dataset.y.length;
    slider.max = n;
    if (selected === null) {
      $("point").textContent = "Hover over a point or tap it, or move this slider along the ranks: from the smallest deviation to the largest.";
      slider.value = n;
      slider.setAttribute("aria-valuetext", "no point chosen");
      return;
    }
    const i = selected;
    const deviation = result.deviations[i];
    const share = result.loss > 1e-9 ? result.costs[i] / (fit.C * result.loss) : 0;
    const side = result.wrong.has(i) ? "misclassified" : deviation > SAME ? "inside the margin" : "beyond its margin";
    const pays = result.ignored.has(i) ? "is ignored and pays nothing" : result.costs[i] > 1e-9 ? `pays ${number(result.costs[i])}, ${percent(share)} of all` : "pays nothing";
    const text = `Rank ${result.rank[i] + 1} of ${n}, ${NAMES[dataset.y[i]]}, ${side}: deviation ${deviation.toFixed(3)}, weight ${result.weights[i].toFixed(2)}; ${pays}.`;
    $("point").textContent = text;
    slider.value = result.rank[i] + 1;
    slider.setAttribute("aria-valuetext", text);
  }

  let announcing = 0;
  function announce(status) {
    clearTimeout(announcing);
    const { dataset, fit, result, family, index } = current;
    const alpha = family.alphas.length > 1 ? `, alpha ${family.alphas[index.alpha]}` : "";
    const text = `${dataset.title}, ${family.title} weights${alpha}, C ${fit.C}, ${KERNELS[state.kernel].toLowerCase()} kernel. ` +
      `${status} Objective ${number(fit.objective)}, lower bound ${number(Math.max(0, fit.bound))}, gap ${gapWords(fit.gap)}. ` +
      `${plural(result.wrong.size, "training error")}, worst deviation ${Math.max(...result.deviations).toFixed(2)}, ${result.ignored.size} ignored. ${noticeOf()}`;
    announcing = setTimeout(() => ($("summary").textContent = text), 350);
    $("plane").setAttribute("aria-label", `The points of the dataset and the decision boundary. ${dataset.story}`);
  }

  function writeLegend() {
    const { dataset, result } = current;
    const symbol = (inner, width = 14) => `<svg width="${width}" height="14" aria-hidden="true">${inner}</svg>`;
    const keys = [
      [symbol('<rect x="2" y="2" width="10" height="10" class="mark-negative"/>') + symbol('<circle cx="7" cy="7" r="5.5" class="mark-positive"/>'), "classes; larger pays more"],
    ];
    if (!result.isFlat)
      keys.push(
        [symbol('<path d="M1 7H23" class="mark-line" stroke-width="2.6"/>', 24), "boundary"],
        [symbol('<path d="M1 4H23" style="stroke:var(--positive)"/><path d="M1 10H23" style="stroke:var(--negative)"/>', 24), "margins"],
      );
    if (current.ghost) keys.push([symbol('<path d="M1 7H23" class="mark-ghost" stroke-width="2"/>', 24), "classical SVM"]);
    if (result.ignored.size) keys.push([symbol('<circle cx="7" cy="7" r="6" class="mark-line" stroke-dasharray="2.5 2.5"/>'), "ignored"]);
    if (dataset.marked.length && dataset.marked.length < 10)
      keys.push([symbol('<circle cx="7" cy="7" r="5.5" class="mark-positive"/><circle cx="7" cy="7" r="1.9" style="fill:var(--surface)"/>'), dataset.marked_name.split("|")[0]]);
    $("legend").innerHTML = keys.map(([mark, text]) => `<span class="key">${mark} ${text}</span>`).join("");
  }

  // -- controls -----------------------------------------------------------------------------------

  function chip(group, value, title, inner = "") {
    const label = document.createElement("label");
    label.className = "chip";
    label.innerHTML = `<input type="radio" name="${group}" value="${value}"><span>${inner}${title}</span>`;
    return label;
  }

  function sparkline(weights) {
    const most = Math.max(...weights);
    const [width, height] = [48, 20];
    const across = (k) => ((k * width) / weights.length).toFixed(1);
    const up = (weight) => (height - 1 - ((height - 3) * weight) / Math.max(most, 1.6)).toFixed(1);
    const steps = weights.map((weight, k) => `L${across(k)} ${up(weight)}L${across(k + 1)} ${up(weight)}`).join("");
    return `<svg viewBox="0 0 ${width} ${height}" aria-hidden="true"><path d="M0 ${height}${steps}L${width} ${height}Z"/></svg>`;
  }

  const nearest = (values, value) =>
    values.reduce((best, one, k) => (Math.abs(one - value) < Math.abs(values[best] - value) ? k : best), 0);

  function indexOf(dataset, wanted) {
    const family = Math.max(0, dataset.families.findIndex((one) => one.key === wanted.weights));
    return {
      kernel: Math.max(0, dataset.kernels.indexOf(wanted.kernel)),
      family,
      alpha: nearest(dataset.families[family].alphas, wanted.alpha),
      C: nearest(dataset.Cs.map(Math.log), Math.log(wanted.C)),
    };
  }

  const sameState = (a, b) => ["data", "weights", "alpha", "C", "kernel"].every((name) => a[name] === b[name]);

  function setControls(dataset, index) {
    const check = (group, value) => {
      const input = document.querySelector(`input[name="${group}"][value="${value}"]`);
      if (input) input.checked = true;
    };
    check("data", dataset.key);
    check("weights", dataset.families[index.family].key);
    check("kernel", dataset.kernels[index.kernel]);
    $("alpha").max = Math.max(1, dataset.families[index.family].alphas.length - 1);
    $("alpha").value = index.alpha;
    $("C").max = dataset.Cs.length - 1;
    $("C").value = index.C;
    for (const [k, button] of [...$("presets").children].entries())
      button.setAttribute("aria-pressed", String(sameState(available[k][1], state)));
  }

  // -- showing ------------------------------------------------------------------------------------

  async function show({ jump = false } = {}) {
    const key = state.data;
    const dataset = await load(key);
    if (key !== state.data) return; // another choice came first
    const index = indexOf(dataset, state);
    const family = dataset.families[index.family];
    Object.assign(state, {
      weights: family.key,
      alpha: family.alphas.length > 1 ? family.alphas[index.alpha] : state.alpha,
      C: dataset.Cs[index.C],
      kernel: dataset.kernels[index.kernel],
    });
    const view = measure(dataset);
    const fit = solution(dataset, index);
    const plain = solution(dataset, { ...index, family: 0, alpha: 0 });
    const result = inspect(dataset, fit);
    const isSamePlace = current && current.dataset === dataset && current.view === view;
    if (!current || current.dataset !== dataset) selected = null;
    current = {
      dataset, index, family, fit, result, view,
      isConvex: fit.weights.every((weight, k) => k === 0 || weight >= fit.weights[k - 1] - 1e-12),
      classical: inspect(dataset, plain),
      ghost: $("ghost").checked && family.key !== "uniform" ? decisionValues(dataset, view, plain) : null,
    };
    setControls(dataset, index);
    write();
    writeLegend();
    drawBars();
    moveTo(decisionValues(dataset, view, fit), radiiOf(result), jump || !isSamePlace);
    keepState();
  }

  /** Lead the eye from the old boundary to the new one; what is drawn last is exact. */
  function moveTo(values, radii, jump) {
    cancelAnimationFrame(frame);
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (jump || isStill || !shown || document.hidden) {
      shown = { values, radii };
      frame = 0;
      drawPlane(values, radii);
      return;
    }
    const start = { time: performance.now(), ...shown };
    const draw = (now) => {
      const share = Math.min(1, Math.max(0, (now - start.time) / MOTION));
      const t = 1 - (1 - share) ** 3;
      if (share === 1) {
        shown = { values, radii };
        frame = 0;
      } else {
        shown = {
          values: values.map((value, k) => start.values[k] + t * (value - start.values[k])),
          radii: radii.map((radius, k) => start.radii[k] + t * (radius - start.radii[k])),
        };
        frame = requestAnimationFrame(draw);
      }
      drawPlane(shown.values, shown.radii);
    };
    frame = requestAnimationFrame(draw);
  }

  function redraw() {
    drawBars();
    if (!frame) drawPlane(shown.values, shown.radii);
  }

  function select(row) {
    if (row === selected) return;
    selected = row;
    writePoint();
    redraw();
  }

  function keepState() {
    const hash = "#" + Object.entries(state).map(([name, value]) => `${name}=${value}`).join("&");
    if (hash !== location.hash) history.replaceState(null, "", hash);
    tellParent({ hash });
  }

  function readHash() {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      if (name === "data" && $(`data-${value}`)) state.data = value;
      if (name === "weights" || name === "kernel") state[name] = value;
      if ((name === "alpha" || name === "C") && Number(value) > 0) state[name] = Number(value);
    }
  }

  // -- the page around ----------------------------------------------------------------------------

  function tellParent(message) {
    if (window.parent !== window) window.parent.postMessage({ owasvmExplorer: true, ...message }, "*");
  }

  let isTold = false; // the page around decides about light and dark
  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    readColours();
    if (current) redraw();
  }

  window.addEventListener("message", ({ data }) => {
    if (!data || !data.owasvmTheme) return;
    isTold = true;
    setTheme(data.owasvmTheme === "dark" ? "dark" : "light");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ({ matches }) => {
    if (!isTold) setTheme(matches ? "dark" : "light");
  });

  // -- start --------------------------------------------------------------------------------------

  const keys = [...document.querySelectorAll("script[data-dataset]")];
  const available = PRESETS.filter(([, wanted]) => $(`data-${wanted.data}`));

  function connect(first) {
    $("datasets").append(...keys.map((element) => chip("data", element.dataset.dataset, element.dataset.title)));
    $("families").append(
      ...first.families.map(({ key, title, alphas, weights }) => chip("weights", key, title, sparkline(weights[nearest(alphas, TYPICAL[key] ?? 1)]))),
    );
    $("kernels").append(...first.kernels.map((kernel) => chip("kernel", kernel, KERNELS[kernel])));
    for (const [title, wanted] of available) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = title;
      button.addEventListener("click", () => {
        Object.assign(state, wanted);
        show();
      });
      $("presets").append(button);
    }
    for (const name of ["data", "weights", "kernel"])
      document.querySelectorAll(`input[name="${name}"]`).forEach((input) =>
        input.addEventListener("change", () => {
          state[name] = input.value;
          if (name === "weights") state.alpha = TYPICAL[input.value] ?? state.alpha;
          show();
        }),
      );
    $("alpha").addEventListener("input", () => {
      state.alpha = current.family.alphas[Number($("alpha").value)];
      show();
    });
    $("C").addEventListener("input", () => {
      state.C = current.dataset.Cs[Number($("C").value)];
      show();
    });
    $("ghost").addEventListener("change", () => show({ jump: true }));
    $("rank").addEventListener("input", () => select(current.result.order[Number($("rank").value) - 1]));
    $("rank").addEventListener("focus", () => {
      if (selected === null) select(current.result.order[Number($("rank").value) - 1]);
    });

    const plane = $("plane");
    const nearPoint = (event) => {
      const box = plane.getBoundingClientRect();
      const distances = current.view.pixels.map(([x, y]) => Math.hypot(x - event.clientX + box.left, y - event.clientY + box.top));
      const best = distances.indexOf(Math.min(...distances));
      return distances[best] < 26 ? best : null;
    };
    plane.addEventListener("pointermove", (event) => event.pointerType === "mouse" && select(nearPoint(event)));
    plane.addEventListener("pointerdown", (event) => select(nearPoint(event)));
    plane.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && select(null));
    const bars = $("bars");
    const nearBar = (event) => {
      const box = bars.getBoundingClientRect();
      const n = current.dataset.y.length;
      const k = Math.floor(((event.clientX - box.left - INSET.left) / (box.width - INSET.left - INSET.right)) * n);
      return k >= 0 && k < n ? current.result.order[k] : null;
    };
    bars.addEventListener("pointermove", (event) => event.pointerType === "mouse" && select(nearBar(event)));
    bars.addEventListener("pointerdown", (event) => select(nearBar(event)));
    bars.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && select(null));

    window.addEventListener("hashchange", () => {
      readHash();
      show();
    });
    const observer = new ResizeObserver(() => {
      if ($("plane").getBoundingClientRect().width !== current?.view.width) show({ jump: true });
      tellParent({ height: Math.ceil(document.querySelector("main").getBoundingClientRect().height) + 2 });
    });
    observer.observe(document.querySelector("main"));
    const fits = first.perKernel * first.kernels.length * keys.length;
    $("count").textContent = `${fits.toLocaleString("en")} of them are in this page.`;
  }

  async function start() {
    if (typeof DecompressionStream === "undefined") {
      $("problem").hidden = false;
      $("problem").textContent = "This browser cannot unpack the solutions (it has no DecompressionStream). Any browser from 2023 on can.";
      return;
    }
    readColours();
    readHash();
    if (!$(`data-${state.data}`)) state.data = keys[0].dataset.dataset;
    connect(await load(state.data));
    await show({ jump: true });
    performance.mark("first-picture");
  }

  // For tests and for the curious: every stored objective against the one computed here.
  window.explorer = {
    state,
    isStill: () => frame === 0 && current !== null,
    selected: () => selected,
    point: (row) => current.view.pixels[row],
    async compareObjectives(key) {
      const dataset = await load(key);
      let worst = 0;
      dataset.kernels.forEach((_, kernel) =>
        dataset.families.forEach((one, family) =>
          one.alphas.forEach((__, alpha) =>
            dataset.Cs.forEach((___, C) => {
              const fit = solution(dataset, { kernel, family, alpha, C });
              const { objective } = evaluate(dataset, fit);
              worst = Math.max(worst, Math.abs(objective - fit.objective) / Math.max(1, fit.objective));
            }),
          ),
        ),
      );
      return worst;
    },
  };

  start();
})();
