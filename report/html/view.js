'use strict';
// Draws the report from the JSON beside it. All text enters the page as text, never as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const runs = data.runs;
const SLICE = 6;  // numbers a slice: start, duration, colour, name, step, bytes
const LABEL_WIDTH = 150, ROW = 24, AXIS = 22;
const end = Math.max(1, ...runs.map(r => r.makespan_ns));
const view = {from: 0, to: end};
const redraws = [];

const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim() || '#888';
const words = name => name.replaceAll('_', ' ');
function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) key === 'text' ? e.textContent = value : e.setAttribute(key, value);
  e.append(...children);
  return e;
}
function digits(x) { const a = Math.abs(x); return x.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2); }
function time(ns) {
  const a = Math.abs(ns);
  return a >= 1e9 ? digits(ns / 1e9) + ' s' : a >= 1e6 ? digits(ns / 1e6) + ' ms' : a >= 1e3 ? digits(ns / 1e3) + ' µs' : Math.round(ns) + ' ns';
}
function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let u = 0;
  while (Math.abs(n) >= 1023.5 && u + 1 < units.length) { n /= 1024; ++u; }
  return (u === 0 ? n : digits(n)) + ' ' + units[u];
}
function count(n) {
  const units = ['', ' k', ' M', ' G', ' T', ' P'];
  let u = 0;
  while (Math.abs(n) >= 999.5 && u + 1 < units.length) { n /= 1000; ++u; }
  return digits(n) + units[u];
}

const tooltip = document.getElementById('tooltip');
function tell(event, text) {
  tooltip.textContent = text;
  tooltip.style.display = text ? 'block' : 'none';
  tooltip.style.left = Math.min(event.clientX + 14, innerWidth - tooltip.offsetWidth - 8) + 'px';
  tooltip.style.top = Math.min(event.clientY + 14, innerHeight - tooltip.offsetHeight - 8) + 'px';
}
const hush = () => { tooltip.style.display = 'none'; };

function section(title, note) {
  const s = element('section', {}, element('h2', {text: title}));
  if (note) s.append(element('p', {class: 'note', text: note}));
  document.getElementById('main').append(s);
  return s;
}
function runTitle(run) {
  return element('div', {class: 'run-title', text: run.title}, element('span', {class: 'mode', text: run.mode}));
}
function legend(names) {
  return element('div', {class: 'legend'}, ...names.map(name => {
    const mark = element('i');
    mark.style.background = `var(--${name})`;
    return element('span', {}, mark, words(name));
  }));
}
// parts: [name, amount]; text(amount) for the tooltip.
function stackedBar(parts, text, thin) {
  const total = parts.reduce((sum, [, amount]) => sum + amount, 0) || 1;
  const bar = element('div', {class: thin ? 'bar thin' : 'bar'});
  for (const [name, amount] of parts) {
    if (amount <= 0) continue;
    const share = amount / total, piece = element('span', {text: !thin && share > 0.1 ? words(name) : ''});
    piece.style.width = share * 100 + '%';
    piece.style.background = `var(--${name})`;
    piece.addEventListener('mousemove', e => tell(e, `${words(name)}: ${text(amount)} (${(share * 100).toFixed(1)}%)`));
    piece.addEventListener('mouseleave', hush);
    bar.append(piece);
  }
  return bar;
}

