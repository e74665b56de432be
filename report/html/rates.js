// --- Resources over time ---------------------------------------------------------------------------------------------
const engineOf = lane => lane.name.split('/')[1].split('.')[0];  // of all lanes of a kind
const lanesOf = (run, engines) => run.lanes.filter(lane => engines.includes(engineOf(lane)));
const RESOURCES = [['GPU', ['compute']], ['CPU', ['cpu_optimizer', 'cpu_compute']], ['H2D', ['h2d', 'h2d_small']],
  ['D2H', ['d2h', 'd2h_small']], ['disk', ['disk_read', 'disk_write']]];
const PHASES = ['forward', 'backward', 'optimizer_step'];
const SMOOTH = 24;  // columns to either side that a mean is of: pulses beat with columns, but not with so many
// For each column: the most at any moment in it of what all lanes come to, so that constant pulses have a flat top, and
// the mean over the columns around it. `rate(lane, i)` of a slice; lanes of n equal ranks count n times.
function envelope(lanes, width, rate) {
  const n = Math.max(1, Math.floor((width - LABEL_WIDTH) / COLUMN)), span = (view.to - view.from) / n;
  const most = new Float64Array(n), sums = new Float64Array(n);
  for (const lane of lanes) {
    const highest = new Float64Array(n);
    for (let i = firstAfter(lane, view.from); i < lane.count && lane.start[i] < view.to; ++i) {
      const from = lane.start[i] - view.from, to = lane.end[i] - view.from, each = rate(lane, i) * lane.ranks;
      const last = Math.min(n - 1, Math.floor(to / span));
      for (let c = Math.max(0, Math.floor(from / span)); c <= last; ++c) {
        const inside = Math.min(to, (c + 1) * span) - Math.max(from, c * span);
        if (inside <= 0) continue;
        sums[c] += each * inside / span;
        if (each > highest[c]) highest[c] = each;
      }
    }
    for (let c = 0; c < n; ++c) most[c] += highest[c];
  }
  return {most, mean: smoothed(sums)};
}
function smoothed(sums) {
  const before = new Float64Array(sums.length + 1);
  sums.forEach((sum, c) => { before[c + 1] = before[c] + sum; });
  const reach = Math.min(SMOOTH, Math.floor(sums.length / 8));
  return sums.map((_, c) => {
    const from = Math.max(0, c - reach), to = Math.min(sums.length, c + reach + 1);
    return (before[to] - before[from]) / (to - from);
  });
}
const columnAt = (t, values) => values[Math.max(0, Math.min(values.length - 1, Math.floor((t - view.from) / (view.to - view.from) * values.length)))];
// The busy share of all in sight.
const shareShown = (lanes, devices) => lanes.reduce((sum, lane) => sum + lane.ranks * busyIn(lane, view.from, view.to), 0) / devices / (view.to - view.from);
// The envelope as an area, the mean as a line. `height` below zero: downwards.
function drawEnvelope(g, values, base, height, most, name) {
  g.fillStyle = colour(name);
  g.globalAlpha = 0.45;
  values.most.forEach((value, c) => { if (value > 0) g.fillRect(LABEL_WIDTH + c * COLUMN, base, COLUMN, -height * Math.min(1, value / most)); });
  g.globalAlpha = 1;
  g.strokeStyle = colour('ink');
  g.lineWidth = 1.5;
  g.beginPath();
  values.mean.forEach((value, c) => g.lineTo(LABEL_WIDTH + (c + 0.5) * COLUMN, base - height * Math.min(1, value / most)));
  g.stroke();
  g.lineWidth = 1;
}
function phaseRows(g, run, width) {
  const rows = new Map(PHASES.map((phase, row) => [data.colours.indexOf(phase), row]));
  const fills = PHASES.map(colour);
  for (const lane of run.lanes) {
    const painted = PHASES.map((_, row) => new Slices(g, row * PHASE_ROW + 3, PHASE_ROW - 6, fills));
    for (let i = firstAfter(lane, view.from); i < lane.count && lane.start[i] < view.to; ++i) {
      const row = rows.get(lane.colour[i]);
      if (row === undefined) continue;
      painted[row].add(row, Math.max(LABEL_WIDTH, xOf(lane.start[i], width)), Math.min(width, xOf(lane.end[i], width)));
    }
    for (const slices of painted) slices.end();
  }
}
const PHASE_ROW = 18, USE_ROW = 46;
const ENVELOPE = 'The area is the most at any moment of each two pixels; the line is the mean over the hundred pixels around.';
function resourceCharts() {
  const s = section('Resources over time', `Above: when the phases of a step run, on any lane. Below: how busy each resource is, 0 to 100%. ${ENVELOPE} Percentages at the left are of the time that is shown. PCIe is two resources: H2D and D2H.`);
  const shown = element('p', {class: 'note'});
  redraws.push(() => { shown.textContent = 'Shown: ' + shownWords(); });
  s.append(shown);
  for (const run of runs) {
    if (runs.length > 1) s.append(runTitle(run));
    const devices = run.devices.reduce((sum, device) => sum + device.ranks, 0);
    const used = RESOURCES.filter(([, engines]) => lanesOf(run, engines).length > 0);
    const top = PHASES.length * PHASE_ROW, height = top + used.length * USE_ROW;
    const busy = (engines, width) => envelope(lanesOf(run, engines), width, () => 1 / devices);
    canvas(s, height + AXIS, `Phases, and how busy ${used.map(u => u[0]).join(', ')} are, ${run.mode}`, (g, width) => {
      axis(g, width, height);
      phaseRows(g, run, width);
      used.forEach(([, engines], row) => {
        const base = top + (row + 1) * USE_ROW;
        g.fillStyle = colour('lane');
        g.fillRect(LABEL_WIDTH, base - USE_ROW + 4, width - LABEL_WIDTH, USE_ROW - 4);
        drawEnvelope(g, busy(engines, width), base, USE_ROW - 4, 1, engines[0].replace('disk_read', 'disk'));
      });
      stepEnds(g, run, width, height);
      labels(g, PHASES.map(words), 0, PHASE_ROW);
      labels(g, used.map(() => ''), top, USE_ROW);
      used.forEach(([name, engines], row) => {
        const y = top + (row + 0.5) * USE_ROW;
        g.fillText(name, 0, y - 6);
        g.fillText(percent(Math.min(1, shareShown(lanesOf(run, engines), devices))) + (narrow() ? '' : ' of shown'), 0, y + 10);
      });
      g.fillStyle = colour('soft');
      g.textAlign = 'right';
      if (!narrow()) used.forEach((_, row) => { g.fillText('100%', LABEL_WIDTH - 6, top + row * USE_ROW + 10); g.fillText('0', LABEL_WIDTH - 6, top + (row + 1) * USE_ROW - 6); });
    }, (t, y, width) => {
      const row = Math.floor((y - top) / USE_ROW);
      if (row < 0 || row >= used.length) return '';
      const values = busy(used[row][1], width);
      return `${used[row][0]} at ${time(t)}: ${percent(Math.min(1, columnAt(t, values.most)))} at most, ${percent(Math.min(1, columnAt(t, values.mean)))} in the mean around`;
    });
  }
  s.append(legend(PHASES));
}
function pcieCharts() {
  const HALF = 64, rate = (lane, i) => lane.bytes[i] / Math.max(1, lane.end[i] - lane.start[i]);  // bytes a nanosecond are GB/s
  const s = section('PCIe over time', `Host to device above the line, device to host below it, in GB/s, over all devices. ${ENVELOPE}`);
  const both = (run, width) => [['h2d', 'h2d_small'], ['d2h', 'd2h_small']].map(engines => envelope(lanesOf(run, engines), width, rate));
  for (const run of runs) {
    if (runs.length > 1) s.append(runTitle(run));
    canvas(s, 2 * HALF + 8 + AXIS, `Copies over PCIe, ${run.mode}`, (g, width) => {
      const centre = HALF + 4, values = both(run, width);
      // Of all runs the same.
      const most = niceAbove(runs.flatMap(r => r === run ? values : both(r, width)).reduce((m, v) => v.most.reduce((a, b) => Math.max(a, b), m), 0.001));
      axis(g, width, 2 * HALF + 8);
      drawEnvelope(g, values[0], centre, HALF, most, 'h2d');
      drawEnvelope(g, values[1], centre, -HALF, most, 'd2h');
      g.strokeStyle = colour('soft');
      g.beginPath(); g.moveTo(LABEL_WIDTH, centre); g.lineTo(width, centre); g.stroke();
      stepEnds(g, run, width, 2 * HALF + 8);
      g.fillStyle = colour('card');
      g.fillRect(0, 0, LABEL_WIDTH, 2 * HALF + 8);
      g.textAlign = 'left';
      g.fillStyle = colour('ink');
      ['H2D, GB/s', 'D2H, GB/s'].forEach((name, i) => g.fillText(name, 0, centre + (i - 0.5) * HALF));
      g.fillStyle = colour('soft');
      g.textAlign = 'right';
      [[most, 8], [0, centre], [most, 2 * HALF]].forEach(([value, y]) => g.fillText(value < 1 ? value.toPrecision(1) : value, LABEL_WIDTH - 6, y));
    }, (t, _, width) => `at ${time(t)}, at most and in the mean around\n` + both(run, width).map((v, i) => `${i ? 'D2H' : 'H2D'} ${digits(columnAt(t, v.most))} and ${digits(columnAt(t, v.mean))} GB/s`).join('\n'));
  }
  s.append(legend(['h2d', 'd2h']));
}
