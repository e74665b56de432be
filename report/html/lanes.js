// --- Lanes -----------------------------------------------------------------------------------------------------------
// Into arrays of one type, which a picture of 100,000 slices goes through in no time.
function unpack(lane, zero) {
  const n = lane.count = lane.s.length / SLICE;
  lane.start = new Float64Array(n);
  lane.end = new Float64Array(n);
  lane.colour = new Uint8Array(n);
  lane.named = new Uint32Array(n);
  lane.step = new Int32Array(n);
  lane.bytes = new Float64Array(n);
  for (let i = 0, at = 0, t = -zero; i < n; ++i, at += SLICE) {
    t += lane.s[at];
    lane.start[i] = t;
    lane.end[i] = t += lane.s[at + 1];
    lane.colour[i] = lane.s[at + 2];
    lane.named[i] = lane.s[at + 3];
    lane.step[i] = lane.s[at + 4];
    lane.bytes[i] = lane.s[at + 5];
  }
  lane.waits = Int32Array.from(lane.w);
  lane.s = lane.w = null;
}
// First slice that ends after `t`.
function firstAfter(lane, t) {
  let low = 0, high = lane.count;
  while (low < high) {
    const between = (low + high) >> 1;
    if (lane.end[between] <= t) low = between + 1; else high = between;
  }
  return low;
}
const stepOf = (lane, i) => lane.step[i] >= 0 ? `, step ${lane.step[i]}` : '';
function sliceText(run, lane, i) {
  const length = lane.end[i] - lane.start[i], size = lane.bytes[i];
  return `${run.names[lane.named[i]]}${stepOf(lane, i)}\n${lane.name}\n${time(length)} from ${time(lane.start[i])}${size > 0 ? `\n${bytes(size)}, ${bytes(size / Math.max(length, 1) * 1e9)}/s` : ''}`;
}
function drawLane(g, run, lane, y, width, fills) {
  g.fillStyle = colour('lane');
  g.fillRect(LABEL_WIDTH, y + 2, width - LABEL_WIDTH, ROW - 4);
  g.fillStyle = hatch(g, 'soft');
  g.fillRect(LABEL_WIDTH, y + 2, width - LABEL_WIDTH, ROW - 4);
  const slices = new Slices(g, y + 2, ROW - 4, fills);
  for (let i = firstAfter(lane, view.from); i < lane.count && lane.start[i] <= view.to; ++i) {
    const x0 = Math.max(LABEL_WIDTH, xOf(lane.start[i], width)), x1 = Math.min(width, xOf(lane.end[i], width));
    slices.add(lane.colour[i], x0, x1);
    if (x1 - x0 < 40) continue;
    g.fillStyle = inkOfSlice[lane.colour[i]];
    g.textAlign = 'left';
    g.save();
    g.beginPath(); g.rect(x0, y, x1 - x0 - 4, ROW); g.clip();
    g.fillText(run.names[lane.named[i]], x0 + 5, y + ROW / 2);
    g.restore();
  }
  slices.end();
}
let inkOfSlice = [];
const KEYS = 'Ctrl with the wheel, or a pinch, zooms; dragging moves. On the keyboard: arrows, + and -, 1 for one step, 0 for all.';
function button(text, act, label) {
  const b = element('button', {text, type: 'button', 'aria-label': label || text});
  b.addEventListener('click', act);
  return b;
}
function toolbar() {
  const shown = element('span', {class: 'shown'});
  redraws.push(() => { shown.textContent = 'shown: ' + shownWords(); });
  return element('div', {class: 'tools', role: 'toolbar', 'aria-label': 'Which time is shown'},
    button('One step', oneStep), button('Steady steps', steadySteps), button('All', all),
    button('+', () => zoom(middle(), 0.5), 'Zoom in'), button('−', () => zoom(middle(), 2), 'Zoom out'),
    button('◀', () => pan(-(view.to - view.from) / 4), 'Earlier'), button('▶', () => pan((view.to - view.from) / 4), 'Later'),
    button('Next wait', () => walk(runs[0], 1)), shown);
}
function timelines() {
  const step = runs[0].typical.step;
  const s = section('Timeline', `One row a lane; hatched: idle. Opens on ${step >= 0 ? `step ${step}, from its first forward to ${runs[0].typical.to < runs[0].to ? 'that of the next' : 'the end of the run'}` : 'the whole run'}. Ops are coloured by phase, copies by what they carry. Where commands are narrower than a pixel, the height that is filled is the share of the time. `
    + `Arrows lead from idle time to what it waits for: the longest of the compute lanes, and of what is pointed at; N and P go from wait to wait. Dashed: ends of steps' updates. ${KEYS}`
    + (runs.length > 1 ? ' Times are from the begin of that step, in both runs.' : ''));
  s.id = 'timeline';
  s.append(toolbar());
  const used = new Set();
  for (const run of runs) {
    for (const lane of run.lanes) for (const c of new Set(lane.colour)) used.add(data.colours[c]);
    if (runs.length > 1) s.append(runTitle(run));
    for (const device of run.devices) if (device.ranks > 1) s.append(element('p', {class: 'note', text: `${device.name}: ${device.ranks} ranks whose commands are the same and start and end within a thousandth of a step of each other, as ${device.first}'s do.`}));
    if (run.slices_left_out > 0) s.append(element('p', {class: 'note', text: `The ${run.slices_left_out} commands after ${time(run.shown_until_ns)} are left out here; the trace has them all.`}));
    const height = run.lanes.length * ROW;
    run.canvas = canvas(s, height + AXIS, `Timeline of ${run.lanes.length} lanes, ${run.mode}`, (g, width) => {
      axis(g, width, height);
      const fills = data.colours.map(colour);
      inkOfSlice = data.colours.map(inkOn);
      run.lanes.forEach((lane, i) => drawLane(g, run, lane, i * ROW, width, fills));
      stepEnds(g, run, width, height);
      arrows(g, run, width);
      labels(g, run.lanes.map(l => shortName(l.name, run)), 0, ROW);
    }, (t, y, width) => pointAt(run, Math.floor(y / ROW), t, width), {n: () => walk(run, 1), p: () => walk(run, -1), Escape: () => pick(run, null)});
  }
  s.append(legend([...used].sort((a, b) => data.colours.indexOf(a) - data.colours.indexOf(b))));
}
