// What the reader has chosen, kept behind the # of the address, so that the address shows the same to others.

const view = {
  values: new URLSearchParams(location.hash.slice(1)),
  listeners: [],

  get(key, fallback = "") {
    return this.values.get(key) ?? fallback;
  },

  oneOf(key, known, fallback) {
    // What an address says that was written by hand or for other data may not exist here.
    const value = this.get(key, fallback);
    return known.includes(value) ? value : fallback;
  },

  set(key, value, fallback = "") {
    if (value === fallback) this.values.delete(key);
    else this.values.set(key, value);
    history.replaceState(null, "", `#${this.values}`);
    this.tell([key]);
  },

  list(key) {
    return this.get(key).split("~").filter(Boolean);
  },

  toggle(key, item) {
    const items = this.list(key);
    this.set(key, (items.includes(item) ? items.filter((other) => other !== item) : [...items, item]).join("~"));
  },

  tell(keys) {
    for (const { on, run } of [...this.listeners]) if (on.some((key) => keys.includes(key))) run();
  },
};

function onView(keys, run) {
  view.listeners.push({ on: keys, run });
}
