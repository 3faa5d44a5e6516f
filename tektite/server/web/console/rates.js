// How fast counters grow: looks at them once a second, and remembers the last minute.

const KEPT = 60;

export class Rates {
  constructor(every = 1000) {
    this._every = every;
    this._last = new Map(); // key -> value at the last look
    this._rates = new Map(); // key -> the last values a second
    this._at = null;
  }

  /** Look at counters [[key, value], ...]; those that are not among them are forgotten. */
  look(counters, now = performance.now()) {
    const seconds = this._at === null ? null : (now - this._at) / 1000;
    if (seconds !== null && seconds * 1000 < this._every / 2) return;
    this._at = now;
    const last = new Map();
    const rates = new Map();
    for (const [key, value] of counters) {
      last.set(key, value);
      const before = this._last.get(key);
      const known = this._rates.get(key) ?? [];
      rates.set(key, before === undefined || seconds === null ? known : [...known.slice(1 - KEPT), Math.max(value - before, 0) / seconds]);
    }
    this._last = last;
    this._rates = rates;
  }

  /** The values a second of the last minute, the newest last. */
  history(key) {
    return this._rates.get(key) ?? [];
  }

  /** The mean of the last `looks` values: what changes now and then would flicker otherwise. */
  of(key, looks = 3) {
    const found = this.history(key).slice(-looks);
    return found.length ? found.reduce((sum, value) => sum + value, 0) / found.length : 0;
  }
}
