// --- Key figures -----------------------------------------------------------------------------------------------------
function facts() {
  for (const run of runs) {
    const r = run.result, s = section(runs.length > 1 ? `Figures: ${run.mode}` : 'Figures');
    const grid = element('div', {class: 'facts'});
    const fact = (label, value, more = '') => grid.append(element('div', {class: 'fact'}, element('div', {class: 'label', text: label}),
      element('div', {class: 'value', text: value}), element('div', {class: 'more', text: more})));
    const [low, high] = r.step_time_s.interval_90 ?? [];
    fact('Step time, median', time(r.step_time_s.median * 1e9), `of ${run.step_ends_ns.length > 1 ? windowWords(run) : 'the whole run, which has one step'}; p10 ${time(r.step_time_s.p10 * 1e9)}, p90 ${time(r.step_time_s.p90 * 1e9)}`
      + (high ? `; 90% interval ${time(low * 1e9)} to ${time(high * 1e9)}` : ''));
    if (r.throughput.tokens_per_s > 0) fact('Tokens a second', count(r.throughput.tokens_per_s), `${count(r.throughput.samples_per_s)} samples/s, of a median step`);
    else fact('Samples a second', count(r.throughput.samples_per_s), 'of a median step');
    if (r.throughput.model_flops_per_s > 0) fact('Model FLOP/s', count(r.throughput.model_flops_per_s), r.model_flop_use > 0 ? `${percent(r.model_flop_use)} of the peak, over a median step` : '');
    for (const [tier, peak] of Object.entries(r.peak_bytes)) {
      if (tier === 'host_pinned' || (peak === 0 && tier === 'disk') || stoodFor(run, tier)) continue;
      const capacity = run.capacity_bytes[tier];
      fact(`Peak, ${tier}`, bytes(peak), capacity > 0 ? `${percent(peak / capacity)} of ${bytes(capacity)}, over the whole run` : 'over the whole run');
    }
    if (r.staleness) fact('Staleness of an update', r.staleness.mean.toFixed(1), `updates of others since its worker got the parameters, mean; ${r.staleness.max} at most`);
    const bound = r.lower_bound_s.overall;
    if (bound > 0) fact('Lower bound of a step', time(bound * 1e9), `${words(r.lower_bound_held_by)}; this run's steps: ${(r.steady_step_s / bound).toFixed(2)} times`);
    if (r.policy_bound_s > 0) fact("With the policy's traffic", time(r.policy_bound_s * 1e9), `${words(r.policy_bound_held_by)}; this run's steps: ${(r.steady_step_s / r.policy_bound_s).toFixed(2)} times`);
    s.append(grid);
  }
}
// Whether another rank, which does the same, is shown for this device.
function stoodFor(run, name) {
  const device = name.split('/')[0];
  return /^device\d+$/.test(device) && !run.devices.some(d => d.first === device);
}
const shownName = (run, name) => {
  const device = run.devices.find(d => d.first === name.split('/')[0]);
  return device ? name.replace(device.first, device.name) : name;
};

function errorTable() {
  if (!data.table.length) return;
  const s = section('Predicted beside measured', 'Errors: predicted over measured, minus 1; of busy and exposed time, the difference over the measured step. Shares of time are of the steps after the first.');
  const row = (tag, cells) => element('tr', {}, ...cells.map((text, i) => element(tag, {text, class: i ? 'number' : ''})));
  s.append(element('div', {class: 'scrolls', tabindex: '0', role: 'group', 'aria-label': 'Predicted beside measured'},
    element('table', {}, row('th', ['figure', 'predicted', 'measured', 'error']), ...data.table.map(r => row('td', r)))));
}

