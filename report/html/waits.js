// --- What idle lanes wait for ----------------------------------------------------------------------------------------
const WAIT = 3;  // numbers a wait: the slice after it, and the lane and slice that it waits for
const MOST_ARROWS = 6, LEAST_WIDTH = 10, LONGEST_CHAIN = 8;
// The wait before a slice, or null.
function waitBefore(run, lane, slice) {
  const waits = lane.waits;
  let low = 0, high = waits.length / WAIT;
  while (low < high) { const between = (low + high) >> 1; if (waits[between * WAIT] < slice) low = between + 1; else high = between; }
  return low * WAIT < waits.length && waits[low * WAIT] === slice ? waitAt(run, lane, low) : null;
}
function waitAt(run, lane, number) {
  const [slice, byLane, bySlice] = lane.waits.subarray(number * WAIT, number * WAIT + WAIT), by = run.lanes[byLane];
  return {lane, slice, from: slice > 0 ? lane.end[slice - 1] : 0, to: lane.start[slice], by, bySlice};
}
function waitText(run, wait) {
  const {lane, slice, by, bySlice} = wait;
  return `${lane.name} is idle for ${time(wait.to - wait.from)}\nbefore ${run.names[lane.named[slice]]}${stepOf(lane, slice)}\nwaits for ${run.names[by.named[bySlice]]}${stepOf(by, bySlice)} on ${by.name}`;
}
function pointAt(run, row, t, width) {
  const lane = run.lanes[row], crowd = lane ? crowdText(lane, t, width) : '';
  if (!lane || crowd) { pick(run, null); return crowd; }
  const i = firstAfter(lane, t);
  if (i < lane.count && lane.start[i] <= t) { pick(run, waitBefore(run, lane, i)); return sliceText(run, lane, i); }
  const wait = i < lane.count ? waitBefore(run, lane, i) : null;
  pick(run, wait);
  return wait ? waitText(run, wait) : `${lane.name}: idle${i > 0 && i < lane.count ? ', between two commands' : ''}`;
}
const sameWait = (a, b) => a === b || (a && b && a.lane === b.lane && a.slice === b.slice);
function pick(run, wait) {
  if (sameWait(run.picked, wait)) return;
  run.picked = wait;
  redraw();
}
const computes = lane => ['compute', 'cpu_compute'].includes(engineOf(lane));
// To the next wait of the compute lanes that is long enough to be seen, in order of time.
function walk(run, way) {
  const at = run.picked ? run.picked.to : way > 0 ? view.from : view.to, least = (run.typical.to - run.typical.from) / 500;
  let best = null;
  for (const lane of run.lanes.filter(computes)) {
    for (let i = 0; i < lane.waits.length / WAIT; ++i) {
      const wait = waitAt(run, lane, i);
      if (wait.to - wait.from < least || (way > 0 ? wait.to <= at : wait.to >= at)) continue;
      if (!best || (way > 0 ? wait.to < best.to : wait.to > best.to)) best = wait;
    }
  }
  if (!best) { said.textContent = 'no further wait'; return; }
  run.picked = best;
  const span = view.to - view.from;
  if (best.from < view.from || best.to > view.to) show(best.from - span / 4, best.from + 3 * span / 4); else redraw();
  said.textContent = waitText(run, best);
  const box = run.canvas.getBoundingClientRect();
  tellAt(box.left + Math.max(LABEL_WIDTH, Math.min(box.width - 40, xOf(best.from, box.width))), box.top + (run.lanes.indexOf(best.lane) + 1) * ROW, waitText(run, best));
}
// The longest that are in sight.
function longestWaits(run, width) {
  const least = LEAST_WIDTH * (view.to - view.from) / (width - LABEL_WIDTH), found = [];
  for (const lane of run.lanes.filter(computes)) {
    for (let i = 0; i < lane.waits.length / WAIT; ++i) {
      const slice = lane.waits[i * WAIT], length = lane.start[slice] - (slice > 0 ? lane.end[slice - 1] : 0);
      if (length < least || lane.start[slice] < view.from || lane.start[slice] > view.to) continue;
      found.push([length, lane, i]);
    }
  }
  return found.sort((a, b) => b[0] - a[0]).slice(0, MOST_ARROWS).map(([, lane, i]) => waitAt(run, lane, i));
}
function arrow(g, run, wait, width, strong) {
  const y0 = (run.lanes.indexOf(wait.lane) + 0.5) * ROW, y1 = (run.lanes.indexOf(wait.by) + 0.5) * ROW;
  const from = Math.max(wait.from, view.from), x0 = xOf((from + Math.min(wait.to, view.to)) / 2, width);
  const x1 = xOf((wait.by.start[wait.bySlice] + wait.by.end[wait.bySlice]) / 2, width);
  g.strokeStyle = g.fillStyle = colour(strong ? 'bad' : 'ink');
  g.globalAlpha = strong ? 1 : 0.65;
  g.lineWidth = strong ? 2 : 1.2;
  const bend = (y0 + y1) / 2;
  g.beginPath(); g.moveTo(x0, y0); g.bezierCurveTo(x0, bend, x1, bend, x1, y1); g.stroke();
  g.beginPath(); g.arc(x0, y0, 2.5, 0, 7); g.fill();
  const tip = y1 > y0 ? -1 : 1;
  g.beginPath(); g.moveTo(x1, y1); g.lineTo(x1 - 4, y1 + tip * 7); g.lineTo(x1 + 4, y1 + tip * 7); g.fill();
  if (strong) g.strokeRect(Math.max(LABEL_WIDTH, xOf(wait.from, width)), y0 - ROW / 2 + 2, xOf(wait.to, width) - Math.max(LABEL_WIDTH, xOf(wait.from, width)), ROW - 4);
  g.globalAlpha = g.lineWidth = 1;
}
function arrows(g, run, width) {
  for (const wait of longestWaits(run, width)) if (!sameWait(wait, run.picked)) arrow(g, run, wait, width, false);
  // What it waits for may have waited itself.
  for (let wait = run.picked, n = 0; wait && n < LONGEST_CHAIN; ++n) {
    arrow(g, run, wait, width, true);
    const before = waitBefore(run, wait.by, wait.bySlice);
    wait = before && before.to > run.picked.from ? before : null;
  }
}
