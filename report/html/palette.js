// --- Colours ---------------------------------------------------------------------------------------------------------
// From the style, read once a scheme: a picture asks for thousands.
const colours = new Map();
function colour(name) {
  if (!colours.has(name)) colours.set(name, resolved(name));
  return colours.get(name);
}
// What a custom property comes to where it names another.
function resolved(name) {
  const probe = element('i');
  probe.style.color = `var(--${name}, #888888)`;
  document.body.append(probe);
  const rgb = getComputedStyle(probe).color;
  probe.remove();
  return rgb;
}
// Black or white: what is read more easily on a colour.
function inkOn(name) {
  const [r, g, b] = colour(name).match(/[\d.]+/g).map(Number).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000000' : '#ffffff';
}
// Diagonal lines on a lane's ground: nothing runs.
const hatches = new Map();
function hatch(g, name) {
  const scale = devicePixelRatio || 1, key = name + scale;
  if (!hatches.has(key)) {
    const tile = element('canvas'), size = 8;
    tile.width = tile.height = size * scale;
    const t = tile.getContext('2d');
    t.scale(scale, scale);
    t.strokeStyle = colour(name);
    t.globalAlpha = 0.55;
    t.lineWidth = 1;
    for (const shift of [-size, 0, size]) { t.beginPath(); t.moveTo(shift, size); t.lineTo(shift + size, 0); t.stroke(); }
    const pattern = g.createPattern(tile, 'repeat');
    pattern.setTransform(new DOMMatrix().scale(1 / scale));
    hatches.set(key, pattern);
  }
  return hatches.get(key);
}
function newScheme() {
  colours.clear();
  hatches.clear();
}
