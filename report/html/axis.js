// --- One time axis for all pictures ----------------------------------------------------------------------------------
// Of one run, in its own time. Of several, from the begin of the step that each opens on: equal steps lie above each
// other. All times of the data are brought to it at once.
function bringToAxis(run) {
  const zero = runs.length > 1 ? run.typical.from : 0, shift = times => times.map(t => t - zero);
  run.from = -zero;
  run.to = run.makespan_ns - zero;
  run.step_ends = shift(run.step_ends_ns);
  for (const stretch of [run.typical, run.window]) { stretch.from -= zero; stretch.to -= zero; }
  for (const tier of run.memory) tier.t = shift(tier.t);
  for (const lane of run.lanes) unpack(lane, zero);
}
runs.forEach(bringToAxis);
const first = Math.min(...runs.map(r => r.from)), end = Math.max(first + 1, ...runs.map(r => r.to));
const view = {from: first, to: end};
const redraws = [];
let LABEL_WIDTH = 150;
const ROW = 24, AXIS = 22;
const narrow = () => innerWidth < 560;

let asked = false;  // a frame is under way: what comes until then is drawn with it
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; redrawNow(); });
}
function redrawNow() {
  LABEL_WIDTH = narrow() ? 92 : 150;
  redraws.forEach(draw => { draw.stale = draw.of && !near(draw.of); if (!draw.stale) draw(); });
}
// What is out of sight is drawn when it comes near.
function near(c) {
  const box = c.getBoundingClientRect(), margin = innerHeight / 2;
  return box.bottom > -margin && box.top < innerHeight + margin;
}
function drawStale(all) {
  redraws.forEach(draw => { if (draw.stale && (all || near(draw.of))) { draw.stale = false; draw(); } });
}
function show(from, to) {
  const span = Math.min(end - first, Math.max(10, to - from));
  view.from = Math.max(first, Math.min(from, end - span));
  view.to = view.from + span;
  redraw();
}
const zoom = (at, factor) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
const pan = by => show(view.from + by, view.to + by);
const all = () => show(first, end);
const middle = () => (view.from + view.to) / 2;
const spanning = stretch => show(Math.min(...runs.map(r => r[stretch].from)), Math.max(...runs.map(r => r[stretch].to)));
const oneStep = () => spanning('typical'), steadySteps = () => spanning('window');
const shownWords = () => `${[view.from, view.to].map(t => moment(t, (view.to - view.from) / 100)).join(' to ')}, ${time(view.to - view.from)}`;

const xOf = (t, width) => LABEL_WIDTH + (t - view.from) / (view.to - view.from) * (width - LABEL_WIDTH);

// A canvas that zooms with the others. `draw(g, width, height)` paints it, `hover(t, y, width)` says what is there.
function canvas(parent, height, label, draw, hover, keys = {}) {
  const c = element('canvas', {class: 'zooms', tabindex: '0', role: 'img', 'aria-label': label});
  parent.append(c);
  redraws.push(Object.assign(() => paint(c, height, draw), {of: c}));
  c.style.height = height + 'px';
  const at = x => view.from + (view.to - view.from) * (x - LABEL_WIDTH) / (c.clientWidth - LABEL_WIDTH);
  const moved = pixels => pan(-pixels * (view.to - view.from) / (c.clientWidth - LABEL_WIDTH));
  // The wheel belongs to the page. A pinch on a touch pad comes as a wheel with Ctrl.
  c.addEventListener('wheel', e => {
    if (e.ctrlKey || e.metaKey) { e.preventDefault(); hush(); zoom(at(e.offsetX), Math.exp(e.deltaY * (e.deltaMode ? 0.05 : 0.0025))); }
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); moved(-e.deltaX); }
  }, {passive: false});
  fingers(c, at, moved, e => tell(e, hover(at(e.offsetX), e.offsetY, c.clientWidth)));
  c.addEventListener('dblclick', oneStep);
  c.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const span = view.to - view.from;
    const act = keys[e.key] || {ArrowLeft: () => pan(-span / 8), ArrowRight: () => pan(span / 8), '+': () => zoom(middle(), 0.7), '=': () => zoom(middle(), 0.7),
      '-': () => zoom(middle(), 1 / 0.7), 0: all, Home: all, 1: oneStep}[e.key];
    if (act) { e.preventDefault(); act(c); }
  });
  return c;
}
function paint(c, height, draw) {
  const width = c.clientWidth, scale = devicePixelRatio || 1;
  if (c.width !== Math.round(width * scale) || c.height !== Math.round(height * scale)) {
    c.width = Math.round(width * scale);
    c.height = Math.round(height * scale);
    c.style.height = height + 'px';
  }
  const g = c.getContext('2d');
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = '12px ' + getComputedStyle(document.body).fontFamily;
  g.textBaseline = 'middle';
  draw(g, width, height);
}
// One pointer drags, two pinch; one without a button points.
function fingers(c, at, moved, point) {
  const down = new Map();
  c.addEventListener('pointerdown', e => { c.setPointerCapture(e.pointerId); down.set(e.pointerId, e.offsetX); });
  const up = e => down.delete(e.pointerId);
  c.addEventListener('pointerup', up);
  c.addEventListener('pointercancel', up);
  c.addEventListener('pointerleave', hush);
  c.addEventListener('pointermove', e => {
    if (!down.has(e.pointerId)) { point(e); return; }
    hush();
    const before = down.get(e.pointerId);
    const other = [...down].find(([id]) => id !== e.pointerId);
    if (!other) moved(e.offsetX - before);
    else zoom(at(other[1]), Math.max(1, Math.abs(before - other[1])) / Math.max(1, Math.abs(e.offsetX - other[1])));
    down.set(e.pointerId, e.offsetX);
  });
}

function axis(g, width, y) {
  g.fillStyle = colour('soft');
  g.strokeStyle = colour('line');
  const span = view.to - view.from, step = niceAbove(span / Math.max(2, (width - LABEL_WIDTH) / 110));
  g.textAlign = 'center';
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = xOf(t, width);
    g.beginPath(); g.moveTo(x, 0); g.lineTo(x, y); g.stroke();
    if (x > LABEL_WIDTH + 24 && x < width - 24) g.fillText(moment(t, step), x, y + 11);
  }
}
function stepEnds(g, run, width, height) {
  g.strokeStyle = colour('ink');
  g.setLineDash([3, 3]);
  g.globalAlpha = 0.45;
  for (const ended of run.step_ends) {
    const x = xOf(ended, width);
    if (x >= LABEL_WIDTH && x <= width) { g.beginPath(); g.moveTo(x, 0); g.lineTo(x, height); g.stroke(); }
  }
  g.globalAlpha = 1;
  g.setLineDash([]);
}
// On a narrow page a run of one device is not named with each lane.
function shortName(name, run) {
  return narrow() && run.devices.length === 1 ? name.split('/')[1] : name;
}
function labels(g, texts, y0, row) {
  g.fillStyle = colour('card');
  g.fillRect(0, y0, LABEL_WIDTH, texts.length * row);
  g.textAlign = 'left';
  g.fillStyle = colour('ink');
  texts.forEach((text, i) => g.fillText(text, 0, y0 + i * row + row / 2, LABEL_WIDTH - 8));
}
