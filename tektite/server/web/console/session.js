// A client of the server's protocol (docs/wire-protocol.md) over one WebSocket.
//
// What it promises: a request is sent once and answered once, or rejected with `connection-lost` if the connection broke before
// its answer came. Requests and subscriptions that are made while there is no connection wait for one. A subscription gives
// every change once: after a disconnect it goes on where it was, and where the server holds that no more it begins anew, with a
// snapshot. Nothing is given to handlers before its time is complete.

/** An error of the server, or of the connection. `details` has `line` and `column` where they are known. */
export class Failure extends Error {
  constructor({ code = "error", message = "", details = {}, retryable = false } = {}) {
    super(message);
    this.code = code;
    this.details = details;
    this.retryable = retryable;
  }
}

const FIRST_PAUSE = 250; // milliseconds before a new attempt; doubled up to the longest
const LONGEST_PAUSE = 5000;
const PROBE_EVERY = 20000;
const PROBE_PATIENCE = 8000;

export const socketUrl = (base = location.href) => {
  const url = new URL("/v1/socket", base);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
};

export class Session {
  /** `decode(bytes)` makes {columns, types, rows} of an Arrow stream; with it, tables come as such. */
  constructor({ url = socketUrl(), credentials = null, decode = null } = {}) {
    this.url = url;
    this.credentials = credentials;
    this.user = null;
    this.state = "connecting"; // connecting, open, login, lost, closed
    this.failure = null; // why the last attempt to log in or to connect failed
    this._decode = decode;
    this._listeners = new Set();
    this._waiting = new Map(); // id -> {resolve, reject}
    this._unsent = [];
    this._subscriptions = new Map();
    this._number = 0;
    this._pause = FIRST_PAUSE;
    this._timer = null;
    this._probe = setInterval(() => this._check(), PROBE_EVERY);
    this._awake = () => {
      if (this.state === "lost") this._connect();
      else this._check();
    };
    globalThis.addEventListener?.("online", this._awake);
    this._connect();
  }

  /** Calls back at each change of `state`, and now. Gives what ends that. */
  onState(callback) {
    this._listeners.add(callback);
    callback(this.state, this);
    return () => this._listeners.delete(callback);
  }

  /** Say who the user is: {user, password} or {token}. */
  login(credentials) {
    this.credentials = credentials;
    this.failure = null;
    this._connect();
  }

  logout() {
    this.credentials = null;
    this.user = null;
    this._drop(new Failure({ code: "connection-lost", message: "logged out" }));
    this._connect();
  }

  /** A second connection of the same user, for what may take long: a request waits for those before it on its connection. */
  branch(options = {}) {
    return new Session({ url: this.url, credentials: this.credentials, ...options });
  }

  close() {
    clearInterval(this._probe);
    clearTimeout(this._timer);
    globalThis.removeEventListener?.("online", this._awake);
    this._drop(new Failure({ code: "closed", message: "the connection was closed" }));
    this._set("closed");
  }

  // ---------------------------------------------------------------- requests

  /** Any request of the protocol; its answer. */
  ask(request, fields = {}) {
    return new Promise((resolve, reject) => {
      const message = { id: ++this._number, request, ...fields };
      this._waiting.set(message.id, { resolve, reject, isSent: false });
      if (this.state === "open") this._send(message);
      else if (this.state === "closed") this._reject(message.id, new Failure({ code: "closed", message: "the connection was closed" }));
      else this._unsent.push(message);
    });
  }

  /** Run statements; {message, table: {columns, types, rows}} of the last one. */
  sql(text, params) {
    return this.ask("sql", params === undefined ? { text } : { text, params });
  }

  /** End what runs and what waits on this connection. What waits for the connection to open is never sent. */
  cancel() {
    const unsent = this._unsent;
    this._unsent = [];
    for (const { id } of unsent) this._reject(id, new Failure({ code: "cancelled", message: "the request was cancelled before it was sent" }));
    if (this.state === "open") this._socket.send(JSON.stringify({ id: 0, request: "cancel" }));
  }

  // ---------------------------------------------------------------- subscriptions

  /**
   * Follow a relation: {name}, {sql, params} or {datalog, params}, and `granularity`.
   * Handlers, all optional: begin(relation), snapshot(changes, time), changes(changes, time), progress(time), error(failure),
   * end(failure or null). A change is {row, time, diff}.
   */
  subscribe(query, handlers = {}) {
    const subscription = new Subscription(this, ++this._number, query, handlers);
    this._subscriptions.set(subscription.number, subscription);
    if (this.state === "open") subscription.begin();
    return subscription;
  }