// --- Key figures -----------------------------------------------------------------------------------------------------
function facts() {
  for (const run of runs) {
    const r = run.result, s = section(runs.length > 1 ? `Figures: ${run.mode}` : 'Figures');
    const grid = element('div', {class: 'facts'});
    const fact = (label, value, more = '') => grid.append(element('div', {class: 'fact'}, element('div', {class: 'label', text: label}),
      element('div', {class: 'value', text: value}), element('div', {class: 'more', text: more})));
    const [low, high] = r.step_time_s.interval_90 ?? [];
    fact('Step time, median', time(r.step_time_s.median * 1e9), `p10 ${time(r.step_time_s.p10 * 1e9)}, p90 ${time(r.step_time_s.p90 * 1e9)}`
      + (high ? `; 90% interval ${time(low * 1e9)} to ${time(high * 1e9)}` : ''));
    if (r.throughput.tokens_per_s > 0) fact('Tokens a second', count(r.throughput.tokens_per_s), `${count(r.throughput.samples_per_s)} samples/s`);
    else fact('Samples a second', count(r.throughput.samples_per_s));
    if (r.throughput.model_flops_per_s > 0) fact('Model FLOP/s', count(r.throughput.model_flops_per_s));
    for (const [tier, peak] of Object.entries(r.peak_bytes)) {
      if (tier === 'host_pinned' || (peak === 0 && tier === 'disk')) continue;
      const capacity = run.capacity_bytes[tier];
      fact(`Peak, ${tier}`, bytes(peak), capacity > 0 ? `${(100 * peak / capacity).toFixed(1)}% of ${bytes(capacity)}` : '');
    }
    const bound = r.lower_bound_s.overall;
    if (bound > 0) fact('Lower bound of a step', time(bound * 1e9), `${words(r.lower_bound_held_by)}; this run's steps: ${(r.steady_step_s / bound).toFixed(2)} times`);
    if (r.policy_bound_s > 0) fact("With the policy's traffic", time(r.policy_bound_s * 1e9), `${words(r.policy_bound_held_by)}; this run's steps: ${(r.steady_step_s / r.policy_bound_s).toFixed(2)} times`);
    s.append(grid);
  }
}

function errorTable() {
  if (!data.table.length) return;
  const s = section('Predicted beside measured');
  const row = (tag, cells) => element('tr', {}, ...cells.map((text, i) => element(tag, {text, class: i ? 'number' : ''})));
  s.append(element('table', {}, row('th', ['', 'predicted', 'measured', 'error']), ...data.table.map(r => row('td', r))));
}

// --- Where the step goes, idle time by cause -------------------------------------------------------------------------
const CAUSES = ['h2d', 'd2h', 'cpu_optimizer', 'cpu_compute', 'disk', 'collective', 'p2p', 'loader', 'dispatch', 'no_work'];
function stepBar() {
  const s = section('Where a training step goes', 'The compute lane: busy, or waiting, by what it waited for. Mean of the steps after the first.');
  const used = new Set();
  for (const run of runs) {
    const parts = [['compute', run.result.compute_s], ...CAUSES.map(c => [c, run.result.exposed_s[c] || 0])].filter(p => p[1] > 0);
    parts.forEach(p => used.add(p[0]));
    if (runs.length > 1) s.append(runTitle(run));
    s.append(stackedBar(parts, x => time(x * 1e9)));
  }
  s.append(legend(['compute', ...CAUSES].filter(c => used.has(c))));
}
function idleBars() {
  const s = section('Idle time by cause', 'Each lane over the same window: blank is busy; the rest is idle, by what the lane waited for. At the right, the busy share.');
  const used = new Set();
  for (const run of runs) {
    if (runs.length > 1) s.append(runTitle(run));
    for (const [lane, causes] of Object.entries(run.result.idle_s)) {
      const busy = run.result.busy_share[lane] || 0;
      const idle = Object.entries(causes).filter(c => c[1] > 0).sort((a, b) => b[1] - a[1]);
      idle.forEach(c => used.add(c[0]));
      const total = idle.reduce((sum, c) => sum + c[1], 0);
      const bar = stackedBar([...idle, ['busy', busy >= 1 ? 1 : total * busy / (1 - busy)]], x => time(x * 1e9) + ' a step', true);
      s.append(element('div', {class: 'lane-row'}, element('span', {text: lane}), bar, element('span', {class: 'number', text: (busy * 100).toFixed(1) + '% busy'})));
    }
  }
  s.append(legend(['compute', ...CAUSES].filter(c => used.has(c))));
}

