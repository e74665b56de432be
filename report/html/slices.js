// --- Slices in pixels ------------------------------------------------------------------------------------------------
const COLUMN = 2;  // pixels
const ALONE = 8;  // pixels to either side without another slice of the row
// Paints the slices of a row in order of time. What is narrower than a pixel becomes a share: of each column of pixels,
// as much of the height is filled as slices take of its time, by colour. So a lane that is busy for a fifth of the time
// looks so, however many slices a pixel holds. One that stands alone is a hairline, so that it is seen.
class Slices {
  constructor(g, y, height, fills) {
    Object.assign(this, {g, y, height, fills, column: -1, before: -Infinity, waits: false, alone: false, colour: 0, from: 0, to: 0});
    this.shares = new Float64Array(fills.length);
  }
  // Of x0 to x1, in pixels.
  add(colour, x0, x1) {
    const far = x0 - this.before >= ALONE;
    this.settle(far);
    this.before = Math.max(this.before, x1);
    if (!far && this.column >= 0 && x0 >= this.column * COLUMN && x1 <= (this.column + 1) * COLUMN && x1 - x0 < 1) { this.shares[colour] += (x1 - x0) / COLUMN; return; }
    if (x1 - x0 >= 1) { this.flush(); this.rectangle(colour, x0, x1 - x0 - (x1 - x0 > 3 ? 0.5 : 0)); return; }  // a hairline between neighbours
    this.waits = true;
    this.alone = far;
    this.colour = colour;
    this.from = x0;
    this.to = x1;
  }
  end() { this.settle(true); this.flush(); }
  rectangle(colour, x, width) {
    this.g.fillStyle = this.fills[colour];
    this.g.fillRect(x, this.y, width, this.height);
  }
  // Of the slice before: whether it is alone is known when the next has come.
  settle(far) {
    if (!this.waits) return;
    this.waits = false;
    if (this.alone && far) this.rectangle(this.colour, this.from, Math.max(0.6, this.to - this.from)); else this.spread();
  }
  spread() {
    for (let c = Math.floor(this.from / COLUMN); c * COLUMN <= this.to; ++c) {
      if (c !== this.column) { this.flush(); this.column = c; }
      this.shares[this.colour] += (Math.min(this.to, (c + 1) * COLUMN) - Math.max(this.from, c * COLUMN)) / COLUMN;
    }
  }
  flush() {
    if (this.column < 0) return;
    const all = this.shares.reduce((sum, share) => sum + share, 0), scale = all * this.height < 1 ? 1 / all : Math.min(this.height, this.height / all);
    let bottom = this.y + this.height;
    for (let colour = 0; all > 0 && colour < this.shares.length; ++colour) {
      if (this.shares[colour] === 0) continue;
      const high = this.shares[colour] * scale;
      bottom -= high;
      this.g.fillStyle = this.fills[colour];
      this.g.fillRect(this.column * COLUMN, bottom, COLUMN, high);
    }
    this.shares.fill(0);
    this.column = -1;
  }
}
// Nanoseconds of from..to in which a lane is busy.
function busyIn(lane, from, to) {
  let sum = 0;
  for (let i = firstAfter(lane, from); i < lane.count && lane.start[i] < to; ++i) sum += Math.min(lane.end[i], to) - Math.max(lane.start[i], from);
  return sum;
}
// What is said of a place where too many slices lie to point at one; '' where there are few.
function crowdText(lane, t, width) {
  const pixel = (view.to - view.from) / (width - LABEL_WIDTH), from = t - COLUMN / 2 * pixel, to = from + COLUMN * pixel;
  let n = 0;
  for (let i = firstAfter(lane, from); i < lane.count && lane.start[i] < to; ++i) ++n;
  return n > 2 ? `${n} commands of ${lane.name} within ${time(to - from)} from ${time(from)}, of which it is busy ${percent(busyIn(lane, from, to) / (to - from))}` : '';
}