// --- Where the step goes, idle time by cause -------------------------------------------------------------------------
const CAUSES = ['h2d', 'd2h', 'cpu_optimizer', 'cpu_compute', 'disk', 'collective', 'p2p', 'loader', 'dispatch', 'no_work'];
function stepBar() {
  const s = section(runs[0].result.generation ? 'Where a step goes' : 'Where a training step goes', `The compute lane: busy, or (hatched) waiting, by what it waited for. Mean of ${windowWords(runs[0])}.` + (runs.length > 1 ? ' Both bars have one scale.' : ''));
  const used = new Set(), partsOf = run => [['compute', run.result.compute_s], ...CAUSES.map(c => [c, run.result.exposed_s[c] || 0])].filter(p => p[1] > 0);
  const whole = Math.max(...runs.map(run => partsOf(run).reduce((sum, p) => sum + p[1], 0)));
  for (const run of runs) {
    const parts = partsOf(run);
    parts.forEach(p => used.add(p[0]));
    if (runs.length > 1) s.append(runTitle(run));
    s.append(stackedBar(parts, x => time(x * 1e9), {whole, hatched: CAUSES}));
    const step = parts.reduce((sum, p) => sum + p[1], 0);
    s.append(element('p', {class: 'note', text: parts.map(([name, x]) => `${words(name)} ${time(x * 1e9)} (${percent(x / step)} of the step)`).join(', ')}));
  }
  s.append(legend(['compute', ...CAUSES].filter(c => used.has(c)), CAUSES));
}
function idleBars() {
  const s = section('Idle time by cause', `Each lane over ${windowWords(runs[0])}: blank is busy; the rest is idle, by what the lane waited for. At the right, the busy share of that time.`);
  const used = new Set();
  for (const run of runs) {
    if (runs.length > 1) s.append(runTitle(run));
    for (const [lane, causes] of Object.entries(run.result.idle_s)) {
      if (stoodFor(run, lane)) continue;
      const busy = run.result.busy_share[lane] || 0;
      const idle = Object.entries(causes).filter(c => c[1] > 0).sort((a, b) => b[1] - a[1]);
      idle.forEach(c => used.add(c[0]));
      const total = idle.reduce((sum, c) => sum + c[1], 0);
      const bar = stackedBar([...idle, ['busy', busy >= 1 ? 1 : total * busy / (1 - busy)]], x => time(x * 1e9) + ' a step', {thin: true, hatched: [...CAUSES, 'compute']});
      s.append(element('div', {class: 'lane-row'}, element('span', {text: shownName(run, lane)}), bar, element('span', {class: 'number', text: percent(busy) + ' busy'})));
    }
  }
  s.append(legend(['compute', ...CAUSES].filter(c => used.has(c)), [...CAUSES, 'compute']));
}

// --- Losses ----------------------------------------------------------------------------------------------------------
function losses() {
  const run = runs.find(r => r.result.loss && r.result.loss.length > 0);
  if (!run) return;
  const values = run.result.loss, finite = values.filter(v => v !== null), left = 75, height = 160;
  const s = section('Loss', `Mean over the micro-batches of each training step, ${run.mode}.`);
  const c = element('canvas', {role: 'img', 'aria-label': `Loss of ${values.length} steps, from ${finite[0]} to ${finite[finite.length - 1]}`});
  s.append(c);
  redraws.push(() => paint(c, height, (g, width) => {
    const low = Math.min(...finite), high = Math.max(...finite), span = high - low || 1;
    const x = i => left + i / Math.max(1, values.length - 1) * (width - left - 12), y = v => 14 + (high - v) / span * (height - 44);
    g.fillStyle = colour('soft');
    g.textAlign = 'left';
    for (const v of [high, (high + low) / 2, low]) {
      g.fillText(v.toFixed(3), 0, y(v));
      g.strokeStyle = colour('line');
      g.beginPath(); g.moveTo(left, y(v)); g.lineTo(width, y(v)); g.stroke();
    }
    g.textAlign = 'center';
    const every = Math.max(1, Math.ceil(values.length / 16));
    for (let i = 0; i < values.length; i += every) g.fillText(i, x(i), height - 10);
    g.strokeStyle = g.fillStyle = colour('accent');
    g.lineWidth = 2;
    g.beginPath();
    values.forEach((v, i) => { if (v !== null) g.lineTo(x(i), y(v)); });
    g.stroke();
    g.lineWidth = 1;
    values.forEach((v, i) => { if (v !== null && values.length < 80) { g.beginPath(); g.arc(x(i), y(v), 3, 0, 7); g.fill(); } });
  }));
  c.addEventListener('mousemove', e => {
    const i = Math.round((e.offsetX - left) / (c.clientWidth - left - 12) * Math.max(1, values.length - 1));
    tell(e, i >= 0 && i < values.length ? `step ${i}: ${values[i] === null ? 'not finite' : values[i].toFixed(6)}` : '');
  });
  c.addEventListener('mouseleave', hush);
}