// --- Charts over time: one shared axis -------------------------------------------------------------------------------
function canvas(parent, height, draw, hover) {
  const c = element('canvas', {class: 'zooms', tabindex: '0'});
  parent.append(c);
  const paint = () => {
    const width = c.clientWidth, scale = devicePixelRatio || 1;
    c.width = width * scale;
    c.height = height * scale;
    c.style.height = height + 'px';
    const g = c.getContext('2d');
    g.scale(scale, scale);
    g.font = '12px ' + getComputedStyle(document.body).fontFamily;
    g.textBaseline = 'middle';
    draw(g, width, height);
  };
  redraws.push(paint);
  const at = x => view.from + (view.to - view.from) * (x - LABEL_WIDTH) / (c.clientWidth - LABEL_WIDTH);
  c.addEventListener('wheel', e => { e.preventDefault(); zoom(at(e.offsetX), Math.exp(e.deltaY * 0.0015)); }, {passive: false});
  c.addEventListener('pointerdown', e => c.setPointerCapture(e.pointerId));
  c.addEventListener('pointermove', e => {
    if (e.buttons & 1) { hush(); pan(-e.movementX * (view.to - view.from) / (c.clientWidth - LABEL_WIDTH)); }
    else tell(e, hover(at(e.offsetX), e.offsetY, c.clientWidth));
  });
  c.addEventListener('pointerleave', hush);
  c.addEventListener('dblclick', reset);
  c.addEventListener('keydown', e => {
    const span = view.to - view.from, middle = (view.from + view.to) / 2;
    const act = {ArrowLeft: () => pan(-span / 8), ArrowRight: () => pan(span / 8), '+': () => zoom(middle, 0.7), '-': () => zoom(middle, 1.4), '0': reset}[e.key];
    if (act) { e.preventDefault(); act(); }
  });
}
function show(from, to) {
  const span = Math.min(end, Math.max(10, to - from));
  view.from = Math.max(0, Math.min(from, end - span));
  view.to = view.from + span;
  requestAnimationFrame(() => redraws.forEach(draw => draw()));
}
const zoom = (at, factor) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
const pan = by => show(view.from + by, view.to + by);
const reset = () => show(0, end);
const xOf = (ns, width) => LABEL_WIDTH + (ns - view.from) / (view.to - view.from) * (width - LABEL_WIDTH);