  /** The rows of a relation, kept up to date: see LiveRows. */
  live(query, onChange = () => {}) {
    return new LiveRows(this, query, onChange);
  }

  // ---------------------------------------------------------------- the connection

  _set(state) {
    if (this.state === state && state !== "login") return;
    this.state = state;
    for (const listener of [...this._listeners]) listener(state, this);
  }

  _connect() {
    clearTimeout(this._timer);
    if (this._socket) {
      this._socket.onclose = this._socket.onmessage = this._socket.onopen = null;
      this._socket.close();
    }
    this._set("connecting");
    const socket = (this._socket = new WebSocket(this.url));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this._hello(socket);
    socket.onmessage = (event) => this._received(event.data);
    socket.onclose = () => socket === this._socket && this._lost();
  }

  async _hello(socket) {
    const hello = { id: ++this._number, request: "hello", ...(this._decode ? { format: "arrow" } : {}), ...this.credentials };
    const answer = new Promise((resolve, reject) => this._waiting.set(hello.id, { resolve, reject }));
    socket.send(JSON.stringify(hello));
    try {
      const { user } = await answer;
      this.user = user;
    } catch (failure) {
      if (failure.code === "authentication") {
        socket.onclose = null;
        this.failure = this.credentials ? failure : null;
        this.credentials = null;
        this._set("login");
      }
      return;
    }
    this.failure = null;
    this._pause = FIRST_PAUSE;
    this._set("open");
    const unsent = this._unsent;
    this._unsent = [];
    for (const message of unsent) if (this._waiting.has(message.id)) this._send(message);
    for (const subscription of [...this._subscriptions.values()]) subscription.begin();
  }

  _send(message) {
    this._waiting.get(message.id).isSent = true;
    this._socket.send(JSON.stringify(message));
  }

  _reject(id, failure) {
    const waiting = this._waiting.get(id);
    this._waiting.delete(id);
    waiting?.reject(failure);
  }

  _drop(failure) {
    if (this._socket) {
      this._socket.onclose = this._socket.onmessage = null;
      this._socket.close();
      this._socket = null;
    }
    for (const id of [...this._waiting.keys()]) this._reject(id, failure);
    this._unsent = [];
  }

  _lost() {
    const failure = new Failure({ code: "connection-lost", message: "the connection was lost before the answer came", retryable: true });
    for (const [id, waiting] of [...this._waiting]) if (waiting.isSent !== false) this._reject(id, failure);
    for (const subscription of this._subscriptions.values()) subscription.lost();
    this._set("lost");
    this._timer = setTimeout(() => this._connect(), this._pause * (0.75 + Math.random() / 2));
    this._pause = Math.min(this._pause * 2, LONGEST_PAUSE);
  }

  /** Find out that a server has gone whose connection nobody has closed, as after a sleep. The engine need not be free for it. */
  async _check() {
    if (this.state !== "open") return;
    const socket = this._socket;
    try {
      await fetch(new URL("/live", this.url.replace(/^ws/, "http")), { signal: AbortSignal.timeout(PROBE_PATIENCE), cache: "no-store" });
    } catch {
      if (socket === this._socket && this.state === "open") {
        socket.onclose = null;
        socket.close();
        this._lost();
      }
    }
  }

  _received(data) {
    let message;
    if (typeof data === "string") {
      message = JSON.parse(data);
    } else {
      const length = new DataView(data).getUint32(0);
      message = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
      message.table = this._decode(new Uint8Array(data, 4 + length));
    }
    if (message.id === undefined || message.id === null) {
      this._subscriptions.get(message.subscription)?.received(message);
      return;
    }
    const waiting = this._waiting.get(message.id);
    if (!waiting) return;
    this._waiting.delete(message.id);
    if (message.error) waiting.reject(new Failure(message.error));
    else waiting.resolve(message);
  }
}

class Subscription {
  constructor(session, number, query, handlers) {
    this.number = number;
    this.relation = null;
    this.time = null; // up to which everything was given to the handlers
    this._session = session;
    this._query = query;
    this._handlers = handlers;
    this._lineage = null;
    this._wantsSnapshot = true;
    this._pieces = [];
  }

