'use strict';
// Draws the report from the JSON beside it. All text enters the page as text, never as markup.
const data = JSON.parse(document.getElementById('data').textContent);
const runs = data.runs;
const SLICE = 6;  // numbers a slice: from the end of the one before it, duration, colour, name, step, bytes
const words = name => name.replaceAll('_', ' ');
function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) key === 'text' ? e.textContent = value : e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// --- Numbers ---------------------------------------------------------------------------------------------------------
function digits(x) { const a = Math.abs(x); return x.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2); }
function time(ns) {
  const a = Math.abs(ns);
  return a >= 1e9 ? digits(ns / 1e9) + ' s' : a >= 1e6 ? digits(ns / 1e6) + ' ms' : a >= 1e3 ? digits(ns / 1e3) + ' µs' : Math.round(ns) + ' ns';
}
function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let u = 0;
  while (Math.abs(n) >= 1023.5 && u + 1 < units.length) { n /= 1024; ++u; }
  return (u === 0 ? Math.round(n) : digits(n)) + ' ' + units[u];
}
function count(n) {
  const units = ['', ' k', ' M', ' G', ' T', ' P'];
  let u = 0;
  while (Math.abs(n) >= 999.5 && u + 1 < units.length) { n /= 1000; ++u; }
  return digits(n) + units[u];
}
const percent = share => (100 * share).toFixed(1) + '%';
// A moment, with as many digits as tell it from one `apart` ns later.
function moment(ns, apart) {
  const a = Math.max(Math.abs(ns), apart), [unit, size] = a >= 1e9 ? ['s', 1e9] : a >= 1e6 ? ['ms', 1e6] : a >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  const places = Math.max(0, Math.ceil(-Math.log10(apart / size) - 1e-9));
  return ns === 0 ? '0' : `${(ns / size).toFixed(size === 1 ? 0 : Math.min(6, Math.max(places, digits(ns / size).split('.')[1]?.length ?? 0)))} ${unit}`;
}
function niceAbove(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].map(m => m * power).find(m => m >= x * 0.999);
}
// The time that shares of a run are shares of.
function windowWords(run) {
  const w = run.window;
  return (run.step_ends_ns.length > 1 ? `the ${w.steps} step${w.steps > 1 ? 's' : ''} after the first, ${time(w.to - w.from)} in all` : `the ${time(w.to - w.from)} to the end of the computations of the run's one step`);
}

// --- Pieces of the page ----------------------------------------------------------------------------------------------
const tooltip = document.getElementById('tooltip'), said = document.getElementById('said');
function tellAt(x, y, text) {
  tooltip.textContent = text;
  tooltip.style.display = text ? 'block' : 'none';
  tooltip.style.left = Math.max(0, Math.min(x + 14, innerWidth - tooltip.offsetWidth - 8)) + 'px';
  tooltip.style.top = Math.max(0, Math.min(y + 14, innerHeight - tooltip.offsetHeight - 8)) + 'px';
}
const tell = (event, text) => tellAt(event.clientX, event.clientY, text);
const hush = () => { tooltip.style.display = 'none'; };

function section(title, note) {
  const s = element('section', {}, element('h2', {text: title}));
  if (note) s.append(element('p', {class: 'note', text: note}));
  document.getElementById('main').insertBefore(s, document.getElementById('origin'));
  return s;
}
function runTitle(run) {
  return element('div', {class: 'run-title', text: run.title}, element('span', {class: 'mode', text: run.mode}));
}
function legend(names, hatched = []) {
  return element('div', {class: 'legend'}, ...names.map(name => {
    const mark = element('i', {class: hatched.includes(name) ? 'hatched' : ''});
    mark.style.backgroundColor = `var(--${name})`;
    return element('span', {}, mark, words(name));
  }));
}
// parts: [name, amount]; text(amount) for the tooltip; `whole`: what the bar's full width is, so that bars compare.
function stackedBar(parts, text, {thin = false, whole = 0, hatched = []} = {}) {
  const sum = parts.reduce((all, [, amount]) => all + amount, 0) || 1, total = Math.max(whole, sum);
  const bar = element('div', {class: thin ? 'bar thin' : 'bar', role: 'img',
    'aria-label': parts.filter(p => p[1] > 0).map(([name, amount]) => `${words(name)} ${percent(amount / sum)}`).join(', ')});
  for (const [name, amount] of parts) {
    if (amount <= 0) continue;
    const share = amount / total, piece = element('span', {class: hatched.includes(name) ? 'hatched' : ''});
    if (!thin && share > 0.12) piece.append(element('b', {text: words(name)}));
    piece.style.width = share * 100 + '%';
    piece.style.backgroundColor = `var(--${name})`;
    piece.style.color = inkOn(name);
    piece.addEventListener('mousemove', e => tell(e, `${words(name)}: ${text(amount)} (${percent(amount / sum)})`));
    piece.addEventListener('mouseleave', hush);
    bar.append(piece);
  }
  return bar;
}