function axis(g, width, y) {
  g.fillStyle = colour('soft');
  g.strokeStyle = colour('line');
  const span = view.to - view.from;
  const raw = span / Math.max(2, (width - LABEL_WIDTH) / 110), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw);
  g.textAlign = 'center';
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = xOf(t, width);
    g.beginPath(); g.moveTo(x, 0); g.lineTo(x, y); g.stroke();
    if (x > LABEL_WIDTH + 16 && x < width - 16) g.fillText(time(t), x, y + 11);
  }
}
function stepEnds(g, run, width, height) {
  g.strokeStyle = colour('ink');
  g.setLineDash([3, 3]);
  g.globalAlpha = 0.45;
  for (const t of run.step_ends_ns) if (t >= view.from && t <= view.to) { const x = xOf(t, width); g.beginPath(); g.moveTo(x, 0); g.lineTo(x, height); g.stroke(); }
  g.globalAlpha = 1;
  g.setLineDash([]);
}
function labels(g, texts, y0, row) {
  g.fillStyle = colour('card');
  g.fillRect(0, 0, LABEL_WIDTH, y0 + texts.length * row);
  g.textAlign = 'left';
  g.fillStyle = colour('ink');
  texts.forEach((text, i) => g.fillText(text, 0, y0 + i * row + row / 2, LABEL_WIDTH - 10));
}
// First slice that ends after `t`.
function firstAfter(lane, t) {
  let low = 0, high = lane.s.length / SLICE;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.s[middle * SLICE] + lane.s[middle * SLICE + 1] <= t) low = middle + 1; else high = middle;
  }
  return low;
}
function sliceText(run, lane, i) {
  const [start, length, , name, step, size] = lane.s.slice(i * SLICE, i * SLICE + SLICE);
  return `${run.names[name]}${step >= 0 ? `, step ${step}` : ''}\n${lane.name}\n${time(length)} from ${time(start)}${size > 0 ? `\n${bytes(size)}, ${bytes(size / Math.max(length, 1) * 1e9)}/s` : ''}`;
}
function drawLane(g, run, lane, y, width, colours) {
  g.fillStyle = colour('lane');
  g.fillRect(LABEL_WIDTH, y + 2, width - LABEL_WIDTH, ROW - 4);
  let painted = -1;
  for (let i = firstAfter(lane, view.from); i * SLICE < lane.s.length; ++i) {
    const start = lane.s[i * SLICE];
    if (start > view.to) break;
    const x0 = Math.max(LABEL_WIDTH, xOf(start, width)), x1 = Math.min(width, xOf(start + lane.s[i * SLICE + 1], width));
    if (x1 - painted < 0.4 && x1 - x0 < 0.4) continue;
    const gap = x1 - x0 > 3 ? 0.5 : 0;  // a hairline between neighbours
    g.fillStyle = colours[lane.s[i * SLICE + 2]];
    g.fillRect(x0, y + 2, Math.max(0.6, x1 - x0 - gap), ROW - 4);
    painted = x1;
    if (x1 - x0 < 40) continue;
    g.fillStyle = '#fff';
    g.textAlign = 'left';
    g.save();
    g.beginPath(); g.rect(x0, y, x1 - x0 - 4, ROW); g.clip();
    g.fillText(run.names[lane.s[i * SLICE + 3]], x0 + 5, y + ROW / 2);
    g.restore();
  }
}
function timelines() {
  const s = section('Timeline', 'One row a lane. Wheel to zoom, drag to move, double click for all of it; arrows, + and - on the keyboard. Ops are coloured by phase, copies by what they carry. Dashed: ends of training steps.');
  const tools = element('div', {class: 'tools'});
  for (const [text, act] of [['All', reset], ['Steady steps', steady], ['One step', oneStep]]) {
    const b = element('button', {text});
    b.addEventListener('click', act);
    tools.append(b);
  }
  s.prepend(tools);
  const used = new Set();
  for (const run of runs) {
    for (const lane of run.lanes) for (let i = 2; i < lane.s.length; i += SLICE) used.add(data.colours[lane.s[i]]);
    if (runs.length > 1) s.append(runTitle(run));
    if (run.slices_left_out > 0) s.append(element('p', {class: 'note', text: `The ${run.slices_left_out} commands after ${time(run.shown_until_ns)} are left out here; the trace has them all.`}));
    const height = run.lanes.length * ROW;
    canvas(s, height + AXIS, (g, width) => {
      axis(g, width, height);
      const colours = data.colours.map(colour);
      run.lanes.forEach((lane, i) => drawLane(g, run, lane, i * ROW, width, colours));
      stepEnds(g, run, width, height);
      labels(g, run.lanes.map(l => l.name), 0, ROW);
    }, (t, y) => {
      const lane = run.lanes[Math.floor(y / ROW)];
      if (!lane) return '';
      const i = firstAfter(lane, t);
      return i * SLICE < lane.s.length && lane.s[i * SLICE] <= t ? sliceText(run, lane, i) : `${lane.name}: idle`;
    });
  }
  s.append(legend([...used].sort((a, b) => data.colours.indexOf(a) - data.colours.indexOf(b))));
}
function steady() {
  const ends = runs.map(r => r.step_ends_ns).filter(e => e.length > 1);
  if (ends.length) show(Math.min(...ends.map(e => e[0])), Math.max(...ends.map(e => e[Math.min(e.length - 1, 2)])));
}

function oneStep() {
  const ends = runs.map(r => r.step_ends_ns).find(e => e.length > 1);
  if (ends) { const last = Math.min(2, ends.length - 1); show(ends[last - 1], ends[last]); }
}

// --- Resources over time ---------------------------------------------------------------------------------------------
const engineOf = lane => lane.name.split('/')[1].split('.')[0];  // of all lanes of a kind
const lanesOf = (run, engines) => run.lanes.filter(lane => engines.includes(engineOf(lane)));
const RESOURCES = [['GPU', ['compute']], ['CPU', ['cpu_optimizer', 'cpu_compute']], ['H2D', ['h2d', 'h2d_small']],
  ['D2H', ['d2h', 'd2h_small']], ['disk', ['disk_read', 'disk_write']]];
