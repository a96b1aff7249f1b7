// Takes the code out of the address and sends it: no server and no history sees it there.
const code = decodeURIComponent(location.hash.slice(1));
if (code) {
  history.replaceState(null, '', location.pathname + location.search);
  const form = document.getElementById('login');
  form.elements.code.value = code;
  form.submit();
}
