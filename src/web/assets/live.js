// Keeps an open page up to date, and sends its forms without leaving it. What a person types is
// never replaced or removed: what would do so waits until it is sent or taken back.
(() => {
  const touched = new Set(); // Fields that hold what a person typed or chose.
  const held = new Map(); // By the id of a section: its newest content that waits.
  let api;

  const isLost = (task) =>
    [...touched].some((field) => {
      const form = field.form;
      const isInside = form && field.isConnected && task.target?.contains?.(field);
      return isInside && !task.fragment.querySelector(`[id="${CSS.escape(form.id)}"]`);
    });

  const release = () => {
    for (const [id, task] of held) {
      const target = document.getElementById(id);
      if (target && isLost({ ...task, target })) continue;
      held.delete(id);
      if (target) api.insertContent({ ...task, target });
    }
  };

  const settle = (form) => {
    for (const field of touched) if (field.form === form || !field.isConnected) touched.delete(field);
    release();
  };

  htmx.registerExtension('board', {
    init: (given) => { api = given; },
    // What a person has opened stays open, and what they have changed stays as it is.
    htmx_before_morph_attr: (element, { attrName }) =>
      !(['open', 'hidden'].includes(attrName) || (touched.has(element) && ['value', 'checked'].includes(attrName))),
    htmx_before_morph_node: (element) =>
      !(touched.has(element) && ['TEXTAREA', 'SELECT'].includes(element.tagName)),
  });

  document.addEventListener('input', ({ target }) => {
    const isAsBefore = 'defaultValue' in target && target.type !== 'checkbox' && target.value === target.defaultValue;
    if (target.form?.method === 'post' && !isAsBefore) touched.add(target);
    else if (touched.delete(target)) release();
  });
  document.addEventListener('reset', ({ target }) => settle(target));

  document.addEventListener('htmx:before:swap', ({ detail }) => {
    for (let i = detail.tasks.length - 1; i >= 0; i--) {
      const task = detail.tasks[i];
      if (!task.target?.id) continue;
      held.delete(task.target.id);
      if (isLost(task)) held.set(task.target.id, detail.tasks.splice(i, 1)[0]);
    }
  });

  document.addEventListener('submit', async (event) => {
    const form = event.target;
    if (form.method !== 'post' || !form.getAttribute('action')?.startsWith('/do/')) return;
    event.preventDefault();
    await htmx.ajax('POST', form.getAttribute('action'), {
      source: form, event, target: '#notice', swap: 'outerHTML',
    });
    const notice = document.getElementById('notice');
    // Whatever a form is decided on from now on, it is on what the notice says.
    for (const field of document.querySelectorAll('input[name=seq]')) {
      if (notice.dataset.seq) field.defaultValue = field.value = notice.dataset.seq;
    }
    if (notice.dataset.done !== undefined) {
      form.reset();
      form.closest('details')?.removeAttribute('open');
      form.closest('dialog')?.close();
    }
  });

  const show = (isLive, why = 'connecting again') => {
    document.documentElement.dataset.live = isLive ? 'on' : 'off';
    const sign = document.getElementById('live-sign');
    if (sign) sign.textContent = isLive ? 'live' : why;
  };
  const failed = (status) => {
    if (status === 401) location.reload();
    show(false, status === 503 ? 'not live: too many pages are open' : undefined);
  };
  document.addEventListener('htmx:sse:after:connection', () => show(true));
  document.addEventListener('htmx:sse:close', () => show(false));
  document.addEventListener('htmx:sse:error', ({ detail }) => failed(detail.status));
  // htmx connects again where a connection has ended, and not where there has never been one.
  document.addEventListener('htmx:finally:request', ({ target, detail }) => {
    if (target.id !== 'live' || target._htmx?.sse) return;
    failed(detail.ctx.response?.status);
    const seconds = Number(detail.ctx.response?.headers.get('Retry-After')) || 2;
    setTimeout(() => htmx.ajax('GET', target.getAttribute('hx-sse:connect'), { source: target }), 1000 * seconds);
  });
})();