const PHASES = ['forward', 'backward', 'optimizer_step'];
const COLUMN = 2;  // pixels: what is shown is the mean over so much of the picture
// What the lanes' slices come to in each column; `rate` of a slice is amount over nanoseconds.
function columns(lanes, width, rate) {
  const sums = new Float64Array(Math.max(1, Math.floor((width - LABEL_WIDTH) / COLUMN))), span = (view.to - view.from) / sums.length;
  for (const lane of lanes) {
    for (let i = firstAfter(lane, view.from); i * SLICE < lane.s.length && lane.s[i * SLICE] < view.to; ++i) {
      const start = lane.s[i * SLICE] - view.from, length = lane.s[i * SLICE + 1], each = rate(lane.s[i * SLICE + 5], length);
      const last = Math.min(sums.length - 1, Math.floor((start + length) / span));
      for (let c = Math.max(0, Math.floor(start / span)); c <= last; ++c)
        sums[c] += each * Math.max(0, Math.min(start + length, (c + 1) * span) - Math.max(start, c * span)) / span;
    }
  }
  return sums;
}
const busyColumns = (lanes, width, devices) => columns(lanes, width, () => 1 / devices).map(share => Math.min(1, share));
const columnAt = (t, sums) => sums[Math.max(0, Math.min(sums.length - 1, Math.floor((t - view.from) / (view.to - view.from) * sums.length)))];
function area(g, sums, base, height, most, name) {
  g.fillStyle = colour(name);
  sums.forEach((sum, c) => { if (sum > 0) g.fillRect(LABEL_WIDTH + c * COLUMN, base, COLUMN, -height * sum / most); });
}
function phaseRows(g, run, width) {
  PHASES.forEach((phase, row) => {
    g.fillStyle = colour(phase);
    const wanted = data.colours.indexOf(phase);
    for (const lane of run.lanes) for (let i = firstAfter(lane, view.from); i * SLICE < lane.s.length && lane.s[i * SLICE] < view.to; ++i) {
      if (lane.s[i * SLICE + 2] !== wanted) continue;
      const x0 = Math.max(LABEL_WIDTH, xOf(lane.s[i * SLICE], width)), x1 = Math.min(width, xOf(lane.s[i * SLICE] + lane.s[i * SLICE + 1], width));
      g.fillRect(x0, row * PHASE_ROW + 3, Math.max(0.6, x1 - x0), PHASE_ROW - 6);
    }
  });
}
const PHASE_ROW = 18, USE_ROW = 46;
function resourceCharts() {
  const s = section('Resources over time', 'Above: when the phases of a training step run, on any lane. Below: how busy each resource is, 0 to 100% of each two pixels of time. PCIe is two resources: H2D and D2H.');
  for (const run of runs) {
    if (runs.length > 1) s.append(runTitle(run));
    const devices = new Set(run.lanes.map(lane => lane.name.split('/')[0])).size;
    const used = RESOURCES.filter(([, engines]) => lanesOf(run, engines).length > 0);
    const top = PHASES.length * PHASE_ROW, height = top + used.length * USE_ROW;
    canvas(s, height + AXIS, (g, width) => {
      axis(g, width, height);
      phaseRows(g, run, width);
      const names = used.map(([name, engines], row) => {
        const base = top + (row + 1) * USE_ROW, shares = busyColumns(lanesOf(run, engines), width, devices);
        g.fillStyle = colour('lane');
        g.fillRect(LABEL_WIDTH, base - USE_ROW + 4, width - LABEL_WIDTH, USE_ROW - 4);
        area(g, shares, base, USE_ROW - 4, 1, engines[0].replace('disk_read', 'disk'));
        return `${name} ${(100 * shares.reduce((a, b) => a + b, 0) / shares.length).toFixed(0)}% busy`;
      });
      stepEnds(g, run, width, height);
      labels(g, PHASES.map(words), 0, PHASE_ROW);
      g.fillStyle = colour('card');
      g.fillRect(0, top, LABEL_WIDTH, used.length * USE_ROW);
      g.fillStyle = colour('ink');
      names.forEach((name, row) => g.fillText(name, 0, top + (row + 0.5) * USE_ROW + 2));
      g.fillStyle = colour('soft');
      g.textAlign = 'right';
      used.forEach((_, row) => { g.fillText('100%', LABEL_WIDTH - 6, top + row * USE_ROW + 10); g.fillText('0', LABEL_WIDTH - 6, top + (row + 1) * USE_ROW - 6); });
    }, (t, y, width) => {
      const row = Math.floor((y - top) / USE_ROW);
      if (row < 0 || row >= used.length) return '';
      return `${used[row][0]} at ${time(t)}: ${(100 * columnAt(t, busyColumns(lanesOf(run, used[row][1]), width, devices))).toFixed(0)}% busy`;
    });
  }
  s.append(legend(PHASES));
}
function niceAbove(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].map(m => m * power).find(m => m >= x * 0.999);
}
function pcieCharts() {
  const HALF = 64, rate = (size, length) => size / Math.max(1, length);  // bytes a nanosecond are GB/s
  const s = section('PCIe over time', 'Host to device above the line, device to host below it, in GB/s: means over each two pixels of time, so zoom in for the rate of a single copy.');
  for (const run of runs) {
    const up = lanesOf(run, ['h2d', 'h2d_small']), down = lanesOf(run, ['d2h', 'd2h_small']);
    if (runs.length > 1) s.append(runTitle(run));
    canvas(s, 2 * HALF + 8 + AXIS, (g, width) => {
      const middle = HALF + 4, sums = [columns(up, width, rate), columns(down, width, rate)];
      const most = niceAbove(Math.max(0.001, ...sums[0], ...sums[1]));
      axis(g, width, 2 * HALF + 8);
      area(g, sums[0], middle, HALF, most, 'h2d');
      area(g, sums[1], middle, -HALF, most, 'd2h');
      g.strokeStyle = colour('soft');
      g.beginPath(); g.moveTo(LABEL_WIDTH, middle); g.lineTo(width, middle); g.stroke();
      stepEnds(g, run, width, 2 * HALF + 8);
      g.fillStyle = colour('card');
      g.fillRect(0, 0, LABEL_WIDTH, 2 * HALF + 8);
      g.textAlign = 'left';
      g.fillStyle = colour('ink');
      ['H2D, GB/s', 'D2H, GB/s'].forEach((name, i) => g.fillText(name, 0, middle + (i - 0.5) * HALF));
      g.fillStyle = colour('soft');
      g.textAlign = 'right';
      [[most, 8], [0, middle], [most, 2 * HALF]].forEach(([value, y]) => g.fillText(value < 1 ? value.toPrecision(1) : value, LABEL_WIDTH - 6, y));
    }, (t, _, width) => `at ${time(t)}\nH2D ${digits(columnAt(t, columns(up, width, rate)))} GB/s\nD2H ${digits(columnAt(t, columns(down, width, rate)))} GB/s`);
  }
  s.append(legend(['h2d', 'd2h']));
}

