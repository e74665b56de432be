// --- Stages of a pipeline --------------------------------------------------------------------------------------------
const PASS = 4;  // numbers a pass: phase, micro-batch, begin, end
const STAGE_LABEL = 64;
function passesOf(row) {
  const passes = [];
  for (let i = 0; i < row.p.length; i += PASS) passes.push({phase: data.colours[row.p[i]], micro: row.p[i + 1], from: row.p[i + 2], to: row.p[i + 3]});
  return passes;
}
const passWords = (row, pass) => `stage ${row.stage}: ${words(pass.phase)}${pass.micro >= 0 ? ` of micro-batch ${pass.micro}` : ''}\n${time(pass.to - pass.from)}`;
function drawPass(g, pass, x0, x1, y) {
  g.fillStyle = colour(pass.phase);
  g.fillRect(x0, y + 2, Math.max(0.5, x1 - x0), ROW - 4);
  g.strokeStyle = colour('card');
  if (x1 - x0 > 8) g.strokeRect(x0 + 0.5, y + 2.5, x1 - x0 - 1, ROW - 5);
  if (pass.micro < 0 || g.measureText(pass.micro).width + 3 > x1 - x0) return;
  g.fillStyle = inkOn(pass.phase);
  g.textAlign = 'center';
  g.fillText(pass.micro, (x0 + x1) / 2, y + ROW / 2);
}
// One steady step, from the first pass of any stage to the last.
function pipelineDiagram(s, run) {
  const rows = run.stages.map(row => ({...row, passes: passesOf(row)}));
  const all = rows.flatMap(row => row.passes), from = Math.min(...all.map(p => p.from)), to = Math.max(...all.map(p => p.to));
  const xOfPass = (t, width) => STAGE_LABEL + (t - from) / (to - from) * (width - STAGE_LABEL);
  const c = element('canvas', {role: 'img', 'aria-label': `Pipeline of ${rows.length} stages, step ${run.typical.step}, ${time(to - from)}`});
  s.append(c);
  redraws.push(Object.assign(() => paint(c, rows.length * ROW, (g, width) => rows.forEach((row, i) => {
    const y = i * ROW;
    g.textAlign = 'left';
    g.fillStyle = colour('ink');
    g.fillText(`stage ${row.stage}`, 0, y + ROW / 2);
    for (const ground of [colour('lane'), hatch(g, 'soft')]) { g.fillStyle = ground; g.fillRect(STAGE_LABEL, y + 2, width - STAGE_LABEL, ROW - 4); }
    for (const pass of row.passes) drawPass(g, pass, xOfPass(pass.from, width), xOfPass(pass.to, width), y);
  })), {of: c}));
  c.style.height = rows.length * ROW + 'px';
  c.addEventListener('mousemove', e => {
    const row = rows[Math.floor(e.offsetY / ROW)], t = from + (e.offsetX - STAGE_LABEL) / (c.clientWidth - STAGE_LABEL) * (to - from);
    const pass = row?.passes.find(p => p.from <= t && t < p.to);
    tell(e, pass ? passWords(row, pass) : row && t >= from ? `stage ${row.stage} waits` : '');
  });
  c.addEventListener('mouseleave', hush);
  return new Set(all.map(p => p.phase));
}
function stageTable(s, run) {
  const stages = run.result.pipeline.stages, links = [...new Set(stages.flatMap(stage => Object.keys(stage.bytes_a_step)))];
  const row = (tag, cells) => element('tr', {}, ...cells.map((text, i) => element(tag, {text, class: i ? 'number' : ''})));
  s.append(element('div', {class: 'scrolls', tabindex: '0', role: 'group', 'aria-label': `Waiting and traffic by stage, ${run.mode}`}, element('table', {},
    row('th', ['stage', 'waits', ...links.map(words)]),
    ...stages.map(stage => row('td', [stage.stage, percent(stage.waiting_share), ...links.map(link => link in stage.bytes_a_step ? bytes(stage.bytes_a_step[link]) : '–')])))));
}
function pipelines() {
  const those = runs.filter(run => run.stages.some(row => row.p.length));
  if (!those.length) return;
  const s = section('Pipeline', `Step ${those[0].typical.step}: one row a stage, as its first rank runs it. A block is a pass of the micro-batch whose number it has; hatched: the stage waits.`);
  s.id = 'pipeline';
  const used = new Set();
  for (const run of those) {
    if (runs.length > 1) s.append(runTitle(run));
    pipelineDiagram(s, run).forEach(phase => used.add(phase));
  }
  s.append(legend([...used].sort((a, b) => data.colours.indexOf(a) - data.colours.indexOf(b))));
  for (const run of those) {
    s.append(element('p', {class: 'note', text: `${runs.length > 1 ? `${words(run.mode)}. ` : ''}A stage waits ${percent(run.result.pipeline.waiting_share)} of the step on average. Waiting and bytes a step and rank, of ${windowWords(run)}. P2P: what a rank sends; collective: around its ring.`}));
    stageTable(s, run);
  }
}
