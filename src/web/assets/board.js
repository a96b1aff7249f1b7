// What pages do beside links and forms, which work without this: keys, copying, order by dragging,
// ages that go on, drafts that survive, and notifications.
'use strict';

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
// Copying.
document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'copied';
  } catch {
    const code = $('code', button.parentElement);
    if (code) getSelection().selectAllChildren(code);
    button.textContent = 'press Ctrl+C';
  }
  setTimeout(() => (button.textContent = said), 1500);
});

// Menus close where something else is clicked, or by Escape.
const close = (but) => $$('details.menu[open]').forEach((menu) => menu.contains(but) || menu.removeAttribute('open'));
document.addEventListener('click', (event) => close(event.target));

// Keys.
const shown = (one) => one.offsetParent !== null;
const columns = () => $$('main section').filter((one) => shown(one) && $('[data-key] a[href]', one));
const cards = (column) => $$('[data-key]', column).filter((one) => shown(one) && $('a[href]', one));
const chosen = () => document.activeElement?.closest('[data-key]');
const choose = (card) => {
  const link = card && $('a.what, a.who, a[href]', card);
  link?.focus();
  card?.scrollIntoView({ block: 'nearest' });
};
const move = (down, right) => {
  const all = columns();
  const card = chosen();
  const at = all.findIndex((column) => column.contains(card));
  if (at < 0) return choose(cards(all[0] ?? document)[0]);
  const rows = cards(all[at]);
  const row = rows.indexOf(card);
  if (down) return choose(rows[row + down]);
  const beside = cards(all[at + right] ?? all[at]);
  choose(beside[Math.min(row, beside.length - 1)]);
};
const keys = {
  '/': () => $('[data-search]')?.focus(),
  '?': () => location.assign('/keys'),
  j: () => move(1, 0),
  k: () => move(-1, 0),
  l: () => move(0, 1),
  h: () => move(0, -1),
};
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    close(null);
    document.activeElement?.blur();
    return;
  }
  const writes = event.target.closest('input, textarea, select, [contenteditable]');
  if (writes || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

// Order by dragging: the form that is behind the list says before which task another is put.
let dragged = null;
const row = (event) => event.target.closest?.('[data-order] > [data-key]');
const mark = (over) => $$('.over-me').concat(over ?? []).forEach((one) => one.classList.toggle('over-me', one === over));
document.addEventListener('dragstart', (event) => {
  dragged = row(event) ?? null;
});
document.addEventListener('dragover', (event) => {
  const over = row(event);
  if (!dragged || !over || over === dragged) return;
  event.preventDefault();
  mark(over);
});
document.addEventListener('dragend', () => {
  mark(null);
  dragged = null;
});
document.addEventListener('drop', (event) => {
  const over = row(event);
  if (!dragged || !over || over === dragged) return;
  event.preventDefault();
  const form = $('form[action="/do/reorder"]');
  if (!form) return;
  const isDown = dragged.compareDocumentPosition(over) & Node.DOCUMENT_POSITION_FOLLOWING;
  const before = isDown ? over.nextElementSibling : over;
  form.elements.task.value = dragged.dataset.key;
  form.elements.before.value = before?.dataset.key ?? '';
  form.requestSubmit();
});

// Ages go on between two changes of the page.
const span = (seconds) => {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))}s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor((seconds + 1800) / 3600)}h`;
  return `${Math.floor((seconds + 43200) / 86400)}d`;
};
// The clock of this machine may differ from that of the server.
let [made, skew] = ['', 0];
const tick = () => {
  const now = $('#head')?.dataset.now ?? '';
  if (now !== made) [made, skew] = [now, Date.now() - Date.parse(now)];
  $$('time[data-age]').forEach((one) => {
    const said = span((Date.now() - skew - Date.parse(one.dateTime)) / 1000);
    if (one.textContent !== said) one.textContent = said;
  });
};
tick();
setInterval(() => document.hidden || tick(), 1000);

// Drafts: what is written in a form and not sent is there again after the page was loaded anew.
const draft = (field) => {
  const form = field.form;
  if (form?.method !== 'post' || !field.name || field.type === 'hidden') return null;
  const about = $$('input[type="hidden"]', form).filter((one) => !['seq', 'back', 'tags_before'].includes(one.name));
  return ['draft', location.pathname, form.getAttribute('action'), ...about.map((one) => one.value), field.name].join(' ');
};
const forget = (form) => [...form.elements].forEach((field) => sessionStorage.removeItem(draft(field)));
document.addEventListener('reset', (event) => forget(event.target));
document.addEventListener('input', (event) => {
  const name = draft(event.target);
  if (name) sessionStorage.setItem(name, event.target.value);
});
const restore = () =>
  $$('form.action :is(input, textarea)').forEach((field) => {
    const kept = sessionStorage.getItem(draft(field));
    if (kept === null || field.value === kept) return;
    field.value = kept;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    field.closest('details')?.setAttribute('open', '');
  });
restore();

// The line of a change whose number is clicked is named in what is sent back.
document.addEventListener('click', (event) => {
  const line = event.target.closest('[data-line]');
  const field = line && $('form[action="/do/reject"] textarea');
  if (!field) return;
  event.preventDefault();
  field.closest('details')?.setAttribute('open', '');
  const before = field.value.trimEnd();
  field.value = `${before}${before && '\n'}${line.dataset.line}: `;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  field.focus();
});

// What takes long to make comes after the rest of the page.
const load = () =>
  $$('[data-load]:not([data-loading])').forEach((one) => {
    const target = `#${one.id}`;
    one.dataset.loading = '';
    htmx.ajax('GET', one.dataset.load, { target, select: target, swap: 'outerHTML ignoreTitle:true' });
  });
load();
document.addEventListener('htmx:after:swap', load);

// What waits is counted in the title, and told where no page is looked at: once, by one of them.
const list = () => [Number($('#waiting')?.dataset.total ?? 0), new Map($$('#waiting li').map((one) => [one.dataset.wait, one]))];
let [waiting, known] = list();
const tell = (count, fresh) => {
  if (window.Notification?.permission !== 'granted') return;
  const name = `callboard ${fresh ? `${fresh.dataset.wait} ${fresh.dataset.since}` : count}`;
  const body = fresh ? `${fresh.dataset.wait} · ${fresh.textContent}` : '';
  // The page that gets the lock tells; by the time it is free, all have asked for it.
  navigator.locks.request(name, { ifAvailable: true }, (lock) => {
    if (!lock) return null;
    const note = document.hidden && new Notification(`(${count}) ${$('#head :is(h1, .board)').textContent}`, { tag: name, body });
    if (note) note.onclick = () => (focus(), note.close());
    return new Promise((resolve) => setTimeout(resolve, 60000));
  });
};
document.addEventListener('htmx:after:swap', () => {
  const [count, waits] = list();
  // A page that is renewed as a whole gets its title with it.
  if (!$('#live-sign')) document.title = document.title.replace(/^(\(\d+\) )?/, count ? `(${count}) ` : '');
  const fresh = [...waits].find(([name]) => !known.has(name))?.[1];
  const isMore = count > waiting || (fresh && count === waiting && waits.size === count);
  [waiting, known] = [count, waits];
  // A page that is looked at comes first.
  if (isMore) setTimeout(tell, document.hidden ? 1000 : 0, count, fresh);
});

const asker = $('[data-notify]');
if (asker && window.Notification?.permission === 'default') {
  asker.hidden = false;
  asker.addEventListener('click', async () => {
    asker.textContent = (await Notification.requestPermission()) === 'granted' ? 'You will be told.' : 'The browser does not allow it.';
  });
}