function indexAt(times, t) {
  let low = 0, high = times.length;
  while (low < high) { const middle = (low + high) >> 1; if (times[middle] <= t) low = middle + 1; else high = middle; }
  return low - 1;
}
function memoryCharts() {
  const s = section('Memory over time', "By what the bytes are. The line is the tier's capacity. Bytes count from the first write to the release; a pool's peak counts reservations too.");
  const HEIGHT = 130, used = new Set();
  for (const run of runs) {
    if (runs.length > 1) s.append(runTitle(run));
    for (const tier of run.memory) {
      tier.uses.forEach(u => used.add(u));
      const totals = tier.t.map((_, i) => tier.b.reduce((sum, row) => sum + row[i], 0));
      const most = Math.max(1, ...totals), top = (tier.capacity > 0 && tier.capacity < most * 2 ? Math.max(tier.capacity, most) : most) * 1.08;
      canvas(s, HEIGHT + AXIS, (g, width) => {
        axis(g, width, HEIGHT);
        const y = b => HEIGHT - b / top * (HEIGHT - 4), base = new Array(tier.t.length).fill(0);
        const first = Math.max(0, indexAt(tier.t, view.from));
        tier.uses.forEach((use, row) => {
          g.fillStyle = colour(use);
          g.beginPath();
          let last = first, x = LABEL_WIDTH;
          const upper = [], lower = [];
          for (let i = first; i < tier.t.length && tier.t[i] <= view.to; ++i) {
            x = Math.max(LABEL_WIDTH, xOf(tier.t[i], width));
            const next = i + 1 < tier.t.length ? Math.min(width, Math.max(LABEL_WIDTH, xOf(tier.t[i + 1], width))) : Math.min(width, Math.max(x, xOf(run.makespan_ns, width)));
            upper.push([x, y(base[i] + tier.b[row][i])], [next, y(base[i] + tier.b[row][i])]);
            lower.push([x, y(base[i])], [next, y(base[i])]);
            last = i;
          }
          for (const p of upper) g.lineTo(...p);
          for (const p of lower.reverse()) g.lineTo(...p);
          g.fill();
          for (let i = first; i <= last && i < tier.t.length; ++i) base[i] += tier.b[row][i];
        });
        if (tier.capacity > 0 && tier.capacity <= top) {
          g.strokeStyle = colour('disk');
          g.setLineDash([5, 4]);
          g.beginPath(); g.moveTo(LABEL_WIDTH, y(tier.capacity)); g.lineTo(width, y(tier.capacity)); g.stroke();
          g.setLineDash([]);
        }
        stepEnds(g, run, width, HEIGHT);
        labels(g, [tier.name, 'most ' + bytes(most), tier.capacity > 0 ? 'of ' + bytes(tier.capacity) : ''], HEIGHT / 2 - 30, 20);
      }, t => {
        const i = indexAt(tier.t, t);
        if (i < 0) return `${tier.name}: empty`;
        const rows = tier.uses.map((use, row) => [words(use), tier.b[row][i]]).filter(r => r[1] > 0).reverse();
        return [`${tier.name} at ${time(t)}: ${bytes(totals[i])}`, ...rows.map(r => `${r[0]} ${bytes(r[1])}`)].join('\n');
      });
    }
  }
  s.append(legend([...used]));
}

