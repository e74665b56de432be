// --- Memory over time ------------------------------------------------------------------------------------------------
function indexAt(times, t) {
  let low = 0, high = times.length;
  while (low < high) { const between = (low + high) >> 1; if (times[between] <= t) low = between + 1; else high = between; }
  return low - 1;
}
// What lies on what: for each point, the bytes below and with each use.
function stack(tier) {
  tier.upper = [];
  let base = new Float64Array(tier.t.length);
  for (const row of tier.b) tier.upper.push(base = base.map((below, i) => below + row[i]));
  tier.totals = base;
  tier.most = base.reduce((a, b) => Math.max(a, b), 1);
}
// Of a tier, over all runs: their axes are equal.
function topOf(tier) {
  const same = runs.flatMap(r => r.memory).filter(t => t.name.split('/')[1] === tier.name.split('/')[1]);
  const most = Math.max(...same.map(t => t.most)), capacity = Math.max(...same.map(t => t.capacity));
  return (capacity > 0 && capacity < most * 2 ? Math.max(capacity, most) : most) * 1.16;
}
// The points in sight, of those in one pixel the highest.
function seen(tier, width) {
  const from = Math.max(0, indexAt(tier.t, view.from)), to = indexAt(tier.t, view.to) + 1, points = [];
  let column = -1;
  for (let i = from; i < to; ++i) {
    const at = Math.round(Math.max(LABEL_WIDTH, xOf(tier.t[i], width)));
    if (at !== column) { points.push(i); column = at; } else if (tier.totals[i] > tier.totals[points[points.length - 1]]) points[points.length - 1] = i;
  }
  return points;
}
// Steps from point to point; `last`: where the last of all ends.
function outline(tier, values, points, width, y, last) {
  return points.flatMap((i, n) => {
    const until = n + 1 < points.length ? tier.t[points[n + 1]] : i + 1 < tier.t.length ? tier.t[i + 1] : last;
    const x = Math.max(LABEL_WIDTH, xOf(tier.t[i], width)), next = Math.min(width, Math.max(LABEL_WIDTH, xOf(until, width)));
    return [[x, y(values[i])], [next, y(values[i])]];
  });
}
function capacityLine(g, tier, y, top, width) {
  if (tier.capacity <= 0) return;
  const text = `capacity ${bytes(tier.capacity)}`;
  g.textAlign = 'right';
  g.fillStyle = colour('bad');
  if (tier.capacity > top) { g.fillText(`${text}, far above`, width - 6, 8); return; }
  g.strokeStyle = colour('bad');
  g.setLineDash([5, 4]);
  g.beginPath(); g.moveTo(LABEL_WIDTH, y(tier.capacity)); g.lineTo(width, y(tier.capacity)); g.stroke();
  g.setLineDash([]);
  g.fillText(text, width - 6, y(tier.capacity) - 8);
}
function memoryCharts() {
  const s = section('Memory over time', "By what the bytes are. The dashed line is the tier's capacity. Bytes count from the first write to the release; a pool's peak counts reservations too.");
  const HEIGHT = 130, used = new Set();
  for (const run of runs) run.memory.forEach(stack);
  for (const run of runs) {
    if (runs.length > 1) s.append(runTitle(run));
    for (const tier of run.memory) {
      tier.uses.forEach(u => used.add(u));
      const top = topOf(tier);
      canvas(s, HEIGHT + AXIS, `Memory of ${tier.name}, ${run.mode}: ${bytes(tier.most)} at most`, (g, width) => {
        axis(g, width, HEIGHT);
        const y = b => HEIGHT - b / top * (HEIGHT - 4), points = seen(tier, width);
        tier.uses.forEach((use, row) => {
          g.fillStyle = colour(use);
          g.beginPath();
          for (const p of outline(tier, tier.upper[row], points, width, y, run.to)) g.lineTo(...p);
          const below = row > 0 ? tier.upper[row - 1] : new Float64Array(tier.t.length);
          for (const p of outline(tier, below, points, width, y, run.to).reverse()) g.lineTo(...p);
          g.fill();
        });
        capacityLine(g, tier, y, top, width);
        stepEnds(g, run, width, HEIGHT);
        g.fillStyle = colour('card');
        g.fillRect(0, 0, LABEL_WIDTH, HEIGHT);
        labels(g, [shortName(tier.name, run), 'most ' + bytes(tier.most), tier.capacity > 0 ? 'of ' + bytes(tier.capacity) : ''], HEIGHT / 2 - 30, 20);
      }, t => {
        const i = indexAt(tier.t, t);
        if (i < 0) return `${tier.name}: empty`;
        const rows = tier.uses.map((use, row) => [words(use), tier.b[row][i]]).filter(r => r[1] > 0).reverse();
        return [`${tier.name} at ${time(t)}: ${bytes(tier.totals[i])}`, ...rows.map(r => `${r[0]} ${bytes(r[1])}`)].join('\n');
      });
    }
  }
  s.append(legend([...used]));
}