  async begin() {
    const session = this._session;
    this._pieces = [];
    this._wantsSnapshot = this.time === null;
    const resume = this._wantsSnapshot ? {} : { since: this.time, snapshot: false, lineage: this._lineage };
    try {
      const answer = await session.ask("interest", { subscription: this.number, ...this._query, ...resume, logged: false });
      if (answer.lineage !== undefined) this._lineage = answer.lineage;
      this.relation = answer.relation;
      this._handlers.begin?.(answer.relation);
    } catch (failure) {
      if (!session._subscriptions.has(this.number) || failure.code === "connection-lost") return; // closed, or begun again later
      if (failure.code === "history-gone" && !this._wantsSnapshot) {
        this.time = null;
        this.begin();
        return;
      }
      session._subscriptions.delete(this.number);
      this._handlers.end?.(failure);
    }
  }

  lost() {
    this._pieces = [];
  }

  received(message) {
    if (message.table) this._pieces.push(message.table);
    if (message.progress !== undefined) {
      const found = changesOf(this._pieces);
      this._pieces = [];
      this.time = message.progress;
      if (this._wantsSnapshot) {
        this._wantsSnapshot = false;
        this._handlers.snapshot?.(found, message.progress);
      } else if (found.length) {
        this._handlers.changes?.(found, message.progress);
      }
      this._handlers.progress?.(message.progress);
    }
    if (message.end) {
      const gone = message.error?.code === "history-gone";
      if (gone) {
        this.time = null;
        this.begin();
        return;
      }
      this._session._subscriptions.delete(this.number);
      this._handlers.end?.(message.error ? new Failure(message.error) : null);
    } else if (message.error) {
      this._handlers.error?.(new Failure(message.error));
    }
  }

  close() {
    const session = this._session;
    if (!session._subscriptions.delete(this.number)) return;
    if (session.state === "open") session.ask("uninterest", { subscription: this.number }).catch(() => {});
  }
}

function changesOf(pieces) {
  const found = [];
  for (const { columns, rows } of pieces) {
    const width = columns.length - 2; // the last two are time and diff
    for (const row of rows) found.push({ row: row.slice(0, width), time: row[width], diff: row[width + 1] });
  }
  return found;
}

/** How often a row of LiveRows is there, as a property of it. */
export const COUNT = Symbol("count");

/**
 * The rows of a subscription as a Map that is kept up to date: from the values of the columns `by` (one name or several; the
 * whole row without it) to an object with a property for each column. `onChange(live, keys)` is called when everything of a time
 * is in it, with the keys that have changed since, and when it fails.
 *
 *     const views = session.live({ sql: "SELECT name, rows FROM system.views", by: "name" }, draw);
 *     views.rows.get("totals").rows
 */
export class LiveRows {
  constructor(session, { by, ...query }, onChange) {
    this.rows = new Map();
    this.columns = [];
    this.types = [];
    this.time = null;
    this.isReady = false;
    this.failure = null;
    const named = by === undefined ? null : [by].flat();
    const apply = (changes) => {
      const keys = new Set();
      changes.sort((a, b) => a.time - b.time || a.diff - b.diff); // an update removes before it adds
      for (const { row, diff } of changes) {
        const key = this._key(named, row);
        const known = this.rows.get(key);
        keys.add(key);
        if (diff < 0) {
          if (named ? known && this.columns.every((name, at) => Object.is(known[name], row[at])) : known && (known[COUNT] += diff) <= 0) {
            this.rows.delete(key);
          }
        } else if (known && !named) {
          known[COUNT] += diff;
        } else {
          const made = Object.fromEntries(this.columns.map((name, at) => [name, row[at]]));
          made[COUNT] = diff;
          this.rows.set(key, made);
        }
      }
      return keys;
    };
    this._subscription = session.subscribe(query, {
      begin: (relation) => {
        this.columns = relation.columns;
        this.types = relation.types;
        if (relation.time !== null) return;
        this.isReady = true; // nothing was ever written: the snapshot comes with the first epoch
        onChange(this, new Set());
      },
      snapshot: (changes, time) => {
        const before = [...this.rows.keys()];
        this.rows.clear();
        this.isReady = true;
        this.failure = null;
        this.time = time;
        onChange(this, new Set([...before, ...apply(changes)]));
      },
      changes: (changes, time) => {
        this.failure = null;
        this.time = time;
        onChange(this, apply(changes));
      },
      error: (failure) => {
        this.failure = failure;
        onChange(this, new Set());
      },
      end: (failure) => {
        this.failure = failure;
        this.isReady = true;
        onChange(this, new Set());
      },
    });
  }

  _key(named, row) {
    if (named === null) return JSON.stringify(row);
    if (named.length === 1) return row[this.columns.indexOf(named[0])];
    return JSON.stringify(named.map((name) => row[this.columns.indexOf(name)]));
  }

  close() {
    this._subscription.close();
  }
}