// --- Losses ----------------------------------------------------------------------------------------------------------
function losses() {
  const run = runs.find(r => r.result.loss && r.result.loss.length > 0);
  if (!run) return;
  const values = run.result.loss, finite = values.filter(v => v !== null);
  const s = section('Loss', `Mean over the micro-batches of each training step, ${run.mode}.`);
  const c = element('canvas');
  s.append(c);
  redraws.push(() => {
    const width = c.clientWidth, height = 160, scale = devicePixelRatio || 1;
    c.width = width * scale;
    c.height = height * scale;
    c.style.height = height + 'px';
    const g = c.getContext('2d');
    g.scale(scale, scale);
    g.font = '12px ' + getComputedStyle(document.body).fontFamily;
    const low = Math.min(...finite), high = Math.max(...finite), span = high - low || 1;
    const x = i => LABEL_WIDTH / 2 + i / Math.max(1, values.length - 1) * (width - LABEL_WIDTH / 2 - 12), y = v => 14 + (high - v) / span * (height - 44);
    g.fillStyle = colour('soft');
    g.textBaseline = 'middle';
    for (const v of [high, (high + low) / 2, low]) {
      g.fillText(v.toFixed(3), 0, y(v));
      g.strokeStyle = colour('line');
      g.beginPath(); g.moveTo(LABEL_WIDTH / 2, y(v)); g.lineTo(width, y(v)); g.stroke();
    }
    g.textAlign = 'center';
    const every = Math.max(1, Math.ceil(values.length / 16));
    for (let i = 0; i < values.length; i += every) g.fillText(i, x(i), height - 10);
    g.strokeStyle = g.fillStyle = colour('accent');
    g.lineWidth = 2;
    g.beginPath();
    values.forEach((v, i) => { if (v !== null) g.lineTo(x(i), y(v)); });
    g.stroke();
    values.forEach((v, i) => { if (v !== null && values.length < 80) { g.beginPath(); g.arc(x(i), y(v), 3, 0, 7); g.fill(); } });
  });
  c.addEventListener('mousemove', e => {
    const i = Math.round((e.offsetX - LABEL_WIDTH / 2) / (c.clientWidth - LABEL_WIDTH / 2 - 12) * Math.max(1, values.length - 1));
    tell(e, i >= 0 && i < values.length ? `step ${i}: ${values[i] === null ? 'not finite' : values[i].toFixed(6)}` : '');
  });
  c.addEventListener('mouseleave', hush);
}

document.querySelector('noscript')?.remove();
errorTable();
facts();
stepBar();
timelines();
resourceCharts();
pcieCharts();
memoryCharts();
idleBars();
losses();
addEventListener('resize', () => redraws.forEach(draw => draw()));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraws.forEach(draw => draw()));
redraws.forEach(draw => draw());
if (location.hash === '#step') oneStep();
